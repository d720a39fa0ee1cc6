"""Rows for the ways in which an optimizer may change the casts between the ends of a chain.

A row leaves out a step, goes through a wider dtype, ignores modes, or reorders the steps. It
explains a chain if it gives every answer that differs from what the steps give alone. So does a
behavior that one of the steps may have only within the chain, such as to clamp. Rows that give the
other answers, too, come first: they need no condition under which the optimizer does it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, groupby, pairwise
from typing import NamedTuple

import numpy as np

from conformance.families.chains.composition import compose_arrays
from oracles.protocol import Bits, Mask
from reports.behaviors.regions import applies_to, evaluate
from reports.findings.wrong import is_same, right
from reports.problems import Problem, WrongEnd
from specs.behaviors import behaviors
from specs.cases import Case
from specs.chains import Chain
from specs.formats import format_named, formats, is_exact
from specs.ruling import ruling
from specs.selection import cases_of_pair

KIND_WORDS: Mapping[str, str] = {"float": "a float", "integer": "an integer", "boolean": "bool"}
MadeCasts = Iterator[tuple[str, Sequence[Case] | None]]
"""Yields pairs of what the row is about, and the casts that are made in the place of a chain's.

A row is about a kind of dtypes, a dtype, or nothing, which is empty. None stands for casts that the
document lacks or refuses.
"""


class Wrong(NamedTuple):
    """A row: the name of its finding, its sentence, and the casts that it makes of a chain.

    Braces in name and sentence stand for what the row is about. ``rank`` orders rows from the
    simplest on: only rows of the first rank that explains the answers are named.
    """

    rank: int
    name: str
    says: str
    makes: Callable[[Chain], MadeCasts]


def _without_steps(chain: Chain) -> MadeCasts:
    middle = chain.dtypes[1:-1]
    for count in range(len(middle)):
        for kept in combinations(range(len(middle)), count):
            dropped = next(place for place in range(len(middle)) if place not in kept)
            yield (
                format_named(middle[dropped]).kind,
                _steps(chain, [middle[place] for place in kept]),
            )


def _without_repeated(chain: Chain) -> MadeCasts:
    changing = [step for step in chain.steps if step.source != step.target]
    if 0 < len(changing) < len(chain.steps):
        yield "", changing


def _in_default_modes(chain: Chain) -> MadeCasts:
    pairs = ((each.source, each.target) for each in chain.steps)
    defaults = [cases_of_pair(*_edition(chain), *pair)[0] for pair in pairs]
    if tuple(defaults) != chain.steps:
        yield "", defaults


def _in_one_default_mode(chain: Chain) -> MadeCasts:
    for lost in dict.fromkeys(name for step in chain.steps for name in step.mode):
        steps = [_in_default(lost, step) for step in chain.steps]
        if tuple(steps) != chain.steps:
            yield lost, None if None in steps else [each for each in steps if each is not None]


def _in_default(name: str, step: Case) -> Case | None:
    """Return the step with its default in the mode ``name``; None if the document lacks that."""
    listed = cases_of_pair(step.document, step.version, step.source, step.target)
    wanted = step.mode | {key: each for key, each in listed[0].modes if key == name}
    return next((case for case in listed if case.mode == wanted), None)


def _through_wider(chain: Chain) -> MadeCasts:
    first, *others = chain.dtypes[1:-1]
    narrow = format_named(first)
    for wider in formats().values():
        is_wider = wider.kind == narrow.kind == "float" and wider != narrow
        if is_wider and is_exact(narrow, wider) and wider.name not in (chain.source, chain.target):
            yield wider.name, _steps(chain, [wider.name, *others])


def _reordered(chain: Chain) -> MadeCasts:
    yield "", _steps(chain, [chain.target, *chain.dtypes[1:-1]])


def _nothing(chain: Chain) -> MadeCasts:
    yield from ()


OTHERWISE = "changes-in-company"
WITHIN = "within-chains-"
"""The names of findings begin so where one step has a behavior only within a chain."""
KEEPS_SIGNS = "keeps-signs-of-zeros-in-chains"
RANK_WITHIN = 3
"""The rank of these behaviors, and of ``KEEPS_SIGNS``."""
WRONGS = (
    Wrong(
        0,
        "drops-{}-on-the-way",
        "leaves out the cast to {} in the middle of a chain",
        _without_steps,
    ),
    Wrong(
        0,
        "drops-casts-to-the-same-dtype-in-chains",
        "leaves out casts of a chain whose source and target are the same dtype",
        _without_repeated,
    ),
    Wrong(
        1,
        "loses-mode-{}-in-chains",
        "casts in the default `{}` within a chain, whatever that of the step",
        _in_one_default_mode,
    ),
    Wrong(
        1,
        "loses-modes-in-chains",
        "casts in the default mode within a chain, whatever the mode of the step",
        _in_default_modes,
    ),
    Wrong(
        2,
        "keeps-{}-on-the-way",
        "goes through {} in the middle of a chain, not through the narrower dtype",
        _through_wider,
    ),
    Wrong(
        RANK_WITHIN,
        KEEPS_SIGNS,
        "keeps the sign of what an integer in the middle of a chain makes zero",
        _nothing,
    ),
    Wrong(
        4,
        "reorders-casts",
        "makes the casts of a chain in another order",
        _reordered,
    ),
    Wrong(
        5,
        OTHERWISE,
        "gives other values for casts in one program than for each of them alone",
        _nothing,
    ),
)
"""All rows; the last stands for what no other explains."""


def says(name: str) -> str:
    """Return the sentence of a finding; raise KeyError if no row has its name."""
    if name.startswith(WITHIN):
        return f"{behaviors()[name.removeprefix(WITHIN)].says}, within a chain only"
    for row in WRONGS:
        before, _, after = row.name.partition("{}")
        if name.startswith(before) and name.endswith(after):
            what = name.removeprefix(before).removesuffix(after)
            return row.says.format(KIND_WORDS.get(what, what))
    raise KeyError(name)


def followed(case: Case, problem: Problem) -> Sequence[str]:
    """Return names of rows that explain a wrong end, or ``OTHERWISE``; none for other problems."""
    return (problem.followed or (OTHERWISE,)) if isinstance(problem, WrongEnd) else ()


def followed_paths(
    chain: Chain, inputs: Bits, answers: Bits, direct: Bits | None, moved: Mask
) -> tuple[str, ...]:
    """Return the names of the simplest rows that give all answers, or else those that differ.

    ``moved`` marks the answers that differ from what the steps give alone; the others must be
    allowed. ``direct`` has the backend's own answers to the direct cast, or is None. No name is
    returned if no row gives the answers that differ.
    """
    names: tuple[str, ...] = ()
    for some in (slice(None), moved):
        by_one = None if direct is None else direct[some]
        names = names or _paths(chain, inputs[some], answers[some], by_one)
    return names


def _paths(chain: Chain, inputs: Bits, answers: Bits, direct: Bits | None) -> tuple[str, ...]:
    """Return the names of the simplest rows whose casts may give all these answers."""

    def gives(steps: Sequence[Case]) -> bool:
        if len(steps) == 1 and direct is not None and np.array_equal(direct, answers):
            return True
        composed = compose_arrays([*map(ruling, steps)], inputs)
        return bool(np.all(composed.allows(answers.astype(np.uint64))))

    for rank, rows in groupby(WRONGS, lambda row: row.rank):
        found = [
            row.name.format(what)
            for row in rows
            for what, steps in row.makes(chain)
            if steps is not None and gives(steps)
        ]
        if rank == RANK_WITHIN:
            found += _within(chain, inputs, answers)
            found += [KEEPS_SIGNS] if _keeps_signs(chain, inputs, answers) else []
        if found:
            return tuple(dict.fromkeys(found))
    return ()


def _within(chain: Chain, inputs: Bits, answers: Bits) -> Iterator[str]:
    """Yield the name of each behavior by which one step gives these answers, if others are right.

    To what a behavior does not answer, such as NaN, the step's own answer is taken. Yields none for
    a step that does not answer every input, nor for those behind it.
    """
    for place, step in enumerate(chain.steps):
        source, target = format_named(step.source), format_named(step.target)
        own, answered = right(step, inputs)
        if not answered.all():
            return
        rest = [*map(ruling, chain.steps[place + 1 :])]
        for name, behavior in behaviors().items():
            if not applies_to(behavior, source, target):
                continue
            made, defined = evaluate(behavior, source, target, inputs)
            made = np.where(defined, made, own)
            if rest:
                gives = compose_arrays(rest, made).allows(answers.astype(np.uint64))
            else:
                gives = is_same(target, made, answers)
            if np.all(gives):
                yield f"{WITHIN}{name}"
        inputs = own


def _keeps_signs(chain: Chain, inputs: Bits, answers: Bits) -> bool:
    """Whether the steps give these answers, but keep the sign of what an integer makes zero.

    So does a function that truncates floats, in the place of two casts: it gives -0 for -0.5.
    """
    source, target = format_named(chain.source), format_named(chain.target)
    has_integer = any(format_named(each).is_integral for each in chain.dtypes[1:-1])
    are_signed = source.sign_bit and {"signed"} == {target.entry.zero, source.entry.zero}
    if not has_integer or not are_signed or source.kind != "float":
        return False
    composed = compose_arrays(chain.rulings, inputs)
    magnitudes = inputs & (source.sign_bit - 1)
    is_small = (inputs != magnitudes) & (magnitudes < source.one_code)
    becomes_zero = is_small & composed.allows(np.zeros(inputs.shape, np.uint64))
    given = answers.astype(np.uint64)
    return bool(np.where(becomes_zero, given == target.sign_bit, composed.allows(given)).all())


def _edition(chain: Chain) -> tuple[str, str]:
    return chain.steps[0].document, chain.steps[0].version


def _steps(chain: Chain, middle: Sequence[str]) -> list[Case] | None:
    """Return the casts along other middle dtypes; None if the document lacks or refuses one.

    Each is the case that shares the most modes with the chain's cast to the same target.
    """
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
