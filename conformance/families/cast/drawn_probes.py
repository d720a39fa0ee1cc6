"""Lets Hypothesis draw tensors, and shrink the first one in which something is wrong.

Hypothesis calls a check for each example, and a judge yields what it asks. So Hypothesis runs in a
thread of its own, whose checks hand their requests to the judge and wait for the replies.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue
from typing import TypeVar

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky, HypothesisSideeffectWarning

from conformance.families.cast.baseline import Baseline
from conformance.judging.asking import Ask, Requests
from conformance.judging.probe import Probe
from oracles.backend.replies import Reply
from specs.cases import Shape

STEPS = (1, 2, 3, -1, -2, 0)
LONGEST = 80
MOST_OFFSET = 15
EXAMPLES = 10
FEW_EXAMPLES = 4
Drawn = TypeVar("Drawn")

ANY_STEP = st.sampled_from(STEPS)
ANY_OFFSET = st.integers(0, MOST_OFFSET)
ANY_SHAPE = st.tuples(st.integers(1, LONGEST)) | st.lists(st.integers(1, 9), max_size=4).map(tuple)


class FoundError(Exception):
    """Something is wrong in a tensor; Hypothesis shrinks to the smallest."""


class AbandonedError(BaseException):
    """The judge was closed while Hypothesis waited for a reply."""


def find_smallest(
    rows: Sequence[Baseline],
    shapes: Sequence[Shape],
    is_laid: bool,
    number: int,
    is_wrong: Callable[[Baseline, Probe], Ask[bool]],
) -> Ask[None]:
    """Look for a tensor in which something is wrong, and then for smaller ones.

    ``is_wrong`` records what it finds. If it raises an error, that of the smallest tensor is
    raised.
    """
    drawn = st.one_of(
        [st.tuples(st.just(row), any_probe(row.inputs.size, shapes, is_laid)) for row in rows]
    )
    examples = FEW_EXAMPLES if shapes else EXAMPLES

    def search(answer: Callable[[Ask[bool]], bool]) -> None:
        def check(one: tuple[Baseline, Probe]) -> None:
            if answer(is_wrong(*one)):
                raise FoundError

        check_examples(check, drawn, number, examples)

    # What is found is recorded, and so are the smaller ones that were tried.
    with suppress(FoundError, Flaky):
        yield from inverted(search)


def inverted(search: Callable[[Callable[[Ask[bool]], bool]], None]) -> Ask[None]:
    """Run ``search`` in a thread as part of a judge, which yields the requests of its questions."""
    asked: SimpleQueue[Requests | None] = SimpleQueue()
    answered: SimpleQueue[Sequence[Reply] | None] = SimpleQueue()

    def answer(question: Ask[bool]) -> bool:
        try:
            requests = next(question)
            while True:
                asked.put(requests)
                if (replies := answered.get()) is None:
                    raise AbandonedError
                requests = question.send(replies)
        except StopIteration as done:
            return bool(done.value)

    with ThreadPoolExecutor(1) as thread:
        done = thread.submit(search, answer)
        done.add_done_callback(lambda _: asked.put(None))
        try:
            while (requests := asked.get()) is not None:
                answered.put((yield requests))
        except GeneratorExit:
            answered.put(None)
            raise
        done.result()


@st.composite
def any_probe(draw: st.DrawFn, count: int, shapes: Sequence[Shape], is_laid: bool) -> Probe:
    """Draw a tensor of ``count`` inputs, in one of the shapes or in any, and its layout."""
    shape = draw(st.sampled_from(shapes) if shapes else ANY_SHAPE)
    first = draw(st.integers(0, count - 1))
    if not is_laid:
        return Probe(shape, first)
    steps = tuple(draw(ANY_STEP) for _ in shape)
    order = tuple(range(len(shape)))
    turned = draw(st.booleans()) and len(shape) > 1
    return Probe(
        shape, first, steps=steps, offset=draw(ANY_OFFSET), order=order[::-1] if turned else ()
    )


def check_examples(
    check: Callable[[Drawn], None], strategy: st.SearchStrategy[Drawn], number: int, examples: int
) -> None:
    """Check examples drawn from a seed; raise the error of the smallest one that fails."""
    profile = settings(
        max_examples=examples,
        derandomize=False,  # The seed decides, whatever profile the tests of a project load.
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        verbosity=Verbosity.quiet,
    )

    def example(drawn: Drawn) -> None:
        check(drawn)

    with warnings.catch_warnings():
        # A worker that was forked off a pytest which is still loading plugins seems to Hypothesis
        # to load them itself, and it warns of slow work meanwhile.
        warnings.simplefilter("ignore", HypothesisSideeffectWarning)
        seed(number)(profile(given(strategy)(example)))()
