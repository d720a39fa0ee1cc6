"""wasm-convert and wasm-reinterpret have the page's instructions, with the results it states."""

from __future__ import annotations

from math import inf, nan
from struct import pack, unpack

import pytest

from conformance.families.bitcast.ruling import bitcast_ruling
from oracles.reference import expect_by_exact
from specs.cases import Case
from specs.editions import edition
from specs.loader import document_named
from specs.ruling import ruling

VERSIONS = ("2.0", "3.0")
CONVERT = document_named("wasm-convert")
INSTRUCTIONS = {
    "i32.wrap_i64": {("int64", "int32"), ("int64", "uint32"), ("uint64", "int32"),
                     ("uint64", "uint32")},
    "i64.extend_i32_s": {("int32", "int64"), ("int32", "uint64")},
    "i64.extend_i32_u": {("uint32", "int64"), ("uint32", "uint64")},
    "i32.extend8_s": {("int8", "int32"), ("int8", "uint32")},
    "i32.extend16_s": {("int16", "int32"), ("int16", "uint32")},
    "i64.extend8_s": {("int8", "int64"), ("int8", "uint64")},
    "i64.extend16_s": {("int16", "int64"), ("int16", "uint64")},
    "i32.trunc_f32_s": {("float32", "int32")}, "i32.trunc_f32_u": {("float32", "uint32")},
    "i32.trunc_f64_s": {("float64", "int32")}, "i32.trunc_f64_u": {("float64", "uint32")},
    "i64.trunc_f32_s": {("float32", "int64")}, "i64.trunc_f32_u": {("float32", "uint64")},
    "i64.trunc_f64_s": {("float64", "int64")}, "i64.trunc_f64_u": {("float64", "uint64")},
    "f32.convert_i32_s": {("int32", "float32")}, "f32.convert_i32_u": {("uint32", "float32")},
    "f32.convert_i64_s": {("int64", "float32")}, "f32.convert_i64_u": {("uint64", "float32")},
    "f64.convert_i32_s": {("int32", "float64")}, "f64.convert_i32_u": {("uint32", "float64")},
    "f64.convert_i64_s": {("int64", "float64")}, "f64.convert_i64_u": {("uint64", "float64")},
    "f32.demote_f64": {("float64", "float32")}, "f64.promote_f32": {("float32", "float64")},
}  # fmt: skip
"""Each instruction of the page, and the pairs of dtypes that it converts."""
TRUNCATED = {pair for name, pairs in INSTRUCTIONS.items() if "trunc" in name for pair in pairs}
RESIZED = {("float32", "float64"), ("float64", "float32")}
TRAP = "trap"
NAN = "any NaN"


def code(dtype: str, value: float) -> int:
    """The pattern of a value."""
    if dtype.startswith("float"):
        float_form, integer_form = ("<f", "<I") if dtype == "float32" else ("<d", "<Q")
        [found] = unpack(integer_form, pack(float_form, value))
        return int(found)
    return int(value) % (1 << int(dtype.lstrip("uint")))


def allowed(version: str, source: str, target: str, given: int, *modes: tuple[str, str]) -> object:
    rules = ruling(Case("wasm-convert", version, source, target, modes))
    found = expect_by_exact.allow(rules, given)
    words = {"Rejected": TRAP, "Nan": NAN}
    [*codes] = found.codes
    return codes[0] if codes else words.get(type(found.branch.outcome).__name__)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_listed_pairs_are_those_of_the_instructions(version: str) -> None:
    listed = set().union(*INSTRUCTIONS.values())
    assert edition(CONVERT, version).listed == listed
    for case in edition(CONVERT, version).cases():
        assert ruling(case).is_open == ((case.source, case.target) not in listed), case.id


@pytest.mark.parametrize("version", VERSIONS)
def test_the_operator_is_a_parameter_of_floats_to_integers(version: str) -> None:
    modes: dict[tuple[str, str], list[str]] = {}
    for case in edition(CONVERT, version).cases():
        found = modes.setdefault((case.source, case.target), [])
        found += [value for name, value in case.modes if name == "operator"]
    assert {pair for pair, names in modes.items() if names == ["trunc", "trunc_sat"]} == TRUNCATED
    assert {pair for pair, names in modes.items() if not names} == set(modes) - TRUNCATED


def test_the_profile_is_a_parameter_of_promote_and_demote_since_3_0() -> None:
    pairs = {
        version: {
            (case.source, case.target)
            for case in edition(CONVERT, version).cases()
            if case.mode.get("profile") == "deterministic"
        }
        for version in VERSIONS
    }
    assert pairs == {"2.0": set(), "3.0": RESIZED}


