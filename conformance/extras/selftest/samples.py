"""Cases whose tensors have names, with results that no document leaves open, for the self test."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from conformance.families import tensors_of
from oracles.protocol import Bits
from oracles.registry import Backend
from specs.cases import Case
from specs.editions import edition
from specs.loader import document_named, documents
from specs.operations import tensor_dtypes


@dataclass(frozen=True)
class KnownCase:
    """A case, its input tensors by name, and by name the results that it must have."""

    case: Case
    tensors: dict[str, Bits]
    results: dict[str, Bits]


def sample_cases(
    backend: Backend, operation: str, dtypes: Collection[str]
) -> dict[str, list[Case]]:
    """Return an operation's cases by their dtypes, with keys such as ``float32 to int8``.

    They are cases of the versions that the backend claims, one per version and pair of dtypes,
    newest versions first. All their tensors have dtypes among ``dtypes``.
    """
    claimed = [
        (name, version)
        for name, document in documents().items()
        if document.entry.operation == operation
        for version in reversed(document.entry.versions)
        if backend.claims(name, version)
    ]
    found: dict[str, list[Case]] = {}
    for name, version in claimed:
        for case in _plain_cases(name, version):
            taken, returned = tensor_dtypes(case)
            needed = {*taken.values(), *returned.values()}
            if needed <= set(dtypes):
                found.setdefault(f"{case.source} to {case.target}", []).append(case)
    return found


def sample(case: Case) -> KnownCase:
    """Return sample tensors for a case of named tensors, and the reference's results for them."""
    brings = tensors_of(case)
    tensors = brings.sample(case)
    return KnownCase(case, tensors, dict(brings.answer(case, tensors)))


def _plain_cases(document: str, version: str) -> Iterator[Case]:
    """Yield the first case, with the plainest modes, of each pair of dtypes of a version."""
    found: dict[tuple[str, str], Case] = {}
    for case in edition(document_named(document), version).cases():
        found.setdefault((case.source, case.target), case)
    yield from found.values()
