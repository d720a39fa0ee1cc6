"""torch's text on `Tensor.to`: which values it requires, which it implies, which it leaves open."""

from __future__ import annotations

import pytest

from conformance.families.cast.explanation import explain
from conformance.families.family import WrittenQuestion
from specs.selection import case_named

REQUIRED, IMPLIED, OPEN = "required", "recommended", "unspecified"


@pytest.mark.parametrize(
    ("pair", "value", "level", "allowed"),
    [
        # The fraction is cut.
        ("float32/int32", "1.5", REQUIRED, ["0x00000001"]),
        ("float32/int32", "-1.5", REQUIRED, ["0xffffffff"]),
        ("float32/int64", "42.8", REQUIRED, ["0x000000000000002a"]),
        ("float8e5m2/int32", "1.5", REQUIRED, ["0x00000001"]),
        # What is cut must fit, not what is given.
        ("float32/uint8", "-0.5", REQUIRED, ["0x00"]),
        ("float32/int8", "127.5", REQUIRED, ["0x7f"]),
        ("float32/int8", "-128.75", REQUIRED, ["0x80"]),
        ("float32/int8", "128", OPEN, "anything"),
        ("float32/int8", "-129", OPEN, "anything"),
        ("float32/uint8", "-1", OPEN, "anything"),
        ("float32/int32", "3e9", OPEN, "anything"),
        ("float32/int32", "nan", OPEN, "anything"),
        ("float32/int64", "inf", OPEN, "anything"),
        ("float32/int64", "-inf", OPEN, "anything"),
        # A value that the target has is kept.
        ("int64/int32", "3", REQUIRED, ["0x00000003"]),
        ("float64/float16", "1.5", REQUIRED, ["0x3e00"]),
        # The C++ rules that the text cites.
        ("int32/int8", "129", IMPLIED, ["0x81"]),
        ("bool/float16", "true", IMPLIED, ["0x3c00"]),
        ("float32/bool", "0.5", IMPLIED, ["0x1"]),
        ("float32/bool", "nan", IMPLIED, ["0x1"]),
        ("float32/float16", "inf", IMPLIED, ["0x7c00"]),
        ("float32/float16", "0.1", IMPLIED, ["0x2e66", "0x2e67"]),
        ("float32/float16", "65519", OPEN, "anything"),
        ("float32/float8e4m3fn", "inf", OPEN, "anything"),
        ("float32/float16", "nan", OPEN, "anything"),
    ],
)
def test_a_value_has_the_level_of_what_the_text_says(
    pair: str, value: str, level: str, allowed: object
) -> None:
    explained = explain(
        case_named(f"torch-tensor-to:2.13/{pair}/form:dtype"), WrittenQuestion([value])
    ).told
    assert (explained["level"], explained["allowed"]) == (level, allowed)
