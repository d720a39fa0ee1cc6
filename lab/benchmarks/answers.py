"""Makes recorded answers for ``judge``: the reference's own, over all cases or one."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np

from conformance.families.cast.quick_inputs import inputs_of
from conformance.families.reference import Reference
from oracles.reference.reference_oracle import RejectedError
from specs.cases import Case
from specs.operations import is_cast
from specs.ruling import ruling
from specs.selection import case_named, select


def one_case(name: str, count: int) -> Iterator[str]:
    """Yield ``count`` lines of a single case, repeating its inputs."""
    lines = list(_lines(case_named(name), count))
    for index in range(count):
        yield lines[index % len(lines)]


def all_cases(count: int) -> Iterator[str]:
    """Yield ``count`` lines, spread over every cast of every document."""
    cases = [case for case in select([]) if is_cast(case)]
    each = -(-count // len(cases)) * 2
    made = (line for case in cases for line in _lines(case, each))
    for _, line in zip(range(count), made, strict=False):
        yield line


def _lines(case: Case, most: int) -> Iterator[str]:
    rules = ruling(case)
    if max(rules.source.bits, rules.target.bits) > 64:
        return
    inputs = inputs_of(case, rules, 0, 10)
    picked = inputs[np.linspace(0, inputs.size - 1, min(most, inputs.size)).astype(int)]
    try:
        answers: list[object] = Reference().cast(case, picked).tolist()
    except RejectedError as error:
        answers = [{"error": str(error)}] * picked.size
    for given, answer in zip(picked.tolist(), answers, strict=True):
        shown = {"text": given} if isinstance(given, str) else rules.source.hexadecimal(given)
        if isinstance(answer, int):
            answer = rules.target.hexadecimal(answer)
        elif isinstance(answer, str):
            answer = {"text": answer}
        yield json.dumps({"case": case.id, "input": shown, "output": answer})
