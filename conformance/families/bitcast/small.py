"""Small tensors of bitcasts, with their bits computed in two ways: by shifts, and as one number.

A bitcast depends on the widths of elements, and not on what their bits mean. So of all pairs with
the same widths and kinds one has a record in every shape, and the others are left out. A pair of a
float and another dtype counts as a kind of its own, because a conversion could change NaNs; such a
pair has a record of one matrix only.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

import numpy as np

from conformance.families.bitcast.bits import by_integer
from conformance.families.bitcast.ruling import BitcastRuling, bitcast_ruling, widths_of
from conformance.families.bitcast.tensors import contents
from conformance.families.small_tensors import (
    AllowedCodes,
    AllowedTensor,
    GivenTensor,
    Records,
    SmallRecord,
    agreed,
    integers,
)
from oracles.protocol import Bits
from specs.cases import Case
from specs.editions import edition
from specs.formats import Format, format_named
from specs.loader import document_named
from specs.selection import cases_of_pair

GIVEN, RETURNED = "input", "output"
SEED = 46
FIRST, STEP = 0x1B, 0x35
"""The first byte of a tensor, and how much more the next one is, modulo 256."""
MOST = 64
"""The most elements of a tensor."""
DtypeNames = tuple[str, str]
Kinds = tuple[int, int, str, str]
"""The widths and the kinds of a pair, source first."""


def small_tensors(case: Case) -> Records:
    """Return a record of a tensor in the shape of a case; the reason if there is none."""
    ruling = bitcast_ruling(case)
    reason = _untold(ruling)
    if not reason and case.example is None:
        if (case.source, case.target) not in _told(case.document, case.version):
            reason = "another pair with the same widths and kinds is told"
        elif _first_matrix(case) not in (None, case):
            reason = "a matrix of the pair is told"
    return Records((), reason) if reason else Records([_record(case, ruling, _filled(ruling))])


def _untold(ruling: BitcastRuling) -> str:
    """Return why no record can tell what a document wants of a bitcast; empty if one can."""
    if ruling.is_rejection:
        return "must be refused"
    if ruling.is_open:
        return "left open by the document"
    if ruling.alternative is not None:
        return "two shapes are allowed"
    if ruling.result is None or not ruling.keeps_bits:
        return "only the shape is required"
    is_large = max(prod(ruling.shape), prod(ruling.result)) > MOST
    return f"more than {MOST} elements" if is_large else ""


def _first_matrix(case: Case) -> Case | None:
    """Return the first case of a pair whose tensor is a matrix of elements that a record can tell.

    Return None if there is none, or not exactly one dtype of the pair is a float.
    """
    kinds = [format_named(dtype).kind for dtype in (case.source, case.target)]
    if kinds.count("float") != 1:
        return None
    for each in cases_of_pair(case.document, case.version, case.source, case.target):
        ruling = bitcast_ruling(each)
        if len(ruling.shape) == 2 and 0 not in ruling.shape and not _untold(ruling):
            return each
    return None


def _record(case: Case, ruling: BitcastRuling, bits: Bits) -> SmallRecord:
    assert ruling.result is not None
    target, given = ruling.target, integers(bits)
    codes = integers(by_integer(ruling, bits))
    agreed(case, RETURNED, codes, by_number(given, ruling.widths.source, ruling.widths.target))
    mask = max(target.mask, (1 << ruling.widths.target) - 1)
    allowed = [(AllowedCodes(code, code, mask),) for code in codes]
    recommended = range(len(codes)) if ruling.bits_level == "recommended" else ()
    return SmallRecord(
        {},
        [GivenTensor(GIVEN, ruling.source, ruling.shape, given)],
        [AllowedTensor(RETURNED, target, ruling.result, allowed, recommended)],
    )


def _filled(ruling: BitcastRuling) -> Bits:
    """Return a tensor of mixed bytes; if a dtype is a float, every other element is a special one.

    Among special floats are NaNs, of which some signal, and -0. If the target is wider, an element
    of the target counts.
    """
    bits = _mixed(ruling)
    # Between rising and random bytes, and set bits, there are special floats.
    special = [*contents(ruling, SEED)][2:-1]
    group = ruling.widths.ratio if ruling.widths.relation == "wider" else 1
    if special and bits.size % group == 0:
        bits.reshape(-1, group)[::2] = special[0].reshape(-1, group)[::2]
    return bits


def _mixed(ruling: BitcastRuling) -> Bits:
    """Return a tensor in which neighboring elements, bytes and half bytes differ."""
    storage = np.dtype(ruling.source.storage)
    size = prod(ruling.shape) * storage.itemsize
    raw = (np.arange(size) * STEP + FIRST).astype(np.uint8)
    bits: Bits = raw.view(storage).reshape(ruling.shape)
    if ruling.source.bits < 8 * storage.itemsize:
        bits &= storage.type(ruling.source.mask)
    return bits


def by_number(codes: Sequence[int], width: int, new_width: int) -> list[int]:
    """Write codes into one number, the first one lowest, and cut it into those of another width."""
    number = sum(code << width * place for place, code in enumerate(codes))
    mask = (1 << new_width) - 1
    return [number >> new_width * place & mask for place in range(len(codes) * width // new_width)]


@lru_cache(32)
def _told(document: str, version: str) -> frozenset[DtypeNames]:
    """Return the pairs of a version that stand for all others of their widths and kinds.

    Records can tell these pairs, and their dtypes differ if those of any such pair do.
    """
    found: dict[Kinds, DtypeNames] = {}
    for pair in edition(document_named(document), version).pairs():
        kinds = _kinds(document, *map(format_named, pair))
        if kinds in found and found[kinds][0] != found[kinds][1]:
            continue
        cases = cases_of_pair(document, version, *pair)
        if not all(_untold(bitcast_ruling(case)) for case in cases):
            found[kinds] = pair
    return frozenset(found.values())


def _kinds(document: str, source: Format, target: Format) -> Kinds:
    entry = document_named(document).entry.bitcast
    assert entry is not None
    widths = widths_of(entry, source, target)
    kinds = [str(each.kind) for each in (source, target)]
    if kinds.count("float") == 1:
        place = kinds.index("float")
        kinds[place] = (source, target)[place].name
    return widths.source, widths.target, kinds[0], kinds[1]
