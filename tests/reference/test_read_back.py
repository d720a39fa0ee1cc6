"""The short cut by one double accepts no text that the exact definition rejects."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.reference.exact_text import reads_back
from oracles.reference.kernel_text import surely_reads_back
from specs.formats import format_named

FLOATS = ("float16", "bfloat16", "float32", "float64", "float8e4m3fn", "float8e5m2fnuz")
INTEGERS = ("int8", "uint16", "int64")
NUMPY = {"float16": np.float16, "float32": np.float32}


@pytest.mark.parametrize("name", ["float16", "float32"])
def test_exact_texts_read_back_surely(name: str) -> None:
    source, kind = format_named(name), NUMPY[name]
    codes = np.linspace(1, source.max_code - 1, 500).astype(source.storage)
    for code, value in zip(codes.tolist(), codes.view(kind), strict=True):
        assert surely_reads_back(source, code, str(float(value))), (name, hex(code))
        assert surely_reads_back(source, code | source.sign_bit, f"-{float(value)}")


@given(st.sampled_from(FLOATS), st.integers(0), st.integers(-3, 3), st.integers(0, 60))
def test_what_is_sure_is_true(name: str, number: int, beside: int, digits: int) -> None:
    source = format_named(name)
    code = number % (source.max_code + 1)
    text = f"{middle_of(name, code) + beside * 10.0**-digits:.{digits}f}"
    if surely_reads_back(source, code, text):
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
        if surely_reads_back(source, code, text):
            assert reads_back(source, code, text)
    assert surely_reads_back(source, code, str(value))


@pytest.mark.parametrize("text", ["1_0", " 1", "1e", ".", "inf", "nan", "0x1", "\u0661"])
def test_what_is_no_number_is_never_sure(text: str) -> None:
    source = format_named("float16")
    assert not any(surely_reads_back(source, code, text) for code in range(0, 1 << 16, 7))
