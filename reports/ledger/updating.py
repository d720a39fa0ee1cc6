"""Brings a ledger up to date with a run on one version of its backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from reports.ledger.breaches import Breach
from reports.ledger.listing import Asked, Ledger, Listing
from reports.ledger.versions import Span, public

Region = tuple[str, str, str]
"""Verdict, rule and digest."""


def updated(
    before: Ledger | None,
    backend: str,
    version: str,
    asked: Asked,
    found: Mapping[str, Sequence[Breach]],
) -> Ledger:
    """What is known after a run on a version; what is listed for others alone stays as it is."""
    old = before.listings if before is not None else {}
    reported = _reported(old)
    listings: dict[str, list[Listing]] = {}
    for case in {**old, **found}:
        left = list(old.get(case, ()))
        now = [_listing(left, version, breach, reported) for breach in found.get(case, ())]
        kept = [each for each in left if version not in each.span] + now
        if kept:
            listings[case] = kept
    return Ledger(backend, asked, listings)


def _reported(old: Mapping[str, Sequence[Listing]]) -> dict[Region, Listing]:
    """The listing that says most of each region: a case that joins others shares what is known."""
    found: dict[Region, Listing] = {}
    for listings in old.values():
        for each in listings:
            if each.upstream or each.behaviour:
                found.setdefault((*each.key, each.breach.region), each)
    return found


def _listing(
    left: list[Listing], version: str, breach: Breach, reported: Mapping[Region, Listing]
) -> Listing:
    """The listing of a breach: an old one of the same region, which it takes out, or a new one."""
    same = [each for each in left if each.key == (breach.verdict, breach.rule)]
    for each in sorted(same, key=lambda one: version not in one.span):
        span = each.span.reaching(version)
        others = [one.span for one in same if one is not each and version not in one.span]
        if each.breach.region == breach.region and not any(map(span.meets, others)):
            left.remove(each)
            # The old example stays: texts of errors vary from run to run.
            kept = replace(breach, example=each.breach.example)
            behaviour = each.behaviour or breach.behaviour
            return replace(each, span=span, breach=kept, behaviour=behaviour)
    alike = reported.get((breach.verdict, breach.rule, breach.region))
    here = next((each for each in same if version in each.span), alike)
    return Listing(
        breach,
        Span(public(version), public(version)),
        alike.behaviour if alike is not None and alike.behaviour else breach.behaviour,
        here.upstream if here is not None else None,
    )
