"""What a document says of a tensor as a whole: its rank, its number of elements, its tile shape."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from specs.loader import Document, document_named
from specs.model.document import ELEMENTS, RANKS, TILE_RANKS, TensorRuleEntry


@dataclass(frozen=True)
class TensorRule:
    """The rule that takes a tensor; ``keeps_shape`` is false where the document leaves it open."""

    rule: str
    clause: str
    level: str
    keeps_shape: bool


def tensor_rule(document: str, version: str, shape: tuple[int, ...]) -> TensorRule:
    """The rule of a shipped document for a tensor of that shape, tiled as its output is."""
    elements = 1
    for length in shape:
        elements *= length
    rank = str(len(shape)) if len(shape) < 5 else "5-or-more"
    amount = "none" if elements == 0 else "some"
    if elements > 2**31 - 1:
        amount = "more-than-int32-max"
    entry = document_named(document).entry
    name, rule = next(
        (name, rule)
        for name, rule in entry.tensors.items()
        if _takes(rule, version, rank, amount, TILE_RANKS[0])
    )
    keeps = rule.then == "same-shape"
    return TensorRule(name, rule.clause, rule.level if keeps else "unspecified", keeps)


def prove_tensors(document: Document) -> None:
    """Every kind of tensor is taken by exactly one tensor rule, and every rule takes some."""
    used = set()
    versions = document.entry.versions
    for version, rank, elements, tile_rank in product(versions, RANKS, ELEMENTS, TILE_RANKS):
        takers = [
            name
            for name, rule in document.entry.tensors.items()
            if _takes(rule, version, rank, elements, tile_rank)
        ]
        what = (
            f"a tensor of rank {rank} with {elements} elements, tile rank {tile_rank},"
            f" in version {version}"
        )
        if not takers:
            raise document.source.error(("tensors",), f"gap: no tensor rule takes {what}")
        if len(takers) > 1:
            raise document.source.error(
                ("tensors", takers[1]), f"overlap: {' and '.join(takers)} both take {what}"
            )
        used.update(takers)
    for name in document.entry.tensors:
        if name not in used:
            raise document.source.error(("tensors", name), f"tensor rule {name} takes no tensor")


def _takes(rule: TensorRuleEntry, version: str, rank: str, elements: str, tile_rank: str) -> bool:
    when = rule.when
    if when.version is not None and version not in when.version:
        return False
    return rank in when.rank and elements in when.elements and tile_rank in when.tile_rank
