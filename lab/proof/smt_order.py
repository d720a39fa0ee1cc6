"""The proof that casts keep the order of values: ``x <= y`` implies ``cast(x) <= cast(y)``.

The solver is asked for two inputs whose answers are in the other order. It compares inputs for
which a ruling names a number: not a NaN, not a wrapped integer, nor what is left open. A cast to
bool keeps no order, as every number but zero is true. To a float without negative numbers a
document may convert magnitudes, as CUDA's headers do; there, positive inputs alone are compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from lab.proof.bit_vectors import NoAnswer, Solving, Truth, Vector
from lab.proof.obligations import (
    TIME_LIMIT,
    Group,
    Obligation,
    Verdict,
    groups,
    prove_in_parallel,
)
from lab.proof.smt_statement import Answer
from lab.proof.smt_traces import traced
from lab.proof.smt_values import DecodedPattern
from oracles.reference import expect_by_kernels
from oracles.reference.kernels import Word, select_words
from specs.branches import Ruling
from specs.formats import Format
from specs.outcomes import Behaves, Either, Exactly, Outcome, Round, Same, Value


def prove_order(
    jobs: int = 1,
    time_limit: float = TIME_LIMIT,
    report: Callable[[Obligation], None] = lambda obligation: None,
) -> list[Obligation]:
    """Prove the order of every group that has one, in the order of the documents' cases."""
    tasks = [(index, time_limit) for index, group in enumerate(groups()) if keeps_order(group)]
    return prove_in_parallel(_prove, tasks, jobs, report)


def _prove(task: tuple[int, float]) -> Obligation:
    index, time_limit = task
    return prove(groups()[index], time_limit)


def keeps_order(group: Group) -> bool:
    """Return whether a group has an order to prove: not to bool, and some branch names numbers."""
    return group.target.kind != "boolean" and any(
        number_branches(ruling) for _, ruling in group.rulings
    )


def prove(group: Group, time_limit: float) -> Obligation:
    """Let the solver look for two inputs whose answers are in the other order."""
    start = time.perf_counter()
    solving = Solving()
    low, high = (solving.unknown(name, group.source.bits) for name in ("low", "high"))
    swapped = _swapped(group, low, high)
    answer = solving.find(swapped, low, time_limit)
    found = ""
    if isinstance(answer, int):
        other = solving.find(swapped & (low == answer), high, time_limit)
        found = _shown(group, answer, other) if isinstance(other, int) else hex(answer)
    verdicts: dict[int | NoAnswer, Verdict] = {"none": "proved", "out of time": "open"}
    return Obligation(
        half="order",
        source=group.source.name,
        target=group.target.name,
        mode=group.rounding,
        rulings=group.name,
        statement="order of values",
        verdict=verdicts.get(answer, "counterexample"),
        inputs=f"2^{2 * group.source.bits} pairs",
        seconds=time.perf_counter() - start,
        found=found,
    )


def number_branches(ruling: Ruling) -> list[int]:
    """The indices of the branches that name a number for every input."""
    return [
        index
        for index, branch in enumerate(ruling.branches)
        if _names_number(ruling.target, branch.outcome)
    ]


def _names_number(target: Format, outcome: Outcome) -> bool:
    match outcome:
        case Either(options=options):
            return all(_names_number(target, option) for option in options)
        case Exactly(code=code):
            return not any(code in codes for codes in target.nan_codes)
    return isinstance(outcome, Round | Value | Same | Behaves)


def _swapped(group: Group, low: Vector, high: Vector) -> Truth:
    """State that one input is at most the other, and that an answer exceeds the other's."""
    solving = low.solving
    is_number = ~(DecodedPattern(group.source, low).nan | DecodedPattern(group.source, high).nan)
    in_order = rank(group.source, low) <= rank(group.source, high)
    if not (group.target.is_signed or group.target.is_integral):
        in_order &= ~DecodedPattern(group.source, low).negative
    wrong = [
        _are_numbers(ruling, below) & _are_numbers(ruling, above) & _exceeds(ruling, below, above)
        for (_, ruling), below, above in zip(
            group.rulings, traced(group, low), traced(group, high), strict=True
        )
    ]
    return is_number & in_order & solving.any_of(wrong)


def _are_numbers(ruling: Ruling, answer: Answer) -> Truth:
    solving = answer.code.solving
    return solving.any_of([answer.branch_index == index for index in number_branches(ruling)])


def _exceeds(ruling: Ruling, below: Answer, above: Answer) -> Truth:
    """State that the first or the second pattern of the lower answer exceeds that of the upper."""
    target = ruling.target
    code, other = (
        rank(target, left.low(target.bits)) > rank(target, right.low(target.bits))
        for left, right in ((below.code, above.code), (below.other, above.other))
    )
    return code | other


def rank(fmt: Format, pattern: Vector) -> Vector:
    """A number that orders the patterns of a format as their values; both zeros have the same."""
    if fmt.is_integral:
        return pattern ^ fmt.sign_bit
    if not fmt.is_signed:
        return pattern
    solving = pattern.solving
    middle = solving.vector(fmt.sign_bit, fmt.bits)
    magnitude = pattern & (fmt.mask ^ fmt.sign_bit)
    return DecodedPattern(fmt, pattern).negative.select(middle - magnitude, middle + magnitude)


def _shown(group: Group, low: int, high: int) -> str:
    """Describe a counterexample: two inputs, and what the kernels answer to each."""
    source, target = group.source, group.target
    for name, ruling in group.rulings:
        answers = [
            [int(one) for one in expect_by_kernels.decide(ruling, Word(code), select_words)]
            for code in (low, high)
        ]
        named = number_branches(ruling)
        if all(branch_index in named for branch_index, *_ in answers):
            codes = [target.hexadecimal(code) for _, code, _ in answers]
            return (
                f"{source.hexadecimal(low)} gives {codes[0]},"
                f" {source.hexadecimal(high)} {codes[1]}, in {name}"
            )
    return f"{source.hexadecimal(low)} and {source.hexadecimal(high)}"
