"""A kernel's text as a program: every operation on a ``Term`` is written down, none is carried out.

Equal operations are one node, and each node knows between which bounds its value lies: where the
bounds meet, it is a constant. What the text says of any input can then be compiled or proved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from oracles.reference.machine_words import MASK, WIDTH

Bounds = tuple[int, int]

EVERY_WORD: Bounds = (0, MASK)
EVERY_TRUTH: Bounds = (0, 1)


def filled(value: int) -> int:
    """All bits up to a value's leading one."""
    return (1 << value.bit_length()) - 1


def _known(left: Bounds, right: Bounds) -> bool:
    return left[0] == left[1] and right[0] == right[1]


def _and(left: Bounds, right: Bounds) -> Bounds:
    if _known(left, right):
        return (left[0] & right[0],) * 2
    return 0, min(left[1], right[1])


def _or(left: Bounds, right: Bounds) -> Bounds:
    if _known(left, right):
        return (left[0] | right[0],) * 2
    return max(left[0], right[0]), filled(left[1] | right[1])


def _xor(left: Bounds, right: Bounds) -> Bounds:
    if _known(left, right):
        return (left[0] ^ right[0],) * 2
    return 0, filled(left[1] | right[1])


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
    """The bounds of a word that counts from ``low`` to ``high``: any word, if it starts anew."""
    if low >> WIDTH == high >> WIDTH:
        return low & MASK, high & MASK
    return EVERY_WORD


def _equal(left: Bounds, right: Bounds) -> Bounds:
    if left[1] < right[0] or right[1] < left[0]:
        return 0, 0
    return (1, 1) if _known(left, right) else EVERY_TRUTH


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


Operation = Literal[
    "input", "constant", "and", "or", "xor", "add", "subtract", "left", "right",
    "equal", "less", "select",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Node:
    """One operation on earlier nodes; a truth is a node whose value is 0 or 1."""

    operation: Operation
    arguments: tuple[int, ...]
    truth: bool
    bounds: Bounds


@dataclass(eq=False)
class Trace:
    """The operations of a text on one input, in the order in which they can be carried out.

    A ``plain`` trace keeps every operation, also where bounds tell what comes out.
    """

    bits: int
    plain: bool = False
    nodes: list[Node] = field(default_factory=list)
    known: dict[Node, int] = field(default_factory=dict, repr=False)

    def input(self) -> Term:
        """The pattern that the text is about, of ``bits`` bits."""
        return self._node(Node("input", (), False, (0, (1 << self.bits) - 1)))

    def constant(self, value: int, truth: bool = False) -> Term:
        """A word, or a truth."""
        value = int(value) & (1 if truth else MASK)
        return self._node(Node("constant", (), truth, (value, value)))

    def apply(self, operation: Operation, *arguments: Term) -> Term:
        """The result of an operation: an earlier node or a constant where that says the same."""
        nodes = [self.nodes[argument.place] for argument in arguments]
        truth = operation in ("equal", "less") or nodes[-1].truth
        if nodes[-1].truth != nodes[-2].truth:
            raise TypeError(f"`{operation}` of a word and a truth")
        bounds = EVERY_TRUTH if truth else EVERY_WORD
        if not self.plain:
            bounds = BOUNDS[operation](*(node.bounds for node in nodes))
            if bounds[0] == bounds[1]:
                return self.constant(bounds[0], truth)
            same = _same(operation, arguments, nodes)
            if same is not None:
                return same
        places = tuple(argument.place for argument in arguments)
        if operation in ("and", "or", "xor", "add", "equal"):
            places = tuple(sorted(places))
        return self._node(Node(operation, places, truth, bounds))

    def _node(self, node: Node) -> Term:
        place = self.known.setdefault(node, len(self.nodes))
        if place == len(self.nodes):
            self.nodes.append(node)
        return Term(self, place)


class Term:
    """A word or a truth of a trace, with the operators of a kernel's text."""

    __slots__ = ("place", "trace")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, trace: Trace, place: int) -> None:
        self.trace = trace
        self.place = place

    @property
    def node(self) -> Node:
        """What this term stands for."""
        return self.trace.nodes[self.place]

    def _with(self, operation: Operation, other: Any) -> Term:
        return self.trace.apply(operation, self, _term(self, other))

    def _after(self, operation: Operation, other: Any) -> Term:
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
        return self._after("subtract", other)

    def __lshift__(self, other: Any) -> Term:
        return self._with("left", other)

    def __rshift__(self, other: Any) -> Term:
        return self._with("right", other)

    def __eq__(self, other: object) -> Term:  # type: ignore[override]
        return self._with("equal", other)

    def __lt__(self, other: Any) -> Term:
        return self._with("less", other)

    def __gt__(self, other: Any) -> Term:
        return self._after("less", other)

    def __bool__(self) -> bool:
        raise TypeError("a kernel's text may not branch on data")


def select_terms(condition: Any, then: Any, otherwise: Any) -> Any:
    """``then`` where the condition holds."""
    if not isinstance(condition, Term):
        return then if condition else otherwise
    trace = condition.trace
    like = next((term for term in (then, otherwise) if isinstance(term, Term)), trace.constant(0))
    return trace.apply("select", condition, _term(like, then), _term(like, otherwise))


def _term(like: Term, value: Any) -> Term:
    """A term as it is, a plain value as a constant of the other side's kind."""
    return value if isinstance(value, Term) else like.trace.constant(value, like.node.truth)


def _same(operation: Operation, arguments: tuple[Term, ...], nodes: list[Node]) -> Term | None:
    """The argument that the operation leaves as it is, if it does."""
    if operation == "select":
        chosen = nodes[0].bounds
        if chosen[0] == chosen[1]:
            return arguments[1] if chosen[0] else arguments[2]
        return arguments[1] if arguments[1].place == arguments[2].place else None
    for this, other in ((0, 1), (1, 0)):
        low, high = nodes[other].bounds
        if low != high or (this and operation in ("subtract", "left", "right", "less", "equal")):
            continue
        nothing = operation not in ("and", "less", "equal") and low == 0
        if nothing or (operation == "and" and low == filled(low) >= nodes[this].bounds[1]):
            return arguments[this]
    return None
