"""Write the proof's page: counts, every obligation that is not proved, a table of all pairs."""

from __future__ import annotations

import os
import platform
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby
from pathlib import Path

from lab.proof.obligations import Half, Obligation
from specs import VERSION

INTRODUCTION = """\
# The proof of the reference

Written by `python -m lab.proof`, not by hand. For every distinct ruling between numbers of
every document, the kernels' answer (which branch takes an input, which patterns it allows) is
compared with the definition's on **all** inputs of the source, not on a sample.
"""
HALVES: dict[Half, tuple[str, str]] = {
    "solver": (
        "By an SMT solver",
        "The solver is asked for an input on which the text of the kernels contradicts a"
        " statement; *proved* means that it showed that none exists. `exact integers` compares"
        " inputs, patterns and their neighbors as integers times powers of two, and also asks"
        " whether that statement would allow any other answer. `smt-lib` compares with the"
        " solver's own conversions where SMT-LIB has the formats and the rounding. One obligation"
        " covers all rulings that round a pair in one way.",
    ),
    "order": (
        "The order of values",
        "The solver is asked for two inputs `x <= y` to which the kernels answer numbers in the"
        " other order. Not compared are NaNs, integers that wrap, and what a document leaves open;"
        " casts to bool keep no order. [trust.md](../trust.md) says what follows from it.",
    ),
    "quantization": (
        "Quantization and blocks",
        "Statements about the steps of formulas and about scales and codes, each of all inputs."
        " `exact integers` and `exact bounds` are asked of the solver, for which the text of the"
        " kernels runs on terms of SMT-LIB's theory of floats; `integers, every pair` runs the"
        " kernels on all pairs. [trust.md](../trust.md) says what they add up to, and what"
        " neither proves.",
    ),
    "exhaustion": (
        "By exhaustion",
        "Every input of the source was answered both ways and compared.",
    ),
}
PACKAGES = ("numpy", "numba", "bitwuzla")
HEADING = "\n## "


def write_page(obligations: Sequence[Obligation], path: Path) -> None:
    """Write the page about some obligations; a part without any of them stays as it was."""
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    kept = {part.partition("\n")[0]: part for part in before.split(HEADING)[1:]}
    parts = [INTRODUCTION]
    for half, (title, _) in HALVES.items():
        here = [obligation for obligation in obligations if obligation.half == half]
        part = "\n".join(_part(half, here)) if here else kept.get(title, "")
        parts += [part.rstrip() + "\n"] if part else []
    path.write_text(HEADING.join(parts), encoding="utf-8")


def _part(half: Half, obligations: Sequence[Obligation]) -> Iterator[str]:
    """The lines of a part: counts, what is not proved, when it was proved, and all pairs."""
    title, explanation = HALVES[half]
    yield from (title, "", explanation, "")
    yield from _table(("", ""), _counts(obligations))
    yield from ("", *_unproved(obligations), "")
    versions = [f"Python {platform.python_version()}", f"castigate {VERSION}"]
    versions += [f"{package} {_version(package)}" for package in PACKAGES]
    today = datetime.now(UTC).date().isoformat()
    yield f"{today}, with {', '.join(versions)}, on {os.cpu_count()} cores."
    yield ""
    yield from _pairs(obligations)


def _counts(obligations: Sequence[Obligation]) -> Iterator[tuple[str, str]]:
    counted = Counter(obligation.verdict for obligation in obligations)
    for verdict in ("proved", "counterexample", "open"):
        yield verdict, str(counted[verdict])
    yield "seconds of one core", f"{sum(obligation.seconds for obligation in obligations):.0f}"


def _unproved(obligations: Sequence[Obligation]) -> Iterator[str]:
    """One line per obligation that is not proved."""
    unproved = [obligation for obligation in obligations if obligation.verdict != "proved"]
    if not unproved:
        yield "Nothing is open and nothing contradicted."
    for one in unproved:
        found = f": {one.found}" if one.found else ""
        yield f"- **{one.verdict}**: {one.name} ({one.rulings}){found}"


def _pairs(obligations: Sequence[Obligation]) -> Iterator[str]:
    """One folded table per source, one row per target."""
    order = {dtype: number for number, dtype in enumerate(dict.fromkeys(_dtypes(obligations)))}
    by_pair = sorted(obligations, key=lambda one: (order[one.source], order[one.target]))
    for source, of_source in groupby(by_pair, lambda one: one.source):
        here = list(of_source)
        yield f"<details><summary>{source}: {_verdicts(here)}</summary>"
        yield ""
        rows = [
            _row(target, list(of_target))
            for target, of_target in groupby(here, lambda one: one.target)
        ]
        yield from _table(("to", "rounding", "compared with", "inputs", "verdicts", "s"), rows)
        yield from ("", "</details>", "")


def _dtypes(obligations: Iterable[Obligation]) -> Iterator[str]:
    yield from (obligation.source for obligation in obligations)
    yield from (obligation.target for obligation in obligations)


def _row(target: str, obligations: list[Obligation]) -> tuple[str, ...]:
    def joined(texts: Iterable[str]) -> str:
        return ", ".join(dict.fromkeys(texts))

    return (
        target,
        joined(one.mode for one in obligations),
        joined(one.statement for one in obligations),
        joined(one.inputs for one in obligations),
        _verdicts(obligations),
        f"{sum(one.seconds for one in obligations):.1f}",
    )


def _verdicts(obligations: list[Obligation]) -> str:
    counted = Counter(obligation.verdict for obligation in obligations)
    return ", ".join(f"{count} {verdict}" for verdict, count in counted.items())


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    for row in (head, ["---"] * len(head), *rows):
        yield f"| {' | '.join(row)} |"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "(not installed)"
