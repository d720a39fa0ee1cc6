"""``castigate rules``: house rules, which choose where documents leave an answer open."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import TextWrapper
from typing import Annotated

import typer

from conformance.surveys.house_rules_proof import HouseProof, prove_house_rules
from reports.findings.finding_text import counted
from specs.behaviors import behaviors
from specs.house_rules import HouseRules, shipped_rules
from specs.selection import house_rules_for

WIDTH = 100
LINES = TextWrapper(width=WIDTH, initial_indent="  ", subsequent_indent="  ")
DETAILS = TextWrapper(width=WIDTH, initial_indent="    ", subsequent_indent="    ")


def rules_command(
    named: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME|FILE]...", help="House rules to prove and to show whole."),
    ] = None,
) -> None:
    """List the shipped house rules, or prove some: of your own, give the file.

    `castigate run`, `explain` and `pytest conformance` take them by --rules. They judge what a
    document leaves open, as a document of their own: onnx-cast+java.
    """
    if not named:
        for rules in shipped_rules().values():
            typer.echo("\n".join(_heading(rules)))
        return
    proofs = [(rules, list(prove_house_rules(rules))) for rules in map(house_rules_for, named)]
    for rules, proved in proofs:
        typer.echo("\n".join([*_heading(rules), *_choices(rules), *map(_proof_line, proved)]))


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
