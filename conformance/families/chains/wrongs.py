"""Other paths between the ends of a chain, which an optimizer may have taken.

A path may leave out a step, go through a wider dtype, ignore modes, or reorder the steps. It
explains a chain if it gives every answer that differs from what the steps give alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, groupby, pairwise
from typing import NamedTuple

import numpy as np

from conformance.families.chains.composition import compose_arrays
from oracles.protocol import Bits
from reports.problems import Problem, WrongEnd
from specs.cases import Case
from specs.chains import Chain
from specs.formats import format_named, formats
from specs.pair_conditions import is_exact
from specs.ruling import ruling
from specs.selection import cases_of_pair

DROPS, KEEPS = "drops-", "keeps-"
REPEATED = f"{DROPS}casts-to-the-same-dtype-in-chains"
MODES, ORDER = "loses-modes-in-chains", "reorders-casts"
ON_THE_WAY = "-on-the-way"
KIND_WORDS: Mapping[str, str] = {"float": "a float", "integer": "an integer", "boolean": "bool"}


OTHERWISE = "changes-in-company"
"""Stands for what no path explains."""


class OtherPath(NamedTuple):
    """The name of a finding, and the casts that were made in the place of a chain's."""

    name: str
    steps: Sequence[Case]


def says(name: str) -> str:
    """The sentence of a finding."""
    what = name.removesuffix(ON_THE_WAY).partition("-")[2]
    if name == OTHERWISE:
        return "gives other values for casts in one program than for each of them alone"
    if name == MODES:
        return "casts in the default mode within a chain, whatever the mode of the step"
    if name == REPEATED:
        return "leaves out casts of a chain whose source and target are the same dtype"
    if name == ORDER:
        return "makes the casts of a chain in another order"
    if name.startswith(KEEPS):
        return f"goes through {what} in the middle of a chain, not through the narrower dtype"
    return f"leaves out the cast to {KIND_WORDS[what]} in the middle of a chain"


def followed(case: Case, problem: Problem) -> Sequence[str]:
    """The paths that explain the wrong end of a chain."""
    return (problem.followed or (OTHERWISE,)) if isinstance(problem, WrongEnd) else ()


def followed_paths(
    chain: Chain, inputs: Bits, answers: Bits, direct: Bits | None
) -> tuple[str, ...]:
    """The names of the simplest paths that give these answers to these inputs.

    ``direct`` has the backend's own answers to the direct cast, if there are any. If a path that
    leaves out a step explains all answers, many longer paths do so too; these are not named.
    """

    def gives(steps: Sequence[Case]) -> bool:
        if len(steps) == 1 and direct is not None and np.array_equal(direct, answers):
            return True
        composed = compose_arrays([*map(ruling, steps)], inputs)
        return bool(np.all(composed.allows(answers.astype(np.uint64))))

    for _, paths in groupby(other_paths(chain), lambda path: path.name.partition("-")[0]):
        if found := [name for name, steps in paths if gives(steps)]:
            return tuple(dict.fromkeys(found))
    return ()


def other_paths(chain: Chain) -> Iterator[OtherPath]:
    """The other paths between a chain's ends, those that leave something out first."""
    middle = chain.dtypes[1:-1]
    for count in range(len(middle)):
        for kept in combinations(range(len(middle)), count):
            steps = _steps(chain, [middle[place] for place in kept])
            dropped = next(place for place in range(len(middle)) if place not in kept)
            kind = format_named(middle[dropped]).kind
            if steps is not None:
                yield OtherPath(f"{DROPS}{kind}{ON_THE_WAY}", steps)
    changing = [step for step in chain.steps if step.source != step.target]
    if 0 < len(changing) < len(chain.steps):
        yield OtherPath(REPEATED, changing)
    defaults = [
        cases_of_pair(*_edition(chain), each.source, each.target)[0] for each in chain.steps
    ]
    if tuple(defaults) != chain.steps:
        yield OtherPath(MODES, defaults)
    for wider in formats().values():
        narrow = format_named(middle[0])
        is_wider = wider.kind == narrow.kind == "float" and wider != narrow
        if is_wider and is_exact(narrow, wider) and wider.name not in (chain.source, chain.target):
            steps = _steps(chain, [wider.name, *middle[1:]])
            if steps is not None:
                yield OtherPath(f"{KEEPS}{wider.name}{ON_THE_WAY}", steps)
    steps = _steps(chain, [chain.target, *middle])
    if steps is not None:
        yield OtherPath(ORDER, steps)


def _edition(chain: Chain) -> tuple[str, str]:
    return chain.steps[0].document, chain.steps[0].version


def _steps(chain: Chain, middle: Sequence[str]) -> list[Case] | None:
    """The casts along other dtypes, in the chain's modes where they have these; None if refused."""
    modes = {step.target: set(step.modes) for step in chain.steps}
    path = [chain.source, *middle, chain.target]
    found: list[Case] = []
    for source, target in pairwise(path):
        listed = cases_of_pair(*_edition(chain), source, target)
        if not listed or ruling(listed[0]).is_rejection:
            return None
        own = modes.get(target, set())
        shared = [len(own & {*case.modes}) for case in listed]
        found.append(listed[shared.index(max(shared))])
    return found
