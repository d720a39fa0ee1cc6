"""Updates a ledger after a run, and writes it: the same content always gives the same file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from reports.case_patterns import compress, natural_order
from reports.ledger.breaches import Breach
from reports.ledger.listing import InputOptions, Ledger, Listing
from reports.ledger.version_spans import Span, public_version, version_order
from reports.run_store.storage import folder_at

RegionKey = tuple[str, str, str]
"""Verdict, rule and the digest of the region."""
EntryKey = tuple[str, str, str, int, str, str, str]
"""Everything that an entry says except its cases and its example."""
HEAD = """\
# What {0} is known to get wrong; all of it must show, and nothing else may.
# Rewritten by: pytest --pyargs conformance --backend={0} --update-ledger
"""
NO_WRAPPING = 1 << 16
"""A line width that is longer than any line."""


def update_ledger(
    before: Ledger | None,
    backend: str,
    version: str,
    options: InputOptions,
    found: Mapping[str, Sequence[Breach]],
) -> Ledger:
    """The ledger after a run on one version; what is listed for other versions alone is kept."""
    old = before.listings if before is not None else {}
    annotated = _annotated(old)
    listings: dict[str, list[Listing]] = {}
    for case in {**old, **found}:
        remaining = list(old.get(case, ()))
        new = [_take_listing(remaining, version, each, annotated) for each in found.get(case, ())]
        if updated := [each for each in remaining if version not in each.span] + new:
            listings[case] = updated
    return Ledger(backend, options, listings)


def _annotated(old: Mapping[str, Sequence[Listing]]) -> dict[RegionKey, Listing]:
    """The first listing of each region with a behavior or a link; new cases of it share these."""
    found: dict[RegionKey, Listing] = {}
    for listings in old.values():
        for each in listings:
            if each.upstream or each.behavior:
                found.setdefault((*each.key, each.breach.region), each)
    return found


def _take_listing(
    remaining: list[Listing], version: str, breach: Breach, annotated: Mapping[RegionKey, Listing]
) -> Listing:
    """The listing of a breach that was found in a version.

    An old listing of the same region is extended to the version and removed from ``remaining``,
    unless its span would then overlap another's. Otherwise the listing is new.
    """
    same_rule = [each for each in remaining if each.key == breach.key]
    for each in sorted(same_rule, key=lambda one: version not in one.span):
        span = each.span.extended_to(version)
        others = [one.span for one in same_rule if one is not each and version not in one.span]
        if each.breach.region == breach.region and not any(map(span.overlaps, others)):
            remaining.remove(each)
            # The old example stays, because the texts of errors vary from run to run.
            with_old_example = replace(breach, example=each.breach.example)
            behavior = each.behavior or breach.behaviour
            return replace(each, span=span, breach=with_old_example, behavior=behavior)
    same_region = annotated.get((*breach.key, breach.region))
    same_version = next((each for each in same_rule if version in each.span), same_region)
    known_behavior = same_region.behavior if same_region is not None else None
    return Listing(
        breach,
        Span(public_version(version), public_version(version)),
        known_behavior or breach.behaviour,
        same_version.upstream if same_version is not None else None,
    )


def write_ledger(path: Path, ledger: Ledger) -> int:
    """Write a ledger in place of the old one, and return how many entries it has."""
    entries = list(_entries(ledger))
    content = {
        "backend": ledger.backend,
        "tier": ledger.options.tier,
        "seed": ledger.options.seed,
        "max-examples": ledger.options.max_examples,
        "entries": entries,
    }
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.width = NO_WRAPPING
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    out = StringIO()
    yaml.dump(content, out)
    text = HEAD.format(ledger.backend) + out.getvalue()
    folder = folder_at(str(path.parent))
    folder.write(path.name, text.encode(), "nothing has changed; the folder must be writable")
    return len(entries)


def _entries(ledger: Ledger) -> Iterator[dict[str, Any]]:
    """The entries in the order of the file; cases that are listed alike share one."""
    groups: dict[EntryKey, list[str]] = {}
    first: dict[EntryKey, Listing] = {}
    for case in sorted(ledger.listings, key=natural_order):
        for each in ledger.listings[case]:
            groups.setdefault(_entry_key(each), []).append(case)
            first.setdefault(_entry_key(each), each)

    def file_order(key: EntryKey) -> tuple[Any, ...]:
        return natural_order(groups[key][0]), version_order(first[key].span.first), key

    for key in sorted(groups, key=file_order):
        yield _entry(first[key], groups[key])


def _entry_key(listing: Listing) -> EntryKey:
    breach = listing.breach
    return (
        breach.verdict,
        breach.rule,
        breach.region,
        breach.inputs,
        str(listing.span),
        listing.behavior or "",
        listing.upstream or "",
    )


def _entry(listing: Listing, cases: list[str]) -> dict[str, Any]:
    """An entry as plain data, without the keys that have no value."""
    breach = listing.breach
    entry = {
        "verdict": breach.verdict,
        "rule": breach.rule,
        "versions": str(listing.span),
        "inputs": breach.inputs,
        "region": breach.region,
        "example": breach.example,
        "behaviour": listing.behavior,
        "upstream": listing.upstream,
        "cases": compress(cases),
    }
    return {key: value for key, value in entry.items() if value}
