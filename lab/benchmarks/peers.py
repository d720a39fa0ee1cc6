"""The same casts of the same patterns by others and by this project: how fast, and whether right.

The patterns that are timed are one random pattern out of each of so many equal parts of all 2^32;
compared with what the definition allows are these and the quick tier's hard inputs.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from conformance.families.cast.quick_inputs import inputs_of
from lab.benchmarks.figures import keep, median, show
from lab.benchmarks.options import number
from lab.benchmarks.peer_casts import PEERS, Cast, Peer, Target, targets
from oracles.protocol import Bits
from oracles.reference import expect_by_exact
from oracles.reference.staircase import staircase
from reports.grading.allowed_answers import ALLOWED, describe_allowed
from reports.grading.staircase_grades import grade_by_staircase
from specs.outcomes import Nan

COUNT = 1 << 16
SEED = 3
WHOLE = 1 << 32
ROUNDS = 3
SECONDS = 0.5
"""The rounds of a fast peer are repeated for this long."""
MOST_ROUNDS = 1000


@dataclass(frozen=True)
class Disagreement:
    """An answer that the document does not allow."""

    input: str
    answer: str
    allowed: tuple[str, ...]
    is_other_nan: bool


@dataclass(frozen=True)
class Measured:
    """How fast a peer is, and how many of its answers are not allowed.

    ``other_nan`` of the wrong ones are a NaN where another NaN is due, such as one of the other
    sign.
    """

    peer: str
    case: str
    patterns: int
    seconds: list[float] = field(default_factory=list)
    compared: int = 0
    wrong: int = 0
    other_nan: int = 0
    example: Disagreement | None = None
    missing: str = ""

    @property
    def speed(self) -> float:
        """Patterns per second, in the median round."""
        return self.patterns / median(self.seconds)

    @property
    def extrapolated(self) -> float:
        """Seconds for all 2^32 patterns, extrapolated from ``speed``."""
        return WHOLE / self.speed


def spread(count: int) -> Bits:
    """Pick one random pattern from each of ``count`` equal parts of all 2^32, in rising order."""
    places = np.arange(count, dtype=np.uint64)
    begins = places * np.uint64(WHOLE) // np.uint64(count)
    ends = (places + np.uint64(1)) * np.uint64(WHOLE) // np.uint64(count)
    picked = np.random.default_rng(SEED).integers(begins, ends, dtype=np.uint64)
    return picked.astype(np.uint32)


def measure(count: int, seconds: float) -> Iterator[Measured]:
    """Time and compare every peer on every cast."""
    timed = spread(count)
    for target in targets():
        hard = inputs_of(target.case, target.rules, 0, 0)
        # A small count, for a quick run, limits the hard inputs too.
        hard = hard[:: max(1, hard.size // (4 * count))]
        asked = np.unique(np.concatenate([timed, hard]))
        for peer in PEERS:
            yield _measured(peer, target, timed, asked, seconds)


def _measured(peer: Peer, target: Target, timed: Bits, asked: Bits, seconds: float) -> Measured:
    try:
        cast = peer.make(target)
    except ImportError as error:
        return Measured(peer.name, target.case.id, timed.size, missing=f"needs {error.name}")
    cast(timed[:8])
    taken = list(_rounds(cast, timed, seconds))
    if not peer.answers:
        return Measured(peer.name, target.case.id, timed.size, taken)
    answers = cast(asked)
    grades, _ = grade_by_staircase(staircase(target.rules), asked, answers)
    wrong = np.flatnonzero(grades != ALLOWED)
    faults = [
        _disagreement(target, *each) for each in zip(asked[wrong], answers[wrong], strict=True)
    ]
    other_nan = sum(fault.is_other_nan for fault in faults)
    compared = (asked.size, len(faults), other_nan, faults[0] if faults else None)
    return Measured(peer.name, target.case.id, timed.size, taken, *compared)


def _rounds(cast: Cast, bits: Bits, seconds: float) -> Iterator[float]:
    begun = perf_counter()
    for done in range(MOST_ROUNDS):
        start = perf_counter()
        if done >= ROUNDS and start - begun > seconds:
            return
        cast(bits)
        yield perf_counter() - start


def _disagreement(target: Target, given: Any, answer: Any) -> Disagreement:
    rules, code = target.rules, int(answer)
    allowed = expect_by_exact.allow(rules, int(given))
    nans = {code for codes in rules.target.nan_codes for code in codes}
    wants_nan = isinstance(allowed.branch.outcome, Nan) or nans.issuperset(allowed.codes)
    return Disagreement(
        rules.source.hexadecimal(int(given)),
        rules.target.hexadecimal(code),
        describe_allowed(rules, allowed, int(given)),
        code in nans and wants_nan,
    )


def _row(result: Measured) -> list[str]:
    if result.missing:
        return [result.peer, result.missing, "", "", "", "", ""]
    checks = ["-", "-", "-", ""]
    if result.compared:
        checks = [f"{result.compared:,}", f"{result.wrong:,}", f"{result.other_nan:,}", ""]
    if (example := result.example) is not None:
        checks[3] = f"{example.input} -> {example.answer}, not {' or '.join(example.allowed)}"
    return [result.peer, f"{result.speed / 1e6:,.3f}", f"{result.extrapolated:,.0f}", *checks]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table for each cast, and write all figures as JSON."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--count", type=number, default=COUNT, metavar="N", help="patterns timed")
    options.add_argument("--seconds", type=float, default=SECONDS, help="for each quick peer")
    options.add_argument("--json", type=Path, metavar="FILE", help="where all figures go")
    chosen = options.parse_args(arguments)
    results = list(measure(chosen.count, chosen.seconds))
    for target in targets():
        show(
            f"{target.case}, one process",
            [
                "",
                "M/s",
                "2^32 in s, extrapolated",
                "compared",
                "wrong",
                "other NaN",
                "the first",
            ],
            [_row(result) for result in results if result.case == target.case.id],
        )
    figures = [asdict(result) | _made(result) for result in results]
    keep(chosen, {"peers": figures})


def _made(result: Measured) -> dict[str, float]:
    if result.missing:
        return {}
    return {
        "patterns_per_second": result.speed,
        "extrapolated_seconds_for_all": result.extrapolated,
    }


if __name__ == "__main__":
    main()
