"""WebAssembly modules that convert values in their memory, one module for each instruction.

A module exports its memory and ``run(count, from, to)``, a loop that loads, converts and stores.
For 32-bit sources it also exports ``sweep(count, first, to)``, which generates the patterns itself.
The modules are written here in the binary format, so that every runtime gets the same ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from oracles.adapters.refusals import require_plain
from oracles.protocol import Unsupported
from specs.cases import Case
from specs.formats import format_named

Types = tuple[str, ...]
OPERATOR, PROFILE = "operator", "profile"
FULL, DETERMINISTIC = "full", "deterministic"

TYPES: Mapping[str, str] = {
    "int32": "i32",
    "uint32": "i32",
    "int64": "i64",
    "uint64": "i64",
    "float32": "f32",
    "float64": "f64",
}
"""By dtype, the WebAssembly type of its values."""
LOW_PARTS: Mapping[str, int] = {"int8": 8, "int16": 16}
"""The dtypes that are stored in the low bits of an integer, with their numbers of bits."""
ABOVE = 0x5A5A_5A5A
"""The bits of an integer above its low part, which an extension must not read."""

TYPE_CODES: Mapping[str, int] = {"i32": 0x7F, "i64": 0x7E, "f32": 0x7D, "f64": 0x7C}
SINGLE_BYTES = """
i32.load=28 i64.load=29 f32.load=2a f64.load=2b i32.load8_u=2d i32.load16_u=2f
i64.load8_u=31 i64.load16_u=33 i32.store=36 i64.store=37 f32.store=38 f64.store=39
i32.store8=3a i32.store16=3b
i32.or=72 i64.or=84 i32.wrap_i64=a7
i32.trunc_f32_s=a8 i32.trunc_f32_u=a9 i32.trunc_f64_s=aa i32.trunc_f64_u=ab
i64.extend_i32_s=ac i64.extend_i32_u=ad
i64.trunc_f32_s=ae i64.trunc_f32_u=af i64.trunc_f64_s=b0 i64.trunc_f64_u=b1
f32.convert_i32_s=b2 f32.convert_i32_u=b3 f32.convert_i64_s=b4 f32.convert_i64_u=b5
f32.demote_f64=b6
f64.convert_i32_s=b7 f64.convert_i32_u=b8 f64.convert_i64_s=b9 f64.convert_i64_u=ba
f64.promote_f32=bb
i32.reinterpret_f32=bc i64.reinterpret_f64=bd f32.reinterpret_i32=be f64.reinterpret_i64=bf
i32.extend8_s=c0 i32.extend16_s=c1 i64.extend8_s=c2 i64.extend16_s=c3
"""
SATURATING = (
    *("i32.trunc_sat_f32_s", "i32.trunc_sat_f32_u", "i32.trunc_sat_f64_s", "i32.trunc_sat_f64_u"),
    *("i64.trunc_sat_f32_s", "i64.trunc_sat_f32_u", "i64.trunc_sat_f64_s", "i64.trunc_sat_f64_u"),
)
"""The instructions behind the prefix 0xfc, in the order of their numbers."""
OPCODES: Mapping[str, bytes] = {
    name: bytes.fromhex(code) for name, code in (entry.split("=") for entry in SINGLE_BYTES.split())
} | {name: bytes([0xFC, number]) for number, name in enumerate(SATURATING)}
CONSTANTS: Mapping[str, int] = {"i32": 0x41, "i64": 0x42}
BLOCK, LOOP, END, BRANCH, BRANCH_IF = 0x02, 0x03, 0x0B, 0x0C, 0x0D
GET, SET, IS_ZERO, ADD, EMPTY, FUNCTION = 0x20, 0x21, 0x45, 0x6A, 0x40, 0x60
PAGE = 1 << 16
"""Bytes of a page, by which memory grows."""
ALIGNMENT = 16
SWEPT_SIZE = 4
"""The size in bytes of the sources whose patterns a module can generate itself."""
COUNT, FROM, TO = 0, 1, 2
"""The parameters of ``run`` and ``sweep``; in ``sweep``, ``FROM`` is the first pattern."""


class TrapError(ArithmeticError):
    """Raised when a runtime traps on an input; the message is the runtime's."""


