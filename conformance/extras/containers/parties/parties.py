"""The parties that come with the suite, and how one is loaded in a process of its own."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from oracles.backend.backend_supervisor import LaunchConfig
from oracles.backend.loading import load_isolated
from oracles.registry import Backend
from specs.errors import CastigateError, did_you_mean

TEXT = "text"
"""The party that knows the formats' texts and no framework."""


@dataclass(frozen=True)
class BuiltinParty:
    """The module and the name of a party's class, and the package that it uses.

    The package is empty if the party uses none.
    """

    module: str
    attribute: str
    package: str = ""

    @property
    def is_installed(self) -> bool:
        """Whether the party's package can be found; this does not import it."""
        return not self.package or importlib.util.find_spec(self.package) is not None

    @property
    def path(self) -> str:
        """The class as ``module:Class``, as ``load_isolated`` takes it."""
        return f"conformance.extras.containers.parties.{self.module}:{self.attribute}"


PARTIES: Mapping[str, BuiltinParty] = {
    TEXT: BuiltinParty("texts", "Texts"),
    "numpy": BuiltinParty("numpy_party", "NumpyParty", "numpy"),
    "onnx": BuiltinParty("onnx_parties", "OnnxParty", "onnx"),
    "onnx_ir": BuiltinParty("onnx_parties", "OnnxIrParty", "onnx_ir"),
    "ort": BuiltinParty("onnx_parties", "OrtParty", "onnxruntime"),
    "torch": BuiltinParty("torch_party", "TorchParty", "torch"),
    "jax": BuiltinParty("jax_party", "JaxParty", "jax"),
    "tensorflow": BuiltinParty("framework_parties", "TensorFlowParty", "tensorflow"),
    "paddle": BuiltinParty("framework_parties", "PaddleParty", "paddle"),
    "openvino": BuiltinParty("onnx_parties", "OpenVinoParty", "openvino"),
    "gguf": BuiltinParty("gguf_party", "GgufParty", "gguf"),
    "tinygrad": BuiltinParty("small_parties", "TinygradParty", "tinygrad"),
    "torchao": BuiltinParty("small_parties", "TorchaoParty", "torchao"),
}


def installed_parties() -> Iterator[str]:
    """Yield the names of built-in parties that need no package, or whose package is installed."""
    return (name for name, party in PARTIES.items() if party.is_installed)


def known_parties(names: Iterable[str]) -> list[str]:
    """Return the names without repeats; raise CastigateError for an unknown party.

    A name with a colon stands for ``path/to/file.py:Class``, and is not checked here.
    """
    found = list(dict.fromkeys(names))
    for name in found:
        if name not in PARTIES and ":" not in name:
            raise CastigateError(
                f"unknown party `{name}`; {did_you_mean(name, PARTIES)}the parties are "
                f"{', '.join(PARTIES)}, or give path/to/file.py:Class"
            )
    return found


def load_party(name: str, config: LaunchConfig) -> Backend:
    """Load a built-in party or a ``path/to/file.py:Class`` in a process of its own.

    Raise CastigateError if that fails.
    """
    party = PARTIES.get(name)
    loaded = load_isolated(name if party is None else party.path, config)
    return Backend(name, loaded.oracle)
