"""``castigate rules``: house rules, which choose where documents leave an answer open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from textwrap import TextWrapper
from typing import Annotated

import typer

from conformance.commands.options import (
    BackendOption,
    OwnDocumentOption,
    PythonOption,
    TimeoutOption,
)
from conformance.driver import drive
from conformance.extras.house_rules.obeyed import Obedience, asked_cases, grouped, judge
from conformance.extras.house_rules.proof import HouseProof, prove_house_rules
from conformance.judging.asking import in_step
from oracles.backend.backend_supervisor import DEFAULT_TIMEOUT, LaunchConfig
from oracles.backend.client import Client
from oracles.backend.loading import launch_configs, load_all
from oracles.registry import Backend
from reports.findings.finding_text import counted
from specs.behaviors import behaviors
from specs.house_rules import HouseRules, shipped_rules
from specs.selection import house_rules_for

WIDTH = 100
LINES = TextWrapper(width=WIDTH, initial_indent="  ", subsequent_indent="  ")
HANGING = TextWrapper(width=WIDTH, initial_indent="    ", subsequent_indent="      ")
DETAILS = TextWrapper(width=WIDTH, initial_indent="    ", subsequent_indent="    ")


def rules_command(
    named: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME|FILE]...", help="House rules to prove and to show whole."),
    ] = None,
    document: OwnDocumentOption = None,
    backend: BackendOption = None,
    python: PythonOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """List the shipped house rules, or prove those named: shipped ones, or those in a file.

    `castigate run`, `explain`, `gate` and `pytest conformance` take them by --rules. They judge
    what a document leaves open, as a document of their own: onnx-cast+java. With --backend nothing
    is proved. Instead, say on which casts each backend obeys the rules, in the newest version of
    their first document. The casts are from float32, or from the first source that the rules decide
    if they decide nothing from float32.
    """
    chosen = [house_rules_for(each) for each in named or shipped_rules()]
    if backend:
        _show_who_obeys(chosen, launch_configs(backend, python or (), timeout))
        return
    if not named:
        for rules in chosen:
            typer.echo("\n".join(_heading(rules)))
        return
    proofs = [(rules, list(prove_house_rules(rules))) for rules in chosen]
    for rules, proved in proofs:
        typer.echo("\n".join([*_heading(rules), *_choices(rules), *map(_proof_line, proved)]))


def _show_who_obeys(chosen: list[HouseRules], configs: Mapping[str, LaunchConfig]) -> None:
    with ExitStack() as stack:
        backends = load_all(stack, configs)
        for rules in chosen:
            cases = asked_cases(rules)
            if not cases:
                newest = f"the newest version of {rules.entry.documents[0]}"
                typer.echo(f"{rules.name} decides nothing in {newest}")
                continue
            asked = f"{cases[0].asked.document}:{cases[0].version}, from {cases[0].source}"
            typer.echo(f"{rules.name} where {asked}, is open")
            for each in backends:
                judges = {case: judge(rules, case) for case in cases}
                found = drive(in_step(judges), Client(each))
                typer.echo("\n".join(_obedience_lines(each, [*found.values()])))


def _obedience_lines(backend: Backend, found: Sequence[Obedience]) -> Iterator[str]:
    yield f"  {backend.name} {backend.version}"
    for targets, first in grouped(found):
        example = f"; {first.example}" if first.example else ""
        yield from HANGING.wrap(f"{' '.join(targets)}: {first.words}{example}")


def _heading(rules: HouseRules) -> Iterator[str]:
    yield f"{rules.name}: {rules.entry.title}"
    yield from LINES.wrap(rules.entry.text)
    yield from LINES.wrap(f"for {', '.join(rules.entry.documents)}")


def _choices(rules: HouseRules) -> Iterator[str]:
    for name, choice in rules.entry.choices.items():
        yield from LINES.wrap(f"{name}: {choice.clause}")
        yield from DETAILS.wrap(f"{' '.join(choice.when.from_)} to {' '.join(choice.when.to)}")
        for input_class, word in choice.answers.items():
            said = f", {behaviors()[word].says}" if word in behaviors() else ""
            yield from DETAILS.wrap(f"{input_class}: {word}{said}")


def _proof_line(proof: HouseProof) -> str:
    return (
        f"  {proof.document}: {counted(proof.cases, 'case')}, of which they decide {proof.decided};"
        " total, and they contradict nothing that it requires"
    )
