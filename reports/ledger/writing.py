"""Writes a ledger in as few lines as can be read, always the same for the same content."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from reports.ledger.listing import Ledger, Listing
from reports.ledger.patterns import compressed, natural
from reports.ledger.versions import order
from reports.places import place_of

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
