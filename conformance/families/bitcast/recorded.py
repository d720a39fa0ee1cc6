"""Recorded bitcasts: the tensors of lines, what is allowed, and the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import prod
from typing import Any

from conformance.families.bitcast.bits import (
    Bitcast,
    answer,
    by_integer,
    comes_back,
    in_shape,
)
from conformance.families.bitcast.judge import fault_of
from conformance.families.bitcast.ruling import BitcastRuling, bitcast_ruling
from conformance.families.bitcast.tensors import contents
from conformance.families.family import Explained, ShapedTensor, WrittenQuestion
from conformance.families.value_spelling import (
    ErrorDatum,
    InputDatum,
    NestedDatum,
    OutputDatum,
    json_text,
    patterns_of_line,
    tensor,
    tensor_words,
)
from conformance.judging.asking import Ask, ask
from conformance.judging.values import no_answer
from oracles.backend.replies import Answered
from oracles.protocol import Bits
from reports.counterexample.drawing import aligned_rows
from specs.cases import Case, format_shape
from specs.errors import CastigateError


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
        """Return the verdict on an output, or an error, by the same comparison as in a run."""
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
    """Return the tensor that is allowed, only its shape if the bits are open, or one word.

    The word is ``error`` or ``anything``. If the document has two readings, return a list of what
    each of them allows.
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


def bitcast_tensor(case: Case, words: Sequence[str]) -> Bits:
    """Return the input tensor of a bitcast: the elements given, or rising bytes if none are.

    Raises CastigateError if there are more or fewer elements than the case takes.
    """
    ruling = bitcast_ruling(case)
    if not words:
        return next(contents(ruling, 0))
    if len(words) != prod(ruling.shape):
        count = prod(ruling.shape)
        raise CastigateError(f"{case.id} takes {count} elements as its input, not {len(words)}")
    return tensor(ruling.source, NestedDatum([*words]), "input", ruling.shape)


def explain(case: Case, question: WrittenQuestion) -> Explained:
    """Return the rule and the allowed result of a bitcast of the question's elements."""
    bits = bitcast_tensor(case, question.inputs)
    ruling = bitcast_ruling(case)
    told = {
        "case": case.id,
        "input": tensor_words(ruling.source, bits),
        "rule": ruling.rule,
        "level": ruling.level,
        "clause": ruling.clause,
        "allowed": _allowed(ruling, bits),
    }
    return Explained(told, partial(_answer, case, ruling, bits), _lines)


def _allowed(ruling: BitcastRuling, bits: Bits) -> Any:
    allowed = allowed_tensor(ruling, bits)
    return f"error {ruling.error_class}" if ruling.error_class else allowed


def _answer(case: Case, ruling: BitcastRuling, bits: Bits) -> Ask[dict[str, Any]]:
    match (yield from ask(Bitcast(case, bits))):
        case Answered(answer):
            return tensor_words(ruling.target, answer)
        case missing:
            return no_answer(missing)


def _lines(explained: dict[str, Any]) -> Iterator[str]:
    """Yield the explanation of a bitcast as lines."""
    yield explained["case"]
    yield f"  rule      {explained['rule']}, {explained['level']}"
    yield f"  clause    {explained['clause']}"
    allowed = explained["allowed"]
    rows = [("input", explained["input"])]
    rows += [("allowed", each) for each in (allowed if isinstance(allowed, list) else [allowed])]
    rows += [*explained["answers"].items()]
    yield from aligned_rows([(name, _cells(words)) for name, words in rows])


def _cells(words: Any) -> tuple[str, str, str]:
    """Return a row's cells: a tensor's shape and elements, or the words in its place."""
    match words:
        case {"shape": shape}:
            return f"shape {format_shape(tuple(shape))}", " ".join(words.get("bits", ())), ""
        case dict():
            return ": ".join(next(iter(words.items()))), "", ""
    return str(words), "", ""


TENSOR = ShapedTensor(in_shape, answer, comes_back, bitcast_tensor)
