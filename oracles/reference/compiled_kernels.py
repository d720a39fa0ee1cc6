"""Compiles a ruling with numba: trace the kernels, write the trace as a loop, compile the loop."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracles.reference.expect_by_kernels import decide
from oracles.reference.expectations import Expected
from oracles.reference.kernel_terms import Term, TermNode, Trace, select_terms
from oracles.reference.kernels import WIDTH
from specs.branches import Ruling

EXPRESSIONS = {
    "and": "{0} & {1}",
    "or": "{0} | {1}",
    "xor": "{0} ^ {1}",
    "add": "{0} + {1}",
    "subtract": "{0} - {1}",
    "equal": "{0} == {1}",
    "less": "{0} < {1}",
    "select": "{1} if {0} else {2}",
}
SHIFTS = {"left": "<<", "right": ">>"}
LOOP = """
def consecutive(first, branch_indices, codes, others):
    for at in range(branch_indices.size):
        n0 = uint64(first) + uint64(at)
{body}
        branch_indices[at] = {branch_index}
        codes[at] = {code}
        others[at] = {other}


def scattered(inputs, branch_indices, codes, others):
    for at in range(branch_indices.size):
        n0 = uint64(inputs[at])
{body}
        branch_indices[at] = {branch_index}
        codes[at] = {code}
        others[at] = {other}
"""


@dataclass(frozen=True)
class Compiled:
    """A ruling as two compiled loops, which fill the arrays of an ``Expected``.

    ``consecutive(first, branch_indices, codes, others)`` computes them for the patterns from
    ``first`` on, ``scattered(inputs, branch_indices, codes, others)`` for an array of patterns.
    """

    ruling: Ruling
    consecutive: Callable[[Any, NDArray[np.uint8], NDArray[Any], NDArray[Any]], None]
    scattered: Callable[[NDArray[Any], NDArray[np.uint8], NDArray[Any], NDArray[Any]], None]

    def expect(self, inputs: NDArray[Any]) -> Expected:
        """Return what the ruling allows for each input of an array."""
        result = self.allocate(inputs.size)
        self.scattered(inputs, result.branch_indices, result.codes, result.others)
        return result

    def allocate(self, size: int) -> Expected:
        """Return an ``Expected`` of uninitialized arrays for ``size`` inputs."""
        storage = self.ruling.target.storage
        return Expected(np.empty(size, np.uint8), np.empty(size, storage), np.empty(size, storage))


@lru_cache(maxsize=32)
def compiled(ruling: Ruling) -> Compiled:
    """Compile a numeric ruling without worked examples; needs numba (the extra ``fast``)."""
    numba: Any = importlib.import_module("numba")
    text = program(ruling)
    names: dict[str, Any] = {"uint64": numba.uint64}
    exec(compile(text, f"<{ruling.source.name} to {ruling.target.name}>", "exec"), names)
    jit = numba.njit(nogil=True, boundscheck=False)
    return Compiled(ruling, jit(names["consecutive"]), jit(names["scattered"]))


def program(ruling: Ruling) -> str:
    """Write the two loops as Python text, with one line per operation that the results need."""
    trace = Trace(ruling.source.bits)
    body, (branch_index, code, other) = loop_body(
        trace, decide(ruling, trace.input(), select_terms)
    )
    return LOOP.format(body=body, branch_index=branch_index, code=code, other=other)


def loop_body(trace: Trace, results: tuple[Term, ...]) -> tuple[str, list[str]]:
    """Return the lines that compute some results, as one text, and an expression per result.

    The lines read the input as ``n0`` and call ``uint64``, which the program around them defines.
    """
    lines = [
        f"        n{index} = {_operation(trace, node)}"
        for index, node in needed_nodes(trace, results)
        if node.operation not in ("input", "constant")
    ]
    return "\n".join(lines), [_operand(trace, result.index) for result in results]


def needed_nodes(trace: Trace, results: tuple[Term, ...]) -> list[tuple[int, TermNode]]:
    """Return the nodes that some results depend on, with their indices, in the trace's order."""
    reached = {result.index for result in results}
    for index in range(len(trace.nodes) - 1, -1, -1):
        if index in reached:
            reached.update(trace.nodes[index].arguments)
    return [(index, trace.nodes[index]) for index in sorted(reached)]


def _operation(trace: Trace, node: TermNode) -> str:
    names = [_operand(trace, index) for index in node.arguments]
    if node.operation not in SHIFTS:
        return EXPRESSIONS[node.operation].format(*names)
    shifted = f"{names[0]} {SHIFTS[node.operation]} {names[1]}"
    if trace.nodes[node.arguments[1]].bounds[1] < WIDTH:
        return shifted
    # A kernel's shift by 64 or more gives 0; a machine's is undefined.
    return f"({shifted}) if {names[1]} < uint64({WIDTH}) else uint64(0)"


def _operand(trace: Trace, index: int) -> str:
    node = trace.nodes[index]
    if node.operation != "constant":
        return f"n{index}"
    value = node.bounds[0]
    return str(bool(value)) if node.truth else f"uint64({value})"
