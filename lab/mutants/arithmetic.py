"""Faults of a conversion's arithmetic: rounding, dropped bits, detours, and thresholds.

Another rounding and reversed bytes are rows of the table by which causes are found. All others are
computed here once more, in another way, or are no row at all: dropped bits of magnitudes, detours
by the rules of one document, ties, thresholds, and single units. So the measure also has faults
that no row foresees, or that a row describes in its own way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from typing import Any, get_args

import numpy as np

from lab.mutants.fault import REFERENCE, Applies, Fault, Mask, Row, between_numbers, planted
from oracles.protocol import Bits
from reports.findings.cast_wrongs import (
    bytes_of_answers_reversed,
    bytes_of_inputs_reversed,
    other_rounding,
)
from reports.findings.wrong import right
from reports.findings.wrong import rounded as rounded_otherwise
from specs.cases import Case
from specs.formats import Format, format_named, formats
from specs.model.vocabulary import Rounding
from specs.ruling import ruling
from specs.selection import select

ONE = np.uint64(1)
UNEXPLAINED = "unexplained"
DETOURS = "onnx-cast:25"
"""The document by which a detour through another dtype converts."""


def faults() -> Iterator[Fault]:
    """Yield the faults of arithmetic."""
    for rounding in get_args(Rounding):
        wrong = other_rounding(rounding)
        named = (wrong.name, "as-*", *ALSO_CALLED[rounding])
        yield Fault(wrong.name, "rounding", partial(planted, wrong), named, _rounds)
    for name, ties in TIES.items():
        yield Fault(f"ties-{name}", "rounding", ties, ("rounds-*", "as-*", UNEXPLAINED), _rounds)
    for name, dropped in DROPPED.items():
        dropping = ("ignores-*-low-bits", "sticky-*-bits", "rounds-*", UNEXPLAINED)
        yield Fault(
            f"drops-{name}",
            "dropped bits",
            partial(_without, dropped),
            dropping,
            partial(_drops, dropped),
        )
    for name in formats():
        if format_named(name).is_numeric:
            # All integers that are wide enough give the same answers.
            like = ("through-*int*",) if format_named(name).is_integral else ()
            detours = (f"*through-{name}", f"*via-{name}*", *like, *OF_DETOURS, *NAMES_OF_ENDS)
            yield Fault(
                f"through-{name}",
                "double rounding",
                partial(_through, name),
                detours,
                partial(_detours, name),
            )
    for name, (is_top, moves) in THRESHOLDS.items():
        yield Fault(name, "threshold", partial(_moved, is_top, moves), NAMES_OF_ENDS, _to_numbers)
    for name, (answers, causes, applies) in ARITHMETIC.items():
        yield Fault(name, "arithmetic", answers, causes, applies)


NAMES_OF_ENDS = (
    "infinity", "minus-infinity", "nan", "zero", "minus-zero", "maximum", "minimum", "smallest",
    "one", "*clamp*", "*infinity*", "*-nan", "rounds-toward-zero", "rounds-ceil",
    "rounds-nearest-*", "saturate",
    UNEXPLAINED,
)  # fmt: skip
"""The causes that name an answer at an end of the range."""
OF_DETOURS = ("as-*", "packed-via-*", "nan-sign", "wrap", "flush-*", "flushes-*", "nearest-flush")
"""The causes that name what a detour loses."""
ALSO_CALLED: dict[Rounding, tuple[str, ...]] = {
    "nearest-even": ("nearest*",),
    "nearest-away": (),
    "toward-zero": ("saturate", "wrap", "via-*", "as-c-on-x86"),
    "floor": (),
    "ceil": (),
    "odd": (),
}
"""By rounding, causes that round in the same way, and are found instead if they explain as much."""


def _rounds(source: Format, target: Format) -> bool:
    return (
        source.is_numeric
        and target.is_numeric
        and target.kind != "boolean"
        and not (source.is_integral and target.is_integral)
    )


def rounded(rounding: Rounding, row: Row) -> Bits:
    """Return the answers that another rounding gives."""
    return rounded_otherwise(row.case, rounding, row.bits)


def ties(row: Row) -> Mask:
    """Which inputs are ties: their two neighbors round to the two answers around them."""
    down, up = (_near(row, step) for step in (-1, 1))
    low, high = rounded("toward-zero", row), _away(row)
    below = np.asarray(rounded("nearest-even", replace(row, bits=down)) == low)
    above = np.asarray(rounded("nearest-even", replace(row, bits=up)) == high)
    finite = ~row.is_a("nan") & ~row.is_a("infinity") & ~row.is_a("zero")
    tie: Mask = below & above & (low != high) & finite
    return tie


def _near(row: Row, step: int) -> Bits:
    """Return the patterns with magnitudes that are ``step`` patterns larger than the inputs'."""
    if row.source.is_integral:
        signed = np.where(row.negative, -step, step).astype(np.int64).view(np.uint64)
        return ((row.words + signed) & np.uint64(row.source.mask)).astype(row.source.storage)
    return (row.words + np.uint64(step % (1 << 64))).astype(row.source.storage)


