"""jax's ``lax.convert_element_type``, ``bitcast_convert_type`` and ``reduce_precision``.

They run on the CPU or a GPU.
"""

from __future__ import annotations

import os
import platform
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

import numpy as np

from oracles.adapters.array_api import CALLS, CASTS, Namespace, NamespaceSyntax, standard_claims
from oracles.adapters.jax_chains import chain_roads, chain_statement, ends_of
from oracles.adapters.refusals import load, plain_road, require_plain, require_variant
from oracles.adapters.script_text import (
    bits_statement,
    mask_expression,
    print_statement,
    print_tensor,
)
from oracles.adapters.stablehlo import (
    COMPUTED,
    REDUCTION,
    Operation,
    Shape,
    precision_of,
    program,
    widths_of,
)
from oracles.bit_packing import is_packed
from oracles.protocol import Bits, Bound, Returned, Unsupported
from specs.calls import Call
from specs.cases import Case
from specs.chains import Company
from specs.formats import format_named
from specs.model.cache import cache_folder

VARIANTS: tuple[str, ...] = ("jit", "folded", "stablehlo", "gpu")

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
"""The dtypes that jax.numpy has; none is of six bits."""

Function = Callable[[Any], Any]
Asked = Operation | Literal["astype"]
"""An operation of XLA, or jax.numpy's function of the array API standard."""

FUNCTIONS: Mapping[Asked, str] = {
    "convert": "lax.convert_element_type",
    "bitcast_convert": "lax.bitcast_convert_type",
    "reduce_precision": "lax.reduce_precision",
    "astype": "numpy.astype",
}
"""The names of jax's functions; each takes an array, and either a dtype or two widths."""

CACHED_FUNCTIONS = 64

KEEPING = (None, "jit")
"""The variants that cache executables on disk; one of `folded` would serve only one tensor."""
PROCESSOR_LINES = ("model name", "flags", "CPU implementer", "CPU part", "Features")
"""The lines of ``/proc/cpuinfo`` that tell which instructions the processor has."""
KEPT_FROM, NEVER = "jax_persistent_cache_min_compile_time_secs", 1e9

OPERATIONS = ("stablehlo-convert", "stablehlo-bitcast-convert", REDUCTION, "xla-bitcast-convert")
"""The documents of the operations to which jax lowers its functions."""
FOLDING_LIMITS = (1 << 16,)
"""XLA folds constants of more elements with another evaluator, which answers differently."""


