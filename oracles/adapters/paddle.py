"""paddle's ``astype`` and ``view`` on the CPU, and its ``cast`` and ``view`` as static programs.

A program is built once for each pair and rank, and runs on tensors.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np

from oracles.adapters.paddle_calls import SYNTAX, PaddleCalls, shares_memory
from oracles.adapters.paddle_tensors import (
    DTYPES,
    PaddleTensors,
    load_paddle,
    patterns_text,
    tensor_text,
)
from oracles.adapters.refusals import first_line, is_lacking, require_variant
from oracles.adapters.scripted import Function, Scripted, ScriptedOperation, Statements
from oracles.protocol import Bits, Bound, Returned, Unsupported
from specs.cases import Call, Case
from specs.formats import format_named

VARIANTS: tuple[str, ...] = ("static", "executor")
"""`static` is ``paddle.jit.to_static``, `executor` a program in ``paddle.static.Executor``."""

REFUSALS = (AssertionError, NotImplementedError, TypeError, ValueError)
"""The errors with which paddle refuses to build a program of a dtype or an operation."""

# Without ``full_graph``, paddle silently runs eagerly what it cannot trace.
TRACE = """\
spec = paddle.static.InputSpec({shape}, paddle.{source}, stop_gradient=True)
static = paddle.jit.to_static(
    paddle.{operation}, input_spec=[spec, paddle.{target}], full_graph=True, backend={backend!r}
)
"""

# The Executor releases its input in another thread, which cannot free numpy's memory while Python
# exits: so it is fed a copy. It reads any dtype as the declared one, and only warns.
BUILD = """\
paddle.enable_static()
program = paddle.static.Program()
with paddle.static.program_guard(program, paddle.static.Program()):
    fetched = paddle.{operation}(paddle.static.data("x", {shape}, paddle.{source}), paddle.{target})
