"""Malformed streams against the reader of programs' answers.

Every stream ends in a value, in an error of the program, or in a ``FrameError``.
"""

from __future__ import annotations

import resource
from argparse import ArgumentParser
from collections.abc import Sequence
from random import Random
from time import perf_counter

from tests.wire.streams import read_all, stream

KIBIBYTE = 1 << 10
LONGEST = 1.0
"""A reader that takes more seconds than this for one stream counts as hanging."""
MOST = 200 << 20
"""The most bytes of memory that the whole process may take."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Read random streams; print how long that took and the peak memory."""
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    longest, answers, begun = 0.0, 0, perf_counter()
    for number in range(options.streams):
        content = stream(Random(f"{options.seed} {number}"))
        started = perf_counter()
        try:
            answers += read_all(content)
        except Exception as error:
            raise SystemExit(f"stream {number} of seed {options.seed}: {error!r}") from error
        longest = max(longest, perf_counter() - started)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KIBIBYTE
    print(
        f"{options.streams:,} streams in {perf_counter() - begun:.0f} s, {answers:,} answers among"
        f" them; the longest took {longest:.3f} s; peak memory {peak >> 20} MiB"
    )
    if longest > LONGEST or peak > MOST or not answers:
        raise SystemExit("the reader hangs, takes too much memory, or was given nothing right")


if __name__ == "__main__":
    main()
