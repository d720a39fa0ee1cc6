"""Names what is wrong with a tensor that was read: one change that explains all of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from conformance.extras.containers.parties.text_gguf import BLOCK
from oracles.memory_layouts import is_packed, pack
from oracles.protocol import Bits, Tensor
from reports.grading.allowed_answers import is_nan
from specs.formats import Format, format_named

OTHER = "other bits"


class ChangeNames(NamedTuple):
    """The names of changes that explain how a tensor differs; none if it does not.

    Each name explains all of the difference or, if ``is_mixed``, a part of it.
    """

    names: tuple[str, ...]
    is_mixed: bool = False


def explained(dtype: str, written: Bits, read: Tensor, *, is_strided: bool) -> ChangeNames:
    """Explain how the tensor that was read differs from the patterns that were written.

    The names are empty if it does not. If ``is_strided``, a reason is also that the memory layout
    is ignored.
    """
    entry = format_named(dtype)
    if read.dtype != dtype:
        same = _same_bytes(entry, written, read)
        changes = "" if same else ", and the bits change"
        return ChangeNames((f"the dtype becomes {read.dtype}{changes}",))
    if read.bits.shape != written.shape:
        return ChangeNames((_shape_fault(entry, written, read.bits),))
    if np.array_equal(written, read.bits):
        return ChangeNames(())
    row = np.ascontiguousarray(written).reshape(-1)
    found = np.ascontiguousarray(read.bits).reshape(-1)
    names = []
    for name, change in CHANGES:
        changed = change(entry, row, written)
        if changed is not None and np.array_equal(changed, found):
            names.append(name)
    if is_strided:
        names.append("the memory layout is ignored")
    if entry.kind == "complex":
        entry = format_named(entry.entry.part)
        row, found = row.view(entry.storage), found.view(entry.storage)
    tests = _element_tests(entry, row[row != found], found[row != found])
    names += [name for name, holds in tests.items() if holds.all()]
    if names:
        return ChangeNames(tuple(names))
    parts = []
    left = np.ones(int((row != found).sum()), bool)
    for name, holds in tests.items():
        if (left & holds).any():
            parts.append(name)
            left &= ~holds
    return ChangeNames((*parts, *([OTHER] if left.any() else [])), is_mixed=True)


def common_fault(found: Sequence[Sequence[str]]) -> str:
    """Return the name that explains most differences; ``found`` has the names of each.

    If several do, return the first of them, but ``OTHER`` last. There must be a name.
    """
    counts = Counter(name for names in found for name in names)
    return max(counts, key=lambda name: (counts[name], name != OTHER))


def _same_bytes(entry: Format, written: Bits, read: Tensor) -> bool:
    own = np.ascontiguousarray(written).tobytes()
    packed = pack(np.ascontiguousarray(written), entry.bits).tobytes() if is_packed(entry) else own
    return read.bits.tobytes() in (own, packed)


def _shape_fault(entry: Format, written: Bits, found: Bits) -> str:
    shape = written.shape
    if found.size and not written.size:
        return "an empty tensor gets elements"
    if found.size == written.size:
        if found.shape == shape[::-1]:
            return "the dimensions are reversed"
        return f"a tensor of {len(shape)} dimensions gets {found.ndim}"
    if is_packed(entry) and found.shape[:-1] == shape[:-1] and found.size > written.size:
        return "the unused end of the last byte becomes elements"
    if is_packed(entry) and found.size < written.size:
        return "a last byte that is not full is lost"
    return "another number of elements"


def _halves_swapped(entry: Format, row: Bits, written: Bits) -> Bits | None:
    """Return the elements of each byte in reverse order, as if the first lay in the high bits.

    Elements that a last byte lacks are zero. Return None for dtypes of other than 2 or 4 bits.
    """
    if entry.bits not in (2, 4):
        return None
    count = 8 // entry.bits
    padded = np.zeros(-(-row.size // count) * count, np.uint8)
    padded[: row.size] = row
    return padded.reshape(-1, count)[:, ::-1].reshape(-1)[: row.size]


def _tail_lost(entry: Format, row: Bits, written: Bits) -> Bits | None:
    count = {2: 4, 4: 2, 6: 4}.get(entry.bits, 0)
    if not count or not row.size % count:
        return None
    changed = row.copy()
    changed[row.size - row.size % count :] = 0
    return changed


def _bytes_of_their_own(entry: Format, row: Bits, written: Bits) -> Bits | None:
    """Return elements of one byte each, read as if several were packed in a byte."""
    if entry.bits not in (2, 4):
        return None
    spread = np.zeros(row.size * (8 // entry.bits), np.uint8)
    spread[:: 8 // entry.bits] = row
    return spread[: row.size]


def _places_of_two(entry: Format, row: Bits, written: Bits) -> Bits | None:
    """Return elements stored in words of twice their width, read as if they were adjacent."""
    if entry.bits < 8 or entry.bits > 64:
        return None
    spread = np.zeros(2 * row.size, row.dtype)
    spread[::2] = row
    return spread[: row.size]


def _numbers_of_patterns(entry: Format, row: Bits, written: Bits) -> Bits | None:
    """Return the patterns, taken for integers and converted to the floating dtype by value."""
    if entry.name == "bfloat16":
        words = row.astype(np.float32).view(np.uint32)
        rounded = words + np.uint32(0x7FFF) + (words >> np.uint32(16) & np.uint32(1))
        return (rounded >> np.uint32(16)).astype(np.uint16)
    if entry.name in ("float16", "float32", "float64"):
        with np.errstate(over="ignore"):
            return row.astype(entry.name).view(row.dtype)
    return None


def _numbers_rounded_if_odd(entry: Format, row: Bits, written: Bits) -> Bits | None:
    """Return the patterns, taken for integers and converted to bfloat16 by openvino's rounding.

    It adds half a step where the last bit kept is one.
    """
    if entry.name != "bfloat16":
        return None
    words = row.astype(np.float32).view(np.uint32)
    rounded = words + (words >> np.uint32(1) & np.uint32(0x8000))
    found: Bits = (rounded >> np.uint32(16)).astype(np.uint16)
    return found


def _bytes_reversed(entry: Format, row: Bits, written: Bits) -> Bits | None:
    if entry.bits <= 8:
        return None
    width = row.dtype.itemsize
    bytes_of = np.frombuffer(row.tobytes(), np.uint8).reshape(-1, width)
    return np.frombuffer(bytes_of[:, ::-1].tobytes(), row.dtype)


def _parts_reversed(entry: Format, row: Bits, written: Bits) -> Bits | None:
    """Return complex elements with the bytes of each part in reverse order."""
    if entry.kind != "complex":
        return None
    half = row.dtype.itemsize // 2
    bytes_of = np.frombuffer(row.tobytes(), np.uint8).reshape(-1, 2, half)
    return np.frombuffer(bytes_of[:, :, ::-1].tobytes(), row.dtype)


def _parts_swapped(entry: Format, row: Bits, written: Bits) -> Bits | None:
    if entry.kind != "complex":
        return None
    half = row.dtype.itemsize // 2
    bytes_of = np.frombuffer(row.tobytes(), np.uint8).reshape(-1, 2, half)
    return np.frombuffer(bytes_of[:, ::-1].tobytes(), row.dtype)


def _columns(entry: Format, row: Bits, written: Bits) -> Bits | None:
    return written.ravel("F") if written.ndim > 1 else None


def _columns_read(entry: Format, row: Bits, written: Bits) -> Bits | None:
    return row.reshape(written.shape, order="F").ravel() if written.ndim > 1 else None


def _neighbors_in_blocks(entry: Format, row: Bits, written: Bits) -> Bits | None:
    """Return elements packed in a byte with their neighbor, read as elements j and j + 16."""
    if row.size % BLOCK or not is_packed(entry):
        return None
    return row.reshape(-1, BLOCK // 2, 2).swapaxes(1, 2).reshape(-1)


def _halves_of_blocks(entry: Format, row: Bits, written: Bits) -> Bits | None:
    """Return elements packed in a byte as j and j + 16 of a block, read as neighbors."""
    if row.size % BLOCK or not is_packed(entry):
        return None
    return row.reshape(-1, 2, BLOCK // 2).swapaxes(1, 2).reshape(-1)


def _offset_ignored(entry: Format, row: Bits, written: Bits) -> Bits | None:
    """Return the elements moved by one along the last axis, with zero as the first of each row.

    This is what is read if the row begins one element too early, where the memory is zero.
    """
    if row.size < 2 or not written.ndim:
        return None
    changed = np.zeros(written.shape, row.dtype)
    changed[..., 1:] = written[..., :-1]
    return changed.reshape(-1)


def _offset_ignored_backwards(entry: Format, row: Bits, written: Bits) -> Bits | None:
    """Return the last element of a row with a negative stride, then zeros.

    This is what is read if the row begins at the start of its memory, before which there are zeros.
    """
    if row.size < 2 or written.ndim != 1 or written.strides[0] > 0:
        return None
    changed = np.zeros(row.size, row.dtype)
    changed[0] = row[-1]
    return changed


TensorChange = Callable[[Format, Bits, Bits], Bits | None]
"""Takes a format, a tensor's elements as a row, and the tensor; returns the changed row.

