"""The index of an export: what each test asks, by dtype too, so that a runner can choose."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from conformance.exchange.exported_tests import ExportedTest
from specs.cases import Case
from specs.operations import is_bitcast

INDEX = "index.json"


@dataclass
class ExportIndex:
    """The tests that are written, and what is left out."""

    tests: list[dict[str, Any]] = field(default_factory=list)
    cases_left_out: dict[str, str] = field(default_factory=dict)
    inputs_left_out: dict[str, dict[str, int]] = field(default_factory=dict)

    def add(self, case: Case, test: ExportedTest, folder: str) -> None:
        """Add a test that is in a folder."""
        self.tests.append(
            {
                "folder": folder,
                "case": case.id,
                "document": case.document,
                "version": case.version,
                "operation": "bitcast" if is_bitcast(case) else "cast",
                "source": case.source,
                "target": case.target,
                "parameters": case.mode,
                "group": test.group,
                "inputs": test.size,
                "levels": dict(test.levels),
            }
        )

    def reasons(self) -> list[tuple[str, int]]:
        """Return how many cases have no test for each reason, the most frequent first."""
        return Counter(self.cases_left_out.values()).most_common()

    def to_json(self) -> bytes:
        """Serialize the index, with the folders of each dtype."""
        dtypes: dict[str, list[str]] = {}
        for test in self.tests:
            for dtype in dict.fromkeys((test["source"], test["target"])):
                dtypes.setdefault(dtype, []).append(test["folder"])
        left_out = {"cases": self.cases_left_out, "inputs": self.inputs_left_out}
        content = {"tests": self.tests, "dtypes": dtypes, "left-out": left_out}
        return (json.dumps(content, indent=1) + "\n").encode()
