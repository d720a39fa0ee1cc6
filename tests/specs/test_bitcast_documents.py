"""The rulings of bitcast documents, compared with tables written by hand from their pages.

A row has the source, the target, and the result for each input shape: a shape as a case id writes
it, `error` if the page rejects the cast, `open` if it does not mention it, `a|b` if it allows both.
Nothing here is computed from widths.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import pytest

from conformance.families.bitcast.ruling import BitcastRuling, bitcast_ruling
from specs.cases import Case, format_shape, parse_shape, shape_of
from specs.loader import document_named
from specs.selection import case_named, select

Row = tuple[str, str, dict[str, str]]

# Ranks 0 to 4, with elements and empty.
ONE_WIDTH = {
    "scalar": "scalar", "3": "3", "0": "0", "2x3": "2x3", "2x1x3": "2x1x3", "2x1x3x2": "2x1x3x2",
    "3x0": "3x0", "2x0x3": "2x0x3", "2x0x1x3": "2x0x1x3",
}  # fmt: skip
TWO_APPENDED = {
    "scalar": "2", "3": "3x2", "1": "1x2", "2": "2x2", "0": "0x2", "2x3": "2x3x2", 
    "2x1x3": "2x1x3x2", "2x1x3x2": "2x1x3x2x2", "3x0": "3x0x2", "0x2": "0x2x2", "2x0x3": "2x0x3x2",
    "2x0x1x3": "2x0x1x3x2",
}  # fmt: skip
TWO_DROPPED = {
    "2": "scalar", "2x2": "2", "2x3x2": "2x3", "1x2x3x2": "1x2x3", "0x2": "0", "0x3x2": "0x3",
    "0x1x2x2": "0x1x2",
}  # fmt: skip
NOT_TWO = {
    "scalar": "error", "1": "error", "3": "error", "4": "error", "2x3": "error", "3x4": "error",
    "2x1x3": "error", "2x3x4": "error", "2x3x1x4": "error", "0": "error", "3x0": "error",
    "2x0x3": "error", "2x0x1x3": "error",
}  # fmt: skip
FOUR_DROPPED = {"4": "scalar", "2x4": "2", "2x3x4": "2x3", "1x2x3x4": "1x2x3", "0x4": "0"}
NOT_FOUR = {
    "scalar": "error", "1": "error", "3": "error", "8": "error", "2x3": "error", "3x8": "error",
    "2x1x3": "error", "2x1x3x2": "error", "0": "error", "3x0": "error",
}  # fmt: skip
EIGHT_DROPPED = {"8": "scalar", "2x8": "2", "0x8": "0", "1": "error", "3": "error", "16": "error"}

XLA: list[Row] = [
    ("float32", "float32", ONE_WIDTH),
    ("float32", "int32", ONE_WIDTH),
    ("int8", "uint8", ONE_WIDTH),
    ("complex64", "complex64", ONE_WIDTH),
    ("bool", "bool", ONE_WIDTH),
    ("int4", "uint4", ONE_WIDTH),
    ("float32", "float16", TWO_APPENDED),
    ("complex128", "complex64", TWO_APPENDED),
    ("int8", "int4", TWO_APPENDED),
    ("float32", "uint8", {"scalar": "4", "3": "3x4", "0": "0x4", "2x1x3x2": "2x1x3x2x4"}),
    # Widths are counted in bits, and a bool has one.
    ("int8", "bool", {"scalar": "8", "3": "3x8", "0x8": "0x8x8"}),
    ("int64", "bool", {"scalar": "64", "3": "3x64"}),
    ("bool", "int8", EIGHT_DROPPED | {"scalar": "error", "3x16": "error", "1x2x3x8": "1x2x3"}),
    ("bool", "int64", {"2x64": "2", "0x64": "0", "3": "error", "scalar": "error"}),
    ("int4", "bool", {"scalar": "4", "3": "3x4"}),
    ("int4", "uint8", {"2x2": "2", "0x2": "0", "3": "error", "scalar": "error"}),
    ("float32", "float64", TWO_DROPPED | NOT_TWO),
    ("complex64", "complex128", TWO_DROPPED | NOT_TWO),
    ("float16", "int64", FOUR_DROPPED | NOT_FOUR),
    ("int8", "float64", EIGHT_DROPPED | {"scalar": "error", "3x16": "error", "2x3x8": "2x3"}),
    ("complex64", "float32", {"scalar": "error", "3": "error", "2": "error", "2x3": "error"}),
    ("float64", "complex64", {"scalar": "error", "3": "error", "0": "error", "2x3": "error"}),
    ("float64", "complex128", {"scalar": "error", "2": "error", "2x2": "error"}),
    # No other width but one bit divides six bits or is a multiple of them.
    ("float6e3m2", "int8", dict.fromkeys(ONE_WIDTH, "error")),
    ("int4", "float6e3m2", {"scalar": "error", "3": "error", "2x1": "error"}),
    ("float32", "float6e3m2", {"scalar": "error", "3": "error", "2x5": "error"}),
    ("float6e3m2", "complex64", {"scalar": "error", "3": "error"}),
    ("float6e3m2", "float6e3m2", ONE_WIDTH),
    ("float6e3m2", "bool", {"scalar": "6", "3": "3x6", "0x6": "0x6x6"}),
    ("bool", "float6e3m2", {"6": "scalar", "2x6": "2", "0x6": "0", "12": "error", "3": "error"}),
]
TENSORFLOW: list[Row] = [
    ("float32", "float32", ONE_WIDTH),
    ("float32", "int32", ONE_WIDTH),
    ("float32", "float16", TWO_APPENDED),
    ("float32", "uint8", {"scalar": "4", "3": "3x4", "0": "0x4", "2x0x1x3": "2x0x1x3x4"}),
    ("float32", "float64", TWO_DROPPED | NOT_TWO),
    ("float16", "int64", FOUR_DROPPED | NOT_FOUR),
    ("int8", "float64", EIGHT_DROPPED | {"scalar": "error"}),
    # Only sizes matter, complex or not.
    ("float64", "complex64", ONE_WIDTH),
    ("complex64", "float32", TWO_APPENDED),
    ("float64", "complex128", TWO_DROPPED | NOT_TWO),
    ("complex64", "complex128", TWO_DROPPED | NOT_TWO),
    ("complex128", "complex64", TWO_APPENDED),
    ("int64", "bool", {"scalar": "open", "3": "open"}),
    ("bool", "int64", {"scalar": "open", "2x8": "open"}),
    ("bool", "bool", {"scalar": "open"}),
]


CINN: list[Row] = [
    ("float32", "float32", ONE_WIDTH),
    ("float32", "int32", ONE_WIDTH),
    ("float32", "float16", TWO_APPENDED),
    ("float32", "float64", TWO_DROPPED | NOT_TWO),
    ("float16", "int64", FOUR_DROPPED | NOT_FOUR),
    ("complex64", "complex64", ONE_WIDTH),
    ("complex128", "complex64", TWO_APPENDED),
    ("complex64", "complex128", TWO_DROPPED | NOT_TWO),
    # XLA's code rejects these, TensorFlow's checks sizes only.
    ("float64", "complex64", {"scalar": "scalar|error", "3": "3|error", "0x1": "0x1|error"}),
    ("complex64", "float32", {"scalar": "2|error", "3": "3x2|error", "0x2": "0x2x2|error"}),
    # Rejected by size, unless the last dimension is the ratio.
    ("float32", "complex64", {
        "scalar": "error", "3": "error", "2x2": "2|error", "0x2": "0|error",
    }),
    # A bool is one byte or one bit.
    ("bool", "bool", {"scalar": "scalar", "3": "3", "0x1": "0x1"}),
    ("int64", "bool", {"scalar": "8|64", "3": "3x8|3x64", "0x8": "0x8x8|0x8x64"}),
    ("bool", "int64", {"scalar": "error", "3": "error", "2x8": "2|error", "0x8": "0|error"}),
    ("bool", "int8", {"scalar": "scalar|error", "3": "3|error"}),
    ("int8", "bool", {"scalar": "scalar|8", "3": "3|3x8"}),
    ("complex64", "bool", {"scalar": "8|error", "3": "3x8|error"}),
    ("bool", "complex64", {"scalar": "error", "3": "error", "2x8": "2|error"}),
]  # fmt: skip
VIEW: list[Row] = [
    ("float32", "int32", ONE_WIDTH),
    ("bool", "bool", {"scalar": "scalar", "3": "3", "0x1": "0x1"}),
    ("float32", "float16", {
        "scalar": "error", "3": "6", "1": "2", "0": "0", "2x3": "2x6", "2x1x3": "2x1x6",
        "2x1x3x2": "2x1x3x4", "3x0": "3x0", "2x0x3": "2x0x6", "0x2": "0x4",
    }),
    ("float32", "uint8", {"scalar": "error", "3": "12", "2x3": "2x12"}),
    ("float32", "float64", {
        "scalar": "error", "2": "1", "4": "2", "1": "error", "3": "error", "0": "0", "2x2": "2x1",
        "3x4": "3x2", "2x3": "error", "2x3x4": "2x3x2", "2x3x2": "2x3x1", "1x2x3x2": "1x2x3x1",
        "0x2": "0x1", "3x0": "open", "2x0x3": "error", "2x1x3": "error",
    }),
    ("float16", "int64", {"4": "1", "8": "2", "3": "error", "2x1x3x2": "error", "0": "0"}),
    ("float64", "complex64", ONE_WIDTH),
    ("complex64", "float32", {"scalar": "error", "3": "6"}),
    ("float64", "complex128", {"scalar": "error", "2": "1", "3": "error"}),
    ("int64", "bool", {"scalar": "open", "3": "open"}),
    ("bool", "uint8", {"scalar": "open", "3": "open"}),
]  # fmt: skip
ONNX: list[Row] = [
    ("float32", "float32", ONE_WIDTH),
    ("float32", "int32", ONE_WIDTH),
    ("int4", "uint4", {"scalar": "scalar", "3": "3", "0x1": "0x1"}),
    ("float4e2m1", "int4", {"scalar": "scalar", "3": "3"}),
    ("float64", "complex64", ONE_WIDTH),
    ("bool", "bool", {"scalar": "scalar", "3": "3"}),
    ("float32", "float16", dict.fromkeys(TWO_APPENDED, "error")),
    ("float32", "float64", dict.fromkeys(TWO_DROPPED | NOT_TWO, "error")),
    ("int2", "int8", {"scalar": "error", "3": "error", "2x4": "error"}),
    # The page's example has a bool of eight bits.
    ("bool", "uint8", {"scalar": "scalar", "3": "3", "2x1": "2x1", "0x1": "0x1"}),
    ("bool", "float8e5m2", {"scalar": "scalar", "3": "3"}),
    ("int8", "bool", {"scalar": "scalar", "3": "3"}),
    ("bool", "int16", {"scalar": "error", "3": "error", "2x2": "error", "0x2": "error"}),
    ("uint4", "bool", {"scalar": "error", "3": "error", "2x2": "error"}),
    ("float64", "bool", {"scalar": "error", "2x8": "error"}),
]
FEW = {"scalar": "scalar", "3": "3", "2x1": "2x1", "0x1": "0x1"}
STABLEHLO: list[Row] = [
    *XLA,
    ("float64", "bool", {"scalar": "64", "3": "3x64"}),
    ("float4e2m1", "int4", FEW),
    ("float8e8m0", "int8", FEW),
    ("float6e2m3", "float6e3m2", FEW),
    ("int4", "int2", {"scalar": "2", "3": "3x2", "0x2": "0x2x2"}),
    ("int8", "int2", {"scalar": "4", "3": "3x4"}),
    ("int2", "uint4", {"2x2": "2", "0x2": "0", "3": "error", "scalar": "error"}),
    ("int2", "float6e3m2", {"2x3": "2", "3": "scalar", "0x3": "0", "scalar": "error"}),
    ("float6e2m3", "int2", {"scalar": "3", "3": "3x3"}),
    ("float4e2m1", "float6e2m3", dict.fromkeys(FEW, "error")),
    ("bool", "complex64", {"scalar": "error", "3": "error", "2x64": "error"}),
    ("complex64", "bool", {"scalar": "error", "3": "error"}),
]
"""The constraints of the page are those of XLA's code, and there are more types."""
TABLES: dict[str, list[Row]] = {
    "stablehlo-bitcast-convert:1.20": STABLEHLO,
    "xla-bitcast-convert:2023": XLA,
    "tensorflow-bitcast:2023": TENSORFLOW,
    "cinn-bitcast-convert:1.0": CINN,
    "torch-view:2": VIEW,
    "onnx-bitcast:26": ONNX,
}


