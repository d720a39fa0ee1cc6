"""Texts of a backend reach terminals and files as plain text only."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as Tree

import pytest

from tests.conformance.processes import ROOT, castigate

HOSTILE = "tests/conformance/data/hostile_texts.py:HostileTexts"
FEW = ("--document=onnx-cast:25", "--source=int2", "--target=int4", "--target=string")
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\ud800-\udfff]")
LONGEST = 2_000


def assert_plain(text: str) -> None:
    assert not RAW.search(text)
    assert "owned" in text


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stored run of the backend, which raises errors and answers texts."""
    folder = tmp_path_factory.mktemp("hostile") / "run"
    code, out, err = castigate("run", f"--backend={HOSTILE}", *FEW, f"--out={folder}")
    assert code == 1
    assert_plain(out + err)
    assert max(map(len, out.splitlines())) < LONGEST
    return folder


def test_commands_print_text_only(stored: Path) -> None:
    asked = ["onnx-cast:25/int2/string", f"--backend={HOSTILE}", "--", "0x1"]
    for arguments in (["backends", HOSTILE], ["findings", str(stored)], ["explain", *asked]):
        code, out, err = castigate(*arguments)
        assert code in (0, 1)
        assert_plain(out + err)


def test_a_report_and_its_files_hold_text_only(stored: Path, tmp_path: Path) -> None:
    names = {"summary": "a.md", "csv": "a.csv", "junit": "a.xml"}
    options = [f"--{option}={tmp_path / name}" for option, name in names.items()]
    code, _, _ = castigate("report", str(stored), f"--out={tmp_path / 'pages'}", *options)
    assert code == 0
    for file in [*(tmp_path / name for name in names.values()), tmp_path / "pages" / "index.html"]:
        assert_plain(file.read_bytes().decode())
    Tree.parse(tmp_path / "a.xml")
    assert "\"'=1" in (tmp_path / "a.csv").read_text()


def test_pytest_prints_text_only() -> None:
    options = [
        f"--backend={HOSTILE}",
        FEW[0],
        "-kint2/int4 or int2/string",
        "-ra",
        "-p",
        "no:xdist",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "conformance", *options],
        cwd=ROOT,
        capture_output=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 1
    assert_plain(done.stdout.decode())


def test_a_name_with_a_control_character_is_refused() -> None:
    code, out, err = castigate("backends", "exec:\x1b[31m")
    assert (code, out) == (2, "")
    assert "`exec:\\u001b[31m`: its name has several lines or a control character" in err
