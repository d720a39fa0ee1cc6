"""paddle's cast as a static program: made once for a pair and a rank, then run on tensors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Any

import numpy as np

from oracles.adapters.lazy_import import first_line
from oracles.adapters.paddle_tensors import Tensors
from oracles.protocol import Unsupported

PROGRAMS_KEPT = 64

REFUSALS = (AssertionError, NotImplementedError, TypeError, ValueError)
"""What paddle raises where it cannot make a program of a dtype or an operation."""

NO_FETCH = "[pd_op.fetch] kernel output args (0)"
"""How the Executor says that it has no kernel to hand out an answer of this dtype."""

Program = Callable[[Any], Any]


class Programs:
    """Programs that hold nothing but a cast or a view, for a backend of ``to_static``."""

    def __init__(self, paddle: Any, tensors: Tensors, backend: str | None = None) -> None:
        self._paddle = paddle
        self._tensors = tensors
        self._backend = backend
        self.cast = lru_cache(PROGRAMS_KEPT)(partial(self._traced, paddle.cast))
        self.view = lru_cache(PROGRAMS_KEPT)(partial(self._traced, paddle.view))

    def _traced(self, operation: Any, source: str, target: str, rank: int) -> Program:
        x, dtype = self._tensors.dtype(source), self._tensors.dtype(target)
        spec = self._paddle.static.InputSpec([-1] * rank, x, stop_gradient=True)
        # Without ``full_graph`` what cannot be traced is run eagerly, and nobody is told.
        static = self._paddle.jit.to_static(
            operation, input_spec=[spec, dtype], full_graph=True, backend=self._backend
        )
        try:
            traced = static.concrete_program
        except REFUSALS as error:
            raise Unsupported(f"no static program: {_reason(error)}") from None
        if traced.inputs[0].dtype != x:
            taken = traced.inputs[0].dtype
            raise Unsupported(f"no static program: it takes {source} for {taken}")

        def program(tensor: Any) -> Any:
            # An answer of one element is compared with a number that float16 and others lack.
            with np.errstate(over="ignore"):
                return static(tensor, dtype)

        return program


class Executions:
    """Programs that hold nothing but a cast or a view, run by a ``paddle.static.Executor``."""

    def __init__(self, paddle: Any, tensors: Tensors) -> None:
        self._paddle = paddle
        self._tensors = tensors
        self._executor = paddle.static.Executor(paddle.CPUPlace())
        self.cast = lru_cache(PROGRAMS_KEPT)(partial(self._built, paddle.cast))
        self.view = lru_cache(PROGRAMS_KEPT)(partial(self._built, paddle.view))

    def _built(self, operation: Any, source: str, target: str, rank: int) -> Program:
        static, dtype = self._paddle.static, self._tensors.dtype(source)
        wanted, made = self._tensors.dtype(target), static.Program()
        try:
            with self._graph_mode(), static.program_guard(made, static.Program()):
                y = operation(static.data("x", [-1] * rank, dtype), wanted)
        except REFUSALS as error:
            raise Unsupported(f"no static program: {_reason(error)}") from None

        def program(tensor: Any) -> Any:
            # The Executor lets go of its input in a thread of its own, which cannot free numpy's
            # memory while Python ends. It takes any dtype for the one declared, and only warns.
            fed = tensor._copy_to(self._paddle.CPUPlace(), True)
            try:
                with self._graph_mode():
                    (answer,) = self._executor.run(
                        made, feed={"x": fed.get_tensor()}, fetch_list=[y], return_numpy=False
                    )
            except RuntimeError as error:
                if NO_FETCH not in str(error):
                    raise
                raise Unsupported(f"the Executor fetches no {target}") from None
            return self._paddle.Tensor(answer)

        return program

    @contextmanager
    def _graph_mode(self) -> Iterator[None]:
        self._paddle.enable_static()
        try:
            yield
        finally:
            self._paddle.disable_static()


def _reason(error: Exception) -> str:
    """What is wrong, without the traced code before it and paddle's source file behind it."""
    named = re.search(r"^ *\w+Error: (.*)$", str(error), re.MULTILINE)
    return (named[1] if named else first_line(error)).partition(" (at ")[0]
