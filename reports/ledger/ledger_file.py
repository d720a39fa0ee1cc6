"""Reads a ledger's YAML and checks it; errors name file and line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationError

from reports.case_patterns import MAX_CASES, WITHIN_PART, expand
from reports.diff.verdicts import NO_ANSWER
from reports.ledger.breaches import Breach
from reports.ledger.listing import InputOptions, Ledger, Listing
from reports.ledger.version_spans import Span
from specs.errors import CastigateError
from specs.model.document import StrictModel, Text
from specs.model.yaml_source import Location, YamlFile, explain_validation_error, read_yaml

FOLDER = Path(__file__).parent
BACKEND_NAME = re.compile(r"[A-Za-z0-9_-]+(:[A-Za-z0-9_.-]+)?")
"""A backend that can have a ledger: a plain name, with or without a variant."""


def _normalized_span(text: str) -> str:
    return str(Span.of(text))


class LedgerEntry(StrictModel):
    """One known breach, and the cases that have it."""

    verdict: Literal["violates", "deviates", "error", "crashed"]
    rule: Text | None = None
    versions: Annotated[Text, AfterValidator(_normalized_span)]
    cases: Annotated[list[Text], Field(min_length=1)]
    inputs: Annotated[int, Field(ge=0)] = 0
    region: Annotated[str, Field(pattern="^[0-9a-f]{16}$")]
    example: Text
    behavior: Annotated[Text | None, Field(alias="behaviour")] = None
    upstream: Annotated[str, Field(pattern="^https://")] | None = None


class LedgerFile(StrictModel):
    """The known breaches of one backend, and the options under which they were found."""

    backend: Text
    tier: Literal["quick", "full"]
    seed: Annotated[int, Field(ge=0)]
    max_examples: Annotated[int, Field(ge=0, alias="max-examples")]
    entries: list[LedgerEntry]


def path_of(backend: str) -> Path | None:
    """The path of a backend's ledger, whether it exists or not; None if it cannot have one."""
    if not BACKEND_NAME.fullmatch(backend):
        return None
    return FOLDER / f"{backend.replace(':', '.')}.yaml"


def load_ledger(backend: str) -> Ledger | None:
    """The ledger of a backend, if it has one; raise an error with file and line if it is wrong."""
    path = path_of(backend)
    if path is None or not path.is_file():
        return None
    file, cases_by_entry = read_ledger(path)
    if file.backend != backend:
        raise CastigateError(f"{path}:1: this is the ledger of {file.backend}, not of {backend}")
    ledger = Ledger(backend, InputOptions(file.tier, file.seed, file.max_examples))
    for entry, cases in zip(file.entries, cases_by_entry, strict=True):
        breach = Breach(entry.verdict, entry.rule or "", entry.inputs, entry.region, entry.example)
        listing = Listing(breach, Span.of(entry.versions), entry.behavior, entry.upstream)
        for case in dict.fromkeys(cases):
            ledger.listings.setdefault(case, []).append(listing)
    return ledger


def read_ledger(path: Path) -> tuple[LedgerFile, list[list[str]]]:
    """Read a ledger, and expand the cases of each of its entries."""
    source = read_yaml(path)
    if not isinstance(source.data, dict):
        raise source.error((), "a ledger is a mapping that begins with `backend: NAME`")
    try:
        file = LedgerFile.model_validate(source.data)
    except ValidationError as error:
        raise source.error(*explain_validation_error(source, error)) from None
    cases = [list(_expand_cases(source, index, entry)) for index, entry in enumerate(file.entries)]
    _check_listed_once(source, file, cases)
    return file, cases


def _expand_cases(source: YamlFile, index: int, entry: LedgerEntry) -> Iterator[str]:
    """The cases of an entry; raise an error if a pattern stands for none, or for too many."""
    here: Location = ("entries", index)
    if (entry.rule is None) != (entry.verdict in NO_ANSWER):
        wrong = "names no `rule`" if entry.rule is None else "has no `rule`; leave it out"
        raise source.error(here, f"an entry that {entry.verdict} {wrong}")
    for number, pattern in enumerate(entry.cases):
        found = expand(pattern)
        if not found:
            message = f"`{pattern}` is no case; castigate specs DOCUMENT:VERSION lists them"
            raise source.error((*here, "cases", number), message)
        if len(found) > MAX_CASES:
            raise source.error(
                (*here, "cases", number),
                f"`{pattern}` stands for {len(found)} cases, more than {MAX_CASES}; "
                f"write fewer `{WITHIN_PART}`, in several patterns",
            )
        yield from found


def _check_listed_once(source: YamlFile, file: LedgerFile, cases: list[list[str]]) -> None:
    """Raise an error if two entries list the same case, verdict and rule for the same version."""
    seen: dict[tuple[str, str, str | None], list[tuple[Span, int]]] = {}
    for index, entry in enumerate(file.entries):
        span = Span.of(entry.versions)
        for case in dict.fromkeys(cases[index]):
            others = seen.setdefault((case, entry.verdict, entry.rule), [])
            for other, first in others:
                if span.overlaps(other):
                    raise source.error(
                        ("entries", index),
                        f"{case} is listed already for {other} by the entry on line "
                        f"{source.line(('entries', first))}; keep one of the two",
                    )
            others.append((span, index))
