"""Dynamic quantization: the scale by the input, the zero point by the scale, the codes by both.

Each result is judged by the results before it that the backend gave itself. So one that is wrong
does not make those after it wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from random import Random

import numpy as np

from conformance.families.named_tensors import AboutTensors
from conformance.families.quantization.exact import AllowedResult, dynamic_scale, dynamic_zero_point
from conformance.families.quantization.grading import (
    EXACT_SAMPLE,
    Elements,
    allowed,
    allowed_words,
    element_words,
    expect_by_kernels,
    expect_exactly,
    grade,
    rule_of,
)
from conformance.families.quantization.ranges import RANGES
from conformance.families.quantization.ruling import Formula, formula
from conformance.families.quantization.wrongs import followed_ways
from conformance.judging.answer_digests import AnswerDigester
from conformance.judging.asking import Ask, Subject
from conformance.judging.space import drawn_memory, drawn_shape
from conformance.judging.verdicts import answers_none, problem_of, script_of, without_answer
from oracles.backend.replies import Answered, NoAnswer
from oracles.protocol import Bits
from reports.counterexample.drawing import datum_with_value
from reports.grading.divergences import index_of_simplest
from reports.judgement import AnswerExample, Judgement
from reports.problems import Problem, WrongForm, WrongTensor
from specs.cases import Case
from specs.formats import Format

SEED = 46
ROWS = 24
"""The number of rows of random values, each of another range."""
UNEVEN = (5, 9, 17, 31, 33, 65, 127, 1001)
"""Lengths that no vector divides. The largest or smallest value at the end of such a row is that of
its rest, which kernels reduce apart."""
END = 4.0
"""How many times as large as all others the first or last value of a tensor is made."""
AT_END = 0.5
"""The share of drawn tensors in which it is."""
DRAWS = 8
"""Drawn tensors of a case, at the tier quick."""
FIXED: tuple[tuple[float, ...], ...] = (
    (0.0, 2.0, -3.0, -2.5, 1.34, 0.5), (-1.0, -2.1, -1.3, -2.5, -3.34, -4.0),
    (1.0, 2.1, 1.3, 2.5, 3.34, 4.0), (1.0,), (-1.0,), (0.0, 255.0, 0.5, 1.5, 2.5, 254.5),
    (-127.5, 127.5, 0.5, 1.5, -0.5), (1e-38, -1e-38, 3e-39), (1e-44, 0.0), (3e38, 1e38, -1e37),
    (0.0, 0.0), (-0.0,), (float("inf"), 1.0), (float("nan"), 1.0), (3e38, -3e38),
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Results:
    """The patterns of an input row ``x``, and a backend's results: row ``y``, scale, zero point."""

    x: Bits
    y: Bits
    scale: int
    zero: int


