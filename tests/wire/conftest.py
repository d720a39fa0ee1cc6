"""The vendor in C, built once for each fault."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "examples" / "vendor_c" / "vendor.c"
Built = Callable[[int], Path]


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Builds the vendor with one of its faults; 0 is none."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("gcc is not installed")
    folder, made = tmp_path_factory.mktemp("vendor"), dict[int, Path]()

    def build(fault: int) -> Path:
        if fault not in made:
            made[fault] = folder / f"vendor{fault}"
            options = ["-O2", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-DFAULT={fault}"]
            subprocess.run([compiler, *options, "-o", made[fault], SOURCE], check=True)
        return made[fault]

    return build


@pytest.fixture(scope="session")
def vendor(built: Built) -> Path:
    """The vendor without a fault."""
    return built(0)
