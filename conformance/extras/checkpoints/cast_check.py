"""Finds out what a cast does to each element of a tensor, and how backends answer it.

Each element gets *flags*, a bit for each of ``EFFECTS``, one for elements on which backends differ,
and one per backend for answers that are not allowed. They depend on the pattern alone, so patterns
that have keys (``pattern_counts.py``) are looked up in one table, and counted. Sources of up to 16
bits are asked of each backend once, all patterns in one tensor. Wider ones are asked chunk by
chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from conformance.extras.checkpoints.pattern_counts import CountInto, Histogram, folding
from conformance.extras.checkpoints.stored_tensors import StoredTensor
from oracles.protocol import Bits, Mask
from oracles.reference import expect_by_kernels
from oracles.reference.kernels import convert, select_arrays, unpack
from reports.grading.allowed_answers import NOT_ALLOWED, grade_answers, is_nan
from specs.branches import Ruling
from specs.formats import EXHAUSTIVE_BITS
from specs.outcomes import Anything, Nan, Rejected

EFFECTS = (
    "changed",
    "out_of_range",
    "to_zero",
    "to_subnormal",
    "saturated",
    "to_nan",
    "to_infinity",
    "nans",
    "infinities",
    "subnormals",
)
"""What a cast may do to an element, and what an element may be, in the order of the flags' bits."""
DIFFERING = len(EFFECTS)
"""The bit of elements to which backends give different answers."""
BREAKING = DIFFERING + 1
"""The first bit of the backends, for elements to which a backend's answer is not allowed."""
BLOCK = 1 << 15
"""Patterns that are decided together: their words stay in a core's own cache."""

Flags = NDArray[np.uint64]
TensorPlaces = NDArray[np.intp]
AskBackends = Callable[[Bits], list[Bits]]


@dataclass(frozen=True)
class ElementSample:
    """An element with a flag, and how many elements of its tensor have this flag.

    ``key`` is that of the most frequent pattern. If the element itself is known, ``position`` is
    its place in the file's order, ``pattern`` its bits, and ``answers`` are those of the backends.
    """

    count: int
    key: int
    position: int | None = None
    pattern: int = 0
    answers: tuple[int, ...] = ()


@dataclass
class EffectTally:
    """The number of a tensor's elements with each flag, by its bit, and one of them."""

    counts: dict[int, int] = field(default_factory=dict)
    samples: dict[int, ElementSample] = field(default_factory=dict)

    def add_keys(self, flags: Flags, counts: NDArray[np.uint64], keys: NDArray[np.intp]) -> None:
        """Add elements by their keys, of which each occurs ``counts`` times."""
        for bit, has_flag in _masks(flags):
            own = np.where(has_flag, counts, np.uint64(0))
            self.counts[bit] = self.counts.get(bit, 0) + int(own.sum())
            self.samples[bit] = ElementSample(self.counts[bit], int(keys[own.argmax()]))

    def add_chunk(self, flags: Flags, chunk: Bits, first: int, answers: Sequence[Bits]) -> None:
        """Add the elements of a chunk, which begins at position ``first``."""
        for bit, has_flag in _masks(flags):
            self.counts[bit] = self.counts.get(bit, 0) + int(np.count_nonzero(has_flag))
            at = int(has_flag.argmax())
            codes = tuple(int(each[at]) for each in answers)
            found = ElementSample(0, 0, first + at, int(chunk[at]), codes)
            known = self.samples.get(bit, found)
            self.samples[bit] = ElementSample(
                self.counts[bit], 0, known.position, known.pattern, known.answers
            )


def _masks(flags: Flags) -> Iterator[tuple[int, Mask]]:
    """Yield each bit that is set in any of the flags, and a mask of those in which it is."""
    every = int(np.bitwise_or.reduce(flags, initial=0))
    for bit in range(every.bit_length()):
        if every >> bit & 1:
            yield bit, (flags & np.uint64(1 << bit)) != 0


