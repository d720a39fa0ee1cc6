"""torch.compile with inductor and a C++ compiler: a compiled function per pair, for all lengths."""

from __future__ import annotations

import importlib
import logging
import os
from collections.abc import Callable
from functools import lru_cache
from types import FunctionType
from typing import Any

from oracles.protocol import NotInstalled

Function = Callable[[Any], Any]

CACHED_FUNCTIONS = 1024
"""More than torch has pairs: an evicted function is compiled again, from the cache on disk."""


class Compiler:
    """Compiles ``to`` and ``view``; kernels are cached in TORCHINDUCTOR_CACHE_DIR or in temp."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._dynamo: Any = importlib.import_module("torch._dynamo")
        # By default torch starts a process per core, but here kernels are compiled one by one.
        config: Any = importlib.import_module("torch._inductor.config")
        config.compile_threads = 1
        if "TORCH_LOGS" not in os.environ:
            # A refusal is an answer; without this, torch also prints it with a page of its trace.
            torch._logging.set_logs(all=logging.CRITICAL)
        _require_compiler()
        self._compiled = lru_cache(CACHED_FUNCTIONS)(self._compile)

    def __call__(self, method: str, x: Any, target: Any) -> Function:
        """Return the function that answers ``x.to(target)`` or ``x.view(target)`` for x's rank."""
        if method == "to":
            for dimension in range(x.ndim):
                # A length that is only marked dynamic gets another kernel if it is 0 or 1, and the
                # first length decides whether the kernel for all others uses vectors.
                self._dynamo.decorators.mark_unbacked(x, dimension)
            return self._compiled(method, x.dtype, (x.ndim,), target)
        # A view depends on whether a length divides, so torch must know lengths when it compiles.
        for dimension, length in enumerate(x.shape):
            if length > 1:
                self._dynamo.mark_dynamic(x, dimension)
        return self._compiled(method, x.dtype, tuple(min(n, 2) for n in x.shape), target)

    def _compile(self, method: str, source: Any, kind: tuple[int, ...], target: Any) -> Function:
        def cast(x: Any) -> Any:
            return x.to(target)

        def bitcast(x: Any) -> Any:
            return x.view(target)

        function = with_own_code(cast if method == "to" else bitcast)
        compiled: Function = self._torch.compile(function, fullgraph=True, dynamic=True)
        return compiled


def with_own_code(function: Any) -> FunctionType:
    """Copy a function with its code object: torch limits the compilations of each code object."""
    code = function.__code__.replace()
    return FunctionType(code, function.__globals__, closure=function.__closure__)


def _require_compiler() -> None:
    builder: Any = importlib.import_module("torch._inductor.cpp_builder")
    failure: Any = importlib.import_module("torch._inductor.exc").InvalidCxxCompiler
    try:
        builder.get_cpp_compiler()
    except failure as error:
        raise NotInstalled("torch:compile needs a C++ compiler, g++ or what CXX names") from error
