"""`castigate explain` of one block: its scale and its codes, by which rules, and the answers.

Numbers that are not given are zeros. Allowed codes follow from the scale that the document gives; a
backend's codes stand beside the values that they have with the backend's own scale.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from math import isfinite
from textwrap import shorten
from typing import Any

import numpy as np

from conformance.families.blocks.exact import CodeAnswer, codes_of, scale_of
from conformance.families.blocks.grading import GLOBAL, SCALE, X, Y
from conformance.families.blocks.kernels import decoded, values_of
from conformance.families.blocks.ruling import GLOBAL_DTYPE, BlockRuling, block_ruling
from conformance.families.cast.pair_comparison import WIDTH
from conformance.families.family import Explained, WrittenQuestion
from conformance.families.named_tensors import AboutTensors
from conformance.families.value_spelling import datum
from conformance.judging.asking import Ask, ask
from conformance.judging.values import no_answer
from oracles.backend.replies import Answered
from oracles.protocol import Bits
from reports.counterexample.drawing import datum_with_value, value_text
from reports.outputs.table import in_columns
from specs.cases import Case
from specs.errors import CastigateError
from specs.formats import Format, format_named
from specs.model.block_entry import BlockQuestion

OPEN = "anything"


def explain(case: Case, question: WrittenQuestion) -> Explained:
    """Explain one block of numbers; the scale of the question is the global one.

    Raise CastigateError for a zero point, for no numbers or more than a block has, for a number
    that its dtype lacks, for a case that decodes, and for a global scale that is missing, not used,
    or no positive number.
    """
    words, whole, zero = question
    if zero is not None:
        raise CastigateError(f"blocks have no zero point; {case.document} takes no --zero")
    ruling = block_ruling(case)
    numbers = _numbers(case, ruling, words, whole)
    tensors: dict[str, Bits] = {X: np.zeros((1, ruling.size), ruling.number.storage)}
    tensors[X][0, : len(numbers)] = numbers
    global_scale = Fraction(1)
    if whole is not None:
        code = _code(format_named(GLOBAL_DTYPE), whole, "global scale")
        tensors[GLOBAL] = np.array(code, np.uint32)
        number = float(tensors[GLOBAL].view(np.float32))
        if not (isfinite(number) and number > 0):
            raise CastigateError(
                f"the global scale is {number}; `{case.id}` says nothing of one that is not a"
                " positive number, so give such a one"
            )
        global_scale = Fraction(number)
    block = tensors[X][0].tolist()
    scale = scale_of(ruling, block, global_scale)
    found = [CodeAnswer((), scale.question)] * len(numbers)
    if scale.code is not None:
        found = codes_of(ruling, block, scale.code, global_scale)
    told = {
        "case": case.id,
        "global": whole,
        "scale": {
            **_asked(ruling, scale.question),
            "allowed": _hexadecimals(ruling.scale, () if scale.code is None else (scale.code,)),
        },
        "elements": [
            {
                "input": ruling.number.hexadecimal(number),
                **_asked(ruling, each.question),
                "allowed": _hexadecimals(ruling.element, each.allowed),
                "values": [
                    _value(ruling, code, scale.code, float(global_scale)) for code in each.allowed
                ],
            }
            for number, each in zip(numbers, found, strict=False)
        ],
    }
    answer = partial(_answer, case, ruling, tensors, len(numbers), float(global_scale))
    return Explained(told, answer, partial(_lines, ruling))


def _numbers(case: Case, ruling: BlockRuling, words: Sequence[str], whole: str | None) -> list[int]:
    """Return the patterns of the numbers in ``words``.

    Raise CastigateError if the case decodes, if a word is no such number, if they are none or too
    many, or if ``whole``, the global scale or None, does not fit the case.
    """
    if ruling.is_decoding:
        raise CastigateError(
            f"{case.document} has the way back, which explain shows beside the codes;"
            f" name the document of blocks itself, without -decode, and numbers of {case.target}"
        )
    if not 0 < len(words) <= ruling.size:
        raise CastigateError(
            f"a block of `{case.id}` has {ruling.size} numbers, and {len(words)} are given;"
            f" write castigate explain {case.id} NUMBER…; what is missing is zero"
        )
    if ruling.has_global != (whole is not None):
        advice = (
            "needs a global scale; give it by --scale SCALE"
            if ruling.has_global
            else "has no global scale; leave out --scale"
        )
        raise CastigateError(f"`{case.id}` {advice}")
    return [_code(ruling.number, word, "input") for word in words]


def _code(fmt: Format, word: str, what: str) -> int:
    found = datum(fmt, word, what)
    assert isinstance(found, int)
    return found


def _asked(ruling: BlockRuling, question: BlockQuestion) -> dict[str, str]:
    answer = ruling.answers[question]
    return {
        "question": question,
        "word": answer.word,
        "rule": answer.rule,
        "level": answer.level,
        "clause": answer.clause,
    }


def _hexadecimals(fmt: Format, codes: Sequence[int]) -> list[str]:
    return [fmt.hexadecimal(code) for code in codes] or [OPEN]


def _value(ruling: BlockRuling, code: int, scale: int | None, global_scale: float) -> float | None:
    """Return a code's value times its scales, which must be known; None if that is not finite."""
    assert scale is not None
    [factor] = decoded(ruling.scale, np.array([scale], ruling.scale.storage))
    value = float(values_of(ruling.element)[code] * factor * global_scale)
    return value if isfinite(value) else None


