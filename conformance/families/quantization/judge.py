"""Judges quantization: whether codes, and the values of codes, are those that a formula gives.

Each element is judged by itself, by its own scale and zero point, whether there is one scale for a
tensor, one along an axis, or one for each block. Where an answer is wrong, the mechanisms of
``wrongs.py`` are tried on all answers of the case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from conformance.families.named_tensors import AboutTensors, ask_listed
from conformance.families.quantization.dynamic import judge_dynamic
from conformance.families.quantization.grading import (
    EXACT_SAMPLE,
    Elements,
    Graded,
    allowed,
    allowed_words,
    element_words,
    expect_by_kernels,
    expect_exactly,
    grade,
    rule_of,
    simplest_element,
)
from conformance.families.quantization.inputs import (
    DRAWS,
    Given,
    drawn_requests,
    layouts,
    telling_requests,
    tensors_of_element,
)
from conformance.families.quantization.ruling import formula
from conformance.families.quantization.wrongs import IN_OTHER_TENSORS, followed_ways
from conformance.judging.answer_digests import AnswerDigester, spread
from conformance.judging.asking import Ask, Subject, ask
from conformance.judging.verdicts import answers_none, problem_of, script_of, without_answer
from oracles.backend.replies import (
    Answered,
    Declined,
    NoAnswer,
    Raised,
    Reply,
    class_name,
)
from oracles.protocol import Bits, Mask
from reports.counterexample.drawing import datum_with_value
from reports.judgement import AnswerExample, Judgement
from reports.problems import Note, Problem, Unoffered, WrongShape, WrongTensor
from specs.cases import Case
from specs.loader import document_named
from specs.model.vocabulary import PRECISION
from specs.operations import operation_of

RESULT = "y"
LEVELS = ("required", "recommended")
MOST_SHOWN = 3
"""The most drawn tensors that a problem names."""
MOST_LOOKED_AT = 1 << 12
"""The most elements of a request among which free ones are looked for."""
MOST_TRIED = 1 << 11
"""About how many elements of a request mechanisms are tried on."""
ASKED_ALONE = 16
"""About how many wrong elements of drawn tensors are asked again, each alone."""


@dataclass(frozen=True, eq=False)
class _Answers:
    """The answers to those elements of one request that are judged, and their grades.

    ``places`` are the indices of these elements in the request.
    """

    given: Given
    places: NDArray[np.intp]
    elements: Elements
    answers: Bits
    graded: Graded


def judge_quantization(subject: Subject, case: Case) -> Ask[Judgement]:
    """Judge a case by all its requests; those that the backend declines are left out.

    If it declines all, the verdict is ``unsupported``. An error, a crash or a malformed answer
    decides the verdict only if no other answer is wrong. Of a dynamic quantization, see
    ``judge_dynamic``.
    """
    digester = AnswerDigester()
    judge = judge_dynamic if operation_of(case) == "dynamic-quantize" else _judge_static
    return digester.added_to((yield from judge(subject, case, digester)))


def _judge_static(subject: Subject, case: Case, digester: AnswerDigester) -> Ask[Judgement]:
    """Judge a case whose scales are given; digest all answers but those to elements alone."""
    # The reference is judged by few elements, so that none of its requests need be large.
    given = telling_requests(case, has_whole=not subject.expectations.independent)
    replies = yield from ask_listed(case, [each.tensors for each in given])
    settings = subject.settings
    if not (subject.few_shapes or answers_none(replies)):
        more = tuple(drawn_requests(case, settings.seed, settings.draws(case, DRAWS)))
        replies = [*replies, *(yield [AboutTensors(case, each.tensors) for each in more])]
        given += more
    answered: list[_Answers] = []
    declined: list[str] = []
    lost: list[WrongShape] = []
    failed: list[tuple[NoAnswer, Given]] = []
    for each, reply in zip(given, replies, strict=True):
        x = each.tensors["x"]
        digester.add(each.tensors, reply)
        match reply:
            case Answered(results) if results[RESULT].shape != x.shape:
                lost.append(_wrong_shape(case, x, results[RESULT]))
            case Answered(results):
                answered.append(_graded(subject, case, each, results[RESULT], digester))
            case Declined(text):
                declined.append(text)
            case missing:
                failed.append((missing, each))
    if not (answered or lost or failed):
        return Judgement(case.id, subject.name, "unsupported", (Unoffered(declined[0]),))
    rows = [each for each in answered if not each.given.where]
    drawn = [each for each in answered if each.given.where]
    usual = subject.settings.shows_usual_scales
    wrong = [*_problems(case, rows, usual)]
    masks = _wrong_in_drawn_alone(rows, drawn)
    if any(mask.any() for of_level in masks.values() for mask in of_level):
        if not (yield from _are_wrong_alone(case, drawn, masks)):
            wrong += _problems_of_drawn(case, drawn, masks, "only in", (IN_OTHER_TENSORS,), usual)
        elif not wrong:
            wrong += _problems_of_drawn(case, drawn, masks, "met in", _followed(case, drawn), usual)
    if failed and not (wrong or lost):
        return (yield from _failed(subject, case, *failed[0]))
    reproduction = (yield from _script(subject, case, answered)) if wrong else ""
    # The script shows the first, which breaks what is required if anything does.
    shown = [replace(each, script=reproduction) for each in wrong[:1]]
    notes = [Note(f"{len(declined)} of {len(given)} not asked: {text}") for text in declined[:1]]
    unanswered = [problem_of(each) for each, _ in failed[:1]]
    problems: list[Problem] = [*shown, *wrong[1:], *lost[:1], *unanswered, *notes]
    levels = {each.level for each in wrong} | {each.level for each in lost}
    is_open = bool(answered) and all(each.graded.is_open.all() for each in answered)
    return Judgement(
        case.id,
        subject.name,
        subject.graded(case, levels, is_open),
        tuple(problems),
        inputs=sum(each.answers.size for each in answered),
        open_inputs=sum(int(np.count_nonzero(each.graded.is_open)) for each in answered),
        reproduction=reproduction,
    )


def _failed(subject: Subject, case: Case, missing: NoAnswer, given: Given) -> Ask[Judgement]:
    """Return the judgement on a case whose first request without an answer is ``given``.

    If that raised an error, a script shows it on the simplest number that is asked.
    """
    x = given.tensors["x"]
    found = yield from without_answer(subject, case, missing, x.size)
    if not isinstance(missing, Raised):
        return found
    elements = _in_a_row(given)
    at = simplest_element(formula(case), elements, np.ones(x.size, bool), prefers_usual=True)
    [element] = elements.at(np.array([at]))
    one = AboutTensors(case, tensors_of_element(case, *element))
    alone = missing if x.size == 1 else (yield from ask(one))
    if isinstance(alone, Raised) and class_name(alone.error) == class_name(missing.error):
        return replace(found, reproduction=(yield from script_of(subject, one)))
    return found


def _wrong_shape(case: Case, x: Bits, answer: Bits) -> WrongShape:
    tensor_rules = document_named(case.document).entry.tensors
    [(name, entry)] = tensor_rules.items()
    return WrongShape(name, entry.clause, entry.level, x.shape, answer.shape)


@lru_cache(256)
def _in_a_row(given: Given) -> Elements:
    """Return a request's elements in a row: the same object each time, which keys other caches."""
    zero = None if given.zeros is None else given.zeros.reshape(-1)
    return Elements(given.tensors["x"].reshape(-1), given.scales.reshape(-1), zero)


