"""The Parquet tables of a run: the same judgements in the same order give the same bytes.

They are written as the judgements arrive. Row groups, and pages within them, depend on the rows
alone, not on how many rows each judgement has.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from reports.grading.failure_runs import Runs
from reports.judgement import FAILING, NOT_RUN, AnswerDigest, Judgement
from reports.problems import (
    BrokenRule,
    Died,
    Note,
    ShownDatum,
    Unoffered,
    WrongValues,
    problem_json,
    wrong_inputs,
)
from reports.run_store.storage import Folder
from specs.cases import Case
from specs.formats import Format, format_named

# Arrow's own allocator keeps what was freed to itself. A process that reads or writes tables also
# has hundreds of megabytes of Python objects and arrays, which could not use it.
pa.set_memory_pool(pa.system_memory_pool())


def list_of(kind: Any) -> Any:
    """Make an Arrow list type with the field name of Parquet, so that schemas compare equal."""
    return pa.list_(pa.field("element", kind))


TEXT, COUNT, BITS = pa.string(), pa.uint64(), pa.uint64()
BROKEN_RULE = pa.struct(
    [
        ("rule", TEXT),
        ("clause", TEXT),
        ("level", TEXT),
        ("wrong", COUNT),
        ("runs", COUNT),
        ("digest", TEXT),
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
        ("reaches_ends", pa.bool_()),
        ("broken", list_of(BROKEN_RULE)),
        ("reproduction", TEXT),
        ("asked", TEXT),
        ("answers", TEXT),
    ]
)
PAIRS = pa.schema(
    [
        *((name, TEXT) for name in ("backend", "check", "case", "verdict", "message")),
        *((name, COUNT) for name in ("inputs", "open")),
        *((name, TEXT) for name in ("rule", "clause", "level")),
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
PROBLEMS = pa.schema([*((name, TEXT) for name in ("backend", "name")), ("problem", TEXT)])
ANSWERS = pa.schema([("digest", TEXT), ("dtype", TEXT), ("count", COUNT), ("data", pa.binary())])
DIGESTS = pa.schema(
    [
        *((name, TEXT) for name in ("backend", "name", "asked", "answers")),
        *((name, list_of(TEXT)) for name in ("given", "got")),
    ]
)
SCHEMAS = {
    "cases.parquet": CASES,
    "pairs.parquet": PAIRS,
    "divergences.parquet": DIVERGENCES,
    "answers.parquet": ANSWERS,
    "problems.parquet": PROBLEMS,
}
"""The tables of every run."""
DIGESTS_TABLE = "digests.parquet"
"""A further table, of a run that digests answers instead of keeping them."""
ALL_SCHEMAS = SCHEMAS | {DIGESTS_TABLE: DIGESTS}
NEVER_NULL = {
    "cases.parquet": ("backend", "case", "verdict", "inputs"),
    "pairs.parquet": ("backend", "check", "verdict"),
    "divergences.parquet": ("backend", "case", "rule", "count"),
    "answers.parquet": ANSWERS.names,
    "problems.parquet": PROBLEMS.names,
    DIGESTS_TABLE: DIGESTS.names,
}
"""The columns without which a row of a table says nothing."""
ROWS_PER_GROUP = {
    "cases.parquet": 1 << 12,
    "pairs.parquet": 1 << 12,
    "divergences.parquet": 1 << 17,
    "answers.parquet": 1 << 7,
    "problems.parquet": 1 << 12,
    DIGESTS_TABLE: 1 << 12,
}
"""Rows of a row group, which is what a writer or a reader holds in memory at a time."""
JudgedCase = tuple[str, Case, Judgement]
"""A backend's name, a case, and the judgement on it."""


