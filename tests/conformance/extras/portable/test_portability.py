"""The ranges on which planted backends agree, if they differ in known inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import conformance.extras.portable.survey as engine
from conformance.extras.portable.pairs import (
    ABSENT,
    IN_RANGE,
    NOT_SAFE,
    NOT_SAMPLED,
    SAFE,
    KnownAgreement,
    portability_of,
)
from conformance.extras.portable.survey import (
    Agreement,
    FirstDisagreement,
    Parties,
    Survey,
    home_range,
    survey,
    wide_ranges,
)
from conformance.extras.portable.value_ranges import (
    FINITE,
    cells_of,
    patterns_of,
    places_in,
    range_words,
    rank_of,
    ranks_between,
    ranks_of,
)
from conformance.families.cast.quick_inputs import quick_inputs
from oracles.protocol import Bits
from specs.formats import format_named, formats

FLOAT32, INT32, UINT8 = map(format_named, ("float32", "int32", "uint8"))
FLOAT16, E4M3 = map(format_named, ("float16", "float8e4m3fn"))
Backend = Callable[[Bits], Bits]
NARROW = [each for each in formats().values() if each.is_numeric and each.bits <= 8]


def drive(asked: Survey, backends: Sequence[Backend]) -> Agreement:
    """Answer a survey by planted backends, and return its result."""
    try:
        inputs = next(asked)
        while True:
            inputs = asked.send([each(inputs) for each in backends])
    except StopIteration as done:
        found: Agreement = done.value
        return found


def quick(
    source: str, target: str, *backends: Backend, required: Sequence[range] = ()
) -> Agreement:
    parties = Parties(format_named(source), format_named(target))
    inputs = quick_inputs(source, target, 0, 1000)
    return drive(survey(parties, inputs, required=required), backends)


def words(found: Agreement, cell: str = FINITE) -> list[str]:
    return [range_words(found.source, each) for each in found.cells[cell].ranges]


def clamps(bits: Bits) -> Bits:
    """Cast float32 to int32: truncate, saturate, NaN to zero."""
    with np.errstate(invalid="ignore"):
        values = np.nan_to_num(bits.view(np.float32).astype(np.float64), nan=0.0)
    return np.trunc(values).clip(-(2.0**31), 2.0**31 - 1).astype(np.int64).astype(np.uint32)


def answers_otherwise(where: Callable[[np.ndarray], np.ndarray]) -> Backend:
    """A backend that casts as ``clamps`` does, but wrong where a condition holds."""

    def cast(bits: Bits) -> Bits:
        return np.where(where(bits.view(np.float32)), clamps(bits) ^ np.uint32(1), clamps(bits))

    return cast


def at_one_pattern(code: int) -> Backend:
    return lambda bits: clamps(bits) ^ (bits == code).astype(np.uint32)


def test_a_difference_above_a_limit_only() -> None:
    found = quick("float32", "int32", clamps, answers_otherwise(lambda x: x >= 2**31))
    assert words(found) == ["x < 2147483648"]
    assert portability_of(found) == IN_RANGE
    assert found.cells["-infinity"].is_safe
    assert not found.cells["infinity"].is_safe
    assert found.cells["+NaN"].is_safe
    assert found.cells["-NaN"].is_safe
    assert not found.is_whole


@pytest.mark.parametrize("limit", [1.2345678, 3e-40, 123456.78, 2.5e30])
def test_ends_are_exact_neighbors_wherever_the_limit_lies(limit: float) -> None:
    edge = np.float32(limit)
    found = quick("float32", "int32", clamps, answers_otherwise(lambda x: (x > edge) | (x < -edge)))
    [kept] = found.cells[FINITE].ranges
    low, high = patterns_of(FLOAT32, np.array([kept.first, kept.last], np.uint64)).view(np.float32)
    assert (low, high) == (-edge, edge)
    assert (kept.below, kept.above) == (kept.first - 1, kept.last + 1)


def test_a_difference_at_one_pattern_that_the_selection_holds() -> None:
    one = 0x3F800000
    found = quick("float32", "int32", clamps, at_one_pattern(one))
    assert words(found) == ["x < 1", "x > 1"]
    assert home_range(found) is None
    assert portability_of(found) == NOT_SAFE


def test_agreement_by_chance_makes_no_range() -> None:
    """A backend that keeps low bits and one that clamps agree on every 256th value."""

    def clamps_to_bytes(bits: Bits) -> Bits:
        return clamps(bits).view(np.int32).clip(0, 255).astype(np.uint8)

    def keeps_low_bits(bits: Bits) -> Bits:
        return clamps(bits).astype(np.uint8)

    found = quick("float32", "uint8", clamps_to_bytes, keeps_low_bits)
    wide = {range_words(FLOAT32, each) for each in wide_ranges(found.cells[FINITE])}
    assert wide == {"-1 < x < 256", "x ≥ 2147483648", "x ≤ -2147483648"}


def test_few_differences_near_the_end_of_a_wide_range_are_found() -> None:
    """A fourth of 4,096 patterns above a limit differ; the selection does not hold the limit."""
    limit = rank_of(FLOAT32, int(np.float32(-7.3333333).view(np.uint32)))

    def cast(bits: Bits) -> Bits:
        above = ranks_of(FLOAT32, bits).astype(np.int64) - limit
        is_wrong = (above < 0) | (above < 4096) & (above % 4 == 1)
        return clamps(bits) ^ is_wrong.astype(np.uint32)

    found = quick("float32", "int32", clamps, cast)
    [wide] = wide_ranges(found.cells[FINITE])
    assert limit + 4000 < wide.first <= limit + 4096


def test_a_difference_at_nan_only() -> None:
    found = quick("float32", "int32", clamps, answers_otherwise(np.isnan))
    assert words(found) == ["every finite value"]
    assert found.cells["infinity"].is_safe
    assert not found.cells["+NaN"].agreeing
    assert not found.cells["-NaN"].agreeing


def test_a_difference_at_some_payloads_ends_at_the_exact_payload() -> None:
    def cast(bits: Bits) -> Bits:
        return clamps(bits) ^ ((bits > 0x7F812345) & (bits <= 0x7FFFFFFF)).astype(np.uint32)

    found = quick("float32", "int32", clamps, cast)
    [kept] = found.cells["+NaN"].ranges
    assert patterns_of(FLOAT32, np.array([kept.last], np.uint64))[0] == 0x7F812345


def test_a_difference_in_the_sign_of_zero_only() -> None:
    def drops(bits: Bits) -> Bits:
        return np.where(bits == 0x80000000, 0, bits).astype(np.uint32)

    found = quick("float32", "float32", lambda bits: bits, drops)
    assert words(found) == ["x < 0", "x ≥ +0"]
    kept = home_range(found)
    assert kept is not None
    assert range_words(FLOAT32, kept) == "x ≥ +0"


def test_any_nan_equals_any_nan() -> None:
    def quiets(bits: Bits) -> Bits:
        nan = np.isnan(bits.view(np.float32))
        return np.where(nan, 0xFFC00001, bits).astype(np.uint32)

    found = quick("float32", "float32", lambda bits: bits, quiets)
    assert found.asked == found.agreeing
    assert portability_of(found) == SAFE


def test_no_asked_input_shows_nothing() -> None:
    parties = Parties(FLOAT16, UINT8)
    asked = survey(parties, np.array([], np.uint16), refines=False)
    found = drive(asked, [lambda bits: bits.astype(np.uint8)] * 2)
    assert found.asked == 0
    assert portability_of(found) == ABSENT


def test_an_answer_of_nan_differs_from_a_number() -> None:
    found = quick("float16", "float16", lambda bits: bits, lambda bits: np.full_like(bits, 0x7E00))
    assert {name for name, each in found.cells.items() if each.agreeing} == {"+NaN", "-NaN"}


def test_three_backends_agree_where_each_two_do() -> None:
    low = answers_otherwise(lambda x: x < -5)
    high = answers_otherwise(lambda x: x >= 7)
    found = quick("float32", "int32", clamps, low, high)
    assert words(found) == ["-5 ≤ x < 7"]


def test_a_document_agrees_where_it_allows_every_answer() -> None:
    def allows(inputs: Bits, answers: Bits) -> np.ndarray:
        return np.abs(inputs.view(np.float32)) < 100

    parties = Parties(FLOAT32, INT32, {"doc": allows})
    found = drive(survey(parties, quick_inputs("float32", "int32", 0, 1000)), [clamps, clamps])
    assert words(found) == ["-100 < x < 100"]


def test_a_document_that_wants_a_sign_of_nan_is_asked_about_each_answer() -> None:
    def negative_only(inputs: Bits, answers: Bits) -> np.ndarray:
        return answers >= 0x8000

    parties = Parties(FLOAT16, FLOAT16, {"doc": negative_only})
    nans = [lambda bits: np.full_like(bits, 0xFE00), lambda bits: np.full_like(bits, 0x7E00)]
    both = drive(survey(parties, np.arange(1 << 16, dtype=np.uint16)), nans)
    one = drive(survey(parties, np.arange(1 << 16, dtype=np.uint16)), nans[:1])
    assert (both.agreeing, one.agreeing) == (0, 1 << 16)


def test_narrow_sources_are_whole() -> None:
    found = quick("float16", "uint8", *[lambda bits: bits.astype(np.uint8)] * 2)
    assert found.is_whole
    assert found.asked == 1 << 16


@given(data=st.data(), source=st.sampled_from(NARROW))
def test_ranges_hold_the_agreeing_inputs_and_no_others(data: st.DataObject, source) -> None:
    """Compare with a random set of differing patterns, in formats of every kind."""
    every = np.arange(1 << source.bits, dtype=source.storage)
    differing = data.draw(st.sets(st.sampled_from(every.tolist())))
    parties = Parties(source, UINT8)
    wrong = np.isin(every, sorted(differing))
    found = drive(
        survey(parties, every),
        [lambda bits: np.zeros_like(bits), lambda bits: wrong[bits].astype(np.uint8)],
    )
    inside = set()
    for name, each in found.cells.items():
        ranks = np.arange(1 << source.bits, dtype=np.uint64)
        ranks = ranks[places_in(source, cells_of(source)[name], ranks)]
        for kept in each.ranges:
            here = ranks[(ranks >= kept.first) & (ranks <= kept.last)]
            inside |= {*patterns_of(source, here).tolist()}
        assert each.count == len(each.ranges)
    assert inside == {*every.tolist()} - differing
    assert found.agreeing == len(inside)
    assert found.asked == every.size


@pytest.mark.parametrize("chunk", [256, 1000, 1 << 16])
def test_a_whole_sweep_is_the_same_in_chunks_of_any_size(
    monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    """A source of 16 bits is asked whole, once in one round and once in chunks."""
    chance = np.random.default_rng(7)
    wrong = (chance.integers(0, 4, 1 << 16) == 0).astype(np.uint8)
    wrong[0x3000:0x4800] = 0
    parties = Parties(FLOAT16, UINT8)
    backends = [lambda bits: np.zeros(bits.size, np.uint8), lambda bits: wrong[bits]]
    required = [range(rank_of(FLOAT16, 0xC400), rank_of(FLOAT16, 0x4400) + 1)]
    at_once = drive(
        survey(parties, np.arange(1 << 16, dtype=np.uint16), required=required), backends
    )
    monkeypatch.setattr(engine, "CHUNK", chunk)
    few = np.array([0, 0x3C00], np.uint16)
    swept = drive(survey(parties, few, True, required, refines=False), backends)
    assert swept.cells == at_once.cells
    assert swept.breaches == at_once.breaches
    assert swept.is_whole


def test_of_very_many_ranges_the_widest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MOST_RANGES", 3)
    wrong = np.zeros(1 << 16, np.uint8)
    wrong[0x100:0x7000:2] = 1
    parties = Parties(format_named("uint16"), UINT8)
    found = drive(
        survey(parties, np.arange(1 << 16, dtype=np.uint16)),
        [lambda bits: np.zeros(bits.size, np.uint8), lambda bits: wrong[bits]],
    )
    cell = found.cells[FINITE]
    assert cell.count == 2 + (0x7000 - 0x100) // 2 - 1
    assert len(cell.ranges) == 3
    assert {cell.ranges[0].first, cell.ranges[-1].last} == {0, 0xFFFF}


def test_a_breach_is_the_simplest_input_of_the_range() -> None:
    at = [rank_of(FLOAT32, int(np.float32(each).view(np.uint32))) for each in (-1e9, 3e9)]
    other = answers_otherwise(lambda x: x >= 2**31)
    required = [range(at[0], at[1] + 1), range(at[0], at[0] + 5)]
    found = quick("float32", "int32", clamps, other, required=required)
    two_to_31 = int(np.float32(2**31).view(np.uint32))
    assert found.breaches == (FirstDisagreement(two_to_31, (0x7FFFFFFF, 0x7FFFFFFE)), None)


def test_the_ends_of_a_required_range_are_asked() -> None:
    odd = 0x41234567
    required = [range(rank_of(FLOAT32, odd), rank_of(FLOAT32, odd) + 100)]
    found = quick("float32", "int32", clamps, at_one_pattern(odd), required=required)
    assert found.breaches[0] is not None
    assert found.breaches[0].code == odd


@pytest.mark.parametrize("source", NARROW, ids=lambda each: each.name)
def test_ranks_are_in_the_order_of_values(source) -> None:
    ranks = np.arange(1 << source.bits, dtype=np.uint64)
    assert np.array_equal(ranks_of(source, patterns_of(source, ranks)), ranks)
    cells = cells_of(source)
    places = [places_in(source, each, ranks) for each in cells.values()]
    assert np.array_equal(np.sort(np.concatenate(places)), ranks)


@pytest.mark.parametrize(
    ("name", "low", "high", "expected"),
    [
        ("int8", Fraction(-3), Fraction(5, 2), [-3, -2, -1, 0, 1, 2]),
        ("uint4", Fraction(-3), Fraction(3), [0, 1, 2, 3]),
        ("int4", None, Fraction(-6), [-8, -7, -6]),
        ("int8", Fraction(1, 3), Fraction(2, 3), []),
    ],
)
def test_the_ranks_of_an_interval(
    name: str, low: Fraction | None, high: Fraction | None, expected: list[int]
) -> None:
    source = format_named(name)
    ranks = np.array([*ranks_between(source, low, high)], np.uint64)
    codes = patterns_of(source, ranks).astype(np.int64)
    sign = source.sign_bit
    assert [int(code ^ sign) - sign for code in codes] == expected


def test_an_interval_at_zero_holds_both_zeros() -> None:
    ranks = np.array([*ranks_between(E4M3, Fraction(0), Fraction(0))], np.uint64)
    assert patterns_of(E4M3, ranks).tolist() == [0x80, 0]


def test_a_difference_that_only_a_sweep_meets_has_its_place_and_no_answers() -> None:
    parties = Parties(FLOAT16, format_named("int8"))
    lone, start = 0x3C77, np.array([0, 0x3C00, 0x4000, 0xBC00], np.uint16)
    zeros: Backend = lambda bits: np.zeros(bits.shape, np.uint8)  # noqa: E731
    one: Backend = lambda bits: (bits == lone).astype(np.uint8)  # noqa: E731
    found = drive(survey(parties, start, True), [zeros, one])
    assert (found.asked - found.agreeing, lone in found.sample.inputs) == (1, False)
    known = KnownAgreement(found, parties, ("one", "other"), "nearest-even")
    [difference] = known.pair({"one": "1", "other": "2"}, {}, False).differ
    assert difference.where == ("x = 1.116",)
    assert difference.does == {"one": NOT_SAMPLED, "other": NOT_SAMPLED}
