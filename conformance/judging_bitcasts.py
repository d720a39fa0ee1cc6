"""The verdict on a recorded bitcast, by the comparison that a run makes."""

from __future__ import annotations

from typing import Any

from conformance.bitcasts import fault_of
from conformance.spelling import tensor_words
from oracles.protocol import Bits
from oracles.reference.bitcasting import by_integer
from specs.bitcast_ruling import BitcastRuling


def judge_bitcast(ruling: BitcastRuling, bits: Bits, answer: Bits | None) -> dict[str, Any]:
    """Verdict, rule and what is allowed; an answer of None is an error."""
    if ruling.is_open:
        verdict = "open"
    elif not ruling.is_rejection if answer is None else fault_of(ruling, bits, answer):
        verdict = "violates" if ruling.level == "required" else "deviates"
    else:
        verdict = "conforms"
    return {
        "verdict": verdict,
        "rule": ruling.rule,
        "level": ruling.level,
        "clause": ruling.clause,
        "allowed": allowed_tensor(ruling, bits),
    }


def allowed_tensor(ruling: BitcastRuling, bits: Bits) -> dict[str, Any] | str:
    """The tensor that must come out, its shape alone where the bits are open, or one word."""
    if ruling.is_rejection:
        return "error"
    if ruling.result is None:
        return "anything"
    if not ruling.keeps_bits:
        return {"shape": list(ruling.result)}
    return tensor_words(ruling.target, by_integer(ruling, bits))
