"""The shape of a ledger's YAML, checked with file and line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationError

from reports.ledger.breaches import WITHOUT_RULE, Breach
from reports.ledger.case_patterns import ANY, WIDEST, expanded
from reports.ledger.listing import Asked, Ledger, Listing
from reports.ledger.version_spans import Span
from specs.errors import CastigateError
from specs.model.document import Entry, Text
from specs.model.yaml_source import Location, Source, explained, read_yaml


def _span(text: str) -> str:
    return str(Span.of(text))


class LedgerEntry(Entry):
    """One known divergence, and the cases in which it shows."""

    verdict: Literal["violates", "deviates", "error", "crashed"]
    rule: Text | None = None
    versions: Annotated[Text, AfterValidator(_span)]
    cases: Annotated[list[Text], Field(min_length=1)]
    inputs: Annotated[int, Field(ge=0)] = 0
    region: Annotated[str, Field(pattern="^[0-9a-f]{16}$")]
    example: Text
    behaviour: Text | None = None
    upstream: Annotated[str, Field(pattern="^https://")] | None = None


class LedgerFile(Entry):
    """The known divergences of one backend, and how they were asked for."""

    backend: Text
    tier: Literal["quick", "full"]
    seed: Annotated[int, Field(ge=0)]
    max_examples: Annotated[int, Field(ge=0, alias="max-examples")]
    entries: list[LedgerEntry]


def read_ledger(path: Path) -> tuple[LedgerFile, list[list[str]]]:
    """A ledger, and the cases of each of its entries; or an error with file and line."""
    source = read_yaml(path)
    if not isinstance(source.data, dict):
        raise source.error((), "a ledger is a mapping that begins with `backend: NAME`")
    try:
        file = LedgerFile.model_validate(source.data)
    except ValidationError as error:
        raise source.error(*explained(source, error)) from None
    cases = [list(_cases(source, place, entry)) for place, entry in enumerate(file.entries)]
    _check_once(source, file, cases)
    return file, cases


def _cases(source: Source, place: int, entry: LedgerEntry) -> Iterator[str]:
    """The cases of an entry, every pattern in its bounds."""
    here: Location = ("entries", place)
    if (entry.rule is None) != (entry.verdict in WITHOUT_RULE):
        wrong = "names no `rule`" if entry.rule is None else "has no `rule`; leave it out"
        raise source.error(here, f"an entry that {entry.verdict} {wrong}")
    for number, pattern in enumerate(entry.cases):
        found = expanded(pattern)
        if not found:
            message = f"`{pattern}` is no case; castigate specs DOCUMENT:VERSION lists them"
            raise source.error((*here, "cases", number), message)
        if len(found) > WIDEST:
            raise source.error(
                (*here, "cases", number),
                f"`{pattern}` stands for {len(found)} cases, more than {WIDEST}; "
                f"write fewer `{ANY}`, in several patterns",
            )
        yield from found


def _check_once(source: Source, file: LedgerFile, cases: list[list[str]]) -> None:
    """No two entries may say something of the same case, rule and version."""
    seen: dict[tuple[str, str, str | None], list[tuple[Span, int]]] = {}
    for place, entry in enumerate(file.entries):
        span = Span.of(entry.versions)
        for case in dict.fromkeys(cases[place]):
            others = seen.setdefault((case, entry.verdict, entry.rule), [])
            for other, first in others:
                if span.meets(other):
                    raise source.error(
                        ("entries", place),
                        f"{case} is listed already for {other} by the entry on line "
                        f"{source.line(('entries', first))}; keep one of the two",
                    )
            others.append((span, place))


FOLDER = Path(__file__).parent
NAME = re.compile(r"[A-Za-z0-9_-]+(:[A-Za-z0-9_.-]+)?")


def path_of(backend: str) -> Path | None:
    """Where the ledger of a backend lies; only a plain name has one, with or without a variant."""
    if not NAME.fullmatch(backend):
        return None
    return FOLDER / f"{backend.replace(':', '.')}.yaml"


def load_ledger(backend: str) -> Ledger | None:
    """The ledger of a backend, if there is one, or an error with file and line."""
    path = path_of(backend)
    if path is None or not path.is_file():
        return None
    file, cases = read_ledger(path)
    if file.backend != backend:
        raise CastigateError(f"{path}:1: this is the ledger of {file.backend}, not of {backend}")
    ledger = Ledger(backend, Asked(file.tier, file.seed, file.max_examples))
    for entry, names in zip(file.entries, cases, strict=True):
        breach = Breach(entry.verdict, entry.rule or "", entry.inputs, entry.region, entry.example)
        made = Listing(breach, Span.of(entry.versions), entry.behaviour, entry.upstream)
        for name in dict.fromkeys(names):
            ledger.listings.setdefault(name, []).append(made)
    return ledger
