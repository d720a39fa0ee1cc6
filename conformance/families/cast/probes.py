"""The tensors in which a cast is asked again: lengths, positions, and ways to lie in memory.

Some are listed, others are drawn by Hypothesis, which shrinks the first one in which something is
wrong. Hypothesis calls a check for each example, and a judge yields what it asks. So Hypothesis
runs in a thread of its own, whose checks hand their requests to the judge and wait for the replies.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from queue import SimpleQueue
from typing import TypeVar
from zlib import crc32

import numpy as np
from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky, HypothesisSideeffectWarning

from conformance.families.cast.baseline import Baseline
from conformance.judging.asking import Ask, Requests
from conformance.judging.probe import LENGTHS, SPARSE, Probe, shape_of_pair
from oracles.backend.replies import Reply
from specs.cases import Shape

LARGE = (1 << 16) + 3
"""More elements than frameworks leave to one thread, and no multiple of their chunk sizes."""
TURNED = 67
"""The length at which every input stands at every position: a prime, and longer than a vector."""
SCALARS = 8
"""Number of inputs that are asked as tensors without dimensions."""
SHUFFLED = 64
"""Shufflings in one row: any two inputs stand side by side, and in one vector, in some of them."""
AROUND_BLOCKS = tuple(block + beside for block in (128, 256, 512) for beside in (-1, 0, 1))
"""Lengths at which loops over blocks of vectors begin and end."""
RANKED: tuple[Shape, ...] = (
    (2, 2, 2, 2, 3), (1, 2, 1, 2, 1, 2), (0, 65536),
    (2, 1, 2, 1, 2, 1, 3), (1, 2, 1, 2, 1, 2, 1, 3), (0, 0), (3, 0, 5), (2, 3, 0),
)  # fmt: skip
MATRICES: tuple[Shape, ...] = (
    (3, 17), (9, 129), (1030, 3), (65, 129), (2, 4097), (4, 64), (4, 768), (2, 3, 4), (8, 3, 4),
    (2, 4, 8, 16), (1, 9), (5, 9), (7, 9), (2, 13, 5, 7), (256, 256), (2, 33_003),
)  # fmt: skip
"""Matrices and batches as models have them: wide, tall, of more than one block in both directions.

