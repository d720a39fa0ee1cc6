"""``python -m lab.carriers``: recompute what documents of carriers expect, by rational numbers.

A carrier's answer is a value kept, or rounded. Here a value is a ``Fraction``, and a rounding is a
search among the target's values for the two neighbors: no code is shared with the reference. Of
each element the rational answer must be allowed, and the pattern beside it must not be.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Annotated, Any

import numpy as np
import typer

from lab.command import run
from reports.grading.allowed_answers import ALLOWED, Expectations, grade_answers
from specs.cases import Case
from specs.editions import editions
from specs.formats import Format, format_named, value_of
from specs.loader import documents
from specs.outcomes import Behaves, Either, Exactly, Outcome, Round, Same, Value, Wrap
from specs.ruling import ruling

ELEMENTS = 1_000_000


def finite(form: Format, code: int) -> Fraction | None:
    """The value of a pattern; None for a NaN or an infinity."""
    magnitude = code & ~(form.sign_bit if form.is_signed else 0)
    if form.kind == "float" and magnitude > (form.max_code & ~form.sign_bit):
        return None
    return Fraction(code) if form.kind == "boolean" else value_of(form, code)


def below(form: Format, value: Fraction) -> int:
    """The pattern of the largest value that is not above ``value``, which is not negative."""
    low, high = 0, form.max_code
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if value_of(form, middle) <= value else (low, middle - 1)
    return low


def rounded(form: Format, value: Fraction, word: str) -> int | None:
    """The pattern to which a value rounds; None beyond the range."""
    if form.is_integral:
        whole = value.numerator // value.denominator
        if word == "toward-zero":
            whole = int(value)
        elif word == "nearest-even":
            whole = round(value)
        is_inside = value_of(form, form.lowest_code) <= whole <= value_of(form, form.max_code)
        return whole & form.mask if is_inside else None
    magnitude = abs(value)
    code = below(form, magnitude)
    left = magnitude - value_of(form, code)
    if left:
        above = code + 1
        if code == form.max_code:
            unit = value_of(form, code) - value_of(form, code - 1)
        else:
            unit = value_of(form, above) - value_of(form, code)
        goes_up = left * 2 > unit or (left * 2 == unit and code % 2 == 1)
        goes_up &= word == "nearest-even"
        goes_up |= word == {False: "ceil", True: "floor"}[value < 0]
        if goes_up and code == form.max_code:
            return None
        code += goes_up
    return code | (form.sign_bit if value < 0 else 0)


def answer_of(outcome: Outcome, source: Format, target: Format, code: int) -> int | None:
    """The pattern that an outcome wants for a number; None if it is not decided here."""
    value = finite(source, code)
    match outcome:
        case Same():
            return code
        case Exactly(answer):
            return answer
        case Either(options=(first, *_)):
            return answer_of(first, source, target, code)
        case Value() if value is not None:
            return rounded(target, value, "exact")
        case Round(rounding) if value is not None:
            return rounded(target, value, rounding)
        case Wrap() if value is not None:
            return int(value) & target.mask
        case Behaves(behavior) if value is not None and behavior.startswith("via-"):
            between = format_named(behavior.removeprefix("via-").split("-")[0])
            there = rounded(between, value, "nearest-even")
            if there is None or there == between.sign_bit:
                return None if there is None else target.sign_bit  # A zero keeps its sign.
            return rounded(target, value_of(between, there), "exact")
    return None


def cases() -> Iterator[Case]:
    """Every case of a document of carriers that converts numbers by some rule."""
    for document in documents().values():
        if document.entry.operation == "carry":
            for edition in editions(document):
                yield from (case for case in edition.cases() if _is_of_numbers(case))


def _is_of_numbers(case: Case) -> bool:
    rules = ruling(case)
    are_numeric = rules.source.is_numeric and rules.target.is_numeric
    return are_numeric and not (rules.is_open or rules.is_rejection)


def compare(case: Case, inputs: Any) -> tuple[int, list[str]]:
    """Compare the rational answers to a case's inputs; return their number, and what differs."""
    rules = ruling(case)
    expected = Expectations(independent=False).of(rules, inputs)
    outcomes = [rules.branches[at].outcome for at in expected.branch_indices.tolist()]
    wanted = [
        answer_of(outcome, rules.source, rules.target, code)
        for outcome, code in zip(outcomes, inputs.tolist(), strict=True)
    ]
    told = np.array([each is not None for each in wanted])
    right = np.array([each or 0 for each in wanted], np.uint64).astype(rules.target.storage)
    beside = right ^ right.dtype.type(1)
    fails = told & (grade_answers(rules, inputs, expected, right) != ALLOWED)
    is_single = np.array([not isinstance(each, Either) for each in outcomes])
    fails |= told & is_single & (grade_answers(rules, inputs, expected, beside) == ALLOWED)
    return int(told.sum()), [f"{case.id}: {inputs[at]:#x}" for at in np.flatnonzero(fails)]


def main(
    elements: Annotated[int, typer.Option(min=1, help="elements in all")] = ELEMENTS,
    seed: Annotated[int, typer.Option(help="of the patterns")] = 0,
) -> None:
    """Recompute answers of all carriers; exit with 1 if one differs."""
    chance, every = np.random.default_rng(seed), [*cases()]
    each = max(1, elements // len(every) + 1)
    compared = 0
    differing: list[str] = []
    for case in every:
        source = format_named(case.source)
        inputs = _drawn(chance, source, each)
        count, found = compare(case, inputs)
        compared += count
        differing += found
    for line in differing[:20]:
        typer.echo(line)
    typer.echo(f"{compared:,} elements of {len(every):,} carriers: {len(differing):,} differ")
    raise typer.Exit(bool(differing))


def _drawn(chance: np.random.Generator, source: Format, count: int) -> Any:
    """Random patterns, of which half have zeros in the low half of their bits: ties are there."""
    drawn = chance.integers(0, source.mask, count, np.uint64, endpoint=True)
    coarse = np.uint64(source.mask ^ ((1 << source.bits // 2) - 1))
    drawn[::2] &= coarse
    return drawn.astype(source.storage)


if __name__ == "__main__":
    run(main)
