"""jax's ``lax.convert_element_type``, ``bitcast_convert_type`` and ``reduce_precision``.

They run on the CPU or a GPU.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Hashable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, ClassVar

import numpy as np

from oracles.adapters.array_api import CALLS, CASTS, Namespace, standard_claims
from oracles.adapters.carriers import Carrying
from oracles.adapters.dtype_table import names_in
from oracles.adapters.jax_carriers import CARRIERS
from oracles.adapters.jax_executables import KEPT_FROM, keep_executables
from oracles.adapters.jax_platforms import (
    ALIAS,
    PLATFORM_ROADS,
    PlatformRoad,
    device_on,
    platform_road,
    version_of,
)
from oracles.adapters.refusals import load, require_plain
from oracles.adapters.script_text import mask_expression
from oracles.adapters.scripted import Chained, Function, ScriptedOperation, Statements, call_steps
from oracles.adapters.stablehlo import COMPUTED, REDUCTION, precision_of, program, widths_of
from oracles.adapters.stablehlo import HloOperation as XlaOperation
from oracles.protocol import Bits, Bound, Returned, Unsupported
from specs.cases import Call, Case, Shape
from specs.formats import format_named

ANYWHERE = ("jit", "folded", "stablehlo")
"""The variants that convert on any platform, and without one on the CPU."""

VARIANTS: tuple[str, ...] = (*ANYWHERE, "gpu")

OPEN_ROADS = PLATFORM_ROADS

DTYPES: Mapping[str, str] = names_in("jax")
"""The dtypes that jax.numpy has; none is of six bits."""

FUNCTIONS: Mapping[str, str] = {
    "convert": "lax.convert_element_type",
    "bitcast_convert": "lax.bitcast_convert_type",
    "reduce_precision": "lax.reduce_precision",
    "astype": "numpy.astype",
}
"""jax's function by StableHLO's operation, and that of the array API standard by its own name.

