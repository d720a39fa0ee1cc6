"""A bitcast meets an oracle: its shape, its bits, or its refusal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.judging.answer_form import one_line, stored
from oracles.protocol import Bits, Oracle, Unsupported, WithBitcast, WithBitcastMemory
from oracles.reference.bitcast_bits import by_integer
from reports.diff.judgement import Fault
from specs.bitcast_ruling import BitcastRuling
from specs.cases import Case
from specs.formats import Format, format_named
from specs.loader import document_named
from specs.model.document import NOT_COPIED

ANY_BYTE = 0xFF


def ask(oracle: Oracle, case: Case, bits: Bits) -> object:
    """What an oracle gives; one without bitcasts offers none."""
    if not isinstance(oracle, WithBitcast):
        raise Unsupported(f"{oracle.name} has no bitcast")
    return oracle.bitcast(case, bits)


def contents(ruling: BitcastRuling, seed: int) -> Iterator[Bits]:
    """The tensors that a case is asked with; one without elements is asked once."""
    storage = np.dtype(ruling.source.storage)
    for raw in _memories(ruling, prod(ruling.shape) * storage.itemsize, seed):
        bits: Bits = raw.view(storage).copy()
        if ruling.source.bits < 8 * storage.itemsize:
            bits &= storage.type(ruling.source.mask)
        yield bits.reshape(ruling.shape)
        if not bits.size:
            return


def _memories(ruling: BitcastRuling, size: int, seed: int) -> Iterator[NDArray[np.uint8]]:
    """Rising bytes, set bits, what casts are wont to change about floats, and random bytes.

    No tensor has equal elements only: XLA stores such a constant as one element and does not fold
    its bitcast.
    """
    yield (np.arange(1, size + 1) % 251).astype(np.uint8)
    set_bits, itemsize = np.full(size, 0xFF, np.uint8), np.dtype(ruling.source.storage).itemsize
    set_bits[max(size - itemsize, itemsize) :] = 0
    yield set_bits
    for form in dict.fromkeys((ruling.source, ruling.target)):
        part = format_named(form.entry.part or form.name)
        if part.kind == "float":
            telling = np.array(_telling(part), part.storage).view(np.uint8)
            yield np.resize(telling, size)
    yield np.random.default_rng(seed).integers(0, 256, size, np.uint8)


def _telling(form: Format) -> list[int]:
    """The first NaN of each sign, which signals where any does; -0, a subnormal, the largest.

    An odd number of patterns, so that elements made of 2, 4 or 8 of them differ.
    """
    nans = (codes[0] for codes in form.nan_codes)
    patterns = list(dict.fromkeys((*nans, form.sign_bit, 1, form.max_code)))
    return patterns if len(patterns) % 2 else [*patterns, form.one_code]


def fault_of(ruling: BitcastRuling, bits: Bits, answer: object) -> Fault | None:
    """What is wrong about an answer by every reading of the document, if anything is."""
    form = answer_form(ruling, answer)
    found: Fault | None = None
    for reading in ruling.readings:
        fault = _fault_by(reading, bits, form)
        if fault is None:
            return None
        found = replace(found, message=f"{found.message}; {fault.message}") if found else fault
    return found


def _fault_by(ruling: BitcastRuling, bits: Bits, form: Bits) -> Fault | None:
    """What is wrong about an answer by one reading."""
    fault = partial(Fault, "answer", ruling.rule, ruling.clause)
    if ruling.is_rejection:
        wanted = f" with {ruling.error_class}" if ruling.error_class else ""
        message = f"shape {bits.shape} is not refused{wanted}, but gives shape {form.shape}"
        return fault(ruling.level, message)
    if form.shape != ruling.result:
        message = f"shape {bits.shape} gives shape {form.shape} instead of {ruling.result}"
        return fault(ruling.level, message)
    changed = _changed(ruling, bits, form) if ruling.keeps_bits else ""
    return fault(ruling.bits_level, changed) if changed else None


def _changed(ruling: BitcastRuling, bits: Bits, form: Bits) -> str:
    """The first element whose bits are not those that the input has in its place."""
    expected = by_integer(ruling, bits)
    wrong = np.flatnonzero((form != expected).reshape(-1))
    if not wrong.size:
        return ""
    first = int(wrong[0])
    got, wanted = (_shown(ruling.target, each.reshape(-1)[first]) for each in (form, expected))
    return f"shape {bits.shape}: element {first} is {got} instead of {wanted}"


def copy_fault(oracle: Oracle, case: Case, ruling: BitcastRuling, seed: int) -> Fault | None:
    """A copy where the page promises none; a tensor without elements has no memory to share."""
    promise = document_named(case.document).entry.promises().get(NOT_COPIED)
    judged = ruling.result is not None and 0 not in ruling.shape
    if promise is None or not judged or not isinstance(oracle, WithBitcastMemory):
        return None
    try:
        is_shared = oracle.bitcast_shares_memory(case, next(contents(ruling, seed)).copy())
    except Unsupported:
        return None
    if is_shared:
        return None
    return Fault("answer", NOT_COPIED, promise.clause, promise.level, "the result is a copy")


def answer_form(ruling: BitcastRuling, answer: object) -> Bits:
    """The answer, if it is an array of the target's patterns, of whatever shape.

    A bitcast moves bytes, and no document says which of them a bool may hold: accept every byte.
    """
    is_bool = ruling.target.kind == "boolean"
    return stored(ruling.target, answer, ANY_BYTE if is_bool else None)


def _shown(form: Format, pattern: Any) -> str:
    number = pattern.item() if isinstance(pattern, np.generic) else pattern
    code = int.from_bytes(number, "little") if isinstance(number, bytes) else int(number)
    return form.hexadecimal(code)


@dataclass(frozen=True)
class Outcome:
    """What came of asking one bitcast; ``inputs`` counts the elements that were answered."""

    fault: Fault | None
    inputs: int
    open_inputs: int
    message: str


def outcome_of(ruling: BitcastRuling, seed: int, give: Callable[[Bits], object]) -> Outcome:
    """Ask with one tensor after another, up to the first fault.

    A tensor that the backend does not support is left out; if it supports none, ``Unsupported``.
    """
    fault, asked, tensors = None, 0, list(contents(ruling, seed))
    left_out: list[Unsupported] = []
    notes: dict[str, str] = {}
    for bits in tensors:
        try:
            answer = give(bits.copy())
        except Unsupported as reason:
            left_out.append(reason)
            continue
        asked += bits.size
        if ruling.is_open:
            answer_form(ruling, answer)
            continue
        fault = fault_of(ruling, bits, answer)
        if fault is not None:
            break
        reading = _followed(ruling, answer_form(ruling, answer))
        if _leaves_bits_open(reading):
            notes = _open_bits(reading, bits, answer, give(bits.copy())) | notes
    if len(left_out) == len(tensors):
        raise left_out[0]
    said = [fault.message] if fault is not None else list(notes.values())
    if left_out:
        said.append(f"{len(left_out)} of {len(tensors)} tensors not asked: {one_line(left_out[0])}")
    is_open = ruling.is_open or _leaves_bits_open(ruling)
    return Outcome(fault, asked, asked if is_open else 0, "; ".join(said))


def _followed(ruling: BitcastRuling, form: Bits) -> BitcastRuling:
    """The reading of the document that a right answer follows."""
    return next((each for each in ruling.readings if each.result == form.shape), ruling)


def _leaves_bits_open(ruling: BitcastRuling) -> bool:
    """Whether the document gives a shape, but not the bits in it."""
    return ruling.result is not None and not ruling.keeps_bits


def _open_bits(ruling: BitcastRuling, bits: Bits, answer: object, again: object) -> dict[str, str]:
    """How open bits differ from the input's in memory order, and from one answer to the next."""
    first, second = answer_form(ruling, answer), answer_form(ruling, again)
    notes: dict[str, str] = {}
    if changed := _changed(ruling, bits, first):
        notes["order"] = f"open bits are not in the input's order: {changed}"
    if first.shape != second.shape or (first != second).any():
        notes["again"] = "open bits change: the same tensor, asked twice, gets two answers"
    return notes
