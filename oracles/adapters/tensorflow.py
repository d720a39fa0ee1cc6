"""TensorFlow's ``tf.cast`` and ``tf.bitcast`` on the CPU: eager, traced, compiled, and folded."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Any, Literal

import numpy as np

from oracles.adapters.refusals import load, plain_road, require_plain, require_variant
from oracles.adapters.script_text import (
    bits_statement,
    mask_expression,
    print_loop,
    print_tensor,
)
from oracles.adapters.stablehlo import COMPUTED
from oracles.adapters.tensorflow_chains import chain_roads, chain_statement, ends_of
from oracles.bit_packing import is_packed
from oracles.protocol import Bits, Bound, Unsupported
from specs.cases import Case
from specs.chains import Company
from specs.formats import format_named

VARIANTS: tuple[str, ...] = ("function", "xla", "folded", "xla-folded")
"""`folded` and `xla-folded` are `function` and `xla` with a constant operand."""

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
"""The numeric dtypes; ``tf.cast`` takes no texts."""

ENVIRONMENT: Mapping[str, str] = {
    "CUDA_VISIBLE_DEVICES": "-1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    # oneDNN prints a notice even at that log level, and has no cast.
    "TF_ENABLE_ONEDNN_OPTS": "0",
    # XLA splits a loop by the number of processors.
    "NPROC": "1",
}

MISSING_KERNEL = re.compile(
    r"Cast \w+ to \w+ is not supported|No registered '\w+' OpKernel for \w+ devices"
)
"""The sign of a missing kernel; the rest of the text varies, it counts earlier functions."""

CACHED_FUNCTIONS = 64

Operation = Literal["cast", "bitcast"]
Function = Callable[[Any], Any]

OPTIONS: Mapping[str, Mapping[str, bool]] = {
    # Autograph has nothing to rewrite, and would wrap errors in the text of this file.
    "function": {"autograph": False},
    "xla": {"autograph": False, "jit_compile": True},
    "folded": {"autograph": False},
    "xla-folded": {"autograph": False, "jit_compile": True},
}
"""The options of each variant's ``tf.function``."""

MAX_GROWN_BYTES = 100 * 1024 - 1
"""The largest constant, in bytes, into which grappler folds a smaller operand."""

VECTOR = 64
"""A multiple of all vector lengths, so that only the last part may end in a scalar loop."""

FOLDED_OPERATIONS = {"Const", "Identity", "NoOp", "_Retval"}
"""The operations that remain in a function after grappler has folded it."""


