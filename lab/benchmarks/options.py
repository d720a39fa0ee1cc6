"""Command-line options of the sweep benchmarks."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from specs.formats import format_named

PAIRS: Mapping[str, tuple[str, ...]] = {
    "torch": (
        "float32/float16",
        "float32/bfloat16",
        "float32/float8e4m3fn",
        "float32/int32",
        "int32/float32",
    ),
    "ort": ("float32/float8e4m3fn",),
    "ml_dtypes": ("float32/float8e4m3fn",),
}
"""The pairs that are measured by default; a backend that is not listed gets torch's first pair."""
Measured = tuple[str, str, str]
"""A backend, a source and a target."""


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options that every sweep benchmark takes."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--backend", action="append", metavar="NAME", help="repeatable")
    made.add_argument("--pair", action="append", metavar="SOURCE/TARGET", help="repeatable")
    made.add_argument("--repeat", type=int, default=5, metavar="N")
    made.add_argument(
        "--range", type=number, default=1 << 32, metavar="N", help="inputs, from pattern 0 on"
    )
    made.add_argument("--jobs", type=int, default=2, metavar="N", help="processes")
    made.add_argument("--json", type=Path, metavar="FILE", help="where all figures go")
    return made


def number(word: str) -> int:
    """Parse a count, in hex if it begins with 0x."""
    return int(word, 0)


def measured(options: argparse.Namespace) -> list[Measured]:
    """Combine every chosen backend with the chosen pairs, or with its default pairs."""
    return [
        (backend, *_pair(pair))
        for backend in options.backend or PAIRS
        for pair in options.pair or PAIRS.get(backend, PAIRS["torch"][:1])
    ]


def _pair(word: str) -> tuple[str, str]:
    source, _, target = word.partition("/")
    for dtype in (source, target):
        format_named(dtype)
    if format_named(source).bits > 32:
        raise SystemExit(f"{source} has too many patterns to be swept whole")
    return source, target
