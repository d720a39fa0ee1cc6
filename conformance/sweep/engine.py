"""The sweep: one cast of many inputs, judged by every ruling that shares it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from conformance.driver import BackendJudge, drive
from conformance.families.cast.refusals import ask_and_locate, located
from conformance.judging.values import Departed
from conformance.judging.verdicts import crash_message, problem_of, script
from conformance.sweep.device_blocks import BLOCK, device_blocks
from conformance.sweep.plan import joined
from conformance.sweep.road_answers import FEW_PARTS, Chunk, RoadAnswers, prepared
from oracles.backend.replies import (
    Answered,
    Crashed,
    Declined,
    Malformed,
    NoAnswer,
    Raised,
    Unanswered,
    described,
    no_answer,
)
from oracles.protocol import Bits
from oracles.reference.expect_by_staircase import branch_indices_of, last_of_step, open_inputs
from oracles.reference.staircase import staircase
from oracles.reference.sweep_inputs import Dense, InputSequence
from reports.grading.allowed_answers import ALLOWED, Grades, RuleKey, rule_groups
from reports.grading.chunk_check import ChunkCheck, advance
from reports.grading.chunk_comparison import ChunkComparison, fastest_comparison
from reports.grading.chunk_table import table
from reports.grading.divergences import Failures, FailureTally, find_failures, simplest_between
from reports.grading.failure_runs import one_run
from reports.grading.staircase_grades import grade_by_staircase
from reports.grading.uniform_checksums import uniform_checksums
from reports.judgement import Judgement, Verdict
from reports.problems import Died, Note, Problem
from specs.cases import Case
from specs.ruling import ruling

FEW = 1 << 6
"""The most wrong answers of a part of a chunk that wait to be recorded with those of others.

Parts of at most this many inputs are graded input by input."""
MOST_WAITING = 1 << 6
"""With this many parts whose wrong answers wait, all are recorded."""
BLOCK_OF_CHUNK = 1 << 13
"""Inputs of each block into which a chunk is cut if it cannot be graded as a whole."""
REPORT_EVERY = 1 << 20
"""A sweep reports progress after this many inputs, at the latest after one more call."""

CountAdvance = Callable[[int, int], None]
"""Receives how many inputs were judged since its last call, and how many answers were wrong."""


class _Graded(NamedTuple):
    """Inputs, the index of the ruling's branch that takes each, their answers and their grades."""

    inputs: Bits
    branch_indices: NDArray[np.uint8]
    answers: Bits
    grades: Grades


@dataclass
class _Uniform:
    """Consecutive inputs of one step that share an answer, and as ``key`` the rule this breaks.

    The ``key`` is None if the answer is allowed.
    """

    first: int
    last: int
    end: int
    """The last input of the step."""
    answer: int
    key: RuleKey | None

    def wrong(self, inputs: int) -> int:
        """Return how many of the next ``inputs`` answers are wrong: all or 0, as they are equal."""
        return inputs if self.key is not None else 0

    def may_continue(self, first: int, last: int, answer: Any) -> bool:
        """Whether ``first`` to ``last`` are the step's next inputs, with the same ``answer``."""
        return self.last + 1 == first and last <= self.end and bool(self.answer == answer)


