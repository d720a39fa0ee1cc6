"""Names the step of an operation in findings: the same mistake in a load and a store are two."""

from __future__ import annotations

from collections.abc import Sequence

from reports.findings.cells import Cell
from reports.problem_words import bias_words, listed
from reports.problems import FaultyStep
from specs.cases import CARRIER


def step_of(cell: Cell) -> FaultyStep | None:
    """Return the step at fault in a case that carries values; None in any other case."""
    return next((each for each in cell.problems if isinstance(each, FaultyStep)), None)


def name_in_step(mechanism: str, step: FaultyStep | None) -> str:
    """Return the name of a finding: that of the mechanism, and of the step if it is known."""
    if step is None or not step.step:
        return mechanism
    return f"{mechanism}-in-{step.step.replace(' ', '-')}"


def where_words(cells: Sequence[Cell]) -> str:
    """Say in which step of which carriers cases go wrong, and how far they are off on average.

    Empty if no case carries values.
    """
    found = [(cell, step) for cell in cells if (step := step_of(cell)) is not None]
    if not found:
        return ""
    carriers = listed([*dict.fromkeys(cell.as_case.mode[CARRIER] for cell, _ in found)])
    steps = [step for _, step in found]
    where = f", in the {steps[0].step} of {carriers}" if steps[0].step else f", in {carriers}"
    worst = max(steps, key=lambda each: (abs(each.bias), each.inputs))
    return "; ".join(filter(None, (where, bias_words(worst))))
