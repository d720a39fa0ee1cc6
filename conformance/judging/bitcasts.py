"""Bitcasts: the tensors to ask with, and what is wrong about the shape or bits of an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.judging.answers import (
    Answered,
    Declined,
    NoAnswer,
    Raised,
    Unanswered,
    stored,
    value_of,
)
from oracles.protocol import Bits, Oracle, Unsupported, WithBitcast, WithBitcastMemory
from oracles.reference.bitcast_bits import by_integer
from reports.diff.judgement import Fault
from specs.bitcast_ruling import BitcastRuling
from specs.cases import Case
from specs.formats import Format, format_named
from specs.loader import document_named
from specs.model.document import NOT_COPIED, PromiseEntry

ANY_BYTE = 0xFF
CONTENTS_KEPT = 256


def bitcast_by(oracle: Oracle, case: Case, ruling: BitcastRuling, bits: Bits) -> Bits:
    """Ask for a bitcast, and return its answer, an array of the target's patterns.

    A bitcast moves bytes, and no document says which of them a bool may hold: accept every byte.
    """
    if not isinstance(oracle, WithBitcast):
        raise Unsupported(f"{oracle.name} has no bitcast")
    is_bool = ruling.target.kind == "boolean"
    return stored(ruling.target, oracle.bitcast(case, bits), ANY_BYTE if is_bool else None)


def contents(ruling: BitcastRuling, seed: int) -> Iterator[Bits]:
    """The tensors to ask a case with; a single one if its shape has no elements."""
    yield from _contents(ruling.source, ruling.target, ruling.shape, seed)


@lru_cache(CONTENTS_KEPT)
def _contents(
    source: Format, target: Format, shape: tuple[int, ...], seed: int
) -> tuple[Bits, ...]:
    storage, tensors = np.dtype(source.storage), []
    for raw in _memories(source, target, prod(shape) * storage.itemsize, seed):
        bits: Bits = raw.view(storage).copy()
        if source.bits < 8 * storage.itemsize:
            bits &= storage.type(source.mask)
        bits.flags.writeable = False
        tensors.append(bits.reshape(shape))
        if not bits.size:
            break
    return tuple(tensors)


def requested_tensors(ruling: BitcastRuling, seed: int) -> Iterator[Bits]:
    """The tensors in the order in which ``ask_bitcast`` asks them, if it finds no fault."""
    times = 2 if not ruling.is_open and _leaves_bits_open(ruling) else 1
    for bits in contents(ruling, seed):
        yield from [bits] * times


def _memories(source: Format, target: Format, size: int, seed: int) -> Iterator[NDArray[np.uint8]]:
    """Rising bytes, set bits, floats that a cast by value would change, and random bytes.

    No tensor consists of equal elements: XLA stores such a constant as one element, and does not
    fold its bitcast.
    """
    yield (np.arange(1, size + 1) % 251).astype(np.uint8)
    set_bits, itemsize = np.full(size, 0xFF, np.uint8), np.dtype(source.storage).itemsize
    set_bits[max(size - itemsize, itemsize) :] = 0
    yield set_bits
    for form in dict.fromkeys((source, target)):
        part = format_named(form.entry.part or form.name)
        if part.kind == "float":
            fragile = np.array(_fragile_floats(part), part.storage).view(np.uint8)
            yield np.resize(fragile, size)
    yield np.random.default_rng(seed).integers(0, 256, size, np.uint8)


def _fragile_floats(form: Format) -> list[int]:
    """The first NaN of each sign (signaling, if the format has such), -0, a subnormal, the largest.

    The number of patterns is odd, so that elements made of 2, 4 or 8 of them differ.
    """
    nans = (codes[0] for codes in form.nan_codes)
    patterns = list(dict.fromkeys((*nans, form.sign_bit, 1, form.max_code)))
    return patterns if len(patterns) % 2 else [*patterns, form.one_code]


def fault_of(ruling: BitcastRuling, bits: Bits, answer: Bits) -> Fault | None:
    """Describe the fault that every reading of the document finds; None if one finds none."""
    found: Fault | None = None
    for reading in ruling.readings:
        fault = _fault_by(reading, bits, answer)
        if fault is None:
            return None
        found = replace(found, message=f"{found.message}; {fault.message}") if found else fault
    return found


def _fault_by(ruling: BitcastRuling, bits: Bits, answer: Bits) -> Fault | None:
    """Describe the fault of an answer by one reading; None if it has none."""
    fault = partial(Fault, "answer", ruling.rule, ruling.clause)
    if ruling.is_rejection:
        wanted = f" with {ruling.error_class}" if ruling.error_class else ""
        message = f"shape {bits.shape} is not refused{wanted}, but gives shape {answer.shape}"
        return fault(ruling.level, message)
    if answer.shape != ruling.result:
        message = f"shape {bits.shape} gives shape {answer.shape} instead of {ruling.result}"
        return fault(ruling.level, message)
    changed = _changed_element(ruling, bits, answer) if ruling.keeps_bits else ""
    return fault(ruling.bits_level, changed) if changed else None


def _changed_element(ruling: BitcastRuling, bits: Bits, answer: Bits) -> str:
    """Describe the first element whose bits are not the input's in its place; empty if none."""
    expected = by_integer(ruling, bits)
    wrong = np.flatnonzero((answer != expected).reshape(-1))
    if not wrong.size:
        return ""
    first = int(wrong[0])
    got, right = (
        _hexadecimal(ruling.target, each.reshape(-1)[first]) for each in (answer, expected)
    )
    return f"shape {bits.shape}: element {first} is {got} instead of {right}"