class RulingCheck:
    """Judges the answers of one road by one ruling, chunk by chunk.

    ``is_dense`` says that the inputs are consecutive patterns, ``is_alone`` that no other ruling
    judges the same answers.
    """

    def __init__(
        self,
        judge: BackendJudge,
        case: Case,
        is_dense: bool,
        comparison: ChunkComparison,
        is_alone: bool,
    ) -> None:
        self.case = case
        self.rules = ruling(case)
        self.found = Judgement(
            case.id, judge.backend.name, judge.subject.graded(case, (), self.rules.is_open)
        )
        self._judge = judge
        self._is_dense = is_dense
        self._is_alone = is_alone
        self.comparison = comparison
        self._stairs = staircase(self.rules)
        self.right: ChunkCheck = lambda first, answers, inputs, step: False
        """Whether a table shows that the answers to consecutive inputs are all allowed.

        Sources of more than 32 bits have no table, so that it never does."""
        if self.rules.source.bits <= 32:
            self.right = comparison.check_of(table(self.rules))
        self.ended = False
        self._opened = 0
        self._failures = FailureTally(self.rules)
        self._waiting: list[_Graded] = []
        self.uniform: _Uniform | None = None
        # Under a gate a backend's process could write to the cache folder, so that is not used.
        is_stored = not judge.settings.isolates_sweeps
        self._checksums = uniform_checksums(comparison.checksum_of_row, is_stored)

    def look(self, inputs: Bits, answers: Bits) -> int:
        """Grade every answer, record the wrong ones, and return how many are wrong."""
        grades, branch_indices = grade_by_staircase(
            self._stairs, inputs, answers, self.comparison.compare_with_steps
        )
        if not self._is_dense:
            self._opened += int(np.isin(branch_indices, self.rules.open_branches).sum())
        fails = grades != ALLOWED
        wrong = int(np.count_nonzero(fails))
        if wrong:
            self._add_uniform()
            graded = _Graded(inputs, branch_indices, answers, grades)
            if wrong > FEW:
                self._add_waiting()
                self._gather(graded)
            else:
                where = np.flatnonzero(fails)
                self._waiting.append(_Graded(*(column[where] for column in graded)))
                if len(self._waiting) == MOST_WAITING:
                    self._add_waiting()
        return wrong

    def _add_waiting(self) -> None:
        """Record the wrong answers of all waiting parts at once, as fast as those of one part."""
        waiting, self._waiting = self._waiting, []
        if waiting:
            self._gather(_Graded(*map(np.concatenate, zip(*waiting, strict=True))))

    def _gather(self, graded: _Graded) -> None:
        for each, _ in find_failures(self.rules, *graded, self.comparison.gather):
            self._failures.add(each)

    def look_at_chunk(self, chunk: Chunk) -> int:
        """Grade the answers of a chunk, at once if they are alike; return how many are wrong."""
        at_once = self._continued(chunk) if self._is_alone else self.look_at_once(chunk)
        if at_once is not None:
            return at_once
        if self.right(chunk.first, chunk.answers, *chunk.to_advance()):
            self._add_uniform()
            return 0
        at_once = self.look_at_once(chunk) if self._is_alone else None
        return self._look_at_steps(chunk) if at_once is None else at_once

    def _continued(self, chunk: Chunk) -> int | None:
        """Add a chunk to the inputs last graded at once; return how many of its answers are wrong.

        Returns None, and adds nothing, if there are no such inputs, or if the chunk does not
        continue them on the same step with the same answer.
        """
        before = self.uniform
        if before is None or not before.may_continue(chunk.first, chunk.last, chunk.answers[0]):
            return None
        if chunk.uniform_answer is None:
            return None
        before.last = chunk.last
        return before.wrong(chunk.answers.size)

    def _look_at_steps(self, chunk: Chunk) -> int:
        """Grade a chunk by parts of one step and one answer each; return how many are wrong.

        If there are more than a few such parts, it is graded block by block.
        """
        if (changes := chunk.changes) is None:
            return self._look_at_blocks(chunk)
        cuts = set(changes)
        first = chunk.first
        for _ in range(FEW_PARTS):
            first = last_of_step(self._stairs, first) + 1
            if first > chunk.last:
                edges = [0, *sorted(cuts), chunk.answers.size]
                return sum(self._look_at_step(chunk, *part) for part in pairwise(edges))
            cuts.add(first - chunk.first)
        return self._look_at_blocks(chunk)

    def _look_at_step(self, chunk: Chunk, begin: int, end: int) -> int:
        """Grade a part of one step and one answer, large ones at once; return how many are wrong.

        The part has the inputs from place ``begin`` to before place ``end`` of the chunk.
        """
        if end - begin <= FEW:
            return self._look_at_part(chunk, begin, end)
        return self.look_at_once(chunk.part(begin, end)) or 0

    def _look_at_blocks(self, chunk: Chunk) -> int:
        """Grade a chunk block by block, and return how many answers are wrong.

        Most blocks are right as a whole, or are graded at once. All other blocks between two of
        these are graded together, because a chunk may be wrong almost everywhere.
        """
        wrong = begin = 0
        for at in range(0, chunk.answers.size, BLOCK_OF_CHUNK):
            block = chunk.part(at, at + BLOCK_OF_CHUNK)
            is_right = self.right(block.first, block.answers, None, 0)
            if is_right or block.uniform_answer is not None:
                wrong += self._look_at_part(chunk, begin, at)
                at_once = 0 if is_right else self.look_at_once(block)
                begin = at if at_once is None else at + BLOCK_OF_CHUNK
                wrong += at_once or 0
        return wrong + self._look_at_part(chunk, begin, chunk.answers.size)

    def _look_at_part(self, chunk: Chunk, begin: int, end: int) -> int:
        if begin == end:
            return 0
        part = chunk.part(begin, end)
        return self.look(part.inputs, part.answers)

    def look_at_once(self, chunk: Chunk) -> int | None:
        """Grade a chunk if it has one step and one answer; return how many are wrong, else None.

        Large parts of a source overflow, and overflow errors usually share one answer. A right
        answer is remembered only if several rulings judge the road: for one ruling, a table is as
        fast.
        """
        if (answer := chunk.uniform_answer) is None:
            return None
        if (continued := self._continued(chunk)) is not None:
            return continued
        end = last_of_step(self._stairs, chunk.first)
        if end < chunk.last:
            return None
        key = self._key(chunk.first, chunk.answers[:1])
        if key is None and self._is_alone:
            return 0
        self._add_uniform()
        self.uniform = _Uniform(chunk.first, chunk.last, end, answer, key)
        return self.uniform.wrong(chunk.answers.size)

    def _key(self, first: int, answer: Bits) -> RuleKey | None:
        """Return the rule that ``answer`` to the input ``first`` breaks; None if it breaks none."""
        if self.right(first, answer, None, 0):
            return None
        one = np.array([first], self.rules.source.storage)
        grades, branch_indices = grade_by_staircase(
            self._stairs, one, answer, self.comparison.compare_with_steps
        )
        groups = rule_groups(self.rules)
        [group] = groups.of(grades, branch_indices).tolist()
        return groups.keys[group - 1] if group else None

    def _add_uniform(self) -> None:
        """Record the wrong answers to the inputs last graded at once, and forget these inputs."""
        each, self.uniform = self.uniform, None
        if each is None or each.key is None:
            return
        self._add_waiting()
        count = each.last - each.first + 1
        checksum = self._checksums.of(each.first, count, each.answer)
        runs = one_run(each.first, each.last, each.answer, checksum)
        smallest = simplest_between(self.rules.source, each.first, each.last)
        self._failures.add(Failures(each.key, count, runs, smallest, each.answer))

    def _add(
        self,
        verdict: Verdict,
        problems: tuple[Problem, ...] = (),
        inputs: int = 0,
        open_inputs: int = 0,
    ) -> None:
        more = replace(
            self.found,
            verdict=verdict,
            problems=problems,
            inputs=inputs,
            open_inputs=open_inputs,
        )
        self.found = joined(self.found, more)

    def look_at_answerable(self, inputs: Bits, error: Exception) -> int:
        """After ``error``, request again the inputs that need an answer; return how many are wrong.

        If all inputs need one, the error becomes the judgement, as does an error or a malformed
        answer to the second request. Raises ``Unanswered`` if the backend declines that request or
        crashes.
        """
        branch_indices = branch_indices_of(self._stairs, inputs)
        is_open = np.isin(branch_indices, self.rules.open_branches)
        asked = inputs[~(is_open | np.isin(branch_indices, self.rules.refused_branches))]
        self._opened += int(np.count_nonzero(is_open))
        if asked.size == inputs.size:
            self.end(drive(located(self.case, inputs, error), self._judge.client))
            return 0
        if is_open.any():
            note = Note(f"open inputs: {described(error)}")
            self._add(self.found.verdict, (note,))
        if not asked.size:
            return 0
        match drive(ask_and_locate(self.case, asked), self._judge.client):
            case Answered(answers):
                return self.look(asked, answers)
            case Raised() | Malformed() as missing:
                self.end(missing)
                return 0
            case Departed():
                raise AssertionError("only calls depart, and they are not swept")
            case missing:
                raise Unanswered(missing)

    def end(self, missing: NoAnswer) -> None:
        """Make a missing answer the judgement on all inputs of this check, and mark it as ended."""
        verdict, problem = self._judge.subject.failed(self.case), problem_of(missing)
        match missing:
            case Declined():
                verdict = "unsupported"
            case Crashed():
                verdict, problem = "crashed", Died(crash_message(self.rules.source, missing))
        self.ended = True
        self.uniform = None
        self.found = Judgement(self.case.id, self.found.backend, verdict, (problem,))

    def finished(self, lo: int, hi: int) -> Judgement:
        """Return the judgement on the inputs numbered ``lo`` to before ``hi``, with a script.

        The script shows the smallest input of the worst divergence; it is empty if there is no
        divergence, or if the check has ended early.
        """
        if self.ended:
            return self.found
        self._add_uniform()
        self._add_waiting()
        for each in self._failures.divergences():
            verdict = self._judge.subject.graded(self.case, {each.level}, self.rules.is_open)
            self._add(verdict, (each,))
        opened = open_inputs(self._stairs, lo, hi) if self._is_dense else self._opened
        self._add(self.found.verdict, inputs=hi - lo, open_inputs=opened)
        self.found = replace(self.found, reaches_ends=self._is_dense)
        if not self.found.divergences:
            return self.found
        worst = self.found.divergences[0]
        smallest = np.array([worst.smallest], self.rules.source.storage)
        shown = script(self._judge.subject, self.case, smallest, worst.answer)
        return replace(self.found, reproduction=drive(shown, self._judge.client))


