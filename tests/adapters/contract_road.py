"""The roads of adapters that the contract asks: what a row of its table holds."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal

import pytest

from oracles.protocol import NotInstalled
from oracles.registry import BUILTINS
from specs.cases import Case
from specs.formats import formats
from tests.adapters.common import quietly

ALL = frozenset(formats())
FLOAT6 = frozenset({"float6e2m3", "float6e3m2"})
COMPLEX = frozenset({"complex64", "complex128"})
NOT_IN_ONNX = frozenset({"float8e4m3", "float8e3m4", "float8e4m3b11fnuz"})
SUB_BYTE = FLOAT6 | {"float4e2m1", "int4", "int2", "uint4", "uint2"}

OWN_PROCESS = frozenset({"jax", "tensorflow", "paddle", "tvm", "openvino", "torch_xla"})
"""The packages of which one process can load only one: they clash."""


@dataclass(frozen=True)
class Pairs:
    """All pairs of these sources and targets; ``reason`` is the pattern of the road's refusal."""

    sources: frozenset[str] = ALL
    targets: frozenset[str] = ALL
    reason: str = "."

    def __contains__(self, pair: tuple[str, str]) -> bool:
        source, target = pair
        return source in self.sources and target in self.targets


def either(dtypes: Iterable[str], reason: str = ".") -> tuple[Pairs, Pairs]:
    """All pairs with one of these dtypes on either side."""
    some = frozenset(dtypes)
    return Pairs(sources=some, reason=reason), Pairs(targets=some, reason=reason)


Script = tuple[Case, list[Any]]
OF_A_VARIANT = 4


@dataclass(frozen=True)
class Road:
    """A backend with one of its variants, and what the contract asks of it."""

    backend: str
    packages: tuple[str, ...]
    castable: frozenset[str]
    """The dtypes that it casts; every other one is refused in the words of ``no_dtype``."""
    no_dtype: str
    variant: str | None = None
    stands_in: str = ""
    """The device that takes the place of the one that the variant names."""
    movable: frozenset[str] | None = None
    """The dtypes that ``identity`` takes, if they are others than those that it casts."""
    layout_dtypes: tuple[str, ...] | None = None
    """The dtypes moved in every layout, if not all are; each new shape may be compiled."""
    refused: tuple[Pairs, ...] = ()
    """The pairs that it does not cast although it has both dtypes."""
    untested: tuple[Pairs, ...] = ()
    """The pairs whose values are not tested, because the framework answers them wrongly."""
    casts: bool = True
    takes_every_known_value: bool = True
    layout_pairs: tuple[str, ...] = ("float32-float16", "int4-int8", "int8-int4")
    owned: tuple[str, ...] = ("float32",)
    """The dtypes for which the contract tests that each answer has memory of its own."""
    bound: tuple[str, ...] | None = None
    """The pairs whose bound calls are tested, if not all of ``BOUND``."""
    refusals: tuple[tuple[Case, str], ...] = ()
    """Cases that ``cast`` and ``bind`` refuse, with the pattern of the reason."""
    scripts_check_dtypes: bool = True
    bitcasts: Literal["keeps", "scales", "adds", "own"] | None = None
    """How a change of width is treated: refused (None), by scaling a dimension or adding one."""
    viewable: frozenset[str] = frozenset()
    view_pairs: frozenset[str] = frozenset()
    """The pairs that are read as one another, besides all pairs of ``viewable`` dtypes."""
    refuses_other_views: bool = False
    """Whether all other pairs of ``SAME_WIDTH`` are refused."""
    scripts: tuple[Script, ...] = ()

    @property
    def id(self) -> str:
        return self.backend + (f":{self.variant}" if self.variant else "")

    @property
    def moved(self) -> frozenset[str]:
        return self.castable if self.movable is None else self.movable

    @cached_property
    def is_installed(self) -> bool:
        """Whether all packages are installed; this imports none."""
        return all(importlib.util.find_spec(package) for package in self.packages)

    def make(self) -> Any:
        """Create the oracle; skip the test if a package is missing, or a compiler it needs."""
        for package in self.packages:
            skip_unless_installed(package)
        builtin = BUILTINS[self.backend]
        adapter = getattr(importlib.import_module(builtin.module), builtin.attribute)
        if self.stands_in:
            adapter = type(
                adapter.__name__, (adapter,), {"devices": {self.variant: self.stands_in}}
            )
        try:
            return quietly(partial(adapter, self.variant))
        except NotInstalled as missing:
            pytest.skip(str(missing))

    def refusal(self, source: str, target: str) -> str | None:
        """Return the pattern with which a pair is refused, or None if the road casts it."""
        for pairs in self.refused:
            if (source, target) in pairs:
                return pairs.reason
        return None

    def answers(self, source: str, target: str) -> bool:
        """Whether the contract knows that the road casts a pair correctly."""
        return (
            {source, target} <= self.castable
            and self.refusal(source, target) is None
            and not any((source, target) in pairs for pairs in self.untested)
        )

    def views(self, source: str, target: str) -> bool:
        """Whether the road reads one dtype as the other."""
        return {source, target} <= self.viewable or f"{source}-{target}" in self.view_pairs


def skip_unless_installed(package: str) -> None:
    """Skip the test if a package is missing, without importing the package."""
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
