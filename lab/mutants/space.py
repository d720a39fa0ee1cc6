"""Chooses mutants: pairs of faults and conditions, planted where a witness exists.

Faults, conditions and cases give tens of millions of combinations. As in pairwise testing, each
fault is planted once per kind of place, and each condition once per plain fault and once per kind
of fault. Where a combination can be planted in many cases, the seed chooses. A mutant counts only
if a **witness** exists: an input whose answer the document forbids.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from itertools import product
from math import prod
from zlib import crc32

import numpy as np

from conformance.families.bitcast.ruling import BitcastRuling, is_bitcast, ruling_if_any
from conformance.families.cast.breakpoints import breakpoints
from lab.mutants.conditions import own_pattern
from lab.mutants.fault import (
    EVERYWHERE,
    REFERENCE,
    Condition,
    Fault,
    Past,
    Row,
    TensorFault,
)
from lab.mutants.mutant import (
    Mutant,
    MutantOracle,
    all_conditions,
    bitcast_faults,
    faults,
    tensor_faults,
)
from oracles.backend.replies import Answered, attempt
from oracles.memory_layouts import Layout, with_layout
from oracles.protocol import Bits
from oracles.reference.expectations import has_branch
from oracles.reference.reference_oracle import RejectedError
from reports.findings.wrong import answered_ruling
from reports.grading.allowed_answers import ALLOWED, Expectations
from specs.branches import Ruling
from specs.cases import SHAPE, Case, format_shape, shape_of
from specs.editions import editions, tensor_rule
from specs.formats import EXHAUSTIVE_BITS, format_named
from specs.loader import documents
from specs.operations import is_cast
from specs.selection import select

PLAIN = (
    "one-unit-too-large", "always-zero", "flips-the-sign", "rounds-toward-zero", "random-bits",
    "keeps-the-low-bits-of-the-pattern",
)  # fmt: skip
"""Faults that affect most answers, with which every condition is tried."""
TRIES = 24
"""The most cases that are tried for a combination, until one has a witness."""
SAMPLED = 1 << 14
SAMPLED_IF_RARE = 1 << 22
SAMPLED_TEXTS = 1 << 9
STEPS = 512
LENGTHENED = 1030
"""How many times longer a bitcast's first dimension is made."""
NEWEST = "onnx-cast:25"
SHAPES = ((), (5,), (2, 3), (0, 3), (2, 3, 2, 2, 2))


@dataclass(frozen=True)
class Place:
    """A kind of case in which faults are planted."""

    name: str
    has: Callable[[Case], bool]
    is_alone: bool = False


def _is_newest(case: Case) -> bool:
    return f"{case.document}:{case.version}" == NEWEST


def _is_wide(case: Case) -> bool:
    return format_named(case.source).bits > EXHAUSTIVE_BITS


def _is_first(case: Case) -> bool:
    """Whether it is the first case of its pair in the newest version of its document."""
    return case.version == _newest(case.document) and case == _first_of_pair(case)


PLACES = (
    Place("narrow sources", lambda case: _is_newest(case) and not _is_wide(case)),
    Place("wide sources", lambda case: _is_newest(case) and _is_wide(case)),
    Place("other documents", lambda case: case.document != "onnx-cast" and _is_first(case)),
    Place("further roads", lambda case: not _is_first(case), is_alone=True),
)
"""Each fault is planted once in a case of each of these kinds."""


@cache
def _newest(document: str) -> str:
    return [each.version for each in editions(documents()[document])][-1]


@cache
def _first_cases() -> dict[tuple[str, str, str, str], Case]:
    found: dict[tuple[str, str, str, str], Case] = {}
    for case in _casts():
        found.setdefault((case.document, case.version, case.source, case.target), case)
    return found


def _first_of_pair(case: Case) -> Case:
    return _first_cases()[case.document, case.version, case.source, case.target]


@cache
def _casts() -> tuple[Case, ...]:
    """All casts of all documents, without worked examples and complex dtypes."""
    return tuple(
        case
        for case in select(())
        if is_cast(case)
        and case.example is None
        and all(format_named(name).kind != "complex" for name in (case.source, case.target))
    )


@cache
def _at(place: Place) -> tuple[Case, ...]:
    return tuple(case for case in _casts() if place.has(case))


Combination = Iterable[Mutant]
"""Mutants of the same fault, condition and place; the first that has a witness is run."""


def chosen(combination: Combination) -> Mutant | None:
    """The first mutant of a combination that has a witness; None if none has."""
    return next((each for each in combination if has_witness(each)), None)


