"""`castigate explain`: what a case allows for an input, by which rule, and what backends answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from textwrap import shorten
from typing import Any

import numpy as np

from conformance.families.cast.pair_comparison import (
    HEADING,
    NOTE,
    WIDTH,
    brief_said,
    given_words,
    read_datum,
)
from conformance.families.cast.recorded import allowed_list, check_example_input
from conformance.families.family import Explained, WrittenQuestion
from conformance.families.value_spelling import datum
from conformance.judging.asking import Ask
from conformance.judging.values import ask_values, no_answer
from oracles.backend.replies import Answered
from oracles.protocol import Bits
from oracles.reference import expect_by_exact
from reports.counterexample.drawing import (
    DatumColumns,
    aligned_rows,
    allowed_columns,
    complex_text,
    datum_columns,
)
from reports.grading.allowed_answers import describe_allowed
from reports.grading.divergences import datum_of
from specs.branches import Ruling
from specs.cases import Case
from specs.errors import CastigateError
from specs.formats import Format, format_named
from specs.loader import documents
from specs.questions import worked_case
from specs.ruling import ruling


def read_input(rules: Ruling, word: str) -> int | str:
    """Return an input of the command line: the code of a number or pattern, or for texts the text.

    Raises CastigateError if the word is no input of the source.
    """
    if rules.source.kind == "text":
        if not word.isascii() and any("\ud800" <= letter <= "\udfff" for letter in word):
            raise CastigateError(f"input {word[:40]!r} is not Unicode text in UTF-8")
        return word
    return datum(rules.source, word, "input")


def case_of_input(case: Case, word: str) -> Case:
    """Return a worked example of the input ``word`` if ``case`` is open and has one, else ``case``.

    Raises CastigateError if ``word`` is no input of the source.
    """
    given = read_input(ruling(case), word)
    return case if isinstance(given, str) else worked_case(case, given)


def explain(case: Case, question: WrittenQuestion) -> Explained:
    """Return the rule, clause and allowed answers of the one input in ``question``.

    Raises CastigateError if it is no input of the source, or not one of a worked example.
    """
    [word] = question.inputs
    rules = ruling(case)
    given = read_input(rules, word)
    check_example_input(rules, given)
    allowed = expect_by_exact.allow(rules, given)
    due = rules.answer_due if rules.is_open else None
    told = {
        "case": case.id,
        "input": {"text": given} if isinstance(given, str) else rules.source.hexadecimal(given),
        "rule": allowed.branch.rule,
        "level": allowed.branch.level,
        "clause": allowed.branch.clause,
        "allowed": allowed_list(rules, allowed, given),
        **({"answer_due": asdict(due)} if due is not None else {}),
    }
    return Explained(told, partial(_answer, case, rules, given), partial(_lines, rules))


def input_row(case: Case, words: Sequence[str]) -> Bits:
    """Read inputs from the command line, at least one, and return them as one row.

    Raises CastigateError if a word is no input of the source.
    """
    rules = ruling(case)
    return np.concatenate([_one(rules, read_input(rules, word)) for word in words])


def _one(rules: Ruling, given: int | str) -> Bits:
    storage = np.dtype(rules.source.storage)
    if storage.kind == "V":
        assert isinstance(given, int)
        return np.frombuffer(given.to_bytes(storage.itemsize, "little"), storage)
    return np.array([given], storage)


def _answer(case: Case, rules: Ruling, given: int | str) -> Ask[Any]:
    match (yield from ask_values(case, _one(rules, given))):
        case Answered(answers):
            answer = datum_of(answers[0])
            return {"text": answer} if isinstance(answer, str) else rules.target.hexadecimal(answer)
        case missing:
            return no_answer(missing)


def _lines(rules: Ruling, explained: dict[str, Any]) -> Iterator[str]:
    """Yield an explanation in JSON as lines of text: patterns, fields and values in columns."""
    given = read_datum(explained["input"])
    allowed = expect_by_exact.allow(rules, given)
    asked = f"{explained['case']} of {given_words(rules.source.name, explained['input'])}"
    yield from HEADING.wrap(f"{asked}: {brief_said(rules, allowed, given)}")
    yield f"  rule      {explained['rule']}, {explained['level']}"
    yield f"  clause    {explained['clause']}"
    if due := explained.get("answer_due"):
        yield f"  answer    {due['level']}, of any value ({due['rule']}: {due['clause']})"
    words = describe_allowed(rules, allowed, given)
    rows = [("input", _columns(rules.source, given))]
    rows += [("allowed", _allowed_columns(rules.target, word)) for word in words]
    for name, answer in explained["answers"].items():
        if isinstance(answer, dict) and "text" not in answer:
            rows.append((name, (": ".join(next(iter(answer.items()))), "", "")))
        else:
            rows.append((name, _columns(rules.target, read_datum(answer))))
    yield from aligned_rows(rows)


def _columns(form: Format, given: int | str) -> DatumColumns:
    pattern, fields, value = datum_columns(form, given)
    return pattern, fields, value or complex_text(form, given)


def _allowed_columns(target: Format, word: str) -> DatumColumns:
    is_pattern = target.kind == "complex" and word.startswith("0x")
    return _columns(target, int(word, 16)) if is_pattern else allowed_columns(target, word)


def note_lines(cases: Iterable[Case], explained: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the notes of rules that leave casts of complex numbers open, each once.

    ``explained`` has the explanation of each case. No input class and no outcome is about complex
    numbers, so that notes say what the pages do. Pages of calls are about dtypes and memory.
    """
    notes: dict[str, None] = {}
    for case, found in zip(cases, explained, strict=True):
        rule = documents()[case.document].entry.rules.get(found["rule"])
        kinds = format_named(case.source).kind, format_named(case.target).kind
        is_of_values = "complex" in kinds and documents()[case.document].entry.operation == "cast"
        if is_of_values and found["level"] == "unspecified" and rule is not None and rule.note:
            notes[f"{case.document}, {found['rule']}: {rule.note}"] = None
    for note in notes:
        yield from NOTE.wrap(note)


def conflict_lines(case: Case, rules: Iterable[str]) -> Iterator[str]:
    """Yield the conflicts that a document notes at ``rules``: first which reading is taken.

    Each is one line, cut if it is long; ``castigate specs`` has them whole. The document is that of
    ``case``, and ``rules`` are names.
    """
    for name in dict.fromkeys(rules):
        entry = documents()[case.document].entry.rules.get(name)
        for each in entry.conflict if entry is not None else ():
            told = f"conflict: taken: {each.taken}; with {each.with_}: {each.about}"
            yield shorten(told, WIDTH, placeholder=" …")
