"""openvino's Convert: evaluated by its reference, or compiled (and folded) by the CPU plugin."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any

import numpy as np

from oracles.adapters.lazy_import import load, require_variant
from oracles.adapters.openvino_script import reproduction
from oracles.adapters.ort_memory import patterns_in, room_for
from oracles.adapters.plain_modes import require_plain
from oracles.bit_packing import is_packed, pack
from oracles.protocol import Bits, Bound, Unsupported
from specs.cases import Case
from specs.formats import Format, format_named

VARIANTS: tuple[str, ...] = ("cpu", "cpu-dynamic", "cpu-folded")
"""The CPU plugin has other kernels for a shape that is open than for one known when it compiles.

A constant it folds before. The pass ``ConstantFolding`` by itself asks the reference, as does the
adapter without a variant.
"""

DTYPES: Mapping[str, str] = {
    "float64": "f64",
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "float8e4m3fn": "f8e4m3",
    "float8e5m2": "f8e5m2",
    "float8e8m0": "f8e8m0",
    "float4e2m1": "f4e2m1",
    "int64": "i64",
    "int32": "i32",
    "int16": "i16",
    "int8": "i8",
    "int4": "i4",
    "uint64": "u64",
    "uint32": "u32",
    "uint16": "u16",
    "uint8": "u8",
    "uint4": "u4",
    "uint2": "u2",
    "bool": "boolean",
}
"""The types that Convert knows; openvino also has strings, but converts them to nothing."""

SETTINGS: Mapping[str, str | int] = {
    "INFERENCE_NUM_THREADS": 1,
    # Otherwise the plugin may compute in bfloat16, and whether it does depends on the machine.
    "EXECUTION_MODE_HINT": "ACCURACY",
}

MODELS_KEPT = 32

MISSING_KERNELS = ("can't convert from", "unsupported src_prc")
"""How the CPU plugin says that it has no kernel, on one of many lines."""


class OpenVino:
    """Convert as openvino's reference evaluates it, or (`cpu` and so on) its CPU plugin."""

    name = "openvino"
    # No document that is encoded here describes openvino's Convert.
    claims: tuple[str, ...] = ()

    def __init__(self, variant: str | None = None) -> None:
        self._openvino: Any = load("openvino", "openvino")
        self._operators: Any = load("openvino.opset15", "openvino")
        require_variant(self.name, variant, VARIANTS)
        self.version = str(self._openvino.__version__).partition("-")[0]
        self._variant = variant
        self.compiles_shapes = variant in ("cpu", "cpu-folded")
        self._core = self._openvino.Core() if variant else None
        self._compiled = lru_cache(MODELS_KEPT)(self._compiled_anew)

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Answer a case by one Convert."""
        require_plain(case, "openvino's Convert")
        x = self._tensor(case.source, _content(format_named(case.source), bits), bits.shape)
        room = room_for(format_named(case.target), bits.size)
        y = self._tensor(case.target, room, bits.shape)
        if self._variant == "cpu-folded":
            self._run(self._folded(case, x), y)
        else:
            self._prepared(case, x, y)()
        return patterns_in(room, format_named(case.target), bits.size).reshape(bits.shape)

    def road(self, case: Case) -> str:
        """The pair alone: Convert knows nothing of documents, versions and modes."""
        require_plain(case, "openvino's Convert")
        for dtype in (case.source, case.target):
            self._type(dtype)
        return f"{case.source}->{case.target}"

    def bind(self, case: Case, bits: Bits) -> Bound:
        """Prepare a call that reads ``bits`` in place and writes into one and the same memory."""
        self.cast(case, bits[:1])  # refuses what cannot be cast, in the same words
        source, target, count = format_named(case.source), format_named(case.target), bits.size
        is_read_in_place = bits.flags.c_contiguous and bits.flags.aligned
        if is_packed(source) or not is_read_in_place or self._variant == "cpu-folded":
            return partial(self.cast, case, bits)
        x, room = self._tensor(case.source, bits, bits.shape), room_for(target, count)
        run = self._prepared(case, x, self._tensor(case.target, room, bits.shape))

        def call() -> Bits:
            run()
            return patterns_in(room, target, count)

        return call

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Bits into a tensor, copied into one of openvino's own, and out again."""
        entry = format_named(dtype)
        copy = self._openvino.Tensor(self._type(dtype), list(bits.shape))
        self._tensor(dtype, _content(entry, bits), bits.shape).copy_to(copy)
        room = room_for(entry, bits.size)
        copy.copy_to(self._tensor(dtype, room, bits.shape))
        return patterns_in(room, entry, bits.size).reshape(bits.shape)

    def reproduce(self, case: Case, bits: Bits) -> str:
        """A script that asks openvino the same, without this project."""
        for dtype in (case.source, case.target):
            self._type(dtype)
        return reproduction(
            self.version,
            case,
            bits,
            types=(DTYPES[case.source], DTYPES[case.target]),
            settings=SETTINGS if self._variant else None,
            dynamic=self._variant == "cpu-dynamic",
            folded=self._variant == "cpu-folded",
        )

    def _prepared(self, case: Case, x: Any, y: Any) -> Callable[[], None]:
        """What converts x to y, both of which it keeps alive."""
        if self._variant is None:
            return self._evaluation(case, x, y)
        request = self._request(case, tuple(x.shape))
        request.set_input_tensor(x)

        # The request knows addresses only.
        def run(_alive: Any = x) -> None:
            self._run(request, y)

        return run

    def _run(self, request: Any, y: Any) -> None:
        request.set_output_tensor(y)
        # ``infer`` swallows what a kernel raises, and leaves the output as it was.
        request.start_async()
        self._refusing(request.wait)

    def _folded(self, case: Case, x: Any) -> Any:
        """A request to a model that converts a constant, where the plugin has folded that."""
        constant = self._openvino.op.Constant(x, shared_memory=False)
        convert = self._operators.convert(constant, self._type(case.target))
        compiled = self._refusing(partial(self._compiled_model, convert, []))
        layers = [
            (str(layer.get_rt_info()["layerType"].value), layer.get_output_element_type(0))
            for layer in compiled.get_runtime_model().get_ordered_ops()
        ]
        carried = (("Const", self._openvino.Type.i32), ("Convert", self._openvino.Type.i64))
        kinds = [kind for kind, _ in layers]
        if kinds != ["Const", "Output"] and tuple(layers[:-1]) != carried:
            raise Unsupported(f"openvino did not fold this, but left {', '.join(kinds)}")
        return compiled.create_infer_request()

    def _evaluation(self, case: Case, x: Any, y: Any) -> Callable[[], None]:
        _, convert = self._graph(case.source, case.target, self._openvino.PartialShape.dynamic())

        def run() -> None:
            if not convert.evaluate([y], [x]):
                pair = f"{DTYPES[case.source]} to {DTYPES[case.target]}"
                raise Unsupported(f"openvino's reference does not convert {pair}")

        return run

    def _request(self, case: Case, shape: tuple[int, ...]) -> Any:
        known = (-1,) * len(shape) if self._variant == "cpu-dynamic" else shape
        compile_model = partial(self._compiled, case.source, case.target, known)
        return self._refusing(compile_model).create_infer_request()

    def _compiled_anew(self, source: str, target: str, shape: tuple[int, ...]) -> Any:
        parameter, convert = self._graph(source, target, list(shape))
        return self._compiled_model(convert, [parameter])

    def _compiled_model(self, convert: Any, parameters: list[Any]) -> Any:
        assert self._core is not None
        model = self._openvino.Model([convert], parameters, "cast")
        return self._core.compile_model(model, "CPU", dict(SETTINGS))

    def _refusing(self, ask: Callable[[], Any]) -> Any:
        """What the plugin gives, or its one line that says that it has no kernel."""
        try:
            return ask()
        except RuntimeError as error:
            for line in str(error).splitlines():
                if any(sign in line for sign in MISSING_KERNELS):
                    raise Unsupported(line) from None
            raise

    def _graph(self, source: str, target: str, shape: Any) -> tuple[Any, Any]:
        parameter = self._operators.parameter(shape, self._type(source))
        return parameter, self._operators.convert(parameter, self._type(target))

    def _tensor(self, dtype: str, memory: Bits, shape: tuple[int, ...]) -> Any:
        # It lies in this memory, whose size and alignment openvino takes on trust.
        return self._openvino.Tensor(memory, list(shape), self._type(dtype))

    def _type(self, dtype: str) -> Any:
        try:
            return getattr(self._openvino.Type, DTYPES[dtype])
        except (KeyError, AttributeError):
            raise Unsupported(f"openvino has no dtype castable as {dtype}") from None


def _content(entry: Format, bits: Bits) -> Bits:
    """What a tensor of such codes lies in: low bits first where several share a byte."""
    return pack(bits, entry.bits) if is_packed(entry) else np.require(bits, requirements=["C", "A"])
