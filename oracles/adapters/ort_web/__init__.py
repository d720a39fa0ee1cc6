"""onnxruntime-web: models of one Cast, in WebAssembly that Node.js runs."""

from __future__ import annotations

from typing import ClassVar

from oracles.adapters.ort_node import OrtNode


class OrtWeb(OrtNode):
    """Casts by onnxruntime's WebAssembly with one thread, as a browser runs it."""

    name = "ort_web"
    package: ClassVar[str] = "onnxruntime-web"
    provider: ClassVar[str] = "wasm"