def judge_dynamic(subject: Subject, case: Case, digester: AnswerDigester) -> Ask[Judgement]:
    """Judge a dynamic quantization by several tensors; digest all answers.

    Problems of several tensors are one, which shows the first, if result, rule and level are the
    same and one mechanism, or none, explains them. A missing answer, a refusal too, decides only if
    nothing is wrong in the tensors that were answered; an answer of a wrong form decides alone. A
    tensor whose scale is open is counted and not judged.
    """
    rules, settings = formula(case), subject.settings
    given = list(dynamic_inputs())
    requests = [AboutTensors(case, {"x": x}) for x in given]
    replies = yield requests
    if not (subject.few_shapes or answers_none(replies)):
        chance = Random(f"{case.id}/{settings.seed}")
        drawn = [_drawn_input(chance) for _ in range(settings.draws(case, DRAWS))]
        more = [AboutTensors(case, {"x": x}) for x in drawn]
        replies = [*replies, *(yield more)]
        given, requests = given + drawn, requests + more
    judged = open_inputs = 0
    wrong: list[WrongTensor] = []
    shown: AboutTensors | None = None
    missing: list[tuple[NoAnswer, int]] = []
    for x, request, reply in zip(given, requests, replies, strict=True):
        digester.add(request.tensors, reply)
        if not isinstance(reply, Answered):
            missing.append((reply, x.size))
            continue
        y, scale, zero = (reply.value[name] for name in ("y", "scale", "zero"))
        if y.shape != x.shape or scale.size != 1 or zero.size != 1:
            form = WrongForm(
                "the scale and the zero point are not one value each, or y changed shape"
            )
            return Judgement(case.id, subject.name, subject.failed(case), (form,))
        found = _Results(
            x.reshape(-1), y.reshape(-1), int(scale.reshape(-1)[0]), int(zero.reshape(-1)[0])
        )
        judged += x.size
        if dynamic_scale(rules, _ends(found.x)).is_open:
            open_inputs += x.size
            scale_words = f"scale {datum_with_value(rules.scale, found.scale)}"
            digester.show([AnswerExample(_tensor_words(found.x), scale_words)])
            continue
        for each in _problems(rules, found, subject.expectations.independent):
            shown = shown or request
            _add(wrong, each)
    if missing and shown is None:
        return (yield from without_answer(subject, case, *missing[0]))
    verdict = subject.graded(case, {each.level for each in wrong}, is_open=False)
    if shown is None:
        return Judgement(case.id, subject.name, verdict, (), judged, open_inputs)
    script = yield from script_of(subject, shown)
    problem, *others = wrong
    problems: list[Problem] = [replace(problem, script=script), *others]
    problems += [problem_of(each) for each, _ in missing[:1]]
    return Judgement(
        case.id, subject.name, verdict, tuple(problems), judged, open_inputs, reproduction=script
    )


def _add(problems: list[WrongTensor], other: WrongTensor) -> None:
    """Merge ``other`` into the problem of its result, rule, level and mechanism, or append it."""
    for at, each in enumerate(problems):
        common = tuple(name for name in each.followed if name in other.followed)
        is_same = (each.tensor, each.rule, each.level) == (other.tensor, other.rule, other.level)
        if is_same and (common or each.followed == other.followed):
            wrong, inputs = each.wrong + other.wrong, each.inputs + other.inputs
            problems[at] = replace(each, wrong=wrong, inputs=inputs, followed=common)
            return
    problems.append(other)