Kernels of their own take dimensions of whole vectors and blocks, so these are among them. A batch
of one comes before larger ones, and one of five before one of seven, which are rounded up alike:
what is prepared for the first may not fit the others.
"""
LAID, TALL = (5, 13), (LARGE, 1)
"""A matrix that is asked in many layouts too, and one with more rows than a GPU's grid has."""
WIDEST, LARGEST = (3, 8209), (300, 257)
"""A matrix of longer rows, and one of more than 2^16 elements that is asked by columns."""
BLOCKS, SHARED = 1 << 13, (1 << 17) + 26
"""A row of whole blocks, and one that several threads share.

The rest behind its last whole block is even; that of ``LARGE`` is odd."""
HALF_EMPTY = 1000
"""The length of two rows: the second one ends with zeros where the first has other inputs."""
ORDERS: tuple[tuple[Shape, tuple[int, ...]], ...] = (
    ((5, 13), (1, 0)), ((3, 5, 7), (2, 1, 0)), ((2, 3, 4, 5), (0, 2, 3, 1)),
    ((129, 17), (1, 0)), ((131, 257), (1, 0)), ((3, 5, 7), (1, 0, 2)), ((3, 5, 7), (1, 2, 0)),
    ((3, 5, 7), (2, 0, 1)), ((3, 17, 33), (0, 2, 1)), ((2, 35, 33), (0, 2, 1)),
    ((2, 1, 3, 2, 1, 2), (5, 4, 3, 2, 1, 0)), ((2, 19, 3, 4), (0, 2, 3, 1)),
    ((2, 3, 4, 5), (0, 2, 1, 3)),
    ((2, 3, 4, 5), (0, 1, 3, 2)), ((2, 3, 4, 5), (1, 0, 2, 3)), ((2, 3, 4, 5), (0, 3, 1, 2)),
    ((2, 3, 4, 5), (2, 3, 0, 1)), ((2, 3, 4, 5), (3, 2, 1, 0)),
    ((2, 3, 2, 2, 3), (0, 2, 3, 4, 1)), ((2, 3, 2, 2, 3), (0, 1, 3, 2, 4)),
    ((128, 64), (1, 0)), ((2, 64, 5, 7), (0, 2, 3, 1)), ((2, 4, 5, 64), (0, 2, 1, 3)),
    ((16, 8, 3, 3), (2, 3, 1, 0)), ((16, 8, 3, 5), (3, 2, 1, 0)),
    ((3, 9, 3, 4), (0, 2, 3, 1)), ((3, 1, 5, 7), (0, 2, 3, 1)), ((2, 5, 7, 3), (0, 3, 1, 2)),
    ((3,) * 7, (6, 5, 4, 3, 2, 1, 0)), ((2,) * 8, (7, 6, 5, 4, 3, 2, 1, 0)),
)  # fmt: skip
"""Tensors whose dimensions lie in another order: columns first, channels last, heads exchanged."""
PADDED: tuple[tuple[Shape, tuple[int, ...]], ...] = (
    ((5, 13), (2, 1)), ((5, 13), (0, 1)), ((5, 13), (1, 16)),
    ((5, 13), (1, 2)), ((17, 129), (2, 1)), ((3, 5), (1700, 1)), ((5, 13), (-1, 1)),
    ((5, 13), (1, -1)), ((5, 13), (-1, -1)), ((5, 13), (1, 0)),
    ((3, 4, 9), (2, 1, 1)), ((3, 4, 9), (1, 2, 1)), ((3, 4, 9), (-1, 1, 1)),
    ((3, 4, 9), (1, -1, 1)),
    ((3, 4, 9), (0, 1, 1)), ((3, 4, 9), (1, 0, 1)), ((3, 4, 9), (1, 1, 0)), ((3, 4, 9), (0, 0, 1)),
    ((2, 3, 4, 5), (2, 1, 1, 1)), ((2, 3, 4, 5), (1, 2, 1, 1)), ((2, 3, 4, 5), (1, 1, 2, 1)),
    ((2, 2, 3, 2, 5), (2, 1, 1, 1, 1)), ((8, 32), (2, 1)), ((6, 1), (7, 1)),
    ((4, 128), (250, 1)), ((5, 130), (1, 0)), ((8, 8, 3), (1, 1, -1)),
    ((2, 4, 8, 16), (1, 0, 0, 1)), ((2, 4, 7, 6, 8), (1, 1, 0, 1, 1)),
)  # fmt: skip
"""Parts of larger tensors, flipped ones, and broadcast ones, by their steps."""
TRANSPOSED = (7, 11)
"""A matrix that is asked as it is, and then its transpose in the same memory."""
ROTATED: tuple[tuple[int, ...], ...] = ((1, -1), (-1, 1))
"""The steps of a matrix that lies by columns and is turned by a quarter, one way and the other."""
STRIDED: tuple[tuple[Shape, tuple[int, ...]], ...] = (
    ((7, 9), (4, 1)), ((9, 7), (1, 1)), ((4, 3, 8), (16, 4, 1)), ((13, 1), (1, 0)),
    ((1, 13), (0, 1)), ((9, 41), (60, 1)), ((5000, 5), (8, 1)), ((3, 100), (66_000, 1)),
)  # fmt: skip
"""By their strides: overlapping windows, as of sounds, steps of 0 in a dimension of one element,
and columns cut out of matrices with some odd, very many, and very long rows."""
OFFSETS = (1, 2, 3, 4, 7, 11)
ROW_STEPS = (2, -1, 0, 3, 4, 5, 6, 7, 8, 16, -2)
LONG_STEPPED = ((300, -1), (300, 0), (1 << 13, 2))
"""Longer rows with a step."""
INSIDE = 17
"""The input with which such rows begin: the first is zero, which most faults leave right."""
LONG_STEPS = (256, 300, 1 << 10)
"""Steps that do not fit into 8 bits, for rows of few elements."""
HALVES = 2
"""At the tier quick one half of a pair's inputs are repeated in rows, the others asked alone.

This saves time. The pair's case chooses the half, so that a fault that concerns many pairs is still
found.
"""
PAIRS_BESIDE = 8
"""At the tier quick one pair in this many is asked while another thread casts another pair."""
MASKS = 8
"""Number of rows that hold two inputs each."""
SEVENTH = 7
"""Shorter than a vector: a kernel answers such a row with the loop for the rest of a row."""
LONGEST = (1 << 20) + 3
"""More elements than fit into a cache."""
EVERY_LENGTH = 1100
"""Every length up to this one is asked at the full tier."""
REPEATED = 1500
"""Calls in a row at the full tier, so that an event at every thousandth call occurs."""
AT_ONCE = 12
AT_ONCE_FULL = 100
"""Rows that two threads ask at the same time."""
AT_ONCE_FEW, LARGE_AT_ONCE = 2, 8
HALF_LAID = 8
"""Of each group of this many, the second half are matrices or batches in other layouts."""
LONGER = 643
"""The length of the other thread's rows, so that what both threads share must fit both lengths."""
PAIRS_AT_ONCE = 16
"""At the tier quick one pair in sixteen is asked many rows by two threads, because a fault of this
kind concerns most pairs. All other pairs have ``AT_ONCE_FEW`` rows, one for each thread."""
BESIDE = 3
"""Rows that one thread requests while another thread casts another pair."""
REWRITTEN, OFTEN = 3, 12
"""Rows, and matrices, that lie in the same memory one after another."""
COLUMNS = 64
"""Columns of the matrix of all inputs."""
DRAWN = 10
MOST_RANKS, LOG2_OF_DRAWN, STEPS_DRAWN, BLOCK = 8, 13, 2, 8
"""Limits of drawn tensors: dimensions, log2 of the elements, and dimensions that get steps; and the
elements of a block, which whole vectors of any width have."""