def combinations(seed: int) -> Iterator[Combination]:
    """Yield each combination of a fault, a condition and a place that is tried."""
    everywhere = all_conditions()[EVERYWHERE]
    every_fault: list[Fault | TensorFault] = [*faults().values(), *tensor_faults().values()]
    for fault, place in product(every_fault, PLACES):
        yield _planted(fault, everywhere, place, seed)
    conditions = [each for each in all_conditions().values() if each is not everywhere]
    for condition, name in product(conditions, PLAIN):
        place = PLACES[crc32(f"{condition.name} {name}".encode()) % len(PLACES)]
        yield _planted(faults()[name], condition, place, seed)
    kinds: dict[str, list[Fault]] = {}
    for each in faults().values():
        kinds.setdefault(each.kind, []).append(each)
    for condition, of_kind in product(conditions, kinds.values()):
        number = crc32(f"{condition.name} {of_kind[0].kind} {seed}".encode())
        place = PLACES[number % len(PLACES)]
        yield _planted(of_kind[number % len(of_kind)], condition, place, seed)
    for of_bitcasts, (document, is_wider) in product(bitcast_faults().values(), _bitcast_places()):
        yield _planted_in_bitcasts(of_bitcasts, document, is_wider, seed)


def _planted(
    fault: Fault | TensorFault, condition: Condition, place: Place, seed: int
) -> Iterator[Mutant]:
    """Plant a fault in up to ``TRIES`` cases of a place, in an order that the seed chooses."""
    cases = list(_at(place))
    random.Random(f"{fault.name} {condition.name} {place.name} {seed}").shuffle(cases)
    tries = 0
    for case in cases:
        source, target = format_named(case.source), format_named(case.target)
        fits = condition.applies(source, target)
        if isinstance(fault, Fault):
            fits = fits and fault.applies(source, target)
        if condition.on not in ("nothing", "inputs") or isinstance(fault, TensorFault):
            fits = fits and _keeps_shapes(case.document, case.version)
        if condition.on == "layouts":
            fits = fits and source.is_numeric
        if fits:
            yield Mutant(fault, condition, case, place.is_alone)
            tries += 1
        if tries == TRIES:
            return


@cache
def _keeps_shapes(document: str, version: str) -> bool:
    """Whether a document wants the shape of every tensor kept."""
    return all(tensor_rule(document, version, shape).keeps_shape for shape in SHAPES)


def _bitcast_places() -> Iterator[tuple[str, int]]:
    """Yield each document of bitcasts with 0, -1 and 1: targets as wide, narrower and wider."""
    names = sorted({case.document for case in select(()) if is_bitcast(case)})
    yield from product(names, (0, -1, 1))


@cache
def _bitcasts(document: str, is_wider: int) -> tuple[Case, ...]:
    def compared(case: Case) -> int:
        source, target = format_named(case.source).bits, format_named(case.target).bits
        return (target > source) - (target < source)

    return tuple(case for case in select([document]) if compared(case) == is_wider)


def _planted_in_bitcasts(
    fault: TensorFault, document: str, is_wider: int, seed: int
) -> Iterator[Mutant]:
    cases = list(_bitcasts(document, is_wider))
    random.Random(f"{fault.name} {document} {is_wider} {seed}").shuffle(cases)
    for case in cases[:TRIES]:
        yield Mutant(fault, all_conditions()[EVERYWHERE], case)


def has_witness(mutant: Mutant) -> bool:
    """Return whether the document forbids an answer of a mutant to some input.

    A fault of whole tensors is taken to have a witness wherever the document is not open.
    """
    if is_bitcast(mutant.case):
        oracle = MutantOracle(mutant)
        return any(_changes(oracle, case) for case in _of_pair(mutant.case))
    rules = answered_ruling(mutant.case)
    if rules is None or rules.is_open:
        return False
    if isinstance(mutant.fault, TensorFault):
        return True
    try:
        return share_of_wrong(mutant, rules) > 0
    except RejectedError:
        return False  # The fault answers as an input that the document refuses.


def _of_pair(case: Case) -> Iterator[Case]:
    """The bitcasts of a pair, and ones with a longer first dimension, or with more dimensions."""
    for each in select([f"{case.document}:{case.version}"]):
        if (each.source, each.target) == (case.source, case.target):
            yield each
            shape = shape_of(each)
            if shape and shape[0]:
                longer, ones = (shape[0] * LENGTHENED, *shape[1:]), (1,) * (5 - len(shape))
                for other in (longer, (0, *shape), (2, 3, *shape), (*ones, *shape)):
                    yield replace(each, modes=((SHAPE, format_shape(other)),), example=None)


def _changes(oracle: MutantOracle, case: Case) -> bool:
    """Whether a mutant answers a bitcast otherwise than the document names bit for bit.

    Some faults show only in the second call, or in the first answer after it.
    """
    rules = ruling_if_any(case)
    if rules is None or rules.is_open:
        return False
    if rules.is_rejection:
        tensor = np.zeros(rules.shape, rules.source.storage)
        return isinstance(attempt(partial(oracle.bitcast, case, tensor)), Answered)
    if rules.result is None or not rules.keeps_bits:
        return False
    tensors = [*_tensors(rules)]
    answers = [oracle.bitcast(case, bits) for bits in tensors]
    rights = [REFERENCE.bitcast(case, bits) for bits in tensors]
    return not all(map(np.array_equal, answers, rights))


