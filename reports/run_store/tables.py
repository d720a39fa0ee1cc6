"""The three tables of a run: the same judgements in the same order give the same bytes.

They are written as the judgements come. Row groups, and pages within them, depend on the rows
alone, however many rows a judgement brings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from reports.diff.failure_runs import Runs
from reports.diff.judgement import Datum, Judgement
from reports.diff.kept_answers import Kept
from reports.run_store.storage import Place
from specs.cases import Case
from specs.formats import Format, format_named


def list_of(kind: Any) -> Any:
    """A list whose elements are called as in a file, so that a schema is read as it is written."""
    return pa.list_(pa.field("element", kind))


TEXT, COUNT, BITS = pa.string(), pa.uint64(), pa.uint64()
BROKEN = pa.struct(
    [
        ("rule", TEXT),
        ("clause", TEXT),
        ("level", TEXT),
        ("wrong", COUNT),
        ("runs", COUNT),
        ("smallest", TEXT),
        ("answer", TEXT),
        ("allowed", list_of(TEXT)),
    ]
)
CASES = pa.schema(
    [
        *((name, TEXT) for name in ("backend", "case", "document", "version", "source", "target")),
        *((name, TEXT) for name in ("mode", "verdict", "message")),
        *((name, COUNT) for name in ("inputs", "open", "wrong", "runs")),
        ("broken", list_of(BROKEN)),
        ("reproduction", TEXT),
        ("asked", TEXT),
        ("answers", TEXT),
    ]
)
DIVERGENCES = pa.schema(
    [
        *((name, TEXT) for name in ("backend", "case", "rule", "level")),
        *((name, BITS) for name in ("first", "last")),
        ("count", COUNT),
        *((name, BITS) for name in ("answer", "last_answer")),
        ("slope", pa.int64()),
        ("straight", pa.bool_()),
        *((name, TEXT) for name in ("text", "answer_text", "last_answer_text")),
    ]
)
ANSWERS = pa.schema([("digest", TEXT), ("dtype", TEXT), ("count", COUNT), ("data", pa.binary())])
SCHEMAS = {
    "cases.parquet": CASES,
    "divergences.parquet": DIVERGENCES,
    "answers.parquet": ANSWERS,
}
GROUPS = {"cases.parquet": 1 << 12, "divergences.parquet": 1 << 17, "answers.parquet": 1 << 7}
"""Rows of a row group: what a writer holds at a time, and a reader too."""
WORD = 1 << 64
Row = tuple[str, Case, Judgement]
"""A backend's name, a case, and the verdict on it."""