class TensorFlow:
    """A cast by ``tf.cast``, eager or in a ``tf.function`` of a tensor or a constant."""

    name = "tensorflow"
    claims: tuple[str, ...] = ("tensorflow-bitcast",)

    def __init__(self, variant: str | None = None) -> None:
        os.environ.update(ENVIRONMENT)
        self._tensorflow: Any = load("tensorflow", "tensorflow")
        require_variant(self.name, variant, VARIANTS)
        self.version = str(self._tensorflow.__version__)
        # TensorFlow warns about discarded parts, and about a function per shape.
        self._tensorflow.get_logger().setLevel("ERROR")
        self._tensorflow.config.threading.set_intra_op_parallelism_threads(1)
        self._tensorflow.config.threading.set_inter_op_parallelism_threads(1)
        self._variant = variant
        if variant == "xla":
            # XLA has the semantics of StableHLO's operations; ``tf.bitcast`` keeps its own shapes.
            self.claims = (*self.claims, "stablehlo-convert")
        self.compiles_shapes = variant is not None
        self.chain_roads = chain_roads(variant)
        self._function = lru_cache(CACHED_FUNCTIONS)(self._build)
        self._constants = (
            Constants(self._tensorflow, OPTIONS[variant])
            if variant in ("folded", "xla-folded")
            else None
        )

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Answer a case with one ``tf.cast``."""
        require_plain(case, "tf.cast")
        with self._refusals():
            return self._answer("cast", case.source, case.target, bits)

    def chains(self, case: Case, company: Company, bits: Mapping[str, Bits]) -> list[Bits]:
        """Answer chains with one ``tf.cast`` after another, all in one function."""
        paths, tensors = [], []
        for chain, own in zip(company.chains, bits.values(), strict=True):
            for step in chain.steps:
                require_plain(step, "tf.cast")
            paths.append([self._dtype(step.target) for step in chain.steps])
            tensors.append(self._tensor(chain.source, own))
        options = OPTIONS[self._variant] if self._variant is not None else None
        with self._refusals():
            ends = ends_of(self._tensorflow, options, paths, tensors)
            found = zip(company.chains, ends, strict=True)
            return [self._bits(chain.target, end) for chain, end in found]

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """Raise Unsupported for the error of a missing kernel."""
        try:
            yield
        except self._tensorflow.errors.OpError as error:
            missing = MISSING_KERNEL.search(error.message)
            if missing is None:
                raise
            raise Unsupported(missing[0]) from None

    def bitcast(self, case: Case, bits: Bits) -> Bits:
        """Answer a case with one ``tf.bitcast``."""
        require_plain(case, "tf.bitcast")
        return self._answer("bitcast", case.source, case.target, bits)

    def bitcast_shares_memory(self, case: Case, bits: Bits) -> bool:
        """Whether the result of a ``tf.bitcast`` begins at its input's address."""
        if self._constants is not None:
            raise Unsupported("a constant of a graph is no tensor whose memory could be shared")
        function = self._function("bitcast", case.source, case.target, bits.shape)
        x = self._tensor(case.source, bits)
        y = function(x)
        return _address(x) == _address(y)

    def bitcast_road(self, case: Case) -> str:
        """Return the pair: a bitcast has no parameters besides the tensor's own shape."""
        return plain_road(case, "tf.bitcast")

    def road(self, case: Case) -> str:
        """Return the pair: ``tf.cast`` has no parameters."""
        require_plain(case, "tf.cast")
        for dtype in (case.source, case.target):
            self._dtype(dtype)
        return f"{case.source}->{case.target}"

    def bind(self, case: Case, bits: Bits) -> Bound:
        """Return a call of ``cast``, which caches the only thing to prepare, the function."""
        self.road(case)  # refuses what ``cast`` refuses, for the same reason
        return partial(self.cast, case, bits)

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Send bits through a tensor and ``tf.identity``, on the eager road in every variant."""
        return self._bits(dtype, self._tensorflow.identity(self._tensor(dtype, bits)))

    def reproduce(self, case: Case, bits: Bits) -> str:
        """Return a script that runs the case on TensorFlow, without this project."""
        self.road(case)
        answers = "y.numpy()[0]" if self._constants is not None else "y.numpy()"
        return (
            self._statements("cast", case, bits, ROW)
            + f'answers = {answers}.view("{format_named(case.target).storage}")'
            + f"{mask_expression(case.target)}\n"
            + print_loop(case.source, case.target)
        )

    def _statements(self, operation: Operation, case: Case, bits: Bits, shape: str) -> str:
        """Return a script up to the statement that binds ``y``; a constant has the shape."""
        options = OPTIONS[self._variant] if self._variant is not None else {}
        is_folded = self._constants is not None
        template = FOLDED if is_folded else EAGER if self._variant is None else TRACED
        return (
            HEADER.format(version=self.version, case=case)
            + (IMPORT if is_folded else "")
            + f"\n{bits_statement(case.source, bits)}\n"
            + template.format(
                operation=operation,
                shape=shape,
                source=DTYPES[case.source],
                target=DTYPES[case.target],
                options=", ".join(f"{name}={value}" for name, value in options.items()),
            )
        )

    def reproduce_chains(self, case: Case, company: Company, bits: Mapping[str, Bits]) -> str:
        """Return a script that makes one chain by TensorFlow, without this project."""
        [chain], [own] = company.chains, [*bits.values()]
        options = OPTIONS[self._variant] if self._variant is not None else None
        entry, mask = format_named(chain.target), mask_expression(chain.target)
        return (
            HEADER.format(version=self.version, case=f"{chain.id} on {company.road}")
            + f"\n{bits_statement(chain.source, own)}\n"
            + OPERAND.format(source=DTYPES[chain.source])
            + chain_statement(options, [DTYPES[step.target] for step in chain.steps])
            + f'answers = y.numpy().view("{entry.storage}"){mask}\n'
            + print_loop(chain.source, chain.target)
        )

    def reproduce_bitcast(self, case: Case, bits: Bits) -> str:
        """Return a script that does a bitcast on TensorFlow, without this project."""
        for dtype in (case.source, case.target):
            self._dtype(dtype)
        return (
            self._statements("bitcast", case, bits, SHAPE)
            + f'answers = np.asarray(y.numpy()).view("{format_named(case.target).storage}")'
            + f"{mask_expression(case.target)}\n"
            + print_tensor(case.target)
        )

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
            # A bitcast depends on the shape: leave it.
            return self._bits(target, constants.answer(function, dtype, bits))
        rows = constants.rows(bits, np.dtype(format_named(target).storage).itemsize)
        answers = [self._bits(target, constants.answer(function, dtype, row)) for row in rows]
        return np.concatenate(answers, axis=1).reshape(bits.shape)

    def _operation(self, operation: Operation, target: str) -> Function:
        call, dtype = getattr(self._tensorflow, operation), self._dtype(target)
        return lambda x: call(x, dtype)

    def _build(
        self, operation: Operation, source: str, target: str, shape: tuple[int, ...]
    ) -> Function:
        """Build the function for one dtype and shape; TensorFlow would trace one each anyway."""
        call = self._operation(operation, target)
        if self._variant is None:
            return call
        traced = self._tensorflow.function(call, **OPTIONS[self._variant])
        # Skip the function's own lookup by argument types, which is slow and runs on every call.
        spec = self._tensorflow.TensorSpec(shape, self._dtype(source))
        concrete: Function = traced.get_concrete_function(spec)
        return concrete

    def _tensor(self, dtype: str, bits: Bits) -> Any:
        return self._tensorflow.convert_to_tensor(bits.view(self._dtype(dtype).as_numpy_dtype))

    def _bits(self, dtype: str, tensor: Any) -> Bits:
        entry = format_named(dtype)
        # ``numpy`` copies, and returns a scalar for a tensor of rank 0.
        codes: Bits = np.asarray(tensor.numpy()).view(entry.storage)
        return np.asarray(codes & np.uint8(entry.mask)) if is_packed(entry) else codes

    def _dtype(self, dtype: str) -> Any:
        try:
            return self._tensorflow.as_dtype(DTYPES[dtype])
        except (KeyError, TypeError):
            raise Unsupported(f"TensorFlow has no dtype castable as {dtype}") from None


class Constants:
    """Runs an operation on constants, and raises Unsupported if it was not folded."""

    def __init__(self, tensorflow: Any, options: Mapping[str, bool]) -> None:
        self._tensorflow = tensorflow
        self._options = options
        self._proto: Any = load("tensorflow.core.framework.tensor_pb2", "tensorflow").TensorProto
        self._context: Any = load("tensorflow.python.eager.context", "tensorflow").context
        # Without XLA, grappler folds.
        self._is_xla = "jit_compile" in options

    def rows(self, bits: Bits, answer_bytes: int) -> list[Bits]:
        """Split bits into constants that are small enough to be folded.

        ``answer_bytes`` is the size of an element of the answer. The constants have two
        dimensions: XLA turns a row that counts from 0 into an iota and computes it.
        """
        row = bits.reshape(1, -1)
        if self._is_xla or answer_bytes <= row.itemsize:
            return [row]
        count = MAX_GROWN_BYTES // answer_bytes // VECTOR * VECTOR
        return [row[:, start : start + count] for start in range(0, max(row.size, 1), count)]

    def answer(self, operation: Function, dtype: Any, bits: Bits) -> Any:
        """Return the tensor into which an operation on a constant is folded."""
        proto = self._proto(
            dtype=dtype.as_datatype_enum,
            tensor_shape=self._tensorflow.TensorShape(bits.shape).as_proto(),
            # A list of elements would pass through Python floats, which quiet NaNs.
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
        # The last function to run is this one; earlier ones raised and were not exported.
        left = {node.op for node in graphs[-1].partition_graphs[-1].node} - FOLDED_OPERATIONS
        if left:
            raise Unsupported(f"grappler did not fold this, but left a {', '.join(sorted(left))}")
        return tensor

    def _compiled(self, function: Any) -> Any:
        tensor = function()
        text = function.experimental_get_compiler_ir()
        # TensorFlow's own kernels fold most constants before XLA sees the function.
        if COMPUTED.search(text(stage="hlo")):
            left = COMPUTED.search(text(stage="optimized_hlo"))
            if left:
                raise Unsupported(f"XLA did not fold this at compile time, but left a {left[1]}")
        return tensor


def _address(tensor: Any) -> int:
    """Return the address of a tensor that has elements."""
    return int(np.frombuffer(tensor, np.uint8).ctypes.data)


HEADER = """\
# tensorflow {version}: {case}
import os

os.environ |= {{"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3", "NPROC": "1"}}

import numpy as np
import tensorflow as tf
"""

OPERAND = """\
x = tf.convert_to_tensor(bits.view(tf.as_dtype("{source}").as_numpy_dtype))
"""

EAGER = f"""\
{OPERAND}y = tf.{{operation}}(x, "{{target}}")
"""

TRACED = f"""\
{OPERAND}y = tf.function(lambda x: tf.{{operation}}(x, "{{target}}"), {{options}})(x)
"""

IMPORT = "from tensorflow.core.framework.tensor_pb2 import TensorProto\n"

ROW = """\
# XLA makes a row that counts from 0 an iota.
shape = tf.TensorShape([1, len(bits)]).as_proto()"""
SHAPE = "shape = tf.TensorShape(bits.shape).as_proto()"

FOLDED = """\
{shape}
dtype = tf.as_dtype("{source}").as_datatype_enum
constant = TensorProto(dtype=dtype, tensor_shape=shape, tensor_content=bits.tobytes())
folded = tf.function(
    lambda: tf.{operation}(tf.constant(constant), "{target}"), {options}
)
y = folded()
"""
