"""`castigate explain` of a bitcast: the tensor that must be returned, and the answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import prod
from typing import Any

from conformance.families.bitcast.recorded import allowed_tensor
from conformance.families.bitcast.tensors import contents
from conformance.families.family import Explained, Question
from conformance.judging.asking import Ask, ask
from conformance.judging.values import no_answer
from conformance.value_spelling import NestedDatum, tensor, tensor_words
from oracles.backend.replies import Answered
from oracles.backend.requests import Bitcast
from oracles.protocol import Bits
from reports.counterexample.drawing import aligned_rows
from specs.bitcast_ruling import BitcastRuling, bitcast_ruling
from specs.bitcast_shapes import format_shape
from specs.cases import Case
from specs.errors import CastigateError


def bitcast_tensor(case: Case, words: Sequence[str]) -> Bits:
    """The input tensor of a bitcast: the elements given, or rising bytes if none are."""
    ruling = bitcast_ruling(case)
    if not words:
        return next(contents(ruling, 0))
    if len(words) != prod(ruling.shape):
        count = prod(ruling.shape)
        raise CastigateError(f"{case.id} takes {count} elements as its input, not {len(words)}")
    return tensor(ruling.source, NestedDatum([*words]), "input", ruling.shape)


def explain(case: Case, question: Question) -> Explained:
    """Explain one bitcast."""
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
    """The explanation of a bitcast as lines."""
    yield explained["case"]
    yield f"  rule      {explained['rule']}, {explained['level']}"
    yield f"  clause    {explained['clause']}"
    allowed = explained["allowed"]
    rows = [("input", explained["input"])]
    rows += [("allowed", each) for each in (allowed if isinstance(allowed, list) else [allowed])]
    rows += [*explained["answers"].items()]
    yield from aligned_rows([(name, _cells(words)) for name, words in rows])


def _cells(words: Any) -> tuple[str, str, str]:
    """A tensor's shape and elements, or the words in its place."""
    match words:
        case {"shape": shape}:
            return f"shape {format_shape(tuple(shape))}", " ".join(words.get("bits", ())), ""
        case dict():
            return ": ".join(next(iter(words.items()))), "", ""
    return str(words), "", ""
