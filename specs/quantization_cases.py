"""Lists the cases of a document of quantization: pairs of dtypes, each with its modes.

Values are not part of a case. Its modes name the dtype of the scales, how they lie along the
tensor, and, if the document has them, the attributes `saturate` and `precision`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import product

from specs.formats import formats
from specs.model.document import DocumentEntry
from specs.model.quantization_entry import CombinationEntry

Pair = tuple[str, str]
Modes = tuple[tuple[str, str], ...]

SCALE, FORM, BLOCK, SATURATE, PRECISION = "scale", "form", "block", "saturate", "precision"
"""The modes of a case, in the order of its id."""
BLOCK_SIZE = 16
"""Elements that share a scale where the form is `block`."""
AXIS = 1
"""The axis along which scales lie: the default of every document here."""


def combinations(
    entry: DocumentEntry, version: str, listed: Collection[Pair]
) -> Iterator[tuple[Pair, Modes]]:
    """Each pair of a version with the modes of its cases, each once."""
    assert entry.quantization is not None
    order = list(entry.versions)
    found: dict[tuple[Pair, Modes], None] = {}
    for each in entry.quantization.cases:
        first = order.index(each.since) if each.since is not None else 0
        last = order.index(each.until) if each.until is not None else len(order)
        if not first <= order.index(version) <= last:
            continue
        sources, targets = (_dtypes(entry, words) for words in (each.from_, each.to))
        for source in sources:
            for target in targets:
                if (source, target) in listed:
                    floats = source if entry.operation == "quantize" else target
                    for modes in _modes(each, floats):
                        found[(source, target), modes] = None
    place = {name: index for index, name in enumerate(formats())}
    yield from sorted(found, key=lambda each: (place[each[0][0]], place[each[0][1]]))


def _dtypes(entry: DocumentEntry, words: Sequence[str] | None) -> list[str]:
    """The dtypes that some words name; all of them if there are no words."""
    if words is None:
        return list(formats())
    return [dtype for word in words for dtype in entry.groups.get(word, [word])]


def _modes(combination: CombinationEntry, floats: str) -> Iterator[Modes]:
    scales = [floats if word == "same" else word for word in combination.scale]
    axes = (scales, combination.form, combination.saturate, combination.precision)
    for scale, form, saturate, precision in product(*(axis or [""] for axis in axes)):
        if precision and precision == scale:
            continue  # The attribute would change nothing.
        block = str(BLOCK_SIZE) if form == "block" else ""
        modes = (
            (SCALE, scale),
            (FORM, form),
            (BLOCK, block),
            (SATURATE, saturate),
            (PRECISION, "" if precision == "scale" else precision),
        )
        yield tuple((name, value) for name, value in modes if value)
