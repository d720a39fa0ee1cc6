"""Recorded bitcasts: the tensors of lines, what is allowed, and the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import prod
from textwrap import shorten
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
from conformance.families.cast.pair_comparison import WIDTH
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
    """Lists, spells and judges the JSON lines of a bitcast, whose inputs have the case's shape."""

    def __init__(self, case: Case) -> None:
        self._rules = bitcast_ruling(case)

    def listed(self, seed: int, max_examples: int) -> Iterator[Any]:
        """Yield the tensors of ``contents`` as JSON data, each once.

        ``max_examples`` has no effect.
        """
        source = self._rules.source
        tensors = (tensor_words(source, bits) for bits in contents(self._rules, seed))
        # Different memories may hold the same elements in a small shape.
        yield from {json_text(one): one for one in tensors}.values()

    def spelled(self, given: InputDatum) -> Any:
        """Return a line's input in the spelling of ``listed``.

        Raise CastigateError if it does not fit the case.
        """
        return tensor_words(self._rules.source, self._bits(given))

    def _bits(self, given: InputDatum) -> Bits:
        return tensor(self._rules.source, given, "input", self._rules.shape)

    def judge(self, given: InputDatum, output: OutputDatum) -> dict[str, Any]:
        """Return as data the verdict on a line's output, a tensor or an error, found as in a run.

        The data also have the rule and what it allows, and full patterns where the line does not
        spell them. Raise CastigateError if a tensor does not fit the case.
        """
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
    """Return as data the result that a ruling allows: a tensor, or its shape if the bits are open.

    Instead it is the word ``error`` if the document refuses the case, or ``anything`` if the case
    is open. If the document has two readings, return a list of what each of them allows.
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
    """Return the input tensor of a bitcast: the elements in ``words``, or rising bytes without any.

    Raises CastigateError for another number of elements than the case takes, or for one that is no
    value of the source.
    """
    ruling = bitcast_ruling(case)
    if not words:
        return next(contents(ruling, 0))
    if len(words) != prod(ruling.shape):
        count = prod(ruling.shape)
        raise CastigateError(f"{case.id} takes {count} elements as its input, not {len(words)}")
    return tensor(ruling.source, NestedDatum([*words]), "input", ruling.shape)


def explain(case: Case, question: WrittenQuestion) -> Explained:
    """Explain a bitcast of the question's elements: its rule and the allowed result.

    Raise CastigateError if these elements do not fit the case. A scale or zero point has no effect.
    """
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
    """Yield the explanation of a bitcast, with the ``answers`` in it, as lines of text."""
    allowed = explained["allowed"]
    each_allowed = allowed if isinstance(allowed, list) else [allowed]
    said = " or ".join(" ".join(_cells(each)).strip() for each in each_allowed)
    yield shorten(f"{explained['case']}: {said} is {explained['level']}", WIDTH, placeholder=" …")
    yield f"  rule      {explained['rule']}, {explained['level']}"
    yield f"  clause    {explained['clause']}"
    rows = [("input", explained["input"])]
    rows += [("allowed", each) for each in each_allowed]
    rows += [*explained["answers"].items()]
    yield from aligned_rows([(name, _cells(words)) for name, words in rows])


def _cells(words: Any) -> tuple[str, str, str]:
    """Return the three cells of a row for a tensor, an answer's error, or a word, all as data."""
    match words:
        case {"shape": shape}:
            return f"shape {format_shape(tuple(shape))}", " ".join(words.get("bits", ())), ""
        case dict():
            return ": ".join(next(iter(words.items()))), "", ""
    return str(words), "", ""


TENSOR = ShapedTensor(in_shape, answer, comes_back, bitcast_tensor)
