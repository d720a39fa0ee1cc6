"""Groups the answers that are not allowed by rule, each group with its runs and smallest input."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracles.protocol import Bits
from oracles.reference import expect_by_exact
from oracles.reference.expectations import Expected
from reports.diff.allowed_answers import NOT_ALLOWED, NOT_RECOMMENDED, describe_allowed
from reports.diff.failure_runs import gather
from reports.diff.judgement import Datum, Divergence
from specs.formats import Format
from specs.ruling import Ruling


def find_divergences(
    rules: Ruling, inputs: Bits, expected: Expected, answers: Bits, grades: NDArray[np.uint8]
) -> Iterator[tuple[Divergence, int]]:
    """One divergence per rule and level, required ones first, and the index of its smallest input.

    ``grades`` are those that ``grade_answers`` gives. Branches of one rule share a divergence.
    """
    keys: list[tuple[str, str, str]] = []
    groups = np.zeros(grades.shape, np.uint8)
    for index, branch in enumerate(rules.branches):
        level_of_grade: dict[int, str] = {
            NOT_ALLOWED: branch.level,
            NOT_RECOMMENDED: "recommended",
        }
        for grade, level in level_of_grade.items():
            here = (grades == grade) & (expected.places == index)
            if here.any():
                key = (branch.rule, branch.clause, level)
                if key not in keys:
                    keys.append(key)
                groups[here] = keys.index(key) + 1
    runs = dict(gather(inputs, answers, groups))
    for key in sorted(keys, key=lambda key: (key[2] != "required", key)):
        group = keys.index(key) + 1
        here = groups == group
        at = index_of_simplest(rules.source, inputs, here)
        smallest = datum_of(inputs[at])
        divergence = Divergence(
            *key,
            int(np.count_nonzero(here)),
            runs[group],
            smallest,
            datum_of(answers[at]),
            describe_allowed(rules, expect_by_exact.allow(rules, smallest), smallest, key[2]),
        )
        yield divergence, at


def simplicity(source: Format, datum: Any) -> tuple[int, int, int]:
    """The key that sorts inputs: few set bits, then a small magnitude; texts by their length."""
    if isinstance(datum, str):
        return len(datum), 0, 0
    code = datum_of(datum)
    assert isinstance(code, int)
    return code.bit_count(), code if source.is_integral else code & ~source.sign_bit, code


def index_of_simplest(source: Format, inputs: Bits, among: NDArray[np.bool_]) -> int:
    """The index of the simplest of the inputs that the mask ``among`` selects."""
    if inputs.dtype.kind == "u":
        # Few inputs have the fewest bits: only for these is the whole key computed.
        bits = np.where(among, np.bitwise_count(inputs), np.uint8(255))
        among = bits == bits.min()
    candidates: list[int] = np.flatnonzero(among).tolist()
    return min(candidates, key=lambda index: simplicity(source, inputs[index]))


def simplest_between(source: Format, first: int, last: int) -> int:
    """The simplest of all patterns from ``first`` to ``last``.

    A pattern above ``first`` has a one at the highest bit where the two differ. It is simplest if
    only zeros follow, so that one candidate per bit is enough.
    """
    rounded_up = (((first >> bit) + 1) << bit for bit in range(source.bits))
    candidates = [first, *(code for code in rounded_up if code <= last)]
    return min(candidates, key=lambda code: simplicity(source, code))


def datum_of(element: Any) -> Datum:
    """An element of an array of inputs or answers, as a plain pattern or text."""
    if isinstance(element, str | int):
        return element
    return int.from_bytes(element.tobytes(), "little")
