"""Dynamic quantization: the scale by the input, the zero point by the scale, the codes by both.

Each result is judged by the results before it that the backend gave itself. So one that is wrong
does not make those after it wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from conformance.families.named_tensors import AboutTensors
from conformance.families.quantization.exact import AllowedResult, dynamic_scale, dynamic_zero_point
from conformance.families.quantization.grading import (
    Elements,
    allowed,
    allowed_words,
    element_words,
    expect_by_kernels,
    expect_exactly,
    grade,
    rule_of,
)
from conformance.families.quantization.ruling import Formula, formula
from conformance.families.quantization.wrongs import followed_ways
from conformance.judging.asking import Ask
from conformance.judging.subject import Subject
from conformance.judging.verdicts import script_of, without_answer
from oracles.backend.replies import Answered
from oracles.protocol import Bits
from reports.counterexample.drawing import datum_with_value
from reports.grading.divergences import index_of_simplest
from reports.judgement import Judgement
from reports.problems import WrongForm, WrongTensor
from specs.cases import Case
from specs.formats import Format

SEED = 46
DRAWN = 24
"""The number of input tensors of random values, each of another range."""
FIXED: tuple[tuple[float, ...], ...] = (
    (0.0, 2.0, -3.0, -2.5, 1.34, 0.5), (-1.0, -2.1, -1.3, -2.5, -3.34, -4.0),
    (1.0, 2.1, 1.3, 2.5, 3.34, 4.0), (1.0,), (-1.0,), (0.0, 255.0, 0.5, 1.5, 2.5, 254.5),
    (-127.5, 127.5, 0.5, 1.5, -0.5), (1e-38, -1e-38, 3e-39), (1e-44, 0.0), (3e38, 1e38, -1e37),
    (0.0, 0.0), (-0.0,), (float("inf"), 1.0), (float("nan"), 1.0), (3e38, -3e38),
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Results:
    """An input tensor ``x`` and the results that a backend returned for it, as patterns."""

    x: Bits
    y: Bits
    scale: int
    zero: int


def judge_dynamic(subject: Subject, case: Case) -> Ask[Judgement]:
    """Judge a dynamic quantization by several tensors, up to the first wrong or missing answer."""
    rules = formula(case)
    given = list(dynamic_inputs())
    requests = [AboutTensors(case, {"x": x}) for x in given]
    replies = yield requests
    judged = open_inputs = 0
    for x, request, reply in zip(given, requests, replies, strict=True):
        if not isinstance(reply, Answered):
            return (yield from without_answer(subject, case, reply, x.size))
        y, scale, zero = (reply.value[name] for name in ("y", "scale", "zero"))
        if y.shape != x.shape or scale.size != 1 or zero.size != 1:
            form = WrongForm(
                "the scale and the zero point are not one value each, or y changed shape"
            )
            return Judgement(case.id, subject.name, subject.failed(case), (form,))
        found = _Results(x, y, int(scale.reshape(-1)[0]), int(zero.reshape(-1)[0]))
        judged += x.size
        if dynamic_scale(rules, x.tolist()).is_open:
            open_inputs += x.size
            continue
        problems = list(_problems(rules, found, subject.expectations.independent))
        if problems:
            verdict = subject.graded(case, {each.level for each in problems}, is_open=False)
            script = yield from script_of(subject, request)
            problems = [replace(each, script=script) for each in problems]
            return Judgement(
                case.id, subject.name, verdict, tuple(problems), judged, reproduction=script
            )
    verdict = subject.graded(case, (), is_open=False)
    return Judgement(case.id, subject.name, verdict, (), judged, open_inputs)


def dynamic_inputs() -> Iterator[Bits]:
    """Yield tensors of float32 patterns: fixed ones, and random ones of many magnitudes."""
    for values in FIXED:
        yield np.array(values, np.float32).view(np.uint32)
    draw = np.random.default_rng(SEED)
    for number in range(DRAWN):
        size, magnitude = 1 << (number % 9), 10.0 ** (number - DRAWN // 2)
        low = (-1.0, 0.0, -0.25)[number % 3]
        yield (draw.uniform(low, 1.0, size) * magnitude).astype(np.float32).view(np.uint32)


def _problems(rules: Formula, found: _Results, independent: bool) -> Iterator[WrongTensor]:
    """Yield a problem for each wrong result of one input tensor: scale, zero point, codes.

    Zero point and codes are judged only if the scale is a positive finite number. If
    ``independent``, the exact definition judges the codes, not the kernels.
    """
    xs = found.x.tolist()
    about = f"a tensor of {len(xs)} from {min(_values(found.x))!r} to {max(_values(found.x))!r}"
    due = dynamic_scale(rules, xs)
    scale = _wrong_single(rules, "scale", rules.scale, found.scale, due, about)
    if scale is not None:
        yield scale
    if not 0 < found.scale <= rules.scale.max_code:
        return
    due = dynamic_zero_point(rules, xs, found.scale)
    by_scale = f"{about}, scale {datum_with_value(rules.scale, found.scale)}"
    zero = _wrong_single(rules, "zero", rules.target, found.zero, due, by_scale)
    if zero is not None:
        yield zero
    yield from _wrong_codes(rules, found, independent)


def _values(x: Bits) -> list[float]:
    return [float(value) for value in x.view(np.float32)]


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
    expected = (expect_exactly if independent else expect_by_kernels)(rules, elements)
    graded = grade(rules.target, expected, found.y)
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
        datum_with_value(rules.target, int(found.y[at])),
        allowed_words(rules.target, due, at_required=level == "required"),
        int(np.count_nonzero(mask)),
        size,
        followed_ways(
            alike,
            picked.x,
            {"": (picked.scale, picked.zero)},
            found.y[settled],
            graded.is_wrong[settled],
            names_precision=False,
        ),
    )