def result_of(case: Case) -> str:
    """The result that a case's ruling allows, in the notation of the tables."""

    def notation(reading: BitcastRuling) -> str:
        if reading.is_rejection:
            return "error"
        return "open" if reading.result is None else format_shape(reading.result)

    return "|".join(map(notation, bitcast_ruling(case).readings))


@pytest.mark.parametrize(
    ("version", "row"),
    [(version, row) for version, rows in TABLES.items() for row in rows],
    ids=lambda value: value if isinstance(value, str) else f"{value[0]}-{value[1]}",
)
def test_results_are_those_of_the_page(version: str, row: Row) -> None:
    source, target, shapes = row
    found = {
        shape: result_of(case_named(f"{version}/{source}/{target}/shape:{shape}"))
        for shape in shapes
    }
    assert found == shapes


@pytest.mark.parametrize("document", ["xla-bitcast-convert", "tensorflow-bitcast"])
def test_every_rule_of_quoted_code_has_cases_of_ranks_0_to_4(document: str) -> None:
    cases_of: dict[str, set[tuple[int, bool]]] = {}
    for case in select([document]):
        shape = shape_of(case)
        cases_of.setdefault(bitcast_ruling(case).rule, set()).add((len(shape), 0 in shape))
    all_ranks = {(0, False), *((rank, empty) for rank in (1, 2, 3, 4) for empty in (True, False))}
    for rule, ranks in cases_of.items():
        if rule in ("from-bool", "to-bool"):
            continue  # open, whatever the shape
        expected = all_ranks
        if rule.endswith("from-scalar"):
            expected = {(0, False)}
        elif "wider" in rule or "larger" in rule or rule == "from-bools":
            expected = all_ranks - {(0, False)}
            if rule.endswith(("by-last", "from-part", "from-bools")):
                expected -= {(1, True)}  # the only dimension is the ratio
        assert ranks >= expected, rule


