"""LiteRT, which was TensorFlow Lite: models of one operation `CAST` in its interpreter."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from importlib.metadata import version
from typing import Any, ClassVar

from oracles.adapters.dtype_table import names_in
from oracles.adapters.litert.script_lines import BUILD, HEADER, INVOKE
from oracles.adapters.refusals import load_own, require_variant
from oracles.adapters.script_text import mask_expression
from oracles.adapters.scripted import Scripted, ScriptedOperation, Statements
from oracles.protocol import Unsupported
from specs.cases import Case
from specs.formats import format_named

RESOLVERS: Mapping[str | None, str] = {
    None: "AUTO",
    "no-delegates": "BUILTIN_WITHOUT_DEFAULT_DELEGATES",
    "reference": "BUILTIN_REF",
}
"""By variant, where the interpreter looks for kernels: XNNPACK first, its own, plain ones."""
VARIANTS: tuple[str, ...] = tuple(variant for variant in RESOLVERS if variant)

TYPES: Mapping[str, str] = {
    **{
        dtype: dtype.upper() for dtype in ("float64", "float32", "float16", "bfloat16", "complex64")
    },
    **{f"int{bits}": f"INT{bits}" for bits in (64, 32, 16, 8, 4)},
    **{f"uint{bits}": f"UINT{bits}" for bits in (32, 16, 8, 4)},
    "bool": "BOOL",
}
"""The names in its schema of the dtypes that it has kernels for and takes from numpy."""

FLOAT_ONLY = ("int4", "uint4")
"""The dtypes that are cast from and to float32 alone."""


class Litert(Scripted):
    """Casts by the operation `CAST`, with the kernels of the variant."""

    name = "litert"
    header = HEADER
    operations: ClassVar[Mapping[ScriptedOperation, str]] = {"cast": "CAST"}
    claims: tuple[str, ...] = ()
    dtypes = tuple(TYPES)

    def __init__(self, variant: str | None = None) -> None:
        module: Any = load_own("ai_edge_litert.interpreter", __file__)
        require_variant(self.name, variant, VARIANTS)
        super().__init__(
            flatbuffers=load_own("flatbuffers", __file__),
            ml_dtypes=load_own("ml_dtypes", __file__),
            schema=load_own("ai_edge_litert.schema_py_generated", __file__),
            Interpreter=module.Interpreter,
            OpResolverType=module.OpResolverType,
        )
        self.version = version("ai-edge-litert")
        self._resolver = RESOLVERS[variant]

    def require_dtype(self, operation: ScriptedOperation, dtype: str) -> None:
        """Raise Unsupported for a dtype that no kernel takes."""
        if dtype not in TYPES:
            raise Unsupported(f"litert casts no {dtype}")

    def require_parameters(self, operation: ScriptedOperation, case: Case) -> None:
        """Raise Unsupported for modes of other casts, and for pairs that no kernel takes."""
        super().require_parameters(operation, case)
        if case.source == "int4":
            raise Unsupported("litert takes integers from -8 to 7 for int4, and no codes")
        ends = {case.source, case.target}
        if ends.intersection(FLOAT_ONLY) and "float32" not in ends:
            raise Unsupported(f"litert casts {' and '.join(FLOAT_ONLY)} from and to float32 alone")

    def tensor_text(self, dtype: str) -> str:
        """Return the Python expression of a contiguous array of this dtype."""
        name = "ml_dtypes.bfloat16" if dtype == "bfloat16" else f"np.{_in_numpy(dtype)}"
        return f"np.ascontiguousarray(bits).reshape(bits.shape).view({name})"

    def patterns_text(self, dtype: str) -> str:
        """Return the Python expression of the patterns in ``y``, an array of this dtype."""
        return f'y.view("{format_named(dtype).storage}"){mask_expression(dtype)}'

    def steps(self, operation: ScriptedOperation, case: Case, form: Hashable) -> Statements:
        """Return the statements that build the model of a pair once, and run it on a row.

        Each row has an interpreter of its own, because one serves a single thread.
        """
        once = BUILD.format(source=TYPES[case.source], target=TYPES[case.target])
        return Statements(INVOKE.format(resolver=self._resolver), once)


def _in_numpy(dtype: str) -> str:
    """Return the numpy dtype that stores a dtype; codes of four bits take a byte each."""
    return names_in("numpy").get(dtype, dtype.replace("4", "8"))
