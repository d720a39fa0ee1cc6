"""One cast in many tensors: what an element answers may not depend on where it stands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar
from zlib import crc32

import numpy as np
from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky
from numpy.typing import NDArray

from conformance.judging.answer_form import checked, described
from conformance.judging.calls import DepartedError, answer_of
from conformance.judging.meeting import Meeting, contained
from conformance.judging.probes import Probe, alone, probes
from conformance.judging.row_answers import (
    NoRowError,
    Row,
    candidates,
    first_row,
    judgement_of,
    rows,
)
from conformance.judging.shape_choice import SHORT, Shape, dear_shape
from oracles.isolation.remote_errors import Crashed
from oracles.protocol import Bits, Unsupported, WithCall
from oracles.reference.breakpoints import breakpoints
from oracles.reference.expectations import Expected
from reports.counterexample.drawing import brief, pattern
from reports.diff.divergences import datum_of, simplicity
from reports.diff.judgement import Datum, Fault, Judgement, Verdict
from specs.case_calls import receiver_of
from specs.cases import Case
from specs.ruling import Ruling
from specs.tensor_rules import tensor_rule


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


SHOWN_ANSWERS = 4
Answers = Iterable[tuple[Probe, Bits]]


@dataclass(frozen=True)
class Change:
    """One element that answers otherwise than it does in one row."""

    row: Row
    probe: Probe
    position: int
    input: int
    answer: Datum

    @property
    def place(self) -> tuple[object, ...]:
        """What makes a change small."""
        return (*self.probe.place, self.position)

    @property
    def given(self) -> Datum:
        """The input itself."""
        return datum_of(self.row.inputs[self.input])

    @property
    def where(self) -> str:
        """In which tensor, and where in it."""
        return f"{self.probe}, position {self.position}"


@dataclass
class Changes:
    """All that was found about a pair: what a document forbids, and sets of open answers."""

    forbidden: list[Change] = field(default_factory=list)
    open: list[Change] = field(default_factory=list)

    def note(self, row: Row, probe: Probe, answer: Bits) -> list[Change]:
        """Keep what has changed, of an input's equal answers the first; tell what is forbidden."""
        picked, flat = probe.picks(row.inputs.size).reshape(-1), answer.reshape(-1)
        moved, is_forbidden = row.changed(picked, flat)
        forbidden: list[Change] = []
        seen: set[tuple[int, Datum]] = set()
        for position, is_wrong in zip(moved.tolist(), is_forbidden.tolist(), strict=True):
            key = (int(picked[position]), datum_of(flat[position]))
            if key not in seen:
                seen.add(key)
                (forbidden if is_wrong else self.open).append(Change(row, probe, position, *key))
        self.forbidden += forbidden
        return forbidden


def smallest(changes: list[Change]) -> Change:
    """The change in the smallest tensor, of these the one of the simplest input."""
    return min(changes, key=lambda one: (one.place, simplicity(one.row.rules.source, one.given)))


def fault_of(change: Change, switches: str) -> Fault:
    """What is wrong where an answer that a document names changes."""
    row, branch = change.row, change.row.branch(change.input)
    was = pattern(row.rules.target, datum_of(row.answers[change.input]))
    now = pattern(row.rules.target, change.answer)
    message = (
        f"{brief(row.rules.source, change.given)} answers {was} in one row, {now} at {change.where}"
    )
    message += f"; {switches}" if switches else ""
    return Fault("answer", branch.rule, branch.clause, branch.level, message)


def told(changes: list[Change], count: int, switches: Callable[[Change], str]) -> str:
    """The sets of answers to open inputs: how many, and where the simplest of them switches."""
    source = changes[0].row.rules.source
    simplest = min(changes, key=lambda one: (simplicity(source, one.given), one.place))
    target = simplest.row.rules.target
    answers = [datum_of(simplest.row.answers[simplest.input])]
    answers += [one.answer for one in changes if one.given == simplest.given]
    shown = [pattern(target, answer) for answer in dict.fromkeys(answers)]
    shown[SHOWN_ANSWERS:] = ["…"] if len(shown) > SHOWN_ANSWERS else []
    now = pattern(target, simplest.answer)
    where = switches(simplest) or f"{shown[0]} in one row, {now} at {simplest.where}"
    inputs = len({one.given for one in changes})
    return (
        f"a set of answers to {inputs} of {count} inputs, where the document is open:"
        f" {brief(source, simplest.given)} gives {{{', '.join(shown)}}}, {where}"
    )


