"""JUnit XML for CI systems: a suite per backend, a test per case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from xml.etree import ElementTree as Tree

from reports.findings.cells import Cell, Divergence
from reports.findings.report import Report
from reports.judgement import NO_ANSWER, NOT_RUN
from specs.plain_text import plain_text

FAILURES = ("violates", "deviates")


@dataclass(frozen=True)
class JunitResult:
    """The child element of a test: `failure`, `error`, `skipped` or `system-out`."""

    element: str
    message: str = ""
    verdict: str = ""
    text: str = ""


class JunitTest(NamedTuple):
    """A test in XML; its result is None if it passes and has no output."""

    group: str
    name: str
    result: JunitResult | None


def junit(
    report: Report,
    result_of: Callable[[Cell], JunitResult | None] | None = None,
    more_suites: Sequence[tuple[str, Sequence[JunitTest]]] = (),
) -> str:
    """Return a report as JUnit XML: a suite per backend with a test per case.

    ``result_of`` returns the result of a cell, or None for a test that passes without output; the
    default is ``result_by_verdict``. ``more_suites`` are pairs of title and tests, which come
    first.
    """
    time = report.record.started.isoformat(timespec="seconds")
    versions = report.record.versions
    result_of = result_of or result_by_verdict
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<testsuites name="castigate">']
    for name, tests in more_suites:
        lines.append(_suite_text(name, time, tests))
    for name in report.backends:
        cells = (cell for cell in report.cells.values() if cell.backend == name)
        tests = [_case_test(cell, result_of(cell)) for cell in cells]
        lines.append(_suite_text(f"{name} {versions[name]}", time, tests))
    return "\n".join([*lines, "</testsuites>", ""])


def result_by_verdict(cell: Cell) -> JunitResult | None:
    """Return the result of a cell by its verdict alone; None if it passes without output."""
    match cell.verdict:
        case verdict if verdict in FAILURES:
            return JunitResult("failure", _summary(cell), verdict, failure_text(cell))
        case verdict if verdict in NO_ANSWER:
            return JunitResult("error", cell.message, verdict)
        case verdict if verdict in NOT_RUN:
            return JunitResult("skipped", cell.message or verdict)
        case "differs":
            text = f"differs from a document that it does not claim\n{failure_text(cell)}"
            return JunitResult("system-out", text=text)
    return None


def failure_text(cell: Cell) -> str:
    """Describe a cell's broken rules, a line each, then its message and its script."""
    lines = map(_broken_line, cell.broken)
    return "\n".join(filter(None, [*lines, cell.message, cell.reproduction]))


def _broken_line(broken: Divergence) -> str:
    """Describe a broken rule in a line, with the number of wrong answers and an example if any."""
    line = f"{broken.rule} ({broken.clause}, {broken.level})"
    if broken.wrong:
        line += f": {broken.wrong:,} wrong {'answer' if broken.wrong == 1 else 'answers'}"
    if broken.smallest is not None:
        allowed = " or ".join(broken.allowed)
        line += f"; {broken.smallest} gives {broken.answer}, allowed: {allowed}"
    return line


def _summary(cell: Cell) -> str:
    return ", ".join(broken.rule for broken in cell.broken) or cell.message


def _case_test(cell: Cell, result: JunitResult | None) -> JunitTest:
    version, _, name = cell.case.partition("/")
    return JunitTest(f"{cell.backend}.{version}", name, result)


def _suite_text(name: str, time: str, tests: Sequence[JunitTest]) -> str:
    """Return a suite as XML, indented; as elements, all suites of a night take 200 megabytes."""
    counts = Counter(test.result.element for test in tests if test.result is not None)
    suite = Tree.Element(
        "testsuite",
        name=name,
        timestamp=time,
        tests=str(len(tests)),
        failures=str(counts["failure"]),
        errors=str(counts["error"]),
        skipped=str(counts["skipped"]),
    )
    for test in tests:
        case = Tree.SubElement(suite, "testcase", classname=test.group, name=test.name)
        if test.result is not None:
            attributes = {"type": test.result.verdict, "message": test.result.message}
            attributes = {key: value for key, value in attributes.items() if value}
            child = Tree.SubElement(case, test.result.element, attributes)
            child.text = test.result.text or None
    Tree.indent(suite, level=1)
    # XML cannot hold control characters and lone surrogates, not even as references.
    return f"  {plain_text(Tree.tostring(suite, 'unicode'))}"
