"""Recorded quantizations: what is allowed for each element, and the tensors of a line."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from conformance.families.family import (
    Cut,
    GradedTensor,
    Rule,
    TensorFunctions,
    TensorsByName,
)
from conformance.families.quantization.dynamic import dynamic_inputs
from conformance.families.quantization.exact import AllowedResult, dynamic_scale, dynamic_zero_point
from conformance.families.quantization.grading import (
    Elements,
    allowed,
    as_code,
    graded_result,
    rule_of,
)
from conformance.families.quantization.inputs import (
    keeps_ranks,
    telling_requests,
    tensors_of_element,
)
from conformance.families.quantization.kernels import (
    ExpectedCodes,
    codes_of,
    expect,
    quantize,
    spread,
)
from conformance.families.quantization.ruling import Formula, dtypes, formula
from oracles.protocol import Bits
from specs.cases import Case, Shape, format_shape
from specs.errors import CastigateError
from specs.formats import Format, format_named
from specs.model.vocabulary import AXIS, BLOCK, FORM
from specs.operations import SCALE, ZERO, X, Y, operation_of


def results(
    case: Case, tensors: TensorsByName, answer: TensorsByName | None
) -> Iterator[GradedTensor]:
    """Yield each tensor that a case returns, beside what is allowed for its elements.

    ``answer`` has the recorded results, or is None for a recorded error. Of a dynamic quantization
    the scale comes first, and zero point and codes only if ``_dynamic`` can judge them by it.
    """
    if operation_of(case) == "dynamic-quantize":
        yield from _dynamic(case, tensors[X], answer)
        return
    rules, x = formula(case), tensors[X]
    scale = spread(case, x.shape, tensors[SCALE]).reshape(-1)
    zero = spread(case, x.shape, tensors[ZERO]).reshape(-1) if ZERO in tensors else None
    yield _codes(case, rules, x.shape, Elements(x.reshape(-1), scale, zero), answer)


def _codes(
    case: Case,
    rules: Formula,
    shape: tuple[int, ...],
    elements: Elements,
    answer: TensorsByName | None,
) -> GradedTensor:
    taken, returned = dtypes(case)
    formats = {name: format_named(dtype) for name, dtype in (taken | returned).items()}

    def element(at: int) -> tuple[int, int, int | None]:
        [found] = elements.at(np.array([at]))
        return found

    def rule(at: int) -> Rule:
        found = allowed(rules, *element(at))
        name, clause = rule_of(rules, found)
        return Rule(name, "unspecified" if found.is_open else found.level, clause)

    def given(at: int) -> dict[str, str]:
        named = zip((X, SCALE, ZERO), element(at), strict=True)
        return {name: formats[name].hexadecimal(code) for name, code in named if code is not None}

    # Not by the cache of runs, which would keep what is expected of recorded tensors.
    expected = expect(rules, elements.x, elements.scale, elements.zero)
    codes = None if answer is None else answer[Y]
    inputs = rules.source, elements.x
    return graded_result(Y, formats[Y], shape, codes, expected, inputs, rule, given)


def _dynamic(case: Case, x: Bits, answer: TensorsByName | None) -> Iterator[GradedTensor]:
    """Yield the scale, judged by the input, the zero point by the scale, and the codes by both.

    Only the scale is yielded if there is no answer, if the scale is open, or if the recorded one is
    no positive finite number. Raise CastigateError if ``x`` has no elements.
    """
    rules, xs = formula(case), x.reshape(-1).tolist()
    if not xs:
        raise CastigateError("`x` has no elements, so that no scale follows from it")
    due = dynamic_scale(rules, xs)
    yield _single(rules, SCALE, rules.scale, due, answer)
    if answer is None or due.is_open:
        return
    scale, zero = (int(answer[name].reshape(-1)[0]) for name in (SCALE, ZERO))
    if not 0 < scale <= rules.scale.max_code:
        return
    yield _single(rules, ZERO, rules.target, dynamic_zero_point(rules, xs, scale), answer)
    scales_of, zeros = (
        np.full(x.size, code, form.storage)
        for code, form in ((scale, rules.scale), (zero, rules.target))
    )
    yield _codes(case, rules, x.shape, Elements(x.reshape(-1), scales_of, zeros), answer)


def _single(
    rules: Formula, name: str, form: Format, due: AllowedResult, answer: TensorsByName | None
) -> GradedTensor:
    outcome = rules.outcome(*due.situations[-1])
    rule = Rule(outcome.rule, "unspecified" if due.is_open else due.level, outcome.clause)
    expected = ExpectedCodes(
        [np.array([as_code(each)], np.int64) for each in due.codes],
        [np.array([as_code(each)], np.int64) for each in due.weaker],
        np.array([due.is_open]),
        np.array([due.level == "recommended"]),
    )
    answers = None if answer is None else answer[name]
    inputs = form, np.zeros(1, form.storage)
    return graded_result(name, form, (), answers, expected, inputs, lambda _: rule, lambda _: {})


def listed(case: Case, seed: int, most: int) -> Iterator[TensorsByName]:
    """Yield the tensors of the listed requests; in the form `tensor`, ``x`` in pieces of ``most``.

    ``seed`` has no effect.
    """
    if operation_of(case) == "dynamic-quantize":
        yield from ({X: x} for x in dynamic_inputs())
        return
    for given in telling_requests(case):
        if case.mode[FORM] == "tensor":
            x = given.tensors[X]
            yield from (given.tensors | {X: x[at : at + most]} for at in range(0, x.size, most))
        else:
            yield given.tensors


def optional(case: Case) -> Collection[str]:
    """Return the names of tensors that may be left out: the zero point, unless it is always due."""
    return () if keeps_ranks(case) else (ZERO,)


def shapes(case: Case, x: Shape) -> Iterator[tuple[str, Sequence[Shape]]]:
    """Yield scale and zero point by name, with the shapes that each may have beside ``x``.

    ``x`` is a shape. Raise CastigateError if the form needs an axis that ``x`` does not have.
    """
    own: list[Shape] = [(), (1,) * max(1, len(x)), (1,)]
    form = case.mode.get(FORM, "tensor")
    if form != "tensor":
        if len(x) <= AXIS:
            raise CastigateError(
                f"`input.x` has shape {format_shape(x)}; the form `{form}` needs an axis {AXIS}"
            )
        length = x[AXIS]
        own = [(length,), tuple(length if at == AXIS else 1 for at in range(len(x)))]
        if form == "block":
            count = -(-length // int(case.mode[BLOCK]))
            own = [(*x[:AXIS], count, *x[AXIS + 1 :])]
    yield SCALE, own
    yield ZERO, own


def cut(case: Case) -> Cut:
    """Return where tensors may be cut: nowhere if one scale follows from the whole tensor."""
    if operation_of(case) == "dynamic-quantize":
        return "nowhere"
    return "anywhere" if case.mode[FORM] == "tensor" else "between rows"


LARGEST = 255
"""The largest number of a sample, where the codes have it."""
WITH_ZERO_POINT = range(8, 17)
"""The bits of codes that get a zero point other than 0; no document leaves theirs open."""


def sample(case: Case) -> dict[str, Bits]:
    """Return tensors of whole numbers, with the scale one, whose results no document leaves open.

    The numbers lie above the zero point, and at 255 at most. They give no 0, which may get either
    sign where the result is a float. A case without scales has no tensor but ``x``.
    """
    formats = {name: format_named(dtype) for name, dtype in dtypes(case).taken.items()}
    codes = formats.get(ZERO, format_named(case.target))
    zero = 1 if ZERO in formats and codes.is_integral and codes.bits in WITH_ZERO_POINT else 0
    most = min(LARGEST, _largest_whole(codes) - zero)
    values = np.arange(zero + 1, most + 1, dtype=np.float64)
    x = {X: codes_of(formats[X], values, values < 0).astype(formats[X].storage)}
    if SCALE not in formats:
        return x
    return tensors_of_element(case, 0, formats[SCALE].one_code, zero) | x


def _largest_whole(codes: Format) -> int:
    """Return a number up to which a format of codes has every whole number."""
    return codes.max_code if codes.is_integral else 1 << codes.entry.mantissa


TENSORS = TensorFunctions(quantize, results, sample, listed, shapes, optional, cut)
