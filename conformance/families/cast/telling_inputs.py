"""The few inputs of a case whose answers tell most: with these, tensors of all kinds are filled."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from oracles.protocol import Bits
from oracles.reference.breakpoints import breakpoints, ties, ties_after
from oracles.reference.expectations import Expected
from specs.branches import Ruling
from specs.formats import Format

MOST = 40
LEAST_OF_A_RULE = 3
LONGEST_TEXT = 400
PAIRS_KEPT = 1 << 10
TARGET_STEPS = 5
"""Number of target values after which the tie is chosen as an input."""
PARITIES = (0, 1)
FARTHER = 8
"""About how many target values are tried for ties after an even and the next odd value."""


def telling_inputs(rules: Ruling, inputs: Bits, expected: Expected) -> NDArray[np.intp]:
    """Return the indices of up to ``MOST`` inputs: NaNs, ties, ends, and some of each branch.

    There must be ``inputs``, and numbers in rising order. How many there are of each does not
    depend on the seed from which they were drawn. Texts longer than ``LONGEST_TEXT`` are left out.
    """
    branch_indices = expected.branch_indices
    if rules.source.kind == "text":
        # numpy gives each text of an array as much room as its longest one takes.
        told = np.array([len(text) <= LONGEST_TEXT for text in inputs])
        branch_indices = np.where(told, branch_indices, len(rules.branches))
    found_at = (np.flatnonzero(branch_indices == at) for at in range(len(rules.branches)))
    branches = [members for members in found_at if members.size]
    found = {index: None for members in branches for index in _spread(members, LEAST_OF_A_RULE)}
    if rules.source.is_numeric and not rules.worked:
        codes = _telling_codes(rules.source, rules.target)
        indices = np.searchsorted(inputs, codes).clip(max=inputs.size - 1)
        found.update(dict.fromkeys(indices[inputs[indices] == codes].tolist()))
    share = max(LEAST_OF_A_RULE, (MOST - len(found)) // len(branches))
    found.update({index: None for members in branches for index in _spread(members, share)})
    return np.array(sorted([*found][:MOST]), np.intp)


def _spread(members: NDArray[np.intp], most: int) -> list[int]:
    """Return up to ``most`` of the members, evenly spread, with the first and the last."""
    places = np.linspace(0, members.size - 1, min(most, members.size)).astype(np.intp)
    spread: list[int] = members[places].tolist()
    return spread


@lru_cache(PAIRS_KEPT)
def _telling_codes(source: Format, target: Format) -> Bits:
    """Return the patterns of the source's NaNs, ties, the ends of both formats' ranges, and one."""
    telling = [*_nans(source), *_ties(source, target), *_ends(source), source.one_code]
    telling += _ends_of_answers(source, target)
    return np.array(telling, source.storage)


def _nans(source: Format) -> Iterator[int]:
    """Yield the first, the middle and the last NaN of each sign; the middle one is quiet."""
    for codes in source.nan_codes:
        yield from (codes[0], codes[len(codes) // 2], codes[-1])


def _ties(source: Format, target: Format) -> list[int]:
    """Return ties over the target's range and after an even and an odd value, some also negated.

    Only a float's are negated. Ties after an even and an odd value are rounded in opposite ways.
    """
    if not target.is_numeric:
        return []
    spread = [target.max_code * step // (TARGET_STEPS - 1) for step in range(TARGET_STEPS)]
    found = ties(source, target, spread).tolist()
    of_both = [*found[:1], *_ties_of_both_parities(source, target)]
    negative = [code | source.sign_bit for code in of_both] if source.kind == "float" else []
    return [*found, *of_both, *(negative if source.is_signed else [])]


def _ties_of_both_parities(source: Format, target: Format) -> list[int]:
    """Return the ties after an even value and the next odd one, near one or two or else farther on.

    The list is empty if there are none.
    """
    even = target.one_code & ~1 if target.kind == "float" else 2
    step = max(2, (target.max_code - even) // FARTHER & ~1)
    codes = np.arange(even, target.max_code - 1, step, dtype=np.uint64)
    both = [ties_after(source, target, codes + np.uint64(each)) for each in PARITIES]
    first, second = (patterns.tolist() for patterns, _ in both)
    (_, has_first), (_, has_second) = both
    found = np.flatnonzero(has_first & has_second)
    return [first[found[0]], second[found[0]]] if found.size else []


def _ends_of_answers(source: Format, target: Format) -> list[int]:
    """Return inputs at which answers become the smallest and the largest, and those just beyond.

    Of the largest ones both signs, because a backend may treat overflow of one sign otherwise.
    """
    if not target.is_numeric:
        return []
    near = breakpoints(source, target, [1, target.max_code]).tolist()
    found = [code for code in near if 1 < code < source.max_code]
    ends = [*found[1::3], *found[2::3]]
    largest = sorted(ends)[-2:] if source.kind == "float" and source.is_signed else []
    return [*ends, *(code | source.sign_bit for code in largest)]


def _ends(source: Format) -> Iterator[int]:
    """Yield zero, the smallest and largest value of each sign, and the largest subnormals."""
    ends = [0, 1, source.max_code]
    if source.kind == "float" and source.entry.mantissa:
        ends.append((1 << source.entry.mantissa) - 1)
    for code in ends:
        yield code
        if source.kind == "float" and source.is_signed:
            yield code | source.sign_bit
    if source.is_integral:
        yield source.lowest_code
