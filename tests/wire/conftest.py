"""Builds the example vendor in C, once for each planted fault."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "examples" / "vendor_c" / "vendor.c"
BuildVendor = Callable[[int], Path]


@pytest.fixture(scope="session")
def build_vendor(tmp_path_factory: pytest.TempPathFactory) -> BuildVendor:
    """Return a function that builds the vendor with one of its faults, or with none for 0."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("gcc is not installed")
    folder, programs = tmp_path_factory.mktemp("vendor"), dict[int, Path]()

    def build(fault: int) -> Path:
        if fault not in programs:
            programs[fault] = folder / f"vendor{fault}"
            options = ["-O2", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-DFAULT={fault}"]
            subprocess.run([compiler, *options, "-o", programs[fault], SOURCE], check=True)
        return programs[fault]

    return build


@pytest.fixture(scope="session")
def vendor(build_vendor: BuildVendor) -> Path:
    """The vendor without a fault."""
    return build_vendor(0)
