"""Asks cases of a certified run again, and compares the results."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from random import Random
from tempfile import TemporaryDirectory

from conformance.running.progress import ProgressReporter
from conformance.running.run import finish_run, request_of, run, selected_cases
from reports.findings.cells import Cell
from reports.findings.read_findings import read_cells, read_checks
from reports.gate.baseline import EarlierRun
from reports.gate.certificate import arrays_of
from reports.judgement import NO_ANSWER, NOT_RUN
from reports.problem_words import words
from reports.problems import Died
from reports.run_store.open_run import open_run
from reports.run_store.store import RunStore
from specs.cases import Case

COMPARED = ("verdict", "inputs", "open", "wrong", "runs", "asked", "answers")


@dataclass(frozen=True)
class Replay:
    """The options of a replay: how many cases to ask again, the seed, and how to start backends."""

    count: int
    seed: int
    jobs: int
    pythons: tuple[str, ...]
    seconds: float
    reporter: ProgressReporter

    def differences(self, store: RunStore) -> Iterator[str]:
        """Ask some answered cases of a run again; yield a line for each difference.

        Some are asked the recorded inputs, and at least one is asked fresh inputs. The checks of
        the latter's pairs are repeated; those that held must hold again.
        """
        before = {cell.case: cell for cell in read_cells(store)}
        answered = [
            case
            for case in selected_cases(store.record.selection)
            if before[case.id].verdict not in (*NOT_RUN, *NO_ANSWER)
        ]
        picked = random_cases(answered, self.count, self.seed)
        fresh = random_cases(picked, fresh_count(self.count, len(answered)), self.seed)
        recorded = [case for case in picked if case not in fresh] or picked
        yield from self._compared(store, recorded, store.record.seed, before, _differences)
        held = {
            cell.name: cell for cell in read_checks(store) if cell.verdict in ("conforms", "open")
        }
        pairs = {(case.source, case.target) for case in fresh}
        # A check asks the first case that is answered, so that case must be among them.
        checked = {cell.case for cell in held.values() if (cell.source, cell.target) in pairs}
        asked = [case for case in answered if case in fresh or case.id in checked]
        yield from self._compared(store, asked, self.seed, before | held, _other_verdicts)

    def _compared(
        self,
        store: RunStore,
        cases: list[Case],
        seed: int,
        before: Mapping[str, Cell],
        compare: Callable[[EarlierRun, Cell], Iterator[str]],
    ) -> Iterator[str]:
        """Ask cases again with inputs by ``seed``; yield a line for each difference.

        ``before`` has the run's cells by name, and ``compare`` yields the differences of one new
        cell. If the seed is not the run's own, the checks of the cases' pairs are repeated too.
        """
        if not cases:
            return
        request = replace(
            request_of(store.record), pythons=self.pythons, seconds=self.seconds, seed=seed
        )
        with TemporaryDirectory(prefix="castigate-") as folder:
            again = run(
                request,
                f"{folder}/run",
                self.jobs,
                False,
                sys.argv,
                self.reporter,
                cases,
                seed != store.record.seed,
            )
            for one, other in zip(store.record.backends, again.record.backends, strict=True):
                if one.version != other.version:
                    yield f"{one.name}: version {one.version} was certified, now {other.version}"
            finish_run(again, cases, finds_causes=False)
            asked = open_run(f"{folder}/run")
            baseline = EarlierRun(before, arrays_of(store), arrays_of(asked))
            for cell in chain(read_cells(asked), read_checks(asked)):
                if cell.name in before:
                    yield from compare(baseline, cell)
                    yield from _deaths(before[cell.name], cell)


def fresh_count(count: int, answered: int) -> int:
    """Return how many cases of a replay get fresh inputs: half of ``count``, but at least one.

    Halves are rounded down. It is at most ``answered``, the number of answered cases. If all
    replayed cases get fresh inputs, they are asked the recorded inputs too.
    """
    return min(max(count // 2, 1), answered)


def random_cases(cases: list[Case], count: int, seed: int) -> list[Case]:
    """Return ``count`` cases chosen at random, in their order; all if there are fewer."""
    indices = Random(seed).sample(range(len(cases)), min(count, len(cases)))
    return [cases[index] for index in sorted(indices)]


def _other_verdicts(baseline: EarlierRun, now: Cell) -> Iterator[str]:
    """Yield a line for each failure on fresh inputs that the certified run does not have.

    A rule that the run breaks may be broken again, by wrong answers that continue the run's.
    """
    before = baseline.cells[now.name]
    if now.verdict not in (before.verdict, "conforms", "open"):
        text = f"{before.verdict} was certified, with fresh inputs it is {now.verdict}"
        yield f"{now.name}: {text}"
    known = {broken.key for broken in before.broken}
    for broken in now.broken:
        given = f": {broken.smallest} gives {broken.answer}" if broken.smallest else ""
        if broken.key not in known:
            yield f"{now.name}: fresh inputs break {broken.rule}{given}"
        elif not now.check and not baseline.has(now, broken):
            yield f"{now.name}: fresh inputs break {broken.rule} otherwise than certified{given}"


def _deaths(before: Cell, now: Cell) -> Iterator[str]:
    """Yield a line if the backend's process died in the replay, but not in the certified run."""
    known, found = (
        [each for each in cell.problems if isinstance(each, Died)] for cell in (before, now)
    )
    if found and not known:
        yield f"{now.name}: {words(found[0])}"


def _differences(baseline: EarlierRun, now: Cell) -> Iterator[str]:
    before = baseline.cells[now.name]
    for name in COMPARED:
        old, new = getattr(before, name), getattr(now, name)
        if old != new:
            yield f"{now.case}: {name} {old} was certified, now it is {new}"
    if before.failure_fingerprint != now.failure_fingerprint and before.verdict == now.verdict:
        yield f"{now.case}: other inputs or answers are wrong than those that were certified"
