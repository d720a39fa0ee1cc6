"""TensorFlow's ``tf.cast`` and ``tf.bitcast`` on the CPU: eager, traced, compiled, and folded."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from oracles.adapters.carriers import CARRIER, Carrying
from oracles.adapters.dtype_table import names_in
from oracles.adapters.refusals import is_lacking, load, require_variant
from oracles.adapters.script_text import mask_expression
from oracles.adapters.scripted import (
    Chained,
    Function,
    ScriptedOperation,
    Statements,
    call_steps,
    function_of,
)
from oracles.adapters.stablehlo import COMPUTED
from oracles.adapters.tensorflow_carriers import CARRIERS
from oracles.protocol import Bits, Bound, Unsupported
from specs.cases import Case
from specs.formats import format_named

if TYPE_CHECKING:
    from specs.chains import Company

VARIANTS: tuple[str, ...] = ("function", "xla", "folded", "xla-folded")
"""`folded` and `xla-folded` are `function` and `xla` with a constant operand."""

DTYPES: Mapping[str, str] = names_in("tf")
"""The numeric dtypes; ``tf.cast`` takes no texts."""

ENVIRONMENT: Mapping[str, str] = {
    "CUDA_VISIBLE_DEVICES": "-1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    # oneDNN prints a notice even at that log level, and has no cast.
    "TF_ENABLE_ONEDNN_OPTS": "0",
    # XLA splits a loop by the number of processors.
    "NPROC": "1",
}

# Autograph has nothing to rewrite, and would wrap errors in the text of this file.
TRACED = "autograph=False"
OPTIONS: Mapping[str | None, str] = {
    "function": TRACED,
    "xla": f"{TRACED}, jit_compile=True",
    "folded": TRACED,
    "xla-folded": f"{TRACED}, jit_compile=True",
}
"""The arguments of each variant's ``tf.function``."""

EAGER = "eager"
"""The road of chains without a variant."""

MAX_GROWN_BYTES = 100 * 1024 - 1
"""The largest constant, in bytes, into which grappler folds a smaller operand."""

VECTOR = 64
"""A multiple of all vector lengths, so that only the last part may end in a scalar loop."""

FOLDED_OPERATIONS = {"Const", "Identity", "NoOp", "_Retval"}
"""The operations that remain in a function after grappler has folded it."""


