"""CINN's own builder: programs of one operator, made as the designs of `cast` and bitcasts show it.

The designs stop at the operator; how a program is built and run is what CINN's own tests do. No
published wheel holds CINN, so this project has not run it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from oracles.adapters.call_parts import WORDS, Makers, argument, require_method
from oracles.protocol import Bits, Returned, Tensor, Unsupported
from specs.calls import Call, ReceiverKind
from specs.formats import format_named

PACKAGES = ("paddle.cinn", "cinn")
"""Where CINN's Python modules lie: in a paddle that was built with it, or in a build of its own."""

TYPES: Mapping[str, tuple[str, tuple[int, ...]]] = {
    "bool": ("Bool", ()),
    "int8": ("Int", (8,)),
    "int16": ("Int", (16,)),
    "int32": ("Int", (32,)),
    "int64": ("Int", (64,)),
    "uint8": ("UInt", (8,)),
    "uint16": ("UInt", (16,)),
    "uint32": ("UInt", (32,)),
    "uint64": ("UInt", (64,)),
    "float16": ("Float", (16,)),
    "float32": ("Float", (32,)),
    "float64": ("Float", (64,)),
}
"""CINN's types that numpy has under the same names: what makes each, and its arguments."""

CLASSES: Mapping[ReceiverKind, str] = {"net-builder": "NetBuilder", "base-builder": "BaseBuilder"}


class Builders:
    """Makes a builder's program of one operator and runs it on the host."""

    def __init__(self) -> None:
        self._frontend, self._common = _modules()

    def bitcast(self, source: str, target: str, bits: Bits) -> Bits:
        """The answer of ``bitcast_convert``, in whatever shape CINN gives it."""

        def operator(builder: Any, variable: Any) -> Any:
            method = getattr(builder, "bitcast_convert", None)
            if method is None:
                raise Unsupported("this CINN's NetBuilder has no bitcast_convert")
            return method(variable, target)

        self.type(target)
        return _codes(target, self._run("NetBuilder", operator, source, bits))

    def call(self, call: Call, bits: Mapping[str, Bits]) -> Returned:
        """Make a call on a builder; the tensor that it holds is the program's input."""
        name = CLASSES.get(call.receiver)
        if name is None:
            raise Unsupported(f"CINN has no {call.receiver}: its operators are a builder's methods")
        [member] = call.members

        def operator(builder: Any, variable: Any) -> Any:
            makers: Makers = {
                "dtype-name": str,
                "dtype": self.type,
                "input": lambda _: variable,
                "text": str,
                "word": WORDS.__getitem__,
            }
            method = require_method("CINN", call, builder)
            args = [argument("CINN", makers, one) for one in call.args]
            kwargs = {key: argument("CINN", makers, one) for key, one in call.kwargs}
            return method(*args, **kwargs)

        held = bits[member.name]
        array = self._run(name, operator, member.dtype, held.copy())
        dtype = array.dtype.name
        return Returned(
            is_receiver=False,
            shares_memory=False,
            tensors={member.name: Tensor(dtype, "cpu", _codes(dtype, array))},
            receiver={member.name: Tensor(member.dtype, "cpu", held)},
        )

    def type(self, dtype: str) -> Any:
        """CINN's type object of that name."""
        try:
            name, args = TYPES[dtype]
            return getattr(self._common, name)(*args)
        except (KeyError, AttributeError):
            raise Unsupported(f"CINN's builder has no type {dtype}") from None

    def _run(self, name: str, operator: Callable[[Any, Any], Any], source: str, bits: Bits) -> Any:
        """What the program computes that a builder of this class makes of the operator."""
        made = getattr(self._frontend, name, None)
        if made is None:
            raise Unsupported(f"this CINN has no {name}")
        builder = made("castigate")
        variable = builder.create_input(self.type(source), bits.shape, "A1")
        output = operator(builder, variable)
        host = self._common.DefaultHostTarget()
        array = bits.view(np.dtype(source))
        [result] = builder.build().build_and_get_output(
            host, [variable], [array], [output], passes=[], scope=None
        )
        return result.numpy(host)


def _modules() -> tuple[Any, Any]:
    for package in PACKAGES:
        try:
            return (
                importlib.import_module(f"{package}.frontend"),
                importlib.import_module(f"{package}.common"),
            )
        except ImportError:
            continue
    raise Unsupported("this build of CINN has no builder in Python: no module `frontend`")


def _codes(dtype: str, array: Any) -> Bits:
    """The patterns in an array of CINN's, which must be of the dtype."""
    if array.dtype.name != dtype:
        raise TypeError(f"asked for {dtype}, got {array.dtype}")
    codes: Bits = np.ascontiguousarray(array).reshape(array.shape).view(format_named(dtype).storage)
    return codes
