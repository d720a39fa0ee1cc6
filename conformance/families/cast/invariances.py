"""Invariances: the answer to an element must not depend on its position, tensor, or layout."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import prod
from zlib import crc32

import numpy as np

from conformance.families import tensor_of
from conformance.families.cast.answer_changes import (
    Change,
    Changes,
    ProbeFailedError,
    answers_at_once,
    answers_beside,
    answers_in_turn,
    answers_to,
    by_rule,
    change_problem,
    changed_answers,
    describe_open_changes,
    first_switch,
    simplest_changes,
    simplest_open,
    smallest,
)
from conformance.families.cast.baseline import (
    NOTHING_TO_ASK,
    Baseline,
    NoBaseline,
    baseline_of,
    candidates,
    judgement_on_pair,
)
from conformance.families.cast.neighbors import cast_words, in_turn, neighbors
from conformance.families.cast.probes import (
    HALVES,
    LARGE,
    PAIRS_BESIDE,
    TURNED,
    alone,
    at_once,
    beside,
    drawn,
    few_probes,
    lasting,
    probes,
    rewritten,
    road_probes,
    whole_probes,
)
from conformance.families.cast.quick_inputs import few_inputs
from conformance.families.cast.telling_inputs import MOST, telling_inputs
from conformance.judging.asking import Ask, in_step
from conformance.judging.probe import SHORT, Probe, ProbePlan, shape_of_pair
from conformance.judging.subject import Subject
from conformance.judging.verdicts import crashed, problem_of
from oracles.backend.replies import Answered, Crashed, Unanswered
from oracles.backend.requests import Road
from reports.judgement import Judgement, Verdict
from reports.problems import BrokenPromise, Note, Problem, Unoffered
from specs.case_calls import call_of, receiver_of
from specs.cases import Case
from specs.editions import tensor_rule
from specs.formats import EXHAUSTIVE_BITS

PLANS_KEPT = 32
ROAD_PLANS_KEPT = 256
BESIDE_CASTS = 8
"""Where a pair has casts as well, a call is made in one tensor of this many."""


@dataclass(frozen=True)
class Invariances:
    """Checks that answers to a pair's inputs do not change with length, shape and layout.

    ``known`` has the answers in one row to cases that were judged before.
    """

    subject: Subject
    cases: Sequence[Case]
    known: Mapping[Case, Baseline | NoBaseline] = field(default_factory=dict)

    @property
    def pair(self) -> str:
        """The dtypes as ``source/target``, as in the names of checks."""
        return f"{self.cases[0].source}/{self.cases[0].target}"

    def judge(self) -> Ask[Judgement]:
        """Return the judgement on the pair, under the case whose inputs are used."""
        whole = yield from self._first_baseline()
        if isinstance(whole, NoBaseline):
            reason = Unoffered(whole.reason)
            return judgement_on_pair(self.subject, self.cases[0], "unsupported", [reason])
        row, found = _few(whole), Changes()
        failure: ProbeFailedError | None = None
        try:
            yield from self._ask_all(whole, row, found)
            if found.forbidden:
                yield from self._draw(row, found)
        except ProbeFailedError as failed:
            failure = failed
        except Unanswered as unanswered:
            if isinstance(unanswered.answer, Crashed):
                return crashed(self.subject, row.case, unanswered.answer)
            failure = ProbeFailedError(row, problem_of(unanswered.answer))
        return (yield from self._judged(whole, row, found, failure))

    def _first_baseline(self) -> Ask[Baseline | NoBaseline]:
        """Return the baseline of the first case with answers; else why the first case has none.

        Casts come before calls.
        """
        first_reason: NoBaseline | None = None
        for calls in (False, True):
            for case in candidates(self.subject, self.cases, calls=calls):
                found = yield from self._baseline(case)
                if isinstance(found, Baseline):
                    return found
                first_reason = first_reason or found
        return first_reason or NoBaseline(NOTHING_TO_ASK)

    def _baseline(self, case: Case) -> Ask[Baseline | NoBaseline]:
        return self.known.get(case) or (yield from baseline_of(self.subject, case))

    def _ask_all(self, whole: Baseline, row: Baseline, found: Changes) -> Ask[None]:
        """Request telling inputs, calls, and all inputs shuffled; add changes to ``found``."""
        subject, pair, count = self.subject, self.pair, row.inputs.size
        is_call = receiver_of(row.case.document) is not None
        chance = np.random.default_rng([crc32(pair.encode()), subject.settings.seed])
        few_shapes = subject.few_shapes
        is_full = any(map(subject.settings.is_full, self.cases))
        together = at_once(count, pair, few_shapes, is_full)
        for probe, answer in (yield from answers_at_once(row, _plan(row, together))):
            found.note(row, probe, answer)
        asked = []
        if few_shapes or not is_call:
            if not few_shapes:
                asked.append((row, _plan(row, rewritten(count))))
            few_of = pair if few_shapes else ""
            asked.append((row, _usual_plan(count, few_of, _half(row, is_full), _Kept.of(row))))
        if is_full:
            asked.append((row, _plan(row, lasting())))
        if not few_shapes:
            calls = yield from self._call_rows(row)
            asked += [(by, _call_plan(by, is_call)) for by in _by_receiver(calls)]
            rows_of_chance = (row, *(by for by in calls if by is not row))
            asked += [(by, _plan(by, drawn(by.inputs.size, chance))) for by in rows_of_chance]
        asked.append((whole, _plan(whole, whole_probes(whole.inputs.size, few_shapes))))
        if not (few_shapes or is_call):
            for by in (yield from self._other_roads(whole.case)):
                few = _few(by)
                size, kept = few.inputs.size, _Kept.of(few)
                if is_full:
                    asked.append((few, _usual_plan(size, "", None, kept)))
                else:
                    asked.append((few, _road_plan(size, crc32(by.case.id.encode()), kept)))
        # A missing answer ends the check, so claimed cases come first. If telling inputs show a
        # change, changes of all inputs are not noted: there may be tens of thousands.
        asked.sort(key=lambda each: (not subject.claims(each[0].case), each[0] is whole))
        for by, probe, answer in (yield from changed_answers(asked)):
            if by is not whole or not found.forbidden:
                found.note(by, probe, answer)
        if few_shapes or is_call:
            return
        others = neighbors(row.case, is_full)
        number = crc32(row.case.id.encode())
        meanwhile = others
        if not is_full:
            is_asked = others and number % PAIRS_BESIDE == 0
            meanwhile = [others[number // PAIRS_BESIDE % len(others)]] if is_asked else []
        for other in meanwhile:
            together = beside(count, cast_words(other))
            for probe, answer in (yield from answers_beside(row, _plan(row, together), other)):
                found.note(row, probe, answer)
        shaped = [case for case in self.cases if tensor_of(case) and not case.example]
        if turns := in_turn(row, others, shaped[:1]):
            for probe, answer in (yield from answers_in_turn(row, turns)):
                found.note(row, probe, answer)

    def _judged(
        self, whole: Baseline, row: Baseline, found: Changes, failure: ProbeFailedError | None
    ) -> Ask[Judgement]:
        is_claimed = any(self.subject.claims(one.row.case) for one in found.forbidden)
        fails = failure is not None and self.subject.failed(failure.row.case) == "error"
        if found.forbidden and (is_claimed or not fails):
            change = smallest(self.subject, found.forbidden)
            problem = change_problem(change, (yield from self._switch(change)))
            verdict = self.subject.graded(change.row.case, {problem.level}, is_open=False)
            further = yield from self._further(whole, change, found.forbidden)
            if failure is not None:
                further.append(failure.problem)
            judgement = self._judgement(change.row, verdict, problem)
            return replace(judgement, further=tuple(further))
        if failure is not None:
            match failure.problem:
                case BrokenPromise(level=level):
                    verdict = self.subject.graded(failure.row.case, {level}, is_open=False)
                case _:
                    verdict = self.subject.failed(failure.row.case)
            return self._judgement(failure.row, verdict, failure.problem)
        if found.open:
            switch = yield from self._switch(simplest_open(found.open))
            text = describe_open_changes(found.open, row.inputs.size, switch)
            return self._judgement(row, "open", Note(text))
        return self._judgement(row, "conforms")

    def _further(
        self, whole: Baseline, first: Change, forbidden: Sequence[Change]
    ) -> Ask[list[Problem]]:
        """Return the smallest change of each other rule, then changes that every seed can find.

        So an acceptance of one rule excuses no other, and two runs can be compared although each
        has drawn inputs and tensors of its own.
        """
        rules = by_rule(forbidden)
        others = [
            smallest(self.subject, changes) for rule, changes in rules.items() if rule != first.rule
        ]
        compared: list[Change] = []
        for change in (first, *others):
            asked: Baseline | NoBaseline = whole
            if change.row.case != whole.case:
                asked = yield from self._baseline(change.row.case)
            row = _row_of_every_seed(asked) if isinstance(asked, Baseline) else None
            if row is not None:
                given = set(row.inputs.tolist())
                compared += [each for each in rules[change.rule] if each.given in given]
                compared += yield from self._turned(change, row)
        shown = [each for some in by_rule(compared).values() for each in simplest_changes(some)]
        return [change_problem(each, "") for each in (*others, *shown)]

    def _turned(self, change: Change, row: Baseline) -> Ask[list[Change]]:
        """Return the forbidden changes if a row's inputs take turns at each position of a tensor.

        The tensors are a short row and, if it is small, that of ``change``.
        """
        found, size = Changes(), prod(change.probe.shape)
        shapes = [] if self.subject.few_shapes else [Probe((TURNED,))]
        if size <= TURNED * TURNED:
            shapes.append(change.probe)
        turned = (replace(each, first=at) for each in shapes for at in range(row.inputs.size))
        try:
            for probe, answer in (yield from answers_to(row, _plan(row, turned))):
                found.note(row, probe, answer)
        except (ProbeFailedError, Unanswered):
            pass  # What was asked before has shown that already, or a crash that does not repeat.
        return found.forbidden

    def _judgement(self, row: Baseline, verdict: Verdict, *problems: Problem) -> Judgement:
        return judgement_on_pair(self.subject, row.case, verdict, problems, row)

    def _draw(self, row: Baseline, found: Changes) -> Ask[None]:
        """Let Hypothesis search for a small tensor with a forbidden change; add to ``found``."""
        is_required = any(one.is_required for one in found.forbidden)
        shapes = [shape_of_pair(self.pair)] if self.subject.few_shapes else []
        if any(0 in shape for shape in shapes):
            return
        rows = [*_rows_that_change(found.forbidden)]

        def is_forbidden(by: Baseline, probe: Probe) -> Ask[bool]:
            if not _keeps(by, probe):
                return False
            answers = yield from answers_to(by, ProbePlan.of([probe], by.inputs.size))
            changes = [each for _, answer in answers for each in found.note(by, probe, answer)]
            return any(one.is_required or not is_required for one in changes)

        # Imported here, because Hypothesis is a sixth of the imports of a command that judges
        # single cases.
        from conformance.families.cast.probes import find_smallest

        # Where shapes are costly, so are layouts.
        is_laid = row.rules.source.kind != "text" and not shapes
        number = crc32(self.pair.encode()) + self.subject.settings.seed
        yield from find_smallest(rows, shapes, is_laid, number, is_forbidden)

    def _other_roads(self, first: Case) -> Ask[list[Baseline]]:
        """Return the baseline of one case for each other road: another mode, or an older version.

        Open cases are left out. If the adapter is not believed, each case counts as a road of its
        own.
        """
        cases = candidates(self.subject, self.cases, calls=False)
        roads: dict[str, Case] = {}
        if self.subject.is_believed:
            replies = yield [Road(case) for case in (first, *cases)]
            named = [reply.value if isinstance(reply, Answered) else "" for reply in replies]
            for case, road in zip((first, *cases), named, strict=True):
                roads.setdefault(road or case.id, case)
        else:
            roads = {case.id: case for case in (first, *cases)}
        others = [case for case in roads.values() if case != first]
        found = yield from in_step({case: self._baseline(case) for case in others})
        return [
            each for each in found.values() if isinstance(each, Baseline) and not each.rules.is_open
        ]

    def _call_rows(self, row: Baseline) -> Ask[list[Baseline]]:
        """Return the answers to telling inputs of each call that a backend makes; ``row`` is known.

        Open calls are left out, except one that is the row itself.
        """
        rows = []
        for case in candidates(self.subject, self.cases, calls=True):
            if case == row.case:
                rows.append(row)
                continue
            found = yield from self._baseline(case)
            if isinstance(found, Baseline) and not found.rules.is_open:
                rows.append(_few(found))
        return rows

    def _switch(self, change: Change) -> Ask[str]:
        """Describe where an input in rows of itself changes its answer; empty if nowhere.

        It is also empty if the backend compiles for each shape.
        """
        if self.subject.few_shapes:
            return ""
        plan = _plan(change.row, alone(change.input, SHORT))
        answers = yield from answers_to(change.row, plan)
        try:
            return first_switch(change, answers)
        except (ProbeFailedError, Unanswered):
            return ""


def _by_receiver(calls: Iterable[Baseline]) -> list[Baseline]:
    """Return the first call of each receiver of each document."""
    first: dict[tuple[str, str], Baseline] = {}
    for row in calls:
        first.setdefault((row.case.document, call_of(row.case).receiver), row)
    return [*first.values()]


def _few(row: Baseline) -> Baseline:
    return row.at(telling_inputs(row.rules, row.inputs, row.expected))


def _rows_that_change(changes: Sequence[Change]) -> Iterator[Baseline]:
    """Yield the rows in which an answer changes; of a long row, only the inputs that change."""
    by_row: dict[int, list[Change]] = {}
    for each in changes:
        by_row.setdefault(id(each.row), []).append(each)
    for of_row in by_row.values():
        row = of_row[0].row
        chosen = sorted({each.input for each in of_row})[:MOST]
        yield row if row.inputs.size <= MOST else row.at(np.array(chosen, np.intp))


def _row_of_every_seed(whole: Baseline) -> Baseline | None:
    """Return the telling inputs that a case has with every seed; None if there are none."""
    source = whole.rules.source
    if source.kind == "text" or source.bits > EXHAUSTIVE_BITS:
        steady = np.isin(whole.inputs, few_inputs(whole.case, whole.rules, 0))
        whole = whole.at(np.flatnonzero(steady))
    return _few(whole) if whole.inputs.size else None


@dataclass(frozen=True)
class _Kept:
    """Decides which probes of a row can be made and must keep their shape."""

    document: str
    version: str
    are_texts: bool

    @classmethod
    def of(cls, row: Baseline) -> _Kept:
        """Return the document, the version and the kind of inputs of a row."""
        return cls(row.case.document, row.case.version, row.rules.source.kind == "text")

    def keeps(self, probe: Probe) -> bool:
        """Whether a tensor can be made, and the document requires its shape to be kept.

        Texts can have no special layout, and at most ``LARGE`` elements in a dimension.
        """
        if self.are_texts and (probe.layout is not None or max(probe.shape, default=0) > LARGE):
            return False
        return tensor_rule(self.document, self.version, probe.shape).keeps_shape


def _keeps(row: Baseline, probe: Probe) -> bool:
    return _Kept.of(row).keeps(probe)


def _plan(row: Baseline, chosen: Iterable[Probe]) -> ProbePlan:
    """Plan those of the chosen probes that can be made and must keep their shape."""
    return ProbePlan.of([probe for probe in chosen if _keeps(row, probe)], row.inputs.size)


@lru_cache(ROAD_PLANS_KEPT)
def _road_plan(count: int, number: int, kept: _Kept) -> ProbePlan:
    """Plan the few probes of a further road; ``number`` chooses among some of them."""
    chosen = [probe for probe in road_probes(count, number) if kept.keeps(probe)]
    return ProbePlan.of(chosen, count)


def _call_plan(row: Baseline, is_alone: bool) -> ProbePlan:
    """Plan the probes of a call: all if it ``is_alone``, else a few that its case chooses."""
    from conformance.families.call.probes import call_probes

    chosen = [*call_probes(row.inputs.size)]
    if not is_alone:
        chosen = chosen[crc32(row.case.id.encode()) % BESIDE_CASTS :: BESIDE_CASTS]
    return _plan(row, chosen)


def _half(row: Baseline, is_full: bool) -> int | None:
    """Return which half of the inputs rows repeat while the other is alone; None for both ways."""
    return None if is_full else crc32(row.case.id.encode()) % HALVES


@lru_cache(PLANS_KEPT)
def _usual_plan(count: int, few_of: str, half: int | None, kept: _Kept) -> ProbePlan:
    """Plan the usual probes, or only a few if ``few_of`` names a pair whose shapes are costly."""
    chosen = few_probes(count, few_of) if few_of else probes(count, half)
    return ProbePlan.of([probe for probe in chosen if kept.keeps(probe)], count)
