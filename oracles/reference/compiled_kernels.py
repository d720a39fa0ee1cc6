"""A ruling's decision compiled: the kernels' text, traced and written out as one loop."""

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
from oracles.reference.kernel_terms import Node, Term, Trace, select_terms
from oracles.reference.machine_words import WIDTH
from specs.ruling import Ruling

FORMS = {
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
def consecutive(first, places, codes, others):
    for at in range(places.size):
        n0 = uint64(first) + uint64(at)
{body}
        places[at] = {place}
        codes[at] = {code}
        others[at] = {other}


def scattered(inputs, places, codes, others):
    for at in range(places.size):
        n0 = uint64(inputs[at])
{body}
        places[at] = {place}
        codes[at] = {code}
        others[at] = {other}
"""


@dataclass(frozen=True)
class Compiled:
    """A ruling's decision as two compiled loops that fill arrays of one length.

    ``consecutive(first, places, codes, others)`` decides the patterns from ``first`` on,
    ``scattered(inputs, places, codes, others)`` those of an array.
    """

    ruling: Ruling
    consecutive: Callable[[Any, NDArray[np.uint8], NDArray[Any], NDArray[Any]], None]
    scattered: Callable[[NDArray[Any], NDArray[np.uint8], NDArray[Any], NDArray[Any]], None]

    def expect(self, inputs: NDArray[Any]) -> Expected:
        """What the ruling allows for each input."""
        result = self.room(inputs.size)
        self.scattered(inputs, result.places, result.codes, result.others)
        return result

    def room(self, size: int) -> Expected:
        """Arrays to be filled."""
        storage = self.ruling.target.storage
        return Expected(np.empty(size, np.uint8), np.empty(size, storage), np.empty(size, storage))


@lru_cache(maxsize=32)
def compiled(ruling: Ruling) -> Compiled:
    """Compile a ruling with numeric source and target (needs the extra ``fast``)."""
    numba: Any = importlib.import_module("numba")
    text = program(ruling)
    names: dict[str, Any] = {"uint64": numba.uint64}
    exec(compile(text, f"<{ruling.source.name} to {ruling.target.name}>", "exec"), names)
    made = numba.njit(nogil=True, boundscheck=False)
    return Compiled(ruling, made(names["consecutive"]), made(names["scattered"]))


def program(ruling: Ruling) -> str:
    """The loops as text: one line per operation that the decision needs."""
    trace = Trace(ruling.source.bits)
    body, (place, code, other) = written(trace, decide(ruling, trace.input(), select_terms))
    return LOOP.format(body=body, place=place, code=code, other=other)


def written(trace: Trace, results: tuple[Term, ...]) -> tuple[str, list[str]]:
    """The lines of a loop that some results need, and what these are called in it.

    The input is called ``n0``; the lines know ``uint64``.
    """
    lines = [
        f"        n{place} = {_written(trace, node)}"
        for place, node in needed(trace, results)
        if node.operation not in ("input", "constant")
    ]
    return "\n".join(lines), [_named(trace, result.place) for result in results]


def needed(trace: Trace, results: tuple[Term, ...]) -> list[tuple[int, Node]]:
    """The nodes that some results depend on, in order."""
    wanted = {result.place for result in results}
    for place in range(len(trace.nodes) - 1, -1, -1):
        if place in wanted:
            wanted.update(trace.nodes[place].arguments)
    return [(place, trace.nodes[place]) for place in sorted(wanted)]


def _written(trace: Trace, node: Node) -> str:
    names = [_named(trace, place) for place in node.arguments]
    if node.operation not in SHIFTS:
        return FORMS[node.operation].format(*names)
    shifted = f"{names[0]} {SHIFTS[node.operation]} {names[1]}"
    if trace.nodes[node.arguments[1]].bounds[1] < WIDTH:
        return shifted
    # What a machine does with a longer shift is its own affair; ours leaves nothing.
    return f"({shifted}) if {names[1]} < uint64({WIDTH}) else uint64(0)"


def _named(trace: Trace, place: int) -> str:
    node = trace.nodes[place]
    if node.operation != "constant":
        return f"n{place}"
    value = node.bounds[0]
    return str(bool(value)) if node.truth else f"uint64({value})"