paddle.disable_static()
executor = paddle.static.Executor(paddle.CPUPlace())
"""
EXECUTE = """\
fed = x._copy_to(paddle.CPUPlace(), True)
paddle.enable_static()
(answer,) = executor.run(
    program, feed={"x": fed.get_tensor()}, fetch_list=[fetched], return_numpy=False
)
paddle.disable_static()
y = paddle.Tensor(answer)
"""


class PaddleCasts(Scripted):
    """The base class of adapters that cast by paddle, eagerly or by a static program.

    ``variant`` is None for eager casts, or names how the program is made, `static` or `executor`.
    """

    header = (
        "# paddle {version}: {case}\nimport numpy as np\nimport paddle\n\n"
        'paddle.set_device("cpu")\n'
    )
    kept = 64
    backend: str | None = None
    """The compiler of traced programs."""

    def __init__(self, paddle: Any, variant: str | None) -> None:
        super().__init__(paddle=paddle)
        self.version = str(paddle.__version__)
        self._paddle = paddle
        self._variant = variant
        self.target_first = () if variant else ("cast",)
        self._tensors = PaddleTensors(paddle)
        self._lacks_fetch = lru_cache(None)(self._try_fetch)

    def require_dtype(self, operation: ScriptedOperation, dtype: str) -> None:
        """Raise Unsupported for a dtype that paddle lacks."""
        self._tensors.dtype(dtype)

    def tensor_text(self, dtype: str) -> str:
        """Return the Python expression of a tensor of this dtype, made from the array ``bits``."""
        return tensor_text(dtype)

    def patterns_text(self, dtype: str) -> str:
        """Return the Python expression of the patterns in ``y``, a tensor of this dtype."""
        return patterns_text(dtype)

    def tensor(self, dtype: str, bits: Bits) -> Any:
        """Return a tensor of this dtype that holds these patterns."""
        return self._tensors.tensor(dtype, bits)

    def patterns(self, dtype: str, tensor: Any) -> Bits:
        """Return the patterns in a tensor; raise TypeError unless it has this dtype."""
        return self._tensors.bits(dtype, tensor)

    def steps(self, operation: ScriptedOperation, case: Case, form: Hashable) -> Statements:
        """Return the statements that bind ``y`` to one ``astype`` or one ``view`` of ``x``.

        With a variant they build a static program of it once, for tensors of the rank ``form``, and
        run it.
        """
        source, target = DTYPES[case.source], DTYPES[case.target]
        if self._variant is None:
            method = "astype" if operation == "cast" else "view"
            return Statements(f"y = x.{method}(paddle.{target})\n")
        assert isinstance(form, int)
        once = (TRACE if self._variant == "static" else BUILD).format(
            operation="cast" if operation == "cast" else "view",
            shape=[-1] * form,
            source=source,
            target=target,
            backend=self.backend,
        )
        traced = f"y = static(x, paddle.{target})\n"
        return Statements(traced if self._variant == "static" else EXECUTE, once)

    def form_of(self, operation: ScriptedOperation, case: Case, bits: Bits) -> Hashable:
        """Return the rank, on which a static program depends; None without a variant."""
        return None if self._variant is None else bits.ndim

    def _make(self, operation: ScriptedOperation, case: Case, form: Hashable) -> Function:
        """Return the function of ``x`` that a case's steps define.

        Raises Unsupported as ``require`` does, and if paddle cannot build the static program or
        builds it for another source.
        """
        make = super()._make(operation, case, form)
        if self._variant == "static":
            static = self.prepared(self.steps(operation, case, form).once, form)["static"]
            found = static.concrete_program.inputs[0].dtype
            if found != self._tensors.dtype(case.source):
                raise Unsupported(f"no static program: it takes {case.source} for {found}")
        return make

    def _prepare(self, once: str, form: Hashable) -> dict[str, Any]:
        if self._variant is None:
            return super()._prepare(once, form)
        try:
            names = super()._prepare(once, form)
            if self._variant == "static":
                _ = names["static"].concrete_program
        except REFUSALS as error:
            self._paddle.disable_static()
            raise Unsupported(f"no static program: {_reason(error)}") from None
        return names

    def run(self, make: Function, case: Case, bits: Bits) -> Bits:
        """Return the patterns of what ``make`` returns for a tensor of ``bits``.

        ``make`` is a compiled function of the tensor ``x``. Raises Unsupported if the Executor has
        no kernel to fetch the answer.
        """
        if self._variant is None:
            return super().run(make, case, bits)
        try:
            # paddle compares an answer of one element with a number that overflows float16.
            with np.errstate(over="ignore"):
                return super().run(make, case, bits)
        except Exception as error:
            self._paddle.disable_static()
            if not isinstance(error, RuntimeError) or not self._lacks_fetch(case.target):
                raise
            raise Unsupported(f"the Executor fetches no {case.target}") from None

    def _try_fetch(self, target: str) -> bool:
        """Return whether the Executor fetches no zero of a dtype, though one of float16."""

        def fetch(target: str) -> None:
            case, zero = Case("", "", "float32", target), np.zeros(1, np.uint32)
            try:
                Scripted.run(self, self.made("cast", case, zero.ndim), case, zero)
            finally:
                self._paddle.disable_static()

        return is_lacking((RuntimeError,), partial(fetch, target), partial(fetch, "float16"))

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Return ``bits`` cast by one cast of paddle, in memory of their own.

        Raises Unsupported as ``require`` does, and if paddle cannot build the program or fetch the
        answer.
        """
        # For the tensor's own dtype paddle returns the tensor itself: copy it.
        return self.answer("cast", case, bits).copy()


