"""Refusals: on which inputs a backend raises an error, and whether it does so in every tensor.

Where a document wants only some inputs refused, each of these is asked alone.
A refusal in one row says nothing of a tensor without dimensions, which may be answered before the
arguments are read, nor of one in another layout, nor of a second attempt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields

import numpy as np

from conformance.families.cast.baseline import GradedAnswers, RefusedInputs
from conformance.families.cast.shapes import FaultyTensor
from conformance.judging.asking import Ask
from conformance.judging.probe import Probe
from conformance.judging.values import (
    Departed,
    ValueAnswer,
    ask_values,
    value_answer,
    value_request,
)
from conformance.judging.verdicts import range_of
from oracles.backend.replies import Answered, Crashed, Raised, Reply, Unanswered
from oracles.backend.requests import Cast
from oracles.protocol import Bits
from reports.counterexample.drawing import quoted
from reports.grading.allowed_answers import NOT_ALLOWED
from reports.grading.divergences import simplicity
from reports.problem_words import words
from reports.problems import NotRefused
from specs.branches import Ruling
from specs.cases import Case
from specs.editions import tensor_rule
from specs.formats import Format, format_named
from specs.ruling import ruling

AGAIN = (
    Probe(()), Probe((1,)), Probe((1, 1)), Probe((20, 17)), Probe((0,)), Probe((2, 1, 2, 2)),
    Probe((2, 3), order=(1, 0)),
    Probe((5,), steps=(2,)), Probe((5,), steps=(-1,)), Probe((5, 3), steps=(2, 1)),
    Probe((5,), offset=1), Probe((2, 3, 4, 5), order=(0, 2, 3, 1)), Probe((1027,)),
)  # fmt: skip
"""Tensors in which a refused case is repeated, if the document keeps their shapes."""
FEW = 2
"""Elements of the row in which a refused case is repeated first."""


def answered_again(case: Case, inputs: Bits) -> Ask[list[FaultyTensor]]:
    """Request a refused case in other tensors; return the first fault in a list, empty if none.

    A fault is a tensor that is answered. Raises ``Unanswered`` if the backend crashes.
    """
    tensors = dict(other_tensors(case, inputs))
    replies = yield [value_request(case, bits) for bits in tensors.values()]
    return [*answered_tensors(case, tensors, alive(replies))]


def other_tensors(case: Case, inputs: Bits) -> Iterator[tuple[str, Bits]]:
    """Yield a short row of ``inputs``, then other tensors for the case, each after a description.

    Texts come only in the layout of a fresh tensor.
    """
    yield f"shape ({FEW},)", inputs[:FEW]
    for probe in AGAIN:
        can_lie = probe.layout is None or format_named(case.source).kind != "text"
        if can_lie and tensor_rule(case.document, case.version, probe.shape).keeps_shape:
            yield str(probe), probe.tensor(inputs)


def alive(replies: Sequence[Reply]) -> Sequence[Reply]:
    """Return the replies; raise ``Unanswered`` if the process crashed."""
    for reply in replies:
        if isinstance(reply, Crashed):
            raise Unanswered(reply)
    return replies


def answered_tensors(
    case: Case, tensors: Mapping[str, Bits], replies: Sequence[Reply]
) -> Iterator[FaultyTensor]:
    """Yield the fault of the first tensor in which the case is not refused, if there is one.

    ``tensors`` has them by their descriptions, and ``replies`` are in the same order.
    """
    [*_, branch] = ruling(case).branches
    for (where, bits), reply in zip(tensors.items(), replies, strict=True):
        match value_answer(case, bits, reply):
            case Answered():
                but = f"{where} gives {case.target}"
            case Departed(promise):
                but = f"{where} {words(promise)}"
            case _:
                continue
        yield FaultyTensor(NotRefused(branch.rule, branch.clause, branch.level, but), bits)
        return


def ask_alone(case: Case, rules: Ruling, chosen: RefusedInputs) -> Ask[GradedAnswers]:
    """Request inputs one by one; return those that are answered, graded as not allowed.

    Raises ``Unanswered`` if the reply to an input is neither an answer nor an error.
    """
    replies = yield [Cast(case, chosen.inputs[at : at + 1]) for at in range(chosen.inputs.size)]
    answers = np.zeros(chosen.inputs.size, rules.target.storage)
    is_answered = np.zeros(chosen.inputs.size, bool)
    for at, reply in enumerate(replies):
        match reply:
            case Raised():
                continue
            case Answered(answer):
                answers[at], is_answered[at] = answer[0], True
            case missing:
                raise Unanswered(missing)
    return GradedAnswers(
        chosen.inputs[is_answered],
        answers[is_answered],
        np.full(np.count_nonzero(is_answered), NOT_ALLOWED, np.uint8),
        chosen.branch_indices[is_answered],
    )


def both(one: GradedAnswers, other: GradedAnswers) -> GradedAnswers:
    """Join two sets of graded answers, in rising order of the inputs."""
    order = np.argsort(np.concatenate([one.inputs, other.inputs]), kind="stable")
    columns = (
        np.concatenate([getattr(one, each.name), getattr(other, each.name)])[order]
        for each in fields(GradedAnswers)
    )
    return GradedAnswers(*columns)


def ask_and_locate(case: Case, inputs: Bits) -> Ask[ValueAnswer]:
    """Return the backend's answer to a tensor; an error names what ``located`` finds.

    Raises ``Unanswered`` if the backend crashes during this search.
    """
    answer = yield from ask_values(case, inputs)
    if isinstance(answer, Raised):
        return (yield from located(case, inputs, answer.error))
    return answer


def located(case: Case, inputs: Bits, error: Exception) -> Ask[Raised]:
    """Return the error together with one input that raises it, found by bisection.

    Where inputs raise it only together, it is a range of numbers, or a sentence about texts. Of
    texts the simplest is named. Raises ``Unanswered`` if the backend crashes.
    """
    source = format_named(case.source)
    if source.kind == "text":
        return Raised(error, *(yield from _simplest_text(case, source, inputs)))
    part = inputs
    # Most backends that raise do so on all inputs of a dtype, and then on the first.
    if part.size > 1 and (yield from _raises(case, part[:1])):
        part = part[:1]
    while part.size > 1:
        half = part.size // 2
        if (yield from _raises(case, part[:half])):
            part = part[:half]
        elif (yield from _raises(case, part[half:])):
            part = part[half:]
        else:
            break
    return Raised(error, range_of(source, part), part if part.size == 1 else None)


def _simplest_text(case: Case, source: Format, inputs: Bits) -> Ask[tuple[str, Bits | None]]:
    """Return the simplest text that raises an error, in words and as a row of one element.

    The row is None if only several texts together raise it. The text is found by bisection in order
    of simplicity. Raises ``Unanswered`` if the backend crashes.
    """
    texts = np.array(sorted(inputs, key=lambda text: simplicity(source, text)), object)
    if (yield from _raises(case, texts[:1])):
        return _simplest(texts[:1])
    answered, raising = 1, texts.size
    while raising - answered > 1:
        middle = (answered + raising) // 2
        if (yield from _raises(case, texts[:middle])):
            raising = middle
        else:
            answered = middle
    one = texts[raising - 1 : raising]
    if (yield from _raises(case, one)):
        return _simplest(one)
    return "on no text alone, only on several of them together", None


def _simplest(one: Bits) -> tuple[str, Bits]:
    return f"on {quoted(one[0])}, the simplest text that raises the error", one


def _raises(case: Case, inputs: Bits) -> Ask[bool]:
    match (yield from ask_values(case, np.ascontiguousarray(inputs))):
        case Crashed() as crashed:
            raise Unanswered(crashed)
        case answer:
            return not isinstance(answer, Answered)
