"""Tensors are drawn from one space: alike for one seed, of every kind, and made smaller by axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from math import prod
from pathlib import Path
from random import Random

import numpy as np
import pytest

from conformance.judging.asking import Ask
from conformance.judging.probe import Probe
from conformance.judging.space import (
    CONTENTS,
    MOST_SPREAD,
    NEAR_GAP,
    NEAR_STEP,
    RANKS,
    drawn_probe,
    drawn_shape,
    shrunk,
)
from lab.chances import CONDITIONS, shares
from reports.drawn_tensors import (
    DRAWS,
    PAIRS_OF_A_KERNEL,
    SHARES,
    TIMES_GATE,
    chance_to_meet,
    rows,
)

COUNT = 23
MANY = 4000


@cache
def drawn(seed: int, number: int) -> tuple[Probe, ...]:
    chance = Random(seed)
    return tuple(drawn_probe(chance, COUNT) for _ in range(number))


def test_a_seed_draws_the_same_and_another_seed_others() -> None:
    assert drawn(1, 50) == drawn.__wrapped__(1, 50)
    assert len({*drawn(1, 50), *drawn(2, 50)}) > 90


def test_a_drawn_tensor_holds_its_inputs_and_lies_as_it_says() -> None:
    inputs = np.arange(COUNT, dtype=np.uint16)
    for probe in drawn(3, 300):
        tensor = probe.tensor(inputs)
        assert tensor.shape == probe.shape
        assert np.array_equal(tensor, inputs[probe.picks(COUNT)])
        if probe.layout is not None and tensor.size:
            found = [stride // tensor.itemsize for stride in tensor.strides]
            steps = zip(probe.shape, found, probe.layout.strides, strict=True)
            assert all(length < 2 or got == due for length, got, due in steps)


def test_no_tensor_lies_far_apart_in_memory() -> None:
    for probe in drawn(4, MANY):
        is_near = max(map(abs, probe.steps), default=1) <= NEAR_STEP and probe.gap <= NEAR_GAP
        assert is_near or probe.spread <= MOST_SPREAD, probe


def reached(holds: Callable[[Probe], bool]) -> bool:
    return any(map(holds, drawn(4, MANY)))


def innermost(probe: Probe) -> int:
    return probe.effective_steps[(probe.order or range(len(probe.shape)))[-1]]


@pytest.mark.parametrize(
    "holds",
    [
        lambda each: len(each.shape) > 2 and each.shape[-1] == 64,
        lambda each: len(each.shape) == 2 and each.order == (1, 0) and each.shape[0] % 8 == 0,
        lambda each: len(each.shape) == 4 and each.order == (0, 2, 3, 1),
        lambda each: prod(each.shape) > 64 and each.shape != () and innermost(each) == 2,
        lambda each: prod(each.shape) > 1 << 16,
        lambda each: each.shape.count(0) > 1,
        lambda each: len(each.shape) > 1 and each.shape[0] == each.shape[-1] > 8,
        lambda each: 0 in each.effective_steps,
        lambda each: each.gap > 100,
        lambda each: len(each.shape) == 8 and each.is_turned,
    ],
    ids=[
        "a head", "columns of blocks", "channels last", "steps of two", "large", "none twice",
        "square", "expanded", "cut out of wide rows", "eight dimensions",
    ],
)  # fmt: skip
def test_conditions_of_known_faults_are_met(holds: Callable[[Probe], bool]) -> None:
    assert reached(holds)


def test_every_rank_and_all_contents_are_drawn() -> None:
    probes = drawn(5, MANY)
    assert {len(each.shape) for each in probes} == {rank for _, rank in RANKS}
    assert {each.contents for each in probes} == {contents for _, contents in CONTENTS}


@pytest.mark.parametrize("unit", [1, 32])
def test_a_shape_of_blocks_leaves_room_for_their_elements(unit: int) -> None:
    chance = Random(6)
    shapes = [drawn_shape(chance, 1, unit=unit, may_be_empty=False) for _ in range(MANY)]
    sizes = [unit * prod(shape) for shape in shapes]
    assert all(shape and 0 not in shape for shape in shapes)
    assert max(sizes) < 1 << 20
    assert np.median(sizes) < 1 << 11


def asking(is_wrong: Callable[[Probe], bool]) -> Callable[[Sequence[Probe]], Ask[list[Probe]]]:
    def wrong_ones(probes: Sequence[Probe]) -> Ask[list[Probe]]:
        yield []
        return [each for each in probes if is_wrong(each)]

    return wrong_ones


def smallest(probe: Probe, is_wrong: Callable[[Probe], bool]) -> Probe | None:
    judge = shrunk([probe], asking(is_wrong))
    try:
        while True:
            judge.send(None)  # type: ignore[arg-type]
    except StopIteration as done:
        found: Probe | None = done.value
        return found


WHERE: Sequence[tuple[Callable[[Probe], bool], Probe]] = [
    (lambda each: prod(each.shape) > 64, Probe((65,))),
    (lambda each: prod(each.shape) > 1 << 16, Probe(((1 << 16) + 1,))),
    (lambda each: len(each.shape) > 1 and each.order == (1, 0), Probe((2, 2), order=(1, 0))),
    (lambda each: bool(each.offset % 2), Probe((1,), offset=1)),
    (lambda each: 2 in each.effective_steps and prod(each.shape) > 4, Probe((5,), steps=(2,))),
    (lambda each: each.shape[-1:] == (8,), Probe((8,))),
]


@pytest.mark.parametrize(("is_wrong", "due"), WHERE)
def test_a_tensor_shrinks_to_the_axes_that_matter(
    is_wrong: Callable[[Probe], bool], due: Probe
) -> None:
    found = [each for each in drawn(7, MANY) if is_wrong(each)][:20]
    assert found
    reduced = [smallest(each, is_wrong) for each in found]
    assert sum(each is not None and each.simplicity <= due.simplicity for each in reduced) >= 15
    assert all(each is not None and is_wrong(each) for each in reduced)


def test_what_is_right_when_it_is_asked_again_is_not_made_smaller() -> None:
    assert smallest(Probe((9,)), lambda each: False) is None


PAGE = Path(__file__).parents[3] / "docs" / "sweep.md"
NIGHTS = 7


def test_the_page_has_the_products_own_numbers() -> None:
    draws = (DRAWS, NIGHTS * DRAWS, TIMES_GATE * DRAWS, PAIRS_OF_A_KERNEL * DRAWS)
    text = PAGE.read_text(encoding="utf-8")
    missing = [row for row in rows(*draws) if f"| {' | '.join(row)} |" not in text]
    assert not missing


def test_the_shares_are_those_of_the_sampler() -> None:
    assert {words: round(share, 6) for words, share in shares().items()} == SHARES


@pytest.mark.parametrize("words", CONDITIONS)
def test_a_share_is_that_of_counted_draws(words: str) -> None:
    counted = sum(map(CONDITIONS[words], drawn(8, MANY)))
    due = SHARES[words] * MANY
    assert abs(counted - due) < 6 * max(due, 1) ** 0.5
    met = chance_to_meet(words, DRAWS)
    groups = [drawn(seed, DRAWS) for seed in range(400)]
    counted = sum(any(map(CONDITIONS[words], group)) for group in groups)
    assert abs(counted / len(groups) - met) < 0.1
