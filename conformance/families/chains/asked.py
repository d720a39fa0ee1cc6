"""Chooses which chains of casts a run requests."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from oracles.claims import Claim, is_held_to
from reports.case_patterns import CHAINS
from specs.cases import Case
from specs.chains import chains_of, has_chains, lossy
from specs.loader import document_named

UNCLAIMED = "onnx-cast"
"""The document that judges the chains of a backend that claims no document of casts."""


def chain_editions(
    cases: Iterable[Case], asked_for: Collection[str], claimed: Sequence[Claim]
) -> tuple[str, ...]:
    """Return the editions, as ``name:version``, whose chains a run requests of a backend.

    From each document with chains this is the newest version among ``cases`` that the backend
    claims, or that ``asked_for`` makes count as claimed. If no document has one, it is the newest
    version of ``UNCLAIMED`` among ``cases``, if any.
    """
    chosen: dict[str, str] = {}
    every: dict[str, str] = {}
    for case in cases:
        if not has_chains(case.document):
            continue
        order = list(document_named(case.document).entry.versions).index
        every[case.document] = max(every.get(case.document, case.version), case.version, key=order)
        if is_held_to(claimed, asked_for, case.document, case.version):
            known = chosen.get(case.document, case.version)
            chosen[case.document] = max(known, case.version, key=order)
    newest = chosen or {name: every[name] for name in every if name == UNCLAIMED}
    return tuple(f"{document}:{version}" for document, version in newest.items())


class ChainsOfPair(NamedTuple):
    """A dtype pair, the names of its chains' ``checks``, and its cases in all editions run."""

    source: str
    target: str
    checks: tuple[str, ...]
    among: tuple[Case, ...]


def chains_by_pair(cases: Iterable[Case], editions: Iterable[str]) -> Iterator[ChainsOfPair]:
    """Yield for each pair the chains of ``editions`` that may lose a value on the way.

    These are chains of two casts, at most one of them not in its default modes, whose middle dtype
    lacks some value of the source. Pairs without a case of ``editions`` among ``cases`` are left
    out.
    """
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
    for pair, asked in names.items():
        yield ChainsOfPair(*pair, tuple(asked), tuple(among[pair]))
