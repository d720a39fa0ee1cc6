"""Items of the suite run without the phases of a test; pytest and its plugins see no difference.

The output is compared with that of a run in which pytest's own protocol runs every item.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.conformance.processes import SECONDS_TO_END

ROOT = Path(__file__).parents[2]
HOSTILE = Path(__file__).with_name("data") / "hostile.py"
SMALL = "onnx-cast:25/int4/int2"
ONE_CASE = ["--backend=reference", "--document=onnx-cast:25", "-k", SMALL]
ALL_ENDINGS = [
    *("--backend=numpy", f"--backend={HOSTILE}:Silent"),
    *("--document=onnx-cast:25", "--document=numpy-astype:2.4"),
    *("-k", f"{SMALL} or uint64/int64/casting"),
]
"""A run in which items pass, are skipped, fail as the ledger expects, and fail."""
PASSED, FAILED = 0, 1


def suite_with(
    plugin: str, folder: Path, *arguments: str, cwd: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    """Run the suite with a plugin that has this source code."""
    (folder / "some_plugin.py").write_text(plugin)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "some_plugin"]
    return subprocess.run(
        [*command, "conformance", *arguments],
        cwd=cwd, env=environment, capture_output=True, text=True, check=False,
        timeout=SECONDS_TO_END,
    )  # fmt: skip


MARKS_ALL = """\
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.skipif(False, reason="never"))
"""
"""Marks every item, so that pytest's own protocol runs it."""


@pytest.mark.ci_runs_one_of(4)
@pytest.mark.parametrize(
    ("more", "endings"),
    [
        ("-q --tb=no -rA", "failed passed skipped xfailed"),
        ("-s", "failed passed skipped xfailed"),
        ("--runxfail", "failed passed skipped"),
        ("-x", "failed passed skipped xfailed"),
    ],
)
def test_pytest_shows_the_same_as_for_tests_with_phases(
    more: str, endings: str, tmp_path: Path
) -> None:
    xml = tmp_path / "out.xml"
    found, cases = [], []
    for plugin in ("", MARKS_ALL):
        done = suite_with(plugin, tmp_path, *ALL_ENDINGS, *more.split(), f"--junitxml={xml}")
        assert done.returncode == FAILED
        found.append(shown(done.stdout))
        cases.append(junit_cases(xml))
    assert found[0] == found[1]
    assert cases[0] == cases[1]
    assert all(properties for _, _, properties in cases[0])
    last = done.stdout.splitlines()[-1]
    counts = {ending: int(count) for count, ending in re.findall(r"(\d+) (\w+)[, ]", last)}
    counts.pop("deselected")
    assert " ".join(sorted(counts)) == endings
    assert len(cases[0]) == sum(counts.values())


def junit_cases(path: Path) -> list[tuple[str | None, list[str], list[str]]]:
    """Each test case of a file: its name, how it ended, and its properties."""
    return [
        (
            case.get("name"),
            [f"{each.tag} {each.get('type')} {each.get('message')}" for each in case],
            [str(each.get("value")) for each in case.iter("property")],
        )
        for case in ElementTree.parse(path).iter("testcase")
    ]


def shown(output: str) -> list[str]:
    """The lines of an output without times, progress, and the line of code that skips an item."""
    output = re.sub(r"^castigate: [\d,]+ of [\d,]+ judged, .*\n+", "", output, flags=re.MULTILINE)
    lines = re.sub(r"in \d+\.\d+s( \([\d:]+\))?", "", output).splitlines()
    return [re.sub(r"items\.py:\d+", "items.py", line).strip("= ") for line in lines if line]


STEPS = {
    "pytest_runtest_protocol": ("item", 1),
    "pytest_runtest_logstart": ("nodeid", 1),
    "pytest_runtest_makereport": ("item", 1),
    "pytest_report_teststatus": ("report", 2),
    "pytest_runtest_logreport": ("report", 2),
    "pytest_runtest_logfinish": ("nodeid", 1),
}
"""The hooks of an item's steps, with an argument of each and the number of its calls."""
FOLLOWS = """
import pytest

@pytest.hookimpl(tryfirst=True)
def {hook}({argument}):
    with open({notes!r}, "a") as notes:
        print("{hook}", file=notes)
"""


