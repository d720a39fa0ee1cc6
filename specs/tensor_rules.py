"""Rules about a tensor as a whole: its rank, number of elements, and tile rank."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product
from math import prod

from specs.loader import Document, document_named
from specs.model.document import ELEMENTS, RANKS, TILE_RANKS, TensorRuleEntry


@dataclass(frozen=True)
class TensorRule:
    """The rule that applies to a tensor; ``keeps_shape`` is false if the shape is left open."""

    rule: str
    clause: str
    level: str
    keeps_shape: bool


def tensor_rule(document: str, version: str, shape: tuple[int, ...]) -> TensorRule:
    """The rule of a shipped document for a tensor of this shape whose tile rank is its output's."""
    size = prod(shape)
    rank = str(len(shape)) if len(shape) < 5 else "5-or-more"
    elements = "none" if size == 0 else "some"
    if size > 2**31 - 1:
        elements = "more-than-int32-max"
    return _rule_of_class(document, version, rank, elements)


@cache
def _rule_of_class(document: str, version: str, rank: str, elements: str) -> TensorRule:
    entry = document_named(document).entry
    name, rule = next(
        (name, rule)
        for name, rule in entry.tensors.items()
        if _takes(rule, version, rank, elements, TILE_RANKS[0])
    )
    keeps_shape = rule.then == "same-shape"
    level = rule.level if keeps_shape else "unspecified"
    return TensorRule(name, rule.clause, level, keeps_shape)


def prove_tensors(document: Document) -> None:
    """Raise DocumentError unless every tensor is taken by exactly one rule, and no rule is idle."""
    used = set()
    versions = document.entry.versions
    for version, rank, elements, tile_rank in product(versions, RANKS, ELEMENTS, TILE_RANKS):
        takers = [
            name
            for name, rule in document.entry.tensors.items()
            if _takes(rule, version, rank, elements, tile_rank)
        ]
        tensor = (
            f"a tensor of rank {rank} with {elements} elements, tile rank {tile_rank},"
            f" in version {version}"
        )
        if not takers:
            raise document.source.error(("tensors",), f"gap: no tensor rule takes {tensor}")
        if len(takers) > 1:
            raise document.source.error(
                ("tensors", takers[1]), f"overlap: {' and '.join(takers)} both take {tensor}"
            )
        used.update(takers)
    for name in document.entry.tensors:
        if name not in used:
            raise document.source.error(
                ("tensors", name),
                f"tensor rule {name} takes no tensor; widen its conditions or delete it",
            )


def _takes(rule: TensorRuleEntry, version: str, rank: str, elements: str, tile_rank: str) -> bool:
    when = rule.when
    if when.version is not None and version not in when.version:
        return False
    return rank in when.rank and elements in when.elements and tile_rank in when.tile_rank
