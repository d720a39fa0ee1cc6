"""Proves documents total and unambiguous: every case, every input, exactly one rule.

Where a document's page is known by its lines, each of them must be encoded as well, or excused.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from specs.calls import FORM, MEMBER
from specs.cases import Case
from specs.coverage import coverage, mistakes_in_lines
from specs.editions import editions
from specs.loader import Document
from specs.model.yaml_source import Location
from specs.operations import take
from specs.tensor_rules import prove_tensors


@dataclass(frozen=True)
class Proof:
    """What was proved of a document."""

    document: str
    versions: int
    cases: int
    rules: int
    lines: int | None
    """How many lines of the page are covered; None where the document points at none."""


def prove(document: Document) -> Proof:
    """Resolve every case, or raise an error that names file, line and rule."""
    used: set[str] = set()
    modes: set[tuple[str, str]] = set()
    cases = 0
    for edition in editions(document):
        known: set[Case] = set()
        for case in edition.cases():
            taken = take(document, case)
            known.add(case)
            if case.example in document.entry.examples and replace(case, example=None) not in known:
                raise document.source.error(
                    ("examples", case.example), f"{case.id} is an example of no case"
                )
            used.update(taken.rules)
            modes.update(case.modes)
            cases += 1
    _require_asked(document, modes)
    for rule in document.entry.rules:
        if rule not in used:
            raise document.source.error(
                ("rules", rule), "takes no input of any case; is a condition too narrow?"
            )
    if document.entry.tensors:
        prove_tensors(document)
    for mistake in mistakes_in_lines(document):
        raise mistake
    covered = coverage(document)
    return Proof(
        document.name,
        len(document.entry.versions),
        cases,
        len(document.entry.rules),
        None if covered is None else len(covered.page.texts(covered.page.whole)),
    )


def _require_asked(document: Document, modes: set[tuple[str, str]]) -> None:
    """Every form of a call, every member, and every pair with shapes of its own makes a case."""
    entry = document.entry
    members = entry.receiver.members if entry.receiver is not None else {}
    named: tuple[tuple[Location, str, Collection[str]], ...] = (
        (("forms",), FORM, entry.forms),
        (("receiver", "members"), MEMBER, members),
    )
    for place, kind, names in named:
        for name in names:
            if (kind, name) not in modes:
                raise document.source.error(
                    (*place, name), f"the {kind} `{name}` is asked of no pair"
                )
    if entry.bitcast is None:
        return
    listed = {pair for edition in editions(document) for pair in edition.listed}
    for source, targets in entry.bitcast.more.pairs.items():
        for target in targets:
            if (source, target) not in listed:
                raise document.source.error(
                    ("bitcast", "more", "pairs", source), f"no version lists {source} to {target}"
                )
