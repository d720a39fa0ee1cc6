"""Helpers judge a part of a long run; the verdicts are the same as without them."""

from __future__ import annotations

import os
from ast import literal_eval
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from xml.etree import ElementTree

import pytest
from conformance.judging.backend_judge import Settings
from conformance.judging.questions import Judged, by_backend, judges_of

from conformance.suite.failures import Failures
from conformance.suite.parallel_judging import (
    Group,
    HelperConfig,
    Helpers,
    ParallelJudging,
)
from oracles.backend.launch_config import launch_configs
from oracles.registry import load_backend
from reports.outputs.totals import count_record
from reports.judgement import Judgement
from specs.cases import Case
from specs.selection import select
from tests.conformance.data import helped
from tests.conformance.test_suite import FAILED, suite

FILE = helped.__file__
MANY = ["--document=tensorflow-bitcast", "--document=cinn-bitcast-convert"]
"""Enough items for helpers, which are judged quickly: bitcasts of few elements."""
FEW = MANY[:1]
needs_processors = pytest.mark.skipif(
    (os.cpu_count() or 1) < 2, reason="a single processor has no helpers"
)


def run(folder: Path, name: str, *arguments: str) -> tuple[int, str, list[str], list[str]]:
    """The exit code, the output, every item with its verdict, and the adapter's notes."""
    xml, notes = folder / f"{name}.xml", folder / f"{name}{len(arguments)}"
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv(helped.NOTES, str(notes))
        code, output = suite(f"--backend={FILE}:{name}", "-q", f"--junitxml={xml}", *arguments)
    found = sorted(str(one.get("value")) for one in ElementTree.parse(xml).iter("property"))
    return code, output, found, sorted(line.split()[0] for line in notes.read_text().splitlines())