It returns None if the change cannot happen to this tensor.
"""
CHANGES: Sequence[tuple[str, TensorChange]] = (
    ("a last byte that is not full is lost", _tail_lost),
    ("the first element is taken from the high bits", _halves_swapped),
    ("elements lie in bytes of their own", _bytes_of_their_own),
    ("each element takes the place of two", _places_of_two),
    ("patterns are taken for numbers", _numbers_of_patterns),
    ("patterns are taken for numbers", _numbers_rounded_if_odd),
    ("the bytes of elements are reversed", _bytes_reversed),
    ("the bytes of both parts are reversed", _parts_reversed),
    ("the parts change places", _parts_swapped),
    ("columns are taken for rows", _columns),
    ("rows are taken for columns", _columns_read),
    ("neighbors share a byte instead of j and j + 16", _neighbors_in_blocks),
    ("j and j + 16 are taken for neighbors", _halves_of_blocks),
    ("the offset of the first element is ignored", _offset_ignored),
    ("the offset of the first element is ignored", _offset_ignored_backwards),
)
"""Changes of a whole tensor: the name of each, and a function that applies it."""


def _element_tests(entry: Format, was: Bits, now: Bits) -> dict[str, Any]:
    """Return by the name of a change a mask of the elements that it explains.

    ``was`` and ``now`` are the elements that differ, as written and as read.
    """
    tests: dict[str, Any] = {}
    if entry.kind == "float":
        was_nan, now_nan = is_nan(entry, was), is_nan(entry, now)
        quiet = was | np.array(1 << max(entry.entry.mantissa - 1, 0), was.dtype)
        sign = np.array(entry.sign_bit, was.dtype)
        exponent = np.array(((1 << entry.entry.exponent) - 1) << entry.entry.mantissa, was.dtype)
        infinite = (was & ~sign == entry.infinity_code) & entry.entry.infinity
        tests = {
            "-0 becomes 0": (was == sign) & (now == 0),
            "signaling NaN becomes quiet": was_nan & (now == quiet),
            "NaN becomes another NaN": was_nan & now_nan,
            "NaN becomes a number": was_nan & ~now_nan,
            "infinity becomes the largest number": infinite & (now & ~sign == entry.max_code),
            "a number becomes NaN": ~was_nan & now_nan,
            "subnormals become zero": (was & exponent == 0) & (now & ~sign == 0),
        }
    tests["elements become zero"] = now == 0
    if entry.kind in ("float", "integer") and entry.sign_bit:
        sign = np.array(entry.sign_bit, was.dtype)
        tests |= {
            "the sign is lost": now == was & ~sign,
            "the sign is inverted": now == was ^ sign,
        }
    return tests
