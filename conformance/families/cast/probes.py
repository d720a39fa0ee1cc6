"""The tensors in which a cast is asked again: a handful that are listed, and draws from the space.

The list has what draws meet too rarely: every length up to that of some vectors, every input at
every position, every input alone and in rows of itself, any two inputs side by side. The others are
drawn (``conformance/judging/space.py``), other ones for each pair, version and seed.

Besides draws, which each seed asks of each pair, there are other kinds, which together cost more:
the listed tensors, all inputs in three layouts, memory that is used again, other casts before, two
threads. At the tier quick they *take turns*: each is asked with one of a few consecutive seeds, so
that eight nights ask them all of a pair, and each night asks some pairs of every kernel.

Between two tensors of a pair come casts of other pairs, and a bitcast of its own. A run asks pair
after pair, so a backend that keeps something under a key without the dtype (a compiled kernel, a
buffer, an answer) never shows it: its first request about a pair replaces what it kept. Here a row
of another pair, of the same shape and width where there is one, comes immediately before a row of
the pair itself; and a bitcast of the pair, of a row of the same shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod
from random import Random
from zlib import crc32

import numpy as np

from conformance.families import tensor_of
from conformance.families.cast.baseline import Baseline
from conformance.judging.probe import LENGTHS, Probe, ProbePlan, shape_of_pair
from conformance.judging.space import drawn_probe
from oracles.backend.requests import Cast, Request
from oracles.protocol import Bits
from reports.drawn_tensors import DRAWS
from specs.cases import Case
from specs.formats import Format, format_named
from specs.ruling import ruling
from specs.selection import first_cases

LARGE = (1 << 16) + 3
"""More elements than frameworks leave to one thread."""
TURNED = 67
"""The length at which every input stands at every position: a prime, and longer than a vector."""
SCALARS = 8
"""Number of inputs that are asked as tensors without dimensions."""
SHUFFLED = 64
"""Shufflings in one row: any two inputs stand side by side, and in one vector, in some of them."""
AROUND_BLOCKS = tuple(block + beside for block in (128, 256, 512) for beside in (-1, 0, 1))
"""Lengths at which loops over blocks of vectors begin and end."""
LISTED_TURNS, KIND_TURNS, THREAD_TURNS = 8, 3, 8
"""How many consecutive seeds of the tier quick ask all tensors of a kind, of each pair.

