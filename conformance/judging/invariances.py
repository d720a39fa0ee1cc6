"""Invariances: the answer to an element must not depend on its position, tensor, or layout."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TypeVar
from zlib import crc32

import numpy as np
from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky

from conformance.judging.answers import Crashed, Unanswered
from conformance.judging.backend_judge import BackendJudge
from conformance.judging.probe_answers import (
    ProbeFailedError,
    answers_at_once,
    answers_to,
    changed_answers,
)
from conformance.judging.probes import (
    LARGE,
    Probe,
    ProbePlan,
    alone,
    at_once,
    drawn,
    lasting,
    probes,
)
from conformance.judging.row_answers import (
    NoRow,
    Row,
    candidates,
    first_row,
    judgement_of,
    rows,
)
from conformance.judging.shape_choice import SHORT, Shape, shape_of_pair
from conformance.judging.telling_inputs import telling_inputs
from oracles.protocol import Bits, WithCall
from reports.counterexample.drawing import datum_text, datum_with_value
from reports.diff.divergences import datum_of, simplicity
from reports.diff.judgement import Datum, Fault, Judgement
from reports.diff.verdicts import Verdict
from specs.cases import Case
from specs.tensor_rules import tensor_rule

SHOWN_ANSWERS = 4


@dataclass(frozen=True)
class Change:
    """One element whose answer differs from its answer in one row."""

    row: Row
    probe: Probe
    position: int
    input: int
    answer: Datum

    @property
    def order(self) -> tuple[object, ...]:
        """Sorts changes: small tensors first, then early positions."""
        return (*self.probe.simplicity, self.position)

    @property
    def given(self) -> Datum:
        """The input itself."""
        return datum_of(self.row.inputs[self.input])

    @property
    def is_required(self) -> bool:
        """Whether the document requires the answer, and does not only recommend it."""
        return self.row.branch(self.input).level == "required"

    @property
    def where(self) -> str:
        """The tensor, and the position in it."""
        return f"{self.probe}, position {self.position}"


@dataclass
class Changes:
    """The changes found for a pair: those that a document forbids, and those of open answers."""

    forbidden: list[Change] = field(default_factory=list)
    open: list[Change] = field(default_factory=list)

    def note(self, row: Row, probe: Probe, answer: Bits) -> list[Change]:
        """Record the changed answers, each once per input; return the forbidden ones."""
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
    """The change in the smallest tensor, of the simplest input; of a required answer, if any."""

    def order(one: Change) -> tuple[object, ...]:
        return not one.is_required, one.order, simplicity(one.row.rules.source, one.given)

    return min(changes, key=order)


def change_fault(change: Change, switches: str) -> Fault:
    """The fault of an answer that changes although a document names it."""
    row, branch = change.row, change.row.branch(change.input)
    was = datum_text(row.rules.target, datum_of(row.answers[change.input]))
    now = datum_text(row.rules.target, change.answer)
    given = datum_with_value(row.rules.source, change.given)
    message = f"{given} answers {was} in one row, {now} at {change.where}"
    message += f"; {switches}" if switches else ""
    return Fault("answer", branch.rule, branch.clause, branch.level, message)


def describe_open_changes(
    changes: list[Change], count: int, switches: Callable[[Change], str]
) -> str:
    """How many open inputs have several answers, and where the simplest of them changes."""
    source = changes[0].row.rules.source
    simplest = min(changes, key=lambda one: (simplicity(source, one.given), one.order))
    target = simplest.row.rules.target
    answers = [datum_of(simplest.row.answers[simplest.input])]
    answers += [one.answer for one in changes if one.given == simplest.given]
    shown = [datum_text(target, answer) for answer in dict.fromkeys(answers)]
    shown[SHOWN_ANSWERS:] = ["…"] if len(shown) > SHOWN_ANSWERS else []
    now = datum_text(target, simplest.answer)
    where = switches(simplest) or f"{shown[0]} in one row, {now} at {simplest.where}"
    inputs = len({one.given for one in changes})
    return (
        f"a set of answers to {inputs} of {count} inputs, where the document is open:"
        f" {datum_with_value(source, simplest.given)} gives {{{', '.join(shown)}}}, {where}"
    )


def first_switch(change: Change, answers: Iterable[tuple[Probe, Bits]]) -> str:
    """Describe where an input, in growing rows of itself, first changes its answer; else empty."""
    target, alone = change.row.rules.target, None
    for probe, answer in answers:
        alone = answer[:1] if alone is None else alone
        moved = np.flatnonzero(answer != alone[0])
        if moved.size:
            was, now = (datum_text(target, datum_of(one)) for one in (alone[0], answer[moved[0]]))
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
    """Draw a tensor of ``count`` inputs, in one of the shapes or in any, and its layout."""
    shape = draw(st.sampled_from(shapes) if shapes else ANY_SHAPE)
    first = draw(st.integers(0, count - 1))
    if not is_laid:
        return Probe(shape, first)
    steps = tuple(draw(ANY_STEP) for _ in shape)
    order = tuple(range(len(shape)))
    turned = draw(st.booleans()) and len(shape) > 1
    return Probe(
        shape, first, steps=steps, offset=draw(ANY_OFFSET), order=order[::-1] if turned else ()
    )


def drive(
    check: Callable[[Drawn], None], strategy: st.SearchStrategy[Drawn], number: int, examples: int
) -> None:
    """Check examples drawn from a seed; raise the error of the smallest one that fails."""
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


PLANS_KEPT = 64
EXAMPLES = 10
FEW_EXAMPLES = 4


class ChangedError(Exception):
    """A forbidden change was found; Hypothesis shrinks to the smallest."""


class Invariances:
    """Asks one backend the inputs of a pair in tensors of many lengths, shapes and layouts."""

    def __init__(self, judge: BackendJudge, cases: Sequence[Case]) -> None:
        self._judge = judge
        self.cases = cases
        self.pair = f"{cases[0].source}/{cases[0].target}"

    def judge(self) -> tuple[Case, Judgement]:
        """The verdict on the pair, under the case that was asked."""
        row = first_row(self._judge, candidates(self._judge, self.cases, calls=False))
        if isinstance(row, NoRow):
            return self.cases[0], self._judgement(self.cases[0], "unsupported", row.reason)
        whole, row, found, failed_probe = row, _few(row), Changes(), ""
        try:
            for by, probe, answer in self._changed_answers(whole, row):
                found.note(by, probe, answer)
            if found.forbidden:
                self._draw(row, found)
        except (ChangedError, Flaky):
            pass  # The change is recorded, and so are the smaller ones that were tried.
        except ProbeFailedError as error:
            failed_probe = str(error)
        except Unanswered as unanswered:
            if isinstance(unanswered.answer, Crashed):
                return row.case, self._judge.crashed(row.case, unanswered.answer)
            failed_probe = unanswered.answer.text
        return self._judged(row, found, failed_probe)

    def _changed_answers(self, whole: Row, row: Row) -> Iterator[tuple[Row, Probe, Bits]]:
        """The probes with changed answers: of telling inputs, calls, and all inputs, shuffled."""
        chance = np.random.default_rng([crc32(self.pair.encode()), self._judge.settings.seed])
        judge, few_shapes, count = self._judge, self._judge.few_shapes, row.inputs.size
        is_full = any(map(judge.settings.is_full, self.cases))
        together = [
            probe for probe in at_once(count, self.pair, few_shapes, is_full) if _keeps(row, probe)
        ]
        for probe, answer in answers_at_once(judge, row, together):
            yield row, probe, answer
        asked = [(row, _usual_plan(count, self.pair if few_shapes else "", _Kept.of(row)))]
        if is_full:
            asked.append((row, _plan(row, lasting())))
        if not few_shapes:
            rows_of_chance = (row, *self._call_rows)
            asked += [(by, _plan(by, drawn(by.inputs.size, chance))) for by in rows_of_chance]
        asked.append((whole, _plan(whole, [Probe(whole.inputs.shape, shuffling=1)])))
        yield from changed_answers(judge, asked)

    def _judged(self, row: Row, found: Changes, failed_probe: str) -> tuple[Case, Judgement]:
        if found.forbidden:
            return self._failed(smallest(found.forbidden))
        if failed_probe:
            failed = self._judge.failed(row.case)
            return row.case, self._judgement(row.case, failed, failed_probe, row)
        if found.open:
            message = describe_open_changes(found.open, row.inputs.size, self._switch)
            return row.case, self._judgement(row.case, "open", message, row)
        return row.case, self._judgement(row.case, "conforms", "", row)

    def _failed(self, change: Change) -> tuple[Case, Judgement]:
        case, fault = change.row.case, change_fault(change, self._switch(change))
        verdict = self._judge.graded(case, {fault.level}, is_open=False)
        return case, self._judgement(case, verdict, fault.message, change.row, fault)

    def _judgement(
        self, case: Case, verdict: Verdict, message: str, row: Row | None = None, *faults: Fault
    ) -> Judgement:
        return judgement_of(self._judge, case, verdict, message, row, *faults)

    def _draw(self, row: Row, found: Changes) -> None:
        """Let Hypothesis find a small tensor in which a change is forbidden; raise there."""
        is_required = any(one.is_required for one in found.forbidden)

        def check(drawn: tuple[Row, Probe]) -> None:
            by, probe = drawn
            if not _keeps(by, probe):
                return
            for _, answer in answers_to(self._judge, by, [probe]):
                forbidden = found.note(by, probe, answer)
                if any(one.is_required or not is_required for one in forbidden):
                    raise ChangedError

        shapes = [shape_of_pair(self.pair)] if self._judge.few_shapes else []
        if any(0 in shape for shape in shapes):
            return
        # Where shapes are costly, so are layouts.
        is_laid = row.rules.source.kind != "text" and not shapes
        drawn = [
            st.tuples(st.just(by), any_probe(by.inputs.size, shapes, is_laid))
            for by in (row, *self._call_rows)
        ]
        number = crc32(self.pair.encode()) + self._judge.settings.seed
        drive(check, st.one_of(drawn), number, FEW_EXAMPLES if shapes else EXAMPLES)

    @cached_property
    def _call_rows(self) -> list[Row]:
        """The rows that the pair's calls answer."""
        if not isinstance(self._judge.backend.oracle, WithCall):
            return []
        cases = candidates(self._judge, self.cases, calls=True)
        return [_few(row) for row in rows(self._judge, cases) if not row.rules.is_open]

    def _switch(self, change: Change) -> str:
        """Describe where an input in rows of itself changes; empty if nowhere, or if it is slow."""
        if self._judge.few_shapes:
            return ""
        asked = [probe for probe in alone(change.input, SHORT) if _keeps(change.row, probe)]
        try:
            return first_switch(change, answers_to(self._judge, change.row, asked))
        except (ProbeFailedError, Unanswered):
            return ""


