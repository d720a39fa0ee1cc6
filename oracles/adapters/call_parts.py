"""What calls are made of in every framework alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from oracles.adapters.lazy_import import first_line
from oracles.protocol import Bits, Tensor, Unsupported
from specs.calls import Argument, ArgumentKind, Call
from specs.formats import format_named

Makers = Mapping[ArgumentKind, Callable[[str], Any]]
"""How a framework makes each kind of argument from its value."""

WORDS: Mapping[str, object] = {
    "none": None,
    "true": True,
    "false": False,
    "zero": 0,
    "number": 3.5,
    "list": [],
    "ten": [10],
    "bytes": b"float32",
}


def argument(framework: str, makers: Makers, given: Argument) -> Any:
    """The framework's own object for one argument of a call."""
    make = makers.get(given.kind)
    if make is None:
        raise Unsupported(f"{framework} has no argument of the kind `{given.kind}`")
    return make(given.value)


def require_method(framework: str, call: Call, receiver: Any) -> Callable[..., Any]:
    """The method that is called; ``Unsupported`` where the receiver has none."""
    found = getattr(receiver, str(call.method), None)
    if found is None:
        raise Unsupported(f"{framework}'s {call.receiver} has no method {call.method}")
    return found  # type: ignore[no-any-return]


def output_for(layer: Callable[[Any], Any], x: Any, read: Callable[[Any], Tensor]) -> Tensor | str:
    """What a layer gives for an input, or its error in one line."""
    try:
        return read(layer(x))
    except Exception as error:
        return f"{type(error).__name__}: {first_line(error)}"


def ones(dtype: str, shape: tuple[int, ...]) -> Bits:
    """The patterns of ones; a complex one has its real part in the low bits."""
    entry = format_named(dtype)
    code = format_named(entry.entry.part or dtype).one_code
    storage = np.dtype(entry.storage)
    one = np.frombuffer(code.to_bytes(storage.itemsize, "little"), storage)[0]
    return np.full(shape, one)
