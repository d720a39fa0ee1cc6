"""Asks all parties for all containers, one container after another."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime

from conformance.exchange.container_findings import Finding, findings_of
from conformance.exchange.container_matrix import Containers, WayResult, containers, way_result
from conformance.exchange.container_probes import storable
from conformance.exchange.container_roads import CONTAINERS, ways_of
from oracles.backend.launch_config import DEFAULT_TIMEOUT, launch_configs
from oracles.backend.loading import close
from oracles.containers.parties import installed_parties, load_party


def survey(
    parties: Sequence[str] = (),
    names: Sequence[str] = CONTAINERS,
    dtypes: Sequence[str] = (),
    pythons: Sequence[str] = (),
    timeout: float = DEFAULT_TIMEOUT,
) -> Containers:
    """Return how tensors change between parties, by default between all that are installed."""
    ways: list[WayResult] = []
    findings: list[Finding] = []
    with ExitStack() as stack:
        backends = []
        configs = launch_configs(parties or installed_parties(), pythons, timeout)
        for name, config in configs.items():
            backends.append(load_party(name, config))
            stack.callback(close, backends[-1])
        for name in names:
            found = ways_of(backends, name, dtypes or storable())
            findings += findings_of(backends, found)
            ways += map(way_result, found)
        versions = {each.name: each.version for each in backends}
    return containers(versions, ways, findings, datetime.now(UTC).date())
