"""Rows (``Wrong``) for backends that answer as a document requires in another case.

They go through another dtype, ignore a parameter, follow another version, or take one dtype for
another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache, partial

from oracles.protocol import Mask
from reports.findings.wrong import (
    CaseFormats,
    GivenAnswers,
    Patterns,
    RowAnswers,
    Wrong,
    answered_ruling,
    computing,
    following,
    right,
    rounded,
    stay_nans,
)
from specs.cases import Case
from specs.editions import edition
from specs.formats import Format, format_named, formats
from specs.loader import document_named
from specs.operations import is_cast

BETWEEN = ("float32", "float16", "bfloat16", "float64")
"""The dtypes through which backends are likely to convert."""
RuleModes = tuple[tuple[str, str], ...]


@cache
def through(dtype: str) -> Wrong:
    """Return the row for backends that convert to another dtype first, and then to the target."""
    is_whole = format_named(dtype).is_integral  # Then more than a rounding is lost.
    return following(
        f"through-{dtype}" if is_whole else f"rounds-twice-through-{dtype}",
        f"converts to {dtype} first" if is_whole else f"rounds twice, through {dtype}",
        lambda case: case_between(case, dtype, case.target),
        lambda given: converted(given.case, dtype, given.inputs),
        has_nans=is_whole,  # A second rounding does not change NaNs, but no integer is one.
    )


def through_usual(asked: CaseFormats) -> Iterator[Wrong]:
    """Yield the rows through each dtype of ``BETWEEN`` that is not the source or the target."""
    ends = asked.source.name, asked.target.name
    yield from (through(each) for each in BETWEEN if each not in ends)


def through_others(asked: CaseFormats) -> Iterator[Wrong]:
    """Yield a numeric pair's rows through each numeric dtype outside ``BETWEEN`` and the pair."""
    tried = *BETWEEN, asked.source.name, asked.target.name
    if asked.is_numeric:
        numeric = (each.name for each in formats().values() if each.is_numeric)
        yield from (through(each) for each in numeric if each not in tried)


@cache
def truncated_after(dtype: str) -> Wrong:
    """Return the row for backends that round to another float first, and cut off what is left."""

    @computing(f"truncates-after-{dtype}", f"rounds to {dtype}, and then toward zero")
    def row(given: GivenAnswers) -> RowAnswers | None:
        inputs = converted(given.case, dtype, given.inputs)
        second = replace(given.case, source=dtype, example=None)
        if inputs is None or answered_ruling(second) is None:
            return None
        return RowAnswers(rounded(second, "toward-zero", inputs), ~given.nans)

    return row


def truncated_after_usual(asked: CaseFormats) -> Iterator[Wrong]:
    """Yield a row for each dtype of ``BETWEEN`` narrower than the source and wider than the target.

    There are none unless source and target are floats.
    """
    if asked.is_between_floats:
        for name in BETWEEN:
            if asked.source.bits > format_named(name).bits > asked.target.bits:
                yield truncated_after(name)


def converted(case: Case, dtype: str, inputs: Patterns) -> Patterns | None:
    """Convert the inputs of a case to another dtype as its document requires.

    Return None if the document does not define this conversion, or refuses some inputs of it.
    """
    if case.source == dtype:
        return inputs
    # A pair that has modes is converted by those of the case, and else by the first ones.
    first = case_between(case, case.source, dtype) or replace(
        case, target=dtype, modes=(), example=None
    )
    rules = answered_ruling(first)
    return None if rules is None or rules.refuses_some else right(first, inputs).codes


ROUNDING_WORDS: Mapping[str, str] = {
    "nearest-even": "rounds to nearest, ties to even",
    "nearest-away": "rounds to nearest, ties away from zero",
    "toward-zero": "rounds toward zero",
    "floor": "rounds down",
    "ceil": "rounds up",
    "odd": "rounds to odd",
}
ROUND = "round"
"""The parameter of `small-floats` whose values are roundings."""


@cache
def other_mode(parameter: str, value: str) -> Wrong:
    """Return the row for backends that answer as if ``parameter`` had the value ``value``."""

    def other(case: Case) -> Case:
        modes = tuple((name, value if name == parameter else old) for name, old in case.modes)
        return replace(case, modes=modes, example=None)

    rounds = ROUNDING_WORDS.get(value) if parameter == ROUND else None
    says = rounds or f"answers as with {parameter} = {value} where it has another value"
    return following(f"as-{parameter}-{value}", says, other, outranks_behaviors=True)


