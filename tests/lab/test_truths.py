"""The comparison with truths can fail: planted wrong answers, and predicates that do not fit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from conformance.families.cast.quick_inputs import quick_inputs
from lab.truths import __main__ as command
from lab.truths import page
from lab.truths.comparison import Compared, Counts, Known, check_definition, compare, compare_pair
from lab.truths.inputs import inputs_of
from lab.truths.known import KNOWN
from lab.truths.numpy_casts import MlDtypes, Numpy
from lab.truths.questions import Answers, Mask, Overflow, Patterns, question_of
from lab.truths.rulings import every_cast, pairs, rulings_of
from lab.truths.texts import count
from lab.truths.values import codes_of, values_of
from oracles.reference import expect_by_exact, expect_by_kernels, expect_by_staircase
from oracles.reference.exact_text import allow_text
from specs.formats import format_named
from specs.model.vocabulary import Rounding
from specs.ruling import ruling
from specs.selection import case_named
from tests.lab.proof.planted import plant

CASE = "onnx-cast:1/float16/int8"
OPEN = "onnx-cast:1/float32/int8"


def compared_case(name: str, inputs: Patterns | None = None) -> Compared:
    rules = ruling(case_named(name))
    if inputs is None:
        inputs = quick_inputs(rules.source.name, rules.target.name, 0, 0)
    expected = expect_by_kernels.expect(rules, inputs)
    return Compared("planted", name, rules, question_of(rules), inputs, expected)


def right_answers(compared: Compared) -> Answers:
    """The answers of the staircase, which shares no code with the kernels."""
    codes = expect_by_staircase.expect(compared.ruling, compared.inputs).codes
    return Answers(codes.copy(), np.ones(codes.shape, bool))


def predicting(*codes: int) -> Known:
    def predicts(compared: Compared) -> Mask:
        return np.isin(compared.inputs, codes)

    return Known("planted difference", ("planted",), "the reference", "planted", predicts)


def test_right_answers_agree_and_open_inputs_are_counted_apart() -> None:
    compared = compared_case(OPEN)
    counts = compare(compared, right_answers(compared), ())
    assert counts.failures == []
    assert counts.compared == compared.inputs.size == counts.agree + counts.open
    out_of_range = np.abs(np.trunc(values_of(compared.ruling.source, compared.inputs)))
    assert counts.open >= int((out_of_range > 128).sum()) > 1000


def test_any_answer_to_an_open_input_is_no_failure() -> None:
    compared = compared_case(OPEN, np.array([0x7F800000, 0x7FC00000], np.uint32))
    answers = Answers(np.array([17, 99], np.uint8), np.ones(2, bool))
    assert compare(compared, answers, ()) == Counts(compared=2, open=2)


def test_of_inputs_that_must_be_refused_no_truth_knows_the_answer() -> None:
    # 1, a value out of range, and NaN.
    inputs = np.array([0x3F800000, 0x4F800000, 0x7FC00000], np.uint32)
    compared = compared_case("wasm-convert:2.0/float32/uint32/operator:trunc", inputs)
    answers = Answers(np.array([1, 17, 99], np.uint32), np.ones(3, bool))
    assert compare(compared, answers, ()) == Counts(compared=1, agree=1)


def test_of_nans_that_a_document_fixes_the_bits_are_not_compared() -> None:
    inputs = np.array([0x3F800000, 0x7FC00001], np.uint32)
    compared = compared_case("wasm-convert:3.0/float32/float64/profile:deterministic", inputs)
    own = Answers(np.array([0x3FF0000000000000, 0x7FF8000020000000], np.uint64), np.ones(2, bool))
    assert compare(compared, own, ()) == Counts(compared=1, agree=1)
    number = Answers(np.array([0x3FF0000000000000, 0], np.uint64), np.ones(2, bool))
    assert compare(compared, number, ()).failures


def test_reduced_precisions_are_left_out_and_other_casts_of_a_dtype_to_itself_are_not() -> None:
    double = format_named("float64")
    asked = [case for case, _ in rulings_of(double, double)]
    assert "onnx-cast:1/float64/float64" in asked
    # This one has the precision of float64, and reduces nothing.
    kept = "stablehlo-reduce-precision:1.20/float64/float64/bits:e11m52"
    assert [each for each in asked if "reduce" in each] == [kept]


def test_one_wrong_answer_is_a_failure_that_shows_it() -> None:
    compared = compared_case(CASE)
    answers = right_answers(compared)
    answers.codes[0x3C00] ^= 1
    counts = compare(compared, answers, ())
    assert counts.agree + counts.open == compared.inputs.size - 1
    [failure] = counts.failures
    assert "planted: an unknown difference: 1 inputs of onnx-cast:1/float16/int8" in failure
    assert failure.endswith("0x3c00 gives 0x00, the reference 0x01")


def test_an_answer_that_a_truth_does_not_know_is_not_compared() -> None:
    compared = compared_case(CASE)
    answers = right_answers(compared)
    answers.codes[0x3C00] ^= 1
    answers.known[0x3C00] = False
    counts = compare(compared, answers, ())
    assert (counts.compared, counts.failures) == (compared.inputs.size - 1, [])


def test_a_known_disagreement_is_counted_under_its_name() -> None:
    compared = compared_case(CASE)
    answers = right_answers(compared)
    answers.codes[[0x3C00, 0x4000]] ^= 1
    counts = compare(compared, answers, (predicting(0x3C00, 0x4000),))
    assert (counts.failures, counts.known) == ([], {"planted difference": 2})


def test_a_predicate_that_is_too_narrow_leaves_an_unknown_difference() -> None:
    compared = compared_case(CASE)
    answers = right_answers(compared)
    answers.codes[[0x3C00, 0x4000]] ^= 1
    [failure] = compare(compared, answers, (predicting(0x3C00),)).failures
    assert "an unknown difference: 1 inputs" in failure
    assert "0x4000 gives 0x03, the reference 0x02" in failure


def test_a_predicate_that_is_too_wide_is_a_failure() -> None:
    compared = compared_case(CASE)
    answers = right_answers(compared)
    answers.codes[0x3C00] ^= 1
    [failure] = compare(compared, answers, (predicting(0x3C00, 0x4000),)).failures
    assert "`planted difference` predicts a difference where there is none: 1 inputs" in failure
    assert "0x4000" in failure


def test_a_predicate_may_name_inputs_that_are_open_or_unknown() -> None:
    compared = compared_case(OPEN, np.array([0x3F800000, 0x7F800000], np.uint32))
    answers = Answers(np.array([2, 0], np.uint8), np.array([False, True]))
    assert compare(compared, answers, (predicting(0x3F800000, 0x7F800000),)).failures == []


def test_an_entry_about_another_truth_explains_nothing() -> None:
    compared = compared_case(CASE)
    answers = right_answers(compared)
    answers.codes[0x3C00] ^= 1
    other = replace(predicting(0x3C00), truths=("another",))
    [failure] = compare(compared, answers, (other,)).failures
    assert "an unknown difference" in failure


def test_kernels_that_differ_from_the_definition_are_a_failure() -> None:
    compared = compared_case(CASE)
    given = CASE, compared.ruling, compared.inputs
    assert check_definition(*given, compared.expected).failures == []
    codes = compared.expected.codes.copy()
    codes[:] ^= 1
    counts = check_definition(*given, replace(compared.expected, codes=codes))
    assert counts.agree < counts.compared
    assert counts.failures[0].startswith(f"{CASE}: definition and kernels differ on 0x")


TEXTS = ("1.5", "65504", "65520", "1e99", "2.98e-8")


def test_texts_that_are_read_right_agree() -> None:
    rules = ruling(case_named("onnx-cast:9/string/float16"))
    allowed = [allow_text(rules, text) for text in TEXTS]
    values = np.array([1.5, 65504.0, 65536.0, 1e99, 2.0**-24])
    counts = count("planted", "case", rules, TEXTS, allowed, values)
    assert (counts.agree, counts.open, counts.failures) == (2, 2, counts.failures)
    [failure] = counts.failures
    assert failure.endswith("`2.98e-8` gives 0x0001, the reference 0x0000")


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([1.5, 65536.0, 65536.0, 1e99, 0.0], "`65504` gives out of range, the reference 0x7bff"),
        ([1.5, 65504.0, 65504.0, 1e99, 0.0], "`65520` gives 0x7bff, the reference anything"),
    ],
)
def test_what_is_out_of_range_must_be_open_and_nothing_else(
    values: list[float], shown: str
) -> None:
    rules = ruling(case_named("onnx-cast:9/string/float16"))
    allowed = [allow_text(rules, text) for text in TEXTS]
    [failure] = count("planted", "case", rules, TEXTS, allowed, np.array(values)).failures
    assert failure.endswith(shown)


@pytest.mark.parametrize(
    ("name", "rounding", "overflow"),
    [
        ("onnx-cast:25/float32/float8e4m3fn/saturate:1", "nearest-even", "saturate"),
        ("onnx-cast:25/float32/float8e4m3fn/saturate:0", "nearest-even", "ieee"),
        ("onnx-cast:19/float32/float8e4m3fnuz/saturate:1", "nearest-even", "saturate"),
        ("onnx-cast:24/float32/float8e8m0/saturate:1/round_mode:down", "toward-zero", "saturate"),
        ("onnx-cast:1/float64/float32", "nearest-even", "ieee"),
        ("onnx-cast:1/float16/float32", "nearest-even", "ieee"),
        ("onnx-cast:1/float32/int8", "toward-zero", "saturate"),
        ("pypto-cast:0.2/float16/int8/mode:CAST_FLOOR/satmode:off", "floor", "wrap"),
    ],
)
def test_a_ruling_asks_for_its_rounding_and_overflow(
    name: str, rounding: str, overflow: Overflow
) -> None:
    question = question_of(ruling(case_named(name)))
    assert (question.rounding, question.overflow) == (rounding, overflow)


@pytest.mark.parametrize("rounding", ["toward-zero", "floor", "ceil"])
@pytest.mark.parametrize("overflow", ["ieee", "saturate"])
def test_every_cast_asks_for_the_overflow_that_it_names(
    rounding: Rounding, overflow: Overflow
) -> None:
    rules = every_cast(format_named("float32"), format_named("float16"), rounding, overflow)
    assert question_of(rules).overflow == overflow


def test_every_cast_has_every_float_format_as_source_and_target() -> None:
    floats = {pair[0].name for pair in pairs() if pair[0].kind == "float"}
    assert len(floats) == 15
    for source in floats:
        targets = {pair[1].name for pair in pairs() if pair[0].name == source}
        assert floats <= targets


def test_the_definition_rules_every_cast_as_the_kernels_do() -> None:
    source, target = format_named("float8e5m2"), format_named("float6e2m3")
    inputs = quick_inputs(source.name, target.name, 0, 0)
    seen = 0
    for _, rules in rulings_of(source, target):
        by_definition = expect_by_exact.expect(rules, inputs)
        by_kernels = expect_by_kernels.expect(rules, inputs)
        np.testing.assert_array_equal(by_definition.codes, by_kernels.codes)
        seen += 1
    assert seen >= 5


@pytest.mark.parametrize(
    ("source", "target", "known"),
    [
        ("float16", "float8e4m3fn", set()),
        ("float64", "bfloat16", {"by way of float32"}),
        (
            "bfloat16",
            "float8e8m0",
            {"above the smallest float8e8m0", "range of float8e8m0", "zero to float8e8m0"},
        ),
        ("float8e5m2", "float4e2m1", {"NaN to float4e2m1"}),
        ("float16", "int4", set()),
    ],
)
def test_ml_dtypes_and_numpy_differ_on_exactly_the_known_inputs(
    source: str, target: str, known: set[str]
) -> None:
    pytest.importorskip("ml_dtypes")
    formats = format_named(source), format_named(target)
    inputs = inputs_of(*formats, 1000)
    counts = compare_pair(rulings_of(*formats), [Numpy(), MlDtypes()], KNOWN, lambda most: inputs)
    assert [failure for each in counts.values() for failure in each.failures] == []
    found = {name for each in counts.values() for name, number in each.known.items() if number}
    assert found == known
    assert sum(each.agree for each in counts.values()) > 0


def test_a_fault_in_the_kernels_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ml_dtypes")
    plant(monkeypatch, "increment = guard & (sticky | lsb)", "increment = guard")
    formats = format_named("float16"), format_named("float8e4m3fn")
    inputs = inputs_of(*formats, 0)
    counts = compare_pair(rulings_of(*formats), [MlDtypes()], KNOWN, lambda most: inputs)
    failures = counts["ml_dtypes", "float to float", "nearest-even"].failures
    assert any("an unknown difference" in failure for failure in failures)


def test_random_inputs_are_the_same_each_time_and_in_rising_order() -> None:
    source, target = format_named("float64"), format_named("float8e4m3fn")
    inputs = inputs_of(source, target, 5000)
    np.testing.assert_array_equal(inputs, inputs_of(source, target, 5000))
    assert (inputs[1:] > inputs[:-1]).all()
    values = np.abs(values_of(source, inputs))
    assert int(((values > 2.0**-12) & (values < 1000)).sum()) > 2000


def test_a_value_that_a_format_lacks_is_refused() -> None:
    pytest.importorskip("ml_dtypes")
    for name in ("float8e4m3fn", "float32"):
        with pytest.raises(ValueError, match=f"{name} lacks a value"):
            codes_of(format_named(name), np.array([1.0, 1.0 + 2.0**-30]))


def test_the_command_names_the_packages_that_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "missing_packages", lambda: ["gmpy2", "gfloat"])
    result = CliRunner().invoke(command.app, [])
    assert result.exit_code == 2
    assert result.stderr == (
        "gmpy2, gfloat are not installed; run pip install 'castigate[truths]'\n"
    )


@pytest.mark.parametrize(("failures", "code"), [([], 0), (["ml_dtypes: it differs"], 1)])
def test_the_command_exits_with_1_if_an_answer_differs(
    failures: list[str], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = Counts(compared=1003, agree=1000, open=2, failures=failures)
    counts.known["by way of float32"] = 1 - len(failures)
    key = "ml_dtypes", "float to float", "nearest-even"
    monkeypatch.setattr(command, "missing_packages", list)
    monkeypatch.setattr(command, "run", lambda jobs, random, report: report("pair", {key: counts}))
    monkeypatch.setattr(page, "versions", lambda: {"ml_dtypes": "9.9"})
    path = tmp_path / "truths.md"
    result = CliRunner().invoke(command.app, ["--page", str(path), "--random", "7"])
    assert result.exit_code == code, result.output
    text = path.read_text(encoding="utf-8")
    assert f"| ml_dtypes | 9.9 | 1,003 | 1,000 | 2 | {1 - code} | {code} |" in text
    assert ("- **Unknown**: ml_dtypes: it differs" in text) == bool(failures)
    assert ("No other answer differs." in text) == (not failures)
    assert ("rounds twice. | the reference | 1 |" in text) == (not failures)
    assert "pair 7 random patterns" in text
