"""A backend's answers to many tensors, in as few messages as can be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conformance.calling import DepartedError, answer_of
from conformance.form import checked, described
from conformance.meet import Meeting, contained
from conformance.probes import Probe
from conformance.rows import Row
from oracles.protocol import Bits, Unsupported
from specs.calling import receiver_of


class StoppedError(Exception):
    """A tensor is not answered though its elements are; the message says which, and what came."""


def answers_to(meeting: Meeting, row: Row, wanted: Sequence[Probe]) -> Iterator[tuple[Probe, Bits]]:
    """Each probe with its answer, but for those that the backend does not support."""
    together = getattr(meeting.backend.oracle, "cast_each", None)
    if together is None or receiver_of(row.case.document) is not None:
        for probe in wanted:
            yield from _answer_to(meeting, row, probe)
        return
    left = list(wanted)
    while left:
        tensors = [probe.tensor(row.inputs) for probe in left]
        known = together(row.case, tensors)
        for probe, tensor, answer in zip(left, tensors, known, strict=False):
            yield probe, checked(row.rules.target, tensor, answer)
        left = left[len(known) :]
        if left:
            # The first that is not among the answers: asked alone it tells why.
            yield from _answer_to(meeting, row, left.pop(0))


def _answer_to(meeting: Meeting, row: Row, probe: Probe) -> Iterator[tuple[Probe, Bits]]:
    tensor = probe.tensor(row.inputs)
    try:
        answer = contained(lambda: answer_of(meeting.backend.oracle, row.case, tensor))
        # A copy: an oracle may use one buffer for all its answers.
        yield probe, checked(row.rules.target, tensor, answer).copy()
    except Unsupported:
        return
    except DepartedError as departed:
        raise StoppedError(f"{probe}: {departed}") from None
    except Exception as error:
        raise StoppedError(f"{probe}: {described(error)}") from error
