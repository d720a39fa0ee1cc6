"""Findings as SARIF 2.1.0, which code scanning reads: a rule and a result per finding."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from reports.findings.finding import Finding, Findings
from reports.findings.finding_text import counted, extent_words, shortened
from reports.run_store.record import RunRecord
from specs.release import VERSION

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
HOME = "https://github.com/castigate/castigate"
MOST_CASES = 100
"""Cases that a result names; the report has all."""


def sarif(findings: Findings, record: RunRecord) -> str:
    """The log of one run.

    Code scanning wants a place in the repository. That is the adapter, if the backend was given by
    a path, and else a file of the backend's name.
    """
    versions = {each.name: each.version for each in record.backends}
    every = [each for found in findings.values() for each in found]
    run = {
        "tool": {
            "driver": {
                "name": "Castigate",
                "version": VERSION,
                "informationUri": HOME,
                "rules": [_rule(each) for each in every],
            }
        },
        "results": [
            _result(each, index, versions[each.backend]) for index, each in enumerate(every)
        ],
        "columnKind": "unicodeCodePoints",
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return f"{json.dumps(log, ensure_ascii=False, indent=1)}\n"


def _rule(finding: Finding) -> dict[str, Any]:
    rule: dict[str, Any] = {
        "id": finding.id,
        "shortDescription": {"text": shortened(f"{finding.kind}: {finding.says}", 200)},
    }
    if finding.upstream:
        rule["helpUri"] = finding.upstream
    return rule


def _result(finding: Finding, index: int, version: str) -> dict[str, Any]:
    is_required = any(each.level in ("required", "") for each in finding.explained)
    return {
        "ruleId": finding.id,
        "ruleIndex": index,
        "level": "error" if is_required else "warning",
        "message": {"text": " ".join(_message(finding, version))},
        "locations": [
            {
                "physicalLocation": {"artifactLocation": {"uri": _place(finding.backend)}},
                "logicalLocations": [
                    {"fullyQualifiedName": case} for case in finding.cases[:MOST_CASES]
                ],
            }
        ],
        "partialFingerprints": {"castigateFinding/v1": finding.id},
    }


def _message(finding: Finding, version: str) -> Iterator[str]:
    yield f"{finding.backend} {version}: {finding.kind}: {finding.says}."
    yield f"{extent_words(finding)}."
    if len(finding.cases) > MOST_CASES:
        yield f"{counted(len(finding.cases) - MOST_CASES, 'case')} more than are named here."


def _place(backend: str) -> str:
    """A path relative to the repository; characters that a URI does not have are left out."""
    path, colon, _ = backend.rpartition(":")
    named = path if colon and path.endswith(".py") else backend.replace(":", "/")
    parts = [each for each in PurePath(named).parts if each not in ("/", "..")]
    return "/".join("".join(c for c in part if c.isalnum() or c in "._-") or "_" for part in parts)