def dynamic_inputs() -> Iterator[Bits]:
    """Yield rows of float32 patterns: fixed ones, and random ones of many magnitudes.

    Of some of these the last value alone decides the range.
    """
    for values in FIXED:
        yield np.array(values, np.float32).view(np.uint32)
    draw = np.random.default_rng(SEED)
    for number in range(ROWS):
        size, magnitude = 1 << (number % 9), 10.0 ** (number - ROWS // 2)
        low = (-1.0, 0.0, -0.25)[number % 3]
        yield (draw.uniform(low, 1.0, size) * magnitude).astype(np.float32).view(np.uint32)
    for size, end in product(UNEVEN, (END, -END)):
        row = draw.uniform(-1.0, 1.0, size).astype(np.float32)
        row[-1] = end
        yield row.view(np.uint32)


def _drawn_input(chance: Random) -> Bits:
    probe = drawn_memory(chance, drawn_shape(chance, may_be_empty=False))
    draw = np.random.default_rng(chance.randrange(1 << 32))
    low, magnitude = chance.choice((-1.0, 0.0, -0.25, -4.0)), 10.0 ** chance.randint(-12, 12)
    values = np.asarray(draw.uniform(low, 1.0, probe.shape)) * magnitude
    if chance.random() < AT_END:
        values.reshape(-1)[chance.choice((0, -1))] = chance.choice((END, -END)) * magnitude
    return probe.laid(probe.repeated(np.asarray(values, np.float32).view(np.uint32)))


def _problems(rules: Formula, found: _Results, independent: bool) -> Iterator[WrongTensor]:
    """Yield a problem for each wrong result of one input tensor: scale, zero point, codes.

    Zero point and codes are judged only if the scale is a positive finite number. The kernels judge
    all codes; if ``independent``, the exact definition judges a sample instead.
    """
    ends, about = _ends(found.x), _tensor_words(found.x)
    due = dynamic_scale(rules, ends)
    scale = _wrong_single(rules, "scale", rules.scale, found.scale, due, about)
    if scale is not None:
        ways = _wrong_ranges(found, lambda ends: found.scale in dynamic_scale(rules, ends).codes)
        yield replace(scale, followed=tuple(ways))
    if not 0 < found.scale <= rules.scale.max_code:
        return
    due = dynamic_zero_point(rules, ends, found.scale)
    by_scale = f"{about}, scale {datum_with_value(rules.scale, found.scale)}"
    zero = _wrong_single(rules, "zero", rules.target, found.zero, due, by_scale)
    if zero is not None:
        ways = _wrong_ranges(
            found,
            lambda ends: found.zero in dynamic_zero_point(rules, ends, found.scale).codes,
        )
        yield replace(zero, followed=tuple(ways))
    yield from _wrong_codes(rules, found, independent)


def _tensor_words(x: Bits) -> str:
    values = x.view(np.float32)
    return f"a tensor of {values.size} from {float(values.min())!r} to {float(values.max())!r}"


def _wrong_ranges(found: _Results, gives: Callable[[list[int]], bool]) -> Iterator[str]:
    """Yield the name of each wrong range whose ends give what was found, of finite values only."""
    if np.isfinite(found.x.view(np.float32)).all():
        for each in RANGES:
            left = each.left(found.x)
            if left.size and gives(_ends(left)):
                yield each.name


def _ends(x: Bits) -> list[int]:
    """Return the patterns of the values that are not finite or, without any, of the extremes."""
    values = x.view(np.float32)
    special = x[~np.isfinite(values)]
    ends = special if special.size else x[[values.argmin(), values.argmax()]]
    return [*map(int, np.unique(ends))]


def _wrong_single(
    rules: Formula, tensor: str, fmt: Format, got: int, due: AllowedResult, about: str
) -> WrongTensor | None:
    if due.is_open or got in due.codes:
        return None
    level = "recommended" if got in due.weaker else due.level
    outcome = rules.outcome(*due.situations[-1])
    words = allowed_words(fmt, due, at_required=level == "required")
    shown = datum_with_value(fmt, got)
    return WrongTensor(outcome.rule, outcome.clause, level, tensor, about, shown, words, 1, 1)


def _wrong_codes(rules: Formula, found: _Results, independent: bool) -> Iterator[WrongTensor]:
    size = found.x.size
    scales = np.full(size, found.scale, rules.scale.storage)
    elements = Elements(found.x, scales, np.full(size, found.zero, rules.target.storage))
    answers = found.y
    if independent:
        places = np.unique(np.linspace(0, size - 1, EXACT_SAMPLE).astype(np.intp))
        elements, answers = elements.at(places), answers[places]
    expected = (expect_exactly if independent else expect_by_kernels)(rules, elements)
    graded = grade(rules.target, expected, answers)
    if not graded.is_wrong.any():
        return
    level = "required" if graded.is_required.any() else "recommended"
    mask = graded.is_required if level == "required" else graded.is_recommended
    at = index_of_simplest(rules.source, elements.x, mask)
    [element] = elements.at(np.array([at]))
    due = allowed(rules, *element)
    settled = np.flatnonzero(~graded.is_open)
    picked = elements.at(settled)
    alike = replace(rules, operation="quantize")
    yield WrongTensor(
        *rule_of(rules, due),
        level,
        "y",
        element_words(rules, *element),
        datum_with_value(rules.target, int(answers[at])),
        allowed_words(rules.target, due, at_required=level == "required"),
        int(np.count_nonzero(mask)),
        size,
        followed_ways(
            alike,
            picked.x,
            {"": (picked.scale, picked.zero)},
            answers[settled],
            graded.is_wrong[settled],
            names_precision=False,
        ),
    )
