"""paddle's ``astype`` and ``view`` on the CPU, and its ``cast`` and ``view`` as static programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from oracles.adapters.call_scripts import CallSyntax
from oracles.adapters.paddle_calls import PLACES, Calls, shares_memory
from oracles.adapters.paddle_programs import ExecutorPrograms, TracedPrograms
from oracles.adapters.paddle_tensors import CARRIERS, DTYPES, Tensors, carrier_out, load_paddle
from oracles.adapters.refusals import first_line, plain_road, require_plain, require_variant
from oracles.adapters.script_text import bits_statement, print_statement, print_tensor
from oracles.protocol import Bits, Bound, Returned, Unsupported
from specs.calls import Call
from specs.cases import Case
from specs.formats import format_named

VARIANTS: tuple[str, ...] = ("static", "executor")
"""`static` is ``paddle.jit.to_static``, `executor` a program in ``paddle.static.Executor``."""

NO_KERNEL = "is not registered"
"""The sign that an operation has no kernel for a dtype."""


class Paddle:
    """A cast by ``astype``, or (`static`, `executor`) by a static program."""

    name = "paddle"
    claims: tuple[str, ...] = ("paddle-tensor-to", "paddle-layer-astype")

    def __init__(self, variant: str | None = None) -> None:
        self._paddle = load_paddle()
        require_variant(self.name, variant, VARIANTS)
        self.version = str(self._paddle.__version__)
        self._variant = variant
        self._tensors = Tensors(self._paddle)
        self._programs: TracedPrograms | ExecutorPrograms | None = None
        if variant is not None:
            programs = TracedPrograms if variant == "static" else ExecutorPrograms
            self._programs = programs(self._paddle, self._tensors)

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Answer a case with one cast."""
        require_plain(case, "paddle's cast")
        cast = self._cast(case, bits.ndim)
        y = cast(self._tensors.tensor(case.source, bits))
        # For the tensor's own dtype paddle returns the tensor itself: copy it.
        return self._tensors.bits(case.target, y).copy()

    def bitcast(self, case: Case, bits: Bits) -> Bits:
        """Answer a case with one ``view``, which scales the last dimension."""
        require_plain(case, "Tensor.view")
        x, view = self._tensors.tensor(case.source, bits), self._view(case, bits.ndim)
        try:
            return self._tensors.bits(case.target, view(x)).copy()
        except RuntimeError as error:
            if NO_KERNEL not in str(error):
                raise
            raise Unsupported(first_line(error)) from None

    def bitcast_shares_memory(self, case: Case, bits: Bits) -> bool:
        """Whether the result of a ``view`` begins at its tensor's address."""
        x = self._tensors.tensor(case.source, bits)
        return shares_memory(x, x.view(self._tensors.dtype(case.target)))

    def call(self, case: Case, call: Call, bits: Mapping[str, Bits]) -> Returned:
        """Make a call on a tensor or a layer that holds these bits."""
        if self._programs is not None:
            raise Unsupported("a static program has no calls: they are made eagerly")
        return Calls(self._paddle, self._tensors).make(call, bits)

    def bitcast_road(self, case: Case) -> str:
        """Return the pair: a bitcast has no parameters besides the tensor's own shape."""
        return plain_road(case, "Tensor.view")

    def road(self, case: Case) -> str:
        """Return the pair: a cast has no parameters."""
        require_plain(case, "paddle's cast")
        for dtype in (case.source, case.target):
            self._tensors.dtype(dtype)
        return f"{case.source}->{case.target}"

    def bind(self, case: Case, bits: Bits) -> Bound:
        """Prepare a call that casts a tensor in the memory of ``bits``."""
        self.cast(case, bits[:0])  # refuses what ``cast`` refuses, for the same reason
        is_shared = case.source == case.target or self._variant == "executor"
        if is_shared or not bits.flags.c_contiguous:
            # The answer would share the input's memory or the next answer's, or the tensor would be
            # a copy of ``bits``.
            return partial(self.cast, case, bits)
        x, cast = self._tensors.tensor(case.source, bits), self._cast(case, bits.ndim)
        return lambda: self._tensors.bits(case.target, cast(x))

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Send bits through a tensor of the dtype."""
        return self._tensors.bits(dtype, self._tensors.tensor(dtype, bits)).copy()

    def reproduce(self, case: Case, bits: Bits) -> str:
        """Return a script that runs the case on paddle, without this project."""
        self.road(case)
        return reproduction(self.version, case, bits, self._variant)

    def reproduce_bitcast(self, case: Case, bits: Bits) -> str:
        """Return a script that views a tensor as another dtype, without this project."""
        if self._variant is not None:
            raise Unsupported(f"paddle:{self._variant} writes no scripts of bitcasts")
        for dtype in (case.source, case.target):
            self._tensors.dtype(dtype)
        return (
            HEADER.format(version=self.version, case=case)
            + f"{bits_statement(case.source, bits)}\n"
            + f"x = {_tensor_expression(case.source)}\n"
            + f"y = x.view(paddle.{DTYPES[case.target]})\n"
            + print_tensor(case.target, _answers_expression(case.target))
        )

    def reproduce_call(self, case: Case, call: Call, bits: Mapping[str, Bits]) -> str:
        """Return a script that makes a call on paddle's tensors, without this project."""
        if self._variant is not None:
            raise Unsupported("a static program has no calls: they are made eagerly")
        statements = CALL_SYNTAX.call_statements(case, call, bits)
        return HEADER.format(version=self.version, case=case) + statements

    def _cast(self, case: Case, rank: int) -> Callable[[Any], Any]:
        if self._programs is not None:
            return self._programs.cast(case.source, case.target, rank)
        target = self._tensors.dtype(case.target)
        return lambda x: x.astype(target)

    def _view(self, case: Case, rank: int) -> Callable[[Any], Any]:
        if self._programs is not None:
            return self._programs.view(case.source, case.target, rank)
        target = self._tensors.dtype(case.target)
        return lambda x: x.view(target)


