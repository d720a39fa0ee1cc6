"""The data files that pages load: all cases of the run, and the behaviors on open inputs."""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections.abc import Hashable, Iterator
from typing import Any

from reports.changes.divergences import CHANGES
from reports.dtype_order import usual_first
from reports.findings.cells import Cell
from reports.findings.intervals import number_line
from reports.findings.report import Report, Version
from reports.findings.verdict_signs import (
    CHANGE_SIGNS,
    NO_VERDICT,
    SIGNS_AND_MEANINGS,
)
from reports.judgement import VERDICT_DIGITS, VERDICTS
from specs.formats import format_named
from specs.loader import documents

ALL_OF = ": 100 % of "
"""Separates a behavior from the number of inputs that it explains."""


def index_data(report: Report) -> dict[str, Any]:
    """Return the content of ``data/index.js``: backends, runs, verdicts, dtypes, and all cases.

    The cases are listed by version, with their verdicts, changes and broken rules.
    """
    return {
        "backends": [
            {"name": each.name, "version": each.version} for each in report.record.backends
        ],
        # Of each framework, its name and the indexes of its backends, the plain one first.
        "frameworks": [
            {
                "name": group.framework,
                "backends": [report.backends.index(each) for each in group.backends],
            }
            for group in report.road_groups
        ],
        "runs": [f"{record.started:%Y-%m-%d %H:%M}" for record in report.records],
        "verdicts": [
            {
                "name": name,
                "sign": SIGNS_AND_MEANINGS[name][0],
                "meaning": SIGNS_AND_MEANINGS[name][1],
            }
            for name in VERDICTS
        ],
        "changes": [
            {"name": name, "sign": CHANGE_SIGNS[name], "meaning": meaning}
            for name, meaning in CHANGES.items()
        ],
        "dtypes": {name: number_line(format_named(name)) for name in usual_first()},
        "versions": [_version(report, version) for version in report.cases],
    }


def data_file(name: str, data: Any) -> bytes:
    """Return the bytes of a data file: a script with deflated JSON, equal for equal data."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"), check_circular=False)
    payload = b64encode(zlib.compress(text.encode(), 9)).decode()
    return f'castigate.receive({json.dumps(name)},\n"{payload}");\n'.encode()


def _version(report: Report, version: Version) -> dict[str, Any]:
    place = usual_first()
    cases = sorted(report.cases[version], key=lambda cell: (place[cell.source], place[cell.target]))
    modes = list(dict.fromkeys(cell.mode for cell in cases))
    document, number = version
    return {
        "document": document,
        "version": number,
        "title": documents()[document].entry.title,
        "operation": documents()[document].entry.operation,
        "newest": version == _newest_version(report, document),
        "modes": modes,
        # Indexes of the source, target and mode of the first case, then of the second, and so on.
        "cases": [
            index
            for cell in cases
            for index in (
                place[cell.source],
                place[cell.target],
                modes.index(cell.mode),
            )
        ],
        "verdicts": ["".join(_digits(report, backend, cases)) for backend in report.backends],
        "answers": list(_equal_answers(report, cases)),
        # Indexes of the cases in which a road does not do as the plain backend of its framework.
        "differing": [
            [index for index, cell in enumerate(cases) if cell.case in differing]
            for differing in (report.differing_cases.get(each, ()) for each in report.backends)
        ],
        "changes": [dict(_change_kinds(report, backend, cases)) for backend in report.backends],
        "broken": [_cases_by_rule(report, backend, cases) for backend in report.backends],
    }


def _newest_version(report: Report, document: str) -> Version:
    return [version for version in report.cases if version[0] == document][-1]


def open_answers_data(report: Report) -> dict[str, Any]:
    """Return the content of ``data/open.js``: `texts` for open inputs of casts, and `pairs`.

    `texts` has sentences about behaviors, each once; `pairs` has, by dtype pair and backend, their
    indices. Only the last version of each document counts.
    """
    texts: dict[str, int] = {}
    pairs: dict[str, dict[str, list[int]]] = {}
    for (backend, _), cell in report.cells.items():
        lines = report.behaviors.get((backend, cell.case), ())
        is_cast = documents()[cell.document].entry.operation == "cast"
        newest = _newest_version(report, cell.document)
        if lines and is_cast and (cell.document, cell.version) == newest:
            known = pairs.setdefault(f"{cell.source}/{cell.target}", {})
            indexes = known.setdefault(backend, [])
            for line in lines:
                # Each case counts its own inputs; the behavior is what they share.
                behavior, _, _ = line.partition(ALL_OF)
                index = texts.setdefault(behavior, len(texts))
                if index not in indexes:
                    indexes.append(index)
    return {"texts": list(texts), "pairs": pairs}


def _digits(report: Report, backend: str, cases: list[Cell]) -> Iterator[str]:
    for one in cases:
        cell = report.cells.get((backend, one.case))
        yield NO_VERDICT if cell is None else VERDICT_DIGITS[cell.verdict]


def _equal_answers(report: Report, cases: list[Cell]) -> Iterator[str]:
    """Yield a text per backend, with a letter per case, by which answers can be compared.

    Within a case, backends with the same letter have the same answers, bit for bit. A space stands
    where the run does not keep the answers, and a hyphen where there are none.
    """
    letters: list[dict[str, str]] = []
    for one in cases:
        known: dict[Hashable, str] = {}
        letters.append({})
        for cell in report.cells_of_case(one.case):
            # A message that comes with no broken rule is that of a refusal.
            is_refused = bool(cell.message) and not cell.broken
            letter = " " if cell.is_answered and not is_refused else "-"
            if cell.answers:
                letter = known.setdefault((cell.asked, cell.answers), chr(ord("a") + len(known)))
            letters[-1][cell.backend] = letter
    for backend in report.backends:
        yield "".join(of_case.get(backend, "-") for of_case in letters)


def _change_kinds(
    report: Report, backend: str, cases: list[Cell]
) -> Iterator[tuple[str, list[int]]]:
    """Yield the index of each changed case, as text, and its kinds as indices in ``CHANGES``."""
    kinds = list(CHANGES)
    for index, cell in enumerate(cases):
        changes = report.changes.get((backend, cell.case), ())
        if changes:
            yield str(index), sorted({kinds.index(change.kind) for change in changes})


def _cases_by_rule(report: Report, backend: str, cases: list[Cell]) -> dict[str, list[int]]:
    """Return, by rule, the indices of the cases in which a backend breaks it."""
    found: dict[str, list[int]] = {}
    for index, one in enumerate(cases):
        cell = report.cells.get((backend, one.case))
        for rule in sorted({each.rule for each in cell.broken} if cell is not None else ()):
            found.setdefault(rule, []).append(index)
    return dict(sorted(found.items()))
