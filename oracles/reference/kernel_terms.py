"""Trace a kernel: record the operations it applies to a ``Term`` instead of computing them.

The recorded ``Trace`` holds for every input, so that numba can compile it (``compiled_kernels``)
and an SMT solver can prove it (``lab.proof``). Equal operations become one node. Interval
arithmetic bounds the value of every node; a node whose bounds meet is a constant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from oracles.reference.kernels import MASK, WIDTH

Bounds = tuple[int, int]

EVERY_WORD: Bounds = (0, MASK)
EVERY_TRUTH: Bounds = (0, 1)
"""A truth is a Boolean term, as a comparison returns it; every other term is a 64-bit word."""


def ones_up_to(value: int) -> int:
    """Return a number with all bits set from bit 0 to a value's leading one."""
    return (1 << value.bit_length()) - 1


def _both_constant(left: Bounds, right: Bounds) -> bool:
    return left[0] == left[1] and right[0] == right[1]


def _and(left: Bounds, right: Bounds) -> Bounds:
    if _both_constant(left, right):
        return (left[0] & right[0],) * 2
    return 0, min(left[1], right[1])


def _or(left: Bounds, right: Bounds) -> Bounds:
    if _both_constant(left, right):
        return (left[0] | right[0],) * 2
    return max(left[0], right[0]), ones_up_to(left[1] | right[1])


def _xor(left: Bounds, right: Bounds) -> Bounds:
    if _both_constant(left, right):
        return (left[0] ^ right[0],) * 2
    return 0, ones_up_to(left[1] | right[1])


def _add(left: Bounds, right: Bounds) -> Bounds:
    return _modulo(left[0] + right[0], left[1] + right[1])


def _subtract(left: Bounds, right: Bounds) -> Bounds:
    return _modulo(left[0] - right[1], left[1] - right[0])


def _left(value: Bounds, shift: Bounds) -> Bounds:
    if shift[0] >= WIDTH:
        return 0, 0
    if shift[1] >= WIDTH:
        return EVERY_WORD
    return _modulo(value[0] << shift[0], value[1] << shift[1])


def _right(value: Bounds, shift: Bounds) -> Bounds:
    return value[0] >> min(shift[1], WIDTH), value[1] >> min(shift[0], WIDTH)


def _modulo(low: int, high: int) -> Bounds:
    """Reduce bounds modulo 2**64; a range that wraps around may hold any word."""
    if low >> WIDTH == high >> WIDTH:
        return low & MASK, high & MASK
    return EVERY_WORD


def _equal(left: Bounds, right: Bounds) -> Bounds:
    if left[1] < right[0] or right[1] < left[0]:
        return 0, 0
    return (1, 1) if _both_constant(left, right) else EVERY_TRUTH


def _less(left: Bounds, right: Bounds) -> Bounds:
    if left[1] < right[0]:
        return 1, 1
    return (0, 0) if left[0] >= right[1] else EVERY_TRUTH


def _select(condition: Bounds, then: Bounds, otherwise: Bounds) -> Bounds:
    if condition[0] == condition[1]:
        return then if condition[0] else otherwise
    return min(then[0], otherwise[0]), max(then[1], otherwise[1])


BOUNDS: dict[str, Callable[..., Bounds]] = {
    "and": _and,
    "or": _or,
    "xor": _xor,
    "add": _add,
    "subtract": _subtract,
    "left": _left,
    "right": _right,
    "equal": _equal,
    "less": _less,
    "select": _select,
}
"""By operation: the function that returns its result's bounds, given its arguments' bounds."""


