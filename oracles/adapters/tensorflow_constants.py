"""TensorFlow's functions of a constant, which grappler or XLA folds before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from oracles.adapters.lazy_import import load
from oracles.adapters.stablehlo import COMPUTED
from oracles.protocol import Bits, Unsupported

LARGEST_GROWN = 100 * 1024 - 1
"""How many bytes grappler lets a folded constant have that is larger than its operand."""

VECTOR = 64
"""A multiple of the elements a loop takes at once: only the last part may end in a scalar loop."""

FOLDED = {"Const", "Identity", "NoOp", "_Retval"}
"""The operations that remain in a function after grappler has folded it."""

Function = Callable[[Any], Any]


class Constants:
    """Runs an operation on constants, and refuses the answer of one that was not folded."""

    def __init__(self, tensorflow: Any, options: Mapping[str, bool]) -> None:
        self._tensorflow = tensorflow
        self._options = options
        self._proto: Any = load("tensorflow.core.framework.tensor_pb2", "tensorflow").TensorProto
        self._context: Any = load("tensorflow.python.eager.context", "tensorflow").context
        # Otherwise grappler rewrites the function's graph.
        self._is_xla = "jit_compile" in options

    def rows(self, bits: Bits, grown: int) -> list[Bits]:
        """The elements as constants that are folded into answers of ``grown`` bytes each.

        They have two dimensions: XLA makes a row that counts from 0 an iota, and computes with it.
        """
        row = bits.reshape(1, -1)
        if self._is_xla or grown <= row.itemsize:
            return [row]
        count = LARGEST_GROWN // grown // VECTOR * VECTOR
        return [row[:, start : start + count] for start in range(0, max(row.size, 1), count)]

    def answer(self, operation: Function, dtype: Any, bits: Bits) -> Any:
        """The tensor that an operation makes of a constant before it runs."""
        proto = self._proto(
            dtype=dtype.as_datatype_enum,
            tensor_shape=self._tensorflow.TensorShape(bits.shape).as_proto(),
            # Elements given one by one would pass through Python's floats, which quiet NaNs.
            tensor_content=bits.tobytes(),
        )
        function = self._tensorflow.function(
            lambda: operation(self._tensorflow.constant(proto)), **self._options
        )
        return self._compiled(function) if self._is_xla else self._optimized(function)

    def _optimized(self, function: Any) -> Any:
        concrete, context = function.get_concrete_function(), self._context()
        context.enable_run_metadata()
        try:
            tensor = concrete()
            graphs = context.export_run_metadata().function_graphs
        finally:
            context.disable_run_metadata()
        # What ran last is this function; before it come those that raised and were not exported.
        left = {node.op for node in graphs[-1].partition_graphs[-1].node} - FOLDED
        if left:
            raise Unsupported(f"grappler did not fold this, but left a {', '.join(sorted(left))}")
        return tensor

    def _compiled(self, function: Any) -> Any:
        tensor = function()
        text = function.experimental_get_compiler_ir()
        # Most constants are folded by TensorFlow's own kernels before XLA sees the function.
        if COMPUTED.search(text(stage="hlo")):
            left = COMPUTED.search(text(stage="optimized_hlo"))
            if left:
                raise Unsupported(f"XLA did not fold this at compile time, but left a {left[1]}")
        return tensor
