"""stablehlo-convert and stablehlo-bitcast-convert have the types, pairs and rules of the page."""

from __future__ import annotations

import numpy as np
import pytest

from conformance.families.bitcast.bits import by_integer
from conformance.families.bitcast.ruling import bitcast_ruling
from oracles.memory_layouts import elements
from oracles.reference.exact_rulings import allow
from specs.branches import Branch
from specs.cases import Case
from specs.editions import edition
from specs.formats import dtype_spelled, dtypes_spelled, format_named, formats
from specs.loader import document_named
from specs.model.vocabulary import Atom
from specs.outcomes import Exactly, Nan, Round, Same, Value
from specs.ruling import ruling
from specs.selection import case_named

BOOLEAN = ("i1",)
SIGNED = ("si2", "si4", "si8", "si16", "si32", "si64")
UNSIGNED = ("ui2", "ui4", "ui8", "ui16", "ui32", "ui64")
FLOATS = (
    "f4E2M1FN", "f6E2M3FN", "f6E3M2FN", "f8E3M4", "f8E4M3", "f8E4M3FN", "f8E4M3FNUZ",
    "f8E4M3B11FNUZ", "f8E5M2", "f8E5M2FNUZ", "f8E8M0FNU", "bf16", "f16", "f32", "f64",
)  # fmt: skip
COMPLEX = ("complex64", "complex128")  # on the page complex<f32> and complex<f64>
SPELLED_BY_OTHERS = {"f8E4M3": "float8e4m3"}
"""A name that other frameworks also give to another type."""

KIND_OF_TARGET = {
    "bool": BOOLEAN,
    "integer": (*SIGNED, *UNSIGNED),
    "ieee": ("f8E3M4", "f8E4M3", "f8E5M2", "bf16", "f16", "f32", "f64"),
    "fn": ("f8E4M3FN",),
    "fnuz": ("f8E4M3FNUZ", "f8E4M3B11FNUZ", "f8E5M2FNUZ"),
    "mx": ("f4E2M1FN", "f6E2M3FN", "f6E3M2FN"),
    "scale": ("f8E8M0FNU",),
}

OPEN = "open"
NEAREST = "recommended nearest-even"
FROM_NUMBERS: dict[str, dict[str, str]] = {
    "bool": {
        "nan": "true", "inf": "true", "-inf": "true", "zero": "false", "-zero": "false",
        "has": "true", "overflow": "true", "-overflow": "true", "other": "true",
    },
    "integer": {
        "nan": OPEN, "inf": OPEN, "-inf": OPEN, "zero": "toward-zero", "-zero": "toward-zero",
        "has": "toward-zero", "overflow": OPEN, "-overflow": OPEN, "other": "toward-zero",
    },
    "ieee": {
        "nan": "recommended nan", "inf": "inf", "-inf": "-inf", "zero": "value", "-zero": "-zero",
        "has": "value", "overflow": "recommended inf", "-overflow": "recommended -inf",
        "other": NEAREST,
    },
    "fn": {
        "nan": "recommended nan", "inf": OPEN, "-inf": OPEN, "zero": "value", "-zero": "-zero",
        "has": "value", "overflow": OPEN, "-overflow": OPEN, "other": NEAREST,
    },
    "fnuz": {
        "nan": "recommended nan", "inf": OPEN, "-inf": OPEN, "zero": "value",
        "-zero": "recommended zero", "has": "value", "overflow": OPEN, "-overflow": OPEN,
        "other": NEAREST,
    },
    "mx": {
        "nan": OPEN, "inf": OPEN, "-inf": OPEN, "zero": "value", "-zero": "-zero", "has": "value",
        "overflow": OPEN, "-overflow": OPEN, "other": NEAREST,
    },
    "scale": {
        "nan": "recommended nan", "inf": OPEN, "-inf": OPEN, "zero": OPEN, "-zero": OPEN,
        "has": "value", "overflow": OPEN, "-overflow": OPEN, "other": OPEN,
    },
}  # fmt: skip
"""The page's results for floats and integers, by kind of target and kind of input."""


def names_of(spelled: tuple[str, ...]) -> list[str]:
    return [SPELLED_BY_OTHERS.get(word) or dtype_spelled(word) for word in spelled]


KIND = {name: kind for kind, words in KIND_OF_TARGET.items() for name in names_of(words)}
REAL = names_of((*BOOLEAN, *SIGNED, *UNSIGNED, *FLOATS))


def cases_of(document: str) -> list[Case]:
    return list(edition(document_named(document), "1.20").cases())