@dataclass(frozen=True)
class Conversion:
    """A conversion between two dtypes: the instructions between a load and a store.

    ``name`` is the instruction that converts; it is empty where the bits only move.
    """

    source: str
    target: str
    name: str = ""

    @property
    def road(self) -> str:
        """The pair of dtypes and the instruction, empty where the bits only move, as text."""
        return f"{self.source}->{self.target}, {self.name}"

    @property
    def type(self) -> str:
        """The WebAssembly type of the value that the instruction converts."""
        if self.source in LOW_PARTS:
            return TYPES.get(self.target, "i32")
        return TYPES[self.source]

    @property
    def integer_type(self) -> str:
        """The WebAssembly integer type that holds a pattern of the source."""
        return self.type.replace("f", "i")

    @property
    def instructions(self) -> tuple[str, ...]:
        """The instructions, as text, that convert the value on the stack; none if bits only move.

        For a source in the low part of an integer they first set the bits above it.
        """
        if self.name and self.source in LOW_PARTS:
            above = ABOVE >> LOW_PARTS[self.source] << LOW_PARTS[self.source]
            return f"{self.type}.const {above:#x}", f"{self.type}.or", self.name
        return (self.name,) if self.name else ()

    @cached_property
    def binary(self) -> bytes:
        """The module with ``run`` and, for 32-bit sources, ``sweep``, in the binary format."""
        load = [f"{self.type}.load"]
        if self.source in LOW_PARTS:
            load = [f"{self.type}.load{LOW_PARTS[self.source]}_u"]
        loops = {"run": _loop(self, _encoded(load), self.source_size)}
        if self.source_size == SWEPT_SIZE:
            loops["sweep"] = _loop(self, _encoded(self._from_pattern), 1)
        return _module(loops, ("i32", "i32", "i32"), (), has_memory=True)

    @property
    def function(self) -> bytes:
        """A binary module with a function ``f`` from a source pattern to a target pattern."""
        body = bytes([0, GET, 0]) + _encoded(self._between_patterns) + bytes([END])
        results = (TYPES[self.target].replace("f", "i"),)
        return _module({"f": body}, (self.integer_type,), results, has_memory=False)

    @property
    def text(self) -> str:
        """The module of ``function`` in the text format."""
        result = TYPES[self.target].replace("f", "i")
        head = f'(module (func (export "f") (param {self.integer_type}) (result {result})'
        return f"{head}\n  local.get 0  {'  '.join(self._between_patterns)}))"

    @property
    def _between_patterns(self) -> tuple[str, ...]:
        """The instructions that convert a source pattern on the stack to one of the target."""
        result = TYPES[self.target]
        integer = result.replace("f", "i")
        last = (f"{integer}.reinterpret_{result}",) if result != integer else ()
        return (*self._from_pattern, *self.instructions, *last)

    @property
    def source_size(self) -> int:
        """The number of bytes of an input."""
        return np.dtype(format_named(self.source).storage).itemsize

    @property
    def target_size(self) -> int:
        """The number of bytes of an answer."""
        return np.dtype(format_named(self.target).storage).itemsize

    @property
    def store(self) -> str:
        """The instruction that stores an answer."""
        if self.target in LOW_PARTS:
            return f"i32.store{LOW_PARTS[self.target]}"
        return f"{TYPES[self.target]}.store"

    @property
    def _from_pattern(self) -> tuple[str, ...]:
        """The instructions that turn a pattern on the stack into a value."""
        is_float = self.type.startswith("f")
        return (f"{self.type}.reinterpret_{self.integer_type}",) if is_float else ()


def cast_operation(case: Case, profiles: Iterable[str]) -> Conversion:
    """Return the conversion of a case; raise Unsupported if no instruction does it.

    A case without an operator gets ``trunc_sat``, which never traps, and one without a profile
    `full`. Unsupported is also raised for a profile that ``profiles`` lacks, and for other modes
    that ``require_plain`` refuses.
    """
    own = {OPERATOR: "trunc_sat", PROFILE: FULL} | dict(case.modes)
    others = tuple((name, word) for name, word in case.modes if name not in (OPERATOR, PROFILE))
    require_plain(replace(case, modes=others), "a conversion")
    operator, profile = own[OPERATOR], own[PROFILE]
    if profile not in profiles:
        raise Unsupported(f"its NaNs are not those of the {profile} profile")
    name = _instruction(case.source, case.target, operator)
    if name not in OPCODES:
        raise Unsupported(f"WebAssembly has no instruction from {case.source} to {case.target}")
    return Conversion(case.source, case.target, name)


def _instruction(source: str, target: str, operator: str) -> str:
    """Return the name that an instruction from source to target has, if there is one.

    ``operator``, ``trunc`` or ``trunc_sat``, is for floats to integers alone. Raises Unsupported if
    WebAssembly has no values of a dtype.
    """
    for dtype in (source, target):
        if dtype not in TYPES and (dtype == target or dtype not in LOW_PARTS):
            raise Unsupported(f"WebAssembly has no values of {dtype}")
    to = TYPES[target]
    if source in LOW_PARTS:
        return f"{to}.extend{LOW_PARTS[source]}_s"
    of = TYPES[source]
    match of[0], to[0]:
        case "i", "i":
            return f"{to}.wrap_{of}" if to == "i32" else f"{to}.extend_{of}_{_sign(source)}"
        case "i", "f":
            return f"{to}.convert_{of}_{_sign(source)}"
        case "f", "i":
            return f"{to}.{operator}_{of}_{_sign(target)}"
        case _:
            return f"{to}.{'promote' if to == 'f64' else 'demote'}_{of}"


