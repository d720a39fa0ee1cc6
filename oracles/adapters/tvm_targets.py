"""TVM's targets by name: for which the adapter compiles its kernels."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from oracles.adapters.refusals import first_line
from oracles.adapters.road_words import parse_road
from oracles.protocol import Unsupported
from specs.errors import did_you_mean

TARGET_ROADS: Mapping[str, str] = {
    "TARGET": "a target of TVM that runs on the CPU: llvm or c",
    "TARGET,KEY=VALUE": "a target with its options, such as llvm,mcpu=skylake or llvm,mattr=+f16c",
}

ON_HOST = 1
"""DLPack's number of the CPU; kernels of other devices need a schedule for their threads."""

SEPARATOR = ";"
"""Separates the values of an option that takes several."""
SEVERAL = ("mattr", "keys", "libs")


@dataclass(frozen=True)
class Target:
    """A target of TVM: the name of its kind, and its options."""

    kind: str
    options: Mapping[str, str | int | list[str]] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The Python expression by which TVM is given the target."""
        if not self.options:
            return f'"{self.kind}"'
        return repr({"kind": self.kind, **self.options}).replace("'", '"')

    @property
    def words(self) -> str:
        """The target as versions and messages write it, such as ``llvm mcpu=skylake``."""
        several = {key: SEPARATOR.join(v) for key, v in self.options.items() if isinstance(v, list)}
        options = (f" {key}={value}" for key, value in {**self.options, **several}.items())
        return self.kind + "".join(options)


LLVM = Target("llvm")
"""A target without a processor's name, for which all machines get the same instructions."""


def target_named(tvm: Any, variant: str, variants: tuple[str, ...]) -> Target:
    """Return the target that a variant's words name; raise Unsupported unless TVM runs it here.

    ``variants`` are those that are no targets; a message lists them.
    """
    road = parse_road("tvm", variant)
    if len(road.words) != 1:
        raise Unsupported(f"tvm:{variant} must begin with one target, such as tvm:llvm")
    [kind] = road.words
    kinds = sorted(map(str, tvm.target.Target.list_kinds()))
    if kind not in kinds:
        raise Unsupported(
            f"tvm has no variant `{kind}`; its variants are {', '.join(variants)}, "
            f"its targets {', '.join(kinds)}"
        )
    target = Target(kind, {key: _value(key, text) for key, text in road.options.items()})
    try:
        made = tvm.target.Target({"kind": kind, **target.options})
    except (ValueError, TypeError) as error:
        raise Unsupported(f"tvm:{variant}: {first_line(error)}") from None
    if made.get_target_device_type() != ON_HOST:
        raise Unsupported(f"tvm:{variant} is no target for the CPU; tvm:llvm and tvm:c are")
    if (processor := road.options.get("mcpu")) and kind == LLVM.kind:
        _require_processor(made, processor)
    return target


def _require_processor(made: Any, processor: str) -> None:
    """Raise Unsupported for a processor in whose place LLVM would silently take a generic one."""
    codegen: Any = importlib.import_module("tvm.target.codegen")
    if processor not in (known := [*map(str, codegen.llvm_get_cpu_archlist(made))]):
        meant = did_you_mean(processor, known).strip() or f"it knows {', '.join(known)}"
        raise Unsupported(f"LLVM knows no processor `{processor}`; {meant}")


def _value(key: str, text: str) -> str | int | list[str]:
    if key in SEVERAL:
        return text.split(SEPARATOR)
    return int(text) if text.isdigit() else text