def kind_of_input(atom: Atom) -> str:
    sign = "-" if atom.sign == "-" else ""
    if atom.kind == "nan":
        return "nan"
    if atom.kind == "infinity":
        return f"{sign}inf"
    if atom.kind == "zero":
        return f"{sign}zero"
    if atom.zone == "overflow":
        return f"{sign}overflow"
    return "has" if atom.representable else "other"


def in_words(branch: Branch, target: str) -> str:
    fmt = format_named(target)
    patterns = {"true": 1, "false": 0} if target == "bool" else {"zero": 0}
    if fmt.kind == "float":
        patterns |= {"-zero": fmt.sign_bit}
        if fmt.entry.infinity:
            patterns |= {"inf": fmt.infinity_code, "-inf": fmt.infinity_code | fmt.sign_bit}
    names = {code: word for word, code in reversed(patterns.items())}
    level = "recommended " if branch.level == "recommended" else ""
    match branch.outcome:
        case Exactly(code):
            return level + names[code]
        case Round(rounding):
            return level + rounding
        case Value():
            return level + "value"
        case Same():
            return level + "same"
        case Nan(sign="any"):
            return level + "nan"
    assert branch.level == "unspecified"
    return OPEN


def test_every_type_of_the_page_is_known_by_its_name_there() -> None:
    assert len(REAL) == len(set(REAL)) == 28
    assert all(name in dtypes_spelled(word) for word, name in SPELLED_BY_OTHERS.items())


def test_convert_has_all_pairs_of_real_types() -> None:
    pairs = [(case.source, case.target) for case in cases_of("stablehlo-convert")]
    assert sorted(pairs) == sorted((source, target) for source in REAL for target in REAL)


def test_bitcast_convert_has_complex_types_too() -> None:
    types = {*REAL, *COMPLEX}
    found = {(case.source, case.target) for case in cases_of("stablehlo-bitcast-convert")}
    assert found == {(source, target) for source in types for target in types}


def test_convert_treats_each_kind_of_input_as_the_page_says() -> None:
    judged = 0
    for case in cases_of("stablehlo-convert"):
        rules = ruling(case)
        for atom, index in rules.branch_of.items():
            found = in_words(rules.branches[index], case.target)
            kinds = KIND[case.source], KIND[case.target]
            if kinds in (("integer", "integer"), ("bool", "scale")):
                expected = "value" if atom.representable else OPEN
            elif kinds[0] == "bool":
                expected = "same" if kinds[1] == "bool" else "value"
            else:
                expected = FROM_NUMBERS[kinds[1]][kind_of_input(atom)]
            assert found == expected, (case.id, str(atom))
            judged += 1
    assert judged > 20_000


@pytest.mark.parametrize(
    ("source", "target", "code", "level", "answers"),
    [
        ("float32", "int8", 0x42FFCCCD, "required", {0x7F}),  # 127.9, the fraction goes first
        ("float32", "int8", 0xC300E666, "required", {0x80}),  # -128.9
        ("float32", "int8", 0x43000000, "unspecified", set()),  # 128
        ("float32", "uint8", 0xBF7FBE77, "required", {0x00}),  # -0.999
        ("float32", "uint8", 0xBF800000, "unspecified", set()),  # -1
        ("float32", "bool", 0x3E99999A, "required", {1}),  # 0.3
        ("float32", "bool", 0x80000000, "required", {0}),  # -0
        ("float32", "bool", 0x7FC00000, "required", {1}),  # NaN
        ("float32", "bool", 0x00000001, "required", {1}),  # the smallest subnormal
        ("float16", "float32", 0x0001, "required", {0x33800000}),  # a subnormal
        ("float32", "float16", 0x33800000, "required", {0x0001}),  # the same, back
        ("float32", "float16", 0x477FE000, "required", {0x7BFF}),  # 65504
        ("float32", "float16", 0x477FEFFF, "recommended", {0x7BFF}),  # below 65520
        ("float32", "float16", 0x477FF000, "recommended", {0x7C00}),  # 65520
        ("float32", "float16", 0x3F801000, "recommended", {0x3C00}),  # a tie, to even
        ("float32", "float8e4m3fn", 0x43E80000, "recommended", {0x7E}),  # 464, a tie in range
        ("float32", "float8e4m3fn", 0x43E80001, "unspecified", set()),
        ("float32", "float64", 0x80000000, "required", {0x8000000000000000}),  # -0
        ("float64", "float16", 0x8000000000000000, "required", {0x8000}),
        ("float32", "float4e2m1", 0x80000000, "required", {0x8}),
        ("float32", "float8e4m3fnuz", 0x80000000, "recommended", {0x00}),  # no such zero
        ("int32", "float32", 0x01000001, "recommended", {0x4B800000}),  # 2^24 + 1, a tie
        ("int32", "float32", 0x01000000, "required", {0x4B800000}),
        ("int64", "float16", 0x000000000000FFF0, "recommended", {0x7C00}),  # 65520
        ("int8", "float8e8m0", 0x04, "required", {0x81}),  # 4
        ("int8", "float8e8m0", 0x03, "unspecified", set()),
        ("int8", "uint8", 0xFF, "unspecified", set()),  # -1
        ("uint8", "int4", 0x07, "required", {0x7}),
        ("uint8", "int4", 0x08, "unspecified", set()),
        ("bool", "bfloat16", 0x01, "required", {0x3F80}),
        ("bool", "float8e8m0", 0x01, "required", {0x7F}),
        ("bool", "float8e8m0", 0x00, "unspecified", set()),
    ],
)
def test_values_worked_out_by_hand(
    source: str, target: str, code: int, level: str, answers: set[int]
) -> None:
    allowed = allow(ruling(Case("stablehlo-convert", "1.20", source, target, ())), code)
    assert (allowed.branch.level, set(allowed.codes)) == (level, answers)


