"""The rules that shapes of bitcasts follow where the document wants another shape, or an error."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

Shape = tuple[int, ...]


class ShapeRule(NamedTuple):
    """A sentence, and whether a tensor's shape and its answer's follow the rule."""

    says: str
    holds: Callable[[Shape, Shape], bool]


SHAPE_RULES: Mapping[str, ShapeRule] = {
    "scales-the-last-axis": ShapeRule(
        "bitcasts between widths make the last axis longer or shorter",
        lambda given, answer: len(given) == len(answer) and given[:-1] == answer[:-1],
    ),
    "adds-or-drops-an-axis": ShapeRule(
        "bitcasts between widths add an axis or drop the last",
        lambda given, answer: given == answer[:-1] or answer == given[:-1],
    ),
    "keeps-the-shape": ShapeRule(
        "bitcasts between widths keep the shape", lambda given, answer: given == answer
    ),
}
"""The rules by the names of their findings."""


def followed_rules(given: Shape, answer: Shape, wanted: Shape | None = None) -> tuple[str, ...]:
    """The rules that the shape of an answer follows and that the required shape does not."""
    return tuple(
        name
        for name, rule in SHAPE_RULES.items()
        if rule.holds(given, answer) and (wanted is None or not rule.holds(given, wanted))
    )


def shape_words(shapes: Collection[Shape]) -> str:
    """What the shapes of tensors have in common, after a comma; empty if nothing."""
    if all(0 in shape for shape in shapes):
        return ", for tensors without elements"
    return ", for scalars" if all(shape == () for shape in shapes) else ""
