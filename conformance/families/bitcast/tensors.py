"""Tensors to ask a bitcast with: those of a case, and others that the same rule takes.

The rules of a document take any shape, so a case is also asked in shapes, values and memory layouts
that are no cases. Many of these tensors differ from another one in one property only, such as the
shape of as many elements, or the sign of zeros, to reveal a cache that ignores it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from math import prod
from random import Random

import numpy as np
from numpy.typing import NDArray

from conformance.families.bitcast.ruling import (
    BitcastPair,
    BitcastRuling,
    bitcast_ruling,
    ruling_if_any,
    shapes_between,
)
from conformance.judging.asking import Settings
from conformance.judging.probe import Probe
from conformance.judging.space import drawn_memory, drawn_shape
from oracles.memory_layouts import NATURAL, Layout, with_layout
from oracles.protocol import Bits
from specs.cases import Case, Shape
from specs.formats import Format, format_named
from specs.loader import document_named
from specs.model.document import NOT_COPIED, STORAGE_OFFSET, PromiseEntry

CONTENTS_KEPT = 256
PAIRS_KEPT = 16
"""The cases of a pair of dtypes are judged side by side, in all documents."""
OF_FOUR: Sequence[Shape] = (
    (2, 2), (4,), (1, 2, 2), (2, 1, 2, 1), (1, 2, 1, 2, 1), (2, 1, 1, 1, 1, 2),
    (1, 1, 2, 1, 2, 1, 1), (1, 2, 1, 1, 1, 1, 2, 1),
)  # fmt: skip
"""A shape of each rank from 1 to 8, all of four elements."""
SQUARE = OF_FOUR[0]
"""The shape in which special values are asked."""
OF_ONE: Sequence[Shape] = ((1,),)
EMPTY: Sequence[Shape] = ((0,), (0, 2), (2, 0), (1, 0, 1, 2))
"""Shapes without elements; ``widened`` adds a dimension if the target is wider."""
AS_THEY_ARE: Sequence[Shape] = ((0, 3), (3, 0), (2, 3, 0), (1, 1, 1, 1, 3), (1,) * 8)
"""Shapes whose last dimension fits few widths."""
MOST_RANKS = 8
MATRIX = (7, 11)
"""The shape that begins past boundaries of memory."""
DRAWS = 4
"""Tensors that are drawn for a pair of a document, at the tier quick."""
HALF_A_VECTOR = 8
"""Bytes past a boundary at which a vector of 16 begins in the middle."""


Traits = tuple[bool, bool, bool]
"""Traits by which bitcasts of two shapes are alike, the most important first."""


@dataclass(frozen=True, eq=False)
class FurtherTensor:
    """A tensor beyond those of listed cases, the case that has its shape, and its ruling.

    ``layout`` describes how the tensor lies in memory, if that is unusual. A tensor ``in_storage``
    has a storage offset: the elements since the last boundary.
    """

    case: Case
    ruling: BitcastRuling
    bits: Bits
    layout: str = ""
    in_storage: bool = False

    @property
    def where(self) -> str:
        """The shape of the tensor and its unusual layout, in words."""
        return f"shape {self.bits.shape}" + (f", {self.layout}" if self.layout else "")


def contents(ruling: BitcastRuling, seed: int) -> Iterator[Bits]:
    """Yield the tensors with which to request a case; a single one if its shape has no elements."""
    yield from _contents(ruling.source, ruling.target, ruling.shape, seed)


@lru_cache(CONTENTS_KEPT)
def _contents(source: Format, target: Format, shape: Shape, seed: int) -> tuple[Bits, ...]:
    tensors = []
    for raw in _memories(source, target, _size(source, shape), seed):
        tensors.append(_tensor_of(source, shape, raw))
        if not raw.size:
            break
    return tuple(tensors)


def _size(source: Format, shape: Shape) -> int:
    return prod(shape) * np.dtype(source.storage).itemsize


def _tensor_of(source: Format, shape: Shape, raw: NDArray[np.uint8]) -> Bits:
    """Return a read-only tensor of these bytes, with bits that its format lacks set to zero."""
    storage = np.dtype(source.storage)
    bits: Bits = raw.view(storage).copy()
    if source.bits < 8 * storage.itemsize:
        bits &= storage.type(source.mask)
    bits.flags.writeable = False
    return bits.reshape(shape)


def _memories(source: Format, target: Format, size: int, seed: int) -> Iterator[NDArray[np.uint8]]:
    """Yield rising bytes, set bits, floats that a cast by value would change, and random bytes.

    No tensor consists of equal elements: XLA stores such a constant as one element, and does not
    fold its bitcast.
    """
    yield _rising_bytes(1, size)
    set_bits, itemsize = np.full(size, 0xFF, np.uint8), np.dtype(source.storage).itemsize
    set_bits[max(size - itemsize, itemsize) :] = 0
    yield set_bits
    for part in map(_part, dict.fromkeys((source, target))):
        if part.kind == "float":
            yield _fragile_bytes(part.name, size)
    yield _random_bytes(seed, size)


def _rising_bytes(first: int, size: int) -> NDArray[np.uint8]:
    return (np.arange(first, first + size) % 251).astype(np.uint8)


@lru_cache(CONTENTS_KEPT)
def _random_bytes(seed: int, size: int) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, size, np.uint8)


@lru_cache(CONTENTS_KEPT)
def _fragile_bytes(name: str, size: int) -> NDArray[np.uint8]:
    form = format_named(name)
    return np.resize(np.array(_fragile_floats(form), form.storage).view(np.uint8), size)


def _part(form: Format) -> Format:
    """Return the format of a complex number's two parts, or ``form`` itself if it is real."""
    return format_named(form.entry.part or form.name)


