"""Puts a rule into words: where it applies, and what each class of its inputs becomes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import BaseModel

from specs.model.document import OutcomeEntry, RuleEntry, TableEntry
from specs.model.vocabulary import OTHERWISE

CLASSES: Mapping[str, str] = {
    "nan": "NaN",
    "+nan": "positive NaN",
    "-nan": "negative NaN",
    "unsigned-nan": "NaN without a sign",
    "inf": "infinity",
    "-inf": "-infinity",
    "zero": "0",
    "-zero": "-0",
    "overflow": "above the range",
    "-overflow": "below the range",
    "above-max": "above the largest value before rounding",
    "rounds-to-max": "rounding back to the largest value",
    "rounds-to-lowest": "rounding back to the lowest value",
    "underflow": "below the smallest normal value",
    "subnormal-input": "subnormal inputs",
    "below-smallest": "below the smallest positive value",
    "-below-smallest": "negative and nearer to zero than every negative value",
    "negative": "negative numbers",
    "representable": "values that the target has",
    "representable-normal": "normal values that the target has",
    "in-range": "in range",
    "whole": "in range without a fraction",
    "fraction": "in range with a fraction",
    "not-whole": "with a fraction",
    "infinity-literal": "texts of infinity",
    "minus-infinity-literal": "texts of -infinity",
    "minus-infinity-literal-other-case": "texts of -infinity in another case",
    "nan-literal": "texts of NaN",
    "whole-literal-in-range": "texts of whole numbers in range",
    "number-literal-in-range": "texts of numbers in range",
    "inexact-literal-in-range": "texts of numbers that the target does not have",
    "positive-literal-in-range": "texts of positive numbers in range",
    OTHERWISE: "all other inputs",
}
"""The words for each class of inputs."""
OUTCOMES: Mapping[str, str] = {
    "nearest-even": "rounded to nearest, ties to even",
    "nearest-away": "rounded to nearest, ties away from zero",
    "toward-zero": "rounded toward zero",
    "floor": "rounded down",
    "ceil": "rounded up",
    "odd": "rounded to odd",
    "value": "the value itself",
    "wrap": "the low bits of the rounded integer",
    "zero": "0",
    "one": "1",
    "-zero": "-0",
    "inf": "infinity",
    "-inf": "-infinity",
    "max": "the largest value",
    "lowest": "the lowest value",
    "smallest": "the smallest value",
    "nan": "NaN",
    "+nan": "positive NaN",
    "-nan": "negative NaN",
    "same": "the input itself",
    "plain-text": "the value without exponent",
    "plain-value": "the value without exponent, which reads back as the input",
    "parses-to": "a text that reads back as the input",
    "error": "an error",
    "answer": "an answer, no error",
    "followed": "as in the document that the version follows",
    "unspecified": "left open",
}
"""The words for each outcome that is not clear from its own word."""


def rule_lines(rule: RuleEntry) -> Iterator[str]:
    """Yield lines that say where a rule applies, and what each class of its inputs becomes.

    Classes that have one outcome share a line.
    """
    if rule.when:
        yield f"where {', '.join(_condition(*each) for each in rule.when.items())}"
    yield from _joined(dict(_outcomes(rule)))


def _condition(key: str, words: list[str]) -> str:
    if key == "pair":  # Of a list of these all hold.
        return f"the pair is {' and '.join(words)}"
    joined = " or ".join(words)
    return f"{key} {joined}" if key in ("from", "to") else f"{key} is {joined}"


def _outcomes(rule: RuleEntry) -> Iterator[tuple[str, str]]:
    if rule.table is not None:
        yield from _table_outcomes(rule.table)
        return
    answers = rule.then or rule.gives or rule.blocks
    if not isinstance(answers, dict):
        yield "every input", _outcome(answers) if answers is not None else ""
        return
    for word, cell in answers.items():
        yield CLASSES.get(word, word), _outcome(cell)


def _table_outcomes(table: TableEntry) -> Iterator[tuple[str, str]]:
    heads = ["/".join(column) for column in table.x]
    of = f" by {'/'.join(table.columns)}" if table.columns != ["to"] else ""
    for row, cells in table.rows.items():
        name = CLASSES.get(table.names.get(row, row), row)
        if not isinstance(cells, list) or len({*map(_outcome, cells)}) == 1:
            yield name, _outcome(cells[0] if isinstance(cells, list) else cells)
            continue
        columns = _joined(dict(zip(heads, map(_outcome, cells), strict=True)), " for ")
        yield f"{name}{of}", "; ".join(columns)


def _joined(outcomes: Mapping[str, str], between: str = "") -> Iterator[str]:
    """Yield a text for each outcome with all that has it, after it if words stand ``between``."""
    for outcome in dict.fromkeys(outcomes.values()):
        names = ", ".join(name for name, each in outcomes.items() if each == outcome)
        yield f"{outcome}{between}{names}" if between else f"{names} → {outcome}"


def _outcome(cell: object) -> str:
    match cell:
        case OutcomeEntry():
            return _entry_words(cell)
        case str():
            return OUTCOMES.get(cell, cell)
        case BaseModel():
            return _other_words(cell.model_dump(by_alias=True, exclude_unset=True))
    return str(cell)


def _other_words(given: Mapping[str, object]) -> str:
    """Return the words for an answer to a step of a formula, or to a question about blocks."""
    match given.get("is", given.get("either")):
        case list(words):
            told = " or ".join(map(str, words))
        case word:
            told = OUTCOMES.get(str(word), str(word))
    return f"{told} ({given['level']})" if "level" in given else told


def _entry_words(entry: OutcomeEntry) -> str:
    words = [*(entry.either or []), *([entry.is_] if entry.is_ else [])]
    told = " or ".join(OUTCOMES.get(word, word) for word in words)
    if entry.class_ is not None:
        told += f" of class {entry.class_}"
    if entry.and_recommended is not None:
        told += f", {OUTCOMES.get(entry.and_recommended, entry.and_recommended)} is recommended"
    return f"{told} ({entry.level})" if entry.level is not None else told
