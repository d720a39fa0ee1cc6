"""The proof by SMT solver: ask for an input on which the kernels contradict a statement."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Literal

from lab.proof import smt_floats
from lab.proof.bit_vectors import NoAnswer, Solving, Truth, Vector
from lab.proof.obligations import (
    TIME_LIMIT,
    Group,
    Obligation,
    Verdict,
    groups,
    prove_in_parallel,
)
from lab.proof.smt_statement import Answer, holds
from lab.proof.smt_traces import traced
from lab.proof.smt_values import DecodedPattern
from oracles.reference import expect_by_exact, expect_by_kernels
from oracles.reference.kernels import WIDTH, Word, select_words
from specs.branches import Ruling

Statement = Literal["exact integers", "smt-lib"]
"""The two definitions with which kernels are compared: ours, and SMT-LIB's conversions."""


def statements(group: Group) -> Iterator[Statement]:
    """The statements that a group can be compared with."""
    yield "exact integers"
    if any(smt_floats.is_known(ruling) for _, ruling in group.rulings):
        yield "smt-lib"


def prove(group: Group, statement: Statement, time_limit: float) -> Obligation:
    """Let the solver look for an input that contradicts a statement, for ``time_limit`` seconds."""
    start = time.perf_counter()
    solving = Solving()
    pattern = solving.unknown("pattern", group.source.bits)
    answers = traced(group, pattern)
    answer: int | NoAnswer = "none"
    for question in _questions(group, statement, pattern, answers):
        left = time_limit - (time.perf_counter() - start)
        answer = solving.find(question, pattern, left) if left > 0 else "out of time"
        if answer != "none":
            break
    verdicts: dict[int | NoAnswer, Verdict] = {"none": "proved", "out of time": "open"}
    return Obligation(
        half="solver",
        source=group.source.name,
        target=group.target.name,
        mode=group.rounding,
        rulings=group.name,
        statement=statement,
        verdict=verdicts.get(answer, "counterexample"),
        inputs=f"2^{group.source.bits}",
        seconds=time.perf_counter() - start,
        found=_shown(group, answer) if isinstance(answer, int) else "",
    )


def _questions(
    group: Group, statement: Statement, pattern: Vector, answers: list[Answer]
) -> Iterator[Truth]:
    """Yield statements that must hold for no input; one for which any holds is a counterexample."""
    solving = pattern.solving
    rulings = [ruling for _, ruling in group.rulings]
    if statement == "smt-lib":
        yield solving.any_of(
            [
                ~smt_floats.agrees(ruling, pattern, answer)
                for ruling, answer in zip(rulings, answers, strict=True)
                if smt_floats.is_known(ruling)
            ]
        )
        return
    value = DecodedPattern(group.source, pattern)
    yield solving.any_of(
        [~holds(ruling, value, answer) for ruling, answer in zip(rulings, answers, strict=True)]
    )
    # A statement that is too weak would hold of any answer: it must hold of the kernels' only.
    unknown = (solving.unknown(name, WIDTH) for name in ("branch_index", "code", "other"))
    any_answer = Answer(*unknown)
    yield solving.any_of(
        [
            holds(ruling, value, any_answer) & ~answer.equals(any_answer)
            for ruling, answer in zip(rulings, answers, strict=True)
        ]
    )
    # Arrays run every operation of the kernels; numba compiles the simplified trace.
    yield solving.any_of(
        [
            ~answer.equals(simplified)
            for answer, simplified in zip(
                answers, traced(group, pattern, simplify=True), strict=True
            )
        ]
    )


def _shown(group: Group, code: int) -> str:
    """Describe a counterexample: the input, and the differing answers of kernels and definition."""
    shown = group.source.hexadecimal(code)
    for name, ruling in group.rulings:
        kernels, definition = _by_kernels(ruling, code), _by_definition(ruling, code)
        if kernels != definition:
            return f"{shown}: {kernels} by kernels, {definition} by definition, in {name}"
    return f"{shown}: kernels and definition answer alike, the statement or the trace is at fault"


def _by_kernels(ruling: Ruling, code: int) -> str:
    results = expect_by_kernels.decide(ruling, Word(code), select_words)
    branch_index, first, second = (int(result) for result in results)
    return _answer(ruling, branch_index, first, second)


def _by_definition(ruling: Ruling, code: int) -> str:
    allowed = expect_by_exact.allow(ruling, code)
    codes = allowed.codes or (0,)
    return _answer(ruling, allowed.branch_index, codes[0], codes[-1])


def _answer(ruling: Ruling, branch_index: int, first: int, second: int) -> str:
    codes = dict.fromkeys(ruling.target.hexadecimal(code) for code in (first, second))
    name = (
        ruling.branches[branch_index].input_class
        if branch_index < len(ruling.branches)
        else f"no {branch_index}"
    )
    return f"{name} {' or '.join(codes)}"


Task = tuple[int, Statement, float]


def prove_by_solver(
    jobs: int = 1,
    time_limit: float = TIME_LIMIT,
    report: Callable[[Obligation], None] = lambda obligation: None,
    every: int = 1,
) -> list[Obligation]:
    """Prove every group (or each ``every``-th one), in the order of the documents' cases."""
    tasks: list[Task] = [
        (branch_index, statement, time_limit)
        for branch_index, group in list(enumerate(groups()))[::every]
        for statement in statements(group)
    ]
    return prove_in_parallel(_prove, tasks, jobs, report)


def _prove(task: Task) -> Obligation:
    branch_index, statement, time_limit = task
    return prove(groups()[branch_index], statement, time_limit)