def test_conflicts_are_noted_where_sections_disagree() -> None:
    noted = {
        (document, name)
        for document in ("stablehlo-convert", "stablehlo-bitcast-convert")
        for name, rule in document_named(document).entry.rules.items()
        if rule.conflict
    }
    assert noted == {
        ("stablehlo-convert", "bool-to-scale"),
        ("stablehlo-convert", "float-to-integer"),
        ("stablehlo-convert", "to-float-with-infinity"),
        ("stablehlo-convert", "to-float-without-infinity"),
        ("stablehlo-convert", "to-float-with-one-zero"),
        ("stablehlo-convert", "to-float-without-nan"),
        ("stablehlo-bitcast-convert", "wider-by-last"),
        ("stablehlo-bitcast-convert", "wider-from-scalar"),
        ("stablehlo-bitcast-convert", "complex-wider-by-last"),
        ("stablehlo-bitcast-convert", "complex-wider-from-scalar"),
        ("stablehlo-bitcast-convert", "from-bools"),
    }


def bitcast(source: str, target: str, shape: str) -> Case:
    return case_named(f"stablehlo-bitcast-convert:1.20/{source}/{target}/shape:{shape}")


def test_the_example_gives_the_parts_of_the_page() -> None:
    answer = by_integer(
        bitcast_ruling(bitcast("float64", "float16", "scalar")),
        elements(format_named("float64"), [0x0123456789ABCDEF]).reshape(()),
    )
    assert answer.tolist() == [0xCDEF, 0x89AB, 0x4567, 0x0123]


def test_the_linked_tests_of_booleans_and_complex_numbers_hold() -> None:
    ones = np.array([int(bit) for bit in reversed(f"{0x0123456789ABCDEF:064b}")], np.uint8)
    number = np.array(0x0123456789ABCDEF, np.uint64)
    answer = by_integer(bitcast_ruling(bitcast("float64", "bool", "scalar")), number)
    assert answer.tolist() == ones.tolist()
    back = by_integer(bitcast_ruling(bitcast("bool", "int64", "64")), ones)
    assert back.tolist() == 0x0123456789ABCDEF
    parts = elements(format_named("complex128"), [0x0000000011111111 << 64 | 0x0123456789ABCDEF])
    halves = by_integer(
        bitcast_ruling(bitcast("complex128", "complex64", "scalar")), parts.reshape(())
    )
    assert halves.tolist() == [0x0123456789ABCDEF, 0x0000000011111111]


def test_bits_in_memory_are_required_only_of_one_type() -> None:
    def levels(source: str, target: str, shape: str) -> tuple[str, str]:
        found = bitcast_ruling(bitcast(source, target, shape))
        return found.level, found.bits_level

    assert levels("float32", "float32", "3") == ("required", "required")
    assert levels("complex64", "complex64", "3") == ("required", "required")
    assert levels("bool", "bool", "3") == ("required", "required")
    assert levels("float32", "int32", "3") == ("required", "recommended")
    assert levels("float32", "float16", "3") == ("required", "recommended")
    assert levels("int4", "uint4", "3") == ("required", "recommended")
    assert levels("int8", "int4", "3") == ("required", "recommended")
    # Only the linked tests say that a boolean has one bit.
    assert levels("float64", "bool", "scalar") == ("recommended", "recommended")


def test_no_other_dtype_is_on_the_page() -> None:
    assert {*formats()} - {*REAL, *COMPLEX} == {"string"}
