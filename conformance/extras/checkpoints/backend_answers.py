"""Asks all backends of a check the same patterns; imported only if a backend is named."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from conformance.pair_answers import BackendCase, LostBackendError, asked_of
from oracles.protocol import Bits
from oracles.registry import Backend
from specs.errors import CastigateError


@dataclass(frozen=True)
class AskedBackends:
    """Some backends, each with the case that it is asked for a pair of dtypes."""

    parties: tuple[BackendCase, ...]

    def answers(self, patterns: Bits) -> list[Bits]:
        """Return the answers of each backend; raise CastigateError if one fails."""
        with ThreadPoolExecutor(len(self.parties)) as pool:
            try:
                return [*pool.map(lambda party: party.answers(patterns), self.parties)]
            except LostBackendError as lost:
                raise CastigateError(f"{lost}; leave it out") from None


def asked_backends(backends: Sequence[Backend], source: str, target: str) -> AskedBackends:
    """Find the case of a pair that each backend answers; raise CastigateError if one has none."""
    found = []
    for backend in backends:
        asked = asked_of(backend, source, target)
        if isinstance(asked, str):
            raise CastigateError(
                f"{backend.name} does not cast {source} to {target}: {asked}; leave it out, or"
                " choose tensors by --from"
            )
        found.append(asked)
    return AskedBackends(tuple(found))
