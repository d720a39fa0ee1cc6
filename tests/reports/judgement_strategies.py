"""Hypothesis strategies for judgements of every kind; not in ``common``, which processes import."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from reports.grading.failure_runs import Runs
from reports.judgement import VERDICTS, DatumArray, InputsAndAnswers, Judgement
from reports.problems import (
    BrokenAdapter,
    BrokenPromise,
    ChangesWithLayout,
    ChangesWithShape,
    Died,
    DiffersFromVariant,
    Note,
    NotRefused,
    Refused,
    Unoffered,
    WritesToInputs,
    WrongByAnyReading,
    WrongElement,
    WrongForm,
    WrongShape,
    WrongValues,
)
from tests.reports.common import objects, patterns

# These include surrogates, because an adapter in Python may answer any text.
TEXTS = st.text(st.characters(), max_size=8) | st.sampled_from(
    ["", "\0", "\n\r\x85", "\ud800", "\ud83d\ude00", "🙂", "1e400"]
)
WORDS = st.integers(0, (1 << 64) - 1)
WIDE = st.integers(0, (1 << 128) - 1)
LONG = st.integers(-(1 << 63), (1 << 63) - 1)


@st.composite
def some_runs(draw: st.DrawFn) -> Runs:
    rows = draw(st.integers(0, 4))

    def column(values: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(values, min_size=rows, max_size=rows))

    def data(kind: str) -> Any:
        values = {"words": WORDS, "texts": TEXTS, "wide": WIDE}[kind]
        return (patterns if kind == "words" else objects)(column(values))

    given, got = (draw(st.sampled_from(["words", "texts", "wide"])) for _ in range(2))
    return Runs(
        rows + draw(st.integers(0, 1 << 40)),
        data(given),
        data(given),
        data(got),
        data(got),
        np.array(column(LONG), np.int64),
        np.array(column(st.booleans()), np.bool_),
        checksum=draw(WORDS),
    )


DATUMS = TEXTS | WIDE
COUNTS = st.integers(0, 1 << 63)
RULES = st.text(max_size=8), st.text(max_size=8), st.sampled_from(["required", "recommended"])
SHAPES = st.lists(st.integers(0, 9), max_size=3).map(tuple)
WRONG_VALUES = st.builds(
    WrongValues,
    *RULES,
    COUNTS,
    some_runs(),
    DATUMS,
    DATUMS,
    st.lists(TEXTS, max_size=3).map(tuple),
)
NOT_REFUSED = st.builds(NotRefused, *RULES, TEXTS, st.none() | SHAPES, st.none() | TEXTS)
FAULTS = st.one_of(
    st.builds(WrongShape, *RULES, SHAPES, SHAPES, st.none() | SHAPES),
    st.builds(WrongElement, *RULES, SHAPES, st.integers(0, 99), TEXTS, TEXTS),
    st.builds(WrongByAnyReading, *RULES, st.lists(NOT_REFUSED, max_size=2).map(tuple)),
    st.builds(ChangesWithShape, *RULES, SHAPES),
    st.builds(ChangesWithLayout, *RULES, *[TEXTS] * 5),
    st.builds(DiffersFromVariant, *RULES, TEXTS, COUNTS, COUNTS, TEXTS, TEXTS, TEXTS),
    NOT_REFUSED,
    st.builds(BrokenPromise, *RULES, st.just("member"), st.tuples(TEXTS), TEXTS),
    st.builds(Refused, *[TEXTS] * 4, *RULES, st.sampled_from(["answer", "error"])),
    st.builds(WrongForm, TEXTS, TEXTS, *RULES),
    st.builds(WritesToInputs, TEXTS, *RULES),
)
NO_FAULTS = st.one_of(
    st.builds(Unoffered, TEXTS, TEXTS),
    st.builds(Died, TEXTS),
    st.builds(BrokenAdapter, TEXTS, TEXTS),
    st.builds(Note, TEXTS),
)
ARRAYS = st.one_of(
    st.builds(DatumArray, st.just("string"), st.lists(TEXTS, max_size=3).map(objects)),
    st.builds(DatumArray, st.just("uint64"), st.lists(WORDS, max_size=3).map(patterns)),
)
JUDGEMENTS = st.builds(
    Judgement,
    TEXTS,
    TEXTS,
    st.sampled_from(VERDICTS),
    st.lists(WRONG_VALUES | FAULTS | NO_FAULTS, max_size=3).map(tuple),
    COUNTS,
    COUNTS,
    st.booleans(),
    TEXTS,
    TEXTS,
    st.none() | st.builds(InputsAndAnswers, ARRAYS, ARRAYS),
    TEXTS,
)