def _few(row: Row) -> Row:
    return row.at(telling_inputs(row.rules, row.inputs, row.expected))


@dataclass(frozen=True)
class _Kept:
    """Decides which probes of a row can be made and must keep their shape."""

    document: str
    version: str
    are_texts: bool

    @classmethod
    def of(cls, row: Row) -> _Kept:
        """Return the document, the version and the kind of inputs of a row."""
        return cls(row.case.document, row.case.version, row.rules.source.kind == "text")

    def keeps(self, probe: Probe) -> bool:
        """Whether a tensor can be made, and the document wants its shape kept.

        Texts lie in a row.
        """
        if self.are_texts and (probe.layout is not None or max(probe.shape, default=0) > LARGE):
            return False
        return tensor_rule(self.document, self.version, probe.shape).keeps_shape


def _keeps(row: Row, probe: Probe) -> bool:
    return _Kept.of(row).keeps(probe)


def _plan(row: Row, chosen: Iterable[Probe]) -> ProbePlan:
    """The plan of those probes that can be made and are to keep their shape."""
    return ProbePlan.of([probe for probe in chosen if _keeps(row, probe)], row.inputs.size)


@lru_cache(PLANS_KEPT)
def _usual_plan(count: int, pair_of_few_shapes: str, kept: _Kept) -> ProbePlan:
    """The probes of every pair; where each shape is costly, the few of one pair."""
    chosen = probes(count, pair_of_few_shapes, bool(pair_of_few_shapes))
    return ProbePlan.of([probe for probe in chosen if kept.keeps(probe)], count)
