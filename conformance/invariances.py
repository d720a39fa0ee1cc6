"""One cast in many tensors: what an element answers may not depend on where it stands."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from zlib import crc32

from hypothesis import strategies as st
from hypothesis.errors import Flaky

from conformance.asking import StoppedError, answers_to
from conformance.changes import Change, Changes, fault_of, smallest, switch, told
from conformance.drawn import any_probe, drive
from conformance.meet import Meeting
from conformance.probes import Probe, alone, probes
from conformance.rows import NoRowError, Row, candidates, first_row, judgement_of, rows
from conformance.shape_choice import SHORT, dear_shape
from conformance.telling import telling
from oracles.isolation.errors import Crashed
from oracles.protocol import WithCall
from reports.judgement import Fault, Judgement, Verdict
from specs.cases import Case
from specs.tensors import tensor_rule

EXAMPLES = 10
FEW_EXAMPLES = 4


class ChangedError(Exception):
    """An element answers otherwise than in one row where no document allows it."""


class Invariances:
    """Asks one pair on one backend, in tensors of every kind."""

    def __init__(self, meeting: Meeting, cases: Sequence[Case]) -> None:
        self.meeting = meeting
        self.cases = cases
        self.pair = f"{cases[0].source}/{cases[0].target}"

    def judge(self) -> tuple[Case, Judgement]:
        """The verdict on the pair, under the case that it was asked by."""
        try:
            row = _few(first_row(self.meeting, candidates(self.meeting, self.cases, calls=False)))
        except NoRowError as reason:
            return self.cases[0], self._judgement(self.cases[0], "unsupported", str(reason))
        found, stopped = Changes(), ""
        try:
            for probe, answer in answers_to(self.meeting, row, self._probes(row)):
                found.note(row, probe, answer)
            self._draw(row, found)
        except (ChangedError, Flaky):
            pass  # it is noted, and so are the smaller ones that were tried
        except StoppedError as error:
            stopped = str(error)
        except Crashed as death:
            return row.case, self.meeting.crashed(row.case, death)
        return self._judged(row, found, stopped)

    def _judged(self, row: Row, found: Changes, stopped: str) -> tuple[Case, Judgement]:
        if found.forbidden:
            return self._failed(smallest(found.forbidden))
        if stopped:
            failed = self.meeting.failed(row.case)
            return row.case, self._judgement(row.case, failed, stopped, row)
        if found.open:
            return row.case, self._judgement(
                row.case, "open", told(found.open, row.inputs.size, self._switch), row
            )
        return row.case, self._judgement(row.case, "conforms", "", row)

    def _failed(self, change: Change) -> tuple[Case, Judgement]:
        case, fault = change.row.case, fault_of(change, self._switch(change))
        verdict = self.meeting.graded(case, {fault.level}, is_open=False)
        return case, self._judgement(case, verdict, fault.message, change.row, fault)

    def _judgement(
        self, case: Case, verdict: Verdict, message: str, row: Row | None = None, *faults: Fault
    ) -> Judgement:
        return judgement_of(self.meeting, case, verdict, message, row, *faults)

    def _probes(self, row: Row) -> list[Probe]:
        return [
            probe
            for probe in probes(row.inputs.size, self.pair, self.meeting.is_dear)
            if _keeps(row, probe) and (probe.layout is None or row.rules.source.kind != "text")
        ]

    def _draw(self, row: Row, found: Changes) -> None:
        """Let Hypothesis draw tensors and calls on them; it raises where a change is forbidden."""

        def check(drawn: tuple[Row, Probe]) -> None:
            by, probe = drawn
            if not _keeps(by, probe):
                return
            for _, answer in answers_to(self.meeting, by, [probe]):
                if found.note(by, probe, answer):
                    raise ChangedError

        shapes = [dear_shape(self.pair)] if self.meeting.is_dear else []
        if any(0 in shape for shape in shapes):
            return
        # Where shapes are dear, so are layouts.
        is_laid = row.rules.source.kind != "text" and not shapes
        drawn = [
            st.tuples(st.just(by), any_probe(by.inputs.size, shapes, is_laid))
            for by in (row, *self._forms)
        ]
        number = crc32(self.pair.encode()) + self.meeting.settings.seed
        drive(check, st.one_of(drawn), number, FEW_EXAMPLES if shapes else EXAMPLES)

    @cached_property
    def _forms(self) -> list[Row]:
        """What the calls of the pair answer in one row."""
        if not isinstance(self.meeting.backend.oracle, WithCall):
            return []
        cases = candidates(self.meeting, self.cases, calls=True)
        return [_few(row) for row in rows(self.meeting, cases) if not row.rules.is_open]

    def _switch(self, change: Change) -> str:
        """Where an input in rows of nothing else switches, if it does and that is cheap to find."""
        if self.meeting.is_dear:
            return ""
        asked = [probe for probe in alone(change.input, SHORT) if _keeps(change.row, probe)]
        try:
            return switch(change, answers_to(self.meeting, change.row, asked))
        except (StoppedError, Crashed):
            return ""


def _few(row: Row) -> Row:
    return row.at(telling(row.rules, row.inputs, row.expected))


def _keeps(row: Row, probe: Probe) -> bool:
    """Whether the document speaks of tensors of that shape."""
    return tensor_rule(row.case.document, row.case.version, probe.shape).keeps_shape
