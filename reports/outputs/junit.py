"""JUnit XML: a suite per backend, a test per case, as CI systems show it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as Tree

from reports.findings.cells import FAILED, NOT_ANSWERED, Cell
from reports.findings.report import Report

BREAKS = ("violates", "deviates")
UNPRINTABLE = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML cannot hold, not even written as a number; whatever a backend says may hold it."""


@dataclass(frozen=True)
class Mark:
    """What a test is marked with: `failure`, `error`, `skipped` or `system-out`."""

    kind: str
    message: str = ""
    verdict: str = ""
    text: str = ""


Test = tuple[str, str, Mark | None]
"""A test's class, its name, and its mark; one that passes and says nothing has none."""


def junit(
    report: Report,
    mark: Callable[[Cell], Mark | None] | None = None,
    more: Sequence[tuple[str, Sequence[Test]]] = (),
) -> str:
    """The document; its tests are marked by their verdicts, or as the caller says.

    ``more`` are suites of other tests, which stand before those of the backends.
    """
    root = Tree.Element("testsuites", name="castigate")
    time = report.record.started.isoformat(timespec="seconds")
    versions = {backend.name: backend.version for backend in report.record.backends}
    marked = mark or of_verdict
    for name, tests in more:
        _add(root, name, time, tests)
    for name in report.backends:
        cells = (cell for cell in report.cells.values() if cell.backend == name)
        _add(root, f"{name} {versions[name]}", time, [_test(cell, marked(cell)) for cell in cells])
    Tree.indent(root)
    text = UNPRINTABLE.sub("\ufffd", Tree.tostring(root, "unicode"))
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def of_verdict(cell: Cell) -> Mark | None:
    """The mark of a case whose verdict alone counts."""
    match cell.verdict:
        case verdict if verdict in BREAKS:
            return Mark("failure", summary(cell), verdict, details(cell))
        case verdict if verdict in FAILED:
            return Mark("error", cell.message, verdict)
        case verdict if verdict in NOT_ANSWERED:
            return Mark("skipped", cell.message or verdict)
        case "differs":
            told = f"differs from a document it does not claim\n{details(cell)}"
            return Mark("system-out", text=told)
    return None


def summary(cell: Cell) -> str:
    """The rules that a case breaks, or what is said of it."""
    return ", ".join(broken.rule for broken in cell.broken) or cell.message


def details(cell: Cell) -> str:
    """What is broken, rule by rule, and a script that shows it."""
    lines = [
        f"{broken.rule} ({broken.clause}, {broken.level}): {broken.wrong:,} inputs; "
        f"{broken.smallest} gives {broken.answer}, not {' or '.join(broken.allowed)}"
        for broken in cell.broken
    ]
    return "\n".join(filter(None, [*lines, cell.message, cell.reproduction]))


def _test(cell: Cell, mark: Mark | None) -> Test:
    where, _, name = cell.case.partition("/")
    return f"{cell.backend}.{where}", name, mark


def _add(root: Tree.Element, name: str, time: str, tests: Sequence[Test]) -> None:
    kinds = Counter(mark.kind for _, _, mark in tests if mark is not None)
    suite = Tree.SubElement(
        root,
        "testsuite",
        name=name,
        timestamp=time,
        tests=str(len(tests)),
        failures=str(kinds["failure"]),
        errors=str(kinds["error"]),
        skipped=str(kinds["skipped"]),
    )
    for group, title, mark in tests:
        test = Tree.SubElement(suite, "testcase", classname=group, name=title)
        if mark is not None:
            words = {"type": mark.verdict, "message": mark.message}
            attributes = {key: value for key, value in words.items() if value}
            told = Tree.SubElement(test, mark.kind, attributes)
            told.text = mark.text or None