def _away(row: Row) -> Bits:
    """Answers rounded away from zero."""
    return np.where(row.negative, rounded("floor", row), rounded("ceil", row))


TIES: dict[str, Callable[[Row], Bits]] = {
    "toward-zero": lambda row: np.where(ties(row), rounded("toward-zero", row), row.right),
    "away-from-zero": lambda row: np.where(ties(row), _away(row), row.right),
    "up": lambda row: np.where(ties(row), rounded("ceil", row), row.right),
    "down": lambda row: np.where(ties(row), rounded("floor", row), row.right),
    "to-odd": lambda row: np.where(ties(row), rounded("odd", row), row.right),
}

Dropped = Callable[[Format, Format], int]
"""Takes both formats, and returns a mask of the bits that a backend loses."""


def _lost_bits(source: Format, target: Format) -> int:
    """How many bits of a significand the target lacks."""
    if source.is_integral:
        return source.bits - min(
            target.bits, target.precision if target.kind == "float" else target.bits
        )
    return source.entry.mantissa - (target.entry.mantissa if target.kind == "float" else 0)


DROPPED: dict[str, Dropped] = {
    "the-lowest-bit": lambda source, target: 1,
    "the-second-bit": lambda source, target: 2,
    "the-fifth-bit": lambda source, target: 16,
    "the-bit-below-the-tie": lambda source, target: 1 << max(_lost_bits(source, target) - 2, 0),
    "two-bits-below-the-tie": lambda source, target: 1 << max(_lost_bits(source, target) - 3, 0),
    "all-below-the-guard-bit": lambda source, target: (
        (1 << max(_lost_bits(source, target) - 1, 0)) - 1
    ),
    "all-below-three-guard-bits": lambda source, target: (
        (1 << max(_lost_bits(source, target) - 3, 0)) - 1
    ),
    "all-between-the-guard-bit-and-four": lambda source, target: (
        (1 << max(_lost_bits(source, target) - 1, 0)) - 1 & ~0xF
    ),
    "the-low-byte": lambda source, target: 0xFF,
    "the-low-16-bits": lambda source, target: 0xFFFF,
    "the-low-half": lambda source, target: (1 << source.bits // 2) - 1,
}


def _drops(dropped: Dropped, source: Format, target: Format) -> bool:
    lost = dropped(source, target)
    return _rounds(source, target) and 0 < lost < (1 << max(source.bits - 3, 0))


def _without(dropped: Dropped, row: Row) -> Bits:
    lost = np.uint64(dropped(row.source, row.target))
    if row.source.is_integral:
        signed = row.words.astype(np.int64)
        shift = np.int64(64 - row.source.bits)
        signed = (signed << shift) >> shift if row.source.is_signed else signed
        # Drop bits of the magnitude, so that both signs lose the same.
        kept = np.where(
            row.negative, -((-signed) & ~lost.astype(np.int64)), signed & ~lost.astype(np.int64)
        )
        return row.answered(kept.astype(np.uint64) & np.uint64(row.source.mask))
    return np.where(row.is_a("nan"), row.right, row.answered(row.words & ~lost))


def _shortens_subnormals(source: Format, target: Format) -> bool:
    """Return whether normal numbers of the source become subnormal ones with fewer digits."""
    return (
        source.kind == target.kind == "float"
        and target.entry.mantissa > 0
        and _lost_bits(source, target) > 0
        and source.lowest_exponent < target.lowest_exponent
    )


def _subnormals_rounded_twice(row: Row) -> Bits:
    """Round what becomes subnormal to the digits of a normal result first, ties to even."""
    dropped = np.uint64(_lost_bits(row.source, row.target))
    is_odd = row.words >> dropped & ONE
    halves = (ONE << dropped - ONE) - ONE
    first = row.words + halves + is_odd >> dropped << dropped
    concerned = row.gives_a("subnormal") & ~row.is_a("subnormal")
    return np.where(concerned, row.answered(np.where(concerned, first, row.words)), row.right)


def _detours(through: str, source: Format, target: Format) -> bool:
    return (
        between_numbers(source, target)
        and through not in (source.name, target.name)
        and detour(source.name, through) is not None
        and detour(through, target.name) is not None
    )


@cache
def detour(source: str, target: str) -> Case | None:
    """Find a cast by which another one may detour: the first case of the pair of dtypes.

    Return None if the pair has no case, or if the document rejects that case or leaves it open.
    """
    case = _first_cases().get((source, target))
    return None if case is None or ruling(case).is_rejection or ruling(case).is_open else case


@cache
def _first_cases() -> dict[tuple[str, str], Case]:
    cases: dict[tuple[str, str], Case] = {}
    for case in select([DETOURS]):
        cases.setdefault((case.source, case.target), case)
    return cases


def converted(bits: Bits, source: str, target: str) -> Bits:
    """Cast bits from one dtype to another by the case that ``detour`` finds; there must be one.

    Where the document is open, they are cast as usual, as a kernel of that pair would do.
    """
    case = detour(source, target)
    assert case is not None
    return right(case, bits).codes


def _through(through: str, row: Row) -> Bits:
    middle = converted(row.bits, row.source.name, through)
    return converted(middle, through, row.target.name)


@dataclass(frozen=True)
class Edge:
    """The inputs of the last answer before an edge of the range, by their magnitudes.

    ``middle`` is the input of the same value as that answer, if answers are rounded to nearest.
    """

    first: int
    last: int

    @property
    def middle(self) -> int:
        """The input in the middle."""
        return (self.first + self.last + 1) // 2


@lru_cache(256)
def edge(case: Case, sign: int, is_top: bool) -> Edge:
    """Find the inputs of the last answer below overflow, or of the first above zero, by sign."""
    source = format_named(case.source)
    most = source.max_code if not (sign and source.is_integral) else source.sign_bit

    def answer(magnitude: int) -> Any:
        return REFERENCE.cast(case, _patterns(source, np.array([magnitude]), sign))[0]

    def first_with(holds: Callable[[int], bool], low: int, high: int) -> int:
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if holds(middle) else (middle + 1, high)
        return low

    beyond, zero = answer(most), answer(0)
    if is_top:
        top = first_with(lambda each: bool(answer(each) == beyond), 0, most)
        below = answer(max(top - 1, 0))
        return Edge(first_with(lambda each: bool(answer(each) in (below, beyond)), 0, top), top - 1)
    first = first_with(lambda each: bool(answer(each) != zero), 0, most)
    smallest = answer(first)
    after = first_with(lambda each: bool(answer(each) not in (zero, smallest)), first, most)
    return Edge(first, after - 1)


def _patterns(source: Format, magnitudes: Any, sign: int) -> Bits:
    """The patterns of values with these magnitudes and one sign."""
    words = np.asarray(magnitudes).astype(np.uint64)
    if sign:
        words = np.uint64(0) - words if source.is_integral else words | np.uint64(source.sign_bit)
    return (words & np.uint64(source.mask)).astype(source.storage)


Moves = Callable[[Edge], tuple[int, int, int]]
"""Takes an edge; returns the first and last magnitude to change, and the one to answer instead."""
THRESHOLDS: dict[str, tuple[bool, Moves]] = {
    "overflows-one-pattern-early": (True, lambda step: (step.last, step.last, step.last + 1)),
    "overflows-one-pattern-late": (True, lambda step: (step.last + 1, step.last + 1, step.last)),
    "overflows-half-a-unit-early": (True, lambda step: (step.middle, step.last, step.last + 1)),
    "overflows-half-a-unit-late": (
        True,
        lambda step: (step.last + 1, 2 * step.last + 1 - step.middle, step.last),
    ),
    "underflows-one-pattern-early": (False, lambda step: (step.first, step.first, step.first - 1)),
    "underflows-one-pattern-late": (
        False,
        lambda step: (step.first - 1, step.first - 1, step.first),
    ),
    "underflows-half-a-unit-early": (
        False,
        lambda step: (step.first, step.middle - 1, step.first - 1),
    ),
    "underflows-half-a-unit-late": (
        False,
        lambda step: (2 * step.first - step.middle, step.first - 1, step.first),
    ),
}


def _moved(is_top: bool, moves: Moves, row: Row) -> Bits:
    """Answer the inputs next to an edge as an input on its other side."""
    answers = row.right.copy()
    case = replace(row.case, example=None)
    magnitudes = (
        np.where(row.negative, np.uint64(0) - row.words, row.words)
        if row.source.is_integral
        else row.words
    )
    magnitudes = magnitudes & np.uint64(
        row.source.mask if row.source.is_integral else row.source.mask ^ row.source.sign_bit
    )
    for sign in (0, 1) if row.source.is_signed else (0,):
        first, last, other = moves(edge(case, sign, is_top))
        if first > last or min(first, other) < 0:
            continue
        mine = (magnitudes >= first) & (magnitudes <= last) & (row.negative == bool(sign))
        answers[mine] = REFERENCE.cast(case, _patterns(row.source, np.array([other]), sign))[0]
    return answers


def _finite(row: Row) -> Mask:
    """Which answers are finite numbers other than zero, and not the largest."""
    at_end = (row.answers & ~np.uint64(row.target.sign_bit)) >= row.target.max_code
    return ~(row.gives_a("nan") | row.gives_a("infinity") | row.gives_a("zero") | at_end)


def _inexact(row: Row) -> Mask:
    if not _rounds(row.source, row.target):
        return np.ones(row.bits.shape, bool)
    return np.asarray(rounded("toward-zero", row) != _away(row))


def _changed(change: Callable[[Row], Any], row: Row, where: Mask) -> Bits:
    return np.where(where, row.stored(change(row)), row.right)


def _carry_lost(row: Row) -> Bits:
    """Answer as if rounding up to a power of two left the exponent as it was."""
    low = rounded("toward-zero", row).astype(np.uint64)
    mantissa = np.uint64(row.target.entry.mantissa)
    return row.stored(
        np.where(
            row.answers >> mantissa != low >> mantissa, low >> mantissa << mantissa, row.answers
        )
    )


def _sign_flipped(row: Row) -> Any:
    if row.target.is_integral:
        return np.uint64(0) - row.answers
    return row.answers ^ np.uint64(row.target.sign_bit)


def _sign_lost(row: Row) -> Any:
    if row.target.is_integral:
        return np.where(row.results.sign == 1, np.uint64(0) - row.answers, row.answers)
    return row.answers & ~np.uint64(row.target.sign_bit)


def _to_floats(source: Format, target: Format) -> bool:
    return source.is_numeric and target.kind == "float" and target.entry.mantissa > 0


def _of_bytes(source: Format, target: Format) -> bool:
    return between_numbers(source, target) and target.bits in (16, 32, 64)


def _from_bytes(source: Format, target: Format) -> bool:
    return between_numbers(source, target) and source.bits in (16, 32, 64)


def _to_signed(source: Format, target: Format) -> bool:
    return between_numbers(source, target) and source.is_signed and target.is_signed


def _to_numbers(source: Format, target: Format) -> bool:
    return between_numbers(source, target) and target.kind != "boolean"


OF_UNITS = ("rounds-*", "as-*", "nearest*", UNEXPLAINED)
"""The causes of answers that are the next value."""
ARITHMETIC: dict[str, tuple[Callable[[Row], Bits], tuple[str, ...], Applies]] = {
    "one-unit-too-large": (
        lambda row: _changed(lambda row: row.answers + ONE, row, _inexact(row) & _finite(row)),
        OF_UNITS,
        _to_numbers,
    ),
    "one-unit-too-small": (
        lambda row: _changed(lambda row: row.answers - ONE, row, _inexact(row) & _finite(row)),
        OF_UNITS,
        _to_numbers,
    ),
    "twice-the-value": (
        lambda row: _changed(
            lambda row: row.answers + (ONE << np.uint64(row.target.entry.mantissa)),
            row,
            _finite(row),
        ),
        (UNEXPLAINED,),
        _to_floats,
    ),
    "half-the-value": (
        lambda row: _changed(
            lambda row: row.answers - (ONE << np.uint64(row.target.entry.mantissa)),
            row,
            _finite(row) & ~row.gives_a("subnormal"),
        ),
        (UNEXPLAINED,),
        _to_floats,
    ),
    "loses-the-carry": (
        _carry_lost,
        (UNEXPLAINED,),
        lambda source, target: _to_floats(source, target) and _rounds(source, target),
    ),
    "rounds-subnormal-results-twice": (
        _subnormals_rounded_twice,
        ("rounds-subnormals-twice", "rounds-twice-*"),
        _shortens_subnormals,
    ),
    "loses-the-sign": (
        lambda row: row.stored(_sign_lost(row)),
        ("magnitude-*", "wrong-sign"),
        _to_signed,
    ),
    "flips-the-sign": (
        lambda row: row.stored(_sign_flipped(row)),
        ("wrong-sign", UNEXPLAINED),
        _to_signed,
    ),
    "reverses-the-bytes-of-answers": (
        partial(planted, bytes_of_answers_reversed),
        (bytes_of_answers_reversed.name,),
        _of_bytes,
    ),
    "reverses-the-bytes-of-inputs": (
        partial(planted, bytes_of_inputs_reversed),
        (bytes_of_inputs_reversed.name,),
        _from_bytes,
    ),
    "keeps-the-low-bits-of-the-pattern": (
        lambda row: row.stored(row.words),
        ("wrap", "moves-bits", "as-*", "reads-*", "converts-to-*", UNEXPLAINED),
        between_numbers,
    ),
    "always-zero": (
        lambda row: row.stored(np.zeros(row.bits.shape)),
        ("zero", "*flush*", "smallest", "minimum"),  # Where there is no zero, it is the lowest.
        between_numbers,
    ),
    "always-one": (
        lambda row: row.stored(np.full(row.bits.shape, row.target.one_code, np.uint64)),
        ("one",),
        between_numbers,
    ),
    "random-bits": (
        lambda row: row.stored(
            row.words * np.uint64(0xD1342543DE82EF95) >> np.uint64(64 - row.target.bits)
        ),
        (UNEXPLAINED,),
        between_numbers,
    ),
}
