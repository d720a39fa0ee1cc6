"""Runs commands of the lab."""

from __future__ import annotations

import runpy
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from unittest.mock import patch

import pytest

ROOT = Path(__file__).parents[2]


def lab(name: str, *arguments: str) -> tuple[int, str, str]:
    """Run ``python -m lab.NAME`` in this process; return its exit code, stdout and stderr."""
    with (
        patch.object(sys, "argv", [name, *arguments]),
        redirect_stdout(StringIO()) as out,
        redirect_stderr(StringIO()) as err,
        pytest.raises(SystemExit) as done,
    ):
        runpy.run_module(f"lab.{name}", run_name="__main__", alter_sys=True)
    return int(done.value.code or 0), out.getvalue(), err.getvalue()