Each takes an array, and either a dtype or the widths of the exponent and the mantissa.
"""

EAGER, COMPILED = "eager", "jit"
EXACT = f"{COMPILED},xla_allow_excess_precision:off"
CHAIN_ROADS: Mapping[str | None, tuple[str, ...]] = {None: (EAGER,), "jit": (COMPILED, EXACT)}
"""The roads of chains by variant; the first is the one that users get by default."""

KEEPING = (None, "jit")
"""The variants that cache executables on disk; one of `folded` would serve only one tensor."""
NEVER = 1e9

NOT_CARRYING = ("folded", "stablehlo")
"""The variants that run no other operations."""

OPERATIONS = ("stablehlo-convert", "stablehlo-bitcast-convert", REDUCTION, "xla-bitcast-convert")
"""The documents of the operations to which jax lowers its functions."""
FOLDING_LIMITS = (1 << 16,)
"""XLA folds constants of more elements with another evaluator, whose answers may differ."""


class Jax(Carrying, Chained):
    """Casts, bitcasts and reduces the precision by jax's functions, as the variant names.

    Without a variant calls are eager, on the CPU; with `gpu` they are eager on a GPU. `jit`
    compiles them, `folded` has XLA fold them for a constant, and `stablehlo` runs the operations to
    which they lower. Cases of the array API standard call ``jax.numpy.astype``, which lowers to the
    same conversion except for complex arrays.
    """

    name = "jax"
    operations: ClassVar[Mapping[ScriptedOperation, str]] = {
        "cast": FUNCTIONS["convert"],
        "bitcast": FUNCTIONS["bitcast_convert"],
        "carry": "an operation",
    }
    carriers = CARRIERS
    target_first = ("cast", "bitcast")
    kept = 64  # an executable serves one shape, and takes some 10 ms to compile
    compiles_shapes = True
    devices: Mapping[str | None, str] = {"gpu": "gpu"}
    """By variant, the jax backend whose device it converts on; the others convert on the CPU."""

    def __init__(self, variant: str | None = None) -> None:
        # XLA splits a loop by the number of processors, which it reads more than once.
        os.environ["NPROC"] = "1"
        # By default each process takes three quarters of a GPU's memory when it starts.
        os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
        road = self._road_of(variant)
        if road is not None:
            os.environ |= road.libraries
        jax = load("jax", "jax")
        self.version = str(jax.__version__)
        self._words = variant
        self._variant = road.variant if road is not None else variant
        self.row_limits = FOLDING_LIMITS if self._variant == "folded" else ()
        self._backend = road and road.platform
        self.chain_roads = CHAIN_ROADS.get(self._variant, ())
        self._jax = jax
        platforms = jax.config.jax_platforms
        if self._backend != ALIAS:
            # Do not let a GPU answer for the CPU, and do not even look for one.
            jax.config.update("jax_platforms", self._backend or "cpu")
        # Removing frames of jax from the traceback of a refusal takes fifteen times as long.
        jax.config.update("jax_traceback_filtering", "off")
        # By default jax silently narrows 64-bit types.
        jax.config.update("jax_enable_x64", True)
        if variant in KEEPING:
            keep_executables(jax)
        try:
            self._device = device_on(jax, road, ANYWHERE) if road is not None else None
        except Unsupported:
            # So that another backend of this process finds its own.
            jax.config.update("jax_platforms", platforms)
            raise
        if road is not None and variant not in VARIANTS:
            self.version += f", {version_of(self._device, road)}"
        self.header = _header(road)
        self.results = "y, compiled" if self._variant == "folded" else "y"
        super().__init__(jax=jax, jnp=jax.numpy)
        self.claims = (*OPERATIONS, *_standard_claims(jax, self._variant or variant))
        if self._variant not in NOT_CARRYING:
            self.claims += ("jax-carriers",)
        if self._variant == "jit":
            self.maker = ("jax.jit", "")

    def _road_of(self, variant: str | None) -> PlatformRoad | None:
        if variant is None or variant in ANYWHERE:
            return None
        if variant in VARIANTS:
            return PlatformRoad(self.devices[variant], variant)
        return platform_road(variant, ANYWHERE)

    def dtype(self, dtype: str) -> np.dtype[Any]:
        """Return the numpy dtype of jax's dtype; raise Unsupported if jax has none."""
        try:
            scalar_type: Any = getattr(self._jax.numpy, DTYPES[dtype])
        except (KeyError, AttributeError):
            raise Unsupported(f"jax has no dtype {dtype}") from None
        found: np.dtype[Any] = np.dtype(scalar_type)
        return found

    def require_dtype(self, operation: ScriptedOperation, dtype: str) -> None:
        """Raise Unsupported for a dtype that jax lacks."""
        self.dtype(dtype)

    def require_parameters(self, operation: ScriptedOperation, case: Case) -> None:
        """Raise Unsupported as ``require_plain`` does, or for a reduction without a precision.

        Other modes of a reduction are ignored. In the variant `stablehlo` it also does so for all
        cases of ``jax.numpy.astype``, and both it and `folded` for all carriers.
        """
        if operation == "carry" and self._variant in NOT_CARRYING:
            raise Unsupported(f"jax:{self._variant} carries nothing; jax and jax:jit do")
        if operation == "bitcast" or precision_of(case) is None:
            super().require_parameters(operation, case)
        if self._asked(operation, case) == "astype" and self._variant == "stablehlo":
            raise Unsupported("jax:stablehlo has operations of XLA only, and no astype")

    def _asked(self, operation: ScriptedOperation, case: Case) -> str:
        """Return the key in ``FUNCTIONS`` of the function that answers a case."""
        if operation == "bitcast":
            return "bitcast_convert"
        if precision_of(case) is not None:
            return "reduce_precision"
        return "astype" if case.document == CASTS else "convert"

    def dtype_text(self, dtype: str) -> str:
        """Return the Python expression of jax's dtype."""
        return f"jnp.{DTYPES[dtype]}"

    def tensor_text(self, dtype: str) -> str:
        """Return the Python expression of a device array of this dtype, made from ``bits``.

        On the CPU the array is in the memory of ``bits`` if that is aligned.
        """
        there = f', jax.devices("{self._backend}")[0]' if self._backend else ""
        return f"jax.device_put(bits.view(jnp.{DTYPES[dtype]}){there})"

    def patterns(self, dtype: str, tensor: Any) -> Bits:
        """Return the patterns in an array; raise Unsupported unless it lies on the device."""
        if self._device is not None and self._variant != "folded":
            self._require_place(tensor.devices())
        return super().patterns(dtype, tensor)

    def _require_place(self, devices: Collection[Any]) -> None:
        if self._device is not None and [*devices] != [self._device]:
            raise Unsupported(f"jax used {', '.join(map(str, devices))}, not {self._device}")

    def patterns_text(self, dtype: str) -> str:
        """Return the Python expression of the patterns in ``y``, an array of this dtype."""
        return f'np.asarray(y).view("{format_named(dtype).storage}"){mask_expression(dtype)}'

    def function_text(self, operation: ScriptedOperation, case: Case, x: str) -> str:
        """Return the Python expression that applies a case's function to the expression ``x``.

        For a copy it is ``x`` itself. Raises Unsupported for a reduction without a precision.
        """
        if operation == "copy":
            return x
        precision = precision_of(case) if operation == "cast" else None
        arguments = f"jnp.{DTYPES[case.target]}"
        if precision is not None:
            arguments = ", ".join(map(str, widths_of(precision)))
        return f"jax.{FUNCTIONS[self._asked(operation, case)]}({x}, {arguments})"

    def steps(self, operation: ScriptedOperation, case: Case, form: Hashable) -> Statements:
        """Return the statements that bind ``y`` to what a case's function makes of ``x``.

        The variant decides whether they call the function, compile it, have XLA fold it, or run a
        program of StableHLO text. For the last, ``form`` is the shape of ``x``.
        """
        match self._variant:
            case "jit":
                return call_steps(self.function_text(operation, case, "x"), "jax.jit")
            case "stablehlo":
                assert isinstance(form, tuple)
                return Statements(
                    EXECUTE, COMPILE.format(program=self._program(operation, case, form))
                )
            case "folded" if operation == "bitcast":
                # A bitcast depends on the shape: leave it.
                return Statements(FOLD.format(self.function_text(operation, case, "x")))
            case "folded":
                return Statements(FOLD_ROW.format(self.function_text(operation, case, "row")))
        return Statements(f"y = {self.function_text(operation, case, 'x')}\n")

    def _program(self, operation: ScriptedOperation, case: Case, shape: Shape) -> str:
        names: Mapping[ScriptedOperation, XlaOperation | None] = {
            "cast": "convert" if precision_of(case) is None else "reduce_precision",
            "bitcast": "bitcast_convert",
            "copy": None,
        }
        return program(names[operation], case.source, case.target, shape, precision_of(case))

    def form_of(self, operation: ScriptedOperation, case: Case, bits: Bits) -> Hashable:
        """Return the shape of ``bits`` in `jit` and `stablehlo`, which compile each; else None."""
        return bits.shape if self._variant in ("jit", "stablehlo") else None

    def cast_text(self, case: Case, x: str) -> str:
        """Return the Python expression that converts the expression ``x``.

        Raises Unsupported for modes that ``require_plain`` refuses.
        """
        require_plain(case, FUNCTIONS["convert"])
        return f"jax.{FUNCTIONS['convert']}({x}, jnp.{DTYPES[case.target]})"

    def chain_steps(self, road: str, names: str, ends: str) -> Statements:
        """Return the statements that bind ``y`` to ``ends``, an expression in ``names``.

        ``names`` are separated by commas. The road says whether the expression is eager or compiled
        by XLA, and whether XLA may keep more precision between casts than their dtypes have.
        """
        if road != EXACT:
            return call_steps(ends, "" if road == EAGER else "jax.jit", names=names)
        options = '{"xla_allow_excess_precision": False}'
        compiled = f"chain.lower({names}).compile(compiler_options={options})"
        return Statements(
            f"y = {compiled}({names})\n", f"chain = jax.jit(lambda {names}: {ends})\n"
        )

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Return ``bits`` after one conversion, or after one reduction of the precision.

        Raises Unsupported as ``require`` does and, in `folded`, if XLA does not fold the program.
        """
        return self.answer("cast", case, bits).copy()

    def bitcast(self, case: Case, bits: Bits) -> Bits:
        """Return ``bits`` reinterpreted by one bitcast, in the shape that XLA gives it.

        Raises Unsupported as ``cast`` does.
        """
        return self.answer("bitcast", case, bits).copy()

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Return ``bits`` after a round trip through an array of the dtype.

        In `jit`, `folded` and `stablehlo` the array also passes a program that returns it
        unchanged. Raises Unsupported if jax lacks the dtype.
        """
        return self.answer("copy", Case("", "", dtype, dtype), bits).copy()

    def run(self, make: Function, case: Case, bits: Bits) -> Bits:
        """Return the patterns in the array that ``make`` returns for an array of ``bits``.

        In the variant `folded`, ``make`` also returns the compiled program, and Unsupported is
        raised if XLA left a computation in this program.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a complex source warns about its discarded part
            if self._variant != "folded":
                return super().run(make, case, bits)
            with _kept_from(self._jax, NEVER):
                y, compiled = make(self.tensor(case.source, bits))
        self._require_place(compiled.runtime_executable().local_devices())
        left = COMPUTED.search(compiled.as_text())
        if left:
            raise Unsupported(f"XLA did not fold this at compile time, but left a {left[1]}")
        return self.patterns(case.target, y)

    def call(self, case: Case, call: Call, bits: Mapping[str, Bits]) -> Returned:
        """Make an ``astype`` call of the array API standard; return its result and the array.

        The array is as the call left it. Raises Unsupported with any variant, for any other call,
        and for a dtype or a kind of argument that jax lacks.
        """
        self._require_calls()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # as in ``run``
            return NAMESPACE.make(self.names, call, bits, self.dtype, nullcontext())

    def road(self, case: Case) -> str:
        """Return the pair of dtypes as text.

        A reduction's precision follows, or ``astype`` for cases of ``CASTS``. Raises Unsupported as
        ``require`` does.
        """
        pair, asked = super().road(case), self._asked("cast", case)
        by = {"astype": ", astype", "reduce_precision": f", {precision_of(case)}"}.get(asked, "")
        return pair + by

    def bind(self, case: Case, bits: Bits) -> Bound:
        """Return a call that passes ``bits`` to jax, and returns the answer in jax's memory.

        For a cast to the same dtype it is a call of ``cast``, whose answer has memory of its own.
        Raises Unsupported as ``road`` does.
        """
        self.road(case)  # refuses what ``cast`` refuses, for the same reason
        if case.source == case.target:
            # jax returns an array of the same dtype itself, so the answer could share its memory.
            return partial(self.cast, case, bits)
        make = self.made("cast", case, self.form_of("cast", case, bits))
        return partial(self.run, make, case, bits)

    def reproduce_call(self, case: Case, call: Call, bits: Mapping[str, Bits]) -> str:
        """Return a self-contained script that makes an ``astype`` of the array API standard.

        Raises Unsupported with any variant, for any other call, and for a kind of argument that jax
        lacks.
        """
        self._require_calls()
        return NAMESPACE.call_script(self.version, case, call, bits)

    def _require_calls(self) -> None:
        if self._words is not None:
            raise Unsupported(f"jax:{self._words} makes no calls")


def _standard_claims(jax: Any, variant: str | None) -> tuple[str, ...]:
    """Return the claims of the array API standard that jax.numpy makes and a variant supports."""
    lacking = {None: (), "stablehlo": (CASTS, CALLS)}.get(variant, (CALLS,))
    declared = standard_claims(jax.numpy.__array_api_version__)
    return tuple(each for each in declared if each.partition(":")[0] not in lacking)


@contextmanager
def _kept_from(jax: Any, seconds: float) -> Iterator[None]:
    """Within the context, cache only executables that take at least ``seconds`` to compile."""
    before = getattr(jax.config, KEPT_FROM)
    jax.config.update(KEPT_FROM, seconds)
    try:
        yield
    finally:
        jax.config.update(KEPT_FROM, before)


def _header(road: PlatformRoad | None) -> str:
    """Return the first lines of a script, with places for `version` and `case`."""
    if road is None:
        return HEADER
    named = {"JAX_ENABLE_X64": "1", **road.environment, "NPROC": "1"}
    body = "".join(f"    {key!r}: {value!r},\n" for key, value in named.items())
    escaped = body.replace("'", '"').replace("{", "{{").replace("}", "}}")
    before, _, after = HEADER.partition(SETTINGS)
    return f"{before}os.environ |= {{{{\n{escaped}}}}}\n{after}"


SETTINGS = """\
os.environ |= {{"JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu", "NPROC": "1"}}
"""
HEADER = f"""\
# jax {{version}}: {{case}}
import os

{SETTINGS}
import jax
import jax.numpy as jnp
import numpy as np

"""

NAMESPACE = Namespace("jax", HEADER, "jnp", "jax.device_put(bits.view(jnp.{}))", "np.asarray({})")

FOLD_ROW = """\
row = jax.device_put(np.asarray(x)[None])  # a vector that counts from 0 would become an iota
folded = jax.jit(lambda: {})
compiled = folded.lower().compile()
y = np.asarray(compiled())[0]
"""
FOLD = """\
folded = jax.jit(lambda: {})
compiled = folded.lower().compile()
y = compiled()
"""
COMPILE = '''\
program = """
{program}"""
(device, *_) = jax.local_devices()
executable = device.client.compile_and_load(program, [device])
'''
EXECUTE = "(y,) = executable.execute([x])\n"
