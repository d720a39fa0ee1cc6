"""One backend and one pair of dtypes, ready to be swept: what every process works on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import cycle, islice, pairwise
from time import perf_counter, process_time

import numpy as np

from conformance.driver import BackendJudge
from conformance.judging.asking import Settings
from conformance.sweep.engine import sweep
from conformance.sweep.plan import is_swept
from oracles.bound_sweep import call_size
from oracles.memory_layouts import in_huge_pages
from oracles.protocol import Bits
from oracles.reference.expect_by_staircase import open_inputs
from oracles.reference.staircase import staircase
from oracles.reference.sweep_inputs import Dense
from oracles.registry import load_backend
from reports.grading.chunk_comparison import chunk_comparison
from reports.grading.chunk_table import table
from specs.branches import Ruling
from specs.cases import Case
from specs.formats import format_named
from specs.ruling import ruling
from specs.selection import case_named, select

CHUNK = 1 << 19
"""Inputs of the smallest part that is timed: at least one call of every pair."""
PROBES = 251
"""Chunks sampled from a range: a prime, so that they do not all begin where binades do."""
ROUNDS = 10
ALIKE = 2**-7
"""Open fractions that differ by less count as equal: 2**-8 of all float32 patterns are NaNs."""
COMPILED = (False, True) if find_spec("numba") is not None else (False,)
"""Which comparisons are timed: numpy's, and the compiled one."""


@dataclass(frozen=True)
class Chosen:
    """The cases that judge: the asked one first, then all others that find no probe wrong.

    ``is_open`` is the fraction of all inputs for which the asked case allows any answer.
    """

    asked: str
    is_open: float
    judging: tuple[str, ...]
    version: str
    seconds_for_table: float


@dataclass(frozen=True)
class Checked:
    """The processor time of the checker alone, on answers that are in the cache.

    ``elements`` counts answers that were checked, ``refused`` chunks that are left out as some
    answer is wrong.
    """

    elements: int
    seconds: float
    refused: int


@dataclass
class Pair:
    """A backend that casts from one dtype to another, and the cases whose rulings judge it."""

    judge: BackendJudge
    cases: list[Case]
    chosen: Chosen | None = None

    @property
    def asked(self) -> Case:
        """The case that the backend is asked."""
        return self.cases[0]

    def alone(self, lo: int, hi: int) -> int:
        """Fill a buffer with inputs and cast it, over and over: work that no sweep can avoid."""
        buffer = self._buffer(hi - lo)
        Dense(hi).fill(buffer, lo)
        call = self._bound(buffer)
        stride = buffer.dtype.type(buffer.size)
        for at in range(lo, hi, buffer.size):
            if at > lo:
                np.add(buffer, stride, out=buffer)
            call()
        return 0

    def swept(self, fast: bool, tables: int, lo: int, hi: int) -> int:
        """Sweep a range of inputs; return how many answers the first ruling finds wrong.

        The rulings of ``tables`` cases judge, for which the pair's cases are repeated. With
        ``fast`` the compiled comparison is used.
        """
        cases = list(islice(cycle(self.cases), tables))
        found = sweep(self.judge, cases, Dense(hi), lo, hi, chunk_comparison(fast), _not_told)
        if found[0].inputs != hi - lo:
            raise RuntimeError(f"{found[0].case} was not swept: {found[0].message}")
        return found[0].wrong

    def checked(self, fast: bool, lo: int, hi: int) -> Checked:
        """Time the checker alone, over chunks that are spread over the range."""
        all_right = chunk_comparison(fast).check_of(table(ruling(self.asked)))
        buffer = self._buffer(hi - lo)
        call = self._bound(buffer)
        elements, seconds, refused = 0, 0.0, 0
        for at in _spread(lo, hi, buffer.size):
            Dense(hi).fill(buffer, at)
            answers = call()
            if not all_right(at, answers, None, 0):
                refused += 1
                continue
            begun = process_time()
            for _ in range(ROUNDS):
                all_right(at, answers, None, 0)
            seconds += process_time() - begun
            elements += ROUNDS * answers.size
        return Checked(elements, seconds, refused)

    def told(self) -> Chosen:
        """Return the choice of cases that ``prepared`` made."""
        assert self.chosen is not None
        return self.chosen

    def _buffer(self, inputs: int) -> Bits:
        source, target = format_named(self.asked.source), format_named(self.asked.target)
        return in_huge_pages(min(call_size(source, target), inputs), source.storage)

    def _bound(self, buffer: Bits) -> Callable[[], Bits]:
        oracle = self.judge.backend.oracle
        bind: Callable[[Case, Bits], Callable[[], Bits]] | None = getattr(oracle, "bind", None)
        if bind is not None:
            return bind(self.asked, buffer)
        return lambda: oracle.cast(self.asked, buffer.copy())


