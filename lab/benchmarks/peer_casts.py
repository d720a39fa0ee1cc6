"""Casts by other libraries and by this project, each as a function from patterns to patterns.

All casts are from float32. A ``Target`` holds what a peer needs to know of the target format.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from conformance.families.reference import Reference
from oracles.protocol import Bits
from oracles.reference import expect_by_exact
from oracles.reference.compiled_kernels import compiled
from oracles.reference.expectations import Expected
from specs.branches import Ruling
from specs.cases import Case
from specs.formats import Format, format_named
from specs.outcomes import Nan
from specs.ruling import ruling
from specs.selection import case_named

Cast = Callable[[Bits], Bits]


@dataclass(frozen=True)
class Target:
    """A cast that every peer supports: numbers that overflow become infinity, or NaN."""

    case: Case
    gfloat: str

    @property
    def rules(self) -> Ruling:
        """The rules of the case."""
        return ruling(self.case)

    @property
    def format(self) -> Format:
        """The target's format."""
        return format_named(self.case.target)


@dataclass(frozen=True)
class Peer:
    """One implementation of the casts; ``make`` raises ImportError if its package is missing.

    ``answers`` is false for a peer that does only a part of the work and returns no answers.
    """

    name: str
    make: Callable[[Target], Cast]
    answers: bool = True


def targets() -> list[Target]:
    """The casts that are timed."""
    return [
        Target(case_named("onnx-cast:25/float32/float16"), "format_info_binary16"),
        Target(case_named("onnx-cast:25/float32/float8e4m3fn/saturate:0"), "format_info_ocp_e4m3"),
    ]


def _exact(target: Target) -> Cast:
    rules = target.rules
    return lambda bits: _with_nan(rules, expect_by_exact.expect(rules, bits))


def _kernels(target: Target) -> Cast:
    return partial(Reference().cast, target.case)


def _compiled(target: Target) -> Cast:
    made = compiled(target.rules)
    return lambda bits: _with_nan(target.rules, made.expect(bits))


def _with_nan(rules: Ruling, expected: Expected) -> Bits:
    """Return the expected patterns, with one fixed NaN where any NaN is allowed."""
    for place, branch in enumerate(rules.branches):
        if isinstance(branch.outcome, Nan):
            code = rules.target.nans(branch.outcome.sign)[0][-1]
            expected.codes[expected.branch_indices == place] = code
    return expected.codes


def _gfloat_arrays(target: Target) -> Cast:
    gfloat, info = _gfloat(target)

    @np.errstate(over="ignore")  # what overflows in its arrays is not chosen in the end
    def cast(bits: Bits) -> Bits:
        rounded = gfloat.round_ndarray(info, bits.view(np.float32))
        codes: Bits = gfloat.encode_ndarray(info, rounded)
        return codes.astype(target.format.storage)

    return cast


def _gfloat_numbers(target: Target) -> Cast:
    gfloat, info = _gfloat(target)

    def cast(bits: Bits) -> Bits:
        values = bits.view(np.float32).tolist()
        codes = [gfloat.encode_float(info, gfloat.round_float(info, value)) for value in values]
        return np.array(codes, target.format.storage)

    return cast


def _gfloat(target: Target) -> tuple[Any, Any]:
    formats = importlib.import_module("gfloat.formats")
    return importlib.import_module("gfloat"), getattr(formats, target.gfloat)


def _mpfr(target: Target) -> Cast:
    gmpy2, context = _gmpy2(target)
    encode = partial(_code, gmpy2, target.format)

    def cast(bits: Bits) -> Bits:
        with gmpy2.context(context):
            values = bits.view(np.float32).tolist()
            codes = [encode(gmpy2.mpfr(value)) for value in values]
        return np.array(codes, target.format.storage)

    return cast


def _mpfr_rounding(target: Target) -> Cast:
    gmpy2, context = _gmpy2(target)

    def cast(bits: Bits) -> Bits:
        with gmpy2.context(context):
            for value in bits.view(np.float32).tolist():
                gmpy2.mpfr(value)
        return bits

    return cast


def _gmpy2(target: Target) -> tuple[Any, Any]:
    """Return gmpy2 and a context with a format's precision and exponents.

    MPFR's significands lie between 1/2 and 1.
    """
    gmpy2: Any = importlib.import_module("gmpy2")
    entry, precision = target.format.entry, target.format.precision
    largest = target.format.max_code >> entry.mantissa
    context = gmpy2.context(
        precision=precision,
        emin=target.format.lowest_exponent - precision + 2,
        emax=largest - entry.bias + 1,
        subnormalize=True,
    )
    return gmpy2, context


def _code(gmpy2: Any, target: Format, number: Any) -> int:
    """The pattern of a number that MPFR has rounded; MPFR's NaN has neither sign nor payload."""
    if gmpy2.is_nan(number):
        return target.nan_codes[0][-1]
    sign: int = target.sign_bit if gmpy2.is_signed(number) else 0
    if gmpy2.is_infinite(number):
        above = target.infinity_code if target.entry.infinity else target.nan_codes[0][-1]
        return sign | above
    if not number:
        return sign
    multiple, exponent = number.as_mantissa_exp()
    magnitude: int = abs(int(multiple))
    # The exponent is brought to that of the number's last bit in its format. Where the leading bit
    # is set it adds one to the exponent's field, so that field counts from 0 again.
    leading = magnitude.bit_length() - 1 + exponent
    field: int = max(leading - target.lowest_exponent, 0)
    shift = exponent - (target.lowest_exponent + field - target.entry.mantissa)
    magnitude = magnitude << shift if shift >= 0 else magnitude >> -shift
    return sign | ((field << target.entry.mantissa) + magnitude)


PEERS = (
    Peer("this project, exact: one at a time", _exact),
    Peer("this project, kernels: numpy", _kernels),
    Peer("this project, kernels: compiled", _compiled),
    Peer("gfloat, arrays", _gfloat_arrays),
    Peer("gfloat, one at a time", _gfloat_numbers),
    Peer("MPFR by gmpy2, one at a time", _mpfr),
    Peer("MPFR by gmpy2, not encoded", _mpfr_rounding, answers=False),
)
