"""Plant faults in the source of the kernels."""

from __future__ import annotations

import inspect
import sys
from types import ModuleType

import pytest

from oracles.reference import expect_by_kernels, kernels

FUNCTIONS = ("unpack", "convert", "has_fraction", "rounded")


def plant(monkeypatch: pytest.MonkeyPatch, right: str, wrong: str) -> None:
    """Let rulings run on kernels in whose source ``right`` is replaced by ``wrong``."""
    text = inspect.getsource(kernels)
    assert text.count(right) == 1, right
    module = ModuleType("planted_kernels")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(text.replace(right, wrong), module.__name__, "exec"), module.__dict__)
    for name in FUNCTIONS:
        monkeypatch.setattr(expect_by_kernels, name, getattr(module, name))
