"""``castigate diff``: where two runs, or two backends of one run, differ."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from shutil import get_terminal_size
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from reports.case_patterns import CHAINS
from reports.changes.change import BackendChanges, Example
from reports.changes.of_runs import (
    changed_example,
    changes_of_runs,
    compare_digests,
    have_same_inputs,
)
from reports.changes.words import screen
from reports.counterexample.drawing import datum_text
from reports.findings.finding_text import counted
from reports.grading.allowed_answers import Expectations
from reports.judgement import NO_ANSWER, NOT_RUN, AnswerDigest
from reports.outputs.backend_comparison import CaseComparison, Difference, compare_answers
from reports.problems import ShownDatum
from reports.run_store.open_run import CaseRow, RunAnswers, open_run, read_digests
from reports.run_store.record import edited_texts
from reports.run_store.store import RunStore
from specs.cases import Case
from specs.errors import CastigateError
from specs.formats import Format, format_named
from specs.operations import is_cast, operation_of
from specs.selection import case_named

NO_DIGEST = "neither run has a digest of them"
MIN_WIDTH = 140
"""The fewest columns of the table of differences, however narrow the terminal is."""


@dataclass(frozen=True)
class Side:
    """One side of a comparison: a backend in a run, and the name by which it is shown."""

    name: str
    answers: RunAnswers
    backend: str


@dataclass
class OperationComparison:
    """The cases of one operation whose answers a run digests: how many differ, with an example.

    ``compared`` counts those of which both sides have digests for the same inputs, and
    ``not_compared`` the others by the reason. ``differing`` has the ids of those that differ.
    """

    operation: str
    compared: int = 0
    differing: list[str] = field(default_factory=list)
    not_compared: Counter[str] = field(default_factory=Counter)
    example: Example | None = None

    def add(
        self, name: str, one: AnswerDigest | None, other: AnswerDigest | None, *, is_alike: bool
    ) -> None:
        """Compare the digests of a case or check; ``is_alike`` says if both runs ask the same."""
        is_same, reason = compare_digests(one, other, has_same_inputs=is_alike)
        if is_same is None:
            self.not_compared[reason or NO_DIGEST] += 1
            return
        self.compared += 1
        if not is_same:
            self.differing.append(name)
            if self.example is None:
                self.example = changed_example(name, one, other)


@dataclass
class SharedDifference:
    """A difference, the first case that shows it, and how many others show the same.

    ``inputs`` is how many inputs of that case were compared.
    """

    case: Case
    inputs: int
    difference: Difference
    other_cases: int = 0


@dataclass(frozen=True)
class Comparison:
    """Two sides, and where they differ.

    ``shared`` counts the cases of both sides, ``answered`` those of which both sides' answers are
    stored. ``operations`` are those whose answers are digested instead. ``changed`` has the ids of
    cases whose verdicts differ, by the pair of verdicts. ``changes`` are worse, better or otherwise
    if both sides are one backend, else None.
    """

    one: Side
    other: Side
    shared: int
    answered: int
    differences: list[SharedDifference]
    operations: list[OperationComparison]
    changed: dict[tuple[str, str], list[str]]
    changes: BackendChanges | None


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
            help="A backend of both runs (default: all), or one of each; of one run: both.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines.")] = False,
) -> None:
    """Show where two runs, or two backends of one run, differ: inputs, answers, who is right.

    Verdicts are compared, and the answers to the inputs of tier quick: those to casts one by one,
    all others by their digests. A document of your own may have been edited between the runs.
    The exit code is 0 where nothing differs, 1 where something does, 3 where no case is in both.
    """
    # The last run first: its documents are those by which cases of an edited one are compared.
    stores = [open_run(run, allows_edited=bool(at)) for at, run in enumerate(reversed(runs))]
    stores.reverse()
    comparisons = [_compare_sides(*sides) for sides in _sides(stores, backend or [])]
    if not as_json:
        for name in edited_texts(stores[0].record, stores[-1].record):
            typer.echo(
                f"{name} was edited between the runs; answers are compared by the text of "
                f"{stores[-1].folder.display_name}"
            )
    for comparison in comparisons:
        if as_json:
            for line in _json_lines(comparison):
                typer.echo(json.dumps(line, ensure_ascii=False))
        else:
            _print_comparison(comparison)
    if not any(each.shared or each.operations for each in comparisons):
        raise typer.Exit(3)
    differs = any(
        each.differences
        or each.changed
        or any(one.differing for one in each.operations)
        or (each.changes is not None and each.changes.changes)
        for each in comparisons
    )
    raise typer.Exit(int(differs))


def _sides(stores: list[RunStore], backends: list[str]) -> Iterator[tuple[Side, Side]]:
    match stores:
        case [store]:
            if len(backends) != 2:
                names = ", ".join(store.record.versions)
                raise CastigateError(
                    f"one run needs two backends; name two with --backend: {names}"
                )
            answers = RunAnswers(store)
            first, second = (Side(_checked(store, name), answers, name) for name in backends)
            yield first, second
        case [before, after]:
            older, newer = RunAnswers(before), RunAnswers(after)
            if len(backends) == 2 and not {*backends} <= after.record.versions.keys():
                here, there = backends
                yield (
                    Side(_checked(before, here), older, here),
                    Side(_checked(after, there), newer, there),
                )
                return
            both = [name for name in before.record.versions if name in after.record.versions]
            for name in [_checked(before, name) for name in backends] or both:
                _checked(after, name)
                shown = _names_in_both(before, after, name)
                yield Side(shown[0], older, name), Side(shown[1], newer, name)
            if not backends and not both:
                raise CastigateError(
                    "the two runs have no backend in common; give runs of the same backend"
                )
        case _:
            raise CastigateError(
                f"{len(stores)} runs cannot be compared; give one run and two backends, or two runs"
            )


def _names_in_both(before: RunStore, after: RunStore, name: str) -> list[str]:
    """Name one backend of two runs: by its versions, or by the runs if the versions are equal."""
    versions = [store.record.versions[name] for store in (before, after)]
    if versions[0] != versions[1]:
        return [f"{name} {version}" for version in versions]
    return [f"{name} of {store.folder.display_name}" for store in (before, after)]


def _checked(store: RunStore, name: str) -> str:
    if name not in store.record.versions:
        names = ", ".join(store.record.versions)
        raise CastigateError(f"{store.folder.display_name} has no backend `{name}`; it has {names}")
    return name


def _compare_sides(one: Side, other: Side) -> Comparison:
    """Compare two sides on the cases that both were asked.

    The differences with the most inputs come first.
    """
    expectations = Expectations(independent=False)
    others = {row.case: row for row in other.answers.cases(other.backend)}
    differences: dict[Any, SharedDifference] = {}
    operations = _Operations(one, other)
    changed: dict[tuple[str, str], list[str]] = {}
    shared = answered = 0
    for row in one.answers.cases(one.backend):
        other_row = others.get(row.case)
        if other_row is None:
            continue
        if "not-run" in (row.verdict, other_row.verdict):
            continue
        shared += 1
        if row.verdict != other_row.verdict:
            changed.setdefault((row.verdict, other_row.verdict), []).append(row.case)
        found = _compare_case(one, other, row, other_row, expectations)
        if found is None:
            operations.add_case(row, other_row)
            continue
        answered += 1
        for each in found.differences:
            inputs_and_answers = (row.asked, other_row.asked, row.answers, other_row.answers)
            key = (*inputs_and_answers, each.right, each.count)
            if key in differences:
                differences[key].other_cases += 1
            else:
                differences[key] = SharedDifference(found.case, found.asked, each)
    most_first = sorted(differences.values(), key=lambda each: -each.difference.count)
    is_same = one.backend == other.backend
    changes = _changes(one, other) if is_same else None
    operations.add_chains()
    compared = [*operations.found.values()]
    return Comparison(one, other, shared, answered, most_first, compared, changed, changes)


class _Operations:
    """Compares the digests that the runs of two sides keep, operation by operation."""

    def __init__(self, one: Side, other: Side) -> None:
        stores = one.answers.store, other.answers.store
        self.is_alike = have_same_inputs(*(each.record for each in stores))
        self.one, self.other = (
            {name: digest for (backend, name), digest in read_digests(store) if backend == wanted}
            for store, wanted in zip(stores, (one.backend, other.backend), strict=True)
        )
        self.found: dict[str, OperationComparison] = {}

    def add_case(self, row: CaseRow, other_row: CaseRow) -> None:
        """Compare a case that both sides answered, unless it is a cast."""
        case = case_named(row.case)
        has_answers = not {row.verdict, other_row.verdict} & {*NO_ANSWER, *NOT_RUN}
        if has_answers and not is_cast(case):
            self._add(operation_of(case), row.case)

    def add_chains(self) -> None:
        """Compare the digests of those chains of casts that both sides answered."""
        for name in self.one:
            if name.startswith(f"{CHAINS}/") and name in self.other:
                self._add("chain", name)

    def _add(self, operation: str, name: str) -> None:
        comparison = self.found.setdefault(operation, OperationComparison(operation))
        comparison.add(name, self.one.get(name), self.other.get(name), is_alike=self.is_alike)


def _changes(one: Side, other: Side) -> BackendChanges:
    [changes] = changes_of_runs(one.answers.store, other.answers.store, [one.backend])
    now = other.name.removeprefix(f"{one.backend} ")
    # The notes are about digests, which are compared operation by operation.
    return replace(changes, now=now, since=f"since {one.name}", notes=())


def _compare_case(
    one: Side, other: Side, row: CaseRow, other_row: CaseRow, expectations: Expectations
) -> CaseComparison | None:
    """Compare the answers of two sides to a case; None if the answers of one are not stored."""
    first = one.answers.answered(row.asked, row.answers)
    second = other.answers.answered(other_row.asked, other_row.answers)
    if first is None or second is None:
        return None
    return compare_answers(case_named(row.case), first, second, expectations)


def _json_lines(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """Yield an object for each difference, pair of unequal verdicts, and change."""
    names = {"one": comparison.one.name, "other": comparison.other.name}
    for difference in comparison.differences:
        yield names | _fields(difference, _full_text)
    for each in comparison.operations:
        yield names | {
            "operation": each.operation,
            "compared": each.compared,
            "cases": each.differing,
            "not_compared": each.not_compared,
            "example": vars(each.example) if each.example is not None else None,
        }
    for verdicts, cases in comparison.changed.items():
        yield names | {"verdicts": verdicts, "cases": cases}
    for change in comparison.changes.changes if comparison.changes is not None else ():
        yield names | {
            "change": change.kind,
            "says": change.says,
            "example": vars(change.example) if change.example is not None else None,
            "findings": list(change.findings),
            "cases": list(change.names),
        }


def _fields(shared: SharedDifference, show: Callable[[Format, ShownDatum], str]) -> dict[str, Any]:
    """Return a difference as a JSON object; ``show`` spells a pattern or text of a format."""
    difference = shared.difference
    source, target = format_named(shared.case.source), format_named(shared.case.target)
    return {
        "case": shared.case.id,
        "cases_alike": shared.other_cases,
        "asked": shared.inputs,
        "inputs": difference.count,
        "runs": difference.runs.total,
        "rule": difference.rule,
        "clause": difference.clause,
        "right": difference.right,
        "smallest": show(source, difference.smallest),
        "answers": [
            show(target, answer) for answer in (difference.answer, difference.other_answer)
        ],
        "allowed": list(difference.allowed),
    }


def _full_text(dtype: Format, datum: ShownDatum) -> str:
    return repr(datum) if isinstance(datum, str) else dtype.hexadecimal(datum)


def _print_comparison(comparison: Comparison) -> None:
    one, other = comparison.one.name, comparison.other.name
    width = max(MIN_WIDTH, get_terminal_size().columns)
    # No markup: a text that was asked, or a run's path, may hold brackets.
    console = Console(width=width, highlight=False, markup=False, emoji=False)
    if comparison.differences:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for title in ("inputs", "of"):
            table.add_column(title, justify="right", no_wrap=True)
        table.add_column("case", no_wrap=True)
        table.add_column("right", overflow="fold")
        table.add_column("rule", overflow="fold")
        table.add_column(f"for instance: {one}, {other}", overflow="fold")
        for shared in comparison.differences:
            fields = _fields(shared, datum_text)
            more = f" and {shared.other_cases} alike" if shared.other_cases else ""
            right = {"one": one, "other": other}.get(fields["right"], fields["right"])
            numbers = (f"{fields[key]:,}" for key in ("inputs", "asked"))
            instance = f"{fields['smallest']}: {', '.join(fields['answers'])}"
            table.add_row(*numbers, f"{fields['case']}{more}", right, fields["rule"], instance)
        console.print(table)
    for (before, after), cases in comparison.changed.items():
        typer.echo(
            f"{before} here, {after} there: {counted(len(cases), 'case')}, {cases[0]} the first"
        )
    for each in comparison.operations:
        for text in _operation_lines(each):
            typer.echo(text)
    if comparison.changes is not None:
        for line in screen([comparison.changes]):
            typer.echo(line)
    differing = sum(1 + shared.other_cases for shared in comparison.differences)
    differing += sum(len(each.differing) for each in comparison.operations)
    answered = comparison.answered + sum(each.compared for each in comparison.operations)
    changed = sum(map(len, comparison.changed.values()))
    typer.echo(
        f"{one} and {other}: {counted(comparison.shared, 'case')} asked of both, "
        f"{answered:,} with answers kept, {counted(differing, 'difference')} of answers, "
        f"{changed:,} of verdicts"
    )


def _operation_lines(found: OperationComparison) -> Iterator[str]:
    if found.compared:
        line = f"{found.operation}: other answers in {len(found.differing):,} of "
        line += counted(found.compared, "case")
        if found.example is not None:
            line += f"; {found.example}, in {found.example.case}"
        yield line
    for reason, count in found.not_compared.items():
        yield f"{found.operation}: answers of {counted(count, 'case')} are not compared: {reason}"
