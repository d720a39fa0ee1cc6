"""Findings as lines of text and as data for JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from oracles.reference.exact_text import PLAIN
from reports.case_patterns import is_chain_check
from reports.counterexample.drawing import datum_with_value, quoted
from reports.findings.cells import Cell
from reports.findings.finding import UNEXPLAINED, ExplainedCase, Finding, FindingKind, Findings
from reports.findings.roads import together
from reports.problem_words import words
from reports.problems import (
    BrokenPromise,
    Refused,
    ShownDatum,
    WrongByAnyReading,
    WrongElement,
    WrongShape,
    WrongTensor,
)
from specs.formats import format_named, listed
from specs.plain_text import plain_text

MOST_DTYPES = 3
"""The most dtypes that a line names; of more, the others are counted."""
OUTCOME_WORDS = {
    "any-nan": "a NaN",
    "+nan": "a positive NaN",
    "-nan": "a negative NaN",
    "error": "an error",
    "plain-text": "plain notation",
    "plain-value": "plain notation",
    "parses-to-input": "a text of that value",
}
"""The words for outcomes that are not patterns."""
PLAIN_OUTCOMES = {"plain-text", "plain-value"}

INTENDED = "intended by its owner, and not what the document says: {}"
LONGEST_TEXT = 90
"""The most characters of a message within a sentence."""
FOLDERS = re.compile(r"(?<![\w:/\\])(?:[A-Za-z]:[/\\]|/)(?:[\w.+-]+[/\\])*(?=[\w.+-]+)")
"""Matches the folders of an absolute path; a lone backslash begins an escape, not a path."""
NOT_SHARED: tuple[FindingKind, ...] = ("wrong refusal", "crash")
"""Kinds whose findings may have the same name on several backends for different reasons."""


def shortened(text: str, longest: int = LONGEST_TEXT) -> str:
    """Return a text as one line of at most ``longest`` characters, without the folders of paths."""
    words = plain_text(" ".join(FOLDERS.sub("", text).split()))
    return words if len(words) <= longest else f"{words[: longest - 1].rstrip()}…"


def find_sharing(findings: Findings, finding: Finding) -> list[str]:
    """List the other backends that have a finding of the same kind and name.

    The list is empty for the kinds in ``NOT_SHARED`` and for unexplained answers.
    """
    if finding.kind in NOT_SHARED or finding.name == UNEXPLAINED:
        return []
    return [
        backend
        for backend, found in findings.items()
        if backend != finding.backend
        and any((each.kind, each.name) == (finding.kind, finding.name) for each in found)
    ]


def findings_lines(findings: Findings, versions: Mapping[str, str]) -> Iterator[str]:
    """Yield, for each backend, a heading, the lines of each of its findings, and an empty line.

    ``versions`` has the version of each backend.
    """
    for backend, found in findings.items():
        yield findings_heading(backend, versions[backend], found)
        for finding in found:
            yield from finding_lines(findings, finding)
        yield ""


def findings_heading(backend: str, version: str, found: Sequence[Finding]) -> str:
    """Return a line with a backend, its version, and the numbers of findings and failing cases."""
    if not found:
        return f"{backend} {version}: no finding"
    cases = len({case for each in found for case in each.cases})
    return (
        f"{backend} {version}: {counted(len(found), 'finding')}, {counted(cases, 'failing case')}"
    )


def finding_lines(findings: Findings, finding: Finding) -> Iterator[str]:
    """Yield the lines of a finding: its sentence, its name and extent, and what else is known.

    That is which backends share it, where it is reported, and where it is documented as intended.
    """
    yield f"  {finding.kind}: {finding.says}"
    yield f"    {finding.name}: {extent_words(finding)}"
    if shared := find_sharing(findings, finding):
        yield f"    also in {together(shared, findings)}"
    if finding.upstream:
        yield f"    reported as {finding.upstream}"
    if finding.intended:
        yield f"    {INTENDED.format(finding.intended)}"


def mode_or_path(cell: Cell) -> str:
    """Return a cell's mode, `, ` for `/`; for a check on a chain, all its dtypes and modes."""
    if is_chain_check(cell.check):
        return " → ".join(cell.check.split("/")[2:])
    return cell.mode.replace("/", ", ")


def extent_words(finding: Finding) -> str:
    """Return words for how far a finding reaches: cases, pairs, inputs, and its example."""
    extent = f"{counted(len(finding.cases), 'case')}, {pairs_words(finding)}"
    if finding.inputs:
        extent += f", {'' if finding.is_exact else 'at least '}{counted(finding.inputs, 'input')}"
    simplest = finding.simplest
    example = example_words(finding)
    is_of_a_case = bool(simplest.smallest or _result_words(simplest))
    if example and is_of_a_case and len(finding.cases) > 1:
        example += f", in {simplest.cell.case}"
    return f"{extent}; {example}" if example else extent


def example_words(finding: Finding) -> str:
    """Return words for the simplest input of a finding, its answer, and what is allowed.

    Without an input, a check gives its message. Another case gives the wrong element of a result,
    else the refused text, else the tensor with the problem; empty if the sentence says that
    already.
    """
    example = share_words(finding.simplest)
    return "" if example == finding.says else example


