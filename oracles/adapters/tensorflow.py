"""TensorFlow's ``tf.cast`` and ``tf.bitcast`` on the CPU: eager, traced, compiled, and folded."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, Literal

import numpy as np

from oracles.adapters.lazy_import import load, require_variant
from oracles.adapters.plain_modes import require_plain
from oracles.adapters.tensorflow_constants import Constants
from oracles.adapters.tensorflow_script import reproduction
from oracles.bit_packing import is_packed
from oracles.protocol import Bits, Bound, Unsupported
from specs.cases import Case
from specs.formats import format_named

VARIANTS: tuple[str, ...] = ("function", "xla", "folded", "xla-folded")
"""The last two are the first two with a constant for an operand."""

DTYPES: Mapping[str, str] = {
    "float64": "float64",
    "float32": "float32",
    "float16": "float16",
    "bfloat16": "bfloat16",
    "float8e4m3fn": "float8_e4m3fn",
    "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2",
    "float8e5m2fnuz": "float8_e5m2fnuz",
    "float8e4m3b11fnuz": "float8_e4m3b11fnuz",
    "float4e2m1": "float4_e2m1fn",
    "int64": "int64",
    "int32": "int32",
    "int16": "int16",
    "int8": "int8",
    "int4": "int4",
    "int2": "int2",
    "uint64": "uint64",
    "uint32": "uint32",
    "uint16": "uint16",
    "uint8": "uint8",
    "uint4": "uint4",
    "uint2": "uint2",
    "bool": "bool",
    "complex64": "complex64",
    "complex128": "complex128",
}
"""The dtypes of numbers; a text goes through no ``tf.cast``."""

ENVIRONMENT: Mapping[str, str] = {
    "CUDA_VISIBLE_DEVICES": "-1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    # oneDNN announces itself all the same, and has no cast.
    "TF_ENABLE_ONEDNN_OPTS": "0",
    # XLA cuts a loop into as many parts as it counts processors.
    "NPROC": "1",
}

MISSING_KERNEL = re.compile(
    r"Cast \w+ to \w+ is not supported|No registered '\w+' OpKernel for \w+ devices"
)
"""How a missing kernel shows; the rest of the text counts the functions made before."""

FUNCTIONS_KEPT = 64

Operation = Literal["cast", "bitcast"]
Function = Callable[[Any], Any]

OPTIONS: Mapping[str, Mapping[str, bool]] = {
    # There is nothing to rewrite, and an error would be wrapped in the text of this very file.
    "function": {"autograph": False},
    "xla": {"autograph": False, "jit_compile": True},
    "folded": {"autograph": False},
    "xla-folded": {"autograph": False, "jit_compile": True},
}


class TensorFlow:
    """A cast by ``tf.cast``, at once or within a ``tf.function`` of a tensor or a constant."""

    name = "tensorflow"
    claims: tuple[str, ...] = ("tensorflow-bitcast",)

    def __init__(self, variant: str | None = None) -> None:
        os.environ.update(ENVIRONMENT)
        self._tensorflow: Any = load("tensorflow", "tensorflow")
        require_variant(self.name, variant, VARIANTS)
        self.version = str(self._tensorflow.__version__)
        # It warns of discarded parts, and of a function for each shape.
        self._tensorflow.get_logger().setLevel("ERROR")
        self._tensorflow.config.threading.set_intra_op_parallelism_threads(1)
        self._tensorflow.config.threading.set_inter_op_parallelism_threads(1)
        self._variant = variant
        self.compiles_shapes = variant is not None
        self._function = lru_cache(FUNCTIONS_KEPT)(self._made)
        self._constants = (
            Constants(self._tensorflow, OPTIONS[variant])
            if variant in ("folded", "xla-folded")
            else None
        )

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Answer a case by one ``tf.cast``."""
        require_plain(case, "tf.cast")
        try:
            return self._answer("cast", case.source, case.target, bits)
        except self._tensorflow.errors.OpError as error:
            missing = MISSING_KERNEL.search(error.message)
            if missing is None:
                raise
            raise Unsupported(missing[0]) from None

    def bitcast(self, case: Case, bits: Bits) -> Bits:
        """Answer a case by one ``tf.bitcast``."""
        require_plain(case, "tf.bitcast")
        return self._answer("bitcast", case.source, case.target, bits)

    def bitcast_shares_memory(self, case: Case, bits: Bits) -> bool:
        """Whether the result of a ``tf.bitcast`` begins where its input does."""
        if self._constants is not None:
            raise Unsupported("a constant of a graph is no tensor whose memory could be shared")
        function = self._function("bitcast", case.source, case.target, bits.shape)
        x = self._tensor(case.source, bits)
        y = function(x)
        return _address(x) == _address(y)

    def road(self, case: Case) -> str:
        """The pair alone: ``tf.cast`` knows nothing of documents, versions and modes."""
        require_plain(case, "tf.cast")
        for dtype in (case.source, case.target):
            self._dtype(dtype)
        return f"{case.source}->{case.target}"

    def bind(self, case: Case, bits: Bits) -> Bound:
        """Nothing can be prepared but the function, which ``cast`` keeps."""
        self.road(case)  # refuses what cannot be cast, in the same words
        return partial(self.cast, case, bits)

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Bits into a tensor and out again; what XLA makes of its memory is a cast's affair."""
        return self._bits(dtype, self._tensorflow.identity(self._tensor(dtype, bits)))

    def reproduce(self, case: Case, bits: Bits) -> str:
        """A script that asks TensorFlow the same, without this project."""
        self.road(case)
        options = OPTIONS[self._variant] if self._variant is not None else None
        folded = self._constants is not None
        return reproduction(self.version, case, bits, DTYPES, options, folded=folded)

    def _answer(self, operation: Operation, source: str, target: str, bits: Bits) -> Bits:
        if self._constants is not None:
            return self._folded(self._constants, operation, source, target, bits)
        function = self._function(operation, source, target, bits.shape)
        return self._bits(target, function(self._tensor(source, bits)))

    def _folded(
        self, constants: Constants, operation: Operation, source: str, target: str, bits: Bits
    ) -> Bits:
        function, dtype = self._operation(operation, target), self._dtype(source)
        if operation == "bitcast":
            # It looks at the shape, and shall see its own.
            return self._bits(target, constants.answer(function, dtype, bits))
        rows = constants.rows(bits, np.dtype(format_named(target).storage).itemsize)
        answers = [self._bits(target, constants.answer(function, dtype, row)) for row in rows]
        return np.concatenate(answers, axis=1).reshape(bits.shape)

    def _operation(self, operation: Operation, target: str) -> Function:
        call, dtype = getattr(self._tensorflow, operation), self._dtype(target)
        return lambda x: call(x, dtype)

    def _made(
        self, operation: Operation, source: str, target: str, shape: tuple[int, ...]
    ) -> Function:
        """One function for one dtype and shape: that is what it would be traced for anyhow."""
        call = self._operation(operation, target)
        if self._variant is None:
            return call
        traced = self._tensorflow.function(call, **OPTIONS[self._variant])
        # The function itself would look up on every call, at length, what it is called with.
        spec = self._tensorflow.TensorSpec(shape, self._dtype(source))
        made: Function = traced.get_concrete_function(spec)
        return made

    def _tensor(self, dtype: str, bits: Bits) -> Any:
        return self._tensorflow.convert_to_tensor(bits.view(self._dtype(dtype).as_numpy_dtype))

    def _bits(self, dtype: str, tensor: Any) -> Bits:
        entry = format_named(dtype)
        # ``numpy`` copies, and makes a scalar of a tensor of rank 0.
        codes: Bits = np.asarray(tensor.numpy()).view(entry.storage)
        return np.asarray(codes & np.uint8(entry.mask)) if is_packed(entry) else codes

    def _dtype(self, dtype: str) -> Any:
        try:
            return self._tensorflow.as_dtype(DTYPES[dtype])
        except (KeyError, TypeError):
            raise Unsupported(f"TensorFlow has no dtype castable as {dtype}") from None


def _address(tensor: Any) -> int:
    """Where the memory of a tensor with elements begins."""
    return int(np.frombuffer(tensor, np.uint8).ctypes.data)
