"""The suite's own loop over its items: plugins that follow items are heeded, and nothing is lost.

Without such a plugin, an item makes a single report. What pytest then shows is compared with what
it shows where a plugin follows every step.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOSTILE = Path(__file__).with_name("data") / "hostile.py"
SMALL = "onnx-cast:25/int4/int2"
ONE_CASE = ["--backend=reference", "--document=onnx-cast:25", "-k", SMALL]
ALL_ENDINGS = [
    "--backend=reference",
    *(f"--backend={HOSTILE}:{name}" for name in ("TiesAway", "ClaimsNothing")),
    *("-k", f"onnx-cast:25/float16/float8e5m2/saturate or {SMALL} or complex64/int4"),
]
"""A run in which items pass, are skipped, fail as expected, and fail."""
PASSED, FAILED = 0, 1


def suite_with(
    plugin: str, folder: Path, *arguments: str, cwd: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    """Run the suite with a plugin of this source."""
    (folder / "some_plugin.py").write_text(plugin)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "some_plugin"]
    return subprocess.run(
        [*command, "conformance", *arguments],
        cwd=cwd, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


FOLLOWS = """\
import pytest

@pytest.hookimpl(tryfirst=True)
def {hook}({argument}):
    with open({notes!r}, "a") as notes:
        print("step", file=notes)
"""


def follower(hook: str, argument: str, notes: Path) -> str:
    """The source of a plugin that notes each call of a hook."""
    return FOLLOWS.format(hook=hook, argument=argument, notes=str(notes))


@pytest.mark.parametrize(
    ("more", "endings"),
    [
        ("-s", "failed passed skipped xfailed"),
        ("-q --tb=no -rA", "failed passed skipped xfailed"),
        ("--runxfail", "failed passed skipped"),
        ("-x", "failed passed skipped"),
    ],
)
def test_pytest_shows_the_same_whether_or_not_a_plugin_follows_the_items(
    more: str, endings: str, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    follows = follower("pytest_runtest_logfinish", "nodeid", notes)
    alone, followed = (
        suite_with(plugin, tmp_path, *ALL_ENDINGS, *more.split()) for plugin in ("", follows)
    )
    assert alone.returncode == followed.returncode == FAILED
    assert shown(alone.stdout) == shown(followed.stdout)
    last = alone.stdout.splitlines()[-1]
    counts = {ending: int(count) for count, ending in re.findall(r"(\d+) (\w+)[, ]", last)}
    counts.pop("deselected")
    assert " ".join(sorted(counts)) == endings
    assert len(notes.read_text().splitlines()) == sum(counts.values())


def shown(output: str) -> list[str]:
    """The lines of an output without times, and without the line of code that skips an item."""
    lines = re.sub(r"in \d+\.\d+s", "", output).splitlines()
    return [re.sub(r"items\.py:\d+", "items.py", line).strip("= ") for line in lines]


@pytest.mark.parametrize(
    ("hook", "argument", "calls"),
    [
        ("pytest_runtest_protocol", "item", 1),
        ("pytest_runtest_logstart", "nodeid", 1),
        ("pytest_runtest_makereport", "item", 1),
        ("pytest_report_teststatus", "report", 2),
        ("pytest_runtest_logreport", "report", 2),
        ("pytest_runtest_logfinish", "nodeid", 1),
    ],
)
def test_a_plugin_that_follows_a_step_of_items_is_heeded(
    hook: str, argument: str, calls: int, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    done = suite_with(follower(hook, argument, notes), tmp_path, *ONE_CASE)
    assert done.returncode == PASSED, done.stdout + done.stderr
    assert len(notes.read_text().splitlines()) == calls


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
    """A mark of a plugin, here a skip, is heeded; the others are judged as usual."""
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
    asked = [f"--backend={tmp_path / 'sleeps.py'}:Backend", "-k", SMALL, "--tb=no"]
    alone = suite_with("", tmp_path, *asked, "--durations=0", "--durations-min=0.05")
    failed = re.findall(r"^FAILED (\S+)", alone.stdout, re.MULTILINE)
    timed = re.findall(r"^\d+\.\d+s call +(\S+)", alone.stdout, re.MULTILINE)
    assert failed
    assert set(failed) <= set(timed)
