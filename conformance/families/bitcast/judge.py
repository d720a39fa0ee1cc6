"""Judges bitcasts: whether answers have the shape and the bits that the document requires."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from conformance.families.bitcast.bits import Bitcast, BitcastInStorage, SharesMemory, by_integer
from conformance.families.bitcast.ruling import BitcastRuling, bitcast_ruling
from conformance.families.bitcast.tensors import contents, further_tensors, promised_memory
from conformance.families.bitcast.wrongs import followed_mechanisms
from conformance.judging.answer_digests import AnswerDigester
from conformance.judging.asking import Ask, Subject
from conformance.judging.verdicts import refusal, script, without_answer
from oracles.backend.replies import Answered, Declined, NoAnswer, Raised
from oracles.backend.requests import Request
from oracles.protocol import Bits
from reports.judgement import AnswerExample, Judgement, Verdict
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
from specs.cases import Case, format_shape
from specs.formats import Format
from specs.model.document import NOT_COPIED

MOST_IN_SCRIPTS = 256
MOST_SHOWN = 8
"""The most elements of a tensor that is kept as an example."""
FaultByOne = WrongShape | WrongElement | NotRefused
BitcastFault = FaultByOne | WrongByAnyReading
AnswerTriples = Sequence[tuple[BitcastRuling, Bits, Bits]]
"""Triples of a ruling, a tensor, and the answer to it."""


def judge_bitcast(subject: Subject, case: Case) -> Ask[Judgement]:
    """Judge a bitcast by tensors, and digest the answers to them unless they vary."""
    digester = AnswerDigester()
    return digester.added_to((yield from _judge_bitcast(subject, case, digester)))


def _judge_bitcast(subject: Subject, case: Case, digester: AnswerDigester) -> Ask[Judgement]:
    """Judge a bitcast by the tensors of its case, and by further tensors if these pass.

    The first fault or missing answer decides the verdict; an allowed error is no fault. Tensors of
    the case that the backend declines are left out; if it declines all, the verdict is
    ``unsupported``. Further tensors are used only if the backend claims the document and declines
    none, and not if the subject has ``few_shapes``. A result that is copied is a problem if the
    document says that it shares memory.
    """
    rules, seed = bitcast_ruling(case), subject.settings.seed
    tensors = list(contents(rules, seed))
    # Where bits are open, ask each tensor twice, to see whether it gets the same answer again.
    leaves_open = any(map(_leaves_bits_open, rules.readings))
    times = 2 if not rules.is_open and leaves_open else 1
    requests: list[Request] = [Bitcast(case, bits) for bits in tensors for _ in range(times)]
    promise = promised_memory(case, rules)
    if promise is not None:
        requests.append(SharesMemory(case, tensors[0]))
    replies = yield requests
    rounds = [replies[at : at + times] for at in range(0, times * len(tensors), times)]
    for bits, (first, *_) in zip(tensors, rounds, strict=True):
        digester.add({"": bits}, first)
        if (rules.is_open or leaves_open) and isinstance(first, Answered):
            digester.show(_small_example(rules, bits, first.value))
    problems: list[Problem] = []
    notes: dict[str, str] = {}
    declined: list[Declined] = []
    fault: BitcastFault | None = None
    refused: Judgement | None = None
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
            unanswered = yield from _no_bitcast(subject, case, rules, reply, shown)
            if not _may_refuse(rules, reply):
                return unanswered
            refused = unanswered
            break
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
                    digester.varies |= "again" in notes
                case [missing] if not isinstance(missing, Answered):
                    return (yield from _no_bitcast(subject, case, rules, missing, None))
    if len(declined) == len(tensors):
        return (yield from _no_bitcast(subject, case, rules, declined[0], None))
    layout = ""
    copied: list[str] = []
    if fault is None and not declined and not subject.few_shapes and subject.claims(case):
        further = [*further_tensors(case, rules, subject.settings)]
        of_further = yield [
            (BitcastInStorage if each.in_storage else Bitcast)(each.case, each.bits)
            for each in further
        ]
        viewed = [
            each
            for each in further
            if not each.in_storage and promised_memory(each.case, each.ruling) is not None
        ]
        of_viewed = yield [SharesMemory(each.case, each.bits) for each in viewed]
        copied = [
            each.where
            for each, reply in zip(viewed, of_viewed, strict=True)
            if isinstance(reply, Answered) and not reply.value
        ]
        for each, reply in zip(further, of_further, strict=True):
            digester.add({each.where: each.bits}, reply)
        for each, reply in zip(further, of_further, strict=True):
            match reply:
                case Answered(answer):
                    inputs += each.bits.size
                    shown, layout = each.bits, each.layout
                    fault = fault_of(each.ruling, shown, answer)
                    answered.append((each.ruling, shown, answer))
                case Declined():
                    continue
                case missing if _may_refuse(each.ruling, missing):
                    continue
                case missing:
                    shown = each.bits
                    return (
                        yield from _no_bitcast(
                            subject, case, each.ruling, missing, shown, each.where
                        )
                    )
            if fault is not None:
                break
    if refused is not None and fault is None:
        return refused
    if fault is not None:
        problems.append(_with_details(fault, answered, layout))
    else:
        problems += map(Note, notes.values())
    if declined:
        left_out = f"{len(declined)} of {len(tensors)} tensors not asked: {declined[0].text}"
        problems.append(Note(left_out))
    if promise is not None and refused is None:
        match replies[-1]:
            case Answered(is_shared):
                if not is_shared:
                    copied.insert(0, "")
                for where in copied[:1]:
                    broken_one = NOT_COPIED, promise.clause, promise.level, "not copied"
                    problems.append(BrokenPromise(*broken_one, where=where))
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


def _small_example(rules: BitcastRuling, bits: Bits, answer: Bits) -> Iterator[AnswerExample]:
    """Yield a tensor with its answer, unless one of them has too many elements to be shown."""
    if max(bits.size, answer.size) <= MOST_SHOWN:
        yield AnswerExample(_tensor_words(rules.source, bits), _tensor_words(rules.target, answer))


def _tensor_words(form: Format, bits: Bits) -> str:
    codes = (_hexadecimal(form, each) for each in bits.reshape(-1))
    return f"shape {format_shape(bits.shape)}: {' '.join(codes)}".rstrip()


def _may_refuse(rules: BitcastRuling, reply: NoAnswer) -> bool:
    return isinstance(reply, Raised) and rules.may_refuse


def _no_bitcast(
    subject: Subject,
    case: Case,
    rules: BitcastRuling,
    missing: NoAnswer,
    bits: Bits | None,
    where: str = "",
) -> Ask[Judgement]:
    """Return the judgement on a bitcast with a request that got no answer.

    An error that the ruling allows conforms, or is open if the case is. For another error, ``bits``
    is the tensor that shows it, or None. ``where`` describes this tensor if it is not one of the
    case's own.
    """
    if isinstance(missing, Raised) and rules.may_refuse:
        note = Note(refusal(rules.error_class, missing.error))
        verdict: Verdict = "open" if rules.is_open else "conforms"
        return Judgement(case.id, subject.name, verdict, (note,))
    if isinstance(missing, Raised) and bits is not None:
        missing = Raised(missing.error, inputs=where, smallest=bits)
    return (yield from without_answer(subject, case, missing, 0))


def fault_of(ruling: BitcastRuling, bits: Bits, answer: Bits) -> BitcastFault | None:
    """Return the fault of an answer to a tensor; None if some reading of the document allows it.

    With several readings, it is a ``WrongByAnyReading`` with the fault by each of them. The ruling
    must not be open.
    """
    faults = [_fault_by(reading, bits, answer) for reading in ruling.readings]
    found = [fault for fault in faults if fault is not None]
    if len(found) < len(faults):
        return None
    first = found[0]
    if len(found) == 1:
        return first
    return WrongByAnyReading(first.rule, first.clause, first.level, tuple(found))


def _with_details(fault: BitcastFault, answered: AnswerTriples, layout: str) -> BitcastFault:
    """Return a fault with the tensor's layout, and with the mechanisms that give all these answers.

    A wrong shape has neither, and a missing refusal only the layout.
    """
    if not isinstance(fault, WrongByAnyReading):
        return _with_details_of_bits(fault, answered, layout)
    readings = (
        _with_details_of_bits(
            each,
            [(rules.readings[index], bits, answer) for rules, bits, answer in answered],
            layout,
        )
        for index, each in enumerate(fault.readings)
    )
    return replace(fault, readings=tuple(readings))


def _with_details_of_bits(fault: FaultByOne, answered: AnswerTriples, layout: str) -> FaultByOne:
    if isinstance(fault, NotRefused):
        return replace(fault, layout=layout)
    if not isinstance(fault, WrongElement):
        return fault
    return replace(fault, followed=followed_mechanisms(answered), layout=layout)


def _fault_by(ruling: BitcastRuling, bits: Bits, answer: Bits) -> FaultByOne | None:
    """Return the fault of an answer if ``ruling`` is the only reading; None if it has none."""
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
    """Return the flat index of the first wrong element, its bits and the right ones, both in hex.

    Return None if no element is wrong.
    """
    expected = by_integer(ruling, bits)
    wrong = np.flatnonzero((answer != expected).reshape(-1))
    if not wrong.size:
        return None
    first = int(wrong[0])
    got, right = (
        _hexadecimal(ruling.target, each.reshape(-1)[first]) for each in (answer, expected)
    )
    return first, got, right


def _hexadecimal(form: Format, pattern: Any) -> str:
    number = pattern.item() if isinstance(pattern, np.generic) else pattern
    code = int.from_bytes(number, "little") if isinstance(number, bytes) else int(number)
    return form.hexadecimal(code)


def _followed_reading(ruling: BitcastRuling, answer: Bits) -> BitcastRuling:
    return next((each for each in ruling.readings if each.result == answer.shape), ruling)


def _leaves_bits_open(ruling: BitcastRuling) -> bool:
    return ruling.result is not None and not ruling.keeps_bits


def _open_bits(ruling: BitcastRuling, bits: Bits, first: Bits, second: Bits) -> dict[str, str]:
    """Return notes on open bits, by key, from the two answers to a tensor that is requested twice.

    ``order`` says that the bits are not in the input's order, ``again`` that the answers differ.
    """
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
