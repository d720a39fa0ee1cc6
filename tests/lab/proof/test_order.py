"""The solver proves that casts keep the order of values, and finds planted faults that swap two."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest

pytest.importorskip("bitwuzla", reason="the proof needs a solver")

from lab.proof.bit_vectors import Solving
from lab.proof.obligations import Group, groups
from lab.proof.smt_order import keeps_order, number_branches, prove, prove_order, rank
from oracles.reference.exact import Infinity, NotANumber, Number, decode
from specs.formats import Format, format_named
from specs.outcomes import Anything, Nan, Wrap
from tests.lab.proof.planted import plant
from tests.lab.proof.test_smt_queries import SECONDS, group_of

ORDERED = [group for group in groups() if keeps_order(group)]
FAR = Fraction(2) ** 20_000


def value(fmt: Format, code: int) -> Fraction:
    match decode(fmt, code):
        case Number(sign, significand, exponent):
            magnitude = significand * Fraction(2) ** exponent
            return -magnitude if sign else magnitude
        case Infinity(sign):
            return -FAR if sign else FAR
    raise AssertionError(fmt.hexadecimal(code))


def test_every_group_that_names_numbers_keeps_the_order_except_to_bool() -> None:
    for group in groups():
        names_numbers = any(number_branches(rules) for _, rules in group.rulings)
        assert keeps_order(group) == (names_numbers and group.target.name != "bool")
    assert len(ORDERED) > 450


def test_nothing_that_names_no_number_is_compared() -> None:
    for group in ORDERED:
        for _, rules in group.rulings:
            outcomes = [rules.branches[index].outcome for index in number_branches(rules)]
            assert not any(isinstance(one, Anything | Nan | Wrap) for one in outcomes)


@pytest.mark.ci_runs_one_of(7)
@pytest.mark.parametrize(
    "group",
    ORDERED[::80],
    ids=lambda group: f"{group.source.name}-{group.target.name}-{group.rounding}",
)
def test_casts_keep_the_order_of_values(group: Group) -> None:
    obligation = prove(group, SECONDS)
    assert (obligation.verdict, obligation.found) == ("proved", "")
    assert obligation.inputs == f"2^{2 * group.source.bits} pairs"


def test_magnitudes_in_a_format_without_negative_numbers_keep_their_order() -> None:
    """CUDA's headers clip both infinities to the largest power of two, and zero to the least."""
    asked = ("bfloat16", "float8e8m0", "floor")
    [group] = [one for one in ORDERED if (one.source.name, one.target.name, one.rounding) == asked]
    assert any(name.startswith("cuda-convert") for name, _ in group.rulings)
    assert prove(group, SECONDS).verdict == "proved"


FAULTS = {
    "a carry into the exponent lost": ("code, truncated = base + rounded, base + kept",
        "code, truncated = base | rounded, base + kept", ("float32", "float16", "nearest-even")),
    "a sign lost": ("code = code | select(signed, target.sign_bit, 0)",
        "code = code | select(signed, 0, 0)", ("float64", "float8e4m3fn", "nearest-even")),
    "a negative integer not negated": (
        "code = select(parts.sign == 1, 0 - rounded, rounded) & target.mask",
        "code = select(parts.sign == 1, rounded, rounded) & target.mask",
        ("float32", "int16", "nearest-even")),
    "overflow far too late": ("overflow = large | (rounded > bound)",
        "overflow = large | (rounded > (bound << 4))", ("int64", "int32", "toward-zero")),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_swaps_two_values(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right, wrong, pair = FAULTS[fault]
    group = group_of(*pair)
    plant(monkeypatch, right, wrong)
    obligation = prove(group, SECONDS)
    assert obligation.verdict == "counterexample"
    found = re.match(r"(0x\w+) gives (0x\w+), (0x\w+) (0x\w+), in ", obligation.found)
    assert found is not None, obligation.found
    low, below, high, above = (int(code, 16) for code in found.groups())
    assert value(group.source, low) <= value(group.source, high)
    assert value(group.target, below) > value(group.target, above)


def test_an_order_that_times_out_is_open() -> None:
    obligation = prove(group_of("float64", "int64", "toward-zero"), 0.01)
    assert (obligation.verdict, obligation.found) == ("open", "")


@pytest.mark.parametrize(
    "name", ["float8e4m3fn", "float8e5m2fnuz", "float8e8m0", "float4e2m1", "int8", "uint4", "bool"]
)
def test_the_rank_of_patterns_is_that_of_their_values(name: str) -> None:
    fmt, solving = format_named(name), Solving()
    ranks: dict[Fraction, set[int]] = {}
    for code in range(fmt.mask + 1):
        if not isinstance(decode(fmt, code), NotANumber):
            unknown = solving.unknown(f"rank{code}", fmt.bits)
            found = solving.find(
                rank(fmt, solving.vector(code, fmt.bits)) == unknown, unknown, SECONDS
            )
            assert isinstance(found, int)
            ranks.setdefault(value(fmt, code), set()).add(found)
    in_order = [ranks[each] for each in sorted(ranks)]
    assert all(len(each) == 1 for each in in_order)
    flat = [rank_ for each in in_order for rank_ in each]
    assert flat == sorted(set(flat))


@pytest.mark.nightly  # `tox -e proof` runs it, too
def test_the_solver_proves_every_order() -> None:
    obligations = prove_order(jobs=2)
    assert [str(one) for one in obligations if one.verdict != "proved"] == []
    assert len(obligations) == len(ORDERED)
