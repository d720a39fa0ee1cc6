"""paddle's casts and views as static programs: built once per pair and rank, run on tensors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Any

import numpy as np

from oracles.adapters.paddle_tensors import Tensors
from oracles.adapters.refusals import first_line
from oracles.protocol import Unsupported

CACHED_PROGRAMS = 64

REFUSALS = (AssertionError, NotImplementedError, TypeError, ValueError)
"""The errors with which paddle refuses to build a program of a dtype or an operation."""

NO_FETCH = "[pd_op.fetch] kernel output args (0)"
"""The sign that the Executor has no kernel to fetch an answer of a dtype."""

Program = Callable[[Any], Any]


class TracedPrograms:
    """Builds programs of one cast or view with ``paddle.jit.to_static`` and one of its backends."""

    def __init__(self, paddle: Any, tensors: Tensors, backend: str | None = None) -> None:
        self._paddle = paddle
        self._tensors = tensors
        self._backend = backend
        self.cast = lru_cache(CACHED_PROGRAMS)(partial(self._trace, paddle.cast))
        self.view = lru_cache(CACHED_PROGRAMS)(partial(self._trace, paddle.view))

    def _trace(self, operation: Any, source: str, target: str, rank: int) -> Program:
        x, dtype = self._tensors.dtype(source), self._tensors.dtype(target)
        spec = self._paddle.static.InputSpec([-1] * rank, x, stop_gradient=True)
        # Without ``full_graph``, paddle silently runs eagerly what it cannot trace.
        static = self._paddle.jit.to_static(
            operation, input_spec=[spec, dtype], full_graph=True, backend=self._backend
        )
        try:
            traced = static.concrete_program
        except REFUSALS as error:
            raise Unsupported(f"no static program: {_reason(error)}") from None
        if traced.inputs[0].dtype != x:
            actual = traced.inputs[0].dtype
            raise Unsupported(f"no static program: it takes {source} for {actual}")

        def program(tensor: Any) -> Any:
            # paddle compares an answer of one element with a number that overflows float16.
            with np.errstate(over="ignore"):
                return static(tensor, dtype)

        return program


class ExecutorPrograms:
    """Builds programs of one cast or view that run in a ``paddle.static.Executor``."""

    def __init__(self, paddle: Any, tensors: Tensors) -> None:
        self._paddle = paddle
        self._tensors = tensors
        self._executor = paddle.static.Executor(paddle.CPUPlace())
        self.cast = lru_cache(CACHED_PROGRAMS)(partial(self._build, paddle.cast))
        self.view = lru_cache(CACHED_PROGRAMS)(partial(self._build, paddle.view))

    def _build(self, operation: Any, source: str, target: str, rank: int) -> Program:
        static, graph = self._paddle.static, self._paddle.static.Program()
        source_dtype, target_dtype = self._tensors.dtype(source), self._tensors.dtype(target)
        try:
            with self._graph_mode(), static.program_guard(graph, static.Program()):
                y = operation(static.data("x", [-1] * rank, source_dtype), target_dtype)
        except REFUSALS as error:
            raise Unsupported(f"no static program: {_reason(error)}") from None

        def program(tensor: Any) -> Any:
            # Feed a copy: the Executor releases its input in another thread, which cannot free
            # numpy's memory while Python exits. It reads any dtype as the declared one, and only
            # warns.
            fed = tensor._copy_to(self._paddle.CPUPlace(), True)
            try:
                with self._graph_mode():
                    (answer,) = self._executor.run(
                        graph, feed={"x": fed.get_tensor()}, fetch_list=[y], return_numpy=False
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
    """Return the reason without the traced code before it and paddle's source file after it."""
    match = re.search(r"^ *\w+Error: (.*)$", str(error), re.MULTILINE)
    return (match[1] if match else first_line(error)).partition(" (at ")[0]
