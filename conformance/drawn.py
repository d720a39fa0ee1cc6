"""Hypothesis draws tensors, their shapes, layouts and inputs, and shrinks them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st

from conformance.probes import Probe
from conformance.shape_choice import Shape

STEPS = (1, 2, 3, -1, -2, 0)
LONGEST = 80
MOST_OFFSET = 15
Drawn = TypeVar("Drawn")

ANY_STEP = st.sampled_from(STEPS)
ANY_OFFSET = st.integers(0, MOST_OFFSET)
ANY_SHAPE = st.tuples(st.integers(1, LONGEST)) | st.lists(st.integers(1, 9), max_size=4).map(tuple)


@st.composite
def any_probe(draw: st.DrawFn, count: int, shapes: Sequence[Shape], is_laid: bool) -> Probe:
    """A tensor of so many inputs, in a given shape or in any, and laid in memory if it can be."""
    shape = draw(st.sampled_from(shapes) if shapes else ANY_SHAPE)
    first = draw(st.integers(0, count - 1))
    if not is_laid:
        return Probe(shape, first)
    steps = tuple(draw(ANY_STEP) for _ in shape)
    offset, columns = draw(ANY_OFFSET), draw(st.booleans())
    return Probe(shape, first, steps=steps, offset=offset, columns=columns)


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
