"""`--durations-castigate` shows where the time of a pytest run went."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conformance.pytest_plugin.durations import Durations, Spent, Stopwatch
from tests.conformance.data import noting
from tests.conformance.test_pooled_judging import FEW, MANY
from tests.conformance.test_suite import FAILED, USAGE, suite

BACKEND = f"--backend={noting.__file__}:Noting"


@pytest.mark.ci_runs_one_of(2)
@pytest.mark.parametrize("cases", [FEW, MANY], ids=["few pairs", "many pairs"])
def test_seconds_of_phases_backends_and_pairs(
    cases: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(noting.NOTES, str(tmp_path / "notes"))
    code, output = suite(BACKEND, "-q", "--durations-castigate=2", *cases)
    assert code == FAILED
    _, _, shown = output.partition("where the time went")
    whole, *parts = map(float, re.findall(r"(\d+\.\d) s(?=:| before| for)", shown)[:4])
    assert whole == pytest.approx(sum(parts), abs=0.2)
    [judged, waiting] = re.findall(r"judged for (\S+) s.*, (\S+) s of them", shown)[0]
    assert 0 < float(waiting) < float(judged)
    seconds = [
        float(each) for each in re.findall(r"^  (\S+) s  \S+  \w+/\w+  waiting", shown, re.M)
    ]
    assert len(seconds) == 2
    assert seconds == sorted(seconds, reverse=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--durations-castigate=-1"],
            "--durations-castigate is -1; give a whole number from 0 on",
        ),
        (["--durations-castigate=1", "-n", "2"], "measures no workers of xdist; leave out -n"),
    ],
)
def test_bad_usage(arguments: list[str], message: str) -> None:
    code, output = suite("--backend=reference", "--document=cinn-cast", *arguments)
    assert code == USAGE
    assert message in output


def test_what_workers_measure_is_added() -> None:
    stopwatch = Stopwatch(Spent)
    for _ in range(2):
        stopwatch["one", "float32/int8"] += Spent(2.0, 0.5)
    lines = list(Durations(stopwatch, 1, 3)._lines())
    assert lines[1:] == [
        "one: judged for 4.0 s in 3 processes, 1.0 s of them waiting for answers",
        "  4.00 s  one  float32/int8  waiting 1.00 s",
    ]
