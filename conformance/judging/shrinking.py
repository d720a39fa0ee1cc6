"""Makes a tensor in which something is wrong smaller, one axis after another.

Each simpler tensor differs from the last wrong one in one axis: plain instead of drawn contents, no
offset, no gap, a step of 1, the usual order in memory, a dimension less, or a shorter one. What is
left when none of them is wrong any more are the axes that matter, and so what a finding names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import prod

from conformance.judging.asking import Ask
from conformance.judging.probe import Probe

ROUNDS = 40
"""The most times that a tensor becomes smaller; a dimension of 2^17 is halved 17 times."""


def shrunk(
    probes: Sequence[Probe], wrong_ones: Callable[[Sequence[Probe]], Ask[list[Probe]]]
) -> Ask[Probe | None]:
    """Return the simplest wrong probe that is reached from ``probes``; None if all are right now.

    ``wrong_ones`` asks probes and returns those in which something is wrong. A tensor that is right
    when it is asked again was wrong by what came before it.
    """
    wrong = yield from wrong_ones(probes)
    if not wrong:
        return None
    probe = min(wrong, key=_simplicity)
    for _ in range(ROUNDS):
        candidates = [each for each in simpler(probe) if each.simplicity < probe.simplicity]
        wrong = yield from wrong_ones(candidates)
        if not wrong:
            break
        probe = min(wrong, key=_simplicity)
    return probe


def _simplicity(probe: Probe) -> tuple[object, ...]:
    return probe.simplicity


def simpler(probe: Probe) -> Iterator[Probe]:
    """Yield probes that are simpler than one along a single axis."""
    yield replace(probe, contents="in order", shuffling=0)
    yield replace(probe, contents="one", shuffling=0)
    yield replace(probe, offset=0)
    yield replace(probe, offset=1)
    yield replace(probe, gap=0)
    yield replace(probe, order=())
    yield replace(probe, steps=())
    for place, step in enumerate(probe.effective_steps):
        for plainer in {1, -1 if step < 0 else min(step, 2)} - {step}:
            yield _with_length_or_step(probe, place, step=plainer)
    if len(probe.shape) != 1:
        row = replace(probe, shape=(prod(probe.shape),), order=(), gap=0)
        yield from (replace(row, steps=(step,)) for step in {1, *probe.effective_steps})
    for place, length in enumerate(probe.shape):
        if len(probe.shape) > 1:
            yield _without(probe, place)
        for shorter in sorted({1, length // 2, length - length // 4, length - 1} - {0, length}):
            if shorter < length:
                yield _with_length_or_step(probe, place, length=shorter)


def _with_length_or_step(
    probe: Probe, place: int, length: int | None = None, step: int | None = None
) -> Probe:
    shape, steps = [*probe.shape], [*probe.effective_steps]
    shape[place] = shape[place] if length is None else length
    steps[place] = steps[place] if step is None else step
    return replace(probe, shape=tuple(shape), steps=tuple(steps))


def _without(probe: Probe, place: int) -> Probe:
    """Return a probe that has one dimension less."""
    kept = [at for at in range(len(probe.shape)) if at != place]
    return replace(
        probe,
        shape=tuple(probe.shape[at] for at in kept),
        steps=tuple(probe.effective_steps[at] for at in kept),
        order=tuple(kept.index(at) for at in probe.order if at != place),
    )
