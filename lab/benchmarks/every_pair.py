"""Measures a sweep beside the same casts alone, for every pair of a 32-bit source and a target.

Each pair is judged as in a run: by all rulings of a document that share its road. The two take
turns over windows that are spread over the source. Ratios are of the processor's time.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import process_time

from conformance.driver import BackendJudge
from conformance.judging.asking import Settings
from conformance.sweep.plan import Sweep, is_swept, sweeps
from lab.benchmarks.figures import keep, median, show
from lab.benchmarks.pair import CHUNK, COMPILED, Pair
from oracles.protocol import Unsupported
from oracles.registry import load_backend
from specs.formats import format_named
from specs.selection import select

BACKENDS = ("torch", "ort", "ml_dtypes")
BITS = 32
WINDOWS = 13
"""A prime, so that windows do not all begin where binades do."""
PROBE = 8
"""Chunks of each window that are swept to estimate how long all take."""


@dataclass(frozen=True)
class Ratio:
    """Processor seconds of the casts alone and of the sweep, of every repetition."""

    backend: str
    version: str
    source: str
    target: str
    rulings: int
    inputs: int
    wrong: int
    alone: list[float]
    sweep: list[float]

    @property
    def ratio(self) -> float:
        """How much longer than the casts alone the sweep takes: the median of all repetitions."""
        return median([all_ / cast for all_, cast in zip(self.sweep, self.alone, strict=True)])

    @property
    def rate(self) -> float:
        """The inputs that the sweep judges in a second."""
        return self.inputs / median(self.sweep)


def measure(judge: BackendJudge, plan: Sweep, seconds: float, repeat: int) -> Ratio:
    """Time a pair, window by window, over as much of the source as the seconds allow."""
    pair = Pair(judge, list(plan.cases))
    starts = [(1 << BITS) // WINDOWS * window // CHUNK * CHUNK for window in range(WINDOWS)]

    def visit(size: int) -> tuple[float, float, int]:
        """Return the processor seconds of the casts and of the sweep, and the wrong answers."""
        alone = swept = 0.0
        wrong = 0
        for start in starts:
            begun = process_time()
            pair.alone(start, start + size)
            between = process_time()
            wrong += pair.swept(COMPILED[-1], len(plan.cases), start, start + size)
            alone += between - begun
            swept += process_time() - between
        return alone, swept, wrong

    visit(CHUNK)  # builds tables and loads compiled functions
    _, probed, _ = visit(PROBE * CHUNK)
    chunks = (1 << BITS) // WINDOWS // CHUNK
    size = CHUNK * max(1, min(chunks, int(PROBE * seconds / probed)))
    alone, swept, wrong = zip(*(visit(size) for _ in range(repeat)), strict=True)
    names = (judge.backend.name, judge.backend.version, plan.source.name, plan.target.name)
    inputs = size * WINDOWS
    return Ratio(*names, len(plan.cases), inputs, max(wrong), list(alone), list(swept))


def plans(judge: BackendJudge, document: str) -> Iterator[Sweep]:
    """Yield the sweeps of a document's cases with 32-bit sources that a backend offers."""
    cases = [
        case
        for case in select([document])
        if format_named(case.source).bits == BITS and is_swept(case)
    ]
    yield from sweeps(cases, {case.id: judge.client.road(case) for case in cases})


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table, and write all figures as JSON."""
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", action="append", metavar="NAME", help="repeatable")
    parser.add_argument("--document", default="onnx-cast:25", metavar="NAME:VERSION")
    parser.add_argument("--source", metavar="DTYPE")
    parser.add_argument("--target", metavar="DTYPE")
    parser.add_argument("--seconds", type=float, default=4.0, metavar="N", help="of each sweep")
    parser.add_argument("--repeat", type=int, default=3, metavar="N")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where all figures go")
    chosen = parser.parse_args(arguments)
    results: list[Ratio] = []
    for backend in chosen.backend or BACKENDS:
        judge = BackendJudge(load_backend(backend), {}, Settings(tier="full"))
        for plan in plans(judge, chosen.document):
            if chosen.source not in (None, plan.source.name):
                continue
            if chosen.target not in (None, plan.target.name):
                continue
            name = f"{backend} {plan.source.name}/{plan.target.name}"
            try:
                results.append(measure(judge, plan, chosen.seconds, chosen.repeat))
                print(f"{name}: {results[-1].ratio:.2f}", file=sys.stderr, flush=True)
            except Unsupported as error:
                print(f"{name}: left out: {error}", file=sys.stderr, flush=True)
    if not results:
        raise SystemExit("no such pair")
    show(
        "sweep / casts alone",
        ["", "rulings", "inputs", "M inputs/s", "wrong", "ratio"],
        [
            [
                f"{each.backend} {each.source}/{each.target}",
                str(each.rulings),
                f"{each.inputs:,}",
                f"{each.rate / 1e6:.0f}",
                f"{each.wrong / each.inputs:.1%}",
                f"{each.ratio:.2f}",
            ]
            for each in results
        ],
    )
    ratios = [each.ratio for each in results]
    print(f"{len(ratios)} pairs: median {median(ratios):.2f}, most {max(ratios):.2f}")
    keep(chosen, {"pairs": [asdict(each) | {"ratio": each.ratio} for each in results]})


if __name__ == "__main__":
    main()
