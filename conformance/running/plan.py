"""Splits a run into tasks, without regard to processes, shards or restarts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from conformance.sweep.plan import Sweep
from oracles.claims import Claim
from oracles.reference.sweep_inputs import SAMPLE
from oracles.registry import first_variant
from reports.case_patterns import CHAINS, pair_checks
from specs.cases import Case
from specs.chains import chains_of, has_chains, lossy
from specs.loader import document_named
from specs.operations import is_cast

UNCLAIMED = "onnx-cast"
"""The document with which chains are compared where a backend claims none."""
PARTS = 16
"""The number of tasks into which a sweep is split."""
Tier = Literal["quick", "full"]


@dataclass(frozen=True)
class Task:
    """A worker's unit of work: all cases and checks of a pair, or a part of a sweep.

    ``among`` are the cases of a pair that its checks may ask; they need not all be judged.
    """

    name: str
    cases: tuple[Case, ...]
    checks: tuple[str, ...] = ()
    sweep: Sweep | None = None
    part: int = 0
    among: tuple[Case, ...] = ()

    def bounds(self, size: int) -> tuple[int, int]:
        """Return the first and the last index + 1 of the task's share of ``size`` inputs."""
        return size * self.part // PARTS, size * (self.part + 1) // PARTS

    @property
    def weight(self) -> int:
        """About how many inputs the task has, for the progress display; 0 at the quick tier."""
        if self.sweep is None:
            return 0
        return (SAMPLE if self.sweep.way == "sample" else 1 << 32) // PARTS


def quick_tasks(backend: str, backends: Iterable[str], cases: Iterable[Case]) -> Iterator[Task]:
    """Yield one task per pair of dtypes; the cases must come pair by pair.

    ``backends`` are all of the run: variants of one framework are compared with its first.
    """
    first = first_variant(backends, backend)
    for (source, target), group in groupby(cases, key=lambda case: (case.source, case.target)):
        asked = tuple(group)
        has_casts = any(map(is_cast, asked))
        checks = pair_checks(f"{source}/{target}", first) if has_casts else ()
        yield Task(f"{backend}/quick/{source}-{target}", asked, checks, among=asked)


def chain_editions(
    cases: Iterable[Case], asked_for: Collection[str], claimed: Sequence[Claim]
) -> tuple[str, ...]:
    """The newest version of each document whose chains a backend is asked.

    These are the documents that it claims, or that were asked for by name. A backend that claims no
    document of casts is compared with ``UNCLAIMED``.
    """
    chosen: dict[str, str] = {}
    every: dict[str, str] = {}
    for case in cases:
        if not has_chains(case.document):
            continue
        order = list(document_named(case.document).entry.versions).index
        every[case.document] = max(every.get(case.document, case.version), case.version, key=order)
        is_claimed = any(each.covers(case.document, case.version) for each in claimed)
        if is_claimed or case.document in asked_for:
            known = chosen.get(case.document, case.version)
            chosen[case.document] = max(known, case.version, key=order)
    newest = chosen or {name: every[name] for name in every if name == UNCLAIMED}
    return tuple(f"{document}:{version}" for document, version in newest.items())


def chain_tasks(backend: str, cases: Iterable[Case], editions: Iterable[str]) -> Iterator[Task]:
    """Yield one task per pair of dtypes with all chains between them that lose something."""
    names: dict[tuple[str, str], list[str]] = {}
    among: dict[tuple[str, str], list[Case]] = {}
    chosen = {*editions}
    for case in cases:
        if f"{case.document}:{case.version}" in chosen:
            among.setdefault((case.source, case.target), []).append(case)
    for each in editions:
        document, _, version = each.partition(":")
        for chain in lossy(chains_of(document, version, has_all_modes=False)):
            if (chain.source, chain.target) in among:
                names.setdefault((chain.source, chain.target), []).append(f"{CHAINS}/{chain.id}")
    for (source, target), asked in names.items():
        task = f"{backend}/{CHAINS}/{source}-{target}"
        yield Task(task, (), tuple(asked), among=tuple(among[source, target]))


def sweep_tasks(backend: str, sweep: Sweep) -> list[Task]:
    """Split a sweep into tasks."""
    name = f"{backend}/{sweep.way}/{sweep.source.name}-{sweep.target.name}/{sweep.road}"
    return [Task(f"{name}/{part}", sweep.cases, (), sweep, part) for part in range(PARTS)]