class Jax:
    """A cast by ``convert_element_type``, or (`stablehlo`) by the operation to which it lowers.

    `gpu` makes the same calls as no variant, on a GPU. Cases of the array API standard call
    ``jax.numpy.astype``, which lowers to the same conversion except for complex arrays.
    """

    name = "jax"
    compiles_shapes = True
    devices: Mapping[str | None, str] = {"gpu": "gpu"}
    """By variant, the jax backend whose device it converts on; the others convert on the CPU."""

    def __init__(self, variant: str | None = None) -> None:
        # XLA splits a loop by the number of processors, which it reads more than once.
        os.environ["NPROC"] = "1"
        # By default each process takes three quarters of a GPU's memory when it starts.
        os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
        jax = load("jax", "jax")
        require_variant(self.name, variant, VARIANTS)
        self.version = str(jax.__version__)
        self._variant = variant
        self.row_limits = FOLDING_LIMITS if variant == "folded" else ()
        self._device = self.devices.get(variant)
        self.chain_roads = chain_roads(variant)
        self._jax = jax
        self._roads = Roads(jax, variant, self._device)
        self.claims = (*OPERATIONS, *_standard_claims(jax, variant))

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Answer a case with one conversion, or with one reduction of the precision."""
        return self._answer(self._request(case, bits.shape), bits)

    def call(self, case: Case, call: Call, bits: Mapping[str, Bits]) -> Returned:
        """Make a call of the array API standard."""
        if self._variant is not None:
            raise Unsupported(f"jax:{self._variant} makes no calls")
        jax, roads = self._jax, self._roads

        def array(dtype: str, own: Bits) -> Any:
            return roads.on_device(own.view(roads.dtype(dtype)))

        namespace = Namespace(self.name, jax.numpy.astype, roads.dtype, array, np.asarray)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # as in ``_run``
            return namespace.make(call, bits)

    def _request(self, case: Case, shape: Shape) -> Request:
        """Return the request that answers a case; raise Unsupported for unknown parameters."""
        precision = precision_of(case)
        if precision is None:
            require_plain(case, FUNCTIONS["convert"])
        return Request(self._asked(case), case.source, case.target, shape, precision)

    def _asked(self, case: Case) -> Asked:
        if case.document == REDUCTION:
            return "reduce_precision"
        if case.document != CASTS:
            return "convert"
        if self._variant == "stablehlo":
            raise Unsupported("jax:stablehlo has operations of XLA only, and no astype")
        return "astype"

    def chains(self, case: Case, company: Company, bits: Mapping[str, Bits]) -> list[Bits]:
        """Answer chains with one conversion after another, all in one function."""
        paths, arrays = [], []
        for chain, own in zip(company.chains, bits.values(), strict=True):
            for step in chain.steps:
                require_plain(step, FUNCTIONS["convert"])
            paths.append([self._roads.dtype(step.target) for step in chain.steps])
            arrays.append(self._roads.on_device(own.view(self._roads.dtype(chain.source))))
        ends = ends_of(self._jax, company.road, paths, arrays)
        found = zip(company.chains, ends, strict=True)
        return [_codes(chain.target, end).copy() for chain, end in found]

    def bitcast(self, case: Case, bits: Bits) -> Bits:
        """Answer a case with one bitcast, in the shape that XLA gives it."""
        require_plain(case, FUNCTIONS["bitcast_convert"])
        return self._answer(Request("bitcast_convert", case.source, case.target, bits.shape), bits)

    def bitcast_road(self, case: Case) -> str:
        """Return the pair: a bitcast has no parameters besides the tensor's own shape."""
        return plain_road(case, FUNCTIONS["bitcast_convert"])

    def road(self, case: Case) -> str:
        """Return the pair, with the function or the precision if it is no plain conversion."""
        request = self._request(case, ())
        for dtype in (case.source, case.target):
            self._roads.dtype(dtype)
        by = ", astype" if request.operation == "astype" else ""
        by += f", {request.precision}" if request.precision else ""
        return f"{case.source}->{case.target}{by}"

    def bind(self, case: Case, bits: Bits) -> Bound:
        """Prepare a call that passes jax ``bits`` and returns the answer in jax's memory."""
        self.road(case)  # refuses what ``cast`` refuses, for the same reason
        if case.source == case.target:
            # jax returns an array of the same dtype itself, so the answer could share its memory.
            return partial(self.cast, case, bits)
        request = self._request(case, bits.shape)
        function = self._roads.function(request)
        return partial(self._run, function, case.target, bits.view(self._roads.dtype(case.source)))

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Send bits through an array of the dtype and, in a variant, a program that returns it."""
        return self._answer(Request(None, dtype, dtype, bits.shape), bits)

    def reproduce(self, case: Case, bits: Bits) -> str:
        """Return a script that runs the case on jax, without this project."""
        self.road(case)
        script = self._script(self._request(case, bits.shape), case, bits)
        return script + print_statement(case.source, case.target, bits)

    def reproduce_call(self, case: Case, call: Call, bits: Mapping[str, Bits]) -> str:
        """Return a script that makes a call, without this project."""
        return SYNTAX.call_script(self.version, case, call, bits)

    def reproduce_bitcast(self, case: Case, bits: Bits) -> str:
        """Return a script that does a bitcast on jax, without this project."""
        for dtype in (case.source, case.target):
            self._roads.dtype(dtype)
        request = Request("bitcast_convert", case.source, case.target, bits.shape)
        return self._script(request, case, bits) + print_tensor(case.target)

    def reproduce_chains(self, case: Case, company: Company, bits: Mapping[str, Bits]) -> str:
        """Return a script that makes one chain by jax, without this project."""
        [chain], [own] = company.chains, [*bits.values()]
        statement = chain_statement(company.road, [DTYPES[each.target] for each in chain.steps])
        ends = replace(case, target=chain.target)
        script = self._around(statement, f"{chain.id} on {company.road}", ends, own)
        return script + print_statement(chain.source, chain.target, own)

    def _script(self, request: Request, case: Case, bits: Bits) -> str:
        """Return a script up to the statement that binds ``answers``."""
        assert request.operation is not None
        widths = widths_of(request.precision) if request.precision else ()
        is_folded_bitcast = (self._variant, request.operation) == ("folded", "bitcast_convert")
        template = FOLDED_BITCAST if is_folded_bitcast else CAST_STATEMENTS[self._variant]
        statement = template.format(
            function=FUNCTIONS[request.operation],
            arguments=", ".join(map(str, widths)) or f"jnp.{DTYPES[case.target]}",
            program=request.program(),
        )
        return self._around(statement, str(case), case, bits)

    def _around(self, statement: str, asked: str, case: Case, bits: Bits) -> str:
        """Return a script around the statement that computes y from x."""
        device = f', jax.devices("{self._device}")[0]' if self._device else ""
        return (
            HEADER.format(version=self.version, case=asked, platforms="" if self._device else "cpu")
            + f"{bits_statement(case.source, bits)}\n"
            + f"x = jax.device_put(bits.view(jnp.{DTYPES[case.source]}){device})\n"
            + statement
            + f'answers = np.asarray(y).view("{format_named(case.target).storage}")'
            + f"{mask_expression(case.target)}\n"
        )

    def _answer(self, request: Request, bits: Bits) -> Bits:
        self._roads.dtype(request.target)
        x = bits.view(self._roads.dtype(request.source))
        return self._run(self._roads.function(request), request.target, x).copy()

    def _run(self, function: Function, target: str, x: Any) -> Bits:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a complex source warns about its discarded part
            y = function(self._roads.on_device(x))
        return _codes(target, y)


def _standard_claims(jax: Any, variant: str | None) -> tuple[str, ...]:
    """Return the claims of the array API standard that jax.numpy makes and a variant supports."""
    lacking = {None: (), "stablehlo": (CASTS, CALLS)}.get(variant, (CALLS,))
    declared = standard_claims(jax.numpy.__array_api_version__)
    return tuple(each for each in declared if each.partition(":")[0] not in lacking)


def _codes(target: str, y: Any) -> Bits:
    entry = format_named(target)
    codes: Bits = np.asarray(y).view(entry.storage)
    # numpy returns a scalar for an array of rank 0.
    return np.asarray(codes & np.uint8(entry.mask)) if is_packed(entry) else codes


@dataclass(frozen=True)
class Request:
    """One operation on arrays of one dtype and shape; without an operation, the array itself."""

    operation: Asked | None
    source: str
    target: str
    shape: Shape
    precision: str | None = None

    def program(self) -> str:
        """Return the request as a StableHLO program; empty if StableHLO lacks the operation."""
        if self.operation == "astype":
            return ""
        return program(self.operation, self.source, self.target, self.shape, self.precision)


class Roads:
    """Builds functions from a device array to a device array, by one variant's road."""

    def __init__(self, jax: Any, variant: str | None, device: str | None) -> None:
        self._jax = jax
        if device is None:
            # Do not let a GPU answer for the CPU, and do not even look for one.
            jax.config.update("jax_platforms", "cpu")
        # Removing frames of jax from the traceback of a refusal takes fifteen times as long.
        jax.config.update("jax_traceback_filtering", "off")
        # By default jax silently narrows 64-bit types.
        jax.config.update("jax_enable_x64", True)
        if variant in KEEPING:
            _keep_executables(jax)
        self._device = _first_device(jax, device or "cpu")
        roads: dict[str | None, Callable[[Request], Function]] = {
            None: self._eager,
            "jit": self._jitted,
            "folded": lambda request: partial(self._folded, request),
            "stablehlo": self._from_stablehlo,
            "gpu": self._eager,
        }
        # An executable serves one shape, and takes some 10 ms to compile.
        self.function = lru_cache(CACHED_FUNCTIONS)(roads[variant])

    def dtype(self, dtype: str) -> np.dtype[Any]:
        """Return the numpy dtype of jax's dtype; raise Unsupported if jax has none."""
        try:
            scalar_type: Any = getattr(self._jax.numpy, DTYPES[dtype])
        except (KeyError, AttributeError):
            raise Unsupported(f"jax has no dtype {dtype}") from None
        found: np.dtype[Any] = np.dtype(scalar_type)
        return found

    def on_device(self, array: Any) -> Any:
        """Return a device array of numpy's bits, in numpy's memory if that is aligned."""
        return self._jax.device_put(array, self._device)

    def _eager(self, request: Request) -> Function:
        if request.operation is None:
            return lambda x: x
        function = attrgetter(FUNCTIONS[request.operation])(self._jax)
        dtype = self.dtype(request.target)
        if request.operation == "astype":
            return lambda x: function(x, dtype)  # its parameters have no keywords
        if request.precision is not None:
            exponent, mantissa = widths_of(request.precision)
            return partial(function, exponent_bits=exponent, mantissa_bits=mantissa)
        return partial(function, new_dtype=dtype)

    def _jitted(self, request: Request) -> Function:
        function: Function = self._jax.jit(self._eager(request))
        return function

    def _folded(self, request: Request, x: Any) -> Any:
        function = self._eager(request)
        # XLA turns a vector that counts from 0 into an iota and computes with it instead of
        # folding; it does not for one more dimension. A bitcast depends on the shape: leave it.
        adds_dimension = request.operation != "bitcast_convert"
        constant = self.on_device(np.asarray(x)[None]) if adds_dimension else x
        with _kept_from(self._jax, NEVER):
            compiled = self._jax.jit(lambda: function(constant)).lower().compile()
        left = COMPUTED.search(compiled.as_text())
        if left:
            raise Unsupported(f"XLA did not fold this at compile time, but left a {left[1]}")
        return np.asarray(compiled())[0] if adds_dimension else compiled()

    def _from_stablehlo(self, request: Request) -> Function:
        assert request.operation != "astype"
        executable = self._device.client.compile_and_load(request.program(), [self._device])
        return lambda x: executable.execute([x])[0]


