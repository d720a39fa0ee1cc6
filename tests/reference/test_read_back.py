"""The short cut by one double accepts no text that the exact definition rejects."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.reference.exact import Number, decode
from oracles.reference.exact_text import reads_back
from oracles.reference.kernel_text import finite_doubles, surely_read_back
from specs.formats import Format, format_named

FLOATS = ("float16", "bfloat16", "float32", "float64", "float8e4m3fn", "float8e5m2fnuz")
PATTERNS = 300
INTEGERS = ("int8", "uint16", "int64")
NUMPY = {"float16": np.float16, "float32": np.float32}


def is_sure(source: Format, code: int, text: str) -> bool:
    codes, texts = np.array([code], source.storage), np.array([text], object)
    return bool(surely_read_back(source, codes, texts)[0])


@pytest.mark.parametrize("name", ["float16", "float32"])
def test_exact_texts_read_back_surely(name: str) -> None:
    source, kind = format_named(name), NUMPY[name]
    codes = np.linspace(1, source.max_code - 1, 500).astype(source.storage)
    texts = np.array([str(float(value)) for value in codes.view(kind)], object)
    assert surely_read_back(source, codes, texts).all()
    assert surely_read_back(source, codes | codes.dtype.type(source.sign_bit), "-" + texts).all()


@given(st.sampled_from(FLOATS), st.integers(0), st.integers(-3, 3), st.integers(0, 60))
def test_what_is_sure_is_true(name: str, number: int, beside: int, digits: int) -> None:
    source = format_named(name)
    code = number % (source.max_code + 1)
    text = f"{middle_of(name, code) + beside * 10.0**-digits:.{digits}f}"
    if is_sure(source, code, text):
        assert reads_back(source, code, text), (name, hex(code), text)


def middle_of(name: str, code: int) -> float:
    """The value of a pattern, read as a normal number even if it is subnormal."""
    source = format_named(name)
    exponent, mantissa = divmod(code, 1 << source.entry.mantissa)
    return float(np.ldexp(1 + mantissa / 2**source.entry.mantissa, exponent - source.entry.bias))


@given(st.sampled_from(INTEGERS), st.integers(0), st.integers(-1, 1))
def test_integers_read_back_exactly(name: str, number: int, beside: int) -> None:
    source = format_named(name)
    code = number % (source.mask + 1)
    value = code - (source.mask + 1) if code & source.sign_bit else code
    for text in (str(value + beside), f"{value + beside}.0", f"{value}_0"):
        if is_sure(source, code, text):
            assert reads_back(source, code, text)
    assert is_sure(source, code, str(value))


@pytest.mark.parametrize("text", ["1_0", " 1", "1e", ".", "inf", "nan", "0x1", "\u0661"])
def test_what_is_no_number_is_never_sure(text: str) -> None:
    source = format_named("float16")
    codes = np.arange(0, 1 << 16, 7).astype(source.storage)
    assert not surely_read_back(source, codes, np.full(codes.shape, text, object)).any()


@pytest.mark.parametrize("name", [*FLOATS, *INTEGERS, "float8e8m0", "float4e2m1", "uint64", "int4"])
def test_doubles_are_the_values_of_the_definition(name: str) -> None:
    source = format_named(name)
    codes = np.random.default_rng(0).integers(0, source.mask, PATTERNS, np.uint64, endpoint=True)
    codes[:8] = np.arange(8, dtype=np.uint64)
    codes = np.append(codes & np.uint64(source.mask), np.uint64(source.mask)).astype(source.storage)
    for code, found in zip(codes.tolist(), finite_doubles(source, codes).tolist(), strict=True):
        datum = decode(source, code)
        if isinstance(datum, Number):
            exact = Fraction(datum.significand) * Fraction(2) ** datum.exponent
            wanted = float(-exact if datum.sign else exact)
            assert (found, np.signbit(found)) == (wanted, bool(datum.sign)), hex(code)
        else:
            assert np.isnan(found), hex(code)
