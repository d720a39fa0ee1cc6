"""The kernels' decision as terms of the solver: a trace, translated node by node."""

from __future__ import annotations

from typing import Any

from lab.proof.bit_vectors import Vector
from lab.proof.obligations import Group
from lab.proof.smt_statement import Answer
from oracles.reference import expect_by_kernels
from oracles.reference.kernel_terms import Term, TermNode, Trace, select_terms
from oracles.reference.kernels import WIDTH

OPERATORS = {
    "add": "BV_ADD",
    "subtract": "BV_SUB",
    "left": "BV_SHL",
    "right": "BV_SHR",
    "equal": "EQUAL",
    "less": "BV_ULT",
    "select": "ITE",
}
CONNECTIVES = {"and": "AND", "or": "OR", "xor": "XOR"}


def traced(group: Group, pattern: Vector, simplify: bool = False) -> list[Answer]:
    """Trace the kernels' decision under each ruling of a group, as terms of the solver."""
    trace = Trace(group.source.bits, simplify)
    term = trace.input()
    results = [expect_by_kernels.decide(ruling, term, select_terms) for _, ruling in group.rulings]
    terms = translated(trace, pattern)

    def vector(result: Term) -> Vector:
        return Vector(pattern.solving, terms[result.index], WIDTH)

    return [Answer(*map(vector, result)) for result in results]


def translated(trace: Trace, pattern: Vector) -> list[Any]:
    """Translate every node of a trace to a term of the solver, with ``pattern`` as the input."""
    terms: list[Any] = []
    for node in trace.nodes:
        terms.append(_translated(pattern, node, terms))
    return terms


def _translated(pattern: Vector, node: TermNode, terms: list[Any]) -> Any:
    solving = pattern.solving
    match node.operation:
        case "input":
            return pattern.wide(WIDTH).term
        case "constant" if node.truth:
            return solving.truth(bool(node.bounds[0])).term
        case "constant":
            return solving.vector(node.bounds[0], WIDTH).term
        case "and" | "or" | "xor":
            connective = CONNECTIVES[node.operation]
            kind = connective if node.truth else f"BV_{connective}"
        case _:
            kind = OPERATORS[node.operation]
    return solving.make(kind, *(terms[index] for index in node.arguments))
