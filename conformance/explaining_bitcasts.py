"""What a bitcast gives, the rule that says so, and what each backend answers, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

from conformance.bitcasts import answer_form, ask, contents
from conformance.explaining import no_answer
from conformance.judging_bitcasts import allowed_tensor
from conformance.meet import contained
from conformance.spelling import NestedDatum, tensor, tensor_words
from oracles.isolation.errors import Crashed
from oracles.protocol import Bits
from oracles.registry import Backend
from reports.drawing import columns
from specs.bitcast_ruling import BitcastRuling, bitcast_ruling
from specs.bitcasting import written_shape
from specs.cases import Case
from specs.errors import CastigateError


def bitcast_bits(case: Case, words: list[str]) -> Bits:
    """The tensor that a case is asked with: the elements given, or rising bytes where none are."""
    ruling = bitcast_ruling(case)
    if not words:
        return next(contents(ruling, 0))
    if len(words) != prod(ruling.shape):
        count = prod(ruling.shape)
        raise CastigateError(f"{case.id} takes {count} elements as its input, not {len(words)}")
    return tensor(ruling.source, NestedDatum([*words]), "input", ruling.shape)


def explain_bitcast(case: Case, bits: Bits, backends: list[Backend]) -> dict[str, Any]:
    """Everything about one bitcast, as data."""
    ruling = bitcast_ruling(case)
    return {
        "case": case.id,
        "input": tensor_words(ruling.source, bits),
        "rule": ruling.rule,
        "level": ruling.level,
        "clause": ruling.clause,
        "allowed": _allowed(ruling, bits),
        "answers": {backend.name: _answer(backend, case, ruling, bits) for backend in backends},
    }


def _allowed(ruling: BitcastRuling, bits: Bits) -> Any:
    allowed = allowed_tensor(ruling, bits)
    return f"error {ruling.error_class}" if ruling.error_class else allowed


def _answer(backend: Backend, case: Case, ruling: BitcastRuling, bits: Bits) -> dict[str, Any]:
    try:
        answer = contained(lambda: ask(backend.oracle, case, bits.copy()))
        return tensor_words(ruling.target, answer_form(ruling, answer))
    except (Crashed, Exception) as error:
        return no_answer(error)


def drawn_bitcast(explained: dict[str, Any]) -> Iterator[str]:
    """The same for people."""
    yield explained["case"]
    yield f"  rule      {explained['rule']}, {explained['level']}"
    yield f"  clause    {explained['clause']}"
    allowed = explained["allowed"]
    rows = [("input", explained["input"])]
    rows += [("allowed", each) for each in (allowed if isinstance(allowed, list) else [allowed])]
    rows += [*explained["answers"].items()]
    yield from columns([(name, _cells(words)) for name, words in rows])


def _cells(words: Any) -> tuple[str, str, str]:
    """A tensor's shape and elements, or what stands in its place."""
    match words:
        case {"shape": shape}:
            return f"shape {written_shape(tuple(shape))}", " ".join(words.get("bits", ())), ""
        case dict():
            return ": ".join(next(iter(words.items()))), "", ""
    return str(words), "", ""
