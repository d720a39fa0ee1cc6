"""A run judges all other cases of a planted backend, and leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.conformance.processes import (
    PROC,
    ROOT,
    castigate,
    rows,
    wait_for_ends,
)

pytestmark = pytest.mark.nightly

PLANTED = "tests/isolation/data/planted.py"
DOCUMENT = "--document=onnx-cast:25"
GUILTY = "onnx-cast:25/int8/int4"
NAMES = ["Right", "Segfaults", "Hangs", "Half", "Floods", "ForksAndDies"]
FOUND = {
    "Right": ("conforms", ""),
    "Segfaults": ("crashed", "on 0x95: the process was ended by SIGSEGV"),
    "Hangs": ("crashed", "on 0x95: the process was silent for 5 s"),
    "Half": ("error", "the answer has shape (128,), the input (256,)"),
    "Floods": (
        "crashed",
        "on 0x95: the process sent an invalid reply: a frame starts with b'CST1', not b'\\x80noi'",
    ),
    "ForksAndDies": ("crashed", "on 0x95: the process was ended by SIGSEGV"),
}
needs_proc = pytest.mark.skipif(not PROC.is_dir(), reason="there is no /proc to look into")


def planted(names: list[str]) -> list[str]:
    return [f"--backend={PLANTED}:{name}" for name in names]


def marked(mark: Path) -> list[int]:
    """The processes that have this mark in their environment."""
    found = []
    for path in PROC.iterdir():
        if path.name.isdigit():
            try:
                environment = (path / "environ").read_bytes()
            except OSError:
                continue
            if f"PLANTED_MARK={mark}".encode() in environment:
                found.append(int(path.name))
    return found


@needs_proc
def test_a_run_judges_all_that_can_be_and_leaves_nothing_behind(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    given = (*planted(NAMES), DOCUMENT, "--source=int8", "--timeout=5", f"--out={tmp_path / 'run'}")
    code, printed, err = castigate("run", *given, env={"PLANTED_MARK": str(mark)})
    assert (code, "its task is done again" in err) == (1, False), err
    assert "crashed" in printed
    found: dict[str, dict[str, Any]] = {name: {} for name in NAMES}
    for row in rows(tmp_path / "run", "cases"):
        found[row["backend"].rpartition(":")[2]][row["case"]] = row["verdict"], row["message"]
    assert {name: cases.pop(GUILTY) for name, cases in found.items()} == FOUND
    assert len(found["Right"]) > 20
    for name, cases in found.items():
        assert cases == found["Right"], name
    assert wait_for_ends(marked(mark)) == []


@needs_proc
def test_the_suite_judges_all_that_can_be_and_leaves_nothing_behind(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--pyargs", "conformance"]
    command += [
        *planted(NAMES),
        DOCUMENT,
        "--timeout=5",
        "-k",
        "onnx-cast:25/int8/int and not invariances",
    ]
    command += [f"--junitxml={tmp_path / 'out.xml'}", "-q"]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"PLANTED_MARK": str(mark)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    failed = []
    tests = list(ElementTree.parse(tmp_path / "out.xml").iter("testcase"))
    for test in tests:
        for failure in test.iter("failure"):
            failed.append(str(failure.text))
    assert len(tests) == 6 * len(NAMES)
    assert len(failed) == len(NAMES) - 1
    for name in NAMES[1:]:
        [text] = [text for text in failed if f":{name}: " in text]
        verdict, message = FOUND[name]
        assert f"{GUILTY} on {PLANTED}:{name}: {verdict}" in text
        assert message in text
    assert wait_for_ends(marked(mark)) == []