def sweep(
    judge: BackendJudge,
    cases: list[Case],
    visit: InputSequence,
    lo: int,
    hi: int,
    comparison: ChunkComparison,
    progress: CountAdvance,
) -> list[Judgement]:
    """Request inputs ``lo`` to before ``hi`` for all cases together; return a judgement for each.

    The ``cases`` have different rulings, and share the road that answers. A missing answer that no
    check can handle, such as a crash, becomes the judgement on every case whose check has not
    ended.
    """
    is_dense = isinstance(visit, Dense)
    is_alone = len(cases) == 1
    checks = [RulingCheck(judge, case, is_dense, comparison, is_alone) for case in cases]
    try:
        if lo < hi:
            _sweep(judge, checks, visit, lo, hi, progress)
    except Unanswered as unanswered:
        for check in checks:
            if not check.ended:
                check.end(unanswered.answer)
    return [check.finished(lo, hi) for check in checks]


def _sweep(
    judge: BackendJudge,
    checks: list[RulingCheck],
    visit: InputSequence,
    lo: int,
    hi: int,
    progress: CountAdvance,
) -> None:
    """Judge the answers block by block on the backend's device, or all on the host.

    The host judges all if ``device_blocks`` returns None. It judges a block again if an answer on
    the device may be wrong or is missing.
    """
    answers_of_road = partial(RoadAnswers, checks[0].rules, checks[0].comparison, visit)

    def road(begin: int, end: int) -> RoadAnswers:
        calls = partial(prepared, judge.backend.oracle, checks[0].case, visit, begin, end)
        return answers_of_road(end - begin, calls)

    device = device_blocks(judge.backend.oracle, checks[0].case, visit, min(BLOCK, hi - lo))
    if device is None:
        _sweep_on_host(road(lo, hi), checks, isinstance(visit, Dense), lo, hi, progress)
        return
    for begin in range(lo, hi, BLOCK):
        end = min(begin + BLOCK, hi)
        checks = [check for check in checks if not check.ended]
        if not checks:
            return
        if not device.ask(begin, end - begin):
            # The host asks again, chunk by chunk, and so finds which inputs raise an error.
            _sweep_on_host(road(begin, end), checks, True, begin, end, progress)
        elif suspects := [each for each in checks if not device.all_right(each.rules)]:
            fetched = answers_of_road(end - begin, lambda _: device.fetched())
            _sweep_on_host(fetched, suspects, True, begin, end, progress)
        else:
            progress(end - begin, 0)