def share_words(explained: ExplainedCase) -> str:
    """Return the words of ``example_words`` for one case of a finding."""
    if not explained.smallest:
        if explained.cell.check:
            return explained.answer
        of_result = _result_words(explained) or _refused_text(explained)
        return of_result or tensor_words(explained)
    given, answer = (
        datum_words(explained.cell.source, explained.smallest),
        datum_words(explained.cell.target, explained.answer),
    )
    return f"{given} gives {answer}, not {allowed_words(explained)}"


def _result_words(explained: ExplainedCase) -> str:
    """Return the words for a wrong element of a named result; empty if no such result is wrong."""
    problems = explained.cell.problems
    is_of_result = any(isinstance(each, WrongTensor) for each in problems)
    return explained.answer if is_of_result else ""


def tensor_words(explained: ExplainedCase) -> str:
    """Describe the first problem of a case that is a wrong shape or element, or a broken promise.

    The text is empty if the case has no such problem.
    """
    cell = explained.cell
    kinds = (WrongElement, WrongShape, WrongByAnyReading, BrokenPromise)
    described = [each for each in cell.problems if isinstance(each, kinds)]
    return shortened(words(described[0])) if described else ""


def _refused_text(explained: ExplainedCase) -> str:
    """Return the texts on which a backend raises an error, for a case from texts; else empty.

    They are also empty if a rule is broken.
    """
    cell = explained.cell
    if format_named(cell.source).kind != "text" or explained.rule:
        return ""
    return next((each.inputs for each in cell.problems if isinstance(each, Refused)), "")


def allowed_words(explained: ExplainedCase) -> str:
    """Return words for what is allowed for the simplest input of a case.

    If plain notation is required and the answer has it, its value is wrong, and the words name
    that.
    """
    if PLAIN.fullmatch(explained.answer) and set(explained.allowed) & PLAIN_OUTCOMES:
        return OUTCOME_WORDS["parses-to-input"]
    return " or ".join(datum_words(explained.cell.target, each) for each in explained.allowed)


def datum_words(dtype: str, datum: ShownDatum) -> str:
    """Return a pattern in hex with its value, a text in quotes, or the words for an outcome.

    ``datum`` is one of these as a run stores it, or a pattern as an integer. If ``dtype`` has
    patterns, any other text, such as an error, comes back as it is.
    """
    form = format_named(dtype)
    if not isinstance(datum, str):
        return datum_with_value(form, datum)
    if datum in OUTCOME_WORDS:
        return OUTCOME_WORDS[datum]
    if form.kind == "text":
        return quoted(datum)
    return datum_with_value(form, int(datum, 16)) if datum.startswith("0x") else datum


def pairs_words(finding: Finding) -> str:
    """Return words for the dtype pairs of a finding; sources with the same targets are grouped.

    Of more than ``MOST_DTYPES`` groups only the first is named, and all pairs are counted.
    """
    cells = (each.cell for each in finding.explained)
    return dtype_pairs_words(dict.fromkeys((cell.source, cell.target) for cell in cells))


def dtype_pairs_words(pairs: Iterable[tuple[str, str]]) -> str:
    """Return the words of ``pairs_words`` for dtype pairs, each of which is given once."""
    targets: dict[str, list[str]] = {}
    for source, target in pairs:
        targets.setdefault(source, []).append(target)
    sources: dict[tuple[str, ...], list[str]] = {}
    for source, reached in targets.items():
        sources.setdefault(tuple(reached), []).append(source)
    *most, last = [f"{few(names)} to {few(reached)}" for reached, names in sources.items()]
    if len(most) < MOST_DTYPES:
        return "; ".join([*most, last])
    total = sum(map(len, targets.values()))
    return f"{most[0]}; {total} pairs in all"


def few(names: Sequence[str]) -> str:
    """List names in words; of more than ``MOST_DTYPES`` the last are counted."""
    if len(names) <= MOST_DTYPES:
        return listed(names)
    shown = names[: MOST_DTYPES - 1]
    return listed([*shown, f"{len(names) - len(shown)} more"])


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless the number is one."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def finding_record(finding: Finding, findings: Findings, version: str) -> dict[str, Any]:
    """Return a finding as data for JSON: its properties, an example, and each of its cases.

    ``findings`` are searched for other backends that share it, and ``version`` is that of its
    backend.
    """
    simplest = finding.simplest
    return {
        "id": finding.id,
        "backend": finding.backend,
        "version": version,
        "kind": finding.kind,
        "finding": finding.says,
        "inputs": finding.inputs,
        "exact": finding.is_exact,
        "rules": sorted({each.rule for each in finding.explained if each.rule}),
        "clauses": sorted({each.clause for each in finding.explained if each.clause}),
        "shared": find_sharing(findings, finding),
        "upstream": finding.upstream,
        "intended": finding.intended,
        "example": {
            "case": simplest.cell.case,
            "input": simplest.smallest,
            "answer": simplest.answer,
            "allowed": list(simplest.allowed),
        },
        "cases": [
            {
                "case": each.cell.name,
                "rule": each.rule,
                "region": each.region,
                "inputs": each.inputs,
                "exact": each.is_exact,
            }
            for each in finding.explained
        ],
    }
