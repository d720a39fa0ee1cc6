"""The quick tier's inputs as JSON spells them, and those that recorded answers leave out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conformance.families.bitcast.tensors import contents
from conformance.families.cast.quick_inputs import inputs_of
from conformance.lines.named_tensors import (
    formats_given,
    listed_tensors,
    tensors_given,
    tensors_in_words,
)
from conformance.value_spelling import (
    InputDatum,
    TextDatum,
    datum,
    json_text,
    tensor,
    tensor_words,
)
from oracles.protocol import Bits
from specs.bitcast_ruling import BitcastRuling, bitcast_ruling
from specs.branches import Ruling
from specs.cases import Case
from specs.errors import CastigateError
from specs.formats import Format
from specs.operations import is_bitcast, takes_named_tensors
from specs.ruling import ruling
from specs.selection import case_named

Rules = Ruling | BitcastRuling | Case
"""What parses the inputs of a case: its ruling, or the case itself if it takes named tensors."""
QUICK_SEED, QUICK_EXAMPLES = 0, 1000
"""The seed and the random inputs of the quick tier, unless a run's options say otherwise."""


def listed_inputs(
    case: Case, seed: int = QUICK_SEED, max_examples: int = QUICK_EXAMPLES
) -> Iterator[Any]:
    """Yield a case's inputs as lines of `judge` spell them: patterns, texts or tensors."""
    if takes_named_tensors(case):
        yield from listed_tensors(case, seed)
        return
    if is_bitcast(case):
        rules = bitcast_ruling(case)
        tensors = (tensor_words(rules.source, bits) for bits in contents(rules, seed))
        # Different memories may hold the same elements in a small shape.
        yield from {json_text(one): one for one in tensors}.values()
        return
    cast = ruling(case)
    yield from _spelled(cast.source, inputs_of(case, cast, seed, max_examples))


def _spelled(source: Format, inputs: Bits) -> Iterator[Any]:
    if source.kind == "text":
        yield from ({"text": text} for text in inputs.tolist())
    elif source.bits > 64:
        for element in inputs:
            yield source.hexadecimal(int.from_bytes(element.tobytes(), "little"))
    else:
        yield from map(source.hexadecimal, inputs.tolist())


class UnansweredInputs:
    """The inputs that have no line yet, of every case that has at least one line."""

    def __init__(self) -> None:
        self._left: dict[str, dict[str, None]] = {}

    def remove(self, case_id: str, rules: Rules, given: InputDatum) -> None:
        """Remove the input of one line from those that its case has left."""
        if case_id not in self._left:
            inputs = listed_inputs(case_named(case_id))
            self._left[case_id] = dict.fromkeys(map(json_text, inputs))
        self._left[case_id].pop(json_text(_as_listed(rules, given)), None)

    def check(self) -> None:
        """Raise CastigateError with the number of inputs without a line, and the first of them."""
        left = [(case, given) for case, inputs in self._left.items() for given in inputs]
        if left:
            (case, given), cases = left[0], len({case for case, _ in left})
            inputs = f"{len(left)} input{'s' if len(left) > 1 else ''}"
            raise CastigateError(
                f"{inputs} of {cases} case{'s' if cases > 1 else ''} without a line, first"
                f" {case} {given[:100]}; castigate inputs --json CASE lists all inputs of a case"
            )


def _as_listed(rules: Rules, given: InputDatum) -> Any:
    """Spell a line's input as ``listed_inputs`` does."""
    if isinstance(rules, Case):
        return tensors_in_words(formats_given(rules), tensors_given(rules, given))
    if isinstance(rules, BitcastRuling):
        return tensor_words(rules.source, tensor(rules.source, given, "input", rules.shape))
    if isinstance(given, TextDatum):
        return given.model_dump()
    return rules.source.hexadecimal(int(datum(rules.source, given, "input")))
