"""A bitcast meets an oracle: its shape, its bits, or its refusal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.form import stored
from oracles.protocol import Bits, Oracle, Unsupported, WithBitcast, WithBitcastMemory
from oracles.reference.bitcasting import by_integer
from reports.judgement import Fault
from specs.bitcast_ruling import BitcastRuling
from specs.cases import Case
from specs.document import NOT_COPIED
from specs.formats import Format, format_named
from specs.load import document_named


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
    """Rising bytes, set bits, what casts are wont to change about floats, and random bytes."""
    yield (np.arange(1, size + 1) % 251).astype(np.uint8)
    yield np.full(size, 0xFF, np.uint8)
    for form in dict.fromkeys((ruling.source, ruling.target)):
        part = format_named(form.entry.part or form.name)
        if part.kind == "float":
            telling = np.array(_telling(part), part.storage).view(np.uint8)
            yield np.resize(telling, size)
    yield np.random.default_rng(seed).integers(0, 256, size, np.uint8)


def _telling(form: Format) -> list[int]:
    """The first NaN of each sign, which signals where any does; -0, a subnormal, the largest."""
    return [*(codes[0] for codes in form.nan_codes), form.sign_bit, 1, form.max_code]


def fault_of(ruling: BitcastRuling, bits: Bits, answer: object) -> Fault | None:
    """What is wrong about an answer, if anything is."""
    said = _said(ruling, bits, answer)
    return _fault(ruling, said) if said else None


def _fault(ruling: BitcastRuling, said: str) -> Fault:
    return Fault("answer", ruling.rule, ruling.clause, ruling.level, said)


def copy_fault(oracle: Oracle, case: Case, ruling: BitcastRuling, seed: int) -> Fault | None:
    """A copy where the page promises none; a tensor without elements has no memory to share."""
    promise = document_named(case.document).entry.promises().get(NOT_COPIED)
    judged = ruling.result is not None and 0 not in ruling.shape
    if promise is None or not judged or not isinstance(oracle, WithBitcastMemory):
        return None
    if oracle.bitcast_shares_memory(case, next(contents(ruling, seed)).copy()):
        return None
    return Fault("answer", NOT_COPIED, promise.clause, promise.level, "the result is a copy")


def _said(ruling: BitcastRuling, bits: Bits, answer: object) -> str:
    form = answer_form(ruling, answer)
    if ruling.is_rejection:
        wanted = f" with {ruling.error_class}" if ruling.error_class else ""
        return f"shape {bits.shape} is not refused{wanted}, but gives shape {form.shape}"
    if form.shape != ruling.result:
        return f"shape {bits.shape} gives shape {form.shape} instead of {ruling.result}"
    if not ruling.keeps_bits:
        return ""
    expected = by_integer(ruling, bits)
    wrong = np.flatnonzero((form != expected).reshape(-1))
    if not wrong.size:
        return ""
    first = int(wrong[0])
    got, wanted = (_shown(ruling.target, each.reshape(-1)[first]) for each in (form, expected))
    return f"shape {bits.shape}: element {first} is {got} instead of {wanted}"


def answer_form(ruling: BitcastRuling, answer: object) -> Bits:
    """The answer, if it is an array of the target's patterns, of whatever shape."""
    return stored(ruling.target, answer)


def _shown(form: Format, pattern: Any) -> str:
    number = pattern.item() if isinstance(pattern, np.generic) else pattern
    code = int.from_bytes(number, "little") if isinstance(number, bytes) else int(number)
    return form.hexadecimal(code)


def first_fault(
    ruling: BitcastRuling, seed: int, give: Callable[[Bits], object]
) -> tuple[Fault | None, int]:
    """The first thing wrong among all contents, and how many elements were asked."""
    asked = 0
    for bits in contents(ruling, seed):
        answer = give(bits.copy())
        asked += bits.size
        if ruling.is_open:
            answer_form(ruling, answer)
            continue
        fault = fault_of(ruling, bits, answer)
        if fault is not None:
            return fault, asked
    return None, asked
