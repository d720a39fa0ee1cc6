"""Writes a ledger in as few lines as can be read, always the same for the same content."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from reports.ledger.breaches import Breach
from reports.ledger.case_patterns import compressed, natural
from reports.ledger.listing import Asked, Ledger, Listing
from reports.ledger.version_spans import Span, order, public
from reports.run_store.storage import place_of

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


HEAD = """\
# What {0} is known to get wrong; all of it must show, and nothing else may.
# Rewritten by: pytest --pyargs conformance --backend={0} --update-ledger
"""
UNBROKEN = 1 << 16
"""Columns of a line: longer than any."""
Row = tuple[str, str, str, int, str, str, str]


def write_ledger(path: Path, ledger: Ledger) -> int:
    """Put a ledger in its place; how many entries it has."""
    entries = list(_entries(ledger))
    content = {
        "backend": ledger.backend,
        "tier": ledger.asked.tier,
        "seed": ledger.asked.seed,
        "max-examples": ledger.asked.max_examples,
        "entries": entries,
    }
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.width = UNBROKEN
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    out = StringIO()
    yaml.dump(content, out)
    text = HEAD.format(ledger.backend) + out.getvalue()
    place = place_of(str(path.parent))
    place.write(path.name, text.encode(), "nothing has changed; the folder must be writable")
    return len(entries)


def _entries(ledger: Ledger) -> Iterator[dict[str, Any]]:
    """Cases of which the same is known are one entry."""
    groups: dict[Row, list[str]] = {}
    first: dict[Row, Listing] = {}
    for case in sorted(ledger.listings, key=natural):
        for each in ledger.listings[case]:
            groups.setdefault(_row(each), []).append(case)
            first.setdefault(_row(each), each)

    def place(row: Row) -> tuple[Any, ...]:
        return natural(groups[row][0]), order(first[row].span.first), row

    for row in sorted(groups, key=place):
        yield _entry(first[row], groups[row])


def _row(listing: Listing) -> Row:
    breach = listing.breach
    return (
        breach.verdict,
        breach.rule,
        breach.region,
        breach.inputs,
        str(listing.span),
        listing.behaviour or "",
        listing.upstream or "",
    )


def _entry(listing: Listing, cases: list[str]) -> dict[str, Any]:
    """An entry as plain data; what there is nothing to say of is left out."""
    breach = listing.breach
    said = {
        "verdict": breach.verdict,
        "rule": breach.rule,
        "versions": str(listing.span),
        "inputs": breach.inputs,
        "region": breach.region,
        "example": breach.example,
        "behaviour": listing.behaviour,
        "upstream": listing.upstream,
        "cases": compressed(cases),
    }
    return {name: value for name, value in said.items() if value}
