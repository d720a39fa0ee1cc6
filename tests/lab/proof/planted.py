"""Plant faults in the source of the kernels."""

from __future__ import annotations

import inspect
import sys
from types import ModuleType

import pytest

from oracles.reference import expect_by_kernels, kernels

FUNCTIONS = ("unpack", "convert", "has_fraction", "rounded")


def plant(monkeypatch: pytest.MonkeyPatch, right: str, wrong: str) -> None:
    """Make rulings use kernels in whose source ``right`` is replaced by ``wrong``."""
    module = planted_module(monkeypatch, kernels, right, wrong)
    for name in FUNCTIONS:
        monkeypatch.setattr(expect_by_kernels, name, getattr(module, name))


def planted_module(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, right: str, wrong: str
) -> ModuleType:
    """A module in whose source ``right`` is replaced by ``wrong``."""
    planted = ModuleType("planted_kernels")
    monkeypatch.setitem(sys.modules, planted.__name__, planted)
    text = planted_text(module, right, wrong)
    exec(compile(text, planted.__name__, "exec"), planted.__dict__)
    return planted


def planted_text(module: ModuleType, right: str, wrong: str) -> str:
    """The source of a module in which ``right`` is replaced by ``wrong``."""
    text = inspect.getsource(module)
    assert text.count(right) == 1, right
    return text.replace(right, wrong)
