"""JUnit XML: a suite per backend, a test per case, as CI systems show it."""

from __future__ import annotations

import re
from collections.abc import Callable
from xml.etree import ElementTree as Tree

from reports.findings.cells import FAILED, NOT_ANSWERED, Cell
from reports.findings.report import Report

BREAKS = ("violates", "deviates")
UNPRINTABLE = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML cannot hold, not even written as a number; whatever a backend says may hold it."""


def junit(report: Report) -> str:
    """The document."""
    root = Tree.Element("testsuites", name="castigate")
    versions = {backend.name: backend.version for backend in report.record.backends}
    for name in report.backends:
        cells = [cell for cell in report.cells.values() if cell.backend == name]
        suite = Tree.SubElement(
            root,
            "testsuite",
            name=f"{name} {versions[name]}",
            timestamp=report.record.started.isoformat(timespec="seconds"),
            tests=str(len(cells)),
            failures=_count(cells, lambda cell: cell.verdict in BREAKS),
            errors=_count(cells, lambda cell: cell.verdict in FAILED),
            skipped=_count(cells, lambda cell: cell.verdict in NOT_ANSWERED),
        )
        for cell in cells:
            _add(suite, cell)
    Tree.indent(root)
    text = UNPRINTABLE.sub("\ufffd", Tree.tostring(root, "unicode"))
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _count(cells: list[Cell], which: Callable[[Cell], bool]) -> str:
    return str(sum(map(which, cells)))


def _add(suite: Tree.Element, cell: Cell) -> None:
    where, _, name = cell.case.partition("/")
    test = Tree.SubElement(suite, "testcase", classname=f"{cell.backend}.{where}", name=name)
    match cell.verdict:
        case verdict if verdict in BREAKS:
            told = Tree.SubElement(test, "failure", type=verdict, message=_summary(cell))
            told.text = _details(cell)
        case verdict if verdict in FAILED:
            Tree.SubElement(test, "error", type=verdict, message=cell.message)
        case verdict if verdict in NOT_ANSWERED:
            Tree.SubElement(test, "skipped", message=cell.message or verdict)
        case "differs":
            told = Tree.SubElement(test, "system-out")
            told.text = f"differs from a document it does not claim\n{_details(cell)}"


def _summary(cell: Cell) -> str:
    return ", ".join(broken.rule for broken in cell.broken) or cell.message


def _details(cell: Cell) -> str:
    """What is broken, rule by rule, and a script that shows it."""
    lines = [
        f"{broken.rule} ({broken.clause}, {broken.level}): {broken.wrong:,} inputs; "
        f"{broken.smallest} gives {broken.answer}, not {' or '.join(broken.allowed)}"
        for broken in cell.broken
    ]
    return "\n".join(filter(None, [*lines, cell.message, cell.reproduction]))
