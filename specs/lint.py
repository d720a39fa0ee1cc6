"""Proves that a document is total and unambiguous: one rule for every input of every case.

If rules point at lines of the page, every line must be encoded or listed as not encoded.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from specs.calls import FORM, MEMBER
from specs.cases import Case
from specs.coverage import coverage
from specs.coverage_errors import line_errors
from specs.editions import editions
from specs.loader import Document
from specs.matching_rules import matching_rules
from specs.model.yaml_source import Location
from specs.tensor_rules import prove_tensors


@dataclass(frozen=True)
class Proof:
    """Counts the cases, versions and rules for which a document was proved."""

    document: str
    versions: int
    cases: int
    rules: int
    lines: int | None
    """The page's lines with text, all of them covered; None if it points at none."""


def prove(document: Document) -> Proof:
    """Resolve every case of a document; raise DocumentError with file, line and rule."""
    used: set[str] = set()
    modes: set[tuple[str, str]] = set()
    cases = 0
    for edition in editions(document):
        seen: set[Case] = set()
        for case in edition.cases():
            matching = matching_rules(document, case)
            seen.add(case)
            if case.example in document.entry.examples and replace(case, example=None) not in seen:
                raise document.source.error(
                    ("examples", case.example),
                    f"{case.id} is an example of a case that does not exist; correct its"
                    " `from`, `to` or `with`",
                )
            used.update(matching.rules)
            modes.update(case.modes)
            cases += 1
    _require_cases(document, modes)
    for rule in document.entry.rules:
        if rule not in used:
            raise document.source.error(
                ("rules", rule),
                "takes no input of any case; widen its conditions or delete the rule",
            )
    if document.entry.tensors:
        prove_tensors(document)
    for error in line_errors(document):
        raise error
    covered = coverage(document)
    return Proof(
        document.name,
        len(document.entry.versions),
        cases,
        len(document.entry.rules),
        None if covered is None else len(covered.page.texts(covered.page.whole)),
    )


def _require_cases(document: Document, modes: set[tuple[str, str]]) -> None:
    """Raise if a call form, a member, or a pair with additional shapes makes no case.

    ``modes`` are the name and value of every mode that some case has.
    """
    entry = document.entry
    members = entry.receiver.members if entry.receiver is not None else {}
    named: tuple[tuple[Location, str, Collection[str]], ...] = (
        (("forms",), FORM, entry.forms),
        (("receiver", "members"), MEMBER, members),
    )
    for location, kind, names in named:
        for name in names:
            if (kind, name) not in modes:
                raise document.source.error(
                    (*location, name),
                    f"{kind} `{name}` makes no case; widen the condition in its `when`",
                )
    if entry.bitcast is None:
        return
    listed = {pair for edition in editions(document) for pair in edition.listed}
    for source, targets in entry.bitcast.more.pairs.items():
        for target in targets:
            if (source, target) not in listed:
                raise document.source.error(
                    ("bitcast", "more", "pairs", source),
                    f"no version lists the pair {source} to {target}; list or delete it",
                )
