"""Writes the results of all mutants as a page: survivors first, then faults and conditions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import median
from typing import TypeVar

from lab.mutants.trial import MutantResult, Survivor
from reports.outputs.table import markdown_table
from specs import VERSION

Each = TypeVar("Each")


def page(
    results: Sequence[MutantResult],
    survivors: Sequence[Survivor],
    date: str,
    seed: int,
    every: int = 1,
) -> str:
    """Return the page as Markdown."""
    head = _head(results, date, seed, every)
    return "\n".join([*head, *_survivors(survivors), *_tables(results), ""])


def summary_lines(results: Sequence[MutantResult]) -> Iterator[str]:
    """Yield what a terminal shows: the counts, and a line for each kind of fault."""
    yield _counts(results)
    for kind, group in _groups(results, lambda each: each.kind):
        named = sum(each.is_named for each in group)
        killed = sum(each.is_killed for each in group)
        yield f"  {kind:<18}{len(group):>6,} mutants {killed:>6,} killed {named:>6,} named rightly"


def _counts(results: Sequence[MutantResult]) -> str:
    killed = [each for each in results if each.is_killed]
    named = sum(each.is_named for each in killed)
    return (
        f"{len(results):,} mutants: {len(killed):,} killed ({_share(len(killed), len(results))}), "
        f"{len(results) - len(killed):,} survive; of the killed "
        f"{named:,} ({_share(named, len(killed))}) are named rightly"
    )


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "–"


def _head(results: Sequence[MutantResult], date: str, seed: int, every: int) -> Iterator[str]:
    yield "# What the suite finds of faults that were planted"
    yield ""
    yield (
        "Each mutant is a backend that answers as the reference does, but for one deliberate fault "
        "under one condition, in one pair of dtypes. This page is made by `python -m lab.mutants"
        f"{f' --every {every}' if every > 1 else ''} --page docs/atlas/mutants.md` "
        f"(castigate {VERSION}, {date}, seed {seed}, tier quick)."
    )
    if every > 1:
        yield f"It has one of {every} combinations; without `--every` the command tries all."
    yield ""
    yield f"{_counts(results)}."
    yield ""
    yield (
        "A mutant is *named rightly* if every finding that the run reports of it is one of the "
        "causes that its fault was planted with. Each is also a backend, so that it can be tried "
        "in a checkout:"
    )
    yield ""
    yield "```console"
    yield "$ PYTHONPATH=. castigate run --out RUN \\"
    yield "    --document onnx-cast:25 --source float32 --target float16 \\"
    yield "    --backend 'lab.mutants.backend:ties-to-odd@onnx-cast:25/float32/float16'"
    yield "```"
    yield ""


def _survivors(survivors: Sequence[Survivor]) -> Iterator[str]:
    yield "## Survivors at the tier quick"
    yield ""
    yield (
        "*Chance* is how many of the other seeds find it; *full* whether the tier full does, "
        "sweeps of all 2^32 inputs not counted."
    )
    yield ""
    rows = []
    for why, group in _groups(survivors, lambda each: each.why):
        tried = sum(each.seeds for each in group)
        found = sum(each.found for each in group)
        at_full = sum(each.is_found_at_full for each in group)
        example = min((each.result.name for each in group), key=len)
        chance = _share(found, tried)
        rows.append([why, str(len(group)), chance, str(at_full), f"`{example}`"])
    titles = ("why it is not found", "mutants", "chance", "full", "example")
    yield from markdown_table(titles, rows)
    yield ""
    yield "<details><summary>Each of them</summary>"
    yield ""
    rows = [
        [
            f"`{each.result.name}`",
            f"{each.found} of {each.seeds}",
            "found" if each.is_found_at_full else "not found",
        ]
        for each in sorted(survivors, key=lambda each: each.result.name)
    ]
    yield from markdown_table(("mutant", "chance", "full"), rows)
    yield ""
    yield "</details>"
    yield ""


TITLES = ("", "mutants", "killed", "named rightly", "found by", "median of inputs", "of CPU s")


def _tables(results: Sequence[MutantResult]) -> Iterator[str]:
    for title, key in (
        ("By kind of fault", lambda each: each.kind),
        ("By what the condition depends on", lambda each: each.on),
        ("By fault", lambda each: each.fault),
        ("By condition", lambda each: each.condition),
    ):
        yield f"## {title}"
        yield ""
        rows = []
        for name, group in _groups(results, key):
            killed = [each for each in group if each.is_killed]
            by = Counter(each.killed_by for each in killed)
            found_by = ", ".join(f"{check} {count}" for check, count in by.most_common())
            inputs = median(each.inputs for each in group)
            seconds = median(each.seconds for each in group)
            named = sum(each.is_named for each in killed)
            counts = map(str, (len(group), len(killed), named))
            rows.append([name, *counts, found_by, f"{inputs:,.0f}", f"{seconds:.2f}"])
        yield from markdown_table(TITLES, rows)
        yield ""


def _groups(items: Iterable[Each], key: Callable[[Each], str]) -> list[tuple[str, list[Each]]]:
    """Group items by their key, in the order of each group's first item."""
    groups: dict[str, list[Each]] = {}
    for each in items:
        groups.setdefault(key(each), []).append(each)
    return list(groups.items())
