"""The verdict on a recorded bitcast, by the same comparison as in a run."""

from __future__ import annotations

from typing import Any

from conformance.families.bitcast.judge import fault_of
from conformance.value_spelling import tensor_words
from oracles.protocol import Bits
from oracles.reference.bitcast_bits import by_integer
from specs.bitcast_ruling import BitcastRuling


def judge_bitcast(ruling: BitcastRuling, bits: Bits, answer: Bits | None) -> dict[str, Any]:
    """Verdict, rule, and what is allowed; an answer of None stands for an error."""
    verdict, level = "conforms", ruling.level
    fault = fault_of(ruling, bits, answer) if answer is not None and not ruling.is_open else None
    if ruling.is_open:
        verdict = "open"
    elif fault is not None or (answer is None and not ruling.may_refuse):
        level = fault.level if fault is not None else level
        verdict = "violates" if level == "required" else "deviates"
    return {
        "verdict": verdict,
        "rule": ruling.rule,
        "level": level,
        "clause": ruling.clause,
        "allowed": allowed_tensor(ruling, bits),
    }


def allowed_tensor(ruling: BitcastRuling, bits: Bits) -> list[Any] | dict[str, Any] | str:
    """The tensor that must be returned, only its shape where the bits are open, or one word.

    If the document has two readings, a list of what each of them allows.
    """
    found = [_allowed_by(reading, bits) for reading in ruling.readings]
    return found if len(found) > 1 else found[0]


def _allowed_by(ruling: BitcastRuling, bits: Bits) -> dict[str, Any] | str:
    if ruling.is_rejection:
        return "error"
    if ruling.result is None:
        return "anything"
    if not ruling.keeps_bits:
        return {"shape": list(ruling.result)}
    return tensor_words(ruling.target, by_integer(ruling, bits))
