"""Recorded bitcasts: the tensors of lines, what is allowed, and the verdict."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conformance.families.bitcast.judge import fault_of
from conformance.families.bitcast.tensors import contents
from conformance.value_spelling import (
    ErrorDatum,
    InputDatum,
    OutputDatum,
    json_text,
    patterns_of_line,
    tensor,
    tensor_words,
)
from oracles.protocol import Bits
from oracles.reference.bitcast_bits import by_integer
from specs.bitcast_ruling import BitcastRuling, bitcast_ruling
from specs.cases import Case


class BitcastLines:
    """The lines of a bitcast: tensors of its shape."""

    def __init__(self, case: Case) -> None:
        self._rules = bitcast_ruling(case)

    def listed(self, seed: int, max_examples: int) -> Iterator[Any]:
        """Yield the tensors of the tier quick, each once."""
        source = self._rules.source
        tensors = (tensor_words(source, bits) for bits in contents(self._rules, seed))
        # Different memories may hold the same elements in a small shape.
        yield from {json_text(one): one for one in tensors}.values()

    def spelled(self, given: InputDatum) -> Any:
        """Spell a tensor as ``listed`` does."""
        return tensor_words(self._rules.source, self._bits(given))

    def _bits(self, given: InputDatum) -> Bits:
        return tensor(self._rules.source, given, "input", self._rules.shape)

    def judge(self, given: InputDatum, output: OutputDatum) -> dict[str, Any]:
        """Judge an output by the same comparison as in a run."""
        rules, bits = self._rules, self._bits(given)
        verdict, level = "conforms", rules.level
        answer = fault = None
        if not isinstance(output, ErrorDatum):
            answer = tensor(rules.target, output, "output", any_byte=True)
        if rules.is_open:
            verdict = "open"
        elif answer is not None:
            fault = fault_of(rules, bits, answer)
        if not rules.is_open and (fault is not None or (answer is None and not rules.may_refuse)):
            level = fault.level if fault is not None else level
            verdict = "violates" if level == "required" else "deviates"
        return {
            **patterns_of_line((rules.source, given), (rules.target, output), rules.shape),
            "verdict": verdict,
            "rule": rules.rule,
            "level": level,
            "clause": rules.clause,
            "allowed": allowed_tensor(rules, bits),
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