def probes(count: int, half: int | None = None) -> Iterator[Probe]:
    """Yield all usual probes of a pair with ``count`` inputs.

    One half of the inputs, numbered ``half``, stands in rows that repeat them, and the others
    alone; without ``half``, each input is there in both ways.
    """
    for length in (*LENGTHS, *AROUND_BLOCKS):
        yield Probe((length,), first=length * 7 % count)
    yield Probe((LARGE,))
    # Each row ends with another input, and the next shows whether that has left anything behind.
    for first in range(count):
        yield Probe((TURNED,), first)
    for first in range(count):
        if half is None or first % HALVES == half:
            yield Probe((TURNED,), first, stride=0)
        if half is None or first % HALVES != half:
            yield Probe((1,), first)
    # A row after a scalar shows whether that has left anything behind.
    for place, first in enumerate(_spread(count, SCALARS)):
        yield from (Probe((), first), Probe((SEVENTH,), place))
    # Rows of the same length, first and last input, and others between, reveal a cache keyed by
    # these.
    yield from (Probe((count + 1,), stride=stride) for stride in (1, 2, 3))
    yield Probe((SHUFFLED * count + 3,), shuffling=1)
    for shape in (*RANKED, *MATRICES, LAID, TALL, WIDEST, (BLOCKS,)):
        yield _beginning_inside(shape, count)
    for offset in (0, 1) if half is None else (half,):
        yield Probe((SHARED,), count // 2, offset=offset)
    yield from _contents(count)
    for layouts in _layouts():
        yield from layouts
    yield Probe(LARGEST, order=(1, 0))


def whole_probes(count: int, few_shapes: bool) -> Iterator[Probe]:
    """Yield all inputs of a case shuffled, and in tensors whose elements lie apart in memory.

    The loop for such tensors is often a kernel of its own, which rounds or treats special values in
    its own way.
    """
    yield Probe((count,), shuffling=1)
    if not few_shapes:
        yield Probe((count,), steps=(2,))
        yield Probe((-(-count // COLUMNS), COLUMNS), order=(1, 0))


def road_probes(count: int, number: int) -> Iterator[Probe]:
    """Yield a few probes for a further road of a pair; ``number`` chooses among some of them."""
    rows = [Probe((SEVENTH,), first) for first in range(0, count, SEVENTH)]
    yield from (rows[number % len(rows)], rows[number // len(rows) % len(rows)])
    yield Probe((0,))
    yield Probe((8 * count + 3,), shuffling=1 + number % MASKS)
    laid = [probe for layouts in _layouts() for probe in layouts]
    for some in ([Probe(shape) for shape in MATRICES], [*_contents(count)], laid):
        yield some[number % len(some)]


def _beginning_inside(shape: Shape, count: int) -> Probe:
    """Return a tensor that begins with a later input: the first is zero, as are answers near it."""
    return Probe(shape, (count // 4 + sum(shape) * SEVENTH) % count)


def _contents(count: int) -> Iterator[Probe]:
    """Yield rows of mostly one input, of two inputs, and of one alone."""
    yield Probe((SPARSE * count,), sparse=True)
    yield from (Probe((TURNED,), first, masked=True) for first in _spread(count, MASKS))
    yield Probe((LENGTHS[-1],), count // 2, stride=0)
    # The loop for the rest takes the last element, and zeros before it are harmless to any kernel.
    yield from (Probe((TURNED,), first, only_last=True) for first in range(1, count))
    yield Probe((HALF_EMPTY,), INSIDE)
    yield Probe((HALF_EMPTY,), INSIDE, half_empty=True)


@cache
def _layouts() -> tuple[Sequence[Probe], ...]:
    """Return the ways to lie in memory, in lists of those that are alike."""
    mixed = Probe((3, 4, 9), steps=(-1, 1, 2), offset=5)
    return (
        (mixed, Probe((), 1, offset=1), Probe((LENGTHS[-1],), steps=(2,))),
        [Probe((TURNED,), offset=offset) for offset in OFFSETS],
        [Probe((TURNED,), INSIDE, steps=(step,)) for step in ROW_STEPS],
        [Probe((SEVENTH,), steps=(step,)) for step in LONG_STEPS],
        [Probe((length,), INSIDE, steps=(step,)) for length, step in LONG_STEPPED],
        [Probe((TURNED,), INSIDE, steps=(2,), offset=1)],
        [Probe(shape, steps=steps) for shape, steps in PADDED],
        [Probe(shape, order=order) for shape, order in ORDERS],
        [Probe(LAID, steps=steps, order=(1, 0)) for steps in ROTATED],
        [Probe(TRANSPOSED), Probe(TRANSPOSED[::-1], order=(1, 0))],
        [Probe(shape, strides=strides) for shape, strides in STRIDED],
    )


def rewritten(count: int) -> Iterator[Probe]:
    """Yield tensors that lie in the same memory, one after another: rows, and matrices.

    The tenth call of one matrix shows what a backend compiles or keeps only then.
    """
    for place in range(REWRITTEN):
        yield Probe((TURNED,), place * count // REWRITTEN, is_rewritten=True)
    for place in range(REWRITTEN):
        yield Probe(LAID, place * count // REWRITTEN, order=(1, 0), is_rewritten=True)
    for place in range(OFTEN):
        yield Probe((4, 8), place * count // OFTEN, is_rewritten=True)


def drawn(count: int, chance: np.random.Generator) -> Iterator[Probe]:
    """Yield random probes of any rank up to 8, of up to 2^13 elements or a few more, in any layout.

    Half of the longer dimensions have whole blocks, or one element more or less.
    """
    for _ in range(DRAWN):
        rank = int(chance.integers(1, MOST_RANKS, endpoint=True))
        shares = chance.dirichlet(np.ones(rank)) * chance.uniform(0, LOG2_OF_DRAWN)
        shape = [int(2**share) for share in shares.tolist()]
        for dimension, length in enumerate(shape):
            if length > BLOCK // 2 and chance.integers(2):
                blocks = round(length / BLOCK) * BLOCK
                shape[dimension] = blocks + int(chance.integers(-1, 1, endpoint=True))
        steps = [1] * rank
        for dimension in chance.integers(0, rank, STEPS_DRAWN).tolist():
            steps[dimension] = int(chance.choice((1, 2, 3, 4, 5, 8, -1, -2, 0)))
        order = chance.permutation(rank).tolist() if chance.integers(2) else range(rank)
        yield Probe(
            tuple(shape),
            int(chance.integers(count)),
            steps=tuple(steps),
            offset=int(chance.integers(16)),
            order=tuple(order),
        )


def lasting() -> Iterator[Probe]:
    """Yield the probes of the full tier only: every length, a long tensor, one row many times."""
    yield from (Probe((length,), length * 7) for length in range(1, EVERY_LENGTH + 1))
    yield Probe((LONGEST,))
    yield from (Probe((TURNED,), first) for first in range(REPEATED))


def at_once(count: int, pair: str, few_shapes: bool, is_full: bool) -> Iterator[Probe]:
    """Yield rows of different inputs, for two threads that make requests at the same time.

    Of many, some are matrices that lie by columns, or batches of these.
    """
    shape = shape_of_pair(pair) if few_shapes else (TURNED,)
    number = AT_ONCE_FULL if is_full else AT_ONCE
    if not is_full and crc32(pair.encode()) % PAIRS_AT_ONCE:
        number = AT_ONCE_FEW
    for place in range(number):
        first, turn = place * count // number, place % HALF_LAID
        if few_shapes or turn < HALF_LAID // 2:
            row = (LONGER,) if turn % 2 and not few_shapes else shape
            yield Probe(row, first, is_at_once=True)
        elif turn < HALF_LAID - 2:
            yield Probe(LAID, first, order=(1, 0), is_at_once=True)
        else:
            yield Probe((4, 5, 6), first, order=(0, 2, 1), is_at_once=True)
    if number == AT_ONCE and not few_shapes:
        yield from (Probe((length,), is_at_once=True) for length in (LARGE, SHARED))
    if is_full and not few_shapes:
        yield from (Probe((LARGE,), first, is_at_once=True) for first in range(LARGE_AT_ONCE))


def beside(count: int, other: str) -> Iterator[Probe]:
    """Yield rows for one thread, while a second thread makes the request that ``other`` names."""
    for first in range(BESIDE):
        yield Probe((TURNED,), first * count // BESIDE, is_at_once=True, after=other)


def few_probes(count: int, pair: str) -> Iterator[Probe]:
    """Yield probes of a pair's one shape, where new shapes are costly: other inputs and layouts."""
    shape = shape_of_pair(pair)
    for first in (0, count // 2):
        yield Probe(shape, first)
    if 0 not in shape:
        yield Probe(shape, shuffling=1)
        yield Probe(shape, offset=1)
        yield Probe(shape, steps=(-2,) * len(shape))


def alone(place: int, lengths: Sequence[int]) -> list[Probe]:
    """Return rows of these lengths that repeat the input at ``place``."""
    return [Probe((length,), place, stride=0) for length in lengths]


def _spread(count: int, most: int) -> list[int]:
    """Return up to ``most`` evenly spread indices below ``count``, with the first and the last."""
    return sorted(set(np.linspace(0, count - 1, most).astype(int).tolist()))


STEPS = (1, 2, 3, -1, -2, 0)
LONGEST_AXIS = 80
MOST_OFFSET = 15
EXAMPLES = 10
FEW_EXAMPLES = 4
Drawn = TypeVar("Drawn")

ANY_STEP = st.sampled_from(STEPS)
ANY_OFFSET = st.integers(0, MOST_OFFSET)
ANY_SHAPE = st.tuples(st.integers(1, LONGEST_AXIS)) | st.lists(st.integers(1, 9), max_size=4).map(
    tuple
)


class FoundError(Exception):
    """Raised in a search by Hypothesis for each tensor in which something is wrong."""


class AbandonedError(BaseException):
    """The judge was closed while Hypothesis waited for a reply."""


def find_smallest(
    rows: Sequence[Baseline],
    shapes: Sequence[Shape],
    is_laid: bool,
    number: int,
    is_wrong: Callable[[Baseline, Probe], Ask[bool]],
) -> Ask[None]:
    """Let Hypothesis search for a tensor in which something is wrong, and then for smaller ones.

    ``is_wrong`` records what it finds. If it raises an error, that of the smallest tensor is
    raised.
    """
    drawn = st.one_of(
        [st.tuples(st.just(row), any_probe(row.inputs.size, shapes, is_laid)) for row in rows]
    )
    examples = FEW_EXAMPLES if shapes else EXAMPLES

    def search(answer: Callable[[Ask[bool]], bool]) -> None:
        def check(one: tuple[Baseline, Probe]) -> None:
            if answer(is_wrong(*one)):
                raise FoundError

        check_examples(check, drawn, number, examples)

    # What is found is recorded, and so are the smaller ones that were tried.
    with suppress(FoundError, Flaky):
        yield from inverted(search)


def inverted(search: Callable[[Callable[[Ask[bool]], bool]], None]) -> Ask[None]:
    """Run ``search`` in a thread as part of a judge, which yields the requests of its questions.

    ``search`` gets a function that runs a question, itself a judge, and returns its result.
    """
    asked: SimpleQueue[Requests | None] = SimpleQueue()
    answered: SimpleQueue[Sequence[Reply] | None] = SimpleQueue()

    def answer(question: Ask[bool]) -> bool:
        try:
            requests = next(question)
            while True:
                asked.put(requests)
                if (replies := answered.get()) is None:
                    raise AbandonedError
                requests = question.send(replies)
        except StopIteration as done:
            return bool(done.value)

    with ThreadPoolExecutor(1) as thread:
        done = thread.submit(search, answer)
        done.add_done_callback(lambda _: asked.put(None))
        try:
            while (requests := asked.get()) is not None:
                answered.put((yield requests))
        except GeneratorExit:
            answered.put(None)
            raise
        done.result()


@st.composite
def any_probe(draw: st.DrawFn, count: int, shapes: Sequence[Shape], is_laid: bool) -> Probe:
    """Draw a probe of a pair with ``count`` inputs, in one of ``shapes`` or in any.

    Unless it ``is_laid``, its layout is that of a fresh tensor.
    """
    shape = draw(st.sampled_from(shapes) if shapes else ANY_SHAPE)
    first = draw(st.integers(0, count - 1))
    if not is_laid:
        return Probe(shape, first)
    steps = tuple(draw(ANY_STEP) for _ in shape)
    order = tuple(range(len(shape)))
    turned = draw(st.booleans()) and len(shape) > 1
    return Probe(
        shape, first, steps=steps, offset=draw(ANY_OFFSET), order=order[::-1] if turned else ()
    )


def check_examples(
    check: Callable[[Drawn], None], strategy: st.SearchStrategy[Drawn], number: int, examples: int
) -> None:
    """Check examples drawn from a seed; raise the error of the smallest one that fails."""
    profile = settings(
        max_examples=examples,
        derandomize=False,  # The seed decides, whatever profile the tests of a project load.
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        verbosity=Verbosity.quiet,
    )

    def example(drawn: Drawn) -> None:
        check(drawn)

    with warnings.catch_warnings():
        # A worker that was forked off a pytest which is still loading plugins seems to Hypothesis
        # to load them itself, and it warns of slow work meanwhile.
        warnings.simplefilter("ignore", HypothesisSideeffectWarning)
        seed(number)(profile(given(strategy)(example)))()