def other_modes(asked: CaseFormats) -> Iterator[Wrong]:
    """Yield a row for every other value of each parameter of a cast.

    The parameter of another operation may name it: it is no option that a backend could ignore.
    """
    case = asked.case
    if not is_cast(case):
        return
    for name, parameter in edition(document_named(case.document), case.version).parameters():
        for value in parameter.values:
            if case.mode.get(name, value) != value:
                yield other_mode(name, value)


@cache
def _other_version(version: str) -> Wrong:
    return following(
        f"as-version-{version}",
        f"answers as version {version} of the document requires, in other versions too",
        lambda case: replace(case, version=version, example=None),
        alike="version",
        outranks_behaviors=True,
    )


def other_versions(asked: CaseFormats) -> Iterator[Wrong]:
    """Yield a row for each other version of the case's document."""
    versions = document_named(asked.case.document).entry.versions
    yield from (_other_version(each) for each in versions if each != asked.case.version)


ANOTHER_DTYPE = "as-another-dtype"
"""The name of the finding for dtypes that are taken for others of the same width."""
TWINS: Mapping[tuple[str, str], tuple[str, str]] = {
    ("unsigned as signed", ""): ("reads-unsigned-as-signed", "reads unsigned integers as signed"),
    ("signed as unsigned", ""): ("reads-signed-as-unsigned", "reads signed integers as unsigned"),
    ("", "unsigned as signed"): (
        "converts-to-signed",
        "converts to signed integers where unsigned ones are wanted",
    ),
    ("", "signed as unsigned"): (
        "converts-to-unsigned",
        "converts to unsigned integers where signed ones are wanted",
    ),
}
"""Names and sentences for integers taken for integers of the other signedness.

The keys are what ``_twin_words`` returns for the source and for the target.
"""


def taken_for(pair: tuple[str, str], other: tuple[str, str]) -> Wrong:
    """Return the row for backends that treat a pair of dtypes as another pair of equal widths."""
    both = tuple(zip(pair, other, strict=True))
    mistaken = tuple(f"{one} for {two}" for one, two in both if one != two)
    source, target = (_twin_words(*each) for each in both)
    unnamed = ANOTHER_DTYPE, f"takes {' and '.join(mistaken)}"
    name, says = TWINS.get((source, target), unnamed)
    row = following(
        name,
        says,
        lambda case: case_between(case, *other),
        mistaken=mistaken if name == ANOTHER_DTYPE else (),
    )
    return replace(row, matches=partial(_but_for_nans, row))


def _but_for_nans(row: Wrong, given: GivenAnswers, level: str) -> Mask | None:
    """Mark what a row explains, but for NaNs that stay NaNs: of most dtypes these are NaNs, too."""
    assert row.matches is not None
    matching = row.matches(given, level)
    return None if matching is None else matching & ~stay_nans(given)


def _twin_words(one: str, other: str) -> str:
    if one == other:
        return ""
    if other == f"u{one}":
        return "signed as unsigned"
    return "unsigned as signed" if one == f"u{other}" else "another dtype"


@cache
def _taken_for(source: Format, target: Format) -> tuple[Wrong, ...]:
    pair = source.name, target.name
    others = ((one.name, two.name) for one in _as_wide(source) for two in _as_wide(target))
    return tuple(taken_for(pair, other) for other in others if other != pair)


def _as_wide(dtype: Format) -> Iterator[Format]:
    if not dtype.is_numeric:
        yield dtype
        return
    yield from (each for each in formats().values() if each.is_numeric and each.bits == dtype.bits)


def taken_for_twins(asked: CaseFormats) -> Iterator[Wrong]:
    """Yield the rows that take one dtype of the pair for the integer of the other signedness."""
    taken = _taken_for(asked.source, asked.target)
    yield from (each for each in taken if not each.mistaken)


def taken_for_others(asked: CaseFormats) -> Iterator[Wrong]:
    """Yield the rows that take the pair for any of the same widths not in ``taken_for_twins``."""
    yield from (each for each in _taken_for(asked.source, asked.target) if each.mistaken)


def case_between(case: Case, source: str, target: str) -> Case | None:
    """Return the first case of another pair that has the values of this case's parameters; or None.

    A value that the other pair has in no case may be another one there.
    """
    modes = _modes_between(case.document, case.version).get((source, target), ())
    wanted = {mode for each in modes for mode in each}.intersection(case.modes)
    found = next((each for each in modes if wanted.issubset(each)), None)
    if found is None:
        return None
    return replace(case, source=source, target=target, modes=found, example=None)


@cache
def _modes_between(document: str, version: str) -> Mapping[tuple[str, str], list[RuleModes]]:
    found: dict[tuple[str, str], list[RuleModes]] = {}
    for each in edition(document_named(document), version).cases():
        if each.example is None:
            found.setdefault((each.source, each.target), []).append(each.modes)
    return found
