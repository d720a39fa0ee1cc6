"""The CI files in `examples/ci/` name existing commands, options, extras and files only."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from conformance.running.nights import Nights
from reports.outputs.write_outputs import RENDERERS
from specs.editions import edition
from specs.loader import documents
from tests.conformance.processes import ROOT, castigate
from tests.html.planted import planted_run

FOLDER = ROOT / "examples" / "ci"
FILES = sorted(FOLDER.glob("*.yml"))
NIGHTS = [FOLDER / "github_nightly.yml", FOLDER / "gitlab.yml"]
SHARDS = 2
"""Shards that are run, of the four of the examples."""
SMALL = "--backend reference --document onnx-cast:25 --source float8e5m2"


def texts(part: Any) -> Iterator[str]:
    """The lines of all texts in parsed YAML."""
    match part:
        case dict():
            for each in part.values():
                yield from texts(each)
        case list():
            for each in part:
                yield from texts(each)
        case str():
            yield from part.splitlines()


@pytest.mark.parametrize("file", NIGHTS, ids=lambda file: file.name)
def test_the_command_its_outputs_and_the_extra_exist(file: Path) -> None:
    lines = list(texts(YAML(typ="safe").load(file)))
    [command] = {match[1] for line in lines if (match := re.match(r"castigate (.*)", line))}
    name, option, folder = command.split()
    assert option in castigate(name, "--help")[1].split()
    nights = Nights(Path(folder))
    made = {str(nights.report), *(f"{folder}/{form}" for form in RENDERERS)}
    named = {line.rstrip("/") for line in lines if line.startswith(f"{folder}/")} - {folder}
    assert named == made
    [extra] = {match[1] for line in lines if (match := re.search(r"'castigate\[(\w+)\]'", line))}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert extra == name
    assert extra in project["optional-dependencies"]


def test_there_are_examples_for_github_and_gitlab() -> None:
    stems = [file.stem for file in FILES]
    assert stems == [
        *("github", "github_board", "github_nightly", "github_shards"),
        *("gitlab", "gitlab_shards"),
    ]


def shell_lines(job: Any) -> list[str]:
    """The commands of a job that call castigate, or that exit by its exit code."""
    lines = job["script"] if "script" in job else [step.get("run", "") for step in job["steps"]]
    return [
        line
        for line in lines
        if ("castigate" in line and "pip install" not in line) or line.startswith("exit")
    ]


@pytest.mark.ci_runs_one_of(2)
@pytest.mark.parametrize("name", ["github_shards.yml", "gitlab_shards.yml"])
def test_the_shards_are_run_merged_and_reported(name: str, tmp_path: Path) -> None:
    """Each job's commands as they stand, but on few cases and for fewer machines."""
    jobs = read(name).get("jobs", read(name))
    [command] = shell_lines(jobs["shard"])
    assert "--backend ort --tier full" in command
    merging = "\n".join(shell_lines(jobs["merge"]))
    assert "merge shard-1 shard-2 shard-3 shard-4 " in merging
    scripts = []
    for number in range(1, SHARDS + 1):
        # Each artifact on GitHub has its own name, which its folder has after the download.
        renamed = command.replace("--out shard ", f"--out shard-{number} ")
        scripts.append(renamed.replace("${{ matrix.shard }}/4", f"{number}/{SHARDS}"))
    scripts.append(merging.replace(" shard-3 shard-4", ""))
    for number, script in enumerate(scripts, 1):
        variables = {"CI_NODE_INDEX": str(number), "CI_NODE_TOTAL": str(SHARDS)}
        ended = subprocess.run(
            ["bash", "-e", "-c", script.replace("--backend ort --tier full", SMALL)],
            cwd=tmp_path,
            env=os.environ | variables,
            capture_output=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "report" / "index.html").is_file()
    assert (tmp_path / "summary.md").is_file()


def read(name: str) -> Any:
    return YAML(typ="safe").load(ROOT / "examples" / "ci" / name)


def steps() -> list[Any]:
    """The steps of the only job for GitHub."""
    [job] = read("github_nightly.yml")["jobs"].values()
    found: list[Any] = job["steps"]
    return found


def using(action: str) -> Any:
    """The step that uses an action, of any version."""
    [step] = [step for step in steps() if step.get("uses", "").partition("@")[0] == action]
    return step


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_castigate_comes_from_the_index_and_the_python_is_supported(file: Path) -> None:
    lines = list(texts(YAML(typ="safe").load(file)))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    installed = [each for line in lines if (each := INSTALLS.search(line))]
    assert installed
    for each in installed:
        assert set(filter(None, (each["extras"] or "").split(","))) <= {
            *project["optional-dependencies"]
        }
    [python] = {line.removeprefix("python:") for line in lines if re.match(r"(python:)?3\.", line)}
    assert f"Programming Language :: Python :: {python}" in project["classifiers"]


INSTALLS = re.compile(r"pip install '?castigate(\[(?P<extras>[\w,-]+)\])?'?$")
MYSTACK = """\
import numpy as np

def to_bfloat16(x):
    bits = x.view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(x), np.uint16(0x7FC0), rounded)
"""
ADAPTER = """\
import numpy as np
import mystack
from oracles.protocol import Unsupported

class MyStack:
    name, version, claims = "mystack", "1", ("onnx-cast:25",)

    def cast(self, case, bits):
        if (case.source, case.target) != ("float32", "bfloat16"):
            raise Unsupported("mystack casts float32 to bfloat16 only")
        return np.asarray(mystack.to_bfloat16(bits.view(np.float32)))
"""


