"""Planted faults are named rightly: by what happens and where, without further findings."""

from __future__ import annotations

from math import comb, log2
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.families.cast import follow
from reports.findings.finding import UNEXPLAINED, Finding
from reports.findings.finding_text import extent_words
from reports.findings.mechanism_search import bits_of_choice, worth
from reports.findings.read_findings import read_findings
from reports.findings.rule_wrongs import other_mode
from reports.findings.wrong import AskedInputs, predicted_failures
from specs.cases import Case
from specs.formats import format_named
from specs.ruling import ruling
from specs.selection import case_named
from tests.reports.judged_run import RIGHT, cases_of, judged_run, with_mode
from tests.reports.planted_causes import ONNX, PLANTED, PLANTED_BITCASTS, Planted, only
from tests.reports.planted_causes import random as at_random

NAMED = {
    "SubnormalViaFloat32": (
        "rounds-twice-through-float32",
        "rounds twice, through float32, where the result is subnormal",
    ),
    "SaturatePositiveOnly": (
        "infinity",
        "gives -infinity, for x ≤ -61440 and -infinity, where the lowest value is required",
    ),
    "NanCarryIntoInf": (
        "infinity",
        "gives infinity, for NaN whose payload is in the lowest 16 bits, where NaN is required",
    ),
    "Uint8AsInt8": ("reads-unsigned-as-signed", "reads unsigned integers as signed"),
    "Int16AsUint16": ("reads-signed-as-unsigned", "reads signed integers as unsigned"),
    "PlusIsNoNumber": ("nan", "gives NaN, for texts with a leading plus sign"),
    "Uint64ShiftedWithoutSticky": (
        "halves-large-integers",
        "halves unsigned integers beyond the signed range before it converts them, and loses their"
        " lowest bit",
    ),
    "Uint64SignedInFloat16": ("reads-unsigned-as-signed", "reads unsigned integers as signed"),
    "Mlx4135": (
        "moves-bits",
        "converts small floats by moving their bits, through float32, as if they were normal,"
        " for NaN",
    ),
    "InnerZeroLost": (
        "loses-inner-zeros",
        "loses the zeros between the other digits of a number",
    ),
    # Other subnormal numbers are read rightly, so the cause is not that these are flushed.
    "ExponentTooLarge": ("zero", "gives zero"),
    "FloatTextIsRounded": ("printf-0f", "writes numbers as printf does with %.0f"),
    "CachedByWidth": (
        "as-another-dtype",
        "takes dtypes for others of the same width: bfloat16 for float16, float8e5m2 for"
        " float8e4m3fn, uint32 for float32",
    ),
    "RoundsToOdd": ("rounds-odd", "rounds to odd"),
    "StickyByteLost": ("ignores-8-low-bits", "ignores the lowest 8 bits of its inputs"),
    "NarrowStickyMask": (
        "sticky-8-bits",
        "tells numbers above a tie from the tie by the lowest 8 bits of its inputs only",
    ),
    "SubnormalsRoundedAsNormal": (
        "rounds-subnormals-twice",
        "rounds subnormal results twice: first to as many digits as normal ones have",
    ),
    "NanCarried": (
        "rounds-nans",
        "rounds NaNs as if they were numbers, so that a carry makes infinities or zeros of them",
    ),
    # The input is a negative NaN, the answer is no -0.
    "LastIsZero": ("zero", "gives zero, for -NaN 0xffffffff, where NaN is required"),
    "NegativeZeroIsNan": (
        "makes-negative-zeros-nan",
        "gives the sign alone for negative inputs that become zero, which is a NaN",
    ),
    "MinusZeroText": ("reads-minus-zero-as-zero", "gives 0 for texts of -0"),
    "SaturatedAsInt8": (
        "clamps-to-the-signed-range",
        "clamps unsigned integers to the largest signed one of the same width",
    ),
    "ByWayOfFloat8": (
        "rounds-twice-through-float8e4m3fn",
        "rounds twice, through float8e4m3fn",
    ),
    # What onnx-cast leaves open on the way is what C gives.
    "ByWayOfInt32": ("through-int32", "converts to int32 first"),
    "SmallIsFalse": ("zero", "gives zero, for |x| < 0.5"),
    "ByWayOfInt16": ("through-int16", "converts to int16 first"),
    "NarrowerSwapped": (
        "reverses-elements",
        "bitcasts between widths put the elements that make up a wider one in reverse order",
    ),
    "BitcastNanQuieted": (
        "quiets-nans-of-source",
        "bitcasts make signaling NaNs of the source quiet",
    ),
    "OddNibbles": (
        "reverses-elements-in-bytes",
        "bitcasts put elements of less than 8 bits that share a byte in reverse order",
    ),
    "BytesSwapped": (
        "reversed-bytes-of-answers",
        "gives its answers with their bytes in reverse order",
    ),
    "BitsInverted": ("changes-bits", "bitcasts give other bits"),
    "EmptyKeepsShape": (
        "keeps-the-shape",
        "bitcasts between widths keep the shape, for tensors without elements",
    ),
    "Random": (UNEXPLAINED, "gives wrong values that no closed form explains"),
}