class TableWriter:
    """Writes one table into a stream, row group by row group, while the next rows are made.

    It is a context manager, whose end writes what is left.
    """

    def __init__(self, name: str, stream: Any) -> None:
        self.schema, self.group_size = ALL_SCHEMAS[name], ROWS_PER_GROUP[name]
        self.pending_rows: list[dict[str, Any]] = []
        self.pending_tables: list[Any] = []
        self.row_count = 0
        self.thread = ThreadPoolExecutor(1)
        self.written: Future[None] | None = None
        repetitive = [field.name for field in self.schema if field.type == TEXT]
        numeric = [field.name for field in self.schema if pa.types.is_integer(field.type)]
        self.writer = pq.ParquetWriter(
            stream,
            self.schema,
            version="2.6",
            compression="zstd",
            compression_level=3,
            use_dictionary=repetitive,
            column_encoding=dict.fromkeys(numeric, "DELTA_BINARY_PACKED"),
            write_page_checksum=True,
            store_schema=False,
        )

    def add_row(self, row: dict[str, Any]) -> None:
        """Add one row as a dictionary; rows are collected, because converting many is faster."""
        self.pending_rows.append(row)
        if len(self.pending_rows) == self.group_size:
            self._convert_rows()

    def add(self, table: Any) -> None:
        """Add the rows of an Arrow table, and write the row groups that are full."""
        self.pending_tables.append(table)
        self.row_count += table.num_rows
        while self.row_count >= self.group_size:
            self._write(self.group_size)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Write the remaining rows, unless an error was raised, and the footer."""
        with closing(self.writer), self.thread:
            if kind is None:
                self._convert_rows()
                if self.row_count:
                    self._write(self.row_count)
                self._await_written()

    def _convert_rows(self) -> None:
        rows, self.pending_rows = self.pending_rows, []
        if rows:
            self.add(pa.Table.from_pylist(rows, self.schema))

    def _write(self, count: int) -> None:
        # In one chunk: page boundaries follow chunks, and must not depend on how rows arrived.
        pending = pa.concat_tables(self.pending_tables)
        group = pending.slice(0, count).combine_chunks()
        self._await_written()
        self.written = self.thread.submit(self.writer.write_table, group, row_group_size=count)
        self.pending_tables, self.row_count = [pending.slice(count)], self.row_count - count

    def _await_written(self) -> None:
        if self.written is not None:
            self.written.result()


def write_tables(folder: Folder, rows: Iterable[JudgedCase]) -> None:
    """Write all tables of a run into a folder; no file appears before all are complete.

    The table of digests is written only if it has rows.
    """
    with ExitStack() as stack:
        streams = {name: stack.enter_context(folder.new_file(name)) for name in SCHEMAS}
        cases, pairs, divergences, answers, problems = (
            stack.enter_context(TableWriter(name, stream)) for name, stream in streams.items()
        )
        digests: TableWriter | None = None
        written: set[str] = set()
        for backend, case, judgement in rows:
            if judgement.answer_digest is not None:
                if digests is None:
                    stream = stack.enter_context(folder.new_file(DIGESTS_TABLE))
                    digests = stack.enter_context(TableWriter(DIGESTS_TABLE, stream))
                digests.add_row(digest_row(backend, case, judgement, judgement.answer_digest))
            for row in problem_rows(backend, case, judgement):
                problems.add_row(row)
            if judgement.check:
                pairs.add_row(pair_row(backend, judgement))
                continue
            cases.add_row(case_row(backend, case, judgement))
            for table in divergence_rows(backend, case, judgement):
                divergences.add(table)
            for array in judgement.answered or ():
                if array.digest not in written:
                    written.add(array.digest)
                    answers.add_row(
                        {
                            "digest": array.digest,
                            "dtype": array.dtype,
                            "count": array.values.size,
                            "data": array.data,
                        }
                    )


def case_row(backend: str, case: Case, judgement: Judgement) -> dict[str, Any]:
    """Return a judgement's row of ``cases.parquet`` by column; no digests if it holds no arrays."""
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
        "message": escape_surrogates(judgement.message),
        "inputs": judgement.inputs,
        "open": judgement.open_inputs,
        "wrong": judgement.wrong,
        "runs": sum(divergence.runs.total for divergence in judgement.divergences),
        "reaches_ends": judgement.reaches_ends,
        "broken": [_broken_rule(case, broken) for broken in judgement.broken_rules],
        "reproduction": escape_surrogates(judgement.reproduction),
    }
    digests = (array.digest for array in judgement.answered or ())
    return row | dict(zip(("asked", "answers"), digests, strict=False))


def pair_row(backend: str, judgement: Judgement) -> dict[str, Any]:
    """Return the row of a judgement in ``pairs.parquet``; raise ValueError for two broken rules."""
    [broken] = judgement.broken_rules or (None,)
    return {
        "backend": backend,
        "check": judgement.check,
        "case": judgement.case,
        "verdict": judgement.verdict,
        "message": escape_surrogates(judgement.message),
        "inputs": judgement.inputs,
        "open": judgement.open_inputs,
        "rule": broken and broken.rule,
        "clause": broken and broken.clause,
        "level": broken and broken.level,
    }


