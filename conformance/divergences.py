"""Which answers leave what is allowed, gathered per rule, with runs and the smallest input."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.accept import allowed_words
from oracles.protocol import Bits
from oracles.reference import by_exact
from oracles.reference.expected import Expected
from reports.judgement import Datum, Divergence, Run
from specs.formats import Format
from specs.ruling import Ruling

KEPT_RUNS = 20
"""Runs that are kept of one divergence; all inputs are counted."""


def divergences(
    rules: Ruling, inputs: Bits, expected: Expected, answer: Bits, broken: NDArray[np.uint8]
) -> Iterator[tuple[Divergence, int]]:
    """One divergence per rule and level, the worst first, each with its smallest input's place."""
    grouped: dict[tuple[str, str, str], NDArray[np.bool_]] = {}
    for place, branch in enumerate(rules.branches):
        grades: tuple[tuple[int, str], ...] = ((2, branch.level), (1, "recommended"))
        for grade, level in grades:
            here = (broken == grade) & (expected.places == place)
            if here.any():
                key = (branch.rule, branch.clause, level)
                grouped[key] = grouped.get(key, np.zeros(here.shape, bool)) | here
    for (rule, clause, level), here in sorted(
        grouped.items(), key=lambda item: (item[0][2] != "required", item[0])
    ):
        where = np.flatnonzero(here)
        worst = min(where.tolist(), key=lambda index: simplicity(rules.source, inputs[index]))
        smallest = datum_of(inputs[worst])
        divergence = Divergence(
            rule,
            clause,
            level,
            where.size,
            tuple(_runs(inputs, where)),
            smallest,
            datum_of(answer[worst]),
            allowed_words(rules, by_exact.allow(rules, smallest), smallest),
        )
        yield divergence, worst


def simplicity(source: Format, given: Any) -> tuple[int, int, int]:
    """What makes an input small: few set bits, then small magnitude; for texts their length."""
    if isinstance(given, str):
        return len(given), 0, 0
    code = datum_of(given)
    assert isinstance(code, int)
    magnitude = code & ~source.sign_bit
    if source.kind == "integer" and magnitude != code:
        magnitude = source.mask + 1 - code
    return code.bit_count(), magnitude, code


def _runs(inputs: Bits, where: NDArray[np.intp]) -> Iterator[Run]:
    breaks = np.flatnonzero(np.diff(where) > 1)
    starts = np.concatenate([[0], breaks + 1])[:KEPT_RUNS]
    ends = np.concatenate([breaks, [where.size - 1]])[:KEPT_RUNS]
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        yield Run(datum_of(inputs[where[start]]), datum_of(inputs[where[end]]), end - start + 1)


def datum_of(given: Any) -> Datum:
    """An element of an array of inputs or answers as a plain pattern or text."""
    if isinstance(given, str):
        return given
    return int.from_bytes(given.tobytes(), "little")
