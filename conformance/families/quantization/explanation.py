"""`castigate explain` of one element of a quantization: each step, what is allowed, the answers."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from conformance.families.cast.pair_comparison import (
    HEADING,
    brief_words,
    either_words,
    given_words,
)
from conformance.families.family import Explained, WrittenQuestion
from conformance.families.named_tensors import AboutTensors
from conformance.families.quantization.exact import AllowedCode
from conformance.families.quantization.grading import allowed, as_code, code_word, rule_of
from conformance.families.quantization.inputs import tensors_of_element, zero_format
from conformance.families.quantization.ruling import Formula, formula
from conformance.families.value_spelling import datum
from conformance.judging.asking import Ask, ask
from conformance.judging.values import no_answer
from oracles.backend.replies import Answered
from reports.counterexample.drawing import aligned_rows, datum_columns
from reports.grading.divergences import datum_of
from specs.cases import Case
from specs.errors import CastigateError
from specs.formats import Format
from specs.operations import operation_of

OPEN = "anything"


def explain(case: Case, question: WrittenQuestion) -> Explained:
    """Explain one element of a quantization, from one input, a scale and perhaps a zero point.

    Raise CastigateError for other questions, for values that a dtype lacks, and for a dynamic
    quantization, which finds the scale itself.
    """
    if operation_of(case) == "dynamic-quantize":
        raise CastigateError(
            f"{case.document} finds the scale itself, so that no single input has an answer; "
            "judge it by castigate run"
        )
    words, scale, zero = question
    if len(words) != 1 or scale is None:
        raise CastigateError(
            f"{case.document} needs one input and a scale; write castigate explain {case.id}"
            " INPUT --scale SCALE [--zero ZERO]"
        )
    rules = formula(case)
    x = _code(rules.source, words[0], "input")
    by = _code(rules.scale, scale, "scale")
    offset = None if zero is None else _code(zero_format(rules), zero, "zero point")
    found = allowed(rules, x, by, offset)
    rule, clause = rule_of(rules, found)
    told = {
        "case": case.id,
        "input": rules.source.hexadecimal(x),
        "scale": rules.scale.hexadecimal(by),
        "zero": None if offset is None else zero_format(rules).hexadecimal(offset),
        "rule": rule,
        "level": "unspecified" if found.is_open else found.level,
        "clause": clause,
        "steps": [
            {
                "step": step,
                "is": situation,
                "becomes": [*rules.outcome(step, situation).words],
                "rule": rules.outcome(step, situation).rule,
            }
            for step, situation in found.situations
        ],
        "allowed": [OPEN] if found.is_open else _words(rules.target, found.codes),
        "weaker": _words(rules.target, found.weaker),
    }
    answer = partial(_answer, case, rules, x, by, offset)
    return Explained(told, answer, partial(_lines, rules), partial(_brief, rules, question))


def _code(fmt: Format, word: str, what: str) -> int:
    found = datum(fmt, word, what)
    assert isinstance(found, int)
    return found


def _words(fmt: Format, codes: Sequence[AllowedCode]) -> list[str]:
    return [code_word(fmt, as_code(each)) for each in codes]


def _answer(case: Case, rules: Formula, x: int, scale: int, zero: int | None) -> Ask[Any]:
    match (yield from ask(AboutTensors(case, tensors_of_element(case, x, scale, zero)))):
        case Answered(results):
            return rules.target.hexadecimal(int(datum_of(np.ravel(results["y"])[0])))
        case missing:
            return no_answer(missing)


def _lines(rules: Formula, explained: dict[str, Any]) -> Iterator[str]:
    """Yield an explanation with ``answers`` as lines: the steps, then patterns and values."""
    yield from HEADING.wrap(f"{explained['case']} of {_asked(rules, explained)}")
    yield f"  rule      {explained['rule']}, {explained['level']}"
    yield f"  clause    {explained['clause']}"
    for step in explained["steps"]:
        yield f"  {step['step']:<10} {step['is']}: {' or '.join(step['becomes'])} ({step['rule']})"
    rows = [
        ("input", _columns(rules.source, explained["input"])),
        ("scale", _columns(rules.scale, explained["scale"])),
    ]
    if explained["zero"] is not None:
        rows.append(("zero", _columns(zero_format(rules), explained["zero"])))
    rows += [("allowed", _columns(rules.target, word)) for word in explained["allowed"]]
    rows += [("weaker", _columns(rules.target, word)) for word in explained["weaker"]]
    for name, answer in explained["answers"].items():
        rows.append((name, _columns(rules.target, _word(answer))))
    yield from aligned_rows(rows)


def _brief(rules: Formula, question: WrittenQuestion, explained: dict[str, Any]) -> Iterator[str]:
    """Yield the result and what backends answer, the rule, and the command that has the steps."""
    case = explained["case"]
    answers = (
        f"{brief_words(rules.target, _word(answer))} from {name}"
        for name, answer in explained["answers"].items()
    )
    by = f"{_asked(rules, explained)} by {case.partition('/')[0]}"
    pair = f"{rules.source.name} to {rules.target.name}"
    yield from HEADING.wrap(f"{rules.operation} {pair} of {'; '.join([by, *answers])}")
    yield f"  rule      {explained['rule']}, {explained['level']}"
    yield f"  clause    {explained['clause']}"
    zero = [] if question.zero is None else [f"--zero={question.zero}"]
    asked = ["castigate", "explain", case, *question.inputs, f"--scale={question.scale}", *zero]
    backends = [f"--backend={name}" for name in explained["answers"]]
    yield f"the steps: {shlex.join([*asked, *backends])}"


def _asked(rules: Formula, explained: dict[str, Any]) -> str:
    """Return the element, its scale and zero point as values, and what the document allows."""
    values = [
        given_words(rules.source.name, explained["input"]),
        f"by {given_words(rules.scale.name, explained['scale'])}",
    ]
    if explained["zero"] is not None:
        values.append(f"zero {given_words(zero_format(rules).name, explained['zero'])}")
    if explained["level"] == "unspecified":
        said = "left open"
    else:
        best, weaker = (either_words(rules.target, explained[key]) for key in ("allowed", "weaker"))
        said = f"{best} is recommended ({weaker} is allowed)" if weaker else ""
        said = said or f"{best} is {explained['level']}"
    return f"{' '.join(values)}: {said}"


def _word(answer: Any) -> str:
    return ": ".join(next(iter(answer.items()))) if isinstance(answer, dict) else str(answer)


def _columns(fmt: Format, word: str) -> tuple[str, str, str]:
    return datum_columns(fmt, int(word, 16)) if word.startswith("0x") else (word, "", "")
