"""openvino's plugins: one compiles models for its device, folds constants, and runs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from oracles.adapters.road_words import parse_road
from oracles.protocol import Unsupported

CPU = "CPU"

ACCURATE: Mapping[str, str | int] = {"EXECUTION_MODE_HINT": "ACCURACY"}
"""Forbids to compute in narrower floats, as a plugin may by default, depending on the machine."""

THREADS: Mapping[str, str | int] = {"INFERENCE_NUM_THREADS": 1}
"""The settings that only the CPU plugin takes."""

DEVICE_ROADS: Mapping[str, str] = {
    "DEVICE": "a device of openvino, such as GPU, NPU or GPU.1; AUTO runs where the version says",
    "DEVICE,DEVICE": "a device that chooses among others, such as HETERO,GPU,CPU",
}

Lacking = Callable[[], str]
"""Returns what the plugin lacks, in words, or an empty text; called when the plugin refuses."""


def nothing() -> str:
    """Return an empty text: the plugin lacks nothing, so its error is raised unchanged."""
    return ""


def device_named(words: str) -> str:
    """Return the name of the device that a variant's words are, such as ``HETERO:GPU,CPU``."""
    first, *others = parse_road("openvino", words, ()).words
    return f"{first}:{','.join(others)}" if others else first


class Plugin:
    """Compiles and runs openvino's models on a device, which need not be the CPU."""

    def __init__(self, openvino: Any, device: str = CPU) -> None:
        self._openvino = openvino
        self.device = device
        self.settings = {**(THREADS if device == CPU else {}), **ACCURATE}
        self.core = openvino.Core()
        self._ran_on: list[str] = []

    @property
    def settings_text(self) -> str:
        """The Python expression of the settings with which a script compiles."""
        return repr(self.settings).replace("'", '"')

    def version(self, model: Any, variants: tuple[str, ...]) -> str:
        """Return the devices on which a model runs, which all others must do, too.

        Raises Unsupported if openvino has no such device; the message lists ``variants``.
        """
        try:
            compiled = self.core.compile_model(model, self.device, self.settings)
        except RuntimeError as error:
            reason = str(error).strip().splitlines()[-1]  # after places in openvino's source
            here = ", ".join(self.core.available_devices)
            raise Unsupported(
                f"openvino has no variant `{self.device}`; its variants are {', '.join(variants)},"
                f" its devices here {here}: {reason}"
            ) from None
        self._ran_on = _devices_of(compiled)
        ran_on = ", ".join(self._ran_on)
        return self.device if self._ran_on == [self.device] else f"{self.device} runs on {ran_on}"

    def compile(self, model: Any, lacking: Lacking) -> Any:
        """Return the compiled model; raise Unsupported if that fails for what is ``lacking``.

        Also raises it for a model that is compiled for other devices than the first one.
        """
        compiled = self._or_unsupported(
            lambda: self.core.compile_model(model, self.device, self.settings), lacking
        )
        if self._ran_on and (found := _devices_of(compiled)) != self._ran_on:
            others = ", ".join(self._ran_on)
            raise Unsupported(f"{self.device} runs this on {', '.join(found)}, not on {others}")
        return compiled

    def request_to_folded(self, model: Any, lacking: Lacking) -> Any:
        """Return an inference request to a model of constants that the plugin has folded.

        Raises Unsupported if operations are left, other than a Convert of the folded 32-bit
        integers to 64 bits, or as ``compile`` does.
        """
        compiled = self.compile(model, lacking)
        layers = [
            (str(layer.get_rt_info()["layerType"].value), layer.get_output_element_type(0))
            for layer in compiled.get_runtime_model().get_ordered_ops()
        ]
        # The plugin carries 64-bit integers in 32 bits, and widens what it has folded.
        widened = (("Const", self._openvino.Type.i32), ("Convert", self._openvino.Type.i64))
        kinds = [kind for kind, _ in layers]
        if set(kinds) != {"Const", "Output"} and tuple(layers[:-1]) != widened:
            raise Unsupported(f"openvino did not fold this, but left {', '.join(kinds)}")
        return compiled.create_infer_request()

    def run(self, request: Any, lacking: Lacking) -> None:
        """Run an inference request; raise Unsupported if that fails for what is ``lacking``."""
        # ``infer`` swallows errors of a kernel, and leaves the output unchanged.
        request.start_async()
        self._or_unsupported(request.wait, lacking)

    @staticmethod
    def _or_unsupported(action: Callable[[], Any], lacking: Lacking) -> Any:
        try:
            return action()
        except RuntimeError:
            reason = lacking()
            if not reason:
                raise
            raise Unsupported(reason) from None


def _devices_of(compiled: Any) -> list[str]:
    """Return the devices on which a compiled model runs; AUTO puts some in parentheses."""
    return [name.strip("()") for name in compiled.get_property("EXECUTION_DEVICES")]
