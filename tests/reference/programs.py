"""Random programs of kernel operations, to run on arrays, words or terms."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from oracles.reference.kernel_terms import Trace
from oracles.reference.kernels import MASK, WIDTH, Select

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
"""An operation, the indices of its operands among earlier results, and a constant right side."""

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
    """Run a program on a pattern; return all words and all booleans that it computes, in order."""
    words, truths = [pattern, pattern & 0], [pattern < 0, pattern > 7]
    for name, first, second, third, constant in steps:
        left = words[first % len(words)]
        right = words[second % len(words)] if constant is None else constant
        one, other = truths[first % len(truths)], truths[second % len(truths)]
        if name in WORDS:
            words.append(WORDS[name](left, right))
        elif name in COMPARISONS:
            truths.append(COMPARISONS[name](left, right))
        elif name == "select":
            words.append(select(truths[third % len(truths)], left, right))
        else:
            truths.append({"both": one & other, "either": one | other, "not": one ^ True}[name])
    return words, truths


def evaluate(trace: Trace, pattern: int) -> list[int]:
    """Compute every node's value for a pattern; assert that it lies within the node's bounds."""
    values: list[int] = []
    for node in trace.nodes:
        a, b, c = (*(values[index] for index in node.arguments), 0, 0, 0)[:3]
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