TermKind = Literal[
    "input", "constant", "and", "or", "xor", "add", "subtract", "left", "right",
    "equal", "less", "select",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class TermNode:
    """One operation; ``arguments`` are indices of earlier nodes, and a ``truth`` gives 0 or 1."""

    operation: TermKind
    arguments: tuple[int, ...]
    truth: bool
    bounds: Bounds


@dataclass(eq=False)
class Trace:
    """The operations of a kernel on one input of ``bits`` bits; each node follows its arguments.

    With ``simplify``, an operation whose result the bounds determine becomes a constant or one of
    its own arguments; without, every operation is kept.
    """

    bits: int
    simplify: bool = True
    nodes: list[TermNode] = field(default_factory=list)
    index_of: dict[TermNode, int] = field(default_factory=dict, repr=False)

    def input(self) -> Term:
        """Return the term of the pattern to which the kernel is applied."""
        return self._node(TermNode("input", (), False, (0, (1 << self.bits) - 1)))

    def constant(self, value: int, truth: bool = False) -> Term:
        """Return the term of a constant: a truth if ``truth`` is set, else a word."""
        value = int(value) & (1 if truth else MASK)
        return self._node(TermNode("constant", (), truth, (value, value)))

    def apply(self, operation: TermKind, *arguments: Term) -> Term:
        """Record an operation, return its result; raise TypeError if it mixes words and truths."""
        nodes = [self.nodes[argument.index] for argument in arguments]
        truth = operation in ("equal", "less") or nodes[-1].truth
        if nodes[-1].truth != nodes[-2].truth:
            raise TypeError(f"`{operation}` mixes a word and a truth")
        bounds = EVERY_TRUTH if truth else EVERY_WORD
        if self.simplify:
            bounds = BOUNDS[operation](*(node.bounds for node in nodes))
            if bounds[0] == bounds[1]:
                return self.constant(bounds[0], truth)
            unchanged = _unchanged_argument(operation, arguments, nodes)
            if unchanged is not None:
                return unchanged
        indices = tuple(argument.index for argument in arguments)
        if operation in ("and", "or", "xor", "add", "equal"):
            indices = tuple(sorted(indices))
        return self._node(TermNode(operation, indices, truth, bounds))

    def _node(self, node: TermNode) -> Term:
        index = self.index_of.setdefault(node, len(self.nodes))
        if index == len(self.nodes):
            self.nodes.append(node)
        return Term(self, index)


class Term:
    """A word or a truth of a trace, with the operators that kernels use."""

    __slots__ = ("index", "trace")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, trace: Trace, index: int) -> None:
        self.trace = trace
        self.index = index

    @property
    def node(self) -> TermNode:
        """The node that computes this term."""
        return self.trace.nodes[self.index]

    def _with(self, operation: TermKind, other: Any) -> Term:
        return self.trace.apply(operation, self, _term(self, other))

    def _reflected(self, operation: TermKind, other: Any) -> Term:
        return self.trace.apply(operation, _term(self, other), self)

    def __and__(self, other: Any) -> Term:
        return self._with("and", other)

    def __or__(self, other: Any) -> Term:
        return self._with("or", other)

    def __xor__(self, other: Any) -> Term:
        return self._with("xor", other)

    def __add__(self, other: Any) -> Term:
        return self._with("add", other)

    __rand__, __ror__, __rxor__, __radd__ = __and__, __or__, __xor__, __add__

    def __sub__(self, other: Any) -> Term:
        return self._with("subtract", other)

    def __rsub__(self, other: Any) -> Term:
        return self._reflected("subtract", other)

    def __lshift__(self, other: Any) -> Term:
        return self._with("left", other)

    def __rshift__(self, other: Any) -> Term:
        return self._with("right", other)

    def __eq__(self, other: object) -> Term:  # type: ignore[override]
        return self._with("equal", other)

    def __lt__(self, other: Any) -> Term:
        return self._with("less", other)

    def __gt__(self, other: Any) -> Term:
        return self._reflected("less", other)

    def __bool__(self) -> bool:
        raise TypeError("a kernel must not branch on data; use `select`")


def select_terms(condition: Any, then: Any, otherwise: Any) -> Any:
    """The ``select`` of terms; for a plain bool, return ``then`` or ``otherwise`` as it is."""
    if not isinstance(condition, Term):
        return then if condition else otherwise
    trace = condition.trace
    like = next((term for term in (then, otherwise) if isinstance(term, Term)), trace.constant(0))
    return trace.apply("select", condition, _term(like, then), _term(like, otherwise))


def _term(like: Term, value: Any) -> Term:
    return value if isinstance(value, Term) else like.trace.constant(value, like.node.truth)


def _unchanged_argument(
    operation: TermKind, arguments: tuple[Term, ...], nodes: list[TermNode]
) -> Term | None:
    """Return the argument that equals the operation's result, as in ``x + 0``; else None."""
    if operation == "select":
        chosen = nodes[0].bounds
        if chosen[0] == chosen[1]:
            return arguments[1] if chosen[0] else arguments[2]
        return arguments[1] if arguments[1].index == arguments[2].index else None
    for this, other in ((0, 1), (1, 0)):
        low, high = nodes[other].bounds
        if low != high or (this and operation in ("subtract", "left", "right", "less", "equal")):
            continue
        adds_zero = operation not in ("and", "less", "equal") and low == 0
        if adds_zero or (operation == "and" and low == ones_up_to(low) >= nodes[this].bounds[1]):
            return arguments[this]
    return None