def _sign(dtype: str) -> str:
    return "u" if dtype.startswith("u") else "s"


def bitcast_operation(case: Case) -> Conversion:
    """Return a case's bitcast; raise Unsupported for a pair that WebAssembly lacks.

    Dtypes of the same WebAssembly type need no instruction: the bits only move. Unsupported is also
    raised for modes that ``require_plain`` refuses.
    """
    require_plain(case, "reinterpret")
    for dtype in (case.source, case.target):
        if dtype not in TYPES:
            raise Unsupported(f"WebAssembly has no values of {dtype}")
    of, to = TYPES[case.source], TYPES[case.target]
    if of == to:
        return Conversion(case.source, case.target)
    name = f"{to}.reinterpret_{of}"
    if name not in OPCODES:
        raise Unsupported(f"WebAssembly has no instruction {name}")
    return Conversion(case.source, case.target, name)


def answers_begin(operation: Conversion, count: int) -> int:
    """Return the address of the answers, the first aligned one after ``count`` inputs."""
    return -(-count * operation.source_size // ALIGNMENT) * ALIGNMENT


def copy_operation(dtype: str) -> Conversion:
    """Return the conversion that only moves a dtype's values.

    Raises Unsupported if WebAssembly has no values of the dtype.
    """
    if dtype not in TYPES and dtype not in LOW_PARTS:
        raise Unsupported(f"WebAssembly has no values of {dtype}")
    return Conversion(dtype, dtype)


def _loop(operation: Conversion, load: bytes, step: int) -> bytes:
    """Return the body of a function that converts and stores inputs, which it loads or generates.

    ``load`` has the encoded instructions that get an input; ``step`` is added to ``FROM`` after
    each.
    """
    store = _encoded((*operation.instructions, operation.store))
    # FROM is an address to load from in ``run``, and the pattern itself in ``sweep``.
    element = bytes([GET, TO, GET, FROM]) + load + store
    steps = b"".join(
        bytes([GET, place, CONSTANTS["i32"], *_signed(by), ADD, SET, place])
        for place, by in ((FROM, step), (TO, operation.target_size), (COUNT, -1))
    )
    ends = bytes([GET, COUNT, IS_ZERO, BRANCH_IF, 1])
    inside = ends + element + steps + bytes([BRANCH, 0, END, END])
    return bytes([0, BLOCK, EMPTY, LOOP, EMPTY]) + inside + bytes([END])


def _encoded(instructions: Iterable[str]) -> bytes:
    """Return instructions, given as text, in the binary format; loads and stores have no offset."""
    return b"".join(map(_instruction_bytes, instructions))


def _instruction_bytes(text: str) -> bytes:
    name, _, operand = text.partition(" ")
    if operand:
        return bytes([CONSTANTS[name.removesuffix(".const")], *_signed(int(operand, 16))])
    reads_memory = ".load" in name or ".store" in name
    return OPCODES[name] + (bytes(2) if reads_memory else b"")


def _module(
    bodies: Mapping[str, bytes], parameters: Types, results: Types, *, has_memory: bool
) -> bytes:
    """Return a binary module that exports functions by name and, if ``has_memory``, a memory.

    ``bodies`` has the encoded functions by name. All take ``parameters`` and return ``results``,
    which are WebAssembly types.
    """
    codes = [bytes(TYPE_CODES[each] for each in types) for types in (parameters, results)]
    function_type = bytes([FUNCTION]) + b"".join(_unsigned(len(each)) + each for each in codes)
    exports = [_name(name) + bytes([0, at]) for at, name in enumerate(bodies)]
    exports += [_name("memory") + bytes([2, 0])] if has_memory else []
    sections = {
        1: _vector([function_type]),
        3: _vector([b"\0"] * len(bodies)),
        5: _vector([bytes([0, 1])]),
        7: _vector(exports),
        10: _vector([_unsigned(len(body)) + body for body in bodies.values()]),
    }
    if not has_memory:
        del sections[5]
    parts = (bytes([number]) + _unsigned(len(part)) + part for number, part in sections.items())
    return b"\0asm" + bytes([1, 0, 0, 0]) + b"".join(parts)


def _vector(items: Sequence[bytes]) -> bytes:
    return _unsigned(len(items)) + b"".join(items)


def _name(text: str) -> bytes:
    return _unsigned(len(text)) + text.encode()


def _unsigned(number: int) -> bytes:
    """Return a number in LEB128: seven bits a byte, the lowest first."""
    found = []
    while number >= 0x80:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def _signed(number: int) -> bytes:
    """Return a number in signed LEB128: the last byte's bit 6 is the sign."""
    found = []
    while not -0x40 <= number < 0x40:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number & 0x7F])
