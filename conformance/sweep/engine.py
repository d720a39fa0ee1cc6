"""The sweep: one cast of many inputs, judged by every ruling that shares it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from conformance.judging.answers import (
    Answered,
    Crashed,
    Declined,
    Malformed,
    NoAnswer,
    Raised,
    Unanswered,
    attempt,
    checked,
    described,
    no_answer,
    value_of,
)
from conformance.judging.backend_judge import BackendJudge
from conformance.judging.raising_inputs import crash_message
from conformance.judging.reproduction import reproduction, tensor_that_shows
from conformance.sweep.device_blocks import BLOCK, device_blocks
from conformance.sweep.joining import joined
from oracles.bound_sweep import BoundSweep, call_size
from oracles.protocol import Bits, Oracle, Swept, WithSweep
from oracles.reference.staircase import staircase
from oracles.reference.staircase_lookup import branch_indices_of, last_of_step, open_inputs
from oracles.reference.sweep_inputs import Dense, InputSequence
from reports.diff.chunk_comparison import ChunkComparison
from reports.diff.chunk_table import table
from reports.diff.divergences import Failures, FailureTally, find_failures, simplest_between
from reports.diff.failure_runs import one_run
from reports.diff.grades import ALLOWED, Key, rule_groups
from reports.diff.judgement import Divergence, Judgement
from reports.diff.staircase_grades import grade_by_staircase
from reports.diff.uniform_checksums import uniform_checksums
from reports.diff.verdicts import Verdict
from specs.cases import Case
from specs.ruling import ruling

SAMPLED_CALL = 1 << 19
"""Inputs of a call where they are not consecutive: each call has to look them up."""
BLOCK_OF_CHUNK = 1 << 13
"""Inputs of a block, if a chunk is neither right nor wrong as a whole."""
REPORT_EVERY = 1 << 20
"""Inputs after which a sweep reports its progress, at the latest one call later."""

Progress = Callable[[int, int], None]
"""Receives how many inputs were visited since its last call, and how many answers were wrong."""


class _Chunk:
    """Inputs from number ``first`` on with their answers, and what all rulings share of them.

    It is computed when it is first needed, the inputs too: a backend of another process makes its
    own.
    """

    def __init__(
        self,
        first: int,
        answers: Bits,
        make_inputs: Callable[[], Bits],
        comparison: ChunkComparison,
    ) -> None:
        self.first, self.answers = first, answers
        self.last = first + answers.size - 1
        self._make_inputs, self._comparison = make_inputs, comparison

    def part(self, begin: int, end: int) -> _Chunk:
        """The inputs between two places."""
        answers = self.answers[begin:end]
        return _Chunk(self.first + begin, answers, lambda: self.inputs[begin:end], self._comparison)

    @cached_property
    def inputs(self) -> Bits:
        """The inputs as an array."""
        return self._make_inputs()

    @cached_property
    def uniform_answer(self) -> int | None:
        """The answer to all inputs, or None if they have several."""
        return int(self.answers[0]) if self._comparison.is_uniform(self.answers) else None


@dataclass
class _Uniform:
    """Consecutive inputs of one step that share one wrong answer, and the rule that it breaks."""

    first: int
    last: int
    end: int
    """The last input of the step."""
    answer: int
    key: Key

    def continues_with(self, chunk: _Chunk) -> bool:
        """Whether other inputs are the next ones of this step and have this answer."""
        is_next = self.last + 1 == chunk.first and chunk.last <= self.end
        return is_next and self.answer == chunk.uniform_answer


class RulingCheck:
    """Judges the answers of one road by one ruling, chunk by chunk."""

    def __init__(
        self, judge: BackendJudge, case: Case, is_dense: bool, comparison: ChunkComparison
    ) -> None:
        self.case = case
        self.rules = ruling(case)
        self.found = Judgement(
            case.id, judge.backend.name, judge.graded(case, set(), self.rules.is_open)
        )
        self._judge = judge
        self._is_dense = is_dense
        self.comparison = comparison
        self._stairs = staircase(self.rules)
        self.right: Callable[[int, Bits], bool] = lambda first, answers: False
        """Whether a table shows that the answers to consecutive inputs are all allowed."""
        if self.rules.source.bits <= 32:
            self.right = comparison.check_of(table(self.rules))
        self.ended = False
        self._opened = 0
        self._failures = FailureTally(self.rules)
        self.uniform: _Uniform | None = None
        # Under a gate a backend's process could write to the cache folder, so that is not used.
        is_stored = not judge.settings.isolates_sweeps
        self._checksums = uniform_checksums(comparison.checksum_of_row, is_stored)

    def look(self, inputs: Bits, answers: Bits) -> int:
        """Grade every answer, record the wrong ones, and return how many there are."""
        grades, branch_indices = grade_by_staircase(
            self._stairs, inputs, answers, self.comparison.compare_with_steps
        )
        if not self._is_dense:
            self._opened += int(np.isin(branch_indices, self.rules.open_branches).sum())
        wrong = int(np.count_nonzero(grades != ALLOWED))
        if wrong:
            self._add_uniform()
            for each, _ in find_failures(
                self.rules, inputs, branch_indices, answers, grades, self.comparison.gather
            ):
                self._failures.add(each)
        return wrong

    def look_at_chunk(self, chunk: _Chunk) -> int:
        """Grade consecutive inputs at once if they are alike, otherwise block by block."""
        if (at_once := self._continued(chunk)) is not None:
            return at_once
        if self.right(chunk.first, chunk.answers):
            return 0
        at_once = self.look_at_once(chunk)
        return self._look_at_blocks(chunk) if at_once is None else at_once

    def _continued(self, chunk: _Chunk) -> int | None:
        """Add the inputs to the wrong ones before them if they are on one step; else None."""
        before = self.uniform
        if before is None or not before.continues_with(chunk):
            return None
        before.last = chunk.last
        return chunk.answers.size

    def _look_at_blocks(self, chunk: _Chunk) -> int:
        """Grade the blocks that may be wrong; most blocks are right, or graded at once.

        Others that are neighbors are graded together: a chunk may be wrong almost everywhere.
        """
        wrong = begin = 0
        for at in range(0, chunk.answers.size, BLOCK_OF_CHUNK):
            block = chunk.part(at, at + BLOCK_OF_CHUNK)
            is_right = self.right(block.first, block.answers)
            if is_right or block.uniform_answer is not None:
                wrong += self._look_at_part(chunk, begin, at)
                at_once = 0 if is_right else self.look_at_once(block)
                begin = at if at_once is None else at + BLOCK_OF_CHUNK
                wrong += at_once or 0
        return wrong + self._look_at_part(chunk, begin, chunk.answers.size)

    def _look_at_part(self, chunk: _Chunk, begin: int, end: int) -> int:
        part = chunk.part(begin, end)
        return self.look(part.inputs, part.answers) if begin < end else 0

    def look_at_once(self, chunk: _Chunk) -> int | None:
        """Grade consecutive inputs of one step with one answer at once; None for any others.

        Large parts of a source overflow, and overflow errors usually share one answer.
        """
        if (answer := chunk.uniform_answer) is None:
            return None
        if (continued := self._continued(chunk)) is not None:
            return continued
        end = last_of_step(self._stairs, chunk.first)
        if end < chunk.last:
            return None
        one = np.array([chunk.first], self.rules.source.storage)
        grades, branch_indices = grade_by_staircase(self._stairs, one, chunk.answers[:1])
        groups = rule_groups(self.rules)
        [group] = groups.of(grades, branch_indices).tolist()
        if not group:
            return 0
        self._add_uniform()
        self.uniform = _Uniform(chunk.first, chunk.last, end, answer, groups.keys[group - 1])
        return chunk.answers.size

    def _add_uniform(self) -> None:
        """Record the wrong answers to the last stretch of inputs that were graded at once."""
        if (each := self.uniform) is None:
            return
        self.uniform = None
        count = each.last - each.first + 1
        checksum = self._checksums.of(each.first, count, each.answer)
        runs = one_run(each.first, each.last, each.answer, checksum)
        smallest = simplest_between(self.rules.source, each.first, each.last)
        self._failures.add(Failures(each.key, count, runs, smallest, each.answer))

    def _add(
        self,
        verdict: Verdict,
        divergences: tuple[Divergence, ...] = (),
        message: str = "",
        inputs: int = 0,
        open_inputs: int = 0,
    ) -> None:
        more = replace(
            self.found,
            verdict=verdict,
            message=message,
            inputs=inputs,
            open_inputs=open_inputs,
            divergences=divergences,
        )
        self.found = joined(self.found, more)

    def look_without_open(self, inputs: Bits, error: Exception) -> int:
        """Judge a backend that raised an error by the inputs that are not open."""
        is_open = np.isin(branch_indices_of(self._stairs, inputs), self.rules.open_branches)
        asked = inputs[~is_open]
        self._opened += int(np.count_nonzero(is_open))
        if asked.size == inputs.size:
            self.end(self._judge.located(self.case, self.rules, inputs, error))
            return 0
        if asked.size < inputs.size:
            self._add(self.found.verdict, message=f"open inputs: {described(error)}")
        if not asked.size:
            return 0
        match self._judge.ask_and_locate(self.case, self.rules, asked):
            case Answered(answers):
                return self.look(asked, answers)
            case Raised() | Malformed() as missing:
                self.end(missing)
                return 0
            case missing:
                raise Unanswered(missing)

    def end(self, missing: NoAnswer) -> None:
        """Give up, and count nothing of a part that could not be asked to its end."""
        verdict, text = self._judge.failed(self.case), missing.text
        match missing:
            case Declined():
                verdict = "unsupported"
            case Crashed():
                verdict, text = "crashed", crash_message(self.rules.source, missing)
        self.ended = True
        self.uniform = None
        self.found = Judgement(self.case.id, self.found.backend, verdict, text)

    def finished(self, lo: int, hi: int) -> Judgement:
        """The judgement, with a script for the smallest input of the worst divergence."""
        if self.ended:
            return self.found
        self._add_uniform()
        for each in self._failures.divergences():
            verdict = self._judge.graded(self.case, {each.level}, self.rules.is_open)
            self._add(verdict, (each,))
        opened = open_inputs(self._stairs, lo, hi) if self._is_dense else self._opened
        self._add(self.found.verdict, inputs=hi - lo, open_inputs=opened)
        self.found = replace(self.found, reaches_ends=self._is_dense)
        if not self.found.divergences:
            return self.found
        backend, worst = self._judge.backend, self.found.divergences[0]
        smallest = np.array([worst.smallest], self.rules.source.storage)
        shown = tensor_that_shows(backend.oracle, self.case, smallest, worst.answer)
        script = reproduction(backend, self.case, shown)
        return replace(self.found, reproduction=script)


def sweep(
    judge: BackendJudge,
    cases: list[Case],
    visit: InputSequence,
    lo: int,
    hi: int,
    comparison: ChunkComparison,
    progress: Progress,
) -> list[Judgement]:
    """Ask some inputs of a visit once, and judge them by the rulings of all cases on the road."""
    is_dense = isinstance(visit, Dense)
    checks = [RulingCheck(judge, case, is_dense, comparison) for case in cases]
    try:
        if lo < hi:
            _sweep(judge, checks, visit, lo, hi, progress)
    except Unanswered as unanswered:
        for check in checks:
            check.end(unanswered.answer)
    return [check.finished(lo, hi) for check in checks]


def _sweep(
    judge: BackendJudge,
    checks: list[RulingCheck],
    visit: InputSequence,
    lo: int,
    hi: int,
    progress: Progress,
) -> None:
    """Judge blocks on the backend's device, and on the host those that may be wrong, or all."""

    def road(begin: int, end: int) -> _Road:
        oracle, case = judge.backend.oracle, checks[0].case
        prepare = partial(_asked, oracle, case, visit, begin, end)
        return _Road(checks[0], visit, end - begin, prepare)

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
            fetched = _Road(checks[0], visit, end - begin, lambda _: device.fetched())
            _sweep_on_host(fetched, suspects, True, begin, end, progress)
        else:
            progress(end - begin, 0)


