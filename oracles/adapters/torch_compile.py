"""torch.compile (inductor and a C++ compiler): one compiled function per pair, for all lengths."""

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

FUNCTIONS_KEPT = 1024
"""More than torch has pairs: what is forgotten is compiled anew, from the cache on the disk."""


class Compiler:
    """Compiles ``to`` and ``view``; kernels lie where TORCHINDUCTOR_CACHE_DIR says, or in temp."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._dynamo: Any = importlib.import_module("torch._dynamo")
        # Otherwise torch would start a process per core, for kernels that are compiled one by one.
        config: Any = importlib.import_module("torch._inductor.config")
        config.compile_threads = 1
        if "TORCH_LOGS" not in os.environ:
            # A refusal is an answer: it need not be told on stderr too, with a page of its trace.
            torch._logging.set_logs(all=logging.CRITICAL)
        _require_compiler()
        self._compiled = lru_cache(FUNCTIONS_KEPT)(self._compile)

    def __call__(self, method: str, x: Any, target: Any) -> Function:
        """What answers ``x.to(target)`` or ``x.view(target)`` for x, and for others of its rank."""
        if method == "to":
            for dimension in range(x.ndim):
                # A length merely marked dynamic gets a kernel of its own when it is 0 or 1, and the
                # first length that is met decides whether the kernel for the others has vectors.
                self._dynamo.decorators.mark_unbacked(x, dimension)
            return self._compiled(method, x.dtype, (x.ndim,), target)
        # Whether a length divides decides on a view: torch must know it when it compiles.
        for dimension, length in enumerate(x.shape):
            if length > 1:
                self._dynamo.mark_dynamic(x, dimension)
        return self._compiled(method, x.dtype, tuple(min(n, 2) for n in x.shape), target)

    def _compile(self, method: str, source: Any, kind: tuple[int, ...], target: Any) -> Function:
        def cast(x: Any) -> Any:
            return x.to(target)

        def bitcast(x: Any) -> Any:
            return x.view(target)

        function = _apart(cast if method == "to" else bitcast)
        compiled: Function = self._torch.compile(function, fullgraph=True, dynamic=True)
        return compiled


def _apart(function: Any) -> FunctionType:
    """The function with a code object of its own: torch allows each code a few compilations."""
    code = function.__code__.replace()
    return FunctionType(code, function.__globals__, closure=function.__closure__)


def _require_compiler() -> None:
    builder: Any = importlib.import_module("torch._inductor.cpp_builder")
    failure: Any = importlib.import_module("torch._inductor.exc").InvalidCxxCompiler
    try:
        builder.get_cpp_compiler()
    except failure as error:
        raise NotInstalled("torch:compile needs a C++ compiler, g++ or what CXX names") from error
