"""A finding as the text of an issue for the framework's tracker, in Markdown."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator, Mapping

from reports.case_patterns import is_chain_check
from reports.findings.finding import ExplainedCase, Finding
from reports.findings.finding_text import (
    INTENDED,
    allowed_words,
    datum_words,
    mode_or_path,
    pairs_words,
    tensor_words,
)
from reports.run_store.record import RunRecord
from specs.cases import SHAPE
from specs.loader import documents
from specs.plain_text import plain_text

MOST_ROWS = 20
"""The most rows of the table in an issue."""
FENCES = re.compile("`{3,}")
"""Matches Markdown fences, which would end a block of code if a script contained one."""

FRAMEWORK = re.compile(r"# (\w+) (\d[\w.]*)[^\s:]*(?: \(([\w-]+)\))?: ")
"""Matches the first line of an adapter's script: its framework's module and public version.

If pip knows the module by another name in this build, that follows in parentheses.
"""
IMPORT = re.compile(r"^(?:import|from) ([\w.]+)", re.MULTILINE)
DISTRIBUTIONS: Mapping[str, str] = {"paddle": "paddlepaddle", "tvm": "apache-tvm"}
"""The names under which pip installs modules, where these differ from the module's."""


def issue_text(finding: Finding, record: RunRecord) -> str:
    """Return the whole issue: title, what happens, what is required, a script, and a table."""
    return plain_text("\n".join(_lines(finding, record)))


def script_or_command(finding: Finding) -> str:
    """Return a script that shows a finding's example: the adapter's, or a command of castigate.

    It is empty if there is neither a script nor an input.
    """
    shown = finding.simplest
    if shown.script:
        return shown.script
    if not shown.smallest:
        return ""
    backend, given = shlex.quote(finding.backend), shlex.quote(shown.smallest)
    return f"castigate explain {shown.cell.case} --backend {backend} -- {given}"


def _lines(finding: Finding, record: RunRecord) -> Iterator[str]:
    shown = finding.simplest
    operation = documents()[shown.cell.document].entry.operation
    yield f"# {operation.title()} {pairs_words(finding)}: {finding.says}"
    yield ""
    version = record.versions[finding.backend]
    machines = {f"Python {each.python}, {each.platform}" for each in record.environments}
    yield f"{finding.backend} {version}, {'; '.join(sorted(machines))}"
    yield ""
    yield from _example(shown)
    script = script_or_command(finding)
    if script:
        yield ""
        if requirements := requirements_of(script):
            yield f"The script needs `pip install {' '.join(requirements)}`:"
            yield ""
        longest = max((len(ticks) for ticks in FENCES.findall(script)), default=0)
        fence = "`" * max(3, longest + 1)
        yield f"{fence}{'sh' if script.startswith('castigate ') else 'python'}"
        yield from script.strip().splitlines()
        yield fence
    yield ""
    yield from _extent(finding)
    if finding.upstream:
        yield ""
        yield f"Already reported: {finding.upstream}"
    if finding.intended:
        yield ""
        yield f"This is {INTENDED.format(finding.intended)}."


def requirements_of(script: str) -> list[str]:
    """Return the packages that pip must install for an adapter's script.

    The first is its framework, in the version of the script. There are none unless the first line
    names a framework that the script imports.
    """
    header = FRAMEWORK.match(script)
    imported = {name.partition(".")[0] for name in IMPORT.findall(script)}
    if header is None or header[1] not in imported:
        return []
    framework, version, package = header.groups()
    others = sorted(imported - {framework} - sys.stdlib_module_names)
    names = [DISTRIBUTIONS.get(name, name) for name in (framework, *others)]
    return [f"{package or names[0]}=={version}", *names[1:]]


def _example(shown: ExplainedCase) -> Iterator[str]:
    """Yield lines with the simplest input, what is expected, the answer, and the clause."""
    cell, entry = shown.cell, documents()[shown.cell.document].entry
    # The words about a wrong tensor give its shape, which need not be that of the mode.
    modes = [
        mode.replace(":", " = ")
        for mode in filter(None, cell.mode.split("/"))
        if not (mode.startswith(f"{SHAPE}:") and tensor_words(shown))
    ]
    mode = f" with {', '.join(modes)}" if modes else ""
    yield f"A {entry.operation} from {cell.source} to {cell.target}{mode}:"
    yield ""
    if shown.smallest:
        yield f"- input: {datum_words(cell.source, shown.smallest)}"
    if shown.allowed:
        yield f"- expected: {allowed_words(shown)}"
    yield f"- actual: {datum_words(cell.target, shown.answer) if shown.smallest else shown.answer}"
    if shown.clause:
        strength = "requires" if shown.level == "required" else "recommends"
        yield f"- {entry.title}, version {cell.version}, {strength} this: {shown.clause}"


def _extent(finding: Finding) -> Iterator[str]:
    """Yield the lines of a table of pairs and modes, each with the most wrong inputs of its cases.

    Rows beyond ``MOST_ROWS`` are only counted.
    """
    rows: dict[tuple[str, str, str], list[ExplainedCase]] = {}
    for each in finding.explained:
        key = each.cell.source, each.cell.target, mode_or_path(each.cell)
        rows.setdefault(key, []).append(each)
    yield "| from | to | mode | wrong inputs | which |"
    yield "|---|---|---|---|---|"
    for (source, target, mode), found in list(rows.items())[:MOST_ROWS]:
        most = max(found, key=lambda each: each.inputs)
        if most.inputs:
            count = f"{'' if most.is_exact else 'at least '}{most.inputs:,}"
        elif is_chain_check(most.cell.check):
            count = "in one program"
        else:
            count = "in some tensors" if most.cell.check or tensor_words(most) else "all"
        yield f"| {source} | {target} | {mode} | {count} | {most.region} |"
    if len(rows) > MOST_ROWS:
        yield ""
        yield f"{len(rows) - MOST_ROWS} more pairs and modes."