REQUIRED_PAIRS = {
    ("float32", "float32"), ("float32", "int32"), ("float32", "float64"), ("float64", "float32"),
    ("int64", "bool"), ("bool", "int64"),
}  # fmt: skip
REQUIRED_SHAPES = {
    1: {"1", "1x1", "1x1x1x1"},
    1024: {"1024", "32x32", "4x8x8x4"},
    2048: {"2048", "32x64", "4x8x8x8"},
}


def examples(name: str) -> Iterator[Case]:
    return (case for case in select(["cinn-bitcast-convert"]) if case.example == name)


def test_the_tests_that_cinn_requires_are_cases() -> None:
    expected = {
        f"cinn-bitcast-convert:1.0/{source}/{target}/shape:{shape}/example:required-test"
        for source, target in REQUIRED_PAIRS
        for shapes in REQUIRED_SHAPES.values()
        for shape in shapes
    }
    assert {case.id for case in examples("required-test")} == expected
    for elements, shapes in REQUIRED_SHAPES.items():
        assert sorted(len(parse_shape(shape)) for shape in shapes) == [1, 2, 4]
        assert {prod(parse_shape(shape)) for shape in shapes} == {elements}


def test_the_tests_that_cinn_requires_follow_the_shape_rule() -> None:
    widening = [case for case in examples("required-test") if case.target == "float64"]
    assert len(widening) == 9
    assert {result_of(case) for case in widening} == {"error"}
    assert {bitcast_ruling(case).error_class for case in widening} == {"InvalidArgument"}
    of_ratio = {shape_of(case): result_of(case) for case in examples("required-test-that-fits")}
    assert of_ratio == {
        (2,): "scalar", (512, 2): "512", (1024, 2): "1024", (8, 8, 8, 2): "8x8x8",
        (8, 8, 16, 2): "8x8x16",
    }  # fmt: skip
    of_bool = {
        shape_of(case): result_of(case) for case in examples("required-test-of-bool-that-fits")
    }
    assert of_bool == {
        (8,): "scalar|error", (128, 8): "128|error", (256, 8): "256|error",
        (4, 4, 8, 8): "4x4x8|error", (4, 8, 8, 8): "4x8x8|error",
    }  # fmt: skip
    # An int64 is 8 bools counted in bytes and 64 counted in bits.
    from_bool = {
        shape_of(case): result_of(case)
        for case in examples("required-test")
        if case.source == "bool"
    }
    assert from_bool == {
        (1,): "error", (1, 1): "error", (1, 1, 1, 1): "error", (1024,): "error",
        (32, 32): "error", (4, 8, 8, 4): "error", (2048,): "error", (32, 64): "32|error",
        (4, 8, 8, 8): "4x8x8|error",
    }  # fmt: skip
    to_bool = {result_of(case) for case in examples("required-test") if case.target == "bool"}
    assert all(word.count("|") == 1 and "open" not in word for word in to_bool)
    [worked] = examples("worked-example")
    assert (worked.source, worked.target, result_of(worked)) == ("float32", "float16", "10x2")


