"""Builds the output of ``castigate specs --json``: one JSON object per document."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel

from specs.cases import FORM, Case
from specs.editions import Edition, edition, editions
from specs.loader import Document
from specs.model.document import FormEntry, PromiseEntry, RuleEntry
from specs.ruling import matching_rules


class ParameterListing(BaseModel):
    """The values of a parameter, in the order in which the document lists them."""

    values: list[str]
    default: str


class VersionListing(BaseModel):
    """A version: its number of cases, its dtypes, and its parameters by name."""

    version: str
    cases: int
    sources: list[str]
    targets: list[str]
    parameters: dict[str, ParameterListing]


class RuleListing(BaseModel):
    """A rule, promise, form or example; ``lines`` are the ranges of the page that it encodes."""

    rule: str
    level: str
    clause: str
    lines: list[tuple[int, int]]


class CaseListing(BaseModel):
    """A case: the parts of its id, its rules, and whether the document wants an error."""

    case: str
    version: str
    source: str
    target: str
    mode: dict[str, str]
    rules: list[str]
    is_rejection: bool


class DocumentListing(BaseModel):
    """A document; ``rules`` and ``case_list`` only if the document was asked for by name."""

    document: str
    title: str
    operation: str
    sha256: str
    cases: int
    versions: list[VersionListing]
    rules: list[RuleListing] | None = None
    case_list: list[CaseListing] | None = None


def document_listing(document: Document) -> DocumentListing:
    """Describe a document with its versions and the number of cases of each."""
    return _listing(document, list(editions(document)))


def document_details(document: Document, version: str | None) -> DocumentListing:
    """Describe a document: all its rules, and ``version`` with its cases, or all if it is None."""
    chosen = [edition(document, version)] if version else list(editions(document))
    return _listing(document, chosen).model_copy(
        update={
            "rules": list(_rules(document)),
            "case_list": [_case(document, case) for each in chosen for case in each.cases()],
        }
    )


def clauses_of(document: Document) -> dict[str, RuleEntry | PromiseEntry | FormEntry]:
    """Return by name all rules and promises of a document, and its forms that have a conflict.

    The name of a form is ``form:NAME``.
    """
    entry = document.entry
    forms = {f"{FORM}:{name}": form for name, form in entry.forms.items() if form.conflict}
    return {**entry.rules, **entry.promises(), **forms}


def _listing(document: Document, chosen: list[Edition]) -> DocumentListing:
    versions = [_version(each) for each in chosen]
    return DocumentListing(
        document=document.name,
        title=document.entry.title,
        operation=document.entry.operation,
        sha256=document.digest,
        cases=sum(version.cases for version in versions),
        versions=versions,
    )


def _version(version: Edition) -> VersionListing:
    return VersionListing(
        version=version.version,
        cases=sum(1 for _ in version.cases()),
        sources=list(version.sources),
        targets=list(version.targets),
        parameters={
            name: ParameterListing(values=parameter.values, default=parameter.default)
            for name, parameter in version.parameters()
        },
    )


def _rules(document: Document) -> Iterator[RuleListing]:
    for name, rule in {**clauses_of(document), **document.entry.examples}.items():
        yield RuleListing(
            rule=name,
            level=rule.level,
            clause=rule.clause,
            lines=[(span.first, span.last) for span in rule.lines or ()],
        )


def _case(document: Document, case: Case) -> CaseListing:
    matching = matching_rules(document, case)
    return CaseListing(
        case=case.id,
        version=case.version,
        source=case.source,
        target=case.target,
        mode=case.mode,
        rules=list(matching.rules),
        is_rejection=matching.is_rejection,
    )