def promised_memory(case: Case, ruling: BitcastRuling) -> PromiseEntry | None:
    """The promise that a bitcast does not copy; None without one, and where nothing is to share."""
    if ruling.result is None or 0 in ruling.shape:
        return None
    return document_named(case.document).entry.promises().get(NOT_COPIED)


def copy_fault(oracle: Oracle, case: Case, ruling: BitcastRuling, seed: int) -> Fault | None:
    """The fault of a copy where the page promises none."""
    promise = promised_memory(case, ruling)
    if promise is None or not isinstance(oracle, WithBitcastMemory):
        return None
    try:
        is_shared = oracle.bitcast_shares_memory(case, next(contents(ruling, seed)).copy())
    except Unsupported:
        return None
    if is_shared:
        return None
    return Fault("answer", NOT_COPIED, promise.clause, promise.level, "the result is a copy")


def _hexadecimal(form: Format, pattern: Any) -> str:
    number = pattern.item() if isinstance(pattern, np.generic) else pattern
    code = int.from_bytes(number, "little") if isinstance(number, bytes) else int(number)
    return form.hexadecimal(code)


@dataclass(frozen=True)
class BitcastOutcome:
    """Holds the result of one bitcast; ``inputs`` counts the elements that were answered."""

    fault: Fault | None
    shown: Bits
    inputs: int
    open_inputs: int
    message: str


def ask_bitcast(
    ruling: BitcastRuling, seed: int, ask: Callable[[Bits], Answered[Bits] | NoAnswer]
) -> BitcastOutcome | NoAnswer:
    """Ask with one tensor after another, up to the first fault.

    Tensors that the backend declines are left out; if it declines all of them, so does this.
    """
    fault, asked, tensors = None, 0, list(contents(ruling, seed))
    declined: list[Declined] = []
    notes: dict[str, str] = {}
    for bits in tensors:
        match ask(bits.copy()):
            case Answered(answer):
                pass
            case Declined() as reason:
                declined.append(reason)
                continue
            case Raised() as raised:
                return replace(raised, smallest=bits)
            case missing:
                return missing
        asked += bits.size
        if ruling.is_open:
            continue
        fault = fault_of(ruling, bits, answer)
        if fault is not None:
            break
        reading = _followed_reading(ruling, answer)
        if _leaves_bits_open(reading):
            try:
                again = value_of(ask(bits.copy()))
            except Unanswered as unanswered:
                return unanswered.answer
            notes = _open_bits(reading, bits, answer, again) | notes
    if len(declined) == len(tensors):
        return declined[0]
    messages = [fault.message] if fault is not None else list(notes.values())
    if declined:
        messages.append(f"{len(declined)} of {len(tensors)} tensors not asked: {declined[0].text}")
    is_open = ruling.is_open or _leaves_bits_open(ruling)
    return BitcastOutcome(fault, bits, asked, asked if is_open else 0, "; ".join(messages))


def _followed_reading(ruling: BitcastRuling, answer: Bits) -> BitcastRuling:
    """The reading of the document that a right answer follows."""
    return next((each for each in ruling.readings if each.result == answer.shape), ruling)


def _leaves_bits_open(ruling: BitcastRuling) -> bool:
    """Whether the document names a shape, but not the bits in it."""
    return ruling.result is not None and not ruling.keeps_bits


def _open_bits(ruling: BitcastRuling, bits: Bits, first: Bits, second: Bits) -> dict[str, str]:
    """Notes on open bits: how they differ from the input's order, and between two answers."""
    notes: dict[str, str] = {}
    if changed := _changed_element(ruling, bits, first):
        notes["order"] = f"open bits are not in the input's order: {changed}"
    if first.shape != second.shape or (first != second).any():
        notes["again"] = "open bits change: the same tensor, asked twice, gets two answers"
    return notes