class Paddle(PaddleCasts):
    """Casts by ``astype``, or (`static`, `executor`) by a static program; bitcasts by ``view``."""

    name = "paddle"
    operations: ClassVar[Mapping[ScriptedOperation, str]] = {
        "cast": "paddle's cast",
        "bitcast": "Tensor.view",
    }
    claims: tuple[str, ...] = ("paddle-tensor-to", "paddle-layer-astype")

    def __init__(self, variant: str | None = None) -> None:
        paddle = load_paddle()
        require_variant(self.name, variant, VARIANTS)
        super().__init__(paddle, variant)
        self._lacks_view = lru_cache(None)(self._try_view)

    def bitcast(self, case: Case, bits: Bits) -> Bits:
        """Return ``bits`` reinterpreted by one ``view``, which scales the last dimension.

        Raises Unsupported as ``cast`` does, and for a dtype without a kernel.
        """
        try:
            return self.answer("bitcast", case, bits).copy()
        except RuntimeError as error:
            if not any(map(self._lacks_view, (case.source, case.target))):
                raise
            raise Unsupported(first_line(error)) from None

    def _try_view(self, dtype: str) -> bool:
        """Return whether paddle views no zero of a dtype as bytes, nor bytes as one, but float32's.

        paddle has another class for shapes that it refuses.
        """

        def view(dtype: str) -> None:
            storage = np.dtype(format_named(dtype).storage)
            self.answer("bitcast", Case("", "", dtype, "uint8"), np.zeros(1, storage))
            self.answer(
                "bitcast", Case("", "", "uint8", dtype), np.zeros(storage.itemsize, np.uint8)
            )

        return is_lacking((RuntimeError,), partial(view, dtype), partial(view, "float32"))

    def bitcast_shares_memory(self, case: Case, bits: Bits) -> bool:
        """Return whether the result of an eager ``view`` begins at its tensor's address."""
        x = self.tensor(case.source, bits)
        return shares_memory(x, x.view(self._tensors.dtype(case.target)))

    def call(self, case: Case, call: Call, bits: Mapping[str, Bits]) -> Returned:
        """Make a call on a tensor or a layer whose members hold ``bits``.

        Returns the call's result and the receiver's state. Raises Unsupported with any variant, and
        for what paddle lacks.
        """
        self._require_calls()
        return PaddleCalls(self._paddle, self._tensors).make(call, bits)

    def bind(self, case: Case, bits: Bits) -> Bound:
        """Return a call that casts a tensor in the memory of ``bits``.

        It is a call of ``cast`` instead for equal dtypes, in `executor`, and for strided ``bits``:
        there an answer would share memory, or the tensor would be a copy. Raises Unsupported as
        ``cast`` does.
        """
        self.cast(case, bits[:0])  # refuses what ``cast`` refuses, for the same reason
        is_shared = case.source == case.target or self._variant == "executor"
        if is_shared or not bits.flags.c_contiguous:
            # The answer would share the input's memory or the next answer's, or the tensor would be
            # a copy of ``bits``.
            return partial(self.cast, case, bits)
        make = self.made("cast", case, self.form_of("cast", case, bits))
        return partial(self.run, make, case, bits)

    def reproduce_bitcast(self, case: Case, bits: Bits) -> str:
        """Return a self-contained script that views a tensor as another dtype.

        Raises Unsupported with any variant, and as ``require`` does.
        """
        if self._variant is not None:
            raise Unsupported(f"paddle:{self._variant} writes no scripts of bitcasts")
        return super().reproduce_bitcast(case, bits)

    def reproduce_call(self, case: Case, call: Call, bits: Mapping[str, Bits]) -> str:
        """Return a self-contained script that makes a call on paddle's tensors.

        Raises Unsupported with any variant, and for calls that scripts cannot write.
        """
        self._require_calls()
        statements = SYNTAX.call_statements(case, call, bits)
        return self.header.format(version=self.version, case=case) + statements

    def _require_calls(self) -> None:
        if self._variant is not None:
            raise Unsupported("a static program has no calls: they are made eagerly")


def _reason(error: Exception) -> str:
    """Return the reason in an error of paddle, without traced code and paddle's file."""
    match = re.search(r"^ *\w+Error: (.*)$", str(error), re.MULTILINE)
    return (match[1] if match else first_line(error)).partition(" (at ")[0]