@pytest.fixture(scope="module")
def found_without_helpers(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Run the suite in a single xdist worker, which has no helpers."""
    folder = tmp_path_factory.mktemp("alone")
    code, _, found, notes = run(folder, "Noting", *MANY, "-n", "1")
    assert (code, notes) == (FAILED, ["asked", "loaded"])
    verdicts = {literal_eval(each)["verdict"] for each in found}
    assert {"conforms", "violates"} <= verdicts
    return found


@pytest.mark.nightly
@needs_processors
def test_a_long_run_with_helpers_finds_the_same(
    found_without_helpers: list[str], tmp_path: Path
) -> None:
    code, output, found, notes = run(tmp_path, "Helped", *MANY)
    assert (code, [each.replace("Helped", "Noting") for each in found]) == (
        FAILED,
        found_without_helpers,
    )
    assert notes.count("loaded") == notes.count("asked") > 1
    assert "a helper" not in output


@pytest.mark.nightly
@needs_processors
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("LosesItsAsker", "was ended by SIGKILL"),
        ("LosesItsAskers", "was ended by SIGKILL"),
        ("OneAtATime", "could not begin: backend"),
    ],
)
def test_pytest_judges_what_a_lost_helper_leaves(
    name: str, why: str, found_without_helpers: list[str], tmp_path: Path
) -> None:
    code, output, found, _ = run(tmp_path, name, *MANY)
    assert code == FAILED
    assert [each.replace(name, "Noting") for each in found] == found_without_helpers
    assert f"castigate: a helper {why}" in output
    assert "; pytest went on without it" in output


@pytest.mark.nightly
@pytest.mark.parametrize(("arguments", "loaded"), [(FEW, 1), ([*MANY, "-n", "2"], 2)])
def test_short_runs_and_xdist_runs_have_no_helpers(
    arguments: list[str], loaded: int, tmp_path: Path
) -> None:
    code, _, _, notes = run(tmp_path, "Noting", *arguments)
    assert (code, notes.count("loaded")) == (FAILED, loaded)


def test_a_run_that_stops_early_ends_its_helpers(tmp_path: Path) -> None:
    code, output, _, _ = run(tmp_path, "Noting", *MANY, "--exitfirst")
    assert code == FAILED
    assert "a helper" not in output


@pytest.mark.parametrize("tier", ["quick", "full"])
def test_a_helper_finds_the_same_as_pytest(tier: str, tmp_path: Path) -> None:
    settings, cases = Settings(tier=tier), select(["onnx-cast:25"])
    backend_judges = judges_of([load_backend("reference")], settings, cases)
    [(_, asked)] = by_backend(backend_judges, cases)
    judges = {("reference", question.name): question.judge for question in asked()}
    keys = [key for key in judges if key[1].endswith("/int16/int4")]
    assert len(keys) == 2
    configs = launch_configs(["reference"])
    helpers = Helpers(HelperConfig(configs, settings, ("onnx-cast:25",), Failures(tmp_path)), 1)
    helpers.begin([Group(keys[1:]), group := Group(keys[:1])])
    assert set(group.found.result()) == set(keys[:1])
    for key in keys[:1]:
        found = helpers.judge(group, key, fail_if_judged_here)
        assert count_record(*found) == count_record(*judges[key]())
        # Answers of what fails are in the folder; no others are needed.
        assert found[1].answered is None
    helpers.end()
    assert helpers.lost == []
    assert not list(tmp_path.iterdir())


NOTHING = HelperConfig({}, Settings(), (), Failures(Path()))


def fail_if_judged_here() -> Judged:
    raise AssertionError("a helper has judged this")


def test_pytest_judges_what_no_helper_is_left_for() -> None:
    helpers, group = (
        Helpers(HelperConfig({}, Settings(), (), Failures(Path())), 0),
        Group([("reference", "a")]),
    )
    judged = Case("onnx-cast", "25", "int4", "int2"), Judgement("a", "reference", "open")
    helpers.begin([group])
    assert helpers.judge(group, group.keys[0], lambda: judged) == judged
    helpers.end()


def test_an_error_of_the_suite_itself_is_raised_in_pytest() -> None:
    """A helper sends no judgement if judging raises; pytest shows the traceback."""
    helpers, group = (
        Helpers(HelperConfig({}, Settings(), (), Failures(Path())), 0),
        Group([("reference", "a")]),
    )
    group.found.set_result({})
    with pytest.raises(AssertionError, match="a helper has judged this"):
        helpers.judge(group, group.keys[0], fail_if_judged_here)


@pytest.mark.parametrize(
    ("document", "arguments", "keyword", "begins"),
    [
        ("onnx-cast", "conformance", "", True),
        ("onnx-cast", "conformance", "bool", False),
        ("onnx-cast", "conformance::reference::onnx-cast:25/bool/int8", "", False),
        ("cinn-cast", "conformance", "", False),
    ],
)
def test_helpers_start_before_the_items_are_made_if_there_will_be_many(
    document: str, arguments: str, keyword: str, begins: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Helpers] = []
    monkeypatch.setattr(Helpers, "start", lambda self: started.append(self))
    judging = ParallelJudging(NOTHING, 0)
    options = {"keyword": keyword}
    config: Any = SimpleNamespace(args=[arguments], getoption=options.get)
    judging.start_early(config, select([document]), 1)
    assert (started == [judging.helpers]) == begins


def test_letters_are_shown_rarely_and_before_pytest_waits() -> None:
    shown: list[str] = []
    reporter = SimpleNamespace(flush=lambda: shown.append("shown"))
    manager = SimpleNamespace(get_plugin=lambda name: reporter)
    judging = ParallelJudging(NOTHING, 0)
    with judging._flushed_rarely(cast(pytest.Config, SimpleNamespace(pluginmanager=manager))):
        for _ in range(1000):
            reporter.flush()
        assert len(shown) < 1000
        shown.clear()
        judging.helpers.before_waiting()
        assert shown == ["shown"]
    reporter.flush()
    assert shown == ["shown"] * 3
