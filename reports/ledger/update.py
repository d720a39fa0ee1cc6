"""Updates a ledger after a run, and writes it: the same content always gives the same file."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import groupby
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from reports.case_patterns import compress, natural_order
from reports.findings.finding import KINDS, UNEXPLAINED, Finding
from reports.findings.finding_text import example_words, shortened
from reports.known_failures import KnownFailure
from reports.ledger.ledger_file import SEPARATOR, update_command
from reports.ledger.listing import InputOptions, KnownFinding, Ledger, ListedFailure
from reports.ledger.version_spans import Span, public_version, version_order
from reports.run_store.storage import folder_at

HEAD = """\
# What {0} is known to get wrong; all of it must show, and nothing else may.
# Rewritten by: {1}
"""
LONGEST_EXAMPLE = 120
"""The most characters of an example."""
NO_WRAPPING = 1 << 16
"""A line width that is longer than any line."""


def update_ledger(
    before: Ledger | None,
    backend: str,
    version: str,
    options: InputOptions,
    found: Mapping[str, Sequence[KnownFailure]],
    findings: Sequence[Finding],
    judged: Container[str] | None = None,
) -> Ledger:
    """Return the ledger after a run on one version; what is listed for other versions is kept.

    ``found`` has the failures of each case; a case that it lacks does not fail. ``findings``
    explain them. ``before`` is None for a new ledger. If the run ``judged`` only some cases, the
    listings of the others are kept, with their findings; it must be a version of ``before`` then.
    """
    old = before if before is not None else Ledger(backend)
    own = public_version(version)
    versions = tuple(sorted({*old.versions, own}, key=version_order))
    names: dict[str, tuple[str, ...]] = {}
    for finding in findings:
        for case in finding.cases:
            names[case] = tuple(sorted({*names.get(case, ()), finding.name}))
    listings: dict[str, list[ListedFailure]] = {}
    kept: dict[str, KnownFinding] = {}
    for case in {**old.listings, **found}:
        if judged is not None and case not in judged:
            listings[case] = old.listings[case]
            kept |= {name: old.findings[name] for each in listings[case] for name in each.findings}
            continue
        ways = {each: _way(old.at(case, each)) for each in old.versions}
        listed = old.at(case, old.nearest(own))
        failed = tuple(_as_listed(each, listed) for each in found.get(case, ()))
        ways[own] = CaseFailure(failed, names.get(case, (UNEXPLAINED,)))
        if updated := list(_joined([(each, ways[each]) for each in versions], own)):
            listings[case] = updated
    known = {**old.findings, **{each.name: _known(each, old) for each in findings}, **kept}
    return Ledger(backend, options, known, listings, versions)


@dataclass(frozen=True)
class CaseFailure:
    """How a case fails in one version, and the findings that explain it.

    ``failures`` is empty if it does not fail.
    """

    failures: tuple[KnownFailure, ...]
    findings: tuple[str, ...]


def _as_listed(found: KnownFailure, listed: Sequence[ListedFailure]) -> KnownFailure:
    """Return ``found`` as a ledger is to list it.

    If a person marked its verdict as varying in ``listed``, it stays so.
    """
    varying = KnownFailure(found.what)
    return varying if varying in [each.failure for each in listed] else found


def _way(listed: Sequence[ListedFailure]) -> CaseFailure:
    return CaseFailure(tuple(each.failure for each in listed), listed[0].findings if listed else ())


def _joined(ways: Sequence[tuple[str, CaseFailure]], newest: str) -> Iterator[ListedFailure]:
    """Yield the listings of a case, with one span for neighboring versions that fail alike.

    ``ways`` has each version with how the case fails in it. The findings are those of the version
    ``newest`` if the span has it, otherwise of the span's last version.
    """
    for failed, group in groupby(ways, key=lambda each: each[1].failures):
        together = dict(group)
        first, last = next(iter(together)), next(reversed(together))
        findings = together.get(newest, together[last]).findings
        for failure in failed:
            yield ListedFailure(failure, Span(first, last), findings)


def _known(finding: Finding, old: Ledger) -> KnownFinding:
    """Return a finding as a ledger records it; ``upstream`` is the docket's thread or ``old``'s."""
    before = old.findings.get(finding.name)
    upstream = finding.upstream or (before.upstream if before is not None else None)
    example = shortened(example_words(finding), LONGEST_EXAMPLE)
    return KnownFinding(finding.kind, finding.says, example, upstream)


def write_ledger(path: Path, ledger: Ledger) -> int:
    """Write a ledger in place of the old file, and return how many entries it has.

    Raise CastigateError if the file cannot be written.
    """
    entries = list(_entries(ledger))
    content = {
        "backend": ledger.backend,
        "made-with": list(ledger.versions),
        "tier": ledger.options.tier,
        "seed": ledger.options.seed,
        "max-examples": ledger.options.max_examples,
        "findings": entries,
    }
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.width = NO_WRAPPING
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    out = StringIO()
    yaml.dump(content, out)
    text = HEAD.format(ledger.backend, update_command(ledger.backend)) + out.getvalue()
    folder = folder_at(str(path.parent))
    folder.write(path.name, text.encode(), "nothing has changed; the folder must be writable")
    return len(entries)


def _entries(ledger: Ledger) -> Iterator[dict[str, Any]]:
    """Yield an entry as plain data for each finding and span, in the order of finding kinds."""
    groups: dict[tuple[str, Span], dict[str, list[str]]] = {}
    for case in sorted(ledger.listings, key=natural_order):
        by_span: dict[Span, list[ListedFailure]] = {}
        for each in ledger.listings[case]:
            by_span.setdefault(each.span, []).append(each)
        for span, listings in by_span.items():
            text = SEPARATOR.join(str(each.failure) for each in listings)
            for name in listings[0].findings:
                groups.setdefault((name, span), {}).setdefault(text, []).append(case)

    def file_order(key: tuple[str, Span]) -> tuple[Any, ...]:
        name, span = key
        return KINDS.index(ledger.findings[name].kind), name, version_order(span.first)

    for name, span in sorted(groups, key=file_order):
        yield _entry(name, ledger.findings[name], span, groups[name, span])


def _entry(
    name: str, finding: KnownFinding, span: Span, cases: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """Return an entry as plain data, without the keys that have no value.

    ``cases`` maps each way to fail to the cases that fail so.
    """
    patterns = {text: compress(together) for text, together in cases.items()}
    in_order = sorted(patterns.items(), key=lambda item: natural_order(item[1][0]))
    entry = {
        "finding": name,
        "kind": finding.kind,
        "says": finding.says,
        "example": finding.example,
        "versions": str(span),
        "upstream": finding.upstream,
        "cases": {text: each if len(each) > 1 else each[0] for text, each in in_order},
    }
    return {key: value for key, value in entry.items() if value}
