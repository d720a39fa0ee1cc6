"""Backends of ONNX by name: what implements ``onnx.backend.base.Backend``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pkgutil import resolve_name
from typing import Any

from oracles.adapters.road_words import parse_road
from oracles.protocol import Unsupported

BACKEND_ROADS: Mapping[str, str] = {
    "backend=NAME": "a module or a class with the functions of onnx.backend.base.Backend",
    "backend=NAME,device=DEVICE": "a backend on another device than CPU",
}

HEADER = """\
# onnx {{version}}: {{case}}
import {module}
import numpy as np
import onnx.parser

"""
RUN = '(y,) = {name}.prepare(model, "{device}").run([{{x}}])\n'


class OnnxBackend:
    """Prepares models by a backend of ONNX for a device, and names both.

    The constructor raises Unsupported if there is no such variant of ``onnx``, backend or device.
    """

    def __init__(self, variant: str) -> None:
        road = parse_road("onnx", variant, ("backend", "device"))
        self.name, self.device = road.options.get("backend", ""), road.options.get("device", "CPU")
        if road.words or not self.name:
            word = road.words[0] if road.words else variant
            raise Unsupported(f"onnx has no variant `{word}`; it has none but backend=NAME")
        try:
            self._backend: Any = resolve_name(self.name)
            prepare = self._backend.prepare
        except (ImportError, AttributeError) as error:
            where = "PYTHONPATH must have its folder, and it must have `prepare`"
            raise Unsupported(f"backend={self.name}: {error}; {where}") from None
        supports = getattr(self._backend, "supports_device", None)
        if supports is not None and not supports(self.device):
            raise Unsupported(f"backend={self.name} supports no device `{self.device}`")
        self._prepare = prepare
        module = getattr(self._backend, "__module__", self.name)
        self.header = HEADER.format(module=module)
        self.run_text = RUN.format(name=self.name, device=self.device)
        holders = (self._backend, sys.modules[module], sys.modules[module.partition(".")[0]])
        versions = [getattr(each, "__version__", "") for each in holders]
        own = next(filter(None, versions), "")
        self.version = f"{self.name} {own}".rstrip() + f" on {self.device}"

    def evaluator(self, model: Any) -> PreparedModel:
        """Return a model that the backend has prepared for the device."""
        return PreparedModel(self._prepare(model, self.device), [x.name for x in model.graph.input])


class PreparedModel:
    """A model that a backend has prepared, with the method ``run`` of onnx's own evaluator."""

    def __init__(self, prepared: Any, inputs: list[str]) -> None:
        self._prepared = prepared
        self._inputs = inputs

    def run(self, _: None, given: Mapping[str, Any]) -> list[Any]:
        """Return the results for tensors by name."""
        return [*self._prepared.run([given[name] for name in self._inputs])]
