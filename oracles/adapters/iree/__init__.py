"""IREE: ``stablehlo.convert`` on rows of any length, compiled for several pairs at once."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from importlib.metadata import version
from typing import Any, ClassVar

from oracles.adapters.dtype_table import names_in
from oracles.adapters.iree.script_lines import COMPILE, HEADER
from oracles.adapters.refusals import load_own, require_variant
from oracles.adapters.scripted import Scripted, ScriptedOperation, Statements
from oracles.adapters.stablehlo import ELEMENTS
from oracles.protocol import Unsupported
from specs.cases import Case
from specs.formats import format_named

FLAGS: Mapping[str | None, tuple[str, ...]] = {
    None: ("--iree-hal-target-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=generic"),
    "host": ("--iree-hal-target-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=host"),
    "vmvx": ("--iree-hal-target-backends=vmvx",),
}
"""By variant, the options of the compiler: code for any processor, for this one, or bytecode."""
VARIANTS: tuple[str, ...] = tuple(filter(None, FLAGS))

GROUPS: tuple[tuple[str, ...], ...] = (
    (
        *("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool"),
        *("float32", "float8e8m0", "complex64"),
    ),
    ("float64", "float16", "complex128"),
    ("bfloat16",),
    ("float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"),
)
"""Targets to which the conversions of one source are one program.

A compiler takes 0.25 s for a program, and 0.05 s for each further conversion in it. It refuses a
program as a whole, so targets that it refuses from the same sources stand together."""

DTYPES = tuple(name for group in GROUPS for name in group)
"""The dtypes of whole bytes that the runtime takes from numpy."""

OPTIONS = ("--iree-input-type=stablehlo", "--iree-input-demote-f64-to-f32=false")


class Iree(Scripted):
    """Converts by StableHLO's ``convert``, compiled as the variant says."""

    name = "iree"
    header = HEADER
    operations: ClassVar[Mapping[ScriptedOperation, str]] = {"cast": "stablehlo.convert"}
    claims: tuple[str, ...] = ("stablehlo-convert",)
    dtypes = DTYPES

    def __init__(self, variant: str | None = None) -> None:
        load_own("iree.runtime", __file__)
        api: Any = load_own("iree.compiler.api", __file__)
        require_variant(self.name, variant, VARIANTS)
        super().__init__(
            iree=load_own("iree", __file__),
            ml_dtypes=load_own("ml_dtypes", __file__),
            Output=api.Output,
            Session=api.Session,
            Source=api.Source,
        )
        self.version = version("iree-base-runtime")
        self._flags = (*OPTIONS, *FLAGS[variant])

    def require_dtype(self, operation: ScriptedOperation, dtype: str) -> None:
        """Raise Unsupported for a dtype that cannot be handed over."""
        if dtype not in DTYPES:
            raise Unsupported(f"iree has no arrays of {dtype}")

    def tensor_text(self, dtype: str) -> str:
        """Return the Python expression of a contiguous array of this dtype."""
        ml = names_in("ml").get(dtype)
        name = f"ml_dtypes.{ml}" if ml else f"np.{names_in('numpy')[dtype]}"
        return f"np.ascontiguousarray(bits).reshape(bits.shape).view({name})"

    def patterns_text(self, dtype: str) -> str:
        """Return the Python expression of the patterns in ``y``, an array of this dtype."""
        return f'y.view("{format_named(dtype).storage}")'

    def steps(self, operation: ScriptedOperation, case: Case, form: Hashable) -> Statements:
        """Return the statements that compile the conversion of a pair once, and call it on a row.

        Raises Unsupported if the compiler refuses the conversion alone, too.
        """
        group = next(group for group in GROUPS if case.target in group)
        each = f"y = module.{case.target}(x.reshape(-1)).to_host().reshape(x.shape)\n"
        flags = "".join(f'\n    "{flag}",' for flag in self._flags)
        for targets in (group, (case.target,)):
            names = "".join(f'\n    "{name}": "{ELEMENTS[name]}",' for name in targets)
            once = COMPILE.format(flags=flags, source=ELEMENTS[case.source], targets=names)
            if self.prepared(once, form):
                return Statements(each, once)
        raise Unsupported("the compiler refuses the program")

    def _prepare(self, once: str, form: Hashable) -> dict[str, Any]:
        """Return the names that are bound after a compilation, none if it is refused."""
        # A refusal is kept, too: it takes as long as a compilation, and many cases ask for it.
        try:
            return super()._prepare(once, form)
        except NotImplementedError:
            return {}