def _graded(
    subject: Subject, case: Case, given: Given, answer: Bits, digester: AnswerDigester
) -> _Answers:
    """Grade the answer to a request, and show the digester some of the elements that are free."""
    rules, elements = formula(case), _in_a_row(given)
    places = np.arange(elements.x.size)
    if subject.expectations.independent:
        places = np.unique(np.linspace(0, places.size - 1, EXACT_SAMPLE).astype(np.intp))
        elements = elements.at(places)
        expected = expect_exactly(rules, elements)
    elif given.drawn is not None:
        expected = expect_by_kernels(rules, given.drawn.elements).at(given.drawn.picks)
    else:
        expected = expect_by_kernels(rules, elements)
    answers = answer.reshape(-1)[places]
    if not digester.has_all_examples:
        looked_at = np.arange(0, answers.size, 1 + answers.size // MOST_LOOKED_AT)
        some = looked_at[spread(expected.at(looked_at).is_free)]
        digester.show(
            AnswerExample(element_words(rules, *element), datum_with_value(rules.target, code))
            for element, code in zip(elements.at(some), answers[some].tolist(), strict=True)
        )
    return _Answers(given, places, elements, answers, grade(rules.target, expected, answers))


def _problems(case: Case, rows: Sequence[_Answers], usual: bool) -> Iterator[WrongTensor]:
    """Yield a problem for each level that answers to listed requests break, required first.

    Each shows the simplest wrong element of the first request that has one at the level; if
    ``usual``, one with an ordinary scale first.
    """
    masks = {level: [_mask(each, level) for each in rows] for level in LEVELS}
    if any(mask.any() for of_level in masks.values() for mask in of_level):
        followed = _followed(case, rows)
        yield from _by_level(case, rows, masks, followed, lambda _: "", usual)


def _problems_of_drawn(
    case: Case,
    drawn: Sequence[_Answers],
    masks: Mapping[str, list[Mask]],
    met: str,
    followed: tuple[str, ...],
    usual: bool,
) -> Iterator[WrongTensor]:
    """Yield a problem for each level of ``masks``, which mark what is wrong in drawn tensors.

    ``met`` are the words before the tensors, and ``followed`` the mechanisms.
    """

    def where(of_level: list[Mask]) -> str:
        shown = [each.given.where for each, mask in zip(drawn, of_level, strict=True) if mask.any()]
        return f"{met} tensors of {' and of '.join(shown[:MOST_SHOWN])}"

    yield from _by_level(case, drawn, masks, followed, where, usual)


def _wrong_in_drawn_alone(
    rows: Sequence[_Answers], drawn: Sequence[_Answers]
) -> dict[str, list[Mask]]:
    """Mark by level the wrong elements of drawn tensors.

    Left out are elements that get the same wrong answer in ``rows``, the listed requests.
    """
    known = {one for each in rows for one in _answered_elements(each, each.graded.is_wrong)}
    masks: dict[str, list[Mask]] = {}
    for level in LEVELS:
        masks[level] = [_mask(each, level).copy() for each in drawn]
        for each, mask in zip(drawn, masks[level], strict=True):
            at = np.flatnonzero(mask)
            mask[at] = [one not in known for one in _answered_elements(each, mask)]
    return masks


def _are_wrong_alone(
    case: Case, drawn: Sequence[_Answers], masks: Mapping[str, list[Mask]]
) -> Ask[bool]:
    """Ask some of the elements again that are wrong in drawn tensors, each in a tensor of its own.

    Return whether all get the same wrong answers. Then the tensors are not at fault: they hold
    elements that no listed request has.
    """
    wrong = [
        (element, int(each.answers[at]))
        for of_level in masks.values()
        for each, mask in zip(drawn, of_level, strict=True)
        for at in _spread(np.flatnonzero(mask))
        for element in each.elements.at(np.array([at]))
    ]
    some = [wrong[at] for at in _spread(np.arange(len(wrong)))]
    replies = yield [AboutTensors(case, tensors_of_element(case, *each)) for each, _ in some]
    return all(
        _is_answer(*each) for each in zip(replies, (answer for _, answer in some), strict=True)
    )


def _is_answer(reply: Reply, answer: int) -> bool:
    """Whether the reply to a request of one element is exactly ``answer``."""
    return isinstance(reply, Answered) and reply.value[RESULT].reshape(-1).tolist() == [answer]


def _spread(places: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return about ``ASKED_ALONE`` of some places, or all if there are fewer, evenly spread."""
    return places[:: max(1, places.size // ASKED_ALONE)]


def _answered_elements(each: _Answers, mask: Mask) -> Iterator[tuple[int, ...]]:
    """Yield x, scale, zero point (0 without one) and answer of each element that a mask marks."""
    elements = each.elements.at(np.flatnonzero(mask))
    zeros = np.zeros(elements.x.size, int) if elements.zero is None else elements.zero
    columns = (elements.x, elements.scale, zeros, each.answers[mask])
    return zip(*(column.tolist() for column in columns), strict=True)


def _by_level(
    case: Case,
    answered: Sequence[_Answers],
    masks: Mapping[str, list[Mask]],
    followed: tuple[str, ...],
    where: Callable[[list[Mask]], str],
    usual: bool,
) -> Iterator[WrongTensor]:
    """Yield a problem for each level of ``masks`` that marks elements; ``where`` describes them.

    ``usual`` is that of ``_problems``.
    """
    rules = formula(case)
    for level, of_level in masks.items():
        at_request = next((at for at, mask in enumerate(of_level) if mask.any()), None)
        if at_request is None:
            continue
        each = answered[at_request]
        at = simplest_element(rules, each.elements, of_level[at_request], prefers_usual=usual)
        [element] = each.elements.at(np.array([at]))
        found = allowed(rules, *element)
        rule, clause = rule_of(rules, found)
        yield WrongTensor(
            rule,
            clause,
            level,
            RESULT,
            element_words(rules, *element),
            datum_with_value(rules.target, int(each.answers[at])),
            allowed_words(rules.target, found, at_required=level == "required"),
            sum(int(np.count_nonzero(mask)) for mask in of_level),
            sum(mask.size for mask in of_level),
            followed,
            where=where(of_level),
        )


def _mask(each: _Answers, level: str) -> Mask:
    return each.graded.is_required if level == "required" else each.graded.is_recommended


def _followed(case: Case, answered: Sequence[_Answers]) -> tuple[str, ...]:
    """Return the names of the mechanisms that give all of a sample's answers, wrong and right."""
    rules = formula(case)
    picked = [_telling(each.graded) for each in answered]
    by_layout: dict[str, list[Elements]] = {}
    for each, places in zip(answered, picked, strict=True):
        for name, elements in layouts(case, each.given).items():
            by_layout.setdefault(name, []).append(elements.at(each.places[places]))
    count = len(answered)
    joined = {name: _join(parts) for name, parts in by_layout.items() if len(parts) == count}
    answers = [each.answers[places] for each, places in zip(answered, picked, strict=True)]
    wrong = [each.graded.is_wrong[places] for each, places in zip(answered, picked, strict=True)]
    return followed_ways(
        rules,
        joined[""].x,
        {name: (each.scale, each.zero) for name, each in joined.items()},
        np.concatenate(answers),
        np.concatenate(wrong),
        names_precision=PRECISION in case.mode,
    )


def _telling(graded: Graded) -> NDArray[np.intp]:
    wrong = np.flatnonzero(graded.is_wrong)
    right = np.flatnonzero(~graded.is_wrong & ~graded.is_open)
    few = [part[:: max(1, part.size // (MOST_TRIED // 2))] for part in (wrong, right)]
    return np.sort(np.concatenate(few))


def _join(parts: Sequence[Elements]) -> Elements:
    """Join the elements of several requests; a zero point that is not given is 0."""
    storage = next((each.zero.dtype for each in parts if each.zero is not None), None)
    zeros = [np.zeros(each.x.shape, storage) if each.zero is None else each.zero for each in parts]
    return Elements(
        np.concatenate([each.x for each in parts]),
        np.concatenate([each.scale for each in parts]),
        None if storage is None else np.concatenate(zeros),
    )


def _script(subject: Subject, case: Case, answered: Sequence[_Answers]) -> Ask[str]:
    """Return the script for the simplest wrong element alone, or for its whole request.

    The latter is shown if the element alone does not get the same answer.
    """
    rules = formula(case)
    level = "required" if any(each.graded.is_required.any() for each in answered) else "recommended"
    each = next(each for each in answered if _mask(each, level).any())
    at = simplest_element(
        rules,
        each.elements,
        _mask(each, level),
        prefers_usual=subject.settings.shows_usual_scales,
    )
    [element] = each.elements.at(np.array([at]))
    one = tensors_of_element(case, *element)
    if _is_answer((yield from ask(AboutTensors(case, one))), each.answers[at]):
        return (yield from script_of(subject, AboutTensors(case, one)))
    return (yield from script_of(subject, AboutTensors(case, each.given.tensors)))
