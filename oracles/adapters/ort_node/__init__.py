"""onnxruntime-node: models of one Cast, in sessions of a process of Node.js."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from oracles.adapters.node_process import node_says
from oracles.adapters.onnx_models import LATEST, Graph, ModelBuilder, cast_graph
from oracles.adapters.ort_node.scripts import script
from oracles.adapters.ort_node.server import OrtServer, SessionRefusedError
from oracles.adapters.refusals import load_own, require_plain, require_variant, wants_error
from oracles.adapters.script_text import NUMPY_DTYPES
from oracles.npm_packages import npm_version
from oracles.protocol import Bits, NotInstalled, Unsupported
from specs.cases import Case

DTYPES = (*sorted(NUMPY_DTYPES), "string")
"""The dtypes of tensors in JavaScript that go in and out; those of int4 only go in, if at all."""


class OrtNode:
    """Casts by models of one node, each in a session of onnxruntime's binding for JavaScript."""

    name = "ort_node"
    package: ClassVar[str] = "onnxruntime-node"
    provider: ClassVar[str] = "cpu"
    claims: tuple[str, ...] = ("onnx-cast", "onnx-cast-like")
    dtypes = DTYPES

    def __init__(self, variant: str | None = None) -> None:
        require_variant(self.name, variant, ())
        onnx: Any = load_own("onnx", __file__)
        if not (found := npm_version(self.package)):
            raise NotInstalled(f"{self.package} is missing: npm install {self.package}")
        self.version = f"{found}+node.{node_says('process.versions.node')}"
        self._models = ModelBuilder(onnx)
        self._server = OrtServer(self.package, self.provider)

    def road(self, case: Case) -> str:
        """Return, as text, what a case's model depends on: opset, dtypes and parameters.

        Raises Unsupported for modes that ``require_plain`` refuses, and for dtypes without tensors
        in JavaScript.
        """
        require_plain(case, "onnxruntime's Cast")
        for dtype in (case.source, case.target):
            _require_tensors(dtype)
        return self._models.road(case)

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Return ``bits`` cast by a model of one Cast or CastLike; raise Unsupported as ``road``.

        It is raised too if onnxruntime opens no session, unless the document wants an error.
        """
        self.road(case)
        try:
            return self._answer(cast_graph(case), bits)
        except SessionRefusedError as error:
            if wants_error(case) and not self._lacks(cast_graph(case).opset):
                raise
            raise Unsupported(str(error)) from None

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Return ``bits`` after a model without nodes; raise Unsupported for other dtypes."""
        _require_tensors(dtype)
        return self._answer(Graph(LATEST, dtype, dtype, operator=None), bits)

    def reproduce(self, case: Case, bits: Bits) -> str:
        """Return a script that runs the model in node; raise Unsupported as ``road`` does."""
        self.road(case)
        model = self._models.statement(cast_graph(case), None)
        return script(case, bits, model, self.package, self.version, self.provider)

    def _lacks(self, opset: int) -> bool:
        """Return whether onnxruntime has no session that casts float32 at an opset."""
        try:
            self._answer(Graph(opset, "float32", "float32", "Cast"), np.zeros(1, np.uint32))
        except SessionRefusedError:
            return True
        return False

    def _answer(self, graph: Graph, bits: Bits) -> Bits:
        model = self._models.with_input(graph, rank=None).SerializeToString()
        return self._server.run(model, (graph.source, graph.target), bits)


def _require_tensors(dtype: str) -> None:
    if dtype not in DTYPES:
        raise Unsupported(f"onnxruntime has no tensors of {dtype} in JavaScript")
