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
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from conformance.families.bitcast.ruling import (
    BitcastPair,
    BitcastRuling,
    bitcast_ruling,
    ruling_if_any,
    shapes_between,
)
from oracles.memory_layouts import NATURAL, Layout, with_layout
from oracles.protocol import Bits
from specs.cases import Case, Shape
from specs.formats import Format, format_named
from specs.loader import document_named
from specs.model.document import NOT_COPIED, STORAGE_OFFSET, PromiseEntry

CONTENTS_KEPT = 256
PAIRS_KEPT = 16
"""The cases of a pair of dtypes are judged side by side, in all documents."""
LARGER = ((1, 31), (1, 67), (1, 1025), (1, 4099), (2, 67), (2, 1030))
"""Ranks of larger tensors, and the least length of their first dimension."""
OF_FOUR: Sequence[Shape] = (
    (2, 2), (4,), (1, 2, 2), (2, 1, 2, 1), (1, 2, 1, 2, 1), (2, 1, 1, 1, 1, 2),
    (1, 1, 2, 1, 2, 1, 1), (1, 2, 1, 1, 1, 1, 2, 1),
)  # fmt: skip
"""A shape of each rank from 1 to 8, all of four elements."""
SQUARE = OF_FOUR[0]
"""The shape in which special values are asked."""
OF_ONE: Sequence[Shape] = ((1,),)
EMPTY: Sequence[Shape] = ((0,), (0, 2), (2, 0), (1, 0, 1, 2))
"""Shapes without elements; where elements widen, one dimension more, of the pair's ``parts``."""
AS_THEY_ARE: Sequence[Shape] = ((0, 3), (3, 0), (2, 3, 0), (1, 1, 1, 1, 3), (1,) * 8)
"""Shapes whose last dimension fits few widths."""
MOST_RANKS = 8
ROW, MATRIX, BATCH, IMAGES, VOLUMES = (67,), (7, 11), (3, 5, 7), (2, 3, 4, 5), (2, 3, 4, 5, 2)
"""The shapes that are asked in several layouts."""
HALF_A_VECTOR = 8
"""Bytes past a boundary at which a vector of 16 begins in the middle."""
WHOLE_BYTES = (8, 12)
"""A matrix whose rows and columns fill whole bytes, however narrow its elements are."""


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
        """The tensor in words."""
        return f"shape {self.bits.shape}" + (f", {self.layout}" if self.layout else "")


def contents(ruling: BitcastRuling, seed: int) -> Iterator[Bits]:
    """Yield the tensors to put to a case; a single one if its shape has no elements."""
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
    """The size of a tensor in bytes."""
    return prod(shape) * np.dtype(source.storage).itemsize


def _tensor_of(source: Format, shape: Shape, raw: NDArray[np.uint8]) -> Bits:
    """Return the tensor that has these bytes, with bits that its format lacks set to zero."""
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


@lru_cache(CONTENTS_KEPT)
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
    """The format of the two parts of a complex number; a real one itself."""
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
    """The promise that a bitcast does not copy; None if there is none, or no memory to share."""
    if ruling.result is None or 0 in ruling.shape:
        return None
    return document_named(case.document).entry.promises().get(NOT_COPIED)


def further_tensors(
    case: Case, rules: BitcastRuling, seed: int, is_full: bool
) -> Iterator[FurtherTensor]:
    """Yield the tensors besides its own that a case is asked.

    Larger ones are asked of a pair's first row or matrix, others of the case most like them.
    """
    if case.example is not None or rules.is_open:
        return
    pair = BitcastPair(case.document, case.version, case.source, case.target)
    listed = _listed(pair)
    yield from _others(pair).get(rules.shape, ())
    firsts = {len(each.shape): each.shape for each in reversed(listed) if _is_kept_row(each)}
    if firsts.get(len(rules.shape)) != rules.shape:
        return
    yield from _in_storage(pair, rules)
    known = [(rank, length) for rank, length in LARGER if rank in firsts]
    number = crc32(f"{case.source}/{case.target}".encode())
    for rank, length in known if is_full else [known[number % len(known)]]:
        if rank == len(rules.shape):
            yield from _larger_tensor(pair, rules, length, seed)


