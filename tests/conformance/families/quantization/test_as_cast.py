"""What a document of quantization says by way of Cast is what Cast itself says, pattern by pattern.

The exact definition, the kernels and the model of quantization were once wrong alike: each read the
word `cast` without the sign of a NaN. So they are compared here with another document, whose
rulings have a definition, kernels and tests of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from math import floor
from typing import Any

import numpy as np
import pytest

from conformance.families.quantization import exact as exact_quantization
from conformance.families.quantization import kernels
from conformance.families.quantization import ruling as quantization_ruling
from conformance.families.quantization.grading import as_code
from conformance.families.quantization.kernels import NAN_CODES, NO_CODE
from conformance.families.quantization.ruling import CastOutcome, formula
from oracles.reference import expect_by_exact, expect_by_kernels
from specs.branches import Branch
from specs.cases import Case
from specs.formats import Format, format_named, value_of
from specs.outcomes import Nan
from specs.ruling import ruling
from specs.selection import case_named, select

VERSIONS = ("19", "21", "23", "24", "25")
SMALL = ("float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "float4e2m1")
ONE = {"float32": 0x3F800000, "float16": 0x3C00, "bfloat16": 0x3F80}
WIDE = 1 << 16
"""Patterns of float32 that are drawn, besides those that begin like every bfloat16."""


def quantizations(version: str) -> list[Case]:
    """Cases that divide by a scale of the source's dtype, in whatever precision that means."""
    return [
        case
        for case in select([f"onnx-quantize-linear:{version}"])
        if case.target in SMALL
        and case.source in ONE
        and case.mode["scale"] == case.source
        and case.mode["form"] == "tensor"
        and "precision" not in case.mode
    ]


def cast_of(case: Case) -> Case:
    modes = tuple(each for each in case.modes if each[0] == "saturate")
    return Case("onnx-cast", case.version, case.source, case.target, modes)


def patterns(source: Format) -> np.ndarray:
    """All patterns of 16 bits; of 32 bits those that begin so, and random ones."""
    if source.bits == 16:
        return np.arange(1 << 16, dtype=np.uint16)
    high = np.arange(1 << 16, dtype=np.uint32) << 16
    drawn = np.random.default_rng(63).integers(0, 1 << 32, WIDE, np.uint64).astype(np.uint32)
    return np.concatenate([high, high | 1, high | 0xFFFF, drawn])


def differences(case: Case) -> list[str]:
    """The patterns that quantization by a scale of 1 and Cast treat otherwise."""
    source, rules = format_named(case.source), formula(case)
    x = patterns(source)
    found = kernels.expect(rules, x, np.full(x.shape, ONE[case.source], x.dtype), None)
    due = ruling(cast_of(case))
    expected = expect_by_kernels.expect(due, x)
    strong = np.stack(found.strong)
    weaker = np.stack(found.weaker or [np.full(x.shape, NO_CODE)])
    unlike = found.is_open.copy()
    for index, branch in enumerate(due.branches):
        here = expected.branch_indices == index
        best = _codes(branch, expected.codes, strictest=True)
        other = _codes(branch, expected.codes, strictest=False)
        unlike |= here & ~(strong == best).any(0)
        unlike |= here & ~_only(strong, best, rules.target)
        unlike |= here & (other != best) & ~(weaker == other).any(0)
    return [f"{case.id} {code:#x}" for code in x[unlike].tolist()]


def _codes(branch: Branch, codes: np.ndarray, *, strictest: bool) -> np.ndarray:
    outcome = branch.strictest if strictest else branch.outcome
    if isinstance(outcome, Nan):
        return np.full(codes.shape, NAN_CODES[outcome.sign])
    return codes.astype(np.int64)


def _only(strong: np.ndarray, best: np.ndarray, target: Format) -> np.ndarray:
    """Whether no other pattern is right; a zero may have either sign, as 0 is added to it."""
    zeros = (0, target.sign_bit) if target.entry.zero == "signed" else (0,)
    fine = (strong == best) | (strong == NO_CODE)
    return np.asarray((fine | (np.isin(strong, zeros) & np.isin(best, zeros))).all(0))


@pytest.mark.ci_runs_one_of(4)
@pytest.mark.parametrize("version", VERSIONS[::-1])
def test_quantization_by_one_is_a_cast(version: str) -> None:
    cases = quantizations(version)
    assert {case.mode.get("saturate") for case in cases} >= {"0", "1"}
    assert [each for case in cases for each in differences(case)] == []


