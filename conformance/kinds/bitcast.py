"""Bitcasts: the tensors to ask with, and what is wrong about the shape or bits of an answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from conformance.kinds.asking import Ask
from conformance.kinds.scripts import script
from conformance.kinds.subject import Subject
from conformance.kinds.verdicts import refusal, without_answer
from oracles.backend.replies import Answered, Declined, NoAnswer, Raised
from oracles.backend.requests import Bitcast, Request, SharesMemory
from oracles.memory_layouts import Layout, with_layout
from oracles.protocol import Bits
from oracles.reference.bitcast_bits import by_integer
from reports.findings.bitcast_mechanisms import followed_mechanisms
from reports.judgement import Judgement
from reports.problems import (
    BrokenPromise,
    BrokenRule,
    Note,
    NotRefused,
    Problem,
    Unoffered,
    WrongByAnyReading,
    WrongElement,
    WrongShape,
)
from reports.verdicts import Verdict
from specs.bitcast_ruling import BitcastRuling, bitcast_ruling
from specs.bitcast_shapes import format_shape, shapes_between, widths_of
from specs.calls import SHAPE
from specs.cases import Case
from specs.formats import Format, format_named
from specs.loader import document_named
from specs.model.document import NOT_COPIED, PromiseEntry

CONTENTS_KEPT = 256
SHAPES_KEPT = 1024
LAID = 67
"""Tensors of this length are also asked in other layouts."""
LARGER = ((1, 31), (1, LAID), (1, 1025), (1, 4099), (2, LAID), (2, 1030))
"""Ranks of larger tensors, and how long the first dimension is at least."""
MOST_IN_SCRIPTS = 256
FaultByOne = WrongShape | WrongElement | NotRefused
Fault = FaultByOne | WrongByAnyReading
Answers = Sequence[tuple[BitcastRuling, Bits, Bits]]
"""Rulings, tensors, and the answers to them."""


def judge_bitcast(subject: Subject, case: Case) -> Ask[Judgement]:
    """Judge a bitcast with one tensor after another, up to the first fault.

    Tensors that the backend declines are left out; if it declines all of them, so does this.
    """
    rules, seed = bitcast_ruling(case), subject.settings.seed
    tensors = list(contents(rules, seed))
    # Where bits are open, it shows whether the same tensor gets the same answer again.
    leaves_open = any(map(_leaves_bits_open, rules.readings))
    times = 2 if not rules.is_open and leaves_open else 1
    requests: list[Request] = [Bitcast(case, bits) for bits in tensors for _ in range(times)]
    promise = promised_memory(case, rules)
    if promise is not None:
        requests.append(SharesMemory(case, tensors[0]))
    replies = yield requests
    rounds = [replies[at : at + times] for at in range(0, times * len(tensors), times)]
    problems: list[Problem] = []
    notes: dict[str, str] = {}
    declined: list[Declined] = []
    fault: Fault | None = None
    inputs, shown = 0, tensors[0]
    answered = [
        (rules, bits, reply.value)
        for bits, (reply, *_) in zip(tensors, rounds, strict=True)
        if isinstance(reply, Answered)
    ]
    for shown, own in zip(tensors, rounds, strict=True):
        reply, again = own[0], own[1:]
        if isinstance(reply, Declined):
            declined.append(reply)
            continue
        if not isinstance(reply, Answered):
            return (yield from _no_bitcast(subject, case, rules, reply, shown))
        answer = reply.value
        inputs += shown.size
        if rules.is_open:
            continue
        if (fault := fault_of(rules, shown, answer)) is not None:
            break
        reading = _followed_reading(rules, answer)
        if _leaves_bits_open(reading):
            match again:
                case [Answered(second)]:
                    notes = _open_bits(reading, shown, answer, second) | notes
                case [missing] if not isinstance(missing, Answered):
                    return (yield from _no_bitcast(subject, case, rules, missing, None))
    if len(declined) == len(tensors):
        return (yield from _no_bitcast(subject, case, rules, declined[0], None))
    if fault is None and not declined and not subject.few_shapes:
        larger = [*larger_tensors(subject, case, rules)] if subject.claims(case) else []
        of_larger = yield [Bitcast(each, bits) for each, bits in larger]
        for (each, bits), reply in zip(larger, of_larger, strict=True):
            match reply:
                case Answered(answer):
                    inputs += bits.size
                    ruling, shown = bitcast_ruling(each), bits
                    fault = fault_of(ruling, bits, answer)
                    answered.append((ruling, bits, answer))
                case Declined():
                    continue
                case missing:
                    return (yield from _no_bitcast(subject, case, rules, missing, bits))
            if fault is not None:
                break
    if fault is not None:
        problems.append(_with_mechanisms(fault, answered))
    else:
        problems += map(Note, notes.values())
    if declined:
        left_out = f"{len(declined)} of {len(tensors)} tensors not asked: {declined[0].text}"
        problems.append(Note(left_out))
    if promise is not None:
        match replies[-1]:
            case Answered(is_shared):
                if not is_shared:
                    copied = NOT_COPIED, promise.clause, promise.level, "not copied"
                    problems.append(BrokenPromise(*copied))
            case Declined(text):
                problems.append(Unoffered(text, f"{NOT_COPIED} is not judged"))
            case missing:
                return (yield from _no_bitcast(subject, case, rules, missing, None))
    broken = [each for each in problems if isinstance(each, BrokenRule)]
    is_open = rules.is_open or _leaves_bits_open(rules)
    return Judgement(
        case.id,
        subject.name,
        subject.graded(case, {each.level for each in broken}, rules.is_open),
        tuple(problems),
        inputs=inputs,
        open_inputs=inputs if is_open else 0,
        reproduction=(yield from script(subject, case, shown))
        if broken and shown.size <= MOST_IN_SCRIPTS
        else "",
    )


def larger_tensors(
    subject: Subject, case: Case, rules: BitcastRuling
) -> Iterator[tuple[Case, Bits]]:
    """Yield larger tensors, and ones in other layouts, each with the case that has its shape.

    The first dimension grows, and in a row the last one, which stays divisible as it is. Of the
    cases of a pair one row and one matrix may be asked so; at the tier quick it is asked one
    length. A view may refuse a layout, so one that must not copy is asked none.
    """
    if case.example is not None:
        return
    firsts = _first_shapes(case.document, case.version, case.source, case.target)
    known = [(rank, length) for rank, length in LARGER if rank in firsts]
    if firsts.get(len(rules.shape)) != rules.shape:
        return
    first, *others = rules.shape
    number = crc32(f"{case.source}/{case.target}".encode())
    asked = known if subject.settings.is_full(case) else [known[number % len(known)]]
    for rank, length in asked:
        if rank != len(rules.shape):
            continue
        shape = (-(-length // first) * first, *others)
        larger = replace(case, modes=((SHAPE, format_shape(shape)),))
        ruling = bitcast_ruling(larger)
        if ruling.rule != rules.rule:
            continue
        *_, bits = contents(ruling, subject.settings.seed)
        yield larger, bits
        if length == LAID and promised_memory(case, ruling) is None:
            yield from ((larger, with_layout(bits, each)) for each in _layouts(shape))


@lru_cache(SHAPES_KEPT)
def _first_shapes(
    document: str, version: str, source: str, target: str
) -> dict[int, tuple[int, ...]]:
    """The first shape of a row and of a matrix in which a pair keeps its bits."""
    entry = document_named(document).entry.bitcast
    assert entry is not None
    widths = widths_of(entry, format_named(source), format_named(target))
    found: dict[int, tuple[int, ...]] = {}
    for shape in shapes_between(entry.shapes, widths):
        if len(shape) in (1, 2) and 0 not in shape and len(shape) not in found:
            rules = bitcast_ruling(
                Case(document, version, source, target, ((SHAPE, format_shape(shape)),))
            )
            if rules.result is not None and rules.keeps_bits:
                found[len(shape)] = shape
    return found


def _layouts(shape: tuple[int, ...]) -> list[Layout]:
    """Layouts with steps and an odd beginning for a row; columns first for a matrix."""
    if len(shape) == 1:
        return [Layout((2,)), Layout((-1,)), Layout((1,), offset=1)]
    return [Layout(tuple(prod(shape[:place]) for place in range(len(shape))))]


def _no_bitcast(
    subject: Subject,
    case: Case,
    rules: BitcastRuling,
    missing: NoAnswer,
    bits: Bits | None,
) -> Ask[Judgement]:
    """The verdict on a bitcast that was not answered; ``bits`` are the tensor, if one shows it."""
    if isinstance(missing, Raised) and rules.may_refuse:
        note = Note(refusal(rules.error_class, missing.error))
        verdict: Verdict = "open" if rules.is_open else "conforms"
        return Judgement(case.id, subject.name, verdict, (note,))
    if isinstance(missing, Raised) and bits is not None:
        missing = Raised(missing.error, smallest=bits)
    return (yield from without_answer(subject, case, missing, 0))


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
    """Return the fault that every reading of the document finds; None if one finds none."""
    faults = [_fault_by(reading, bits, answer) for reading in ruling.readings]
    found = [fault for fault in faults if fault is not None]
    if len(found) < len(faults):
        return None
    first = found[0]
    if len(found) == 1:
        return first
    return WrongByAnyReading(first.rule, first.clause, first.level, tuple(found))


def _with_mechanisms(fault: Fault, answered: Answers) -> Fault:
    """The fault, with the mechanisms that give all these answers, by each reading."""
    if not isinstance(fault, WrongByAnyReading):
        return _with_mechanisms_of_bits(fault, answered)
    readings = (
        _with_mechanisms_of_bits(
            each, [(rules.readings[index], bits, answer) for rules, bits, answer in answered]
        )
        for index, each in enumerate(fault.readings)
    )
    return replace(fault, readings=tuple(readings))


def _with_mechanisms_of_bits(fault: FaultByOne, answered: Answers) -> FaultByOne:
    if not isinstance(fault, WrongElement):
        return fault
    return replace(fault, followed=followed_mechanisms(answered))


def _fault_by(ruling: BitcastRuling, bits: Bits, answer: Bits) -> FaultByOne | None:
    """Return the fault of an answer by one reading; None if it has none."""
    rule = ruling.rule, ruling.clause
    if ruling.is_rejection:
        shapes = bits.shape, answer.shape
        return NotRefused(*rule, ruling.level, "", *shapes, ruling.error_class)
    if answer.shape != ruling.result:
        return WrongShape(*rule, ruling.level, bits.shape, answer.shape, ruling.result)
    if not ruling.keeps_bits or (changed := _changed_element(ruling, bits, answer)) is None:
        return None
    index, got, wanted = changed
    return WrongElement(*rule, ruling.bits_level, bits.shape, index, got, wanted)


def _changed_element(
    ruling: BitcastRuling, bits: Bits, answer: Bits
) -> tuple[int, str, str] | None:
    """The first element whose bits are not the input's in its place, what it is, and should be."""
    expected = by_integer(ruling, bits)
    wrong = np.flatnonzero((answer != expected).reshape(-1))
    if not wrong.size:
        return None
    first = int(wrong[0])
    got, right = (
        _hexadecimal(ruling.target, each.reshape(-1)[first]) for each in (answer, expected)
    )
    return first, got, right


def promised_memory(case: Case, ruling: BitcastRuling) -> PromiseEntry | None:
    """The promise that a bitcast does not copy; None without one, and where nothing is to share."""
    if ruling.result is None or 0 in ruling.shape:
        return None
    return document_named(case.document).entry.promises().get(NOT_COPIED)


def _hexadecimal(form: Format, pattern: Any) -> str:
    number = pattern.item() if isinstance(pattern, np.generic) else pattern
    code = int.from_bytes(number, "little") if isinstance(number, bytes) else int(number)
    return form.hexadecimal(code)


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
        index, got, right = changed
        notes["order"] = (
            f"open bits are not in the input's order: shape {bits.shape}: "
            f"element {index} is {got} instead of {right}"
        )
    if first.shape != second.shape or (first != second).any():
        notes["again"] = "open bits change: the same tensor, asked twice, gets two answers"
    return notes
