"""Findings, or changes, as SARIF 2.1.0, which code scanning reads: a rule and a result each."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Collection, Sequence
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from reports.changes.change import BackendChanges, Change
from reports.changes.words import details, heading, sentence
from reports.findings.finding import Finding, Findings
from reports.findings.finding_text import counted, extent_words, shortened
from reports.findings.issue_text import issue_text
from reports.findings.read_findings import read_findings
from reports.run_store.record import RunRecord
from reports.run_store.storage import file_to_write
from reports.run_store.store import RunStore
from specs import VERSION

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
HOME = "https://github.com/castigate/castigate"
MOST_CASES = 100
"""The most cases that a result names; the report has all."""


def sarif(findings: Findings, record: RunRecord) -> str:
    """Return the findings of one run as a SARIF log, in JSON.

    Code scanning requires a line of a file in the repository. That is line 1 of the backend's
    adapter or program if it was given by a path, else line 1 of a path made of the backend's name.
    """
    versions = record.versions
    every = [each for found in findings.values() for each in found]
    return _log(
        [_rule(each, record) for each in every],
        [_result(each, index, versions[each.backend]) for index, each in enumerate(every)],
    )


def changes_sarif(every: Sequence[BackendChanges]) -> str:
    """Return what changed for some backends as a SARIF log: an error if worse, else a note."""
    named = [(changes, each) for changes in every for each in changes.changes]
    return _log(
        [_change_rule(*each) for each in named],
        [_change_result(*each, index) for index, each in enumerate(named)],
    )


def _change_id(changes: BackendChanges, change: Change) -> str:
    """Name a change by what it is about, so that it has the same name in the next run."""
    about = sorted(change.findings) or [change.says]
    return f"{changes.backend}/{change.kind}-{_fingerprint(' '.join(about))[:8]}"


def _change_rule(changes: BackendChanges, change: Change) -> dict[str, Any]:
    text = sentence(change)
    return {
        "id": _change_id(changes, change),
        "shortDescription": {"text": shortened(text, 200)},
        "fullDescription": {"text": text},
    }


def _change_result(changes: BackendChanges, change: Change, index: int) -> dict[str, Any]:
    text = f"{heading(changes)}. {sentence(change)}. {details(change)}."
    return _result_at(
        _change_id(changes, change),
        index,
        "error" if change.kind == "worse" else "note",
        text,
        changes.backend,
        change.names,
    )


def _log(rules: list[dict[str, Any]], results: list[dict[str, Any]]) -> str:
    driver = {"name": "Castigate", "version": VERSION, "informationUri": HOME, "rules": rules}
    run = {"tool": {"driver": driver}, "results": results, "columnKind": "unicodeCodePoints"}
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return f"{json.dumps(log, ensure_ascii=False, indent=1)}\n"


def write_sarif(store: RunStore, failing: Collection[str], file: str) -> None:
    """Write the findings that explain any of the ``failing`` cases of a run to a file as SARIF.

    If there are none, the log has no results. Raise CastigateError if the file cannot be written,
    or if the run's stored findings or tables are damaged.
    """
    found = {
        backend: [each for each in findings if not set(failing).isdisjoint(each.cases)]
        for backend, findings in read_findings(store).items()
    }
    folder, name = file_to_write(file)
    text = sarif(found, store.record)
    folder.write(name, text.encode(), "the file is unchanged; give another name or folder")


def _rule(finding: Finding, record: RunRecord) -> dict[str, Any]:
    text = f"{finding.kind}: {finding.says}"
    issue = issue_text(finding, record)
    rule: dict[str, Any] = {
        "id": finding.id,
        "shortDescription": {"text": shortened(text, 200)},
        "fullDescription": {"text": text},
        "help": {"text": issue, "markdown": issue},
    }
    if finding.upstream:
        rule["helpUri"] = finding.upstream
    return rule


def _result(finding: Finding, index: int, version: str) -> dict[str, Any]:
    is_required = any(each.level in ("required", "") for each in finding.explained)
    text = f"{finding.backend} {version}: {finding.kind}: {finding.says}. {extent_words(finding)}."
    if len(finding.cases) > MOST_CASES:
        text += f" {counted(len(finding.cases) - MOST_CASES, 'case')} more than are named here."
    return _result_at(
        finding.id,
        index,
        "error" if is_required else "warning",
        text,
        finding.backend,
        finding.cases,
    )


def _result_at(
    rule: str, index: int, level: str, text: str, backend: str, cases: Sequence[str]
) -> dict[str, Any]:
    return {
        "ruleId": rule,
        "ruleIndex": index,
        "level": level,
        "message": {"text": text},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": _place(backend)},
                    "region": {"startLine": 1},
                },
                "logicalLocations": [{"fullyQualifiedName": case} for case in cases[:MOST_CASES]],
            }
        ],
        "partialFingerprints": {
            "castigateFinding/v1": rule,
            # GitHub recognizes an alert by this fingerprint, even if its line changes.
            "primaryLocationLineHash": f"{_fingerprint(rule)}:1",
        },
    }


def _fingerprint(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def _place(backend: str) -> str:
    """Return the path of a backend's file as a URI relative to the working directory.

    For a file outside that directory it is the given path, without its first slash. Of an ``exec:``
    command, it is the first word that is a file, else the first word. For a backend that was not
    given by a path, return its name with slashes for colons.
    """
    path, colon, _ = backend.rpartition(":")
    if backend.startswith("exec:"):
        words = shlex.split(backend.removeprefix("exec:"))
        path = next(filter(os.path.isfile, words), words[0])
    elif not (colon and path.endswith(".py")):
        path = backend.replace(":", "/")
    relative = os.path.relpath(path)
    return quote(os.path.normpath(path).lstrip("/") if relative.startswith("..") else relative)
