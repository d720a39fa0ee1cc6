"""Quantization and blocks are proved, and planted faults of each kind are counterexamples."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest

pytest.importorskip("bitwuzla", reason="the proof needs a solver")

from conformance.families.blocks import exact as exact_blocks
from conformance.families.blocks import kernels as block_kernels
from conformance.families.blocks.ruling import block_ruling
from conformance.families.quantization import kernels as quantization_kernels
from lab.proof import quantization_pairs, smt_arrays, smt_quantization
from lab.proof.obligations import Obligation
from lab.proof.quantization import Exhaustion, Question, prove_quantization, statements
from lab.proof.quantization_pairs import (
    wrong_block_product,
    wrong_dequantized,
    wrong_difference,
    wrong_product,
    wrong_quotient,
)
from lab.proof.smt_blocks import prove_codes, prove_decoded, prove_scale
from lab.proof.smt_quantization import (
    endings,
    prove_ending,
    prove_odd_then_nearest,
    prove_rounded_once,
)
from lab.proof.smt_rounding import is_rounding
from specs.selection import case_named
from tests.lab.proof.planted import planted_module, planted_text

SECONDS = 3600.0
"""A time limit that no question reaches, on a busy machine either."""


def mx(element: str, rule: str, number: str = "bfloat16") -> str:
    return f"mx-blocks:1/{number}/{element}/rule:{rule}/block:32"


def nvfp4(rule: str) -> str:
    return f"nvfp4-blocks:1/float16/float4e2m1/rule:{rule}/global:none/block:16"


def ending_of(target: str, *, is_last: bool = False) -> int:
    found = [at for at, one in enumerate(endings()) if one.formula.target.name == target]
    return found[-1 if is_last else 0]


def by_solver(prove: Callable[..., Obligation], subject: str | int) -> Obligation:
    return prove(subject, SECONDS)


RIGHT: list[tuple[Callable[..., Obligation], str | int]] = [
    (prove_scale, mx("float8e4m3fn", "floor", "float32")),
    (prove_scale, mx("int8", "round-up")),
    (prove_scale, mx("float6e3m2", "nearest-log")),
    (prove_decoded, "bfloat16"),
    (prove_codes, mx("float4e2m1", "floor")),
    (prove_ending, ending_of("uint2")),
    (prove_ending, ending_of("float4e2m1")),
    (prove_rounded_once, "float16"),
    (prove_odd_then_nearest, "float16"),
]


@pytest.mark.ci_runs_one_of(4)
@pytest.mark.parametrize(("prove", "subject"), RIGHT)
def test_right_kernels_are_proved(prove: Callable[..., Obligation], subject: str | int) -> None:
    obligation = by_solver(prove, subject)
    assert (obligation.verdict, obligation.found) == ("proved", "")


FAULTS: dict[str, tuple[ModuleType, str, str, Callable[..., Obligation], str | int]] = {
    "a threshold that the scale does not reach": (
        block_kernels, "- ((fraction == 0.5) & (not at.includes))", "",
        prove_scale, mx("float8e5m2", "ceil"),
    ),
    "a threshold of another rule": (
        block_kernels, '"round-up": Threshold(largest / 2, False)',
        '"round-up": Threshold(leading / 2, False)', prove_scale, mx("float6e2m3", "round-up"),
    ),
    "a scale that is not limited": (
        block_kernels, "np.clip(power, -POWER_LIMIT, POWER_LIMIT)", "power",
        prove_scale, mx("float8e4m3fn", "floor"),
    ),
    "the end of the range at the wrong scale": (
        block_kernels, "asked[power < -POWER_LIMIT]", "asked[power <= -POWER_LIMIT]",
        prove_scale, mx("float4e2m1", "even"),
    ),
    "ties to odd codes": (
        block_kernels, "reached & (codes % 2 == 1)", "reached & (codes % 2 == 0)",
        prove_codes, mx("float4e2m1", "floor"),
    ),
    "a scale of zero": (
        block_kernels, "np.clip(codes, 1, ruling.scale.max_code)",
        "np.clip(codes, 0, ruling.scale.max_code)", prove_scale, nvfp4("nearest-away"),
    ),
    "a subnormal number decoded as a normal one": (
        block_kernels, "power = np.maximum(field, int(entry.zero != \"none\")) -",
        "power = field -", prove_decoded, "float16",
    ),
    "a sign lost": (
        block_kernels, "places | np.where(is_negative, fmt.sign_bit, 0)", "places",
        prove_codes, mx("float4e2m1", "floor"),
    ),
    "the wrong end": (
        quantization_kernels, 'target.lowest_code if word == "saturated"',
        'target.max_code if word == "saturated"', prove_ending, ending_of("int2"),
    ),
    "a zero point subtracted": (
        quantization_kernels, "total = whole + offset", "total = whole - offset",
        prove_ending, ending_of("int2"),
    ),
    "a quotient cut off": (
        quantization_kernels, "whole = np.rint(values) if", "whole = np.floor(values) if",
        prove_ending, ending_of("uint2"),
    ),
    "a negative float at the positive end": (
        quantization_kernels, 'target.lowest_code if word == "saturated"',
        'target.max_code if word == "saturated"', prove_ending, ending_of("float4e2m1"),
    ),
    "subnormal results with too many bits": (
        quantization_kernels, "np.maximum(exponent - 1, fmt.lowest_exponent)", "(exponent - 1)",
        prove_rounded_once, "bfloat16",
    ),
    "a carry into the exponent lost": (
        quantization_kernels, "significand, exponent = np.frexp(magnitude)",
        "significand, exponent = np.frexp(values)", prove_rounded_once, "float16",
    ),
}  # fmt: skip


@pytest.mark.ci_runs_one_of(4)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_a_counterexample(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, right, wrong, prove, subject = FAULTS[fault]
    text = planted_text(module, right, wrong)
    monkeypatch.setattr(smt_arrays, "text_of", lambda _: text)
    obligation = by_solver(prove, subject)
    assert obligation.verdict == "counterexample"
    assert "0x" in obligation.found


def test_the_magnitude_that_is_found_has_another_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    fault = "a threshold of another rule"
    module, right, wrong, _, name = FAULTS[fault]
    planted = planted_module(monkeypatch, module, right, wrong)
    monkeypatch.setattr(smt_arrays, "text_of", lambda _: planted_text(module, right, wrong))
    ruling = block_ruling(case_named(str(name)))
    code = int(prove_scale(str(name), SECONDS).found, 16)
    x = np.full((1, ruling.size), code, ruling.number.storage)
    due = exact_blocks.scale_of(ruling, [code]).code
    assert int(block_kernels.scales(ruling, x).codes[0, 0]) == due
    assert int(planted.scales(ruling, x).codes[0, 0]) != due


def test_nearest_then_nearest_is_no_substitute_for_odd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        smt_quantization, "is_rounding",
        lambda value, code, rounding: is_rounding(value, code, "nearest-even"),
    )  # fmt: skip
    assert prove_odd_then_nearest("float16", SECONDS).verdict == "counterexample"


def test_what_runs_out_of_time_is_open() -> None:
    assert prove_scale(mx("float8e4m3fn", "nearest-log", "float32"), 0.001).verdict == "open"
    assert prove_ending(ending_of("int16"), 0.001).verdict == "open"


PAIRS: dict[str, tuple[Callable[..., str], tuple[str, ...], ModuleType, str, str]] = {
    "quotients": (
        wrong_quotient, ("float8e5m2", "float8e4m3fn"), quantization_kernels,
        "return _to_odd(quotient, np.where(divisor < 0, -rest, rest)), np",
        "return quotient, np",
    ),
    "exact quotients": (
        wrong_quotient, ("float8e4m3fn", "float8e5m2"), quantization_kernels,
        "np.asarray(rest == 0)", "np.asarray(rest >= 0)",
    ),
    "products": (
        wrong_product, ("bfloat16",), quantization_kernels,
        "rest = one_high * other_high - product", "rest = one_high * other_high + product",
    ),
    "differences": (
        wrong_difference, ("int4",), quantization_kernels, "given - offset", "given + offset",
    ),
    "dequantized": (
        wrong_dequantized, ("int4", "bfloat16"), quantization_kernels,
        "return rounded_by(np.rint, fmt, values)", "return rounded_by(np.floor, fmt, values)",
    ),
    "beyond the end": (
        wrong_dequantized, ("uint2", "float16"), quantization_kernels,
        "return np.asarray((rounded >= lowest) & (rounded <= _largest(fmt)))",
        "return np.asarray((rounded >= lowest) & (rounded < _largest(fmt)))",
    ),
    "block products": (
        wrong_block_product, ("mx-blocks-decode:1/float4e2m1/float16/block:32",), block_kernels,
        "multiple = np.rint(", "multiple = np.floor(",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", PAIRS)
def test_pairs_are_right_and_a_planted_fault_is_found(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    find, arguments, module, right, wrong = PAIRS[kind]
    assert find(*arguments) == ""
    planted = planted_module(monkeypatch, module, right, wrong)
    name = next(key for key, each in vars(quantization_pairs).items() if each is module)
    monkeypatch.setattr(quantization_pairs, name, planted)
    assert "0x" in find(*arguments)


def test_statements_cover_every_ending_rule_and_pair() -> None:
    asked = [one.subject for one in statements() if isinstance(one, Question)]
    names = [subject for subject in asked if isinstance(subject, str)]
    rules = {name.partition("rule:")[2].partition("/")[0] for name in names if "rule:" in name}
    assert rules == {
        "floor", "ceil", "round-up", "round-down", "even", "nearest", "nearest-log",
        "round-up-7.25", "nearest-even", "nearest-away",
    }  # fmt: skip
    assert [subject for subject in asked if isinstance(subject, int)] == [*range(len(endings()))]
    assert sum(1 + ending.others for ending in endings()) == 1399
    pairs = {one.arguments for one in statements() if isinstance(one, Exhaustion)}
    assert ("float16", "bfloat16") in pairs
    assert ("int8", "float16") in pairs


@pytest.mark.nightly  # `tox -e proof` runs it, too
def test_every_statement_is_proved() -> None:
    obligations = prove_quantization(jobs=2)
    assert [str(one) for one in obligations if one.verdict != "proved"] == []
    assert len(obligations) == len(statements())
