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
from specs.model.document import Operation
from specs.quantization_cases import FORM
from specs.quantized_tensors import operands_of, results_of


@dataclass(frozen=True)
class Sample:
    """A case, its tensors, and the results that it must have."""

    case: Case
    tensors: dict[str, Bits]
    results: dict[str, Bits]


def sample_cases(
    backend: Backend, operation: Operation, dtypes: Collection[str]
) -> dict[str, list[Case]]:
    """The cases of an operation by both dtypes in words, of the versions that a backend claims.

    All their tensors are of the ``dtypes``.
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
            needed = {*operands_of(case).values(), *results_of(case).values()}
            if needed <= set(dtypes):
                found.setdefault(f"{case.source} to {case.target}", []).append(case)
    return found


def sample(case: Case) -> Sample:
    """The tensors of a case, with the results that the reference gives."""
    brings = tensors_of(case)
    tensors = brings.sample(case)
    return Sample(case, tensors, dict(brings.answer(case, tensors)))


def _plain_cases(document: str, version: str) -> Iterator[Case]:
    """The first case of each two dtypes of a version, which has one scale for the tensor."""
    seen: set[tuple[str, str]] = set()
    for case in edition(document_named(document), version).cases():
        pair = case.source, case.target
        if pair not in seen and case.mode.get(FORM, "tensor") == "tensor":
            seen.add(pair)
            yield case
