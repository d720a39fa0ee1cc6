"""Faults of special values: one class of inputs, or of answers, is given another answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from lab.mutants.fault import Fault, Mask, Row
from oracles.protocol import Bits
from specs.formats import Format

UNEXPLAINED = "unexplained"


def faults() -> Iterator[Fault]:
    """Yield a fault for each class of special values and each answer in its place."""
    for class_name, (selects, occurs) in CLASSES.items():
        for word, (code, has, causes) in REPLACEMENTS.items():
            yield Fault(
                f"{class_name}-becomes-{word}",
                "special values",
                partial(_replaced, selects, code),
                (*causes, *MORE_CAUSES.get(class_name, ()), UNEXPLAINED),
                partial(_occurs, occurs, has),
            )


def _replaced(selects: Callable[[Row], Mask], code: Callable[[Row], Bits], row: Row) -> Bits:
    return np.where(selects(row), row.stored(code(row)), row.right)


def _occurs(
    in_source: Callable[[Format, Format], bool],
    in_target: Callable[[Format], bool],
    source: Format,
    target: Format,
) -> bool:
    if not (source.is_numeric and target.is_numeric):
        return False
    return bool(in_source(source, target)) and bool(in_target(target))


def _finite(row: Row) -> Mask:
    return ~(row.is_a("nan") | row.is_a("infinity") | row.is_a("zero"))


def _has_signed_zero(source: Format) -> bool:
    return source.kind == "float" and source.entry.zero == "signed"


def _rounds_to_zero(row: Row) -> Mask:
    return _finite(row) & row.gives_a("zero")


def _quiet_bit(source: Format) -> int:
    return 1 << (source.entry.mantissa - 1)


CLASSES: dict[str, tuple[Callable[[Row], Mask], Callable[[Format, Format], bool]]] = {
    "nan": (lambda row: row.is_a("nan"), lambda source, target: bool(source.nan_codes)),
    "signaling-nan": (
        lambda row: row.is_a("nan") & (row.words & np.uint64(_quiet_bit(row.source)) == 0),
        lambda source, target: source.entry.nan == "ieee" and source.entry.mantissa > 1,
    ),
    "nan-with-a-low-payload": (
        lambda row: row.is_a("nan") & (row.words & np.uint64(_quiet_bit(row.source) - 1) != 0),
        lambda source, target: source.entry.nan == "ieee" and source.entry.mantissa > 1,
    ),
    "infinity": (lambda row: row.is_a("infinity"), lambda source, target: source.entry.infinity),
    "zero": (lambda row: row.is_a("zero") & ~row.negative, lambda source, target: source.has_zero),
    "negative-zero": (
        lambda row: row.is_a("zero") & row.negative,
        lambda source, target: _has_signed_zero(source),
    ),
    "a-subnormal": (
        lambda row: row.is_a("subnormal"),
        lambda source, target: source.kind == "float" and source.has_zero,
    ),
    "what-becomes-subnormal": (
        lambda row: row.gives_a("subnormal") & _finite(row),
        lambda source, target: target.kind == "float" and target.has_zero,
    ),
    "what-becomes-zero": (_rounds_to_zero, lambda source, target: source.kind == "float"),
    "what-becomes-infinite": (
        lambda row: row.gives_a("infinity") & _finite(row),
        lambda source, target: target.entry.infinity,
    ),
    "the-largest-answer": (
        lambda row: _finite(row) & (row.answers == row.target.max_code),
        lambda source, target: target.bits > 1,
    ),
    "the-lowest-answer": (
        lambda row: _finite(row) & (row.answers == row.target.lowest_code),
        lambda source, target: target.is_signed,
    ),
    "the-smallest-answer": (
        lambda row: _finite(row) & (row.answers == 1),
        lambda source, target: target.bits > 1,
    ),
    "one": (
        lambda row: row.words == row.source.one_code,
        lambda source, target: source.kind != "boolean",
    ),
}
"""By class, which inputs it has, and whether it occurs between two formats."""
MORE_CAUSES = {
    "a-subnormal": ("flush*", "*flush"),
    "what-becomes-subnormal": ("flush*", "*flush", "underflow*"),
    "what-becomes-infinite": ("*clamp", "*-nan", "saturate", "as-*"),
    "nan": ("as-*", "nan-sign"),
    "negative-zero": ("flush*", "*magnitude*"),
    "infinity": ("as-*", "*clamp", "*-nan"),
}


def _signed(row: Row, code: int) -> Bits:
    """A constant with each input's sign."""
    return np.where(row.negative, np.uint64(code | row.target.sign_bit), np.uint64(code))


def _flipped(row: Row) -> Bits:
    return row.answers ^ np.uint64(row.target.sign_bit)


REPLACEMENTS: dict[str, tuple[Callable[[Row], Bits], Callable[[Format], bool], tuple[str, ...]]] = {
    "zero": (lambda row: np.zeros_like(row.words), lambda target: target.has_zero, ("zero",)),
    "negative-zero": (
        lambda row: np.full_like(row.words, row.target.sign_bit),
        lambda target: target.entry.zero == "signed" and target.kind == "float",
        ("minus-zero", "zero", "wrong-sign"),
    ),
    "one": (
        lambda row: np.full_like(row.words, row.target.one_code),
        lambda target: True,
        ("one",),
    ),
    "the-largest": (
        lambda row: np.full_like(row.words, row.target.max_code),
        lambda target: target.bits > 1,
        ("maximum", "saturate", "*clamp"),
    ),
    "the-lowest": (
        lambda row: np.full_like(row.words, row.target.lowest_code),
        lambda target: target.is_signed,
        ("minimum", "maximum", "via-int*", "as-c-on-x86"),
    ),
    "infinity": (
        lambda row: _signed(row, row.target.infinity_code),
        lambda target: target.entry.infinity,
        ("infinity", "minus-infinity", "*-infinity"),
    ),
    "nan": (
        lambda row: np.full_like(row.words, row.target.nan_codes[0][-1]),
        lambda target: bool(target.nan_codes),
        ("nan", "*-nan", "nan-sign"),
    ),
    "its-own-opposite": (
        _flipped,
        lambda target: target.kind == "float" and target.is_signed,
        (
            "nan-sign",
            "wrong-sign",
            "maximum",
            "one",
            "minus-zero",
            "zero",
            "infinity",
            "minus-infinity",
            "minimum",
            "nan",  # The opposite of 0, where there is no -0.
        ),
    ),
}
"""By name, the pattern that is answered instead, whether a target has it, and its causes."""
