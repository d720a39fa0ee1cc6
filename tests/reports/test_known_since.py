"""Since which version a finding exists, according to the runs of a report."""

from __future__ import annotations

import pytest

from reports.findings.report import PastRun, since_words

HAS, LACKS = frozenset({"b/wraps"}), frozenset({"b/other"})


def run(version: str, findings: frozenset[str] | None, backend: str = "b") -> PastRun:
    return PastRun({backend: version}, findings)


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        ([run("1", HAS)], ""),
        ([run("1", LACKS), run("2", HAS), run("3+cpu", HAS)], "since 2; 1 did not have it"),
        ([run("1", HAS), run("2", LACKS), run("3", HAS)], "since 3; 2 did not have it"),
        ([run("1", HAS), run("2", HAS)], "in all versions of this report, from 1 on"),
        ([run("2", HAS), run("2", HAS)], ""),
        ([run("2", LACKS), run("2", HAS)], ""),
        ([run("1", LACKS), run("2", None), run("3", HAS)], "since 3; 1 did not have it"),
        ([run("1", HAS, "c"), run("2", HAS)], ""),
    ],
)
def test_a_finding_is_followed_back_to_the_version_that_lacks_it(
    runs: list[PastRun], words: str
) -> None:
    assert since_words(runs, "b", "b/wraps") == words