def _tensors(rules: BitcastRuling) -> Iterator[Bits]:
    """Random tensors, also reversed, columns first and off a boundary; zeros, and negative ones."""
    storage = np.dtype(rules.source.storage)
    chance = np.random.default_rng(0)
    columns_first = tuple(prod(rules.shape[:place]) for place in range(len(rules.shape)))
    for turns in (np.asarray, np.asarray, np.flip, Layout(columns_first), Layout((1,), offset=1)):
        raw = chance.bytes(prod(rules.shape) * storage.itemsize)
        bits = np.frombuffer(raw, storage).reshape(rules.shape)
        if storage.kind == "u":
            bits = np.asarray(bits & storage.type(rules.source.mask))
        if not isinstance(turns, Layout):
            yield np.asarray(turns(bits))
        elif len(turns.strides) == bits.ndim:
            yield with_layout(bits, turns)
    if storage.kind == "u":
        for code in (0, 1 << (rules.source.bits - 1)):
            yield np.full(rules.shape, code, storage)


def share_of_wrong(mutant: Mutant, rules: Ruling) -> float:
    """Return the share of witnesses among sampled inputs that the condition selects.

    The sample has random inputs, and those where answers change.
    """
    assert isinstance(mutant.fault, Fault)
    is_rare = mutant.condition.on == "inputs" and "million" in mutant.condition.name
    row = Row(mutant.case, _answered(rules, SAMPLED_IF_RARE if is_rare else SAMPLED))
    if mutant.condition.on == "inputs":
        selected = np.asarray(mutant.condition.spoils(row, row.bits, Past()))
        row = Row(mutant.case, _with_pattern(mutant, row.bits[selected]))
    if not row.bits.size:
        return 0.0
    wrong = mutant.fault.answers(row)
    expectations = Expectations(independent=False)
    expected = expectations.of(rules, row.bits)
    grades = expectations.grades(rules, row.bits, expected, np.asarray(wrong))
    return float((grades != ALLOWED).mean())


def _answered(rules: Ruling, most: int) -> Bits:
    """Sampled inputs without those that must be refused, one of which refuses a whole row."""
    inputs: Bits = sampled_inputs(rules, most)
    if rules.refuses_some:
        expected = Expectations(independent=False).of(rules, inputs)
        inputs = inputs[~has_branch(expected.branch_indices, rules.refused_branches)]
    return inputs


def _with_pattern(mutant: Mutant, selected: Bits) -> Bits:
    """Return the selected inputs, or the one pattern of a condition about one pattern."""
    if mutant.condition.name != "of-one-pattern":
        return selected
    return np.array([own_pattern(mutant.case)], selected.dtype)


@lru_cache(4)
def sampled_inputs(rules: Ruling, count: int) -> Bits:
    """All inputs of a narrow source; of a wide one random patterns, and both ends of steps."""
    source, target = rules.source, rules.target
    if source.kind == "text":
        return np.array([*_texts(random.Random(0))], object)
    chance = np.random.default_rng(0)
    if source.bits <= EXHAUSTIVE_BITS:
        every = np.arange(1 << source.bits, dtype=source.storage)
        return every if target.is_numeric else chance.permutation(every)[:SAMPLED_TEXTS]
    if not target.is_numeric:
        count = SAMPLED_TEXTS
    found = [chance.integers(0, source.mask, count, np.uint64, endpoint=True)]
    small = [np.arange(STEPS, dtype=np.uint64) + np.uint64(low) for low in (0, source.one_code)]
    found += small
    if source.nan_codes:
        found += [
            np.array([codes[0], codes[len(codes) // 2], codes[-1]], np.uint64)
            for codes in source.nan_codes
        ]
    found.append(
        np.array(
            [source.max_code, source.lowest_code, source.sign_bit, source.infinity_code], np.uint64
        )
    )
    if target.is_numeric:
        step = max(target.max_code // STEPS, 1)
        codes = np.arange(0, target.max_code + 1, step, dtype=np.uint64)[-STEPS:]
        ends = np.array(
            [0, 1, 2, target.max_code - 1 if target.max_code else 0, target.max_code], np.uint64
        )
        found.append(breakpoints(source, target, np.concatenate([codes, ends])))
    words = np.concatenate(found) & np.uint64(source.mask)
    return words.astype(source.storage)


def _texts(chance: random.Random) -> Iterator[str]:
    """Numbers as texts, by their grammar."""
    yield from ("inf", "-inf", "NaN", "0", "-0", "+1", "1", "-1")
    for _ in range(STEPS):
        sign = chance.choice(["", "-", "+"])
        whole = "0" * chance.choice([0, 0, 1]) + str(
            chance.randrange(10 ** chance.randrange(1, 40))
        )
        fraction = f".{chance.randrange(10 ** chance.randrange(1, 30))}" * chance.choice([0, 1])
        exponent = f"{chance.choice('eE')}{chance.randrange(-60, 40)}" * chance.choice([0, 1])
        yield f"{sign}{whole}{fraction}{exponent}"
    for digits in (100, 300):
        yield "1" * digits + f"e-{digits}"
