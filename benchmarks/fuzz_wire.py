"""Malformed streams against the reader of programs' answers: ``python -m benchmarks.fuzz_wire``.

Every stream ends in a value, in an error of the program, or in a ``FrameError``.
"""

from __future__ import annotations

import resource
from argparse import ArgumentParser
from collections.abc import Sequence
from time import perf_counter

from hypothesis import HealthCheck, Phase, given, settings

from tests.wire.streams import STREAMS, read_all

KIBIBYTE = 1 << 10
LONGEST = 1.0
"""Seconds after which a reader hangs."""
MOST = 200 << 20
"""Bytes of memory that all of it may take."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Read so many streams, and tell what it took."""
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", type=int, default=200_000)
    wanted = parser.parse_args(arguments)
    count, longest, values = 0, 0.0, 0

    @settings(
        max_examples=wanted.streams,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(STREAMS)
    def drive(stream: bytes) -> None:
        nonlocal count, longest, values
        begun = perf_counter()
        values += read_all(stream)
        longest = max(longest, perf_counter() - begun)
        count += 1

    begun = perf_counter()
    drive()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KIBIBYTE
    print(
        f"{count:,} streams in {perf_counter() - begun:.0f} s, {values:,} answers among them;"
        f" the longest took {longest:.3f} s; peak memory {peak >> 20} MiB"
    )
    if longest > LONGEST or peak > MOST or count < wanted.streams:
        raise SystemExit("the reader hangs, takes too much memory, or was not driven enough")


if __name__ == "__main__":
    main()