def _in_storage(pair: BitcastPair, rules: BitcastRuling) -> Iterator[FurtherTensor]:
    """Yield tensors with storage offsets that the ratio divides and does not, by the document.

    An offset of whole vectors is left out, since such a tensor lies as one without an offset.
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


def _larger_tensor(
    pair: BitcastPair, rules: BitcastRuling, length: int, seed: int
) -> Iterator[FurtherTensor]:
    """Yield a tensor whose first dimension is a multiple of the case's, at least ``length``.

    Nothing is yielded if another rule takes its shape.
    """
    first, *others = rules.shape
    case = pair.case((-(-length // first) * first, *others))
    ruling = bitcast_ruling(case)
    if ruling.rule == rules.rule:
        *_, bits = contents(ruling, seed)
        yield FurtherTensor(case, ruling, bits)


def _is_kept_row(ruling: BitcastRuling) -> bool:
    """Whether a ruling is about a row or a matrix with elements, whose bits must be kept."""
    is_row = len(ruling.shape) in (1, 2) and 0 not in ruling.shape
    return is_row and ruling.result is not None and ruling.keeps_bits


@lru_cache(PAIRS_KEPT)
def _listed(pair: BitcastPair) -> list[BitcastRuling]:
    """The rulings of a pair in the shapes that its document lists for every pair."""
    shapes = shapes_between(pair.entry.shapes, pair.widths)
    return [bitcast_ruling(pair.case(shape)) for shape in shapes]


@lru_cache(PAIRS_KEPT)
def _others(pair: BitcastPair) -> dict[Shape, list[FurtherTensor]]:
    """Return tensors of other shapes, values and layouts, by the shapes of cases that they go with.

    A tensor goes with the case of the same rule that is most like it. So a fault of certain shapes
    seldom makes cases of other shapes fail.
    """
    ruling = cache(lambda shape: ruling_if_any(pair.case(shape)))
    tensors = [*_shaped(pair)]
    plain = ruling(pair.widened(SQUARE))
    if plain is not None and plain.result is not None and plain.keeps_bits:
        tensors += [*_valued(pair), *_laid(pair, promised_memory(pair.case(plain.shape), plain))]
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
    """Whether a shape has no elements, a last dimension that the ratio divides, no dimensions."""
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


def _laid(pair: BitcastPair, promise: PromiseEntry | None) -> Iterator[LaidBits]:
    """Yield tensors at unusual addresses and, unless a view is promised, in unusual layouts.

    A view may refuse some layouts, and needs its elements where those of its result can lie.
    """
    shape = pair.widened(MATRIX)
    bits = _mixed(pair, shape)
    offset = 1 if promise is None else pair.parts
    rows_first = _strides(shape)
    for past in (offset, max(offset, HALF_A_VECTOR // bits.itemsize)):
        yield with_layout(bits, Layout(rows_first, past)), f"{past} past a boundary of 64 bytes"
    if promise is not None:
        return
    for each in (bits, _mixed(pair, pair.widened(WHOLE_BYTES))):
        yield _in_order(each, [*range(each.ndim)][::-1]), "columns first"
    repeated = np.broadcast_to(bits[:1], shape)
    yield with_layout(repeated, Layout((0, *rows_first[1:]))), "one row broadcast"
    column = np.broadcast_to(bits[:, :1], shape)
    yield with_layout(column, Layout((prod(shape[2:]), 0, *rows_first[2:]))), "one column broadcast"
    apart = tuple(2 * step if at == 0 else step for at, step in enumerate(rows_first))
    yield with_layout(bits, Layout(apart)), "rows apart"
    batch = _counted(pair.source, pair.widened(BATCH), 0)
    yield _in_order(batch, [1, 0]), "the first two dimensions exchanged"
    yield _in_order(batch, [0, 2, 1]), "matrices transposed"
    images = _counted(pair.source, pair.widened(IMAGES), 0)
    yield _in_order(images, [0, 1, 3, 2]), "matrices transposed"
    yield _in_order(images, [0, 2, 3, 1]), "channels last"
    if len(shape) + 3 <= MOST_RANKS:
        volumes = _counted(pair.source, pair.widened(VOLUMES), 0)
        yield _in_order(volumes, [0, 2, 3, 4, 1]), "channels last"
    row = _counted(pair.source, pair.widened(ROW), 0)
    for step in (2, 3, -1, 256):
        strides = tuple(step * each for each in _strides(row.shape))
        yield with_layout(row, Layout(strides)), f"in steps of {step}"


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


def _in_order(bits: Bits, order: Sequence[int]) -> Bits:
    """Return a tensor whose first dimensions lie in ``order`` in memory, outermost first."""
    strides, inside = [0] * bits.ndim, 1
    for dimension in reversed([*order, *range(len(order), bits.ndim)]):
        strides[dimension] = inside
        inside *= bits.shape[dimension]
    return with_layout(bits, Layout(tuple(strides)))


def _strides(shape: Shape) -> tuple[int, ...]:
    """The strides of a contiguous tensor, in elements."""
    return tuple(prod(shape[place + 1 :]) for place in range(len(shape)))


@lru_cache(CONTENTS_KEPT)
def _counted(dtype: str, shape: Shape, first: int) -> Bits:
    """A tensor of rising bytes; they begin elsewhere for each ``first``."""
    source = format_named(dtype)
    return _tensor_of(source, shape, _rising_bytes(1 + first, _size(source, shape)))