def prepared(backend: str, source: str, target: str, asked: str | None = None) -> Pair:
    """Load a backend, choose its cases, build the tables, and warm up everything that is timed."""
    judge = BackendJudge(load_backend(backend), {}, Settings())
    shared, others = _candidates(judge, source, target)
    if asked is not None:
        shared, others = [case_named(asked)], []
    begun = perf_counter()
    table(ruling(shared[0]))
    seconds = perf_counter() - begun
    cases = _judging(judge, shared, others, 1 << format_named(source).bits)
    names = tuple(case.id for case in cases)
    chosen = Chosen(names[0], _open_part(cases[0]), names, judge.backend.version, seconds)
    pair = Pair(judge, cases, chosen)
    pair.alone(0, 2 * CHUNK)
    for fast in COMPILED:
        pair.swept(fast, len(cases), 0, 2 * CHUNK)
    return pair


def _candidates(judge: BackendJudge, source: str, target: str) -> tuple[list[Case], list[Case]]:
    """Return a case per ruling of a pair: those of one road, and all others.

    The road is the one that most rulings share. The others include rulings of roads that the
    backend lacks: its answers may conform to them.
    """
    rulings: dict[Ruling, Case] = {}
    roads: dict[str, dict[Ruling, Case]] = {}
    for case in select([]):
        if (case.source, case.target) != (source, target):
            continue
        if is_swept(case):
            rules = ruling(case)
            rulings.setdefault(rules, case)
            if road := judge.client.road(case):
                roads.setdefault(road, {}).setdefault(rules, case)
    if not roads:
        raise SystemExit(f"{judge.backend.name} has no road from {source} to {target}")
    # The last of equals: the newest version.
    shared = max(reversed(roads.values()), key=len)
    others = [case for rules, case in rulings.items() if rules not in shared]
    return list(shared.values()), others


def _open_part(case: Case) -> float:
    """The fraction of all inputs for which a case allows any answer."""
    size = 1 << format_named(case.source).bits
    return open_inputs(staircase(ruling(case)), 0, size) / size


def _judging(judge: BackendJudge, shared: list[Case], others: list[Case], size: int) -> list[Case]:
    """The case to be asked, and all others whose rulings find no probe wrong.

    A table that finds billions of wrong answers would measure how they are gathered, and one that
    allows everything would measure nothing. So the strictest case is asked, and laxer ones are
    left out.
    """
    left = sorted([*shared, *others], key=_open_part)
    asked = next(case for case in left if case in shared)
    for at in _spread(0, size, CHUNK):
        asked = next((case for case in left if case in shared), asked)
        judging = [asked, *(case for case in left if case != asked)]
        found = sweep(
            judge, judging, Dense(size), at, at + CHUNK, chunk_comparison(COMPILED[-1]), _not_told
        )
        if not found[0].inputs:
            raise SystemExit(f"{asked}: {found[0].message}")
        right = {judgement.case for judgement in found if not judgement.wrong}
        left = [case for case in left if case.id in right]
    most = _open_part(asked) + ALIKE
    return [asked, *(case for case in left if case != asked and _open_part(case) < most)]


def _spread(lo: int, hi: int, size: int) -> list[int]:
    """The first inputs of chunks that are spread evenly over a range."""
    chunks = max(1, (hi - lo) // size)
    count = min(PROBES, chunks)
    return [lo + chunks * place // count * size for place in range(count)]


def parts(lo: int, hi: int, count: int) -> list[tuple[int, int]]:
    """Equal parts of a range, cut where chunks end."""
    chunks = -(-(hi - lo) // CHUNK)
    cuts = [min(hi, lo + chunks * place // count * CHUNK) for place in range(count + 1)]
    return [(begin, end) for begin, end in pairwise(cuts) if begin < end]


def _not_told(_inputs: int, _wrong: int) -> None:
    return None
