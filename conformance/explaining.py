"""What a case allows for an input, the rule that says so, and what each backend answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from conformance.calling import DepartedError, answer_of
from conformance.form import checked, described, one_line, printable
from conformance.meet import contained
from conformance.recorded import check_worked, listed
from conformance.spelling import datum
from oracles.isolation.errors import Crashed
from oracles.protocol import Unsupported
from oracles.reference import by_exact
from oracles.registry import Backend
from reports.accept import allowed_words
from reports.divergences import datum_of
from reports.drawing import allowed_line, columns, line
from specs.cases import Case
from specs.errors import CastigateError
from specs.ruling import Ruling, ruling


def read_input(rules: Ruling, word: str) -> int | str:
    """An input from the command line: a hex pattern, or the text itself for the string dtype."""
    if rules.source.kind == "text":
        if not word.isascii() and any("\ud800" <= letter <= "\udfff" for letter in word):
            raise CastigateError(f"input {word[:40]!r} is not Unicode text in UTF-8")
        return word
    return datum(rules.source, word, "input")


def explain(case: Case, word: str, backends: list[Backend]) -> dict[str, Any]:
    """Everything about one input of a case, as data."""
    rules = ruling(case)
    given = read_input(rules, word)
    check_worked(rules, given)
    allowed = by_exact.allow(rules, given)
    return {
        "case": case.id,
        "input": {"text": given} if isinstance(given, str) else rules.source.hexadecimal(given),
        "rule": allowed.branch.rule,
        "level": allowed.branch.level,
        "clause": allowed.branch.clause,
        "allowed": listed(rules, allowed, given),
        "answers": {backend.name: _answer(backend, case, rules, given) for backend in backends},
    }


def _answer(backend: Backend, case: Case, rules: Ruling, given: int | str) -> Any:
    storage = np.dtype(rules.source.storage)
    if storage.kind == "V":
        assert isinstance(given, int)
        inputs = np.frombuffer(given.to_bytes(storage.itemsize, "little"), storage)
    else:
        inputs = np.array([given], storage)
    try:
        given_back = contained(lambda: answer_of(backend.oracle, case, inputs))
        answer = datum_of(checked(rules.target, inputs, given_back)[0])
    except (Crashed, Exception) as error:
        return no_answer(error)
    return {"text": answer} if isinstance(answer, str) else rules.target.hexadecimal(answer)


def no_answer(error: BaseException) -> dict[str, str]:
    """What is told in an answer's place."""
    match error:
        case Unsupported():
            return {"unsupported": one_line(error)}
        case Crashed():
            return {"crashed": printable(str(error))}
        case DepartedError():
            return {"departed": str(error)}
    return {"error": described(error)}


def drawn(case: Case, explained: dict[str, Any]) -> Iterator[str]:
    """The same for people: patterns, fields and values in columns."""
    rules = ruling(case)
    given = _datum(explained["input"])
    yield explained["case"]
    yield f"  rule      {explained['rule']}, {explained['level']}"
    yield f"  clause    {explained['clause']}"
    words = allowed_words(rules, by_exact.allow(rules, given), given)
    rows = [("input", line(rules.source, given))]
    rows += [("allowed", allowed_line(rules.target, word)) for word in words]
    for name, answer in explained["answers"].items():
        if isinstance(answer, dict) and "text" not in answer:
            rows.append((name, (": ".join(next(iter(answer.items()))), "", "")))
        else:
            rows.append((name, line(rules.target, _datum(answer))))
    yield from columns(rows)


def _datum(value: Any) -> int | str:
    return str(value["text"]) if isinstance(value, dict) else int(value, 16)
