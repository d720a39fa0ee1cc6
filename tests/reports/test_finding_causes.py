"""Causes of planted faults that come from arithmetic on bits, from shapes, and from errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.families.bitcast.ruling import bitcast_ruling
from conformance.families.bitcast.wrongs import followed as followed_by_bitcasts
from conformance.families.bitcast.wrongs import followed_mechanisms, followed_rules
from conformance.families.bitcast.wrongs import says as says_of_bitcasts
from conformance.families.chains.wrongs import followed_paths
from oracles.registry import Backend
from reports.behaviors.regions import classify, region_phrase
from reports.findings import root_causes
from reports.findings.arithmetic_wrongs import moved_bits, nan_as_float32
from reports.findings.cast_wrongs import form, wrongs_of
from reports.findings.cells import StoredSamples, WrongAnswers
from reports.findings.mechanism_search import MechanismSearch
from reports.findings.read_findings import found_again, read_cells, read_findings
from reports.findings.rule_wrongs import taken_for
from reports.findings.wrong import AskedInputs, GivenAnswers, answered_ruling
from reports.problems import (
    NotRefused,
)
from reports.run_store.open_run import RunAnswers
from specs.cases import Case, Shape
from specs.chains import chain_named
from specs.formats import format_named
from specs.selection import case_named
from tests.reports.judged_run import RIGHT, Answer, Faulty, cases_of, judged_run, run_of

INT32 = (-(2**31), 2**31 - 1)


def only_names(folder: Path, answer: Answer, *patterns: str) -> list[str]:
    """The names of the findings in the cases of some patterns."""
    store = judged_run(folder, {"faulty": answer}, cases_of(*patterns))
    return [found.name for found in read_findings(store).get("faulty", ())]


def widened(case: Case, bits: Any) -> Any:
    """Widen float8e4m3fn to float32 by moving its exponent, of bias 7, and 3 mantissa bits."""
    wide = bits.astype(np.uint32)
    return np.asarray((wide & 0x80) << 24 | ((wide & 0x7F) << 20) + ((127 - 7) << 23))


def test_a_small_float_whose_bits_are_moved(tmp_path: Path) -> None:
    assert only_names(tmp_path, widened, "onnx-cast:25/float8e4m3fn/float32/") == ["moves-bits"]


def as_c(bits: Any) -> Any:
    """Answer as the instruction cvttss2si does: values out of range become the lowest int32."""
    values = bits.view(np.float32).astype(float)
    inside = np.isfinite(values) & (np.trunc(values) >= INT32[0]) & (np.trunc(values) <= INT32[1])
    return np.where(inside, np.trunc(np.where(inside, values, 0)), INT32[0]).astype(np.int64)


def test_integers_converted_as_c_does_are_one_finding(tmp_path: Path) -> None:
    kinds = ("float32/int32", "float32/int16", "int32/int16")
    patterns = [f"pypto-cast:0.2/{kind}/" for kind in kinds]

    def cast(case: Case, bits: Any) -> Any:
        if "NONE" not in case.mode.get("mode", "CAST_NONE") or case.mode.get("satmode") == "off":
            return RIGHT.cast(case, bits)
        storage = format_named(case.target).storage
        return as_c(bits).astype(storage) if case.source == "float32" else bits.astype(storage)

    assert only_names(tmp_path, cast, *patterns) == ["as-c-on-x86"]


def test_exponents_that_round_half_up_whatever_the_mode(tmp_path: Path) -> None:
    def cast(case: Case, bits: Any) -> Any:
        up = (bits >> np.uint32(23)) + (bits & np.uint32(0x7FFFFF) >= 1 << 22)
        return np.where(bits < 0x7F000000, up, RIGHT.cast(case, bits)).astype(np.uint8)

    pattern = "onnx-cast:25/float32/float8e8m0/saturate:1/"
    assert only_names(tmp_path, cast, pattern) == ["exponent-bits-half-up"]


def magnitudes(case: Case, bits: Any) -> Any:
    """The patterns without the sign bit."""
    form = format_named(case.source)
    return bits & bits.dtype.type(form.mask ^ form.sign_bit)


@pytest.mark.parametrize("is_steady", [True, False])
def test_a_count_is_exact_only_where_answers_do_not_depend_on_the_tensor(
    is_steady: bool, tmp_path: Path
) -> None:
    def cast(case: Case, bits: Any) -> Any:
        answers = RIGHT.cast(case, bits).copy()
        wrong = bits == 0x4200
        if not is_steady:
            wrong.reshape(-1)[bits.size - bits.size % 8 :] = True
        answers[wrong] ^= 1
        return answers

    cases = cases_of("onnx-cast:25/float16/int8/")
    faulty = Backend("faulty", Faulty(cast))
    store = run_of(tmp_path, [faulty], cases, checks=["invariances/float16/int8"])
    found = [each for each in read_findings(store)["faulty"] if each.kind == "wrong value"]
    assert {each.is_exact for each in found} == {is_steady}


def test_subnormals_that_become_zero_are_one_finding(tmp_path: Path) -> None:
    smallest = {"bfloat16": 1 << 7, "float64": (1023 - 126) << 52}  # 2^-126 in both

    def cast(case: Case, bits: Any) -> Any:
        is_tiny = magnitudes(case, bits) < smallest[case.source]
        return RIGHT.cast(case, np.where(is_tiny, bits - magnitudes(case, bits), bits))

    pairs = ("bfloat16/float32", "bfloat16/bool", "float64/float32", "float64/bfloat16")
    assert only_names(tmp_path, cast, *(f"onnx-cast:25/{pair}/" for pair in pairs)) == [
        "flushes-subnormals"
    ]


def test_ends_of_a_range_that_are_compared_in_the_source_dtype(tmp_path: Path) -> None:
    ends = {0x7: 0x7F, 0xF: 0x80}  # 6 and -6, the ends of float4e2m1, as 127 and -128

    def cast(case: Case, bits: Any) -> Any:
        answers = RIGHT.cast(case, bits).copy()
        for code, answer in ends.items():
            answers[bits == code] = answer
        return answers

    assert only_names(tmp_path, cast, "onnx-cast:25/float4e2m1/int8/") == [
        "clamps-in-the-source-dtype"
    ]


def test_values_that_are_clamped_before_they_are_rounded(tmp_path: Path) -> None:
    def cast(case: Case, bits: Any) -> Any:
        patterns, answers = magnitudes(case, bits), RIGHT.cast(case, bits).copy()
        signs = (bits >> np.uint32(31)).astype(np.uint8) << 7
        is_above = patterns > 0x43E80000  # 464, halfway between 448 and 480
        answers[is_above] = 0x7F | signs[is_above]
        is_clamped = patterns >= 0x43F00000  # 480
        answers[is_clamped] = 0x7E | signs[is_clamped]
        return answers

    assert only_names(tmp_path, cast, "onnx-cast:25/float32/float8e4m3fn/") == [
        "clamps-before-rounding"
    ]


@pytest.mark.parametrize("target", ["int4", "int8", "int64"])
def test_the_cause_of_a_wrong_answer_to_a_text_reads_no_pattern(
    target: str, tmp_path: Path
) -> None:
    def cast(case: Case, bits: Any) -> Any:
        answers = RIGHT.cast(case, bits)
        return np.where(np.equal(bits, "-1").astype(bool), 7, answers).astype(answers.dtype)

    assert only_names(tmp_path, cast, f"onnx-cast:25/string/{target}/") == ["unexplained"]


def test_mechanisms_answer_every_pair_of_a_text() -> None:
    texts = np.array(["-1", "300", "-0.5", "1e400", "nan", "-inf", "", "x"], object)
    cases = [case for case in cases_of("onnx-cast:25/string/") if answered_ruling(case)]
    assert len(cases) > 20
    for case in cases:
        storage = format_named(case.target).storage
        answers = texts if case.target == "string" else np.zeros(texts.shape, storage)
        for row in wrongs_of(case):
            assert row.explains(GivenAnswers(case, texts, answers), "required").shape == texts.shape


def test_mechanisms_take_any_text_for_an_answer() -> None:
    answers = np.array([f"1e{'9' * 400}", "1e999999999", "-0e-999999999", "1e5x", "", "e"], object)
    cases = [
        case
        for case in cases_of("onnx-cast:25/")
        if case.target == "string" and case.source in ("float32", "int8") and answered_ruling(case)
    ]
    assert len(cases) == 2
    for case in cases:
        patterns = np.arange(answers.size).astype(format_named(case.source).storage)
        for row in wrongs_of(case):
            assert not row.explains(GivenAnswers(case, patterns, answers), "required").any()


def test_a_nan_that_stays_a_nan_is_not_explained_by_what_it_should_be() -> None:
    case = case_named("onnx-cast:25/float16/float8e5m2/saturate:1")
    nan, one = np.array([0x7E00, 0x3C00], np.uint16), np.array([0x7F, 0x7F], np.uint8)
    given = GivenAnswers(case, nan, one)
    assert form("nan").explains(given, "required").tolist() == [False, True]


@pytest.mark.parametrize(
    ("source", "has_both_zeros"),
    [("float16", True), ("float8e4m3fnuz", False), ("float8e8m0", False)],
)
def test_only_sources_with_both_zeros_may_have_their_subnormals_flushed(
    source: str, has_both_zeros: bool
) -> None:
    names = {each.name for each in wrongs_of(case_named(f"onnx-cast:25/{source}/float32"))}
    assert ("flushes-subnormals" in names) == has_both_zeros


@pytest.mark.parametrize(
    ("pair", "other", "name", "says"),
    [
        (("uint8", "int32"), ("int8", "int32"), "reads-unsigned-as-signed",
            "reads unsigned integers as signed"),
        (("float32", "int8"), ("float32", "uint8"), "converts-to-unsigned",
            "converts to unsigned integers where signed ones are wanted"),
        (("bfloat16", "int8"), ("float16", "int8"), "as-another-dtype",
            "takes bfloat16 for float16"),
    ],
)  # fmt: skip
def test_dtypes_that_are_taken_for_others_have_a_name_and_a_sentence(
    pair: tuple[str, str], other: tuple[str, str], name: str, says: str
) -> None:
    row = taken_for(pair, other)
    assert (row.name, row.says) == (name, says)


def test_mechanisms_are_first_tried_on_at_most_1024_inputs_that_fail_and_1024_others() -> None:
    rules = answered_ruling(case_named("onnx-cast:25/float32/float16"))
    assert rules is not None
    inputs = np.arange(2 * 1025, dtype=np.uint32)
    few = AskedInputs(rules, inputs, inputs.astype(np.uint16), inputs < 1025).few
    assert few.inputs.tolist() == [*range(0, 1025, 2), *range(1025, 2050, 2)]
    assert few.fails.tolist() == [True] * 513 + [False] * 513


@pytest.mark.parametrize(
    ("case", "bits", "answer", "name"),
    [
        ("torch-view:2/int32/int16/shape:3", [0x20001, 0x40003, 0x60005], [2, 1, 4, 3, 6, 5],
            "reverses-elements"),
        ("onnx-bitcast:26/int4/uint4/shape:3", [1, 2, 3], [1, 2, 0], "loses-unfilled-bytes"),
        ("torch-view:2/int16/float16/shape:3", [0x7C01, 0xFE02, 0x3C00], [0x7E00, 0x7E00, 0x3C00],
            "replaces-nans-of-target"),
    ],
)  # fmt: skip
def test_other_bits_are_explained_by_what_gives_all_of_them(
    case: str, bits: list[int], answer: list[int], name: str
) -> None:
    ruling = bitcast_ruling(case_named(case))
    given = np.array(bits, ruling.source.storage)
    followed = followed_mechanisms([(ruling, given, np.array(answer, ruling.target.storage))])
    assert followed == (name,)


@pytest.mark.parametrize(
    ("answers", "names"),
    [
        (lambda bits: bits.ravel("K").reshape(bits.shape), ("reads-memory-order",)),
        (
            lambda bits: bits if bits.ndim < 5 else bits.swapaxes(3, 4).reshape(bits.shape),
            ("exchanges-axes-from-rank-5", "exchanges-axes-from-rank-4"),
        ),
        (lambda bits: bits.view(np.float16).astype(np.int16).view(np.uint16), ("converts-values",)),
        (lambda bits: np.zeros_like(bits), ()),
    ],
)
def test_answers_to_tensors_are_explained_by_what_gives_all_of_them(
    answers: Callable[[Any], Any], names: tuple[str, ...]
) -> None:
    values = np.array([0x3C00, 0x4000, 0xC500, 0x5640, 0x7BFF, 0xFBFF], np.uint16)
    tensors = [
        values.reshape(2, 3), values.reshape(1, 2, 3).transpose(0, 2, 1),
        values.reshape(1, 1, 6, 1), values.reshape(1, 1, 1, 2, 3), values[:4].reshape(2, 2),
    ]  # fmt: skip
    answered = []
    for bits in tensors:
        shape = "x".join(map(str, bits.shape))
        case = case_named("onnx-bitcast:26/float16/int16/shape:3")
        ruling = bitcast_ruling(replace(case, modes=(("shape", shape),)))
        answered.append((ruling, bits, np.ascontiguousarray(answers(bits))))
    assert followed_mechanisms(answered) == names


def test_a_storage_offset_that_is_not_refused_has_a_name() -> None:
    case = case_named("torch-view:2/uint8/int32/shape:3")
    found = NotRefused("storage-offset", "", "required", "", (8,), (2,), None, "storage offset 1")
    assert followed_by_bitcasts(case, found) == ("ignores-storage-offsets",)
    assert says_of_bitcasts("ignores-storage-offsets").startswith(
        "bitcasts accept a storage offset"
    )
    assert followed_by_bitcasts(case, replace(found, rule="larger")) == ("scales-the-last-axis",)


def test_a_chain_that_goes_through_a_wider_dtype_is_explained_by_it() -> None:
    chain = chain_named("onnx-cast:25/float64/float16/float64")
    given = np.array([0x3FF0000100001000], np.uint64)  # 1 + 2^-20 + 2^-40
    answer = np.array([0x3FF0000100000000], np.uint64)  # 1 + 2^-20, which float16 does not have
    moved = np.ones(1, bool)
    assert followed_paths(chain, given, answer, None, moved) == ("keeps-float32-on-the-way",)


@pytest.mark.parametrize(
    ("dtype", "small", "large", "limit"),
    [
        ("float64", 0x3FF0000000000000, 0x7E37E43C8800759C, "the range of float32"),  # 1, 1e300
        ("uint32", 1, 0x80000000, "the signed range"),
    ],
)
def test_numbers_are_told_apart_by_the_limit_of_their_kind(
    dtype: str, small: int, large: int, limit: str
) -> None:
    source = format_named(dtype)
    classes = classify(source, source, np.array([small, large], source.storage))
    one, other = (classes.by_number[number] for number in classes.numbers.tolist())
    assert region_phrase(source, [one], [one, other]) == f"for values in {limit}"
    assert region_phrase(source, [other], [one, other]) == f"for values beyond {limit}"


def test_a_shift_that_wraps(tmp_path: Path) -> None:
    def cast(case: Case, bits: Any) -> Any:
        exponents = (bits >> np.uint32(23)) & np.uint32(0xFF)
        is_wrapped = (exponents > 0) & (exponents <= 127 - 78)  # below 2^-77, normal
        return RIGHT.cast(case, bits + np.where(is_wrapped, np.uint32(64 << 23), 0))

    assert only_names(tmp_path, cast, "onnx-cast:25/float32/float16/") == ["wraps-the-shift"]


def test_an_ignored_parameter_explains_cases_in_which_other_inputs_are_right(
    tmp_path: Path,
) -> None:
    def cast(case: Case, bits: Any) -> Any:
        wants = RIGHT.cast(case, bits).copy()
        if case.source == "float16":
            return RIGHT.cast(replace(case, modes=(("saturate", "0"), *case.modes[1:])), bits)
        wants[bits == 0] = 0xFF  # as without saturation, which also makes subnormals a NaN
        return wants

    patterns = [f"onnx-cast:25/{name}/float8e8m0/saturate:1/" for name in ("float16", "float32")]
    assert only_names(tmp_path, cast, *patterns) == ["as-saturate-0"]


@pytest.mark.parametrize(
    ("source", "target", "pattern", "moved"),
    [
        ("float8e4m3fn", "float32", 0x00, 0x3C000000),  # zero as 2^-7
        ("float8e4m3fn", "float32", 0x7F, 0x43F00000),  # NaN as 480
        ("float8e5m2", "float32", 0xFC, 0xC7800000),  # -infinity as -65536
        ("float32", "float8e4m3fn", 0x3F880000, 0x38),  # a tie, to even
        ("float32", "float8e4m3fn", 0x3F980000, 0x3A),
        ("float32", "float8e4m3fn", 0x80000001, 0x00),  # an exponent below zero
        ("float32", "float8e4m3fn", 0x48000000, 0xC0),  # 2^17, its exponent spills into the sign
        ("float6e2m3", "float8e4m3fn", 0x08, 0x38),  # 1, its fraction is as wide
        ("float32", "bfloat16", 0x7F800001, 0x7F80),  # a NaN as infinity
        ("float32", "bfloat16", 0x7FFFFFFF, 0x8000),  # the carry reaches the sign
    ],
)
def test_moved_bits(source: str, target: str, pattern: int, moved: int) -> None:
    given = format_named(source)
    bits = np.array([pattern], given.storage)
    assert moved_bits(given, format_named(target), bits).tolist() == [moved]


def test_a_nan_keeps_the_high_bits_of_its_payload() -> None:
    half, double = format_named("float16"), format_named("float64")
    assert nan_as_float32(half, np.array([0xFC01], np.uint16)).tolist() == [0xFF802000]
    wide = np.array([0x7FF0000020000000], np.uint64)
    assert nan_as_float32(double, wide).tolist() == [0x7FC00001]


@pytest.mark.parametrize(
    ("given", "answer", "rules"),
    [
        ((2, 3), (2, 6), {"scales-the-last-axis"}),
        ((8,), (2,), {"scales-the-last-axis"}),
        ((4,), (4, 4), {"adds-or-drops-an-axis"}),
        ((4,), (), {"adds-or-drops-an-axis"}),
        ((), (), {"scales-the-last-axis", "adds-or-drops-an-axis", "keeps-the-shape"}),
        ((2, 3), (3, 2), set()),
    ],
)
def test_rules_of_shapes(given: Shape, answer: Shape, rules: set[str]) -> None:
    assert set(followed_rules(given, answer)) == rules


def test_what_is_left_of_answers_outside_the_sample_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cast(case: Case, bits: Any) -> Any:
        return RIGHT.cast(case, bits) ^ 1

    names = ("int8", "uint8", "uint16")
    run = judged_run(tmp_path, {"it": cast}, cases_of(*(f"onnx-cast:25/int8/{to}" for to in names)))
    samples = StoredSamples(stored := RunAnswers(run).values)
    wrong = [
        WrongAnswers(cell, broken, broken.failing, samples)
        for cell in read_cells(run)
        for broken in cell.broken
        if broken.failing is not None
    ]
    monkeypatch.setattr(root_causes, "MOST_KINDS", 1)
    explained = [
        bool(each.shares)
        for each in root_causes.explain_wrong_answers(wrong, MechanismSearch(stored))
    ]
    assert len(explained) == len(wrong) == 3
    assert sum("left" in vars(each) for each in wrong) == 1


@pytest.mark.nightly  # a search through millions of inputs
def test_a_cause_that_a_sample_shows_explains_what_the_sample_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cast(case: Case, bits: Any) -> Any:
        if case.target == "int16":
            return (bits.astype(np.uint64) * np.uint64(0x9E3779B1) >> np.uint64(13)).astype(
                np.uint16
            )
        return RIGHT.cast(case, bits & ~np.uint32(0xFF))

    targets = ("float16", "bfloat16", "int32", "float64", "int16")
    run = judged_run(
        tmp_path, {"it": cast}, cases_of(*(f"onnx-cast:25/float32/{name}/" for name in targets))
    )
    whole = {each.name: each for each in found_again(run)["it"]}
    monkeypatch.setattr(root_causes, "MOST_KINDS", 4)
    found = {each.name: each for each in found_again(run)["it"]}
    assert found.keys() == whole.keys()
    assert {name: each.cases for name, each in found.items()} == {
        name: each.cases for name, each in whole.items()
    }
    assert found["unexplained"].says == (
        f"{whole['unexplained'].says}; looked for in 4 of 10 ways to fail"
    )