TRUNCATIONS: list[tuple[str, str, float, int | str, int]] = [
    # source, target, value, by trunc, by trunc_sat
    ("float32", "int32", 1.5, 1, 1),
    ("float32", "int32", -1.5, -1, -1),
    ("float32", "uint32", -0.9, 0, 0),
    ("float32", "uint32", -1.0, TRAP, 0),
    ("float64", "int32", 2147483647.9, 2147483647, 2147483647),
    ("float64", "int32", 2147483648.0, TRAP, 2147483647),
    ("float64", "int32", -2147483648.9, -2147483648, -2147483648),
    ("float64", "int32", -2147483649.0, TRAP, -2147483648),
    ("float64", "uint32", 4294967295.9, 4294967295, 4294967295),
    ("float64", "uint32", 4294967296.0, TRAP, 4294967295),
    ("float32", "int64", 2.0**63, TRAP, 2**63 - 1),
    ("float32", "int64", -(2.0**63), -(2**63), -(2**63)),
    ("float64", "uint64", 2.0**64, TRAP, 2**64 - 1),
    ("float64", "uint64", 2.0**63, 2**63, 2**63),
    ("float32", "int64", inf, TRAP, 2**63 - 1),
    ("float32", "int64", -inf, TRAP, -(2**63)),
    ("float64", "uint32", inf, TRAP, 2**32 - 1),
    ("float64", "uint32", -inf, TRAP, 0),
    ("float32", "int32", nan, TRAP, 0),
    ("float64", "uint64", nan, TRAP, 0),
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("source", "target", "value", "trunc", "trunc_sat"), TRUNCATIONS)
def test_truncation(
    version: str, source: str, target: str, value: float, trunc: int | str, trunc_sat: int
) -> None:
    given = code(source, value)
    results = {"trunc": trunc, "trunc_sat": trunc_sat}
    for operator, result in results.items():
        wanted = code(target, result) if isinstance(result, int) else result
        assert allowed(version, source, target, given, ("operator", operator)) == wanted


OTHERS: list[tuple[str, str, float, float]] = [
    ("int64", "int32", -(2**40) - 1, -1),
    ("uint64", "uint32", 2**40 + 5, 5),
    ("int32", "int64", -5, -5),
    ("int32", "uint64", -5, 2**64 - 5),
    ("uint32", "int64", 2**32 - 5, 2**32 - 5),
    ("int8", "int32", -128, -128),
    ("int16", "uint64", -1, 2**64 - 1),
    ("int32", "float32", 16777217, 16777216.0),
    ("int32", "float32", 16777219, 16777220.0),
    ("uint64", "float64", 2**64 - 1, 2.0**64),
    ("uint32", "float64", 2**32 - 1, 4294967295.0),
    ("int64", "float64", 0, 0.0),
    ("float32", "float64", -0.0, -0.0),
    ("float32", "float64", 1e-45, unpack("<f", pack("<f", 1e-45))[0]),
    ("float32", "float64", -inf, -inf),
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("source", "target", "given", "result"), OTHERS)
def test_other_conversions(
    version: str, source: str, target: str, given: float, result: float
) -> None:
    modes = [("profile", "full")] if version == "3.0" and (source, target) in RESIZED else []
    found = allowed(version, source, target, code(source, given), *modes)
    assert found == code(target, result)


LIMIT = 2.0**128 - 2.0**103
"""Halfway between the largest float32 and the limit number above it, which is even."""
DEMOTED: list[tuple[float, int]] = [
    (LIMIT, 0x7F80_0000),
    (LIMIT - 2.0**80, 0x7F7F_FFFF),
    (-LIMIT, 0xFF80_0000),
    (2.0**-150, 0),
    (-(2.0**-150), 0x8000_0000),
    (1.5 * 2.0**-150, 1),
    (-0.0, 0x8000_0000),
    (inf, 0x7F80_0000),
]


@pytest.mark.parametrize("profile", ["full", "deterministic"])
@pytest.mark.parametrize(("value", "result"), DEMOTED)
def test_demotion(profile: str, value: float, result: int) -> None:
    given = code("float64", value)
    assert allowed("3.0", "float64", "float32", given, ("profile", profile)) == result


@pytest.mark.parametrize("given", [0x7FF8 << 48, 0xFFF8 << 48, 0x7FF0_0000_0000_0001])
def test_the_deterministic_profile_has_one_nan(given: int) -> None:
    for profile, result in (("full", NAN), ("deterministic", 0x7FC0_0000)):
        assert allowed("3.0", "float64", "float32", given, ("profile", profile)) == result
    small = given >> 32 | given & 1
    for profile, result in (("full", NAN), ("deterministic", 0x7FF8 << 48)):
        assert (
            allowed("3.0", "float32", "float64", small | 0x7F80_0000, ("profile", profile))
            == result
        )


def test_reinterpret_keeps_bits_between_an_integer_and_a_float_of_its_width() -> None:
    widths = {"int32": 32, "uint32": 32, "float32": 32, "int64": 64, "uint64": 64, "float64": 64}
    for version in VERSIONS:
        for case in edition(document_named("wasm-reinterpret"), version).cases():
            rules = bitcast_ruling(case)
            kinds = case.source.startswith("float"), case.target.startswith("float")
            exists = kinds[0] != kinds[1] and widths[case.source] == widths[case.target]
            assert (rules.result == rules.shape and rules.keeps_bits) == exists, case.id
            assert rules.is_rejection is False
