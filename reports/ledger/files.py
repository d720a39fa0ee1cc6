"""Where ledgers lie, and how they come from there."""

from __future__ import annotations

import re
from pathlib import Path

from reports.ledger.breaches import Breach
from reports.ledger.entries import read_ledger
from reports.ledger.listing import Asked, Ledger, Listing
from reports.ledger.versions import Span
from specs.errors import CastigateError

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