HEADER = """\
# paddle {version}: {case}
import numpy as np
import paddle

paddle.set_device("cpu")
"""

EAGER = """\
y = x.astype(paddle.{target})
"""

STATIC = """\
spec = paddle.static.InputSpec([-1], paddle.{source}, stop_gradient=True)
cast = paddle.jit.to_static(
    paddle.cast, input_spec=[spec, paddle.{target}], full_graph=True, backend={backend!r}
)
y = cast(x, paddle.{target})
"""

EXECUTOR = """\
fed = x._copy_to(paddle.CPUPlace(), True)
paddle.enable_static()
program = paddle.static.Program()
with paddle.static.program_guard(program):
    y = paddle.cast(paddle.static.data("x", [-1], paddle.{source}), paddle.{target})
(answer,) = paddle.static.Executor(paddle.CPUPlace()).run(
    program, feed={{"x": fed.get_tensor()}}, fetch_list=[y], return_numpy=False
)
paddle.disable_static()
y = paddle.Tensor(answer)
"""

CAST_STATEMENTS: Mapping[str | None, str] = {
    None: EAGER,
    "static": STATIC,
    "executor": EXECUTOR,
}


def reproduction(
    version: str, case: Case, bits: Bits, variant: str | None, backend: str | None = None
) -> str:
    """Return a script of one cast; ``backend`` is that of ``to_static``, for `static` only."""
    source, target = DTYPES[case.source], DTYPES[case.target]
    cast = CAST_STATEMENTS[variant].format(source=source, target=target, backend=backend)
    return (
        HEADER.format(version=version, case=case)
        + f"{bits_statement(case.source, bits)}\n"
        + f"x = {_tensor_expression(case.source)}\n"
        + cast
        + f"answers = {_answers_expression(case.target)}\n"
        + print_statement(case.source, case.target, bits)
    )


def _tensor_expression(dtype: str) -> str:
    """Return the expression of a tensor of ``bits``."""
    carrier = CARRIERS[format_named(dtype).storage]
    x = f"paddle.to_tensor(bits.view(np.{carrier}))"
    return x if carrier == dtype else f"{x}.view(paddle.{DTYPES[dtype]})"


def _answers_expression(dtype: str) -> str:
    """Return the expression of the patterns in y."""
    carrier = carrier_out(dtype)
    y = "y" if carrier == dtype else f"y.view(paddle.{carrier})"
    return f'np.from_dlpack({y}).view("{format_named(dtype).storage}")'


def _ones(dtype: str) -> str:
    return f"paddle.ones([1], paddle.{DTYPES[dtype]})"


def _place(device: str) -> str:
    kind, _, index = device.partition(":")
    return f"paddle.{PLACES[kind]}({'' if kind == 'cpu' else index or 0})"


CALL_SYNTAX = CallSyntax(
    "paddle",
    {
        "dtype": lambda dtype: f"paddle.{DTYPES[dtype]}",
        "device": _place,
        "gpu-tensor": lambda dtype: f'{_ones(dtype)}.to("gpu")',
    },
    _tensor_expression,
    _ones,
    "paddle.nn.Layer()",
    lambda dtype, tensor: f"paddle.nn.Parameter({tensor})",
)
