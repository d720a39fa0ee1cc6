"""Between which bounds the result of an operation lies, given those of what it is applied to."""

from __future__ import annotations

from collections.abc import Callable

from oracles.reference.words import MASK, WIDTH

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
