"""Makes the calls that a document writes; shared by the adapters that make any."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from oracles.adapters.refusals import first_line
from oracles.protocol import Bits, Tensor, Unsupported
from specs.calls import Argument, ArgumentKind, Call
from specs.formats import format_named

ArgumentBuilders = Mapping[ArgumentKind, Callable[[str], Any]]
"""How a framework builds each kind of argument from the argument's value."""

WORD_VALUES: Mapping[str, object] = {
    "none": None,
    "true": True,
    "false": False,
    "zero": 0,
    "number": 3.5,
    "list": [],
    "ten": [10],
    "bytes": b"float32",
}
"""The Python values of ``specs.calls.ArgumentWord``."""


def invoke(framework: str, builders: ArgumentBuilders, call: Call, receiver: Any) -> Any:
    """Call the receiver's method with the framework's own objects as arguments.

    Raises ``Unsupported`` where the receiver lacks the method or an argument cannot be built.
    """
    method = getattr(receiver, str(call.method), None)
    if method is None:
        raise Unsupported(f"{framework}'s {call.receiver} has no method {call.method}")
    args, kwargs = arguments(framework, builders, call)
    return method(*args, **kwargs)


def arguments(
    framework: str, builders: ArgumentBuilders, call: Call
) -> tuple[list[Any], dict[str, Any]]:
    """Return a call's arguments as the framework's own objects, by position and by keyword."""
    args = [_build(framework, builders, argument) for argument in call.args]
    kwargs = {name: _build(framework, builders, argument) for name, argument in call.kwargs}
    return args, kwargs


def _build(framework: str, builders: ArgumentBuilders, argument: Argument) -> Any:
    build = builders.get(argument.kind)
    if build is None:
        raise Unsupported(f"{framework} has no argument of the kind `{argument.kind}`")
    return build(argument.value)


def layer_output(
    layer: Callable[[Any], Any], x: Any, read: Callable[[Any], Tensor]
) -> Tensor | str:
    """Return a layer's output for an input, or the layer's error in one line."""
    try:
        return read(layer(x))
    except Exception as error:
        return f"{type(error).__name__}: {first_line(error)}"


def ones(dtype: str, shape: tuple[int, ...]) -> Bits:
    """Return the patterns of ones; a complex one has its real part in the low bits."""
    entry = format_named(dtype)
    code = format_named(entry.entry.part or dtype).one_code
    storage = np.dtype(entry.storage)
    one = np.frombuffer(code.to_bytes(storage.itemsize, "little"), storage)[0]
    return np.full(shape, one)
