"""Sets of inputs as grids have the patterns that listing them one by one finds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from conformance.extras.editions.input_set import EVERY_INPUT, InputSet, periodic_grids, run_grid
from specs.formats import format_named
from tests.search import examples

SOURCE = format_named("uint16")


@st.composite
def stretches(draw: st.DrawFn) -> tuple[int, int, int, tuple[int, int], tuple[int, int]]:
    """Draw a stretch, its shift, offsets of a period, and the periods that count."""
    first = draw(st.integers(0, 5000))
    last = draw(st.integers(first, first + 3000))
    shift = draw(st.integers(0, 8))
    begin = draw(st.integers(0, (1 << shift) - 1))
    end = draw(st.integers(begin, (1 << shift) - 1))
    power = draw(st.integers(0, 4))
    return first, last, shift, (begin, end), (draw(st.integers(0, (1 << power) - 1)), power)


@examples(200)
@given(stretches())
def test_grids_have_the_patterns_of_the_periods(
    drawn: tuple[int, int, int, tuple[int, int], tuple[int, int]],
) -> None:
    first, last, shift, (begin, end), (residue, power) = drawn
    expected = {
        code
        for code in range(first, last + 1)
        if begin <= (code - first) % (1 << shift) <= end
        and (code - first >> shift) % (1 << power) == residue
    }
    found = InputSet(SOURCE, tuple(periodic_grids(*drawn)))
    listed = [
        code for grid in found.grids for low, high in grid.runs() for code in range(low, high + 1)
    ]
    assert sorted(listed) == sorted(expected)
    assert found.count == len(expected)
    if expected:
        assert found.simplest == min(expected, key=lambda code: (code.bit_count(), code))
        assert found.patterns(1 << 16).tolist() == sorted(expected)
        few = found.patterns(64).tolist()
        assert found.simplest in few
        assert expected.issuperset(few)


def test_many_runs_are_described_by_their_extent() -> None:
    odd = InputSet(format_named("float64"), tuple(periodic_grids(1 << 52, 2 << 52, 1, (1, 1))))
    assert odd.count == 1 << 51
    assert odd.runs is None
    assert odd.words() == "a part of 2^-1022 < x < 2^-1021"


def test_few_runs_are_described_one_by_one() -> None:
    odd = InputSet(format_named("uint8"), tuple(periodic_grids(0, 5, 2, (1, 2))))
    assert odd.words() == "0 < x ≤ 2 and x = 5"
    assert InputSet(format_named("int2"), (run_grid(0, 3),)).words() == EVERY_INPUT
