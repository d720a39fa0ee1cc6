"""A badge per backend, as the JSON that shields.io reads from an address."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any

from conformance.extras.board.made_board import BoardRow
from reports.findings.finding_text import counted
from reports.judgement import NO_ANSWER

GREY = "lightgrey"
RED, YELLOW, GREEN, BLUE = "red", "yellow", "brightgreen", "blue"
FOLDER = "badges"


def badge_file(row: BoardRow) -> str:
    """Return the file of a row's badge, such as ``badges/torch-compile.json``."""
    name = f"{row.backend} by {row.reporter}" if row.reporter else row.backend
    return f"{FOLDER}/{re.sub(r'[^A-Za-z0-9_.-]+', '-', name).strip('-')}.json"


def badge_files(rows: Sequence[BoardRow], today: date) -> Iterator[tuple[str, bytes]]:
    """Yield the path and the content of the badge of each backend's latest version."""
    for row in rows:
        if row.is_latest:
            yield badge_file(row), (json.dumps(badge(row, today), indent=1) + "\n").encode()


def badge(row: BoardRow, today: date) -> dict[str, Any]:
    """Return a row's badge by the schema of shields.io.

    It counts findings and gives the day of the run. It is grey without a good run, if the run is
    old, and if a newer release was not asked.
    """
    label = f"{row.backend} {row.version}"
    if row.good is None:
        return _entry(label, "no good run yet", GREY)
    told = [counted(len(row.good.findings.findings), "finding"), row.good.day.isoformat()]
    if row.reporter:
        told.append(f"reported by {row.reporter}")
    if row.newer:
        told.append(f"{row.newer} not asked")
    is_stale = bool(row.newer) or row.is_old(today)
    return _entry(label, ", ".join(told), GREY if is_stale else _color(row))


def _color(row: BoardRow) -> str:
    assert row.good is not None
    verdicts = {*row.good.verdicts.values()}
    if verdicts & {"violates", *NO_ANSWER}:
        return RED
    # Checks of pairs have findings, too.
    if row.good.findings.findings:
        return YELLOW
    # What differs from documents that a backend does not claim is no finding, and not green.
    return BLUE if "differs" in verdicts else GREEN


def _entry(label: str, message: str, color: str) -> dict[str, Any]:
    return {"schemaVersion": 1, "label": label, "message": message, "color": color}
