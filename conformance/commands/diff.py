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

from conformance.running.selection import case_named
from reports.counterexample.drawing import pattern
from reports.diff.allowed_answers import Expectations
from reports.diff.backends import Compared, Difference, compare
from reports.diff.summary_tables import NARROWEST
from reports.run_store.answers import KeptAnswers, KeptCase
from reports.run_store.open_run import open_run
from reports.run_store.store import RunStore
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


@dataclass(frozen=True)
class Comparison:
    """Two sides, and what comes of comparing them.

    ``shared`` counts the cases that were asked of both, ``answered`` those of which both answers
    are kept; ``changed`` has the cases whose verdicts differ, by both verdicts.
    """

    one: Side
    other: Side
    shared: int
    answered: int
    found: list[Alike]
    changed: dict[tuple[str, str], list[str]]


def diff_command(
    runs: Annotated[
        list[str],
        typer.Argument(metavar="RUN", help="Two complete runs, or one and two backends of it."),
    ],
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

    Verdicts are compared, and the answers that a run keeps: those to the inputs of the tier quick.
    The exit code is 0 where nothing differs, 1 where something does, 3 where no case is in both.
    """
    sides = _sides([open_run(run) for run in runs], backend or [])
    compared = [_compared(one, other) for one, other in sides]
    for each in compared:
        if as_json:
            for words in _words(each):
                typer.echo(json.dumps(words, ensure_ascii=False))
        else:
            _draw(each)
    if not any(each.shared for each in compared):
        raise typer.Exit(3)
    raise typer.Exit(int(any(each.found or each.changed for each in compared)))


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


def _compared(one: Side, other: Side) -> Comparison:
    """What two sides answer to the cases that both were asked, the most inputs first."""
    expectations = Expectations(independent=False)
    others = {kept.case: kept for kept in other.kept.cases(other.backend)}
    alike: dict[Any, Alike] = {}
    changed: dict[tuple[str, str], list[str]] = {}
    shared = answered = 0
    for kept in one.kept.cases(one.backend):
        against = others.get(kept.case)
        if against is None:
            continue
        shared += 1
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
    most_first = sorted(alike.values(), key=lambda each: -each.difference.count)
    return Comparison(one, other, shared, answered, most_first, changed)


def _case(
    one: Side, other: Side, kept: KeptCase, against: KeptCase, expectations: Expectations
) -> Compared | None:
    first = one.kept.answered(kept.asked, kept.answers)
    second = other.kept.answered(against.asked, against.answers)
    if first is None or second is None:
        return None
    return compare(case_named(kept.case), first, second, expectations)


def _words(compared: Comparison) -> Iterator[dict[str, Any]]:
    """What ``--json`` prints, line by line."""
    names = {"one": compared.one.name, "other": compared.other.name}
    for alike in compared.found:
        yield names | _difference(alike)
    for verdicts, cases in compared.changed.items():
        yield names | {"verdicts": verdicts, "cases": cases}


def _difference(alike: Alike) -> dict[str, Any]:
    difference = alike.difference
    source, target = format_named(alike.case.source), format_named(alike.case.target)
    return {
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


def _draw(compared: Comparison) -> None:
    one, other = compared.one.name, compared.other.name
    width = max(NARROWEST, get_terminal_size().columns)
    # A text that was asked, or a run's path, may hold brackets; they are no markup.
    console = Console(width=width, highlight=False, markup=False, emoji=False)
    if compared.found:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for title in ("inputs", "of"):
            table.add_column(title, justify="right", no_wrap=True)
        table.add_column("case", no_wrap=True)
        table.add_column("right", overflow="fold")
        table.add_column("rule", overflow="fold")
        table.add_column(f"for instance: {one}, {other}", overflow="fold")
        for alike in compared.found:
            words = _difference(alike)
            more = f" and {alike.others} alike" if alike.others else ""
            right = {"one": one, "other": other}.get(words["right"], words["right"])
            numbers = (f"{words[key]:,}" for key in ("inputs", "asked"))
            instance = f"{words['smallest']}: {', '.join(words['answers'])}"
            table.add_row(*numbers, f"{words['case']}{more}", right, words["rule"], instance)
        console.print(table)
    for (before, after), cases in compared.changed.items():
        typer.echo(f"{before} here, {after} there: {len(cases)} cases, {cases[0]} the first")
    differing = sum(1 + alike.others for alike in compared.found)
    typer.echo(
        f"{one} and {other}: {compared.shared:,} cases asked of both, "
        f"{compared.answered:,} with answers kept, {differing:,} differences"
    )