class AllowedAnswers:
    """Computes, by the kernels of the reference, the answers that rulings allow for patterns."""

    def __init__(self, rulings: Sequence[Ruling], patterns: Bits) -> None:
        self._rulings = rulings
        self._expected = [expect_by_kernels.expect(each, patterns) for each in rulings]
        self._usual = self._expected[0].codes.astype(np.int64)
        """The pattern that the first ruling names, or -1 if it names none."""
        for index, branch in enumerate(rulings[0].branches):
            if isinstance(branch.outcome, Nan | Anything | Rejected):
                self._usual[self._expected[0].branch_indices == index] = -1

    def breaks(self, patterns: Bits, where: TensorPlaces, answers: Bits) -> TensorPlaces:
        """Return the indices of the answers that no ruling allows.

        ``where`` has the row of each pattern. One that folding makes another one has that one's.
        """
        # Most answers are the usual pattern, which needs no grading.
        left = np.flatnonzero(answers != self._usual[where])
        for rules, expected in zip(self._rulings, self._expected, strict=True):
            if left.size:
                rows = expected.at(where[left])
                grades = grade_answers(rules, patterns[left], rows, answers[left])
                left = left[grades == NOT_ALLOWED]
        return left


class CastCheck:
    """Checks tensors of one source for one target.

    An answer is allowed if any of ``rulings`` allows it, at least one; all round alike. What
    becomes of elements out of range is known only if there is a single ruling. ``ask`` returns the
    answers of each backend to some patterns, and is None without backends. ``count`` counts keys.
    """

    def __init__(
        self, rulings: Sequence[Ruling], ask: AskBackends | None, count: CountInto
    ) -> None:
        self._ask, self._count = ask, count
        self.rulings = tuple(rulings)
        self.source, self.target = rulings[0].source, rulings[0].target
        self.asks_once = self.source.bits <= EXHAUSTIVE_BITS
        can_fold = not any(each.on_the_way for each in rulings)
        self.fold = folding(self.source, self.target, can_fold)
        if self.fold is not None:
            patterns = self.fold.patterns()
            self._flags = effect_flags(self.rulings, patterns)
            if ask is not None:
                self._allowed = AllowedAnswers(self.rulings, patterns)
            if self.asks_once and ask is not None:
                self._answers = ask(patterns)
                where = np.arange(patterns.size)
                self._flags |= self._compared(self._allowed, patterns, where, self._answers)

    def tally(self, tensor: StoredTensor, on_read: Callable[[int], None]) -> EffectTally:
        """Read a tensor and count its elements by flags.

        ``on_read`` is called with the bytes of each chunk. Raise CastigateError if a backend
        fails, or if the file cannot be read.
        """
        found, first = EffectTally(), 0
        histogram = Histogram(self.fold, self._count) if self.fold is not None else None
        for chunk in tensor.chunks():
            if histogram is not None:
                histogram.add(chunk)
            if histogram is None or (self._ask is not None and not self.asks_once):
                flags, answers = self._flags_of(chunk)
                found.add_chunk(flags, chunk, first, answers)
            first += chunk.size
            on_read(chunk.nbytes)
        if histogram is not None:
            keys, counts = histogram.counts()
            found.add_keys(self._flags[keys], counts, keys)
        return found

    def flags(self, chunk: Bits) -> tuple[Flags, list[Bits]]:
        """Return all flags of a chunk's elements, and the answers of the backends to them."""
        if self.fold is None:
            return self._flags_of(chunk)
        keys = self.fold.keys(chunk).astype(np.intp)
        if self._ask is None or self.asks_once:
            answers = [] if self._ask is None else [each[keys] for each in self._answers]
            return self._flags[keys], answers
        compared, answers = self._flags_of(chunk)
        return self._flags[keys] | compared, answers

    def located(self, tensor: StoredTensor, keys: Sequence[int]) -> dict[int, tuple[int, int]]:
        """Return by key the position and the pattern of its first element in a tensor."""
        assert self.fold is not None
        found: dict[int, tuple[int, int]] = {}
        wanted, first = {*keys}, 0
        for chunk in tensor.chunks():
            of_chunk = self.fold.keys(chunk)
            for key in [*wanted]:
                is_here = of_chunk == key
                at = int(is_here.argmax())
                if is_here[at]:
                    found[key] = first + at, int(chunk[at])
                    wanted.remove(key)
            if not wanted:
                break
            first += chunk.size
        return found

    def answers(self, pattern: int) -> tuple[int, ...]:
        """Return the answer of each backend to one pattern."""
        if self._ask is None:
            return ()
        if self.asks_once:
            return tuple(int(each[pattern]) for each in self._answers)
        row = np.array([pattern], self.source.storage)
        return tuple(int(each[0]) for each in self._ask(row))

    def _flags_of(self, chunk: Bits) -> tuple[Flags, list[Bits]]:
        """Return the flags of a chunk's elements, and the answers of the backends to them.

        Where a histogram counts the effects, the flags have only what backends answer.
        """
        if self.fold is None:
            flags = effect_flags(self.rulings, chunk)
            allowed, where = AllowedAnswers(self.rulings, chunk), np.arange(chunk.size)
        else:
            flags = np.zeros(chunk.size, np.uint64)
            allowed, where = self._allowed, self.fold.keys(chunk).astype(np.intp)
        if self._ask is None:
            return flags, []
        answers = self._ask(chunk)
        return flags | self._compared(allowed, chunk, where, answers), answers

    def _compared(
        self, allowed: AllowedAnswers, patterns: Bits, where: TensorPlaces, answers: Sequence[Bits]
    ) -> Flags:
        """Return flags for patterns on which backends differ, and on which each breaks the rules.

        Any NaN equals any NaN. ``where`` has the row of ``allowed`` for each pattern.
        """
        flags = np.zeros(patterns.size, np.uint64)
        first, first_breaks = answers[0], allowed.breaks(patterns, where, answers[0])
        for place, each in enumerate(answers):
            breaks, differs = first_breaks, each != first
            if differs.any():
                breaks = allowed.breaks(patterns, where, each)
                differs &= ~(is_nan(self.target, each) & is_nan(self.target, first))
                flags[differs] |= np.uint64(1 << DIFFERING)
            flags[breaks] |= np.uint64(1 << (BREAKING + place))
        return flags


