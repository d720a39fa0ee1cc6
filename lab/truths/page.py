"""The results as tables of plain text, on the terminal and in ``docs/atlas/truths.md``."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from lab.truths.comparison import DEFINITION, Counts, Key
from lab.truths.known import KNOWN
from lab.truths.truths import TRUTHS
from reports.outputs.table import in_columns, markdown_table
from specs import VERSION

INTRODUCTION = """\
# Arithmetic of others against the reference

Written by `tox -e truths` (`python -m lab.truths`), not by hand. The reference is compared, bit
for bit, with arithmetic that nobody here wrote: a **truth**. The rulings are those of all
documents, and of one of our own (`lab/truths/every_cast.yaml`) that has every format, five
roundings and three kinds of overflow.

- Sources of up to 16 bits: every input.
- Wider sources: for each pair {random:,} random patterns with a fixed seed, and the breakpoints of
  the tier `quick`. These are every value of a target of up to 16 bits and every midpoint, each with
  the patterns beside it; of wider targets, a selection.
- LLVM reads constants as text, so it gets at most 20,000 inputs of a pair.
- Texts: {texts:,} numbers for each float format, most of them at or beside midpoints.

An answer is compared once for each ruling with a meaning of its own. An input to which a truth has
no answer, such as a NaN to MPFR, is not counted, nor is one that a document wants refused. A
reduced precision is two casts, each compared as such. `open` counts inputs that a document leaves
open. `known` counts the disagreements listed below. A predicate says on which inputs each occurs:
the run fails if any other input differs, or if one of these does not.
"""
HEAD = ("compared", "agree", "open", "known", "unknown")

Table = Sequence[Sequence[str]]
Results = Mapping[Key, Counts]


def total(results: Results, keys: Iterable[Key]) -> Counts:
    """Add up the counts of some keys."""
    counts = Counts()
    for key in keys:
        counts.add(results[key])
    return counts


def truth_rows(results: Results) -> Iterator[list[str]]:
    """One row for each truth."""
    for name, what in versions().items():
        keys = [key for key in results if key[0] == name]
        if keys:
            yield [name, what, *_figures(total(results, keys))]


def rounding_rows(results: Results) -> Iterator[list[str]]:
    """One row for each truth, kind of pair and rounding."""
    for name in versions():
        for key in sorted(key for key in results if key[0] == name):
            yield [*key, *_figures(results[key])]


def known_rows(results: Results) -> Iterator[list[str]]:
    """One row for each known disagreement that occurred."""
    found: Counter[tuple[str, str]] = Counter()
    for (truth, _, _), counts in results.items():
        for name, number in counts.known.items():
            found[name, truth] += number
    for entry in KNOWN:
        for truth in entry.truths:
            if found[entry.name, truth]:
                yield [truth, entry.reason, entry.right, f"{found[entry.name, truth]:,}"]


def scopes() -> Iterator[str]:
    """One line for each truth: how it is asked, and what it does not answer."""
    for truth in TRUTHS:
        yield f"- **{truth.name}**: {' '.join((type(truth).__doc__ or '').split())}"
    yield "- **Python**: Read texts as float64 by `float`."


def versions() -> dict[str, str]:
    """The truths by name, each with the version of the library that answers."""
    found = {truth.name: truth.version() for truth in TRUTHS}
    return {**found, "Python": f"{platform.python_version()}, `float(text)`"}


def _figures(counts: Counts) -> list[str]:
    known = sum(counts.known.values())
    unknown = counts.compared - counts.agree - counts.open - known
    return [f"{each:,}" for each in (counts.compared, counts.agree, counts.open, known, unknown)]


def plain(head: Sequence[str], rows: Table) -> str:
    """A table in columns, for a terminal."""
    return "\n".join(in_columns([head, *rows]))


def write_page(results: Results, random: int, texts: int, seconds: float, path: Path) -> None:
    """Write the results as a page in Markdown to ``path``."""
    path.write_text("\n".join(_lines(results, random, texts, seconds)), encoding="utf-8")


def _lines(results: Results, random: int, texts: int, seconds: float) -> Iterator[str]:
    yield INTRODUCTION.format(random=random, texts=texts)
    yield from markdown_table(("truth", "version", *HEAD), truth_rows(results))
    yield from ("", *scopes())
    definition = total(results, [key for key in results if key[0] == DEFINITION])
    everything = total(results, [key for key in results if key[0] != DEFINITION])
    differ = everything.compared - everything.agree - everything.open
    yield ""
    yield (
        f"In all {everything.compared:,} answers, of which {differ:,} differ."
        f" The definition (`oracles/reference/exact.py`) allows the same as the kernels on"
        f" {definition.agree:,} of {definition.compared:,} inputs that were decided both ways."
    )
    yield "\n## Known disagreements\n"
    yield "Where neither is right, both keep to a convention, and the conventions differ.\n"
    yield from markdown_table(
        ("truth", "what differs", "right is", "answers"), [*known_rows(results)]
    )
    yield from _unknown(results)
    yield "\n## By kind of pair and rounding\n"
    yield from markdown_table(("truth", "pair", "rounding", *HEAD), rounding_rows(results))
    today = datetime.now(UTC).date().isoformat()
    packages = ", ".join(f"{name} {_version(name)}" for name in ("numpy", "numba"))
    yield (
        f"\n{today}, castigate {VERSION}, Python {platform.python_version()}, {packages},"
        f" {platform.machine()}; {seconds / 60:.0f} minutes.\n"
    )


def _unknown(results: Results) -> Iterator[str]:
    failures = [failure for counts in results.values() for failure in counts.failures]
    yield ""
    if not failures:
        yield "No other answer differs."
    yield from (f"- **Unknown**: {failure}" for failure in failures)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "(not installed)"
