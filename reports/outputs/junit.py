"""JUnit XML for CI systems: a suite per backend, a test per case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from xml.etree import ElementTree as Tree

from reports.findings.cells import Cell, Divergence
from reports.findings.report import Report
from reports.judgement import BREAKS_RULE, NO_ANSWER, NOT_RUN
from specs.plain_text import plain_text


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


def result_by_verdict(cell: Cell) -> JunitResult | None:
    """Return the result of a cell by its verdict alone; None if it passes without output."""
    match cell.verdict:
        case verdict if verdict in BREAKS_RULE:
            summary = ", ".join(broken.rule for broken in cell.broken) or cell.message
            return JunitResult("failure", summary, verdict, failure_text(cell))
        case verdict if verdict in NO_ANSWER:
            return JunitResult("error", cell.message, verdict)
        case verdict if verdict in NOT_RUN:
            return JunitResult("skipped", cell.message or verdict)
        case "differs":
            text = f"differs from a document that it does not claim\n{failure_text(cell)}"
            return JunitResult("system-out", text=text)
    return None


def junit(
    report: Report,
    result_of: Callable[[Cell], JunitResult | None] = result_by_verdict,
    more_suites: Sequence[tuple[str, Sequence[JunitTest]]] = (),
) -> str:
    """Return a report as JUnit XML: a suite per backend with a test per case.

    ``result_of`` returns the result of a cell, or None for a test that passes without output.
    ``more_suites`` are pairs of title and tests, which come first.
    """
    time = report.record.started.isoformat(timespec="seconds")
    versions = report.record.versions
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<testsuites name="castigate">']
    for name, tests in more_suites:
        lines.append(_suite_text(name, time, tests))
    for name in report.backends:
        tests = []
        for cell in report.cells.values():
            if cell.backend == name:
                version, _, case = cell.case.partition("/")
                tests.append(JunitTest(f"{name}.{version}", case, result_of(cell)))
        lines.append(_suite_text(f"{name} {versions[name]}", time, tests))
    return "\n".join([*lines, "</testsuites>", ""])


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