def _sweep_on_host(
    road: RoadAnswers,
    checks: list[RulingCheck],
    is_dense: bool,
    lo: int,
    hi: int,
    progress: CountAdvance,
) -> None:
    """Judge the answers of a road chunk by chunk, and report counts to ``progress``.

    Raises ``Unanswered`` if the backend declines, crashes or returns a malformed answer. An error
    is left to the checks, which request again the inputs that need an answer. It returns early,
    without a last report, if that ends all checks.
    """
    at, visited, wrong = lo, 0, 0
    while at < hi:
        if visited >= REPORT_EVERY:
            progress(visited, wrong)
            visited = wrong = 0
        if is_dense:
            begun = at
            at, failed = _passed_over(road, checks, begun)
            visited, wrong = visited + at - begun, wrong + failed
            if at - begun >= REPORT_EVERY:
                continue
        count = min(road.call_size, hi - at)
        missing = None
        try:
            answers = road.ask(at, count)
        except BaseException as problem:
            missing = no_answer(problem)
        match missing:
            case None:
                chunk = road.chunk(at, answers)
                for check in checks:
                    if is_dense:
                        wrong += check.look_at_chunk(chunk)
                    else:
                        wrong += check.look(chunk.inputs, answers)
            case Raised(error):
                inputs = road.inputs(at, count)
                wrong += sum(check.look_at_answerable(inputs, error) for check in checks)
                checks = [check for check in checks if not check.ended]
                if not checks:
                    return
            case _:
                raise Unanswered(missing)
        visited += count
        at += count
    progress(visited, wrong)


