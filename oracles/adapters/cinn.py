"""CINN, paddle's compiler, in a paddle that was built with it; no published wheel contains it.

This project has not run it. A paddle without CINN accepts ``backend="CINN"`` and silently runs its
own kernels, so the adapter refuses such a paddle. It cannot tell which operations CINN itself
leaves to paddle's kernels.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np

from oracles.adapters.calls import WORD_VALUES
from oracles.adapters.paddle import PaddleCasts
from oracles.adapters.paddle_tensors import load_paddle
from oracles.adapters.refusals import require_variant
from oracles.adapters.scripted import ScriptedOperation
from oracles.protocol import Bits, Bound, NotInstalled, Returned, Tensor, Unsupported
from specs.cases import Argument, ArgumentKind, Call, Case, ReceiverKind
from specs.formats import format_named

VARIANTS: tuple[str, ...] = ()

BACKEND = "CINN"

ADVICE = "no published wheel of paddle holds CINN: build paddle from source with -DWITH_CINN=ON"

PACKAGES = ("paddle.cinn", "cinn")
"""The packages that may hold CINN's Python modules: paddle's build with CINN, or CINN's own."""

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
"""By dtype, the name of CINN's function that creates the type, and the function's arguments."""

BUILDER_CLASSES: Mapping[ReceiverKind, str] = {
    "net-builder": "NetBuilder",
    "base-builder": "BaseBuilder",
}


class Cinn(PaddleCasts):
    """Casts by a static program that CINN compiles; bitcasts and calls by CINN's own builders."""

    name = "cinn"
    claims: tuple[str, ...] = (
        "cinn-cast",
        "cinn-bitcast-convert",
        "cinn-cast-calls",
        "cinn-bitcast-calls",
    )
    compiles_shapes = True

    operations: ClassVar[Mapping[ScriptedOperation, str]] = {
        "cast": "CINN's cast",
        "bitcast": "CINN's bitcast_convert",
    }
    backend = BACKEND

    def __init__(self, variant: str | None = None) -> None:
        try:
            paddle = load_paddle()
        except NotInstalled:
            raise NotInstalled(ADVICE) from None
        if not paddle.is_compiled_with_cinn():
            raise NotInstalled(ADVICE)
        require_variant(self.name, variant, VARIANTS)
        super().__init__(paddle, "static")

    def bitcast(self, case: Case, bits: Bits) -> Bits:
        """Return ``bits`` reinterpreted by one ``bitcast_convert`` of CINN's builder.

        Raises the errors of ``require_plain`` and of ``Builders.bitcast``.
        """
        self.require_parameters("bitcast", case)
        return Builders().bitcast(case.source, case.target, bits)

    def call(self, case: Case, call: Call, bits: Mapping[str, Bits]) -> Returned:
        """Make a call on one of CINN's builders; return its result and the program's input.

        Raises Unsupported for what the builder lacks.
        """
        return Builders().call(call, bits)

    def bind(self, case: Case, bits: Bits) -> Bound:
        """Return a call of ``cast`` with these arguments."""
        return partial(self.cast, case, bits)


class Builders:
    """Builds a program of one operator with CINN's own builder, and runs it on the host.

    The design documents of `cast` and of the bitcasts show the operators. How a program is built
    and run follows CINN's own tests.
    """

    def __init__(self) -> None:
        self._frontend, self._common = _modules()

    def bitcast(self, source: str, target: str, bits: Bits) -> Bits:
        """Return ``bits`` after one ``bitcast_convert``, in the shape that CINN gives them.

        Raises Unsupported for a dtype, a builder or an operator that this CINN lacks, and TypeError
        if the result has another dtype than ``target``.
        """

        def operator(builder: Any, variable: Any) -> Any:
            method = getattr(builder, "bitcast_convert", None)
            if method is None:
                raise Unsupported("this CINN's NetBuilder has no bitcast_convert")
            return method(variable, target)

        self.type(target)
        return _patterns(target, self._run("NetBuilder", operator, source, bits))

    def call(self, call: Call, bits: Mapping[str, Bits]) -> Returned:
        """Make a call on a builder; return its result, and the program's input as the receiver.

        The input is the tensor of the call's only member. Raises Unsupported for what the builder
        lacks.
        """
        name = BUILDER_CLASSES.get(call.receiver)
        if name is None:
            raise Unsupported(f"CINN has no {call.receiver}: its operators are a builder's methods")
        [member] = call.members

        def operator(builder: Any, variable: Any) -> Any:
            method = getattr(builder, str(call.method), None)
            if method is None:
                raise Unsupported(f"CINN's {call.receiver} has no method {call.method}")
            builders: Mapping[ArgumentKind, Callable[[str], Any]] = {
                "dtype-name": str,
                "dtype": self.type,
                "input": lambda _: variable,
                "text": str,
                "word": WORD_VALUES.__getitem__,
            }

            def build(argument: Argument) -> Any:
                if argument.kind not in builders:
                    raise Unsupported(f"CINN has no argument of the kind `{argument.kind}`")
                return builders[argument.kind](argument.value)

            arguments = [*map(build, call.args)]
            return method(*arguments, **{name: build(each) for name, each in call.kwargs})

        input_bits = bits[member.name]
        array = self._run(name, operator, member.dtype, input_bits.copy())
        dtype = array.dtype.name
        return Returned(
            is_receiver=False,
            shares_memory=False,
            tensors={member.name: Tensor(dtype, "cpu", _patterns(dtype, array))},
            receiver={member.name: Tensor(member.dtype, "cpu", input_bits)},
        )

    def type(self, dtype: str) -> Any:
        """Return CINN's type object of a dtype; raise Unsupported if CINN has none."""
        try:
            name, args = TYPES[dtype]
            return getattr(self._common, name)(*args)
        except (KeyError, AttributeError):
            raise Unsupported(f"CINN's builder has no type {dtype}") from None

    def _run(self, name: str, operator: Callable[[Any, Any], Any], source: str, bits: Bits) -> Any:
        """Run a program of one operator on ``bits``, and return its output as a numpy array.

        ``name`` is that of the builder's class. ``operator`` takes a builder and its input
        variable, and returns the output variable. Raises Unsupported if CINN lacks the class or the
        type of ``source``.
        """
        builder_class = getattr(self._frontend, name, None)
        if builder_class is None:
            raise Unsupported(f"this CINN has no {name}")
        builder = builder_class("castigate")
        variable = builder.create_input(self.type(source), bits.shape, "A1")
        output = operator(builder, variable)
        host = self._common.DefaultHostTarget()
        array = bits.view(np.dtype(source))
        [result] = builder.build().build_and_get_output(
            host, [variable], [array], [output], passes=[], scope=None
        )
        return result.numpy(host)


def _modules() -> tuple[Any, Any]:
    """Return CINN's modules `frontend` and `common`; raise Unsupported if no package has both."""
    for package in PACKAGES:
        try:
            return (
                importlib.import_module(f"{package}.frontend"),
                importlib.import_module(f"{package}.common"),
            )
        except ImportError:
            continue
    raise Unsupported("this build of CINN has no builder in Python: no module `frontend`")


def _patterns(dtype: str, array: Any) -> Bits:
    if array.dtype.name != dtype:
        raise TypeError(f"asked for {dtype}, got {array.dtype}")
    codes: Bits = np.ascontiguousarray(array).reshape(array.shape).view(format_named(dtype).storage)
    return codes
