"""jax's ways to one operation: at once, traced and compiled, folded, or written as StableHLO."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from oracles.adapters.stablehlo import COMPUTED, Operation, Shape, program
from oracles.protocol import Unsupported

DTYPES: Mapping[str, str] = {
    "float64": "float64",
    "float32": "float32",
    "float16": "float16",
    "bfloat16": "bfloat16",
    "float8e4m3fn": "float8_e4m3fn",
    "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2",
    "float8e5m2fnuz": "float8_e5m2fnuz",
    "float8e4m3": "float8_e4m3",
    "float8e3m4": "float8_e3m4",
    "float8e4m3b11fnuz": "float8_e4m3b11fnuz",
    "float8e8m0": "float8_e8m0fnu",
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
"""The dtypes that jax.numpy names; of six bits it has none."""

CALLS: Mapping[Operation, str] = {
    "convert": "convert_element_type",
    "bitcast_convert": "bitcast_convert_type",
}

PROGRAMS_KEPT = 64

Function = Callable[[Any], Any]


@dataclass(frozen=True)
class Request:
    """One operation on arrays of one dtype and shape; no operation: the array itself."""

    operation: Operation | None
    source: str
    target: str
    shape: Shape


class Roads:
    """Functions from a device array to a device array, on one of jax's ways."""

    def __init__(self, jax: Any, variant: str | None) -> None:
        self._jax = jax
        # A GPU must not answer for the CPU, nor even be looked for.
        jax.config.update("jax_platforms", "cpu")
        # Otherwise 64-bit types are silently narrowed.
        jax.config.update("jax_enable_x64", True)
        (self._device, *_) = jax.local_devices(backend="cpu")
        ways: dict[str | None, Callable[[Request], Function]] = {
            None: self._at_once,
            "jit": self._compiled,
            "folded": lambda request: partial(self._folded, request),
            "stablehlo": self._written,
        }
        # An executable is made for one shape, in some 10 ms.
        self.function = lru_cache(PROGRAMS_KEPT)(ways[variant])

    def dtype(self, dtype: str) -> np.dtype[Any]:
        """The numpy dtype of jax's dtype."""
        try:
            scalar_type: Any = getattr(self._jax.numpy, DTYPES[dtype])
        except (KeyError, AttributeError):
            raise Unsupported(f"jax has no dtype {dtype}") from None
        found: np.dtype[Any] = np.dtype(scalar_type)
        return found

    def on_device(self, array: Any) -> Any:
        """A device array with numpy's bits: in numpy's own memory, where that is aligned."""
        return self._jax.device_put(array, self._device)

    def _at_once(self, request: Request) -> Function:
        if request.operation is None:
            return lambda x: x
        call = getattr(self._jax.lax, CALLS[request.operation])
        return partial(call, new_dtype=self.dtype(request.target))

    def _compiled(self, request: Request) -> Function:
        function: Function = self._jax.jit(self._at_once(request))
        return function

    def _folded(self, request: Request, x: Any) -> Any:
        function = self._at_once(request)
        # A vector that counts from 0 XLA makes an iota, and computes what it could have folded:
        # a tensor of a rank more is none. A bitcast looks at the shape, and shall see its own.
        deepened = request.operation != "bitcast_convert"
        constant = self.on_device(np.asarray(x)[None]) if deepened else x
        compiled = self._jax.jit(lambda: function(constant)).lower().compile()
        left = COMPUTED.search(compiled.as_text())
        if left:
            raise Unsupported(f"XLA did not fold this at compile time, but left a {left[1]}")
        return np.asarray(compiled())[0] if deepened else compiled()

    def _written(self, request: Request) -> Function:
        text = program(request.operation, request.source, request.target, request.shape)
        executable = self._device.client.compile_and_load(text, [self._device])
        return lambda x: executable.execute([x])[0]