def special(source: Format) -> Iterator[int]:
    """Infinities, NaNs of several payloads, zeros, ends of ranges, both signs of each."""
    magnitudes = {
        "float32": (0, 1, 0x43E80000, 0x43E80001, 0x47600000, 0x477FFFFF, 0x7F7FFFFF, 0x7F800000),
        "float16": (0, 1, 0x5F3F, 0x5F40, 0x5F41, 0x7B80, 0x7BFF, 0x7C00),
        "bfloat16": (0, 1, 0x43E8, 0x43E9, 0x4760, 0x477F, 0x7F7F, 0x7F80),
    }[source.name]
    for magnitude in (*magnitudes, magnitudes[-1] + 1, source.sign_bit - 1):
        yield magnitude
        yield magnitude | source.sign_bit


@pytest.mark.parametrize("version", VERSIONS)
def test_the_definition_of_quantization_by_one_is_that_of_cast(version: str) -> None:
    for case in quantizations(version):
        source, due = format_named(case.source), ruling(cast_of(case))
        for code in special(source):
            allowed = expect_by_exact.allow(due, code)
            found = exact_quantization.quantized(formula(case), code, ONE[case.source], None)
            strictest, outcome = allowed.branch.strictest, allowed.branch.outcome
            strong = {NAN_CODES[strictest.sign]} if isinstance(strictest, Nan) else {*allowed.codes}
            if isinstance(outcome, Nan) and outcome != strictest:
                assert NAN_CODES[outcome.sign] in map(as_code, found.weaker), (case.id, hex(code))
            got = {*map(as_code, found.codes)}
            if code & ~source.sign_bit == 0 and format_named(case.target).entry.zero == "signed":
                assert strong <= got == {0, format_named(case.target).sign_bit}
            else:
                assert got == (strong or {allowed.branch.strictest.code}), (case.id, hex(code))


def test_every_case_of_cast_like_is_one_of_cast() -> None:
    cases = select(["onnx-cast-like"])
    assert len({case.version for case in cases}) > 3
    for case in cases:
        version = "13" if case.version == "15" else case.version
        cast = Case("onnx-cast", version, case.source, case.target, case.modes)
        assert ruling(case).meaning == ruling(cast).meaning, case.id


def test_codes_of_a_dynamic_quantization_are_those_of_a_quantization() -> None:
    dynamic = formula(case_named("onnx-dynamic-quantize-linear:11/float32/uint8"))
    plain = formula(case_named("onnx-quantize-linear:10/float32/uint8/scale:float32/form:tensor"))
    draw = np.random.default_rng(64)
    x = draw.integers(0, 1 << 32, 1 << 16, np.uint64).astype(np.uint32)
    x[::2] = draw.normal(0, 90, x[::2].size).astype(np.float32).view(np.uint32)
    scale = draw.uniform(2**-8, 2, x.size).astype(np.float32).view(np.uint32)
    zero = draw.integers(0, 256, x.size).astype(np.uint8)
    finite = np.isfinite(x.view(np.float32))
    found, due = (
        kernels.expect(rules, x[finite], scale[finite], zero[finite]) for rules in (dynamic, plain)
    )
    assert (found.is_open == due.is_open).all()
    assert (found.is_recommended == due.is_recommended).all()
    for mine, other in ((found.strong, due.strong), (found.weaker, due.weaker)):
        sets = (np.sort(np.stack(each), axis=0) for each in (mine, other))
        one, two = ([{*map(int, row)} - {NO_CODE} for row in each.T] for each in sets)
        assert one == two


@pytest.mark.parametrize("target", ["uint8", "int8"])
def test_webnn_casts_what_it_has_rounded_and_limited(target: str) -> None:
    """The emulation in WebNN's page ends with its operation `cast`."""
    case = case_named(f"webnn-quantize-linear:draft/float16/{target}/scale:float16/form:tensor")
    cast = ruling(case_named(f"webnn-cast:draft/float16/{target}"))
    low, high = {"uint8": (0, 255), "int8": (-128, 127)}[target]
    for code in range(0, 1 << 16, 61):
        value = np.array(code, np.uint16).view(np.float16)
        if np.isnan(value):
            continue
        limited = min(max(float(value), low), high)
        whole = np.array(round(Fraction(limited)), np.float16).view(np.uint16)
        found = exact_quantization.quantized(formula(case), code, ONE["float16"], None)
        assert {*found.codes} == {*expect_by_exact.allow(cast, int(whole)).codes}, (
            case.id,
            hex(code),
        )


