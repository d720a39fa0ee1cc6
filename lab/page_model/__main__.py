"""Compares the reference and the documents with a model that was written from the pages alone.

``python -m lab.page_model 1000000`` compares a million elements of each operation
and prints each kind of difference. ``KNOWN`` lists the kinds that are a reading of a page, or a
choice to require less than it; every other kind is an error of one of the two.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from random import Random
from time import perf_counter

import numpy as np

from conformance.families.quantization.exact import AllowedResult, dynamic_scale, dynamic_zero_point
from conformance.families.quantization.kernels import NO_CODE, expect
from conformance.families.quantization.ruling import Formula, formula
from lab.page_model import numbers, onnx, webnn
from lab.page_model.compared_blocks import compare_blocks
from lab.page_model.inputs import Draw, specials
from lab.page_model.kinds import Kinds, Verdict, note, show
from lab.page_model.numbers import Answer
from oracles.reference import exact_rulings
from specs.branches import Ruling
from specs.cases import Case
from specs.outcomes import Nan
from specs.ruling import ruling
from specs.selection import select

QUANTIZE, DEQUANTIZE = "onnx-quantize-linear", "onnx-dequantize-linear"
DYNAMIC, CAST, BLOCKS = "onnx-dynamic-quantize-linear", "webnn-cast", "blocks"
WEBNN_QUANTIZE, WEBNN_DEQUANTIZE = "webnn-quantize-linear", "webnn-dequantize-linear"
SEED = 20


# Quantization


def model_of(case: Case) -> Callable[[int, int, int], Answer]:
    """Return the model's function of a case; it takes codes of an element, a scale and a zero."""
    mode, version = case.mode, case.version
    if case.document == QUANTIZE:
        call = onnx.Quantize(
            int(version),
            case.source,
            case.target,
            mode["scale"],
            mode.get("saturate", "1") == "1",
            mode.get("precision"),
        )
        return lambda x, scale, zero: onnx.quantize(call, x, scale, zero)
    if case.document == DEQUANTIZE:
        plain = onnx.Dequantize(int(version), case.source, case.target, mode["scale"])
        return lambda x, scale, zero: onnx.dequantize(plain, x, scale, zero)
    of_webnn = {
        WEBNN_QUANTIZE: webnn.quantize,
        WEBNN_DEQUANTIZE: webnn.dequantize,
    }[case.document]
    return lambda x, scale, zero: of_webnn(case.source, case.target, x, scale, zero)


def verdicts(
    rules: Formula, elements: list[tuple[int, int, int]], *, has_zero: bool = True
) -> Iterator[Verdict]:
    """Yield the verdict of the reference's kernels on each element.

    An element has the codes of an input, a scale and a zero point.
    """
    codes = rules.source if rules.operation == "dequantize" else rules.target
    formats = (rules.source, rules.scale, codes)
    x, scale, zero = (
        np.array([each[place] for each in elements], fmt.storage)
        for place, fmt in enumerate(formats)
    )
    found = expect(rules, x, scale, zero if has_zero else None)
    nans = nans_of(rules.target.name) if rules.target.nan_codes else {}
    count = len(elements)
    is_open = np.broadcast_to(found.is_open, count).tolist()
    is_recommended = np.broadcast_to(found.is_recommended, count).tolist()
    strong, weaker = (
        [np.broadcast_to(each, count).tolist() for each in arrays]
        for arrays in (found.strong, found.weaker)
    )
    for at in range(count):
        if is_open[at]:
            yield Verdict(None, frozenset(), False)
            continue
        best = _patterns([each[at] for each in strong], nans)
        also = _patterns([each[at] for each in weaker], nans)
        yield Verdict(best | also, best, is_recommended[at])


def nans_of(dtype: str) -> dict[int, frozenset[int]]:
    """The patterns that the kernels' codes for NaN stand for: any, or those of one sign."""
    every = numbers.nan_patterns(dtype)
    if dtype in numbers.WIDE:
        return {-1: every}
    signs = {-3: False, -4: True}
    return {-1: every} | {
        code: numbers.nan_of_sign(dtype, negative=negative) for code, negative in signs.items()
    }


def _patterns(codes: list[int], nans: dict[int, frozenset[int]]) -> frozenset[int]:
    found = frozenset(codes) - {NO_CODE}
    if not found or min(found) >= 0:
        return found
    return frozenset().union(*(nans.get(each, {each}) for each in found))


def cases_of(document: str) -> list[Case]:
    """One case for each formula of a document: the form does not matter to an element."""
    known: dict[tuple[object, ...], Case] = {}
    for case in select([document]):
        rest = tuple(each for each in case.modes if each[0] not in ("form", "block"))
        known.setdefault((case.version, case.source, case.target, rest), case)
    return [*known.values()]


