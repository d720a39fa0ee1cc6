"""Hypothesis draws tensors, their shapes, layouts and inputs, and shrinks them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st

from conformance.probes import Probe

STEPS = (1, 2, 3, -1, -2, 0)
LONGEST = 80
MOST_OFFSET = 15
Drawn = TypeVar("Drawn")
Shape = tuple[int, ...]

ROWS = st.integers(1, LONGEST).map(lambda length: (length,))
TENSORS = st.lists(st.integers(1, 9), max_size=4).map(tuple)


def any_probe(count: int, shapes: Sequence[Shape], is_laid: bool) -> st.SearchStrategy[Probe]:
    """Tensors of so many inputs, in given shapes or in any, and laid in memory if they can be."""
    shape = st.sampled_from(shapes) if shapes else ROWS | TENSORS

    @st.composite
    def draw_probe(draw: st.DrawFn) -> Probe:
        drawn, first = draw(shape), draw(st.integers(0, count - 1))
        if not is_laid:
            return Probe(drawn, first)
        return Probe(
            drawn,
            first,
            steps=tuple(draw(st.sampled_from(STEPS)) for _ in drawn),
            offset=draw(st.integers(0, MOST_OFFSET)),
            columns=draw(st.booleans()),
        )

    return draw_probe()


def drive(
    check: Callable[[Drawn], None], strategy: st.SearchStrategy[Drawn], number: int, examples: int
) -> None:
    """Check examples that follow from a number; raise what the smallest that fails raises."""
    profile = settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        verbosity=Verbosity.quiet,
    )

    def example(drawn: Drawn) -> None:
        check(drawn)

    seed(number)(profile(given(strategy)(example)))()
