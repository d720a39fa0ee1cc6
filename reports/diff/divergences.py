"""Which answers leave what is allowed, gathered per rule, with runs and the smallest input."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracles.protocol import Bits
from oracles.reference import expect_by_exact
from oracles.reference.expectations import Expected
from reports.diff.allowed_answers import allowed_words
from reports.diff.failure_runs import gather
from reports.diff.judgement import Datum, Divergence
from specs.formats import Format
from specs.ruling import Ruling


def divergences(
    rules: Ruling, inputs: Bits, expected: Expected, answer: Bits, broken: NDArray[np.uint8]
) -> Iterator[tuple[Divergence, int]]:
    """One divergence per rule and level, the worst first, each with its smallest input's place."""
    keys: list[tuple[str, str, str]] = []
    groups = np.zeros(broken.shape, np.uint8)
    for place, branch in enumerate(rules.branches):
        grades: tuple[tuple[int, str], ...] = ((2, branch.level), (1, "recommended"))
        for grade, level in grades:
            here = (broken == grade) & (expected.places == place)
            if here.any():
                key = (branch.rule, branch.clause, level)
                if key not in keys:
                    keys.append(key)
                groups[here] = keys.index(key) + 1
    runs = dict(gather(inputs, answer, groups))
    for key in sorted(keys, key=lambda key: (key[2] != "required", key)):
        group = keys.index(key) + 1
        here = groups == group
        worst = simplest(rules.source, inputs, here)
        smallest = datum_of(inputs[worst])
        divergence = Divergence(
            *key,
            int(np.count_nonzero(here)),
            runs[group],
            smallest,
            datum_of(answer[worst]),
            allowed_words(rules, expect_by_exact.allow(rules, smallest), smallest, key[2]),
        )
        yield divergence, worst


def simplicity(source: Format, given: Any) -> tuple[int, int, int]:
    """What makes an input small: few set bits, then a small magnitude; for texts their length."""
    if isinstance(given, str):
        return len(given), 0, 0
    code = datum_of(given)
    assert isinstance(code, int)
    return code.bit_count(), code if source.is_integral else code & ~source.sign_bit, code


def simplest(source: Format, inputs: Bits, here: NDArray[np.bool_]) -> int:
    """The place of the smallest of some inputs."""
    if inputs.dtype.kind == "u":
        bits = np.where(here, np.bitwise_count(inputs), np.uint8(255))
        here = bits == bits.min()
    few: list[int] = np.flatnonzero(here).tolist()
    return min(few, key=lambda place: simplicity(source, inputs[place]))


def simplest_between(source: Format, first: int, last: int) -> int:
    """The smallest of all patterns from ``first`` to ``last``.

    Where another pattern first differs from it, that has a one, and zeros after it are simpler.
    """
    rounded = (((first >> place) + 1) << place for place in range(source.bits))
    candidates = [first, *(code for code in rounded if code <= last)]
    return min(candidates, key=lambda code: simplicity(source, code))


def datum_of(given: Any) -> Datum:
    """An element of an array of inputs or answers as a plain pattern or text."""
    if isinstance(given, str | int):
        return given
    return int.from_bytes(given.tobytes(), "little")