def _answer(
    case: Case, ruling: BlockRuling, tensors: Mapping[str, Bits], count: int, global_scale: float
) -> Ask[dict[str, Any]]:
    match (yield from ask(AboutTensors(case, tensors))):
        case Answered(results):
            scale = int(np.ravel(results[SCALE])[0])
            codes = np.ravel(results[Y])[:count].tolist()
            return {
                "scale": ruling.scale.hexadecimal(scale),
                "codes": [ruling.element.hexadecimal(code) for code in codes],
                "values": [_value(ruling, code, scale, global_scale) for code in codes],
            }
        case missing:
            return no_answer(missing)


def _lines(ruling: BlockRuling, explained: dict[str, Any]) -> Iterator[str]:
    """Yield an explanation with ``answers`` as lines: the scale with its rule, then each number."""
    scale = explained["scale"]
    found = [" or ".join(f"{each:.9g}" for each in _finite(one)) for one in explained["elements"]]
    values = f"; values {', '.join(each or OPEN for each in found)}"
    said = f"{explained['case']}: scale {_brief(ruling.scale, scale['allowed'][0])}{values}"
    yield shorten(said, WIDTH, placeholder=" …")
    yield f"  rule      {scale['rule']}, {scale['level']}"
    yield f"  clause    {scale['clause']}"
    if explained["global"] is not None:
        yield f"  global    {explained['global']}"
    by_scale = {"allowed": scale["allowed"][0]}
    columns: dict[str, list[str]] = {}
    for name, answer in explained["answers"].items():
        if "scale" in answer:
            by_scale[name] = answer["scale"]
            pairs = zip(answer["codes"], answer["values"], strict=True)
            columns[name] = [_codes_and_values([code], [value]) for code, value in pairs]
        else:
            by_scale[name] = ": ".join(next(iter(answer.items())))
    width = max(9, *map(len, by_scale))
    for name, word in by_scale.items():
        yield f"  scale     {name:<{width}} {_pattern(ruling.scale, word)}"
    elements = explained["elements"]
    table = [
        ["input", *(_pattern(ruling.number, each["input"]) for each in elements)],
        ["allowed", *(_codes_and_values(each["allowed"], each["values"]) for each in elements)],
        *([name, *cells] for name, cells in columns.items()),
        ["", *(f"{e['question']}: {e['word']} ({e['rule']}, {e['level']})" for e in elements)],
    ]
    yield from (f"  {line}" for line in in_columns([*zip(*table, strict=True)]))


def _finite(element: Mapping[str, Any]) -> list[float]:
    """Return the allowed values of an element, as far as they are known and finite."""
    return [each for each in element["values"] if each is not None]


def _brief(fmt: Format, word: str) -> str:
    return value_text(fmt, int(word, 16)) if word.startswith("0x") else word


def _pattern(fmt: Format, word: str) -> str:
    return datum_with_value(fmt, int(word, 16)) if word.startswith("0x") else word


def _codes_and_values(codes: Sequence[str], values: Sequence[float | None]) -> str:
    if not values:
        return " or ".join(codes)
    return " or ".join(
        code if value is None else f"{code} = {value:.9g}"
        for code, value in zip(codes, values, strict=True)
    )
