"""IREE: ``stablehlo.convert`` on rows of any length, compiled once per pair, on the CPU."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from importlib.metadata import version
from typing import Any, ClassVar

from oracles.adapters.dtype_table import names_in
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
VARIANTS: tuple[str, ...] = tuple(variant for variant in FLAGS if variant)

DTYPES = (
    *("float64", "float32", "float16", "bfloat16", "float8e4m3fn", "float8e4m3fnuz"),
    *("float8e5m2", "float8e5m2fnuz", "float8e8m0", "int64", "int32", "int16", "int8"),
    *("uint64", "uint32", "uint16", "uint8", "bool", "complex64", "complex128"),
)
"""The dtypes of whole bytes that its runtime takes from numpy."""

HEADER = """\
# iree {version}: {case}
import iree.runtime
import ml_dtypes
import numpy as np
from iree.compiler.api import Output, Session, Source

"""

COMPILE = """\
session = Session()
session.set_flags({flags})
program = b\"\"\"
func.func @main(%x: tensor<?x{source}>) -> tensor<?x{target}> {{
  %y = stablehlo.convert %x : (tensor<?x{source}>) -> tensor<?x{target}>
  return %y : tensor<?x{target}>
}}
\\0\"\"\"
job, output = session.invocation(), Output.open_membuffer()
job.parse_source(Source.wrap_buffer(session, program))
if not job.execute():
    raise NotImplementedError("the compiler refuses the program")
job.output_vm_bytecode(output)
code = bytes(output.map_memory())
convert = iree.runtime.load_vm_flatbuffer(code, driver="local-sync").main
"""

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
        self._refused: dict[str, str] = {}

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

        Raises Unsupported for a program that the compiler refuses.
        """
        flags = ",".join(f'\n    "{flag}"' for flag in self._flags)
        once = COMPILE.format(
            flags=f"{flags},\n", source=ELEMENTS[case.source], target=ELEMENTS[case.target]
        )
        return Statements("y = convert(x.reshape(-1)).to_host().reshape(x.shape)\n", once)

    def _prepare(self, once: str, form: Hashable) -> dict[str, Any]:
        # A refusal is kept, too: it takes as long as a compilation, and many cases ask for it.
        if once in self._refused:
            raise Unsupported(self._refused[once])
        try:
            return super()._prepare(once, form)
        except NotImplementedError as error:
            self._refused[once] = str(error)
            raise Unsupported(str(error)) from error
