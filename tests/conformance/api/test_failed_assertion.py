"""pytest shows a failed check in a project that only imports castigate."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LIBRARY = """\
import numpy as np


def encode_with_a_name_of_some_length(x):
    return (x.view(np.uint32) >> 16).astype(np.uint16)


def takes_lists(x):
    raise KeyError("the cause")
"""
TESTS = """\
import castigate as cg
from library import encode_with_a_name_of_some_length, takes_lists


def test_assertion():
    assert cg.check(encode_with_a_name_of_some_length, "float32", "bfloat16")


def test_fixture(castigate):
    result = castigate.check(encode_with_a_name_of_some_length, "float32", "bfloat16")
    assert result.wrong == 0


def test_error():
    cg.check(takes_lists, "float16", "bfloat16")


def test_unrelated():
    result = cg.check(lambda x: x.astype("f4"), "float16", "float32")
    assert result
    assert False
"""
EXAMPLE = "0x00008001 (about 4.5919e-41) gives 0x0000 (0), not 0x0001 (about 9.18e-41)"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the lines that pytest prints about each failed test, by the test's name."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "library.py").write_text(LIBRARY)
    (folder / "test_own.py").write_text(TESTS)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "castigate",
            "-p",
            "no:cacheprovider",
            "test_own.py",
        ],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "300"},
        capture_output=True,
        text=True,
        check=False,
    )
    parts = done.stdout.partition("short test summary")[0].split("____ test_")[1:]
    assert len(parts) == 4, done.stdout + done.stderr
    return {each.partition(" ")[0]: each for each in parts}


def test_the_line_of_the_assertion_has_the_smallest_wrong_input(shown: dict[str, str]) -> None:
    line = next(each for each in shown["assertion"].splitlines() if "AssertionError" in each)
    assert EXAMPLE in line
    assert "..." not in line


@pytest.mark.parametrize("test", ["assertion", "fixture"])
def test_all_lines_of_the_result_follow(test: str, shown: dict[str, str]) -> None:
    text = shown[test]
    assert text.count("- castigate -") == 1
    section = text.partition("- castigate -")[2]
    assert f"\n  {EXAMPLE}\n    required by float-to-float: " in section
    assert "\n  rounds-toward-zero: rounds toward zero, " in section


def test_an_error_shows_the_persons_own_lines_alone(shown: dict[str, str]) -> None:
    text = shown["error"]
    assert "KeyError: 'the cause'" in text
    assert "takes_lists raised KeyError" in text
    assert "answers.py" not in text
    assert "castigate.py" not in text


def test_a_right_result_is_not_shown(shown: dict[str, str]) -> None:
    assert "- castigate -" not in shown["unrelated"]
    assert "- castigate -" not in shown["error"]
