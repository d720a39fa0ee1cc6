"""Cross-check with ml_dtypes: every pattern of each small float has the same value there.

ml_dtypes is no reference for these formats; test_formats.py checks them by their definitions.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from specs.formats import format_named, value_of

ml_dtypes: Any = pytest.importorskip("ml_dtypes")

NAMES_IN_ML_DTYPES = {
    "bfloat16": "bfloat16",
    "float8e4m3fn": "float8_e4m3fn",
    "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2",
    "float8e5m2fnuz": "float8_e5m2fnuz",
    "float8e4m3": "float8_e4m3",
    "float8e3m4": "float8_e3m4",
    "float8e4m3b11fnuz": "float8_e4m3b11fnuz",
    "float8e8m0": "float8_e8m0fnu",
    "float6e2m3": "float6_e2m3fn",
    "float6e3m2": "float6_e3m2fn",
    "float4e2m1": "float4_e2m1fn",
}


@pytest.mark.parametrize("name", NAMES_IN_ML_DTYPES)
def test_limits_equal_those_of_ml_dtypes(name: str) -> None:
    fmt = format_named(name)
    info = ml_dtypes.finfo(getattr(ml_dtypes, NAMES_IN_ML_DTYPES[name]))
    smallest = 0 if fmt.entry.zero == "none" else 1
    assert info.bits == fmt.bits
    assert Fraction(float(info.max)) == value_of(fmt, fmt.max_code)
    assert Fraction(float(info.smallest_subnormal)) == value_of(fmt, smallest)


@pytest.mark.parametrize("name", NAMES_IN_ML_DTYPES)
def test_every_pattern_has_the_same_value_in_ml_dtypes(name: str) -> None:
    fmt = format_named(name)
    patterns = np.arange(fmt.mask + 1, dtype=fmt.storage)
    with np.errstate(invalid="ignore"):  # numpy warns of signalling NaNs
        values = patterns.view(getattr(ml_dtypes, NAMES_IN_ML_DTYPES[name])).astype(np.float64)
    for code, value in enumerate(values.tolist()):
        if any(code in codes for codes in fmt.nan_codes):
            assert np.isnan(value)
        elif np.isinf(value):
            assert fmt.entry.infinity
            assert code & ~fmt.sign_bit == fmt.infinity_code
        else:
            assert Fraction(value) == value_of(fmt, code)
