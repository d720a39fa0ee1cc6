"""The data that all pages share: every case of the run with its verdicts, one letter each."""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

from reports.diff.judgement import VERDICTS
from reports.findings.cells import Cell
from reports.findings.changes import CHANGES
from reports.findings.number_line import line
from reports.findings.report import Report, Version
from reports.findings.verdict_signs import ABSENT, CHANGE_SIGNS, CODES, MEANINGS
from specs.formats import formats
from specs.loader import documents


def index(report: Report) -> dict[str, Any]:
    """Backends, runs, dtypes, and the cases of every version."""
    return {
        "backends": [
            {"name": each.name, "version": each.version} for each in report.record.backends
        ],
        "runs": [f"{record.started:%Y-%m-%d %H:%M}" for record in report.records],
        "verdicts": [
            {"name": name, "sign": MEANINGS[name][0], "meaning": MEANINGS[name][1]}
            for name in VERDICTS
        ],
        "changes": [
            {"name": name, "sign": CHANGE_SIGNS[name], "meaning": meaning}
            for name, meaning in CHANGES.items()
        ],
        "dtypes": {name: line(form) for name, form in formats().items()},
        "versions": [_version(report, version) for version in report.cases],
        "pairs": _pairs(report),
    }


def page_of(version: Version) -> str:
    """The file of a version's page."""
    return f"document-{'-'.join(version)}.html"


def _version(report: Report, version: Version) -> dict[str, Any]:
    cases = report.cases[version]
    names, modes = list(formats()), list(dict.fromkeys(cell.mode for cell in cases))
    document, number = version
    return {
        "document": document,
        "version": number,
        "title": documents()[document].entry.title,
        "page": page_of(version),
        "modes": modes,
        # Source, target and mode of the first case, then of the second, and so on.
        "cases": [
            place
            for cell in cases
            for place in (
                names.index(cell.source),
                names.index(cell.target),
                modes.index(cell.mode),
            )
        ],
        "verdicts": ["".join(_letters(report, backend, cases)) for backend in report.backends],
        "changes": [dict(_changed(report, backend, cases)) for backend in report.backends],
        "broken": [_broken(report, backend, cases) for backend in report.backends],
    }


def _letters(report: Report, backend: str, cases: list[Cell]) -> Iterator[str]:
    for cell in cases:
        told = report.cells.get((backend, cell.case))
        yield ABSENT if told is None else CODES[told.verdict]


def _changed(report: Report, backend: str, cases: list[Cell]) -> Iterator[tuple[str, list[int]]]:
    """The kinds of change that a case has seen, by its place."""
    kinds = list(CHANGES)
    for place, cell in enumerate(cases):
        found = report.changes.get((backend, cell.case), ())
        if found:
            yield str(place), sorted({kinds.index(change.kind) for change in found})


def _broken(report: Report, backend: str, cases: list[Cell]) -> dict[str, list[int]]:
    """The cases in which a backend breaks each rule, by their places."""
    found: dict[str, list[int]] = {}
    for place, cell in enumerate(cases):
        told = report.cells.get((backend, cell.case))
        for rule in sorted({each.rule for each in told.broken} if told is not None else ()):
            found.setdefault(rule, []).append(place)
    return dict(sorted(found.items()))


def _pairs(report: Report) -> dict[str, int]:
    """Into how many camps the backends fall on each pair, in the case that divides them most."""
    found: dict[str, int] = {}
    for cases in report.cases.values():
        for cell in cases:
            told = [each for each in report.of_case(cell.case) if each.is_answered]
            name = f"{cell.source}/{cell.target}"
            found[name] = max(found.get(name, 0), len({each.behaves for each in told}))
    return found


def packed(name: str, data: Any) -> bytes:
    """The bytes of a data file, the same for the same data."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"), check_circular=False)
    squeezed = b64encode(zlib.compress(text.encode(), 9)).decode()
    return f'castigate.receive({json.dumps(name)},\n"{squeezed}");\n'.encode()