class Sheet:
    """One table on its way into a stream."""

    def __init__(self, name: str, stream: Any) -> None:
        self.schema, self.group = SCHEMAS[name], GROUPS[name]
        self.loose: list[dict[str, Any]] = []
        self.waiting: list[Any] = []
        self.rows = 0
        repeating = [field.name for field in self.schema if field.type == TEXT]
        rising = [field.name for field in self.schema if pa.types.is_integer(field.type)]
        self.writer = pq.ParquetWriter(
            stream,
            self.schema,
            version="2.6",
            compression="zstd",
            compression_level=3,
            use_dictionary=repeating,
            column_encoding=dict.fromkeys(rising, "DELTA_BINARY_PACKED"),
            write_page_checksum=True,
            store_schema=False,
        )

    def add_row(self, row: dict[str, Any]) -> None:
        """Take a row; it becomes a table together with those that follow it."""
        self.loose.append(row)
        if len(self.loose) == self.group:
            self._gather()

    def add(self, rows: Any) -> None:
        """Take the next rows, and write whole row groups."""
        self.waiting.append(rows)
        self.rows += rows.num_rows
        while self.rows >= self.group:
            self._write(self.group)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Write the rows that are left, and the footer, if all went well."""
        if kind is None:
            self._gather()
            if self.rows:
                self._write(self.rows)
        self.writer.close()

    def _gather(self) -> None:
        loose, self.loose = self.loose, []
        if loose:
            self.add(pa.Table.from_pylist(loose, self.schema))

    def _write(self, rows: int) -> None:
        # In one chunk: page boundaries follow chunks, and chunks must not tell who found what.
        waiting = pa.concat_tables(self.waiting)
        self.writer.write_table(waiting.slice(0, rows).combine_chunks(), row_group_size=rows)
        self.waiting, self.rows = [waiting.slice(rows)], self.rows - rows


def write_tables(place: Place, rows: Iterable[Row]) -> None:
    """Write all tables; none has its name before all are whole."""
    with ExitStack() as stack:
        streams = {name: stack.enter_context(place.writing(name)) for name in SCHEMAS}
        cases, divergences, answers = (
            stack.enter_context(Sheet(name, stream)) for name, stream in streams.items()
        )
        known: set[str] = set()
        for backend, case, judgement in rows:
            cases.add_row(case_row(backend, case, judgement))
            for few in divergence_rows(backend, case, judgement):
                divergences.add(few)
            for array in _arrays(judgement):
                if array.digest not in known:
                    known.add(array.digest)
                    answers.add_row(_array_row(array))


def case_row(backend: str, case: Case, judgement: Judgement) -> dict[str, Any]:
    """The row of a judgement in ``cases.parquet``."""
    segments = case.id.split("/")
    row = {
        "backend": backend,
        "case": case.id,
        "document": case.document,
        "version": case.version,
        "source": case.source,
        "target": case.target,
        "mode": "/".join(segments[3:]),
        "verdict": judgement.verdict,
        "message": plain(judgement.message),
        "inputs": judgement.inputs,
        "open": judgement.open_inputs,
        "wrong": judgement.wrong,
        "runs": sum(divergence.runs.total for divergence in judgement.divergences),
        "broken": list(_broken(case, judgement)),
        "reproduction": plain(judgement.reproduction),
    }
    digests = (array.digest for array in _arrays(judgement))
    return row | dict(zip(("asked", "answers"), digests, strict=False))


def divergence_rows(backend: str, case: Case, judgement: Judgement) -> Iterator[Any]:
    """The rows of a judgement in ``divergences.parquet``, rule by rule."""
    source, target = format_named(case.source), format_named(case.target)
    for divergence in judgement.divergences:
        runs = divergence.runs.kept
        rows = runs.first.size
        first, text = _columns(source, runs.first)
        last, _ = _columns(source, runs.last)
        answer, answer_text = _columns(target, runs.answer)
        last_answer, last_answer_text = _columns(target, runs.last_answer)
        named = (backend, case.id, divergence.rule, divergence.level)
        columns = [
            *(pa.repeat(pa.scalar(each, TEXT), rows) for each in named),
            first,
            last,
            pa.array(_counts(runs), COUNT),
            answer,
            last_answer,
            pa.array(runs.slope, pa.int64()),
            pa.array(runs.straight, pa.bool_()),
            text,
            answer_text,
            last_answer_text,
        ]
        yield pa.Table.from_arrays(columns, schema=DIVERGENCES)


def _arrays(judgement: Judgement) -> tuple[Kept, ...]:
    """What was asked and what was answered, where answers were kept."""
    answered = judgement.answered
    return (answered.inputs, answered.answers) if answered is not None else ()


def _array_row(array: Kept) -> dict[str, Any]:
    row = {"digest": array.digest, "dtype": array.dtype, "count": array.values.size}
    return row | {"data": array.data}


def plain(text: str) -> str:
    r"""A text as a table can hold it; a lone surrogate, unknown to UTF-8, is written ``\ud800``."""
    return text.encode("utf-8", "backslashreplace").decode()


def _broken(case: Case, judgement: Judgement) -> Iterator[dict[str, Any]]:
    source, target = format_named(case.source), format_named(case.target)
    for divergence in judgement.divergences:
        yield {
            "rule": divergence.rule,
            "clause": divergence.clause,
            "level": divergence.level,
            "wrong": divergence.count,
            "runs": divergence.runs.total,
            "smallest": _datum(source, divergence.smallest),
            "answer": _datum(target, divergence.answer),
            "allowed": [plain(word) for word in divergence.allowed],
        }
    for fault in judgement.faults:
        told = {"rule": fault.rule, "clause": fault.clause, "level": fault.level}
        yield told | {"wrong": 0, "runs": 0, "smallest": None, "answer": None, "allowed": []}


def _datum(form: Format, datum: Datum) -> str:
    return plain(datum) if isinstance(datum, str) else form.hexadecimal(datum)


def _columns(form: Format, column: NDArray[Any]) -> tuple[Any, Any]:
    """A column's 64-bit words, and its texts: what is no such word is null in the first."""
    if column.dtype != object:
        return pa.array(column, BITS), pa.nulls(column.size, TEXT)
    words = [each if isinstance(each, int) and each < WORD else None for each in column]
    texts = [
        _datum(form, each) if word is None else None
        for each, word in zip(column, words, strict=True)
    ]
    return pa.array(words, BITS), pa.array(texts, TEXT)


def _counts(runs: Runs) -> NDArray[np.uint64]:
    """How many inputs each run has; texts, and patterns too wide for a word, stand alone."""
    if runs.first.dtype == object:
        return np.ones(runs.first.size, np.uint64)
    counts: NDArray[np.uint64] = runs.last - runs.first + np.uint64(1)
    return counts