def compare(document: str, count: int, seed: int, kinds: Kinds) -> None:
    """Compare about ``count`` elements, spread over a document's cases; note what differs.

    Of ONNX's documents, an eighth is compared again without a zero point.
    """
    cases = cases_of(document)
    each = max(2, -(-count // len(cases)))
    for number, case in enumerate(cases):
        rules = formula(case)
        draw = Draw(
            case.source,
            case.target,
            rules.scale.name,
            Random(f"{seed} {number}"),
            rules.operation == "dequantize",
        )
        answer = model_of(case)
        drawn = [draw.element() for _ in range(each)]
        without = [] if document in (WEBNN_QUANTIZE, WEBNN_DEQUANTIZE) else drawn[::8]
        for elements, has_zero in ((drawn, True), (without, False)):
            found = verdicts(rules, elements, has_zero=has_zero)
            for (x, scale, zero), verdict in zip(elements, found, strict=True):
                offset = zero if has_zero else 0
                example = f"x={x:#x} scale={scale:#x} zero={offset:#x}"
                note(kinds, case.id, answer(x, scale, offset), verdict, example)


# DynamicQuantizeLinear


def verdict_of(found: AllowedResult) -> Verdict:
    if found.is_open:
        return Verdict(None, frozenset(), False)
    best, weaker = (
        frozenset(each for each in codes if isinstance(each, int))
        for codes in (found.codes, found.weaker)
    )
    return Verdict(best | weaker, best, found.level == "recommended")


def dynamic_tensor(random: Random) -> list[int]:
    """Draw codes of float32: moderate, wild, tiny, huge, all zero, or special ones."""
    size = random.randrange(1, 6)
    pick = random.random()
    if pick < 0.04:
        return [random.choice([0, 1 << 31]) for _ in range(size)]
    if pick < 0.12:
        return [random.choice(specials("float32")) for _ in range(size)]
    if pick < 0.25:
        return [random.getrandbits(32) for _ in range(size)]
    if pick < 0.35:
        return [random.getrandbits(10) | random.choice([0, 1 << 31]) for _ in range(size)]
    if pick < 0.42:
        return [
            0x7F7FFFFF - random.getrandbits(12) | random.getrandbits(1) << 31 for _ in range(size)
        ]
    signs = random.choice([(0,), (1 << 31,), (0, 1 << 31)])
    base = random.randrange(100, 150)
    return [
        ((base + random.randrange(4)) << 23 | random.getrandbits(23)) | random.choice(signs)
        for _ in range(size)
    ]


def compare_dynamic(count: int, seed: int, kinds: Kinds) -> None:
    """Compare scales, zero points and codes of random tensors, one for each four of ``count``."""
    (case,) = select([DYNAMIC])
    rules, random = formula(case), Random(seed)
    elements: list[tuple[int, int, int]] = []
    for _ in range(count // 4):
        xs = dynamic_tensor(random)
        shown = " ".join(f"{each:#x}" for each in xs)
        due = onnx.dynamic_scale(xs)
        found = dynamic_scale(rules, xs)
        note(kinds, f"{case.id} scale", due, verdict_of(found), shown)
        if due.admitted is None:
            continue
        for scale in sorted(due.admitted):
            if not 0 < scale < 0x7F800000:
                continue
            zeros = onnx.dynamic_zero(xs, scale)
            allowed = verdict_of(dynamic_zero_point(rules, xs, scale))
            note(kinds, f"{case.id} zero", zeros, allowed, f"{shown} scale={scale:#x}")
            zero = min(zeros.admitted or {0})
            elements += [(x, scale, zero) for x in xs[:1]]
    for element, verdict in zip(elements, verdicts(rules, elements), strict=True):
        x, scale, zero = element
        example = f"x={x:#x} scale={scale:#x} zero={zero:#x}"
        note(kinds, f"{case.id} y", onnx.dynamic_element(x, scale, zero), verdict, example)


# WebNN's cast


def compare_casts(count: int, seed: int, kinds: Kinds) -> None:
    """Compare ``count`` casts, spread over the cases of WebNN's cast."""
    cases = [case for case in select([CAST]) if case.example is None]
    for number, case in enumerate(cases):
        rules = ruling(case)
        best = [replace(each, outcome=each.strictest) for each in rules.branches]
        strict = replace(rules, branches=tuple(best))
        draw = Draw(case.source, case.target, "float32", Random(f"{seed} {number}"))
        for _ in range(-(-count // len(cases))):
            code = draw.beside()
            found = [_cast_patterns(each, code) for each in (rules, strict)]
            level = exact_rulings.allow(rules, code).branch.level
            verdict = Verdict(found[0], found[1] or frozenset(), level == "recommended")
            due = webnn.cast(case.source, case.target, code)
            note(kinds, case.id, due, verdict, f"{code:#x}")


def _cast_patterns(rules: Ruling, code: int) -> frozenset[int] | None:
    allowed = exact_rulings.allow(rules, code)
    if isinstance(allowed.branch.outcome, Nan):
        return numbers.nan_patterns(rules.target.name)
    return frozenset(allowed.codes) or None


ONE_DOCUMENT = {
    QUANTIZE: 1,
    DEQUANTIZE: 1,
    WEBNN_QUANTIZE: 4,
    WEBNN_DEQUANTIZE: 4,
}
"""Documents that are compared element by element, and by what their count is divided."""


def comparisons(count: int) -> Iterator[tuple[str, Callable[[Kinds], None]]]:
    """The comparisons by name, each of about ``count`` elements or fewer."""
    for document, part in ONE_DOCUMENT.items():
        yield document, partial(compare, document, count // part, SEED)
    yield CAST, partial(compare_casts, count // 4, SEED)
    yield DYNAMIC, partial(compare_dynamic, count, SEED)
    yield BLOCKS, partial(compare_blocks, count, SEED)


BEYOND = "a quotient beyond its precision is open, whatever follows"
INFINITE = "an infinity by a scale that the precision makes infinite"
WIDE_ZERO = "WebNN's wide zero points are open where floats round one"
WHOLE = "a quotient that is whole in its precision has no fraction to keep"
SIGN = "no page says that a scale may be negative"
NO_ZERO = "no page says that a scale may be 0"
NO_END = "no page says what is beyond the end"
ROUNDED = "a scale that is rounded to 0 or infinity is open"
EITHER_ZERO = "either sign of a zero is allowed, even of +0"
NEIGHBORS = "neighbors are those of the exact product or quotient"
OWN_ENDS = "WebNN's formula is taken for all types, with the ends of each"
PREFERRED = "what the model prefers is all that the document recommends"
KNOWN = {
    "open, though the page decides": {
        "negative scale": SIGN,
        "scale zero": NO_ZERO,
        "beyond the precision": BEYOND,
        "zero product": ROUNDED,
        "product, an operand has to be rounded": ROUNDED,
        "range / 255": "a difference beyond float32 is open",
        "formula and emulation agree": WIDE_ZERO,
        "formula and emulation differ": WIDE_ZERO,
    },
    "open, though implied": {
        "negative scale": SIGN,
        "scale zero": NO_ZERO,
        "float zero point": "no page says in which precision it is added",
        "division in int32": "a precision without fractions leaves nothing to round",
        "division in E8M0": "a precision without zero and sign cannot be meant",
        "beyond the precision": BEYOND,
        "infinity, table 1 or NaN": INFINITE,
        "above the end of float4 or NaN is 6": INFINITE,
        "formula by analogy and emulation agree": WIDE_ZERO,
        "formula by analogy and emulation differ": WIDE_ZERO,
        "infinity: the end, by the formula": WIDE_ZERO,
        "uint8": BEYOND,
        "product above the largest: silent": NO_END,
        "scale above the largest: silent": NO_END,
        "scale below the smallest: silent": NO_END,
    },
    "looser": {"zero": EITHER_ZERO, "zero product": EITHER_ZERO, "in range or zero": EITHER_ZERO},
    "requires the preferred": {
        "product, an operand has to be rounded": NEIGHBORS,
        "product": NEIGHBORS,
        "zero product": EITHER_ZERO,
        "range / 255": NEIGHBORS,
        "zero point": "the quotient of the zero point is exact or the nearest",
        "formula by analogy and emulation differ": OWN_ENDS,
        "formula and emulation agree": "a neighbor beyond the end, an infinity, is not allowed",
        "to float": "a tie goes to the even value or away from zero",
    },
    "only recommended": {
        "to float": "a negative number beside the least shares a class with those that round to 0",
    },
    "required, though implied": {
        "division in int32": "a quotient that the precision has is required",
        "division in E8M0": "a quotient that the precision has is required",
        "in range": WHOLE,
        "above the end, table 1": WHOLE,
        "zero": WHOLE,
        "formula by analogy and emulation agree": OWN_ENDS,
        "formula by analogy and emulation differ": OWN_ENDS,
    },
    "(recommends the preferred)": {
        "NaN": PREFERRED,
        "division in int32": PREFERRED,
        "formula by analogy and emulation differ": OWN_ENDS,
        "inexact product": PREFERRED,
        "infinity: the end, by the formula": PREFERRED,
        "to float": PREFERRED,
        "zero": EITHER_ZERO,
        "zero element": EITHER_ZERO,
        "zero product": EITHER_ZERO,
        "in range or zero": EITHER_ZERO,
        "zero or in range": EITHER_ZERO,
    },
}
"""Relations, and in them what the model says of the input, each with the reason."""
HARMLESS = "(recommends otherwise)"
"""The relation in which both allow the same, and recommend not quite the same."""


def is_known(kind: str) -> bool:
    found, _, why = kind.partition(" | ")
    return found == HARMLESS or why in KNOWN.get(found, {})


def main(count: int) -> None:
    """Compare ``count`` elements of each operation, and print the differences by kind."""
    for name, comparison in comparisons(count):
        began, kinds = perf_counter(), Kinds()
        comparison(kinds)
        show(name, kinds, perf_counter() - began)


if __name__ == "__main__":
    main(int(sys.argv[1]))
