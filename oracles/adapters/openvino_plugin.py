"""openvino's CPU plugin: it compiles models, folds their constants, and runs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from oracles.protocol import Unsupported

SETTINGS: Mapping[str, str | int] = {
    "INFERENCE_NUM_THREADS": 1,
    # By default the plugin may compute in bfloat16, depending on the machine.
    "EXECUTION_MODE_HINT": "ACCURACY",
}

Lacking = Callable[[], str]
"""Returns what the plugin lacks, in words, or an empty text; called when the plugin refuses."""


def nothing() -> str:
    """Return that the plugin lacks nothing, so that its error is raised unchanged."""
    return ""


class Plugin:
    """Compiles and runs openvino's models on the CPU."""

    def __init__(self, openvino: Any) -> None:
        self._openvino = openvino
        self.core = openvino.Core()

    def compile(self, model: Any, lacking: Lacking) -> Any:
        """Return the compiled model; raise Unsupported if that fails for what is ``lacking``."""
        return self._or_unsupported(
            lambda: self.core.compile_model(model, "CPU", dict(SETTINGS)), lacking
        )

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
