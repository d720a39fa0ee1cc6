"""Judgements of every kind, records, and Hypothesis strategies for them."""

from __future__ import annotations

from datetime import UTC, datetime
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
    Problem,
    Refused,
    Unoffered,
    WritesToInputs,
    WrongByAnyReading,
    WrongElement,
    WrongForm,
    WrongShape,
    WrongValues,
)
from reports.run_store.record import BackendRecord, Environment, RunRecord, Shard
from specs.cases import Case

HALF = Case("onnx-cast", "25", "float32", "float16")
TO_TEXT = Case("onnx-cast", "25", "int8", "string")
FROM_TEXT = Case("onnx-cast", "25", "string", "float8e4m3fn", (("saturate", "0"),))
TO_COMPLEX = Case("torch-to", "2.13", "float32", "complex128")
MACHINE = Environment(
    python="3.11.7", platform="Linux", machine="x86_64", cpus=2, packages={"numpy": "2.4.6"}
)


def record(**changes: Any) -> RunRecord:
    fields: dict[str, Any] = {
        "documents": {"onnx-cast": "ab" * 32},
        "backends": (BackendRecord(name="ort", version="1.31.1"),),
        "environments": (MACHINE,),
        "command_line": ("castigate", "run"),
        "started": datetime(2026, 1, 2, tzinfo=UTC),
    }
    return RunRecord(**fields | changes)


def shard(index: int, count: int, **changes: Any) -> RunRecord:
    return record(shard=Shard(index=index, count=count), **changes)


def objects(values: list[Any]) -> Any:
    column = np.empty(len(values), object)
    column[:] = values
    return column


def patterns(values: list[int]) -> Any:
    return np.array(values, np.uint64)


def steps(rows: int, total: int | None = None, width: int = 1) -> Runs:
    """Runs of patterns with gaps between them; ``rows`` of them are listed, ``total`` counted."""
    first = np.arange(rows, dtype=np.uint64) * np.uint64(4)
    answer = first >> np.uint64(8)
    last = first + np.uint64(width - 1)
    rise, straight = np.zeros(rows, np.int64), np.ones(rows, np.bool_)
    total = rows if total is None else total
    return Runs(total, first, last, answer, answer, rise, straight, checksum=7 * total + width)


def divergence(runs: Runs, rule: str = "rounds", **changes: Any) -> WrongValues:
    fields = {"smallest": 1, "answer": 2, "allowed": ("0x0000", "any-nan")}
    return WrongValues(rule, "§ 1", "required", int(runs.total), runs, **fields | changes)


def judgement(case: Case, *problems: Problem, **changes: Any) -> Judgement:
    fields: dict[str, Any] = {"verdict": "violates" if problems else "conforms", "inputs": 256}
    return Judgement(case.id, "ort", problems=problems, **fields | changes)


CACHED_PROPERTIES = ("kept", "data", "digest", "message")


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal, arrays including their dtypes."""
    match one:
        case np.ndarray():
            return one.dtype == other.dtype and one.tolist() == other.tolist()
        case tuple():
            return len(one) == len(other) and all(map(same, one, other))
        case _ if hasattr(one, "__dict__"):
            return type(one) is type(other) and all(
                same(value, vars(other)[name])
                for name, value in vars(one).items()
                if name not in CACHED_PROPERTIES
            )
        case _:
            return type(one) is type(other) and one == other


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
