"""Loaded by every pytest: adds the suite's options only when the suite itself is to run."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Register the suite's plugin if an argument names this package."""
    known = early_config.known_args_namespace
    names = [str(argument).partition("::")[0] for argument in known.file_or_dir]
    if any(_is_suite(name, bool(known.pyargs)) for name in names):
        plugin = importlib.import_module("conformance.suite.plugin")
        early_config.pluginmanager.register(plugin, "castigate-suite")


def _is_suite(name: str, is_module: bool) -> bool:
    if is_module and name.partition(".")[0] == "conformance":
        return True
    path = Path(name).resolve()
    return path == HERE or HERE in path.parents