def test_a_pull_request_is_red_for_a_fault_and_green_for_its_mending(tmp_path: Path) -> None:
    """The example as it stands, in the repository of a stranger."""
    [job] = read("github.yml")["jobs"].values()
    [command] = [step["run"] for step in job["steps"] if "castigate gate" in step.get("run", "")]
    (tmp_path / "castigate_adapter.py").write_text(ADAPTER)
    ends = {}
    for name, text in {
        "wrong": MYSTACK.replace(" + 0x7FFF + (bits >> 16 & 1)", ""),
        "right": MYSTACK,
    }.items():
        (tmp_path / "mystack.py").write_text(text)
        command_here = command.replace("--out castigate", f"--out {name}")
        ends[name] = subprocess.run(
            [sys.executable, "-c", RUNS, *command_here.split()[1:]],
            cwd=tmp_path,
            env=os.environ | {"GITHUB_ACTIONS": "true", "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
    red, green = ends["wrong"], ends["right"]
    assert (red.returncode, green.returncode) == (1, 0), red.stderr + green.stderr
    first, where, cause = " ".join(red.stdout.split("::error")[0].split()).partition("onnx-cast")
    assert first.startswith("FAIL: castigate_adapter.py:MyStack, policy pull-request")
    assert (where + cause).startswith("onnx-cast:25/float32/bfloat16: 0x")
    assert " gives 0x" in cause
    [annotation] = [line for line in red.stdout.splitlines() if line.startswith("::error ")]
    assert annotation.startswith("::error file=castigate_adapter.py,title=")
    assert "onnx-cast:25/float32/bfloat16: 0x" in annotation
    assert green.stdout.startswith("pass: castigate_adapter.py:MyStack, policy pull-request")
    assert "::error" not in green.stdout
    assert ", 1,178 unsupported, " in green.stdout


RUNS = "import castigate; castigate.main()"


def test_the_board_of_all_nights_is_what_is_published(tmp_path: Path) -> None:
    """The commands as they stand, after a night that failed."""
    [job] = read("github_board.yml")["jobs"].values()
    runs = [step for step in job["steps"] if step.get("run", "").startswith("castigate ")]
    night, board = (step["run"].split() for step in runs)
    assert night == ["castigate", "nightly", "--out", "nights"]
    assert runs[0]["continue-on-error"] is True
    nights = tmp_path / "nights" / "runs"
    nights.mkdir(parents=True)
    planted_run(nights / "a", of=edition(documents()["pypto-cast"], "0.2").cases())
    planted_run(nights / "b", after=1, complete=False)
    command = " ".join(["exec", sys.executable, "-c", f"'{RUNS}'", *board[1:]])
    ended = subprocess.run(
        ["bash", "-e", "-c", command],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    [upload] = [step for step in job["steps"] if "upload-pages-artifact" in step.get("uses", "")]
    page = (tmp_path / upload["with"]["path"] / "index.html").read_text()
    assert "the run of 2026-01-03 failed" in page


@pytest.mark.parametrize("ends", [0, 1, 2])
def test_github_shows_the_summary_and_keeps_the_exit_code(tmp_path: Path, ends: int) -> None:
    fake = tmp_path / "bin" / "castigate"
    fake.parent.mkdir()
    fake.write_text(f"#!/bin/sh\nmkdir nights; echo said > nights/summary.md; exit {ends}\n")
    fake.chmod(0o755)
    night, summary = [step for step in steps() if "nights" in step.get("run", "")]
    assert ("if" in night, summary["if"]) == (False, "always()")
    environment = {
        "PATH": f"{fake.parent}{os.pathsep}{os.environ['PATH']}",
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
    }
    codes = [
        subprocess.run(
            ["bash", "-e", "-c", step["run"]],
            cwd=tmp_path,
            env=os.environ | environment,
            check=False,
        ).returncode
        for step in (night, summary)
    ]
    assert codes == [ends, 0]
    assert (tmp_path / "summary").read_text() == "said\n"


def test_github_caches_and_uploads_the_nights_after_a_failure_too() -> None:
    assert [step["uses"].partition("@")[0] for step in steps() if "uses" in step] == [
        "actions/checkout",
        "actions/setup-python",
        "actions/cache/restore",
        "actions/cache/save",
        "actions/upload-artifact",
    ]
    before, after = (using(f"actions/cache/{what}")["with"] for what in ("restore", "save"))
    assert before["path"] == after["path"] == "nights"
    assert before["key"] == after["key"] == before["restore-keys"] + "${{ github.run_id }}"
    for action in ("actions/cache/save", "actions/upload-artifact"):
        assert using(action)["if"] == "always()"
    [schedule] = read("github_nightly.yml")["on"]["schedule"]
    assert re.fullmatch(r"\d+ \d+ \* \* \*", schedule["cron"])


def test_gitlab_caches_and_uploads_the_nights_after_a_failure_too() -> None:
    [job] = read("gitlab.yml").values()
    assert job["cache"] == {"key": "nights", "paths": ["nights/"], "when": "always"}
    assert job["artifacts"]["when"] == "always"
    assert job["artifacts"]["reports"] == {"junit": "nights/junit.xml"}
    assert {rule["if"] for rule in job["rules"]} == {
        f'$CI_PIPELINE_SOURCE == "{source}"' for source in ("schedule", "web")
    }