class TensorFlow(Carrying, Chained):
    """Casts by ``tf.cast`` and bitcasts by ``tf.bitcast``, in the way that the variant names.

    Without a variant calls are eager. `function` makes them in a ``tf.function`` of a tensor, and
    `folded` in one of a constant. `xla` and `xla-folded` do the same, and XLA compiles the
    function.
    """

    name = "tensorflow"
    operations: ClassVar[Mapping[ScriptedOperation, str]] = {
        "cast": "tf.cast",
        "bitcast": "tf.bitcast",
        "carry": "an operation",
    }
    carriers = CARRIERS
    target_first = ("cast", "bitcast")
    kept = 64
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
        self._is_folded = variant in ("folded", "xla-folded")
        if not self._is_folded:
            self.claims = (*self.claims, "tensorflow-carriers")
        self.maker = self._maker()
        # A chain is made as single casts are.
        self.chain_roads = () if self._is_folded else (variant or EAGER,)
        self.header = HEADER + (IMPORT if self._is_folded else "") + "\n"
        super().__init__(tf=self._tensorflow)
        self._lacks = lru_cache(None)(self._try_kernel)
        if self._is_folded:
            exec(IMPORT, self.names)
            self._folding = Folding(self._tensorflow, is_xla=variant == "xla-folded")

    def dtype(self, dtype: str) -> Any:
        """Return TensorFlow's object for a dtype; raise Unsupported if TensorFlow has none."""
        try:
            return self._tensorflow.as_dtype(DTYPES[dtype])
        except (KeyError, TypeError):
            raise Unsupported(f"TensorFlow has no dtype castable as {dtype}") from None

    def require_dtype(self, operation: ScriptedOperation, dtype: str) -> None:
        """Raise Unsupported for a dtype that TensorFlow lacks."""
        self.dtype(dtype)

    def require_parameters(self, operation: ScriptedOperation, case: Case) -> None:
        """Raise Unsupported as ``Carrying`` does, and in the folded variants for all carriers."""
        if operation == "carry" and self._is_folded:
            raise Unsupported(f"tensorflow:{self._variant} carries nothing; tensorflow does")
        super().require_parameters(operation, case)

    def dtype_text(self, dtype: str) -> str:
        """Return the Python expression of TensorFlow's dtype."""
        return f"tf.{DTYPES[dtype]}"

    def tensor_text(self, dtype: str) -> str:
        """Return the Python expression of ``x``: a tensor of this dtype, made from ``bits``.

        In the folded variants it is the array ``bits`` itself, of which the steps make a constant.
        """
        return "bits" if self._is_folded else TENSOR.format(DTYPES[dtype])

    def patterns_text(self, dtype: str) -> str:
        """Return the Python expression of the patterns in ``y``, which has this dtype.

        ``y`` is a tensor or, in the folded variants, an array.
        """
        y = "y" if self._is_folded else "np.asarray(y.numpy())"
        return f'{y}.view("{format_named(dtype).storage}"){mask_expression(dtype)}'

    def steps(self, operation: ScriptedOperation, case: Case, form: Hashable) -> Statements:
        """Return the statements that bind ``y`` to one ``tf.cast`` or ``tf.bitcast`` of ``x``.

        In `function` and `xla` they trace a function once, for the shape ``form``. In the folded
        variants those of ``once`` bind ``folded`` to a function of the constant ``x``, which is
        folded when it is called.
        """
        source, target = DTYPES[case.source], f'"{DTYPES[case.target]}"'
        if operation == "bitcast":
            # A dtype by name takes a slower way through TensorFlow, with other words of errors.
            target = f"tf.as_dtype({target})"
        if self._is_folded:
            is_cast = operation == "cast"
            once = (ROW if is_cast else SHAPE) + CONSTANT.format(
                source=source, function=operation, target=target, options=OPTIONS[self._variant]
            )
            folded = (
                "(y,) = folded().numpy()\n" if is_cast else "y = np.asarray(folded().numpy())\n"
            )
            return Statements(folded, once)
        steps = call_steps(f"tf.{operation}(x, {target})", *self._maker())
        if self._variant is None:
            return steps
        assert isinstance(form, tuple)
        # Skip the function's own lookup by argument types, which is slow and runs on every call.
        spec = f'tf.TensorSpec({list(form)}, "{source}")'
        return Statements(
            steps.each, f"{steps.once}function = function.get_concrete_function({spec})\n"
        )

    def _maker(self) -> tuple[str, str]:
        return ("tf.function", OPTIONS[self._variant]) if self._variant else ("", "")

    def form_of(self, operation: ScriptedOperation, case: Case, bits: Bits) -> Hashable:
        """Return the shape, or None without a variant: a function is traced for one shape."""
        return None if self._variant is None else bits.shape

    def cast_text(self, case: Case, x: str) -> str:
        """Return the Python expression that casts the expression ``x`` by one ``tf.cast``."""
        return f'tf.cast({x}, "{DTYPES[case.target]}")'

    def chain_steps(self, road: str, names: str, ends: str) -> Statements:
        """Return the statements that bind ``y`` to ``ends``, an expression in ``names``.

        ``names`` are separated by commas. With a variant the expression is evaluated in one
        ``tf.function``.
        """
        return call_steps(ends, *self._maker(), names=names)

    def _make(self, operation: ScriptedOperation, case: Case, form: Hashable) -> Function:
        """Return a function that takes ``x`` and returns the result of a case's steps.

        In the folded variants the function returns the ``tf.function`` of the constant ``x``
        instead, which is not called yet. Raises Unsupported as ``require`` does.
        """
        if not self._is_folded:
            return super()._make(operation, case, form)
        self.require_parameters(operation, case)
        for dtype in (case.target, case.source):
            self.dtype(dtype)
        return function_of(self.names, "x", self.steps(operation, case, form).once, "folded")

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Return ``bits`` cast by one ``tf.cast``; a long row may be folded in parts.

        Raises Unsupported as ``require`` does, for a kernel that TensorFlow lacks, and for a
        constant that is not folded.
        """
        with self._refusals("cast", case):
            make = self.made("cast", case, self.form_of("cast", case, bits))
            if not self._is_folded:
                return self.run(make, case, bits)
            rows = self._folding.rows(bits, np.dtype(format_named(case.target).storage).itemsize)
            answers = [self._answer(make, case, row) for row in rows]
            return np.concatenate(answers, axis=1).reshape(bits.shape)

    def carry(self, case: Case, bits: Bits) -> Bits:
        """Return the patterns of ``bits`` after the operation that the case names.

        Raises Unsupported as ``require`` does, and for a kernel that TensorFlow lacks. Errors of
        tracing are refusals, but what XLA refuses in a function that was traced is a missing one.
        """
        errors = self._tensorflow.errors
        lacking: tuple[Any, ...] = (errors.UnimplementedError, errors.NotFoundError)
        form = self.form_of("carry", case, bits)
        self.made("carry", case, form)
        if self._variant == "xla":
            function = self.prepared(self.carry_steps(case).once, form)["function"]
            function.get_concrete_function(self.tensor(case.source, bits))
            lacking = (*lacking, errors.InvalidArgumentError)
        try:
            return super().carry(case, bits)
        except lacking:
            reason = f"TensorFlow has no kernel for {case.mode[CARRIER]} of {DTYPES[case.source]}"
            raise Unsupported(reason) from None

    def bitcast(self, case: Case, bits: Bits) -> Bits:
        """Return ``bits`` reinterpreted by one ``tf.bitcast``, in the shape that this gives them.

        Raises Unsupported as ``require`` does, and for a constant that is not folded.
        """
        with self._refusals("bitcast", case):
            make = self.made("bitcast", case, self.form_of("bitcast", case, bits))
            return self._answer(make, case, bits) if self._is_folded else self.run(make, case, bits)

    def _answer(self, make: Function, case: Case, bits: Bits) -> Bits:
        """Return the patterns into which the operation on the constant ``bits`` is folded.

        ``make`` returns the ``tf.function`` of the constant. Raises Unsupported if it is not
        folded.
        """
        tensor = self._folding.answer(make(bits))
        return self.patterns(case.target, np.asarray(tensor.numpy()))

    def chains(self, case: Case, company: Company, bits: Mapping[str, Bits]) -> list[Bits]:
        """Return the result of each chain of a company, computed eagerly or in one ``tf.function``.

        ``bits`` has the input of each chain under its index, as text. Raises Unsupported as
        ``require`` does for a step, and for a kernel that TensorFlow lacks.
        """
        with self._refusals("cast", *(step for chain in company.chains for step in chain.steps)):
            return super().chains(case, company, bits)

    @contextmanager
    def _refusals(self, operation: ScriptedOperation, *cases: Case) -> Iterator[None]:
        """Within the context, replace the error of a missing kernel by Unsupported.

        An UnimplementedError is one by its class. XLA has no class of its own for it: there a
        kernel is missing if a single element of the dtypes is refused, too. Elsewhere an
        InvalidArgumentError refuses the dtypes of a call, as a document may want.
        """
        errors = self._tensorflow.errors
        try:
            yield
        except self._missing_kernels as error:
            pairs = [(case.source, case.target) for case in cases]
            lacking = [pair for pair in pairs if self._lacks(operation, *pair)]
            if not lacking and not isinstance(error, errors.UnimplementedError):
                raise
            source, target = (DTYPES[dtype] for dtype in (lacking or pairs)[0])
            reason = f"TensorFlow has no kernel for a {operation} of {source} to {target}"
            raise Unsupported(reason) from None

    @property
    def _missing_kernels(self) -> tuple[type[Exception], ...]:
        """The classes of errors that may stand for a missing kernel."""
        errors = self._tensorflow.errors
        of_xla = (errors.InvalidArgumentError,) if "xla" in (self._variant or "") else ()
        return (errors.UnimplementedError, *of_xla)

    def _try_kernel(self, operation: ScriptedOperation, source: str, target: str) -> bool:
        """Return whether TensorFlow refuses one zero of these dtypes, but not one of float32.

        Between two dtypes a bitcast may be undefined, so each is reinterpreted as itself.
        """

        def run(pairs: list[tuple[str, str]]) -> None:
            for pair in pairs:
                case, zero = Case("", "", *pair), np.zeros(1, format_named(pair[0]).storage)
                make = self.made(operation, case, self.form_of(operation, case, zero))
                if self._is_folded:
                    make(zero)()
                else:
                    self.run(make, case, zero)

        if operation == "cast":
            plain, neighbor = [(source, target)], [("float32", "float16")]
        else:
            plain, neighbor = [(source, source), (target, target)], [("float32", "float32")]
        return is_lacking(self._missing_kernels, partial(run, plain), partial(run, neighbor))

    def bitcast_shares_memory(self, case: Case, bits: Bits) -> bool:
        """Return whether the result of a ``tf.bitcast`` begins at its input's address.

        Raises Unsupported as ``require`` does, and in the folded variants, in which the input is a
        constant.
        """
        if self._is_folded:
            raise Unsupported("a constant of a graph is no tensor whose memory could be shared")
        make = self.made("bitcast", case, self.form_of("bitcast", case, bits))
        x = self.tensor(case.source, bits)
        y = make(x)
        return _address(x) == _address(y)

    def bind(self, case: Case, bits: Bits) -> Bound:
        """Return a call of ``cast``, which caches the traced function by itself.

        Raises Unsupported as ``require`` does.
        """
        self.road(case)  # refuses what ``cast`` refuses, for the same reason
        return partial(self.cast, case, bits)

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Return ``bits`` after a round trip through a tensor and an eager ``tf.identity`` of it.

        Raises Unsupported if TensorFlow lacks the dtype.
        """
        self.dtype(dtype)
        text = f"np.asarray(tf.identity({TENSOR.format(DTYPES[dtype])}).numpy())"
        storage = format_named(dtype).storage
        text = f'{text}.view("{storage}"){mask_expression(dtype)}'
        return np.asarray(function_of(self.names, "bits", "", text)(bits))