CONFLICTS = {
    "cinn-bitcast-convert": [
        "same-width", "narrower", "wider-otherwise", "wider-from-scalar", "bool-to-byte",
        "bools-wider-by-bytes", "bools-wider-by-bits", "byte-to-bool", "to-bools",
        "complex-to-bools", "complex-as-real", "complex-as-smaller-reals", "real-as-complex",
        "reals-as-complex-by-last",
    ],
    "xla-bitcast-convert": ["wider-from-scalar", "complex-wider-from-scalar"],
}  # fmt: skip


@pytest.mark.parametrize("document", CONFLICTS)
def test_conflicts_are_noted_where_texts_disagree(document: str) -> None:
    rules = document_named(document).entry.rules
    assert [name for name, rule in rules.items() if rule.conflict] == CONFLICTS[document]


def test_what_follows_from_the_example_of_a_bool_is_recommended() -> None:
    def ruled(pair: str) -> tuple[str, bool, bool]:
        ruling = bitcast_ruling(case_named(f"onnx-bitcast:26/{pair}/shape:3"))
        return ruling.level, ruling.is_rejection, ruling.keeps_bits

    assert ruled("bool/uint8") == ("required", False, True)
    assert ruled("bool/int8") == ("recommended", False, True)
    assert ruled("bool/int32") == ("recommended", True, True)
    # Which bytes a bool may have is not said.
    assert ruled("uint8/bool") == ("recommended", False, False)


def test_levels_follow_from_the_page() -> None:
    def level(source: str, target: str, shape: str) -> str:
        name = f"cinn-bitcast-convert:1.0/{source}/{target}/shape:{shape}"
        return bitcast_ruling(case_named(name)).level

    assert level("float32", "int32", "3") == "required"
    assert level("float32", "float16", "3") == "required"
    # Only XLA's code says so, which the page endorses.
    assert level("float32", "float64", "2x2") == "recommended"
    assert level("float32", "float64", "3") == "recommended"
    assert level("bool", "int64", "3") == "recommended"
    assert level("bool", "bool", "0x1") == "required"
    # The quoted code is about shapes, so keeping the bits is only implied.
    xla = bitcast_ruling(case_named("xla-bitcast-convert:2023/float32/int32/shape:3"))
    assert (xla.level, xla.bits_level) == ("required", "recommended")


def test_cinn_leaves_no_bitcast_open() -> None:
    assert not [case.id for case in select(["cinn-bitcast-convert"]) if "open" in result_of(case)]