def _keep_executables(jax: Any) -> None:
    """Have jax cache executables in a folder for this processor, by program and versions."""
    jax.config.update("jax_compilation_cache_dir", str(cache_folder("jax") / _processor()))
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    jax.config.update(KEPT_FROM, 0)


def _processor() -> str:
    """A digest of the processor and its instructions: machines may share a home folder."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    instructions = {line for line in lines if line.startswith(PROCESSOR_LINES)}
    named = [platform.machine(), platform.processor(), *sorted(instructions)]
    return sha256("\n".join(named).encode()).hexdigest()[:16]


@contextmanager
def _kept_from(jax: Any, seconds: float) -> Iterator[None]:
    """Within the context, cache only executables that take at least ``seconds`` to compile."""
    before = getattr(jax.config, KEPT_FROM)
    jax.config.update(KEPT_FROM, seconds)
    try:
        yield
    finally:
        jax.config.update(KEPT_FROM, before)


def _first_device(jax: Any, backend: str) -> Any:
    """Return a backend's first device; raise Unsupported, with what to do, if jax has none."""
    try:
        return jax.local_devices(backend=backend)[0]
    except RuntimeError:
        raise Unsupported(
            f"jax {jax.__version__} sees no {backend.upper()} device; ask `jax`, or install a jax "
            "that is built for the device (https://docs.jax.dev/en/latest/installation.html)"
        ) from None


HEADER = """\
# jax {version}: {case}
import os

os.environ |= {{"JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "{platforms}", "NPROC": "1"}}

import jax
import jax.numpy as jnp
import numpy as np

"""

SYNTAX = NamespaceSyntax(
    HEADER.replace("{platforms}", "cpu"),
    "jnp",
    "jax.device_put(bits.view(jnp.{0}))",
    "np.asarray({0})",
)

CAST_STATEMENTS: Mapping[str | None, str] = {
    None: "y = jax.{function}(x, {arguments})\n",
    "gpu": "y = jax.{function}(x, {arguments})\n",
    "jit": "y = jax.jit(lambda x: jax.{function}(x, {arguments}))(x)\n",
    "folded": """\
row = jax.device_put(np.asarray(x)[None])  # a vector that counts from 0 would become an iota
y = np.asarray(jax.jit(lambda: jax.{function}(row, {arguments}))())[0]
""",
    "stablehlo": '''\
program = """
{program}"""
(device, *_) = jax.local_devices()
(y,) = device.client.compile_and_load(program, [device]).execute([x])
''',
}

FOLDED_BITCAST = "y = jax.jit(lambda: jax.{function}(x, {arguments}))()\n"
"""A bitcast depends on the shape, so the constant keeps its own."""