def test_a_plugin_that_follows_the_steps_of_items_is_heeded(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    plugin = "".join(
        FOLLOWS.format(hook=hook, argument=argument, notes=str(notes))
        for hook, (argument, _) in STEPS.items()
    )
    done = suite_with(plugin, tmp_path, *ONE_CASE)
    assert done.returncode == PASSED, done.stdout + done.stderr
    calls = {hook: calls for hook, (_, calls) in STEPS.items()}
    assert Counter(notes.read_text().splitlines()) == calls


SKIPS_ONE = f"""\
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        if item.name == {SMALL!r}:
            item.add_marker(pytest.mark.skip(reason="by a plugin"))
"""


@pytest.mark.parametrize("option", [[], ["--pdb"]], ids=" ".join)
def test_items_go_pytests_own_way_where_somebody_marks_them_or_debugs(
    option: list[str], tmp_path: Path
) -> None:
    """The item that a plugin marks as skipped is skipped; the others are judged as usual."""
    names = f"{SMALL} or onnx-cast:25/int4/uint4"
    where = [f"--rootdir={ROOT}", "--pyargs", "-rs"]
    arguments = [*ONE_CASE[:2], "-k", names, *where, *option]
    done = suite_with(SKIPS_ONE, tmp_path, *arguments, cwd=tmp_path)
    assert done.returncode == PASSED, done.stdout + done.stderr
    assert "1 passed, 1 skipped" in done.stdout
    assert "by a plugin" in done.stdout


SLEEPS = """\
from time import sleep
from tests.conformance.data.hostile import TiesAway

class Backend(TiesAway):
    def cast(self, case, bits):
        sleep(0.05)
        return super().cast(case, bits)
"""


def test_the_time_of_a_failing_item_is_that_of_its_judging(tmp_path: Path) -> None:
    (tmp_path / "sleeps.py").write_text(SLEEPS)
    asked = [f"--backend={tmp_path / 'sleeps.py'}:Backend", *ONE_CASE[1:], "--tb=no"]
    alone = suite_with("", tmp_path, *asked, "--durations=0", "--durations-min=0.05")
    failed = re.findall(r"^FAILED (\S+)", alone.stdout, re.MULTILINE)
    timed = re.findall(r"^\d+\.\d+s call +(\S+)", alone.stdout, re.MULTILINE)
    assert failed
    assert set(failed) <= set(timed)


def test_tests_of_others_run_beside_the_suites_items(tmp_path: Path) -> None:
    (tmp_path / "test_own.py").write_text("def test_own(): pass\n\ndef test_wrong(): assert 0\n")
    options = [*ONE_CASE[:-1], f"{SMALL} or test_own or test_wrong"]
    done = suite_with("", tmp_path, *options, str(tmp_path / "test_own.py"))
    assert done.returncode == FAILED
    assert re.search(r"1 failed, 2 passed, \d+ deselected", done.stdout)


REVERSES = """\
def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.name, reverse=True)
"""


@pytest.mark.nightly
def test_items_may_be_in_any_order(tmp_path: Path) -> None:
    """Here the pairs are in reverse order, and items of several backends alternate."""
    xml, found = tmp_path / "out.xml", []
    for plugin in ("", REVERSES):
        done = suite_with(plugin, tmp_path, *ALL_ENDINGS, "--tb=no", f"--junitxml={xml}")
        assert done.returncode == FAILED
        found.append(junit_cases(xml))
    as_collected, reversed_ = found
    assert as_collected != reversed_
    assert sorted(as_collected) == sorted(reversed_)


TWICE = """\
import pytest
from _pytest.runner import runtestprotocol

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item):
    runtestprotocol(item, log=False)
"""


def test_an_item_may_run_twice(tmp_path: Path) -> None:
    """Plugins that repeat items, or that rerun failed ones, do this."""
    done = suite_with(TWICE, tmp_path, *ONE_CASE)
    assert done.returncode == PASSED, done.stdout + done.stderr
    assert "1 passed" in done.stdout
