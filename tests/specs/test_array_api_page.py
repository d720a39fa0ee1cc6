"""array-api-astype and its calls have what the standard's page says, and leave the rest open."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest

from conformance.families.reference import Reference
from oracles.reference.expect_by_exact import allow
from specs.cases import Case
from specs.editions import edition
from specs.loader import document_named
from specs.outcomes import Anything, Nan, Rejected
from specs.ruling import ruling

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
REAL = INTEGERS + FLOATS
ONE = dict.fromkeys(INTEGERS, 1) | {"float32": 0x3F800000, "float64": 0x3FF << 52}
NEGATIVE_ZERO = 1 << 31
NAN, INFINITY, SUBNORMAL = 0x7FC00000, 0x7F800000, 1
NAN64 = 0x7FF8 << 48


def code(value: float) -> int:
    """The pattern of a float32."""
    return int.from_bytes(struct.pack("<f", value), "little")


def code64(value: float) -> int:
    """The pattern of a float64."""
    return int.from_bytes(struct.pack("<d", value), "little")


def case(source: str, target: str, version: str = "2025.12", example: str | None = None) -> Case:
    return Case("array-api-astype", version, source, target, example=example)


def level_and_codes(source: str, target: str, pattern: int) -> tuple[str, tuple[int, ...]]:
    allowed = allow(ruling(case(source, target)), pattern)
    return allowed.branch.level, allowed.codes


@pytest.mark.parametrize("document", ["array-api-astype", "array-api-astype-calls"])
@pytest.mark.parametrize("version", VERSIONS)
def test_complex_dtypes_come_with_2022_12(document: str, version: str) -> None:
    dtypes = {"bool", *REAL} | (set(COMPLEX) if version > "2022" else set())
    found = edition(document_named(document), version)
    assert set(found.sources) == set(found.targets) == dtypes


def test_a_complex_array_should_not_become_real_and_nothing_else_is_refused() -> None:
    for each in edition(document_named("array-api-astype"), "2025.12").cases():
        rules = ruling(each)
        is_refused = each.source in COMPLEX and each.target in REAL
        assert rules.is_rejection == is_refused, each.id
        if is_refused:
            assert {branch.level for branch in rules.branches} == {"recommended"}


@pytest.mark.parametrize("target", REAL)
def test_true_is_one_and_false_is_zero(target: str) -> None:
    assert level_and_codes("bool", target, 1) == ("required", (ONE[target],))
    assert level_and_codes("bool", target, 0) == ("required", (0,))


@pytest.mark.parametrize(
    ("pattern", "level", "answer"),
    [
        (0, "required", 0),
        (NEGATIVE_ZERO, "required", 0),
        (code(0.5), "required", 1),
        (code(-2), "required", 1),
        (INFINITY, "required", 1),
        (NAN, "recommended", 1),
    ],
)
def test_zero_is_false_and_all_else_is_true(pattern: int, level: str, answer: int) -> None:
    assert level_and_codes("float32", "bool", pattern) == (level, (answer,))


def test_subnormals_are_left_open() -> None:
    for target in ("bool", "float64"):
        assert level_and_codes("float32", target, SUBNORMAL) == ("unspecified", ())
    for value in (1e-40, 2.0**-149, 5e-324, -1e-300):
        assert level_and_codes("float64", "float32", code64(value)) == ("unspecified", ())


IEEE_754 = [
    ("float64", "float32", code64(0.1), 0x3DCCCCCD),
    ("float64", "float32", code64(1 + 2**-24), 0x3F800000),  # a tie, to even
    ("float64", "float32", code64(1 + 3 * 2**-24), 0x3F800002),
    ("float64", "float32", code64(2.0**128 - 2**103), 0x7F800000),  # a tie at the largest value
    ("float64", "float32", code64(2.0**128 - 2**103) - 1, 0x7F7FFFFF),
    ("float64", "float32", code64(-1e300), 0xFF800000),
    ("float64", "float32", code64(math.inf), INFINITY),
    ("float32", "float64", NEGATIVE_ZERO | INFINITY, code64(-math.inf)),
    ("int64", "float32", 2**24 + 1, 0x4B800000),  # a tie, to even
    ("uint64", "float64", 2**64 - 1, code64(2.0**64)),
    ("int32", "float32", 2**32 - 2**24 - 1, 0xCB800000),  # -16777217
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("source", "target", "pattern", "answer"), IEEE_754)
def test_conversions_are_those_of_ieee_754_since_the_clause_is_about_all_functions(
    version: str, source: str, target: str, pattern: int, answer: int
) -> None:
    allowed = allow(ruling(case(source, target, version)), pattern)
    expected = ("recommended", (answer,)) if version > "2022" else ("unspecified", ())
    assert (allowed.branch.level, allowed.codes) == expected


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("source", "target", "nan"), [("float32", "float64", NAN), ("float64", "float32", NAN64)]
)
def test_a_nan_stays_one_since_the_clause_is_about_all_functions(
    version: str, source: str, target: str, nan: int
) -> None:
    found = allow(ruling(case(source, target, version)), nan).branch
    if version > "2022":
        assert (found.level, found.outcome) == ("recommended", Nan(sign="any"))
    else:
        assert found.level == "unspecified"


def test_conversions_cite_the_clause() -> None:
    cited = {
        allow(ruling(case(source, target)), pattern).branch.clause
        for source, target, pattern, _ in IEEE_754
    }
    assert cited == {"API specification, floating-point operations"}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("value", "neighbors"), [(2.5, {2, 3}), (-0.25, {0, 0xFF}), (126.9, {126, 127})]
)
def test_a_fraction_becomes_one_of_its_neighbors(
    version: str, value: float, neighbors: set[int]
) -> None:
    allowed = allow(ruling(case("float32", "int8", version)), code(value))
    expected = ("recommended", neighbors) if version > "2022" else ("unspecified", set())
    assert (allowed.branch.level, set(allowed.codes)) == expected


@pytest.mark.parametrize(
    "pattern",
    [code(127.5), code(300), code(-129), NAN, INFINITY, INFINITY | NEGATIVE_ZERO],
)
def test_what_no_integer_of_the_target_is_near_to_is_open(pattern: int) -> None:
    assert level_and_codes("float32", "int8", pattern) == ("unspecified", ())


@pytest.mark.parametrize("value", [-128, 0, 3, 127])
def test_a_value_that_the_target_has_is_kept(value: int) -> None:
    assert level_and_codes("float32", "int8", code(value)) == ("required", (value & 0xFF,))


def test_narrowing_integers_is_open_where_it_changes_the_value() -> None:
    assert level_and_codes("int16", "int8", 5) == ("required", (5,))
    assert level_and_codes("int16", "int8", 300) == ("unspecified", ())


def test_complex_numbers_from_and_to_bool_are_worked_out() -> None:
    """Both parts count: 0 + 1j is true."""
    of_bool = case("bool", "complex64", example="true-and-false")
    to_bool = case("complex64", "bool", example="zero-and-others")
    assert ruling(of_bool).worked == ((0, 0), (1, complex_code(1)))
    values = (0, 1, 1j, 1 + 1j)
    assert ruling(to_bool).worked == tuple((complex_code(each), int(each != 0)) for each in values)
    answers = Reference().cast(to_bool, np.array([complex_code(each) for each in values]))
    assert answers.tolist() == [0, 1, 1, 1]


def complex_code(value: complex) -> int:
    return int.from_bytes(struct.pack("<ff", value.real, value.imag), "little")


FORMS = {
    # form: copy, whether the dtype may be the array's own, what comes back, and in which memory
    "dtype": (None, {True, False}, "another", "own"),
    "copies": ("true", {True}, "another", "own"),
    "does-not-copy": ("false", {False}, "another", "own"),
    "does-not-copy-same": ("false", {True}, "receiver", None),
    "device-none": (None, {False}, "another", "own"),
}


@pytest.mark.parametrize("form", FORMS)
def test_only_an_array_of_the_same_dtype_that_is_not_to_be_copied_comes_back(form: str) -> None:
    document = document_named("array-api-astype-calls")
    entry = document.entry.forms[form]
    found = [each for each in edition(document, "2025.12").cases() if each.mode["form"] == form]
    copy = entry.kwargs["copy"].removeprefix("word ") if "copy" in entry.kwargs else None
    returns = entry.returns.is_ if entry.returns else None
    memory = entry.memory.is_ if entry.memory else None
    same = {each.source == each.target for each in found}
    assert (copy, same, returns, memory) == FORMS[form]


@pytest.mark.parametrize("version", VERSIONS)
def test_device_is_there_from_2023_12_on(version: str) -> None:
    modes = (("form", "device-none"),)
    rules = ruling(Case("array-api-astype-calls", version, "float32", "int32", modes))
    assert rules.branches[0].outcome == Anything(converts=version > "2023")


def test_calls_refuse_what_casts_refuse() -> None:
    for each in edition(document_named("array-api-astype-calls"), "2025.12").cases():
        refuses = isinstance(ruling(each).branches[0].outcome, Rejected)
        assert refuses == (each.source in COMPLEX and each.target in REAL), each.id
