"""Invariances: the answer to an element must not depend on its position, tensor, or layout."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from math import prod
from random import Random
from zlib import crc32

import numpy as np

from conformance.families import tensor_of
from conformance.families.cast.answer_changes import (
    AnswerChange,
    AnswerChanges,
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
from conformance.families.cast.probes import (
    DRAWS_OF_CALL,
    DRAWS_OF_ROAD,
    KIND_TURNS,
    LARGE,
    LISTED_TURNS,
    THREAD_TURNS,
    TURNED,
    alone,
    at_once,
    beside,
    cast_words,
    drawn,
    few_probes,
    in_turn,
    lasting,
    listed,
    neighbors,
    rewritten,
    shuffled,
    turn_of,
    whole_probes,
)
from conformance.families.cast.quick_inputs import MOST, few_inputs, telling_inputs
from conformance.judging.asking import Ask, Subject, in_step
from conformance.judging.probe import SHORT, Probe, ProbePlan
from conformance.judging.space import shrunk
from conformance.judging.verdicts import crashed, problem_of
from oracles.backend.replies import Answered, Crashed, Unanswered
from oracles.backend.requests import Road
from reports.drawn_tensors import DRAWS, FEW_SHAPES
from reports.findings.finding_text import counted
from reports.judgement import Judgement, Verdict
from reports.problems import BrokenPromise, Note, Problem, Unoffered
from specs.case_calls import receiver_of
from specs.cases import Case
from specs.editions import tensor_rule
from specs.formats import EXHAUSTIVE_BITS

PLANS_KEPT = 256
OTHER_TENSORS = "other tensors"
"""The requests that come before a tensor, if the backend answers it wrongly only after them."""


@dataclass(frozen=True)
class Invariances:
    """Checks that answers to a pair's inputs do not change with tensors, threads or other requests.

    ``known`` has the row answers to cases that were judged before, or why there are none.
    """

    subject: Subject
    cases: Sequence[Case]
    known: Mapping[Case, Baseline | NoBaseline] = field(default_factory=dict)

    @property
    def pair(self) -> str:
        """The dtypes as ``source/target``, as in the names of checks."""
        return f"{self.cases[0].source}/{self.cases[0].target}"

    def judge(self) -> Ask[Judgement]:
        """Return the judgement on the pair, under the case of its first problem.

        Without a problem it is under the case whose inputs are used; if no case has answers, it is
        under the first one and ``unsupported``.
        """
        whole = yield from self._first_baseline()
        if isinstance(whole, NoBaseline):
            reason = Unoffered(whole.reason)
            return judgement_on_pair(self.subject, self.cases[0], "unsupported", [reason])
        row, found = _few(whole), AnswerChanges()
        failure: ProbeFailedError | None = None
        try:
            yield from self._ask_all(whole, row, found)
            if found.forbidden:
                yield from self._shrink(found)
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

    def _ask_all(self, whole: Baseline, row: Baseline, found: AnswerChanges) -> Ask[None]:
        """Request a case's inputs again in other tensors; add changed answers to ``found``.

        ``row`` has the telling inputs of ``whole``. Unless few shapes are used, calls of the pair
        follow, and after a cast its other roads. Raises ``Unanswered`` or ProbeFailedError for a
        missing answer.
        """
        subject, count = self.subject, row.inputs.size
        is_call = receiver_of(row.case.document) is not None
        few_shapes = subject.few_shapes
        if self._has_turn("threads", THREAD_TURNS):
            many = subject.settings.asks_all(row.case)
            chance = self._chance(row, "threads")
            together = at_once(count, self.pair, chance, few_shapes=few_shapes, many=many)
            for probe, answer in (yield from answers_at_once(row, _plan(row, together))):
                found.note(row, probe, answer)
        asked = []
        # Each call is a request of its own, so only casts get the tensors that are listed.
        if few_shapes or not is_call:
            few_of = self.pair if few_shapes else ""
            turn = self._turn("listed", LISTED_TURNS)
            asked.append((row, _listed_plan(count, few_of, turn, _Kept.of(row))))
        layouts = whole_probes(whole.inputs.size)
        if few_shapes:
            layouts = layouts[:1]
        elif (turn := self._turn("layouts", KIND_TURNS)) is not None:
            layouts = layouts[turn : turn + 1]
        asked.append((whole, _plan(whole, layouts)))
        if self._is_full:
            asked.append((row, _plan(row, lasting())))
        if not few_shapes:
            if self._has_turn("memory", KIND_TURNS):
                asked.append((row, _plan(row, rewritten(count, self._chance(row, "memory")))))
            chance = self._chance(row, "draws")
            draws = partial(subject.settings.draws, row.case)
            number = draws(DRAWS_OF_CALL if is_call else DRAWS)
            asked.append((row, _plan(row, drawn(count, chance, number))))
            further = [by for by in (yield from self._call_rows(row)) if by is not row]
            if not is_call:
                further += map(_few, (yield from self._other_roads(whole.case)))
            for by in further:
                few = drawn(by.inputs.size, chance, draws(DRAWS_OF_ROAD))
                asked.append((by, _plan(by, few)))
        # A missing answer ends the check, so claimed cases come first. If telling inputs show a
        # change, changes of all inputs are not noted: there may be tens of thousands.
        asked.sort(key=lambda each: (not subject.claims(each[0].case), each[0] is whole))
        for by, probe, answer in (yield from changed_answers(asked, found.declined)):
            if by is not whole or not found.forbidden:
                found.note(by, probe, answer)
        if not (few_shapes or is_call):
            yield from self._ask_among_others(row, found)

    def _ask_among_others(self, row: Baseline, found: AnswerChanges) -> Ask[None]:
        """Request a row while another thread casts other pairs, and right after casts of these.

        Adds changed answers to ``found``; raises as ``_ask_all`` does.
        """
        asks_beside = self._has_turn("beside", THREAD_TURNS)
        asks_after = self._has_turn("after", KIND_TURNS)
        if not (asks_beside or asks_after):
            return
        others = neighbors(row.case, self._is_full)
        if asks_beside:
            chance, number = self._chance(row, "beside"), crc32(row.case.id.encode())
            meanwhile = others if self._is_full or not others else [others[number % len(others)]]
            for other in meanwhile:
                together = beside(row.inputs.size, cast_words(other), chance)
                plan = _plan(row, together)
                for probe, answer in (yield from answers_beside(row, plan, other)):
                    found.note(row, probe, answer)
        shaped = [case for case in self.cases if tensor_of(case) and not case.example]
        turns = in_turn(row, others, shaped[:1]) if asks_after else []
        if turns:
            for probe, answer in (yield from answers_in_turn(row, turns)):
                found.note(row, probe, answer)

    def _chance(self, row: Baseline, kind: str) -> Random:
        """Return a generator for a kind of tensors, the same whatever other kinds are asked."""
        edition = f"{row.case.document}:{row.case.version}"
        return Random(f"{edition}/{self.pair}/{kind}/{self.subject.settings.seed}")

    @property
    def _is_full(self) -> bool:
        return any(map(self.subject.settings.is_full, self.cases))

    def _turn(self, kind: str, turns: int) -> int | None:
        """Return which of ``turns`` parts of a kind of tensors to ask now; None if all."""
        settings = self.subject.settings
        if any(map(settings.asks_all, self.cases)):
            return None
        return turn_of(self.pair, kind, settings.seed, turns)

    def _has_turn(self, kind: str, turns: int) -> bool:
        """Return whether this seed asks a kind of tensors; one in ``turns`` does, a gate always."""
        return not self._turn(kind, turns)

    def _judged(
        self, whole: Baseline, row: Baseline, found: AnswerChanges, failure: ProbeFailedError | None
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
        limits = self._limits(found)
        if found.open:
            switch = yield from self._switch(simplest_open(found.open))
            text = describe_open_changes(found.open, row.inputs.size, switch)
            return self._judgement(row, "open", Note(text), *limits)
        return self._judgement(row, "conforms", *limits)

    def _limits(self, found: AnswerChanges) -> Iterator[Unoffered]:
        """Yield what a good verdict does not cover: tensors declined, and in a gate few shapes."""
        if found.declined:
            count = counted(len(found.declined), "tensor")
            yield Unoffered(f"declines {count}, for instance {found.declined[0]}")
        if self.subject.few_shapes and self.subject.settings.isolates_sweeps:
            yield Unoffered(FEW_SHAPES)

    def _further(
        self, whole: Baseline, first: AnswerChange, forbidden: Sequence[AnswerChange]
    ) -> Ask[list[Problem]]:
        """Return problems: a change of each rule but ``first``'s, then changes that all seeds find.

        So an acceptance of one rule excuses no other, and two runs can be compared although each
        has drawn inputs and tensors of its own.
        """
        rules = by_rule(forbidden)
        others = [
            smallest(self.subject, changes) for rule, changes in rules.items() if rule != first.rule
        ]
        compared: list[AnswerChange] = []
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

    def _turned(self, change: AnswerChange, row: Baseline) -> Ask[list[AnswerChange]]:
        """Return the forbidden changes if a row's inputs take turns at each position of a tensor.

        The tensors are that of ``change``, if it is small, and a short row unless few shapes are
        used. A missing answer ends the search.
        """
        found, size = AnswerChanges(), prod(change.probe.shape)
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

    def _shrink(self, found: AnswerChanges) -> Ask[None]:
        """Ask simpler tensors than those with forbidden changes; add their changes to ``found``.

        Does nothing if few shapes are used. Unless its row has more than ``MOST`` inputs, a tensor
        that is right when requested again gets ``OTHER_TENSORS`` in ``found`` as what came before.
        """
        if self.subject.few_shapes:
            return
        is_required = any(one.is_required for one in found.forbidden)
        plain = [each for each in found.forbidden if each.is_required or not is_required]
        for changes in _by_row(plain):
            first = smallest(self.subject, changes)
            row, place = first.row, first.input
            starts = [first.probe]
            if is_cut := row.inputs.size > MOST:
                others = sorted({each.input for each in changes} - {first.input})
                row, place, starts = row.at(np.array([first.input, *others][:MOST])), 0, []
            starts.append(replace(first.probe, first=place, contents="one"))

            def wrong_ones(probes: Sequence[Probe], row: Baseline = row) -> Ask[list[Probe]]:
                answers = yield from answers_to(row, _plan(row, probes))
                noted = [(probe, found.note(row, probe, answer)) for probe, answer in answers]
                return [
                    probe
                    for probe, changes in noted
                    if any(one.is_required or not is_required for one in changes)
                ]

            if (yield from shrunk(starts, wrong_ones)) is None and not is_cut:
                after = replace(first.probe, after=OTHER_TENSORS)
                found.forbidden = [
                    replace(each, probe=after) if each.probe == first.probe else each
                    for each in found.forbidden
                ]

    def _other_roads(self, first: Case) -> Ask[list[Baseline]]:
        """Return the baseline of one cast of the pair for each road other than that of ``first``.

        Open casts and those without answers are left out. A cast is a road of its own if the
        adapter names no road for it, or is not believed.
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
        """Return a baseline of telling inputs for each call of the pair that the backend answers.

        The call of ``row`` has ``row`` itself. Other calls are left out if they are open.
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

    def _switch(self, change: AnswerChange) -> Ask[str]:
        """Describe where the answer to the input of ``change`` first differs as rows of it grow.

        Return an empty text if it never differs, if a row gets no usable answer, or if few shapes
        are used.
        """
        if self.subject.few_shapes:
            return ""
        plan = _plan(change.row, alone(change.input, SHORT))
        answers = yield from answers_to(change.row, plan)
        try:
            return first_switch(change, answers)
        except (ProbeFailedError, Unanswered):
            return ""


def _few(row: Baseline) -> Baseline:
    return row.at(telling_inputs(row.rules, row.inputs, row.expected))


def _by_row(changes: Iterable[AnswerChange]) -> list[list[AnswerChange]]:
    """Group changes by row, without those of tensors that other requests may have affected."""
    by_row: dict[int, list[AnswerChange]] = {}
    for each in changes:
        if not (each.probe.is_at_once or each.probe.is_rewritten or each.probe.after):
            by_row.setdefault(id(each.row), []).append(each)
    return [*by_row.values()]


def _row_of_every_seed(whole: Baseline) -> Baseline | None:
    """Return the telling inputs that a case has with every seed; None if there are none."""
    source = whole.rules.source
    if source.kind == "text" or source.bits > EXHAUSTIVE_BITS:
        steady = np.isin(whole.inputs, few_inputs(whole.case, whole.rules, 0))
        whole = whole.at(np.flatnonzero(steady))
    return _few(whole) if whole.inputs.size else None


@dataclass(frozen=True)
class _Kept:
    """A key for caches: on it depends which probes can be made and must keep their shape."""

    document: str
    version: str
    are_texts: bool

    @classmethod
    def of(cls, row: Baseline) -> _Kept:
        """Return the ``_Kept`` of a row's document, version and kind of inputs."""
        return cls(row.case.document, row.case.version, row.rules.source.kind == "text")

    def keeps(self, probe: Probe) -> bool:
        """Return whether a tensor can be made, and the document requires its shape to be kept.

        Texts can have no special layout, and at most ``LARGE`` elements in a dimension.
        """
        if self.are_texts and (probe.layout is not None or max(probe.shape, default=0) > LARGE):
            return False
        return tensor_rule(self.document, self.version, probe.shape).keeps_shape


def _plan(row: Baseline, chosen: Iterable[Probe]) -> ProbePlan:
    """Plan those of the chosen probes that can be made and must keep their shape."""
    kept = _Kept.of(row)
    return ProbePlan.of([probe for probe in chosen if kept.keeps(probe)], row.inputs.size)


@lru_cache(PLANS_KEPT)
def _listed_plan(count: int, few_of: str, turn: int | None, kept: _Kept) -> ProbePlan:
    """Plan a shuffled row and the listed probes whose turn it is; all of these if it is None.

    If ``few_of`` names a pair, plan only a few probes of its one shape. Those that ``kept`` does
    not keep are left out.
    """
    if few_of:
        chosen = [*few_probes(count, few_of)]
    else:
        chosen = [*listed(count)][slice(turn, None, None if turn is None else LISTED_TURNS)]
        chosen.append(shuffled(count))
    return ProbePlan.of([probe for probe in chosen if kept.keeps(probe)], count)