def _sweep_on_host(
    road: _Road, checks: list[RulingCheck], is_dense: bool, lo: int, hi: int, progress: Progress
) -> None:
    """Judge the answers of a road chunk by chunk."""
    visited = wrong = 0
    comparison = checks[0].comparison
    for at in range(lo, hi, road.call_size):
        count = min(road.call_size, hi - at)
        missing = None
        try:
            answers = road.ask(at, count)
        except BaseException as problem:
            missing = no_answer(problem)
        match missing:
            case None:
                chunk: _Chunk | None = None
                for check in checks:
                    if is_dense and check.uniform is None and check.right(at, answers):
                        continue
                    inputs_at = partial(road.inputs, at, count)
                    chunk = chunk or _Chunk(at, answers, inputs_at, comparison)
                    if is_dense:
                        wrong += check.look_at_chunk(chunk)
                    else:
                        wrong += check.look(chunk.inputs, answers)
            case Raised(error):
                inputs = road.inputs(at, count)
                wrong += sum(check.look_without_open(inputs, error) for check in checks)
                checks = [check for check in checks if not check.ended]
                if not checks:
                    return
            case _:
                raise Unanswered(missing)
        visited += count
        if visited >= REPORT_EVERY or at + count == hi:
            progress(visited, wrong)
            visited = wrong = 0


