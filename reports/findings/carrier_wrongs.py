"""Rows (``Wrong``) for operations that should carry values and compute in another dtype."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from reports.behaviors.regions import evaluate
from reports.findings.bit_arithmetic import nearest
from reports.findings.wrong import CaseFormats, GivenAnswers, RowAnswers, Wrong, computing
from specs.behaviors import behaviors
from specs.cases import CARRIER
from specs.formats import format_named

COMPUTED_IN = ("float32", "float64", "float16", "bfloat16")


@cache
def _computed_in(dtype: str) -> Wrong:
    """Return the row for backends that convert integers to a float, compute, and convert back."""

    @computing(f"through-{dtype}", f"computes in {dtype}")
    def row(given: GivenAnswers) -> RowAnswers:
        between = format_named(dtype)
        floats = nearest(given.source, between, given.inputs)
        return RowAnswers(*evaluate(behaviors()["saturate"], between, given.target, floats))

    return row


def integers_through_floats(asked: CaseFormats) -> Iterator[Wrong]:
    """Yield the rows of integers that are carried through floats; for other cases there are none.

    Documents of carriers need not list the conversion back, so no row that follows rules has it.
    """
    if CARRIER in asked.case.mode and asked.source.is_integral and asked.target.is_integral:
        yield from map(_computed_in, COMPUTED_IN)