class Folding:
    """Calls functions of a constant, and raises Unsupported for those that were not folded."""

    def __init__(self, tensorflow: Any, *, is_xla: bool) -> None:
        self._tensorflow = tensorflow
        self._context: Any = load("tensorflow.python.eager.context", "tensorflow").context
        self._is_xla = is_xla  # without XLA, grappler folds

    def rows(self, bits: Bits, answer_bytes: int) -> list[Bits]:
        """Return ``bits`` as one constant, or split into constants that grappler folds.

        They are split, without XLA, if ``answer_bytes``, the size of an element of the answer,
        exceeds that of an input. The constants have two dimensions: XLA turns a row that counts
        from 0 into an iota and computes it.
        """
        row = bits.reshape(1, -1)
        if self._is_xla or answer_bytes <= row.itemsize:
            return [row]
        count = MAX_GROWN_BYTES // answer_bytes // VECTOR * VECTOR
        return [row[:, start : start + count] for start in range(0, max(row.size, 1), count)]

    def answer(self, function: Any) -> Any:
        """Call a ``tf.function`` of a constant, and return the tensor into which it was folded.

        Raises Unsupported if operations are left in the function.
        """
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
    """Return the address of the memory of a tensor that has elements."""
    return int(np.frombuffer(tensor, np.uint8).ctypes.data)


HEADER = """\
# tensorflow {version}: {case}
import os

os.environ |= {{"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3", "NPROC": "1"}}

import numpy as np
import tensorflow as tf
"""

IMPORT = "from tensorflow.core.framework.tensor_pb2 import TensorProto\n"

TENSOR = 'tf.convert_to_tensor(bits.view(tf.as_dtype("{}").as_numpy_dtype))'

ROW = """\
# XLA makes a row that counts from 0 an iota.
shape = tf.TensorShape([1, x.size]).as_proto()
"""
SHAPE = "shape = tf.TensorShape(x.shape).as_proto()\n"

# A list of elements would pass through Python floats, which quiet NaNs.
CONSTANT = """\
dtype = tf.as_dtype("{source}").as_datatype_enum
constant = TensorProto(dtype=dtype, tensor_shape=shape, tensor_content=x.tobytes())
folded = tf.function(
    lambda: tf.{function}(tf.constant(constant), {target}),
    {options},
)
"""
