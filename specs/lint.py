"""Proves documents total and unambiguous: every case, every input, exactly one rule."""

from __future__ import annotations

from dataclasses import dataclass, replace

from specs.cases import Case
from specs.editions import editions
from specs.load import Document
from specs.operations import take
from specs.tensors import prove_tensors


@dataclass(frozen=True)
class Proof:
    """What was proved of a document."""

    document: str
    versions: int
    cases: int
    rules: int


def prove(document: Document) -> Proof:
    """Resolve every case, or raise an error that names file, line and rule."""
    used: set[str] = set()
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
            cases += 1
    for rule in document.entry.rules:
        if rule not in used:
            raise document.source.error(
                ("rules", rule), "takes no input of any case; is a condition too narrow?"
            )
    if document.entry.tensors:
        prove_tensors(document)
    return Proof(document.name, len(document.entry.versions), cases, len(document.entry.rules))