def _passed_over(road: RoadAnswers, checks: list[RulingCheck], first: int) -> tuple[int, int]:
    """Pass over inputs about which no check finds anything new.

    That is where answers are right, or continue the inputs that a check last graded at once, which
    then include them. Return the number of the first input after them, and how many of their
    answers are wrong.
    """
    stretches = [check.uniform for check in checks if check.uniform is not None]
    passes = [check.right for check in checks if check.uniform is None]
    if len(passes) > 1:
        passes = [partial(_all_pass, passes)]
    if stretches:
        answer = stretches[0].answer
        if not all(each.may_continue(first, first, answer) for each in stretches):
            return first, 0
        end = min(each.end for each in stretches)
        is_uniform = checks[0].comparison.is_uniform
        passes = [partial(_continue_stretch, passes, is_uniform, end, answer)]
    passed = road.pass_over(first, first + REPORT_EVERY, passes[0])
    for each in stretches:
        each.last = passed - 1
    return passed, sum(each.wrong(passed - first) for each in stretches)


def _all_pass(
    passes: list[ChunkCheck], first: int, answers: Bits, inputs: Bits | None, step: int
) -> bool:
    """Whether answers pass all of ``passes``; the first check advances ``inputs`` by ``step``."""
    for is_right in passes:
        if not is_right(first, answers, inputs, step):
            return False
        inputs = None
    return True


def _continue_stretch(
    passes: list[ChunkCheck],
    is_uniform: Callable[[Bits, Bits | None, int], bool],
    end: int,
    answer: int,
    first: int,
    answers: Bits,
    inputs: Bits | None,
    step: int,
) -> bool:
    """Whether all answers equal ``answer``, go no further than ``end``, and pass all checks.

    The inputs are advanced by ``step`` in any case.
    """
    if first + answers.size - 1 > end or answers[0] != answer:
        advance(inputs, step)
        return False
    if not is_uniform(answers, inputs, step):
        return False
    return all(is_right(first, answers, None, 0) for is_right in passes)


def swept(
    judge: BackendJudge,
    cases: list[Case],
    inputs: InputSequence,
    lo: int,
    hi: int,
    progress: CountAdvance,
) -> list[Judgement]:
    """Judge cases on inputs ``lo`` to before ``hi`` by ``sweep``, with the fastest comparison."""
    return sweep(judge, cases, inputs, lo, hi, fastest_comparison(), progress)
