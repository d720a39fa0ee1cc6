"""A question about one number, in a sentence: quantize 0.25 by 0.1 as float16 to int8 zero 3."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.families.family import Sentence
from specs.errors import CastigateError
from specs.questions import case_meant

SENTENCES = {
    "quantize": ("onnx-quantize-linear", "uint8"),
    "dequantize": ("onnx-dequantize-linear", "float32"),
}
"""By the verb of a sentence, its document, and the dtype of results if the sentence names none."""
PREPOSITIONS = ("by", "as", "to", "zero")
"""The words of a sentence before the scale, the dtype of the input, that of the result, and the
zero point; the last two may be left out."""


def read_sentence(words: Sequence[str]) -> Sentence | None:
    """Read a question about a quantization; None if its first word is not in ``SENTENCES``.

    Raise CastigateError if the words after it do not make such a question.
    """
    verb, *rest = words
    if verb not in SENTENCES:
        return None
    document, usual = SENTENCES[verb]
    given, names, values = "".join(rest[:1]), rest[1::2], rest[2::2]
    found = dict(zip(names, values, strict=False))
    is_whole = len(names) == len(values) == len(found)
    if not (is_whole and {"by", "as"} <= found.keys() <= {*PREPOSITIONS}):
        raise CastigateError(
            f"`{' '.join(words)[:200]}` is no question about a quantization; write"
            f" {verb} INPUT by SCALE as DTYPE [to DTYPE] [zero ZERO]"
        )
    case = case_meant(document, [found["as"], found.get("to", usual)])
    return Sentence(case, given, found["by"], found.get("zero"))