class _Road:
    """The checked answers of a backend to one part of a visit after another.

    A backend with a ``sweep`` of its own makes consecutive inputs itself.
    """

    def __init__(
        self, check: RulingCheck, visit: InputSequence, size: int, prepare: Callable[[int], Swept]
    ) -> None:
        self._visit = visit
        source, self._target = check.rules.source, check.rules.target
        self._is_narrow = self._target.bits not in (8, 16, 32, 64)
        self._exceed, self._mask = check.comparison.exceed, self._target.mask
        is_dense = isinstance(visit, Dense)
        self.call_size = call_size(source, self._target) if is_dense else SAMPLED_CALL
        self._buffer = np.zeros(min(self.call_size, size), source.storage)
        self._ask = value_of(attempt(lambda: prepare(self.call_size)))
        self._known: Bits | None = None

    def ask(self, first: int, count: int) -> Bits:
        """Return the answers to the inputs from number ``first`` on.

        Raises what the backend raises, and ``Unanswered`` if the answers are malformed. An array
        that was checked before can become malformed only by codes that are too wide.
        """
        answers = self._ask(first, count)
        if answers is not self._known or (self._is_narrow and self._exceed(answers, self._mask)):
            self._known = checked(self._target, self._buffer[:count], answers)
        return answers

    def inputs(self, first: int, count: int) -> Bits:
        """The inputs that were asked last."""
        if isinstance(self._ask, BoundSweep):
            return self._ask.inputs[:count]
        inputs = self._buffer[:count]
        self._visit.fill(inputs, first)
        return inputs


def _asked(oracle: Oracle, case: Case, visit: InputSequence, lo: int, hi: int, most: int) -> Swept:
    if isinstance(visit, Dense) and isinstance(oracle, WithSweep):
        return oracle.sweep(case, lo, hi)
    return BoundSweep(oracle, case, visit, lo, hi, most)
