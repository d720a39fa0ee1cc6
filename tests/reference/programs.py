"""Random programs in the kernels' vocabulary, to be run on any carrier."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from oracles.reference.kernel_terms import Trace
from oracles.reference.kernels import Select
from oracles.reference.machine_words import MASK, WIDTH

CONSTANTS = st.integers(0, 70) | st.integers(0, MASK) | st.sampled_from([MASK, 1 << 63, WIDTH])
WORDS: dict[str, Callable[[Any, Any], Any]] = {
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "add": operator.add,
    "subtract": operator.sub,
    "left": operator.lshift,
    "right": operator.rshift,
}
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "equal": operator.eq,
    "less": operator.lt,
    "more": operator.gt,
}
Step = tuple[str, int, int, int, int | None]

STEPS = st.lists(
    st.tuples(
        st.sampled_from([*WORDS, *COMPARISONS, "select", "both", "either", "not"]),
        st.integers(0, 20),
        st.integers(0, 20),
        st.integers(0, 20),
        st.none() | CONSTANTS,
    ),
    min_size=1,
    max_size=25,
)


def run(steps: list[Step], pattern: Any, select: Select) -> tuple[list[Any], list[Any]]:
    """The words and the truths that a program computes from a pattern, the last ones last."""
    words, truths = [pattern, pattern & 0], [pattern < 0, pattern > 7]
    for name, first, second, third, constant in steps:
        left = words[first % len(words)]
        right = words[second % len(words)] if constant is None else constant
        here, there = truths[first % len(truths)], truths[second % len(truths)]
        if name in WORDS:
            words.append(WORDS[name](left, right))
        elif name in COMPARISONS:
            truths.append(COMPARISONS[name](left, right))
        elif name == "select":
            words.append(select(truths[third % len(truths)], left, right))
        else:
            truths.append({"both": here & there, "either": here | there, "not": here ^ True}[name])
    return words, truths


def evaluate(trace: Trace, pattern: int) -> list[int]:
    """Every node's value for a pattern, in Python integers; each within its bounds."""
    values: list[int] = []
    for node in trace.nodes:
        a, b, c = (*(values[place] for place in node.arguments), 0, 0, 0)[:3]
        match node.operation:
            case "input":
                value = pattern
            case "constant":
                value = node.bounds[0]
            case "select":
                value = b if a else c
            case "equal" | "less":
                value = int(COMPARISONS[node.operation](a, b))
            case "left" | "right" if b >= WIDTH:
                value = 0
            case operation:
                value = WORDS[operation](a, b) & MASK
        assert node.bounds[0] <= value <= node.bounds[1], node
        values.append(value)
    return values
