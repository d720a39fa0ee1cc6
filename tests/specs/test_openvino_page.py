"""openvino-convert and openvino-convert-like say what OpenVINO's two pages say of values."""

from __future__ import annotations

import struct
from itertools import product

import pytest

from oracles.reference import exact_rulings
from specs.cases import Case
from specs.editions import edition
from specs.formats import format_named
from specs.loader import document_named
from specs.outcomes import Anything
from specs.ruling import ruling

CONVERT, CONVERT_LIKE = "openvino-convert", "openvino-convert-like"
DOCUMENTS = (CONVERT, CONVERT_LIKE)
FLOATS = (
    "float64", "float32", "float16", "bfloat16",
    "float8e4m3fn", "float8e5m2", "float8e8m0", "float4e2m1",
)  # fmt: skip
SIGNED = ("int64", "int32", "int16", "int8", "int4")
UNSIGNED = ("uint64", "uint32", "uint16", "uint8", "uint4", "uint2")
INTEGERS = SIGNED + UNSIGNED
TYPES = (*FLOATS, *INTEGERS, "bool")


def case_of(document: str, source: str, target: str) -> Case:
    return Case(document, "1", source, target)


def allowed(document: str, source: str, target: str, code: int) -> set[int] | str:
    found = exact_rulings.allow(ruling(case_of(document, source, target)), code)
    return "open" if isinstance(found.branch.outcome, Anything) else set(found.codes)


def code_of(dtype: str, value: int) -> int:
    return value & (1 << format_named(dtype).bits) - 1


def fits(dtype: str, value: int) -> bool:
    bits = format_named(dtype).bits
    return (
        0 <= value < 1 << bits if dtype in UNSIGNED else -(1 << bits - 1) <= value < 1 << bits - 1
    )


def float32_code(value: float) -> int:
    return int(struct.unpack("<I", struct.pack("<f", value))[0])


@pytest.mark.parametrize(
    ("document", "examples"), [(CONVERT, {"pi", "minus-one"}), (CONVERT_LIKE, {"pi"})]
)
def test_the_cases_are_all_pairs_of_types_and_the_examples(
    document: str, examples: set[str]
) -> None:
    cases = list(edition(document_named(document), "1").cases())
    pairs = [(case.source, case.target) for case in cases if case.example is None]
    assert sorted(pairs) == sorted(product(TYPES, TYPES))
    assert {case.example for case in cases} - {None} == examples


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_conversion_is_allowed(document: str) -> None:
    for source, target in product(TYPES, TYPES):
        due = ruling(case_of(document, source, target)).answer_due
        assert due is not None
        assert due.level == "required"


@pytest.mark.parametrize(("source", "target"), [*product(INTEGERS, INTEGERS)])
@pytest.mark.parametrize("document", DOCUMENTS)
def test_integers_are_kept_and_negative_ones_wrap_by_the_page_of_convert(
    document: str, source: str, target: str
) -> None:
    for value in (-128, -8, -5, -1, 0, 1, 3, 4, 7, 8, 100, 200, 40_000, 3_000_000_000, 1 << 62):
        if not fits(source, value):
            continue
        is_wrapped = document == CONVERT and value < 0 and target in UNSIGNED
        expected: set[int] | str = "open"
        if is_wrapped or fits(target, value):
            expected = {value % (1 << format_named(target).bits)}
        assert allowed(document, source, target, code_of(source, value)) == expected, value


@pytest.mark.parametrize("target", INTEGERS)
@pytest.mark.parametrize("document", DOCUMENTS)
def test_whole_floats_are_kept_and_fractions_cut_or_rounded(document: str, target: str) -> None:
    for value, answers in {
        -2.0: {-2}, 1.0: {1}, 3.0: {3}, 1.5: {1, 2}, 2.5: {2}, 0.5: {0}, 2.75: {2, 3},
        -1.5: {-1, -2}, 1e30: None, 100.0: {100}, 300.0: {300},
    }.items():  # fmt: skip
        expected: set[int] | str = "open"
        if answers is not None and all(fits(target, each) for each in (*answers, int(value))):
            expected = {code_of(target, each) for each in answers}
        assert allowed(document, "float32", target, float32_code(value)) == expected, value
    for code in (0x7F800000, 0xFF800000, 0x7FC00000):
        assert allowed(document, "float32", target, code) == "open"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_floats_keep_values_and_nothing_else_is_said(document: str) -> None:
    for value, to_float16 in {
        1.5: {0x3E00}, -2.0: {0xC000}, 65504.0: {0x7BFF}, 0.0: {0x0000}, 1 + 2**-20: "open",
        65519.0: "open", 1e30: "open", float("inf"): "open", float("nan"): "open", 2**-24: "open",
    }.items():  # fmt: skip
        assert allowed(document, "float32", "float16", float32_code(value)) == to_float16, value
    assert allowed(document, "float32", "float16", float32_code(-0.0)) == {0x0000, 0x8000}
    assert allowed(document, "float16", "float32", 0x3E00) == {float32_code(1.5)}
    assert allowed(document, "float16", "float32", 0x7E00) == "open"
    assert allowed(document, "float32", "float8e8m0", float32_code(0.0)) == "open"
    assert allowed(document, "float32", "float8e8m0", float32_code(4.0)) == {129}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_booleans_are_not_mentioned(document: str) -> None:
    assert allowed(document, "bool", "bool", 1) == {1}
    for dtype in (*FLOATS, *INTEGERS):
        assert allowed(document, "bool", dtype, 1) == "open"
        assert allowed(document, dtype, "bool", 1) == "open"


def test_both_pages_note_that_they_contradict_each_other() -> None:
    for document, other in ((CONVERT, "ConvertLike-1"), (CONVERT_LIKE, "Convert-1")):
        [note] = document_named(document).entry.rules["signed-to-unsigned"].conflict
        assert other in note.with_ + note.about