# Misreadings that the definition and the kernels share


def _before_rounding(fmt: Format, value: Any) -> Any:
    lowest, largest = value_of(fmt, fmt.lowest_code), value_of(fmt, fmt.max_code)
    if isinstance(value, Fraction):
        return lowest <= value <= largest
    return (value >= float(lowest)) & (value <= float(largest))


def _half_away(fmt: Format, values: Any) -> Any:
    def away(multiples: Any) -> Any:
        return np.copysign(np.floor(np.abs(multiples) + 0.5), multiples)

    return kernels.rounded_by(away, fmt, values)


def _exactly_half_away(fmt: Format, value: Fraction) -> Fraction:
    unit = Fraction(2) ** exact_quantization._unit_exponent(fmt, value)
    whole = floor(abs(value) / unit + Fraction(1, 2)) * unit
    return -whole if value < 0 else whole


def _coarse(nearest: Any) -> Any:
    """Round by the unit of a format that has one binade less."""
    return lambda fmt, value: nearest(_with_fewer_binades(fmt), value)


@cache
def _with_fewer_binades(fmt: Format) -> Format:
    if fmt.is_integral:
        return fmt
    return replace(fmt, entry=replace(fmt.entry, bias=fmt.entry.bias - 1))


def _misread(misreading: str) -> Any:
    """The table of what Cast makes of special values, misread."""
    right = quantization_ruling._casts

    def casts(case: Case) -> Iterator[Any]:
        if misreading == "infinities as in another version":
            case = replace(case, version="25")
        if misreading == "saturate ignored":
            modes = ((name, "1" if name == "saturate" else value) for name, value in case.modes)
            case = replace(case, modes=tuple(modes))
        for (situation, is_negative), found in right(case):
            if misreading == "signs exchanged":
                is_negative = not is_negative
            if misreading == "no sign of NaNs" and isinstance(found.outcome, Nan):
                found = CastOutcome(Nan("any"), Nan("any"))
            yield (situation, is_negative), found

    return casts


MISREADINGS = {
    "no sign of NaNs": {"_casts"},
    "signs exchanged": {"_casts"},
    "infinities as in another version": {"_casts"},
    "saturate ignored": {"_casts"},
    "in range before rounding": {"_is_within"},
    "ties away from zero": {"nearest"},
    "one binade less": {"nearest"},
}
"""Each with what is replaced; the first is how the definition, the kernels and the model erred."""


@pytest.mark.parametrize("misreading", MISREADINGS)
def test_a_misreading_that_all_truths_share_is_found(
    misreading: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = "23" if "another version" in misreading else "25"
    cases = [each for each in quantizations(version) if each.source == "float16"]
    quantization_ruling.formula.cache_clear()
    match misreading:
        case "in range before rounding":
            monkeypatch.setattr(kernels, "_is_within", _before_rounding)
            monkeypatch.setattr(exact_quantization, "_is_within", _before_rounding)
        case "ties away from zero":
            monkeypatch.setattr(kernels, "nearest", _half_away)
            monkeypatch.setattr(exact_quantization, "nearest", _exactly_half_away)
        case "one binade less":
            for module in (kernels, exact_quantization):
                monkeypatch.setattr(module, "nearest", _coarse(module.nearest))
        case _:
            monkeypatch.setattr(quantization_ruling, "_casts", _misread(misreading))
    try:
        # The definition and the kernels still agree, so that no comparison of the two can tell.
        for case in cases:
            assert disagreements(case) == []
        assert any(map(differences, cases))
    finally:
        quantization_ruling.formula.cache_clear()


def disagreements(case: Case) -> list[str]:
    """The special and telling patterns that the definition and the kernels treat otherwise."""
    source, rules = format_named(case.source), formula(case)
    codes = [*special(source), 0x3C01, 0x3D80, 0x3C80, 0x0401, 0x1800]
    x = np.array(codes, np.uint16)
    found = kernels.expect(rules, x, np.full(x.shape, ONE[case.source], x.dtype), None)
    unlike = []
    for at, code in enumerate(codes):
        due = exact_quantization.quantized(rules, code, ONE[case.source], None)
        strong = {int(each[at]) for each in found.strong} - {NO_CODE}
        if strong != {*map(as_code, due.codes)}:
            unlike.append(f"{case.id} {code:#x}: {due}, not {strong}")
    return unlike
