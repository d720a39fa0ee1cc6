"""The verdict on a recorded quantization, by the same comparison as in a run.

Each element of a result is judged by itself: codes by their scale and zero point. What a backend
computes itself, such as the scale of a block, is judged first, and then the codes by the scale that
it returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from conformance.exchange.named_tensors import formats_given, formats_returned
from oracles.protocol import Bits
from oracles.reference.block_kernels import QUESTIONS, Blocks, allowed_codes, scales
from oracles.reference.exact_quantization import AllowedResult, dynamic_scale, dynamic_zero_point
from oracles.reference.quantization_answers import spread
from oracles.reference.quantization_kernels import ANY_NAN, NO_CODE, ExpectedCodes
from reports.grading.allowed_answers import is_nan
from reports.grading.divergences import index_of_simplest
from reports.grading.graded_blocks import SCALE, GradedBlocks, X, Y
from reports.grading.graded_quantization import (
    Elements,
    Mask,
    allowed,
    as_code,
    code_word,
    expect_by_kernels,
    grade,
    rule_of,
)
from specs.block_ruling import BlockRuling, block_ruling
from specs.cases import Case
from specs.formats import Format
from specs.loader import document_named
from specs.operations import is_of_blocks, operation_of
from specs.quantization_ruling import Formula, formula

OPEN = "anything"


class _Rule(NamedTuple):
    rule: str
    level: str
    clause: str


@dataclass(frozen=True, eq=False)
class _Result:
    """A result beside what is allowed for each of its elements; no answer if an error came.

    ``rule`` returns the rule that takes the element at an index, and ``given`` the element's
    inputs.
    """

    name: str
    form: Format
    shape: tuple[int, ...]
    answer: Bits | None
    expected: ExpectedCodes
    inputs: tuple[Format, Bits]
    rule: Callable[[int], _Rule]
    given: Callable[[int], dict[str, str]]

    def wrong(self, level: str) -> Mask:
        """Which elements break a rule of a level; an error breaks it wherever an answer is due."""
        expected = self.expected
        if self.answer is None:
            of_level = expected.is_recommended == (level == "recommended")
            return np.asarray(~expected.is_open & of_level)
        graded = grade(self.form, expected, self.answer.reshape(-1))
        return graded.is_required if level == "required" else graded.is_recommended

    def allowed(self, at: int, *, at_required: bool = False) -> list[str]:
        """The allowed answers for one element, as words or patterns."""
        expected = self.expected
        if expected.is_open[at]:
            return [OPEN]
        columns = expected.strong + (expected.weaker if at_required else [])
        codes = dict.fromkeys(int(each[at]) for each in columns)
        return [code_word(self.form, code) for code in codes if code != NO_CODE]


def judge_tensors(
    case: Case, tensors: Mapping[str, Bits], answer: Mapping[str, Bits] | None
) -> dict[str, Any]:
    """Verdict, rule, what is allowed, and the simplest wrong element; None stands for an error."""
    if answer is not None and answer[Y].shape != tensors[X].shape:
        return _wrong_shape(case, tensors[X].shape)
    results = [*_results(case, tensors, answer)]
    found = {"verdict": "conforms", **_rule_of_first(results)._asdict()}
    if all(each.expected.is_open.all() for each in results):
        found["verdict"] = "open"
    element: dict[str, Any] = {}
    for level, verdict in (("required", "violates"), ("recommended", "deviates")):
        wrong = next((each for each in results if each.wrong(level).any()), None)
        if wrong is not None:
            at = index_of_simplest(*wrong.inputs, wrong.wrong(level))
            found = {"verdict": verdict, **wrong.rule(at)._asdict(), "level": level}
            element = {"element": _element(wrong, at, at_required=level == "required")}
            break
    count = sum(
        int(np.count_nonzero(each.wrong("required") | each.wrong("recommended")))
        for each in results
    )
    allowed_tensors = {
        each.name: {
            "shape": list(each.shape),
            "bits": [_one_or_several(each.allowed(at)) for at in range(each.expected.is_open.size)],
        }
        for each in results
    }
    return {**found, "allowed": allowed_tensors, "wrong": count, **element}


def _wrong_shape(case: Case, shape: tuple[int, ...]) -> dict[str, Any]:
    [(name, entry)] = document_named(case.document).entry.tensors.items()
    return {
        "verdict": "violates" if entry.level == "required" else "deviates",
        **_Rule(name, entry.level, entry.clause)._asdict(),
        "allowed": {Y: {"shape": list(shape)}},
    }


def _rule_of_first(results: list[_Result]) -> _Rule:
    """The rule of the first element about which the document says something, if there is one."""
    for each in results:
        settled = np.flatnonzero(~each.expected.is_open)
        if settled.size:
            return each.rule(int(settled[0]))
    [first, *_] = results
    return first.rule(0) if first.expected.is_open.size else _Rule("", "", "")


def _element(result: _Result, at: int, *, at_required: bool) -> dict[str, Any]:
    answer = result.answer
    index = [int(each) for each in np.unravel_index(at, result.shape)] if result.shape else []
    output = None if answer is None else result.form.hexadecimal(int(answer.reshape(-1)[at]))
    return {
        "result": result.name,
        "index": index,
        **result.given(at),
        **({} if output is None else {"output": output}),
        "allowed": result.allowed(at, at_required=at_required),
    }


def _one_or_several(words: list[str]) -> list[str] | str:
    return words[0] if len(words) == 1 else words


def _results(
    case: Case, tensors: Mapping[str, Bits], answer: Mapping[str, Bits] | None
) -> Iterator[_Result]:
    """Yield the results of a case; those by which others are judged come first."""
    if is_of_blocks(case):
        yield from _of_blocks(case, tensors, answer)
    elif operation_of(case) == "dynamic-quantize":
        yield from _dynamic(case, tensors[X], answer)
    else:
        rules = formula(case)
        x = tensors[X]
        scale = spread(case, x.shape, tensors[SCALE]).reshape(-1)
        zero = spread(case, x.shape, tensors["zero"]).reshape(-1) if "zero" in tensors else None
        yield _codes(case, rules, x.shape, Elements(x.reshape(-1), scale, zero), answer)


def _codes(
    case: Case,
    rules: Formula,
    shape: tuple[int, ...],
    elements: Elements,
    answer: Mapping[str, Bits] | None,
) -> _Result:
    formats = formats_given(case) | formats_returned(case)

    def element(at: int) -> tuple[int, int, int | None]:
        [found] = elements.at(np.array([at]))
        return found

    def rule(at: int) -> _Rule:
        found = allowed(rules, *element(at))
        name, clause = rule_of(rules, found)
        return _Rule(name, "unspecified" if found.is_open else found.level, clause)

    def given(at: int) -> dict[str, str]:
        named = zip((X, SCALE, "zero"), element(at), strict=True)
        return {name: formats[name].hexadecimal(code) for name, code in named if code is not None}

    expected = expect_by_kernels(rules, elements)
    codes = None if answer is None else answer[Y]
    inputs = rules.source, elements.x
    return _Result(Y, formats[Y], shape, codes, expected, inputs, rule, given)


def _dynamic(case: Case, x: Bits, answer: Mapping[str, Bits] | None) -> Iterator[_Result]:
    """Judge the scale by the input, the zero point by the returned scale, the codes by both."""
    rules, xs = formula(case), x.reshape(-1).tolist()
    due = dynamic_scale(rules, xs)
    yield _single(rules, SCALE, rules.scale, due, answer)
    if answer is None or due.is_open:
        return
    scale, zero = (int(answer[name].reshape(-1)[0]) for name in (SCALE, "zero"))
    if not 0 < scale <= rules.scale.max_code:
        return
    yield _single(rules, "zero", rules.target, dynamic_zero_point(rules, xs, scale), answer)
    scales_of, zeros = (
        np.full(x.size, code, form.storage)
        for code, form in ((scale, rules.scale), (zero, rules.target))
    )
    yield _codes(case, rules, x.shape, Elements(x.reshape(-1), scales_of, zeros), answer)


def _single(
    rules: Formula, name: str, form: Format, due: AllowedResult, answer: Mapping[str, Bits] | None
) -> _Result:
    outcome = rules.outcome(*due.situations[-1])
    rule = _Rule(outcome.rule, "unspecified" if due.is_open else due.level, outcome.clause)
    expected = ExpectedCodes(
        [np.array([as_code(each)], np.int64) for each in due.codes],
        [np.array([as_code(each)], np.int64) for each in due.weaker],
        np.array([due.is_open]),
        np.array([due.level == "recommended"]),
    )
    answers = None if answer is None else answer[name]
    inputs = form, np.zeros(1, form.storage)
    return _Result(name, form, (), answers, expected, inputs, lambda _: rule, lambda _: {})


def _of_blocks(
    case: Case, tensors: Mapping[str, Bits], answer: Mapping[str, Bits] | None
) -> Iterator[_Result]:
    """Judge the scale of each block, and codes by the returned scales; or the decoded numbers."""
    ruling = block_ruling(case)
    graded = GradedBlocks(ruling, tensors, answer or {})
    source, size = formats_given(case)[X], ruling.size
    if not ruling.is_decoding:
        largest = graded.largest_patterns.reshape(-1)
        expected = scales(ruling, graded.x, graded.global_scale)
        yield _block_result(
            (SCALE, ruling.scale),
            ruling,
            (expected, [expected.codes]),
            answer,
            (source, largest),
            lambda at: {"largest": source.hexadecimal(int(largest[at]))},
        )
        if answer is None:
            return
    expected = graded.expected[Y]
    every = [expected.codes] if ruling.is_decoding else allowed_codes(ruling, expected)
    x, scale = graded.x.reshape(-1), graded.unblocked(np.repeat(graded.scale, size, axis=-1))
    yield _block_result(
        (Y, ruling.number if ruling.is_decoding else ruling.element),
        ruling,
        (expected, every),
        answer,
        (source, x),
        lambda at: {
            X: source.hexadecimal(int(x[at])),
            SCALE: ruling.scale.hexadecimal(int(scale.reshape(-1)[at])),
        },
    )


def _block_result(
    named: tuple[str, Format],
    ruling: BlockRuling,
    due: tuple[Blocks, Sequence[Bits]],
    answer: Mapping[str, Bits] | None,
    inputs: tuple[Format, Bits],
    given: Callable[[int], dict[str, str]],
) -> _Result:
    name, form = named
    expected, every = due
    asked = expected.asked.reshape(-1)

    def rule(at: int) -> _Rule:
        found = ruling.answers[QUESTIONS[asked[at]]]
        return _Rule(found.rule, found.level, found.clause)

    levels = np.array([ruling.levels.get(each, "") for each in QUESTIONS])
    # If a block decodes to a NaN, any NaN is allowed.
    strong = [
        np.where(is_nan(form, codes) & ruling.is_decoding, ANY_NAN, codes.astype(np.int64))
        for codes in every
    ]
    return _Result(
        name,
        form,
        expected.codes.shape,
        None if answer is None else answer[name],
        ExpectedCodes(
            [codes.reshape(-1) for codes in strong],
            [],
            expected.is_open.reshape(-1),
            levels[asked] == "recommended",
        ),
        inputs,
        rule,
        given,
    )
