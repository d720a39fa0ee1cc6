"""Runs commands of the lab as real processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def lab(name: str, *arguments: str) -> tuple[int, str, str]:
    """Run ``python -m lab.NAME``; return exit code, stdout, and stderr without progress."""
    command = [sys.executable, "-m", f"lab.{name}", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr
