"""The verdict on recorded tensors, by the same comparison as in a run.

Each element of a result is judged by itself: codes by their scale and zero point. What a backend
computes itself, such as the scale of a block, is judged first, and then the codes by the scale that
it returned.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from conformance.families import tensors_of
from conformance.families.family import Result, Rule
from oracles.protocol import Bits
from reports.grading.divergences import index_of_simplest
from specs.cases import Case
from specs.loader import document_named
from specs.quantized_tensors import X, Y


def judge_tensors(
    case: Case, tensors: Mapping[str, Bits], answer: Mapping[str, Bits] | None
) -> dict[str, Any]:
    """Verdict, rule, what is allowed, and the simplest wrong element; None stands for an error."""
    if answer is not None and answer[Y].shape != tensors[X].shape:
        return _wrong_shape(case, tensors[X].shape)
    results = [*tensors_of(case).results(case, tensors, answer)]
    found = {"verdict": "conforms", **_rule_of_first(results)._asdict()}
    if all(each.is_open.all() for each in results):
        found["verdict"] = "open"
    element: dict[str, Any] = {}
    for level, verdict in (("required", "violates"), ("recommended", "deviates")):
        wrong = next((each for each in results if each.wrong(level).any()), None)
        if wrong is not None:
            at = index_of_simplest(*wrong.inputs, wrong.wrong(level))
            found = {"verdict": verdict, **wrong.rule(at)._asdict(), "level": level}
            element = {"element": _element(wrong, at, at_required=level == "required")}
            break
    count = sum(
        int(np.count_nonzero(each.wrong("required") | each.wrong("recommended")))
        for each in results
    )
    allowed_tensors = {
        each.name: {
            "shape": list(each.shape),
            "bits": [_one_or_several(each.allowed(at, False)) for at in range(each.is_open.size)],
        }
        for each in results
    }
    return {**found, "allowed": allowed_tensors, "wrong": count, **element}


def _wrong_shape(case: Case, shape: tuple[int, ...]) -> dict[str, Any]:
    [(name, entry)] = document_named(case.document).entry.tensors.items()
    return {
        "verdict": "violates" if entry.level == "required" else "deviates",
        **Rule(name, entry.level, entry.clause)._asdict(),
        "allowed": {Y: {"shape": list(shape)}},
    }


def _rule_of_first(results: list[Result]) -> Rule:
    """The rule of the first element about which the document says something, if there is one."""
    for each in results:
        settled = np.flatnonzero(~each.is_open)
        if settled.size:
            return each.rule(int(settled[0]))
    [first, *_] = results
    return first.rule(0) if first.is_open.size else Rule("", "", "")


def _element(result: Result, at: int, *, at_required: bool) -> dict[str, Any]:
    answer = result.answer
    index = [int(each) for each in np.unravel_index(at, result.shape)] if result.shape else []
    output = None if answer is None else result.form.hexadecimal(int(answer.reshape(-1)[at]))
    return {
        "result": result.name,
        "index": index,
        **result.given(at),
        **({} if output is None else {"output": output}),
        "allowed": result.allowed(at, at_required),
    }


def _one_or_several(words: list[str]) -> list[str] | str:
    return words[0] if len(words) == 1 else words
