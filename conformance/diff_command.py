"""``castigate diff``: where two runs, or two backends of one run, answer otherwise."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from shutil import get_terminal_size
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from conformance.selection import case_named
from reports.accept import Expectations
from reports.diff import Compared, Difference, compare
from reports.drawing import pattern
from reports.kept_answers import KeptAnswers, KeptCase
from reports.opening import open_run
from reports.store import RunStore
from reports.summary import NARROWEST
from specs.cases import Case
from specs.errors import CastigateError
from specs.formats import format_named


@dataclass(frozen=True)
class Side:
    """One of the two that are compared: a backend in a run."""

    name: str
    kept: KeptAnswers
    backend: str


@dataclass
class Alike:
    """A difference, and the cases in which it is the same."""

    case: Case
    asked: int
    difference: Difference
    others: int = 0


def diff_command(
    runs: Annotated[list[str], typer.Argument(metavar="RUN [RUN]", help="Complete runs.")],
    backend: Annotated[
        list[str] | None,
        typer.Option(
            "--backend",
            metavar="NAME",
            help="Of two runs: whom to compare (default: all that both have). Of one: both.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines.")] = False,
) -> None:
    """Show where two runs, or two backends of one run, differ: inputs, answers, who is right.

    The exit code is 0 where nothing differs and 1 where something does.
    """
    differ = False
    for one, other in _sides([open_run(run) for run in runs], backend or []):
        found, changed, asked = _compared(one, other)
        differ |= bool(found or changed)
        if as_json:
            for alike in found:
                typer.echo(json.dumps(_words(one, other, alike), ensure_ascii=False))
            for (before, after), cases in changed.items():
                words = {"one": one.name, "other": other.name, "verdicts": [before, after]}
                typer.echo(json.dumps(words | {"cases": cases}, ensure_ascii=False))
        else:
            _draw(one, other, found, changed, asked)
    raise typer.Exit(int(differ))


def _sides(stores: list[RunStore], backends: list[str]) -> Iterator[tuple[Side, Side]]:
    match stores:
        case [store]:
            if len(backends) != 2:
                names = ", ".join(one.name for one in store.record.backends)
                raise CastigateError(f"of one run say which two to compare by --backend: {names}")
            kept = KeptAnswers(store)
            first, second = (Side(_known(store, name), kept, name) for name in backends)
            yield first, second
        case [before, after]:
            older, newer = KeptAnswers(before), KeptAnswers(after)
            both = [one.name for one in before.record.backends if _has(after, one.name)]
            for name in [_known(before, name) for name in backends] or both:
                _known(after, name)
                yield (
                    Side(f"{name} of {before.place.given}", older, name),
                    Side(f"{name} of {after.place.given}", newer, name),
                )
            if not backends and not both:
                raise CastigateError("the two runs have no backend in common; nothing to compare")
        case _:
            raise CastigateError("give one run and two backends, or two runs")


def _has(store: RunStore, name: str) -> bool:
    return any(one.name == name for one in store.record.backends)


def _known(store: RunStore, name: str) -> str:
    if not _has(store, name):
        names = ", ".join(one.name for one in store.record.backends)
        raise CastigateError(f"{store.place.given} has no backend `{name}`; it has {names}")
    return name


Changed = dict[tuple[str, str], list[str]]
"""The cases whose verdicts differ, by both verdicts."""


def _compared(one: Side, other: Side) -> tuple[list[Alike], Changed, int]:
    """The differences, the most inputs first; changed verdicts; how many cases both answer."""
    expectations = Expectations(independent=False)
    others = {kept.case: kept for kept in other.kept.cases(other.backend)}
    alike: dict[Any, Alike] = {}
    changed: Changed = {}
    answered = 0
    for kept in one.kept.cases(one.backend):
        against = others.get(kept.case)
        if against is None:
            continue
        if kept.verdict != against.verdict:
            changed.setdefault((kept.verdict, against.verdict), []).append(kept.case)
        found = _case(one, other, kept, against, expectations)
        if found is None:
            continue
        answered += 1
        for each in found.differences:
            key = (kept.asked, against.asked, kept.answers, against.answers, each.right, each.count)
            if key in alike:
                alike[key].others += 1
            else:
                alike[key] = Alike(found.case, found.asked, each)
    return sorted(alike.values(), key=lambda each: -each.difference.count), changed, answered


def _case(
    one: Side, other: Side, kept: KeptCase, against: KeptCase, expectations: Expectations
) -> Compared | None:
    first = one.kept.answered(kept.asked, kept.answers)
    second = other.kept.answered(against.asked, against.answers)
    if first is None or second is None:
        return None
    return compare(case_named(kept.case), first, second, expectations)


def _words(one: Side, other: Side, alike: Alike) -> dict[str, Any]:
    difference = alike.difference
    source, target = format_named(alike.case.source), format_named(alike.case.target)
    return {
        "one": one.name,
        "other": other.name,
        "case": alike.case.id,
        "cases_alike": alike.others,
        "asked": alike.asked,
        "inputs": difference.count,
        "runs": difference.runs.total,
        "rule": difference.rule,
        "clause": difference.clause,
        "right": difference.right,
        "smallest": pattern(source, difference.smallest),
        "answers": [
            pattern(target, answer) for answer in (difference.answer, difference.other_answer)
        ],
        "allowed": list(difference.allowed),
    }


def _draw(one: Side, other: Side, found: list[Alike], changed: Changed, answered: int) -> None:
    width = max(NARROWEST, get_terminal_size().columns)
    console = Console(width=width, highlight=False, soft_wrap=False)
    if found:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for title in ("inputs", "of"):
            table.add_column(title, justify="right", no_wrap=True)
        table.add_column("case", no_wrap=True)
        table.add_column("right", overflow="fold")
        table.add_column("rule", overflow="fold")
        table.add_column(f"for instance: {one.name}, {other.name}", overflow="fold")
        for alike in found:
            words = _words(one, other, alike)
            more = f" and {alike.others} alike" if alike.others else ""
            right = {"one": one.name, "other": other.name}.get(words["right"], words["right"])
            numbers = (f"{words[key]:,}" for key in ("inputs", "asked"))
            instance = f"{words['smallest']}: {', '.join(words['answers'])}"
            table.add_row(*numbers, f"{words['case']}{more}", right, words["rule"], instance)
        console.print(table)
    for (before, after), cases in changed.items():
        console.print(f"{before} here, {after} there: {len(cases)} cases, {cases[0]} the first")
    differing = sum(1 + alike.others for alike in found)
    told = f"{answered:,} cases answered by both, {differing:,} differences"
    console.print(f"{one.name} and {other.name}: {told}")