def switch(change: Change, rows: Answers) -> str:
    """Where an input in rows of nothing else first answers otherwise than alone; nothing if not."""
    target, alone = change.row.rules.target, None
    for probe, answer in rows:
        alone = answer[:1] if alone is None else alone
        moved = np.flatnonzero(answer != alone[0])
        if moved.size:
            was, now = (pattern(target, datum_of(one)) for one in (alone[0], answer[moved[0]]))
            return f"{was} alone, {now} first at {probe}, position {moved[0]}"
    return ""


STEPS = (1, 2, 3, -1, -2, 0)
LONGEST = 80
MOST_OFFSET = 15
Drawn = TypeVar("Drawn")

ANY_STEP = st.sampled_from(STEPS)
ANY_OFFSET = st.integers(0, MOST_OFFSET)
ANY_SHAPE = st.tuples(st.integers(1, LONGEST)) | st.lists(st.integers(1, 9), max_size=4).map(tuple)


@st.composite
def any_probe(draw: st.DrawFn, count: int, shapes: Sequence[Shape], is_laid: bool) -> Probe:
    """A tensor of so many inputs, in a given shape or in any, and laid in memory if it can be."""
    shape = draw(st.sampled_from(shapes) if shapes else ANY_SHAPE)
    first = draw(st.integers(0, count - 1))
    if not is_laid:
        return Probe(shape, first)
    steps = tuple(draw(ANY_STEP) for _ in shape)
    offset, columns = draw(ANY_OFFSET), draw(st.booleans())
    return Probe(shape, first, steps=steps, offset=offset, columns=columns)


def drive(
    check: Callable[[Drawn], None], strategy: st.SearchStrategy[Drawn], number: int, examples: int
) -> None:
    """Check examples that follow from a number; raise what the smallest that fails raises."""
    profile = settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        verbosity=Verbosity.quiet,
    )

    def example(drawn: Drawn) -> None:
        check(drawn)

    seed(number)(profile(given(strategy)(example)))()


MOST = 32
LEAST_OF_A_RULE = 3
TELLING_STEPS = 5
"""Target values at which, and in the middle after which, an input is taken."""


def telling(rules: Ruling, inputs: Bits, expected: Expected) -> NDArray[np.intp]:
    """The places of up to ``MOST`` inputs, in their order."""
    found: dict[int, None] = {}
    if rules.source.is_numeric and not rules.worked:
        wanted = np.array([*_nans(rules), *_ties(rules)], inputs.dtype)
        places = np.searchsorted(inputs, wanted).clip(max=inputs.size - 1)
        found.update(dict.fromkeys(places[inputs[places] == wanted].tolist()))
    taken = np.unique(expected.places)
    share = max(LEAST_OF_A_RULE, (MOST - len(found)) // taken.size)
    for place in taken.tolist():
        members = np.flatnonzero(expected.places == place)
        spread = np.linspace(0, members.size - 1, share).astype(int)
        found.update(dict.fromkeys(members[spread].tolist()))
    every = np.array(sorted(found), np.intp)
    few = np.linspace(0, every.size - 1, min(MOST, every.size)).astype(np.intp)
    return np.asarray(every[few], np.intp)


def _nans(rules: Ruling) -> Iterator[int]:
    """Of each sign the first, the middle (a quiet one) and the last."""
    for codes in rules.source.nan_codes:
        yield from (codes[0], codes[len(codes) // 2], codes[-1])


def _ties(rules: Ruling) -> list[int]:
    if not rules.target.is_numeric:
        return []
    source, target = rules.source, rules.target
    codes = [target.max_code * step // (TELLING_STEPS - 1) for step in range(TELLING_STEPS)]
    found = sorted(
        code for code in breakpoints(source, target, codes) if 1 < code < source.max_code
    )
    ties = found[1::3]  # of each three the one in the middle
    return ties if source.is_integral else [*ties, *(code | source.sign_bit for code in ties[:1])]


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