@pytest.fixture(autouse=True)
def _few_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask at most a million inputs around failing ones: the names depend on far fewer."""
    monkeypatch.setattr(follow, "MOST_FOLLOWED", 1 << 20)


def found_in(folder: Path, planted: Planted) -> tuple[Finding, ...]:
    store = judged_run(folder, {"faulty": planted.answer}, cases_of(*planted.patterns))
    return read_findings(store)["faulty"]


@pytest.mark.ci_runs_one_of(3)
@pytest.mark.parametrize("name", NAMED)
def test_a_fault_is_one_finding_of_its_own_name(name: str, tmp_path: Path) -> None:
    [found] = found_in(tmp_path / "run", (PLANTED | PLANTED_BITCASTS)[name])
    assert (found.name, found.says) == NAMED[name]


def test_every_planted_fault_has_a_name() -> None:
    assert set(NAMED) == {*PLANTED, *PLANTED_BITCASTS}


def test_a_number_of_the_wrong_value_is_not_blamed_for_its_notation(tmp_path: Path) -> None:
    [found] = found_in(tmp_path / "run", PLANTED["InnerZeroLost"])
    assert "gives '124', not a text of that value" in extent_words(found)


def test_random_answers_that_are_often_zero_have_no_other_cause(tmp_path: Path) -> None:
    """A constant that is answered more often than by chance is no cause of those answers."""

    def cast(case: Case, bits: Any) -> Any:
        answers = at_random(case, bits)
        return np.where(answers & 3 == 0, answers.dtype.type(0), answers)

    patterns = tuple(f"{ONNX}/{each}/" for each in ("float16/int8", "float8e5m2/float16"))
    [found] = found_in(tmp_path / "run", Planted(cast, patterns))
    assert found.name == UNEXPLAINED


def test_a_parameter_that_is_ignored_for_negative_values_is_named_with_them(
    tmp_path: Path,
) -> None:
    """Values below the range become the lowest value, and a negative NaN changes its sign."""
    answer = only(lambda case, bits: bits >> bits.dtype.type(15) == 1, with_mode("saturate", "1"))
    patterns = tuple(
        f"{ONNX}/float16/{target}/saturate:0/" for target in ("float8e5m2", "float8e4m3fn")
    )
    [found] = found_in(tmp_path / "run", Planted(answer, patterns))
    assert (found.name, found.says) == (
        "as-saturate-1",
        "answers as with saturate = 1 where it has another value, for negative values",
    )


def test_a_few_values_among_right_ones_are_not_called_a_rounding(tmp_path: Path) -> None:
    """Truncation gives these answers too, but the backend truncates nothing else."""
    lower = np.array([5, 100, 3000], np.float16)
    ties = (lower.astype(np.float64) + np.nextafter(lower, np.float16(np.inf))) / 2
    above = np.nextafter(ties, np.inf).view(np.uint64)

    def cast(case: Case, bits: Any) -> Any:
        right = RIGHT.cast(case, bits)
        return np.asarray(right - np.isin(bits, above).astype(right.dtype))

    [found] = found_in(tmp_path / "run", Planted(cast, (f"{ONNX}/float64/float16",)))
    assert (found.name, found.inputs) == (UNEXPLAINED, 3)


SAME_VALUE = "numpy-astype:2.4/float64/int32/casting:same_value/"


def test_a_mode_that_must_refuse_and_is_ignored_is_named(tmp_path: Path) -> None:
    [found] = found_in(tmp_path / "run", Planted(with_mode("casting", "unsafe"), (SAME_VALUE,)))
    assert found.name == "accepts-what-numpy-astype-refuses"


def test_a_mechanism_predicts_nothing_where_another_mode_refuses() -> None:
    case = case_named("wasm-convert:2.0/float64/int32/operator:trunc_sat")
    inputs = np.array([1.5, -2.0, 3e9, np.nan]).view(np.uint64)
    fails = np.array([False, False, True, True])
    asked = AskedInputs(ruling(case), inputs, np.zeros(4, np.uint32), fails)
    predicted = predicted_failures(other_mode("operator", "trunc"), case, asked)
    assert predicted is not None
    assert not predicted.any()


def test_a_shape_is_named_without_the_notes_of_its_case(tmp_path: Path) -> None:
    def cast(case: Case, bits: Any) -> Any:
        return RIGHT.cast(case, bits).reshape(-1)

    [found] = found_in(tmp_path / "run", Planted(cast, (SAME_VALUE,)))
    assert found.says == "shape (): the answer has shape (1,), the input ()"


@pytest.mark.parametrize(("some", "among"), [(1, 256), (3, 10), (100, 4000)])
def test_bits_of_a_choice(some: int, among: int) -> None:
    assert bits_of_choice(some, among) == pytest.approx(log2(comb(among, some)))


def test_what_fails_everywhere_tells_nothing_about_where() -> None:
    target = format_named("float8e5m2")
    assert worth(target, 256, 256, 256, 0) == 0
    assert worth(target, 256, 256, 256, 1) == pytest.approx(log2(255) - log2(256))
    assert worth(target, 256, 1, 1, 1) == pytest.approx(log2(256) + log2(255))
