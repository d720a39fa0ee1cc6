"""The space of tensors: how a tensor can differ from a short row, and how likely each way is.

The right answer in any tensor follows from the answers to its elements. So a draw costs its
elements and one request, and there is no list of shapes to keep. A fault of a framework is a fault
of a kernel, and a kernel serves many pairs of dtypes: what the few draws of one pair miss, the
draws of another pair meet. Draws follow from the pair, the version and the seed of the run.

Each axis has a table of weights. They favor what kernels treat in ways of their own: dimensions of
whole vectors and blocks and those beside them, heads of attention, equal dimensions, matrices by
columns, channels last, steps in the innermost dimension. ``docs/sweep.md`` prints from these
tables how often a condition is met; change them by that, not by the last fault that was missed.

A tensor in which something is wrong becomes smaller, one axis after another. Each simpler tensor
differs from the last wrong one in one axis: plain contents, no offset, no gap, a step of 1, the
usual order in memory, a dimension less, or a shorter one. What is left when none of them is wrong
any more are the axes that matter, and so what a finding names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import prod
from operator import attrgetter
from random import Random
from typing import TypeVar

from conformance.judging.asking import Ask
from conformance.judging.probe import Contents, Probe
from specs.cases import Shape

SIZES: tuple[tuple[int, tuple[int, int]], ...] = (
    (55, (1, 128)), (35, (128, 1 << 12)), (10, (1 << 12, 1 << 17)),
)  # fmt: skip
"""The number of elements: log-uniform between two bounds."""
RANKS = ((1, 0), (22, 1), (26, 2), (20, 3), (17, 4), (5, 5), (3, 6), (3, 7), (3, 8))
LENGTHS = ((34, "any"), (30, "blocks"), (12, "power"), (10, "equal"), (8, "small"), (6, "one"))
"""Weights of the ways to draw a dimension, each with its name: a dimension stays as it is (`any`),
or becomes whole blocks or a power of two (perhaps one more or less), equal to another, small, or
1."""
HEADS = (64, 72, 80, 96, 112, 128)
HEADED = 0.08
"""The share of tensors of rank 3 and more whose last dimension is that of a head."""
EMPTY = 0.03
"""The share of shapes with an empty dimension; a fourth of these draw two, or the same twice."""
BLOCKS = (8, 16, 32)
BESIDE = ((2, 0), (1, -1), (1, 1))
SMALL = 9
ORDERS = ((45, "rows"), (15, "columns"), (12, "exchanged"), (13, "channels last"), (15, "any"))
STEPPED = 0.4
"""The share of tensors that have a step other than 1 in one dimension or two."""
STEPS = ((5, 2), (2, 3), (4, -1), (4, 0), (1, -2))
FAR = 0.15
"""The share of other steps, and of tensors with a gap, whose step or gap is up to ``FARTHEST``."""
FARTHEST = 300
MOST_SPREAD = 1 << 18
"""The most elements from a tensor's first to its last place in memory, if steps or a gap are far.