def _fragile_floats(form: Format) -> list[int]:
    """The first NaN of each sign (signaling, if the format has such), -0, a subnormal, the largest.

    The number of patterns is odd, so that elements made of 2, 4 or 8 of them differ.
    """
    nans = (codes[0] for codes in form.nan_codes)
    patterns = list(dict.fromkeys((*nans, form.sign_bit, 1, form.max_code)))
    return patterns if len(patterns) % 2 else [*patterns, form.one_code]


def _special_floats(form: Format) -> list[int]:
    """Infinities, and quiet NaNs with a payload of each sign: what a cast may change."""
    infinity = [form.infinity_code] if form.entry.infinity else []
    nans = [codes[len(codes) // 2 + 1] for codes in form.nan_codes if len(codes) > 2]
    return [*infinity, *(each | form.sign_bit for each in infinity), *nans]


def promised_memory(case: Case, ruling: BitcastRuling) -> PromiseEntry | None:
    """Return the promise that a bitcast does not copy; None without promise, result or elements."""
    if ruling.result is None or 0 in ruling.shape:
        return None
    return document_named(case.document).entry.promises().get(NOT_COPIED)


def further_tensors(
    case: Case, rules: BitcastRuling, settings: Settings
) -> Iterator[FurtherTensor]:
    """Yield tensors with which to request a case besides its ``contents``.

    A worked example and an open case have none. Tensors with storage offsets go with a pair's first
    row and matrix, each other tensor with the listed case that is most like it.
    """
    if case.example is not None or rules.is_open:
        return
    pair = BitcastPair(case.document, case.version, case.source, case.target)
    listed, seed = _listed(pair), settings.seed
    yield from _others(pair, seed, settings.draws(case, DRAWS)).get(rules.shape, ())
    firsts = {len(each.shape): each.shape for each in reversed(listed) if _is_kept_row(each)}
    if firsts.get(len(rules.shape)) != rules.shape:
        return
    yield from _in_storage(pair, rules)


def _in_storage(pair: BitcastPair, rules: BitcastRuling) -> Iterator[FurtherTensor]:
    """Yield tensors with storage offsets; an offset not divisible by ``pair.parts`` is rejected.

    There are none if the document does not limit storage offsets. An offset of whole vectors is
    left out, since such a tensor lies as one without an offset.
    """
    case = pair.case(rules.shape)
    promise = document_named(case.document).entry.promises().get(STORAGE_OFFSET)
    if promise is None:
        return
    bits = _counted(pair.source, rules.shape, 0)
    for offset in sorted({1, pair.parts, pair.parts + 1}):
        if offset * bits.itemsize % NATURAL:
            ruling = rules
            if offset % pair.parts:
                ruling = replace(
                    rules,
                    rule=STORAGE_OFFSET,
                    clause=promise.clause,
                    level=promise.level,
                    is_rejection=True,
                    result=None,
                )
            laid = with_layout(bits, Layout(_strides(rules.shape), offset))
            yield FurtherTensor(case, ruling, laid, f"storage offset {offset}", in_storage=True)


def _is_kept_row(ruling: BitcastRuling) -> bool:
    is_row = len(ruling.shape) in (1, 2) and 0 not in ruling.shape
    return is_row and ruling.result is not None and ruling.keeps_bits


@lru_cache(PAIRS_KEPT)
def _listed(pair: BitcastPair) -> list[BitcastRuling]:
    """Return the rulings of a pair in the shapes that its document lists for every pair."""
    shapes = shapes_between(pair.entry.shapes, pair.widths)
    return [bitcast_ruling(pair.case(shape)) for shape in shapes]


@lru_cache(PAIRS_KEPT)
def _others(pair: BitcastPair, seed: int, draws: int) -> dict[Shape, list[FurtherTensor]]:
    """Return tensors of other shapes, values and layouts, by the shapes of cases that they go with.

    A tensor goes with the case of the same rule that is most like it. So a fault of certain shapes
    seldom makes cases of other shapes fail.
    """
    ruling = cache(lambda shape: ruling_if_any(pair.case(shape)))
    tensors = [*_shaped(pair)]
    plain = ruling(pair.widened(SQUARE))
    if plain is not None and plain.result is not None and plain.keeps_bits:
        promise = promised_memory(pair.case(plain.shape), plain)
        tensors += [*_valued(pair), *_past_boundaries(pair, promise)]
        tensors += _drawn(pair, promise, seed, draws)
    cases: dict[str, list[Shape]] = {}
    for each in _listed(pair):
        cases.setdefault(each.rule, []).append(each.shape)
    traits = cache(partial(_traits, pair.widths.ratio))
    found: dict[Shape, list[FurtherTensor]] = {}
    for bits, layout in tensors:
        takes = ruling(bits.shape)
        if takes is not None and not takes.is_open and takes.rule in cases:
            nearest = _most_alike(traits, bits.shape, cases[takes.rule])
            further = FurtherTensor(pair.case(bits.shape), takes, bits, layout)
            found.setdefault(nearest, []).append(further)
    return found


def _most_alike(traits: Callable[[Shape], Traits], shape: Shape, cases: Sequence[Shape]) -> Shape:
    """The first case that shares the most leading traits with a shape."""
    own = traits(shape)
    for count in range(len(own), 0, -1):
        for other in cases:
            if traits(other)[:count] == own[:count]:
                return other
    return cases[0]


def _traits(ratio: int, shape: Shape) -> Traits:
    return 0 in shape, bool(shape) and shape[-1] % ratio == 0, not shape


LaidBits = tuple[Bits, str]
"""A tensor, and its layout in words."""


def _shaped(pair: BitcastPair) -> Iterator[LaidBits]:
    """Yield tensors of four elements in all ranks, of one, of none, and some that fit few widths.

    A pair that is refused in every shape gets only some that fit few widths.
    """
    shapes: Sequence[Shape] = AS_THEY_ARE
    if not all(each.is_rejection for each in _listed(pair)):
        shapes = [*map(pair.widened, (*OF_FOUR, *OF_ONE, *EMPTY)), *AS_THEY_ARE]
        shapes += [(parts,) for parts in pair.unfit_lengths] + [(2, 2 * pair.parts)]
    for number, shape in enumerate(dict.fromkeys(shapes)):
        if len(shape) <= MOST_RANKS:
            yield _counted(pair.source, shape, number), ""


def _valued(pair: BitcastPair) -> Iterator[LaidBits]:
    """Yield tensors of zeros, of negative zeros, of both in turn, and of another constant.

    As numbers, both zeros are equal. Where parts are floats also infinities, and NaNs that are
    quiet and have a payload.
    """
    source, target = format_named(pair.source), format_named(pair.target)
    shape = pair.widened(SQUARE)
    size = _size(source, shape)
    parts = _part(source), _part(target)
    signed = next((part for part in parts if part.kind == "float"), parts[0])
    negative = np.array([1 << (signed.bits - 1)], signed.storage).view(np.uint8)
    rising = np.arange(1, 1 + np.dtype(source.storage).itemsize, dtype=np.uint8)
    zero = np.zeros(negative.size, np.uint8)
    for element in (zero, negative, np.concatenate((zero, negative)), rising):
        yield _tensor_of(source, shape, np.resize(element, size)), ""
    for part in dict.fromkeys(parts):
        if part.kind == "float" and (special := _special_floats(part)):
            patterns = np.array(special, part.storage).view(np.uint8)
            yield _tensor_of(source, shape, np.resize(patterns, size)), ""


def _past_boundaries(pair: BitcastPair, promise: PromiseEntry | None) -> Iterator[LaidBits]:
    """Yield a matrix that begins past a boundary of memory, at two offsets.

    If ``promise`` makes the result a view, the first offset is one at which its elements can lie.
    """
    shape = pair.widened(MATRIX)
    bits = _mixed(pair, shape)
    offset = 1 if promise is None else pair.parts
    for past in (offset, max(offset, HALF_A_VECTOR // bits.itemsize)):
        probe = Probe(shape, offset=past)
        yield probe.laid(bits), ", ".join(probe.layout_words)


def _drawn(
    pair: BitcastPair, promise: PromiseEntry | None, seed: int, number: int
) -> Iterator[LaidBits]:
    """Draw up to ``number`` tensors, in any layout unless ``promise`` makes the result a view.

    A backend may refuse to view some layouts.
    """
    chance = Random(f"{pair.document}:{pair.version}/{pair.source}/{pair.target}/{seed}")
    for _ in range(number):
        shape = pair.widened(drawn_shape(chance, may_be_empty=False))
        probe = drawn_memory(chance, shape) if promise is None else Probe(shape)
        if len(shape) <= MOST_RANKS:
            bits = probe.laid(probe.repeated(_mixed(pair, shape)))
            yield bits, ", ".join(probe.layout_words)


def _mixed(pair: BitcastPair, shape: Shape) -> Bits:
    """Return a tensor of rising bytes; with floats in the pair, every second element is special."""
    source, target = format_named(pair.source), format_named(pair.target)
    floats = [part for part in map(_part, (source, target)) if part.kind == "float"]
    raw = _rising_bytes(1, _size(source, shape)).copy()
    if floats:
        special = [*_fragile_floats(floats[0]), *_special_floats(floats[0])]
        wide = max(np.dtype(each.storage).itemsize for each in (source, target))
        elements = raw.reshape(-1, wide)[1::2]
        patterns = np.array(special, floats[0].storage).view(np.uint8)
        elements[...] = np.resize(patterns, elements.shape)
    return _tensor_of(source, shape, raw)


def _strides(shape: Shape) -> tuple[int, ...]:
    return tuple(prod(shape[place + 1 :]) for place in range(len(shape)))


@lru_cache(CONTENTS_KEPT)
def _counted(dtype: str, shape: Shape, first: int) -> Bits:
    source = format_named(dtype)
    return _tensor_of(source, shape, _rising_bytes(1 + first, _size(source, shape)))