The first is of the listed tensors, of which each seed asks a share. The second is of the layouts of
all inputs, of which each seed asks one, and of used memory and casts before, which one seed asks.
The third is of two threads, which one seed asks."""
DRAWS_OF_CALL, DRAWS_OF_ROAD = 2 * DRAWS, 3
"""Tensors that are drawn at the tier quick for a pair that has only calls, and for each further
road of a pair and each further form of its calls."""
OFTEN = 12
"""How many times one drawn tensor is asked with other contents in the same memory."""
SMALL = 1 << 12
COLUMNS = 64
"""Columns of the matrix of all inputs."""
SEVENTH = 7
"""Shorter than a vector: a kernel answers such a row with the loop for the rest of a row."""
LONGEST = (1 << 20) + 3
"""More elements than fit into a cache."""
EVERY_LENGTH = 1100
"""Every length up to this one is asked at the full tier."""
REPEATED = 1500
"""Calls in a row at the full tier, so that an event at every thousandth call occurs."""
AT_ONCE, AT_ONCE_FULL = 12, 100
"""How many tensors two threads ask at the same time; the latter in a gate and at the tier full."""
LARGE_AT_ONCE = 8
"""Two threads ask tensors in groups of this many; the last two of a group are large."""
BESIDE = 3
"""How many tensors are asked while another thread casts another pair."""
SHORTEST, STEP = 72, 8
"""The rows of other pairs and of bitcasts have lengths of their own, so that each is the first of
its shape. Those of bitcasts fit elements of all widths; those of casts have a rest behind the last
whole vector."""
SOURCES_KEPT = 64
MOST_BITS = 64
"""Bits of the widest numbers; their neighbors are narrower sources instead of wider ones."""


def turn_of(pair: str, kind: str, seed: int, turns: int) -> int:
    """Return the turn of a kind of tensors of a pair, from 0 to before ``turns``.

    Consecutive seeds give each of them once, and other pairs begin elsewhere.
    """
    return (crc32(f"{pair} {kind}".encode()) + seed) % turns


def listed(count: int) -> Iterator[Probe]:
    """Yield the probes that do not depend on the seed, for a pair with ``count`` inputs."""
    for length in (*LENGTHS, *AROUND_BLOCKS):
        yield Probe((length,), first=length * 7 % count)
    # Each row ends with another input, and the next shows whether that has left anything behind.
    for first in range(count):
        yield Probe((TURNED,), first)
    for first in range(count):
        yield Probe((TURNED,), first, contents="one")
        yield Probe((1,), first)
    # The loop for the rest takes the last element, and zeros before it are harmless to any kernel.
    yield from (Probe((TURNED,), first, contents="one but the last") for first in range(1, count))
    # A row after a scalar shows whether that has left anything behind.
    for place, first in enumerate(_spread(count, SCALARS)):
        yield from (Probe((), first), Probe((SEVENTH,), place))


def shuffled(count: int) -> Probe:
    """Return a long row: ``SHUFFLED`` copies of all inputs, each shuffled anew."""
    return Probe((SHUFFLED * count + 3,), contents="shuffled", shuffling=1)


def drawn(count: int, chance: Random, number: int) -> Iterator[Probe]:
    """Draw a number of probes of a pair with ``count`` inputs."""
    probe = None
    for _ in range(number):
        probe = drawn_probe(chance, count, probe)
        yield probe


def whole_probes(count: int) -> list[Probe]:
    """Return the layouts of all inputs: a shuffled row, one with steps, and a matrix by columns.

    The loop for such tensors is often a kernel of its own, which rounds or treats special values in
    its own way.
    """
    return [
        Probe((count,), contents="shuffled", shuffling=1),
        Probe((count,), steps=(2,)),
        Probe((-(-count // COLUMNS), COLUMNS), order=(1, 0)),
    ]


def rewritten(count: int, chance: Random) -> Iterator[Probe]:
    """Yield a small drawn tensor with other inputs in the same memory, one after another.

    The tenth call of one tensor shows what a backend compiles or keeps only then.
    """
    probe = drawn_probe(chance, count)
    while prod(probe.shape) > SMALL:
        probe = drawn_probe(chance, count)
    for place in range(OFTEN):
        yield replace(probe, first=place * count // OFTEN, shuffling=place, is_rewritten=True)


def lasting() -> Iterator[Probe]:
    """Yield the probes of the full tier only: every length, a long row, many rows of one length.

    The lengths go up to ``EVERY_LENGTH``. Each of the many rows begins one input after the last.
    """
    yield from (Probe((length,), length * 7) for length in range(1, EVERY_LENGTH + 1))
    yield Probe((LONGEST,))
    yield from (Probe((TURNED,), first) for first in range(REPEATED))


def at_once(
    count: int, pair: str, chance: Random, *, few_shapes: bool, many: bool
) -> Iterator[Probe]:
    """Yield tensors of different inputs, for two threads that make requests at the same time.

    All have the one shape of ``pair`` if ``few_shapes``. There are ``AT_ONCE_FULL`` of them if
    ``many``.
    """
    number = AT_ONCE_FULL if many else AT_ONCE
    for place in range(number):
        first = place * count // number
        if few_shapes:
            yield Probe(shape_of_pair(pair), first, is_at_once=True)
            continue
        # The threads take turns, so that both ask one shape and layout at the same time.
        if place % 2 == 0:
            probe = replace(drawn_probe(chance, count), is_at_once=True)
            if place % LARGE_AT_ONCE == LARGE_AT_ONCE - 2:
                probe = Probe((LARGE + place,), is_at_once=True)
        yield replace(probe, first=first)


def beside(count: int, other: str, chance: Random) -> Iterator[Probe]:
    """Yield tensors for one thread; ``other`` names what a second thread requests meanwhile."""
    for _ in range(BESIDE):
        yield replace(drawn_probe(chance, count), is_at_once=True, after=other)


def few_probes(count: int, pair: str) -> Iterator[Probe]:
    """Yield probes of a pair's one shape, where new shapes are costly: other inputs and layouts."""
    shape = shape_of_pair(pair)
    for first in (0, count // 2):
        yield Probe(shape, first)
    if 0 not in shape:
        yield Probe(shape, contents="shuffled", shuffling=1)
        yield Probe(shape, offset=1)
        yield Probe(shape, steps=(-2,) * len(shape))


def alone(place: int, lengths: Sequence[int]) -> list[Probe]:
    """Return rows of these lengths that repeat the input at ``place``."""
    return [Probe((length,), place, contents="one") for length in lengths]


def _spread(count: int, most: int) -> list[int]:
    return sorted(set(np.linspace(0, count - 1, most).astype(int).tolist()))


def neighbors(case: Case, is_full: bool) -> list[Case]:
    """Return casts of the same edition to request before a row of ``case``.

    They have another source or target of the same width, or a wider source of the same kind (for
    one of 64 bits a narrower), or the same source and must be refused. At the tier full these are
    all such cases; at the tier quick one of each kind, which the case's id chooses.
    """
    known = first_cases(case.document, case.version).values()
    source, target = format_named(case.source), format_named(case.target)
    others = [
        [each for each in known if each.target == case.target and _is_other(source, each.source)],
        [each for each in known if each.source == case.source and _is_other(target, each.target)],
        [each for each in known if each.target == case.target and _is_wider(source, each.source)],
    ]
    refused = _refused(case.document, case.version, case.source)
    if is_full:
        return [each for kind in (*others, refused) for each in kind]
    number = crc32(case.id.encode())
    found = [_first_answered(kind, number) for kind in others]
    found.append(refused[number % len(refused)] if refused else None)
    return [each for each in found if each is not None]


@lru_cache(SOURCES_KEPT)
def _refused(document: str, version: str, source: str) -> tuple[Case, ...]:
    known = first_cases(document, version).values()
    return tuple(each for each in known if each.source == source and ruling(each).is_rejection)


def _first_answered(cases: Sequence[Case], number: int) -> Case | None:
    """Return the first case from place ``number`` on that need not be refused; None if all must.

    The places go round: after the last case comes the first.
    """
    start = number % len(cases) if cases else 0
    turned = (*cases[start:], *cases[:start])
    return next((each for each in turned if not ruling(each).is_rejection), None)


def _is_other(own: Format, name: str) -> bool:
    other = format_named(name)
    return other != own and other.bits == own.bits


def _is_wider(own: Format, name: str) -> bool:
    """Return whether a format of ``own``'s kind is wider, or narrower if ``own`` has 64 bits."""
    other = format_named(name)
    is_like = own.is_numeric and other.kind == own.kind
    return is_like and (other.bits > own.bits or own.bits == MOST_BITS > other.bits)


def cast_words(case: Case) -> str:
    """Return the words ``a cast of SOURCE to TARGET``, as descriptions of probes have them."""
    return f"a cast of {case.source} to {case.target}"


def in_turn(
    row: Baseline, casts: Sequence[Case], shaped: Sequence[Case]
) -> list[tuple[Request, ProbePlan]]:
    """Return each neighbor's request, and the plan of the row that comes right after it.

    ``casts`` get the patterns of that row, as far as their sources hold them. ``shaped`` are cases
    of operations on one tensor of any shape; they get that row itself.
    """
    count = row.inputs.size
    turns: list[tuple[Request, ProbePlan]] = []
    for number, case in enumerate((*casts, *shaped)):
        functions = tensor_of(case)
        words = "a bitcast to the same dtype" if functions else cast_words(case)
        shape = (SHORTEST + STEP * number + (0 if functions else 1),)
        probe = Probe(shape, number % count, after=words)
        bits = probe.tensor(row.inputs)
        before: Request = Cast(case, held_by(case, bits))
        if functions is not None:
            before = functions.request(case, bits)
        turns.append((before, ProbePlan.of([probe], count)))
    return turns


def held_by(case: Case, bits: Bits) -> Bits:
    """Return patterns in the storage of a case's source, without bits that it lacks."""
    source = format_named(case.source)
    storage = np.dtype(source.storage)
    if bits.dtype == storage:
        return bits & storage.type(source.mask) if source.is_numeric else bits
    held: Bits = (bits.astype(np.uint64) & np.uint64(source.mask)).astype(storage)
    return held