Beyond it they become near: one tensor in a hundred would take nine tenths of the memory of all.
"""
INNERMOST = 0.5
"""The share of steps that go to the innermost dimension; the others go to any dimension."""
GAPS = ((7, 0), (1, 1), (1, 3), (1, 8))
"""Elements between the rows of a matrix, as where columns are cut out of a wider one."""
NEAR_STEP, NEAR_GAP = (max(value for _, value in near) for near in (STEPS, GAPS))
"""The farthest of the steps and gaps that most tensors have."""
OFFSETS = ((50, 0), (14, 1), (10, 2), (10, 3), (8, 15), (8, 64))
"""Elements between a boundary of 64 bytes and the beginning of a tensor."""
AGAIN = 0.15
"""The share of tensors that have the shape of the one before."""
CONTENTS: tuple[tuple[int, Contents], ...] = (
    (50, "shuffled"), (14, "in order"), (8, "one"), (8, "two"), (8, "mostly one"),
    (6, "one but the last"), (6, "half one"),
)  # fmt: skip

ROUNDS = 40
"""The most times that a tensor becomes smaller; a dimension of 2^17 is halved 17 times."""

Weighted = TypeVar("Weighted")


def chosen(chance: Random, weighted: Sequence[tuple[int, Weighted]]) -> Weighted:
    """Draw one of the values; the number before each is its weight."""
    at = chance.random() * sum(weight for weight, _ in weighted)
    for weight, value in weighted:
        at -= weight
        if at < 0:
            return value
    return weighted[-1][1]


def log_uniform(chance: Random, least: int, most: int) -> int:
    """Return an integer from ``least``, 1 or more, to ``most``; each doubling is equally likely."""
    return int(least * ((most + 1) / least) ** chance.random())


def drawn_shape(
    chance: Random, least_rank: int = 0, *, unit: int = 1, may_be_empty: bool = True
) -> Shape:
    """Draw a shape of any rank from ``least_rank`` to 8.

    The last dimension is drawn first, and those before it share the elements that are left. Where
    each element of the shape will be a block, ``unit`` is the size of a block.
    """
    rank = chosen(chance, [each for each in RANKS if each[1] >= least_rank])
    least, most = chosen(chance, SIZES)
    # Of the smallest tensors of a rank, most dimensions would have one element.
    left = max(1, log_uniform(chance, max(least, min(most, 1 << rank)), most) // unit)
    lengths: list[int] = []
    for others in reversed(range(rank)):
        if not lengths and rank > 2 and chance.random() < HEADED:
            lengths.append(chance.choice(HEADS))
        else:
            share = 1 - chance.random() ** (1 / others) if others else 1
            # Leave two elements for each dimension before this one, while enough are left.
            length = max(min(2, left), int((left >> others) ** share))
            lengths.append(_telling_length(chance, lengths, left, length))
        left = max(1, left // lengths[-1])
    if may_be_empty and rank and chance.random() < EMPTY:
        for _ in range(chosen(chance, ((3, 1), (1, 2)))):
            lengths[chance.randrange(rank)] = 0
    return tuple(reversed(lengths))


def _telling_length(chance: Random, lengths: Sequence[int], left: int, length: int) -> int:
    """Return ``length``, changed as a drawn word of ``LENGTHS`` says if that is possible.

    ``lengths`` are the dimensions drawn before. One that is made small or equal to one of these has
    at most twice the elements that are ``left``.
    """
    match chosen(chance, LENGTHS):
        case "blocks" if length >= BLOCKS[0] // 2:
            block = chance.choice([each for each in BLOCKS if each <= 2 * length])
            return max(1, round(length / block)) * block + chosen(chance, BESIDE)
        case "power" if length > 1:
            return (1 << (length - 1).bit_length()) + chosen(chance, BESIDE)
        case "equal" if fitting := [each for each in lengths if each <= 2 * left]:
            return chance.choice(fitting)
        case "small":
            return chance.randint(1, min(SMALL, 2 * left))
        case "one":
            return 1
    return length


def drawn_memory(chance: Random, shape: Shape) -> Probe:
    """Draw how a tensor of a shape lies in memory: order, steps, gap and beginning."""
    rank = len(shape)
    order = [*range(rank)]
    match chosen(chance, ORDERS):
        case "columns":
            order.reverse()
        case "exchanged" if rank > 1:
            order[-2:] = order[:-3:-1]
        case "channels last" if rank > 2:
            order = [0, *range(2, rank), 1]
        case "any":
            chance.shuffle(order)
    steps = [1] * rank
    if rank and chance.random() < STEPPED:
        for _ in range(chance.randint(1, 2)):
            at = order[-1] if chance.random() < INNERMOST else chance.randrange(rank)
            is_far = chance.random() < FAR
            steps[at] = log_uniform(chance, 4, FARTHEST) if is_far else chosen(chance, STEPS)
    gap = chosen(chance, GAPS) if rank > 1 else 0
    if gap and chance.random() < FAR:
        gap = log_uniform(chance, 16, FARTHEST)
    drawn = Probe(
        shape,
        order=() if order == [*range(rank)] else tuple(order),
        steps=tuple(steps),
        gap=gap,
        offset=chosen(chance, OFFSETS),
    )
    if drawn.spread <= MOST_SPREAD:
        return drawn
    near = tuple(step if abs(step) <= NEAR_STEP else NEAR_STEP for step in steps)
    return replace(drawn, steps=near, gap=min(gap, NEAR_GAP))


def drawn_probe(chance: Random, count: int, before: Probe | None = None) -> Probe:
    """Draw a probe of a pair with ``count`` inputs, which now and then has the shape of ``before``.

    What a backend keeps under a shape alone shows when the shape is requested in another layout.
    """
    has_shape = before is not None and chance.random() < AGAIN
    return replace(
        drawn_memory(chance, before.shape if before and has_shape else drawn_shape(chance)),
        first=chance.randrange(count),
        contents=chosen(chance, CONTENTS),
        shuffling=chance.randrange(1 << 32),
    )


def shrunk(
    probes: Sequence[Probe], wrong_ones: Callable[[Sequence[Probe]], Ask[list[Probe]]]
) -> Ask[Probe | None]:
    """Return the simplest wrong probe that is reached from ``probes``; None if all are right now.

    ``wrong_ones`` asks probes and returns those in which something is wrong. A tensor that is right
    when it is asked again was wrong by what came before it.
    """
    wrong = yield from wrong_ones(probes)
    if not wrong:
        return None
    probe = min(wrong, key=attrgetter("simplicity"))
    for _ in range(ROUNDS):
        candidates = [each for each in simpler(probe) if each.simplicity < probe.simplicity]
        wrong = yield from wrong_ones(candidates)
        if not wrong:
            break
        probe = min(wrong, key=attrgetter("simplicity"))
    return probe


def simpler(probe: Probe) -> Iterator[Probe]:
    """Yield variants of a probe, each plainer along one axis, or a row; some may not be simpler."""
    yield replace(probe, contents="in order", shuffling=0)
    yield replace(probe, contents="one", shuffling=0)
    yield replace(probe, offset=0)
    yield replace(probe, offset=1)
    yield replace(probe, gap=0)
    yield replace(probe, order=())
    yield replace(probe, steps=())
    for place, step in enumerate(probe.effective_steps):
        for plainer in {1, -1 if step < 0 else min(step, 2)} - {step}:
            yield _with_length_or_step(probe, place, step=plainer)
    if len(probe.shape) != 1:
        row = replace(probe, shape=(prod(probe.shape),), order=(), gap=0)
        yield from (replace(row, steps=(step,)) for step in {1, *probe.effective_steps})
    for place, length in enumerate(probe.shape):
        if len(probe.shape) > 1:
            yield _without(probe, place)
        for shorter in _shorter(length):
            yield _with_length_or_step(probe, place, length=shorter)


def _shorter(length: int) -> list[int]:
    """Return lengths below ``length``: 1, half of it, and those that take ever less off it.

    The parts that are taken off are a fourth of the length, a fourth of that, and so on to 1. So a
    length above which all is wrong is reached in far fewer than ``ROUNDS``.
    """
    taken = [1, *(length >> shift for shift in range(2, length.bit_length(), 2))]
    return sorted({1, length // 2, *(length - each for each in taken)} - {0, length})


def _with_length_or_step(
    probe: Probe, place: int, length: int | None = None, step: int | None = None
) -> Probe:
    shape, steps = [*probe.shape], [*probe.effective_steps]
    shape[place] = shape[place] if length is None else length
    steps[place] = steps[place] if step is None else step
    return replace(probe, shape=tuple(shape), steps=tuple(steps))


def _without(probe: Probe, place: int) -> Probe:
    kept = [at for at in range(len(probe.shape)) if at != place]
    return replace(
        probe,
        shape=tuple(probe.shape[at] for at in kept),
        steps=tuple(probe.effective_steps[at] for at in kept),
        order=tuple(kept.index(at) for at in probe.order if at != place),
    )