def effect_flags(rulings: Sequence[Ruling], patterns: Bits) -> Flags:
    """Return the flags of what a cast does to each pattern, by the kernels of the reference."""
    starts = range(0, max(patterns.size, 1), BLOCK)
    return np.concatenate([_effects_of_block(rulings, patterns[at : at + BLOCK]) for at in starts])


def _effects_of_block(rulings: Sequence[Ruling], patterns: Bits) -> Flags:
    rules = rulings[0]
    source, target = rules.source, rules.target
    parts = unpack(source, patterns.astype(np.uint64), select_arrays)
    cast = convert(target, rules.rounding, parts, select_arrays)
    finite = ~(parts.nan | parts.infinity | parts.zero)
    out_of_range = (finite & cast.overflow) | (parts.infinity & (not target.entry.infinity))
    inside = finite & ~cast.overflow
    magnitude = cast.code & np.uint64(target.mask ^ target.sign_bit)
    is_subnormal = (magnitude > 0) & (magnitude < 1 << target.entry.mantissa) & target.has_zero
    effects = {
        "changed": out_of_range
        | (inside & cast.inexact)
        | (parts.zero & (not target.has_zero))
        | (parts.nan & (not target.nan_codes)),
        "out_of_range": out_of_range,
        "to_zero": inside & (magnitude == 0) & target.has_zero,
        "to_subnormal": inside & is_subnormal & ~parts.subnormal,
        "nans": parts.nan,
        "infinities": parts.infinity,
        "subnormals": parts.subnormal,
    }
    if len(rulings) == 1:
        expected = expect_by_kernels.expect(rules, patterns)
        outcomes = [each.outcome for each in rules.branches]
        is_nan_outcome = np.array([isinstance(each, Nan) for each in outcomes])
        is_open = np.array([isinstance(each, Anything) for each in outcomes])
        branches = expected.branch_indices
        one = (expected.codes == expected.others) & ~is_open[branches] & ~is_nan_outcome[branches]
        code = expected.codes & (target.mask ^ target.sign_bit)
        becomes = partial(np.logical_and, out_of_range)
        effects |= {
            "saturated": becomes(one & (code == target.max_code)),
            "to_nan": becomes(is_nan_outcome[branches]),
            "to_infinity": becomes(one & (code == target.infinity_code) & target.entry.infinity),
        }
    flags = np.zeros(patterns.size, np.uint64)
    for bit, name in enumerate(EFFECTS):
        if name in effects:
            flags |= effects[name].astype(np.uint64) << np.uint64(bit)
    return flags