def digest_row(
    backend: str, case: Case, judgement: Judgement, digest: AnswerDigest
) -> dict[str, Any]:
    """Return a judgement's row of ``digests.parquet``: a pair of texts for each example."""
    return {
        "backend": backend,
        "name": judgement.check or case.id,
        "asked": digest.asked,
        "answers": digest.answers,
        "given": [escape_surrogates(each.given) for each in digest.examples],
        "got": [escape_surrogates(each.got) for each in digest.examples],
    }


def problem_rows(backend: str, case: Case, judgement: Judgement) -> Iterator[dict[str, Any]]:
    """Yield the rows of a judgement in ``problems.parquet``.

    Of a judgement that fails, these are its problems, also ``further`` ones, except wrong values
    and notes. Of any other, only deaths of the process have a row, and if the backend answered,
    also what it declined.
    """
    name, problems = judgement.check or case.id, judgement.problems
    if judgement.verdict in FAILING:
        stored = [*problems, *judgement.further]
    else:
        limits = Died if judgement.verdict in NOT_RUN else (Died, Unoffered)
        stored = [each for each in problems if isinstance(each, limits)]
    for problem in stored:
        if not isinstance(problem, WrongValues | Note):
            encoded = json.dumps(problem_json(problem), ensure_ascii=False)
            yield {"backend": backend, "name": name, "problem": escape_surrogates(encoded)}


def _broken_rule(case: Case, broken: BrokenRule) -> dict[str, Any]:
    """Encode a broken rule as the struct ``BROKEN_RULE``; a fault has no runs and no example."""
    rule = {
        "rule": broken.rule,
        "clause": broken.clause,
        "level": broken.level,
        "wrong": wrong_inputs(broken),
    }
    if not isinstance(broken, WrongValues):
        return rule | {"runs": 0, "digest": "", "smallest": None, "answer": None, "allowed": []}
    return rule | {
        "runs": broken.runs.total,
        "digest": f"{broken.runs.checksum:016x}",
        "smallest": _datum_text(format_named(case.source), broken.smallest),
        "answer": _datum_text(format_named(case.target), broken.answer),
        "allowed": [escape_surrogates(text) for text in broken.allowed],
    }


def divergence_rows(backend: str, case: Case, judgement: Judgement) -> Iterator[Any]:
    """Yield an Arrow table of ``divergences.parquet`` per ``WrongValues``, a row per listed run."""
    source, target = format_named(case.source), format_named(case.target)
    for divergence in judgement.divergences:
        runs = divergence.runs.listed
        rows = runs.first.size
        first, text = _words_and_texts(source, runs.first)
        last, _ = _words_and_texts(source, runs.last)
        answer, answer_text = _words_and_texts(target, runs.answer)
        last_answer, last_answer_text = _words_and_texts(target, runs.last_answer)
        names = (backend, case.id, divergence.rule, divergence.level)
        columns = [
            *(pa.repeat(pa.scalar(name, TEXT), rows) for name in names),
            first,
            last,
            pa.array(input_counts(runs), COUNT),
            answer,
            last_answer,
            pa.array(runs.slope, pa.int64()),
            pa.array(runs.straight, pa.bool_()),
            text,
            answer_text,
            last_answer_text,
        ]
        yield pa.Table.from_arrays(columns, schema=DIVERGENCES)


def escape_surrogates(text: str) -> str:
    r"""Return a text that UTF-8 can encode, with escapes such as ``\ud800`` for lone surrogates."""
    return text.encode("utf-8", "backslashreplace").decode()


def _datum_text(dtype: Format, datum: ShownDatum) -> str:
    return escape_surrogates(datum) if isinstance(datum, str) else dtype.hexadecimal(datum)


def _words_and_texts(dtype: Format, column: NDArray[Any]) -> tuple[Any, Any]:
    """Return a column as Arrow arrays of 64-bit words and of texts, one of which is all null.

    Patterns of a dtype that is wider than a word are all texts, however small.
    """
    if column.dtype != object:
        return pa.array(column, BITS), pa.nulls(column.size, TEXT)
    texts = [_datum_text(dtype, each) for each in column]
    return pa.nulls(column.size, BITS), pa.array(texts, TEXT)


def input_counts(runs: Runs) -> NDArray[np.uint64]:
    """Return the number of inputs of each run; one if they are texts or wider than 64 bits."""
    if runs.first.dtype == object:
        return np.ones(runs.first.size, np.uint64)
    counts: NDArray[np.uint64] = runs.last - runs.first + np.uint64(1)
    return counts
