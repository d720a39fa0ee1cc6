"""Refusals: whether what is refused in one row is refused in every tensor.

A refusal in one row says nothing of a tensor without dimensions, which may be answered before the
arguments are read, nor of one in another layout, nor of a second attempt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from conformance.families.cast.shapes import FaultyTensor
from conformance.judging.asking import Ask
from conformance.judging.probe import Probe
from conformance.judging.values import Departed, value_answer, value_request
from oracles.backend.replies import Answered, Crashed, Reply, Unanswered
from oracles.protocol import Bits
from reports.problem_words import words
from reports.problems import NotRefused
from specs.cases import Case
from specs.formats import format_named
from specs.ruling import ruling
from specs.tensor_rules import tensor_rule

AGAIN = (
    Probe(()), Probe((1,)), Probe((1, 1)), Probe((20, 17)), Probe((0,)), Probe((2, 1, 2, 2)),
    Probe((2, 3), order=(1, 0)),
    Probe((5,), steps=(2,)), Probe((5,), steps=(-1,)), Probe((5, 3), steps=(2, 1)),
    Probe((5,), offset=1), Probe((2, 3, 4, 5), order=(0, 2, 3, 1)), Probe((1027,)),
)  # fmt: skip
"""Tensors in which a refusal is asked again, if the document keeps their shapes."""
FEW = 2
"""Elements of the row that is asked a second time."""


def answered_again(case: Case, inputs: Bits) -> Ask[list[FaultyTensor]]:
    """Ask again what was refused in one row, in other tensors; return one that is answered.

    Raises ``Unanswered`` if the backend crashes.
    """
    tensors = dict(other_tensors(case, inputs))
    replies = yield [value_request(case, bits) for bits in tensors.values()]
    return [*answered_tensors(case, tensors, alive(replies))]


def other_tensors(case: Case, inputs: Bits) -> Iterator[tuple[str, Bits]]:
    """A part of the row again, in words and as it is; then other tensors, where they may be asked.

    Texts lie in a row.
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
    """The first tensor in which the call is not refused."""
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
