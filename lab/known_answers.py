"""Makes the table of what frameworks answer to casts, from the answers that runs have stored.

    python -m lab.known_answers RUN…

Each backend of a run that casts by a package of its own replaces its part of the table
(``reports/behaviors/known_answers.json``); parts of other backends stay. Every described answer is
computed again from the table and compared with the stored one before anything is written.
"""

from __future__ import annotations

import platform
import sys
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from oracles.protocol import Bits
from oracles.registry import BUILTINS, framework_of
from reports.behaviors.known_answers import (
    FILE,
    KnownAnswers,
    KnownFramework,
    KnownPair,
    known_answers,
    marks_of,
)
from reports.behaviors.regions import behaviors_between, evaluate
from reports.grading.allowed_answers import is_nan
from reports.run_store.open_run import RunAnswers, open_run
from specs.behaviors import Behavior, behaviors
from specs.cases import JOINT
from specs.errors import CastigateError
from specs.formats import Format, format_named
from specs.operations import is_cast
from specs.selection import case_named

MOST_LISTED = 64
"""The most inputs of a class whose answers are listed one by one."""


def main(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Complete runs.")],
) -> None:
    """Replace the parts of the table whose backends the runs have, and say what it covers."""
    table = known_answers().frameworks if FILE.exists() else {}
    for run in runs:
        store = open_run(run)
        held = RunAnswers(store)
        machines = {each.machine for each in store.record.environments} or {platform.machine()}
        for backend in store.record.backends:
            framework = framework_of(backend.name)
            builtin = BUILTINS.get(framework)
            if builtin is None or not builtin.in_nights or builtin.package is None:
                continue
            pairs = {
                f"{source.name}/{target.name}": _checked(source, target, *answers)
                for (source, target), answers in _of_pairs(held, backend.name).items()
            }
            [machine] = machines
            table[framework] = KnownFramework(
                version=backend.version,
                date=f"{store.record.started:%Y-%m-%d}",
                machine=machine,
                pairs=pairs,
            )
            _say(backend.name, pairs)
    text = KnownAnswers(frameworks=dict(sorted(table.items()))).model_dump_json()
    FILE.write_text(text + "\n", encoding="utf-8")
    typer.echo(f"{FILE.name}: {len(text):,} bytes")


def _of_pairs(
    held: RunAnswers, backend: str
) -> dict[tuple[Format, Format], tuple[NDArray[Any], NDArray[Any]]]:
    """Return the inputs and answers of each pair of numeric dtypes, of its default modes.

    Of several cases the one with the most inputs counts: one that must be refused has two. Of
    equals it is the first of the newest version of a document.
    """
    best: dict[tuple[Format, Format], tuple[int, int]] = {}
    found: dict[tuple[Format, Format], tuple[NDArray[Any], NDArray[Any]]] = {}
    newest: dict[tuple[str, str], int] = {}
    for row in held.cases(backend):
        case = case_named(row.case)
        source, target = format_named(case.source), format_named(case.target)
        is_plain = JOINT not in case.document and case.example is None and is_cast(case)
        answered = held.answered(row.asked, row.answers)
        if answered is None or not (is_plain and source.is_numeric and target.is_numeric):
            continue
        version = newest.setdefault((case.document, case.version), len(newest))
        rank = answered.inputs.values.size, version
        if rank > best.get((source, target), (0, -1)):
            best[source, target] = rank
            found[source, target] = answered.inputs.values, answered.answers.values
    return found


def _checked(source: Format, target: Format, given: NDArray[Any], got: NDArray[Any]) -> KnownPair:
    """Describe a pair, and compare every described answer with the stored one."""
    pair = describe_pair(source, target, given, got)
    marks = marks_of(source, target, given)
    for name, own in pair.does.items():
        here = np.isin(marks, own)
        codes, is_defined = evaluate(behaviors()[name], source, target, given[here])
        wrong = ~is_defined | (codes != got[here])
        if target.kind == "float":
            wrong &= ~(is_nan(target, codes) & is_nan(target, got[here]))
        if wrong.any():
            raise CastigateError(f"{source.name}/{target.name}: `{name}` is wrong")
    return pair


def describe_pair(source: Format, target: Format, inputs: Bits, answers: Bits) -> KnownPair:
    """Describe the answers to inputs by the fewest behaviors; of equals the simplest comes first.

    A class of inputs that no behavior reproduces has its answers listed, if they are few.
    """
    marks = marks_of(source, target, inputs)
    every = set(np.unique(marks).tolist())
    explained = {
        each.name: every - set(np.unique(marks[~_agrees(each, source, target, inputs, answers)]))
        for each in behaviors_between(source, target)
    }
    left, does = set(every), {}
    while name := max(explained, key=lambda each: len(explained[each] & left), default=""):
        if not explained[name] & left:
            break
        does[name] = tuple(sorted(map(int, explained[name] & left)))
        left -= explained[name]
    listed: dict[str, str] = {}
    for mark in sorted(left):
        here = np.flatnonzero(marks == mark)
        if here.size <= MOST_LISTED:
            listed |= {
                source.hexadecimal(int(inputs[at])): target.hexadecimal(int(answers[at]))
                for at in here
            }
    is_whole = source.bits <= 32 and inputs.size == 1 << source.bits
    return KnownPair(does=does, listed=listed, inputs=inputs.size, is_whole=is_whole)


def _agrees(
    behavior: Behavior, source: Format, target: Format, inputs: Bits, answers: Bits
) -> NDArray[np.bool_]:
    codes, is_defined = evaluate(behavior, source, target, inputs)
    same = codes == answers
    if target.kind == "float":
        same |= is_nan(target, codes) & is_nan(target, answers)
    return np.asarray(same & is_defined)


def _say(backend: str, pairs: dict[str, KnownPair]) -> None:
    inputs = sum(each.inputs for each in pairs.values())
    typer.echo(f"{backend}: {len(pairs)} pairs, {inputs:,} answers")


if __name__ == "__main__":
    try:
        typer.run(main)
    except CastigateError as error:
        sys.exit(f"error: {error}")
