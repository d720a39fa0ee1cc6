"""Encodes what a finished task found as the bytes of a part, and decodes it again.

A part is an Arrow stream with the columns of all runs, one divergence after another, and then one
batch of all arrays; the rest is JSON in its metadata. Cases of one pair often fail alike, so that
equal runs are stored once. A sha256 of everything before it ends the part, so that damage is
noticed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from functools import cache
from hashlib import blake2b, sha256
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reports.grading.failure_runs import Runs
from reports.judgement import (
    AnswerDigest,
    AnswerExample,
    DatumArray,
    InputsAndAnswers,
    Judgement,
    decode_array,
)
from reports.problems import Problem, WrongValues, decode_problem, problem_json

METADATA_KEY = b"castigate part 9"
"""The key of the JSON in the metadata; its number changes with the format."""
CHECKSUM_BYTES = sha256().digest_size
DATUM_COLUMNS = ("first", "last", "answer", "last_answer")
"""The columns of patterns or texts: 64-bit words, or bytes in the column ``…_object``."""
SCHEMA = pa.schema(
    [
        *((name, pa.uint64()) for name in DATUM_COLUMNS),
        *((f"{name}_object", pa.binary()) for name in DATUM_COLUMNS),
        ("slope", pa.int64()),
        ("straight", pa.bool_()),
        ("array", pa.large_binary()),
    ]
)
COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")
"""Compresses batches, because most of their columns are null."""

DecodeColumns = Callable[..., tuple[NDArray[Any], ...]]
"""Returns the columns of the runs at a place in the part, given the kinds of ``DATUM_COLUMNS``."""


class DamagedPartError(Exception):
    """Raised for bytes that are no part of a run, or a damaged one."""


def encode_task(name: str, judgements: list[Judgement]) -> bytes:
    """Encode a task's name and its judgements as the bytes of a part."""
    runs = _DistinctRuns()
    arrays: dict[str, DatumArray] = {}
    content = {
        "name": name,
        "judgements": [_judgement_json(each, runs, arrays) for each in judgements],
        "runs": len(runs.distinct),
        "arrays": [array.dtype for array in arrays.values()],
    }
    # Made one after another: where every answer is wrong, all of them take gigabytes.
    batches = chain(map(_run_batch, runs.distinct), [_array_batch([*arrays.values()])])
    # Texts come from frameworks and may hold lone surrogates, which plain UTF-8 refuses.
    encoded = json.dumps(content, ensure_ascii=False).encode("utf-8", "surrogatepass")
    sink = pa.BufferOutputStream()
    schema = SCHEMA.with_metadata({METADATA_KEY: encoded})
    with pa.ipc.new_stream(sink, schema, options=COMPRESSED) as stream:
        for batch in batches:
            stream.write_batch(batch)
    payload = memoryview(sink.getvalue())
    return b"".join((payload, sha256(payload).digest()))


def read_task_name(part: bytes) -> str:
    """Return the name of a part's task; raise DamagedPartError if the part cannot be read."""
    return str(_open(part)[0]["name"])


def decode_task(part: bytes) -> tuple[str, list[Judgement]]:
    """Return the name of a part's task, and its judgements.

    Raise DamagedPartError if the checksum is wrong or another version wrote the part.
    """
    content, stream = _open(part)
    batches = list(stream)
    of_arrays = batches[content["runs"]].column("array")
    arrays = [
        decode_array(dtype, data.as_py())
        for dtype, data in zip(content["arrays"], of_arrays, strict=True)
    ]
    by_digest = {array.digest: array for array in arrays}
    decode = cache(lambda place, *kinds: _decode_columns(batches[place], kinds))
    return content["name"], [
        _decode_judgement(each, decode, by_digest) for each in content["judgements"]
    ]


def _open(part: bytes) -> tuple[Any, Any]:
    """Return the JSON in a part's metadata, and the stream of its batches.

    Raise DamagedPartError if the checksum is wrong or another version wrote the part.
    """
    payload, checksum = part[:-CHECKSUM_BYTES], part[-CHECKSUM_BYTES:]
    if sha256(payload).digest() != checksum:
        raise DamagedPartError("its checksum is wrong")
    try:
        stream = pa.ipc.open_stream(payload)
        encoded = stream.schema.metadata[METADATA_KEY]
        return json.loads(encoded.decode("utf-8", "surrogatepass")), stream
    except (pa.ArrowException, KeyError, TypeError, ValueError):
        raise DamagedPartError("another version of castigate wrote it") from None


class _DistinctRuns:
    """Collects the runs of a part in the order in which they are stored, equal columns once."""

    def __init__(self) -> None:
        self.distinct: list[Runs] = []
        self._places: dict[bytes, int] = {}

    def place_of(self, runs: Runs) -> int:
        """Return the place in ``distinct`` of runs with these columns; append them if missing."""
        key = blake2b()
        for column in runs.columns:
            is_text = column.dtype == object
            key.update(f"{column.dtype} {column.size} ".encode())
            key.update(repr(column.tolist()).encode() if is_text else column.tobytes())
        place = self._places.setdefault(key.digest(), len(self.distinct))
        if place == len(self.distinct):
            self.distinct.append(runs)
        return place


def _judgement_json(
    judgement: Judgement, runs: _DistinctRuns, arrays: dict[str, DatumArray]
) -> dict[str, Any]:
    """Encode a judgement as JSON; append its runs of inputs to ``runs``, its arrays to ``arrays``.

    The JSON names runs by their place and arrays by their digest.
    """
    content = _fields(judgement)
    content["problems"] = [_problem_json(each, runs) for each in judgement.problems]
    content["further"] = [*map(problem_json, judgement.further)]
    if judgement.answered is not None:
        arrays.update({array.digest: array for array in judgement.answered})
        content["answered"] = [array.digest for array in judgement.answered]
    if judgement.answer_digest is not None:
        content["answer_digest"] = asdict(judgement.answer_digest)
    return content


def _problem_json(problem: Problem, runs: _DistinctRuns) -> dict[str, Any]:
    """Encode a problem as JSON.

    Runs of wrong values are encoded as their place in ``runs``, and are added there if they are
    new.
    """
    if isinstance(problem, WrongValues):
        place = runs.place_of(problem.runs)
        return _fields(problem) | {"runs": {"place": place, **_runs_json(problem.runs)}}
    return problem_json(problem)


def _fields(record: Judgement | WrongValues) -> dict[str, Any]:
    """Return the fields of a record by name; unlike ``asdict``, without copying what they hold."""
    return {each.name: getattr(record, each.name) for each in fields(record)}


def _decode_judgement(
    content: dict[str, Any], decode: DecodeColumns, arrays: dict[str, DatumArray]
) -> Judgement:
    problems = tuple(_decode_problem(each, decode) for each in content["problems"])
    answered = None
    if content["answered"] is not None:
        answered = InputsAndAnswers(*(arrays[digest] for digest in content["answered"]))
    digest = content["answer_digest"]
    if digest is not None:
        examples = tuple(AnswerExample(**each) for each in digest["examples"])
        digest = AnswerDigest(**digest | {"examples": examples})
    further = tuple(map(decode_problem, content["further"]))
    decoded = {"problems": problems, "answered": answered, "further": further}
    return Judgement(**content | decoded | {"answer_digest": digest})


def _decode_problem(content: dict[str, Any], decode: DecodeColumns) -> Problem:
    if "runs" not in content:
        problem: Problem = decode_problem(content)
        return problem
    stored = content["runs"]
    columns = decode(stored["place"], *(stored[name] for name in DATUM_COLUMNS))
    runs = Runs(stored["total"], *columns, checksum=stored["checksum"])
    return WrongValues(**content | {"runs": runs, "allowed": tuple(content["allowed"])})


def _runs_json(runs: Runs) -> dict[str, Any]:
    """Encode what is not in the batch of runs: total, checksum, and the kinds of ``DATUM_COLUMNS``.

    A kind is `patterns` of at most 64 bits, wider `numbers`, or `texts`.
    """
    whole = {"total": runs.total, "checksum": runs.checksum}
    return whole | {name: _kind(getattr(runs, name)) for name in DATUM_COLUMNS}


def _kind(column: NDArray[Any]) -> str:
    if column.dtype != object:
        return "patterns"
    return "numbers" if column.size and isinstance(column[0], int) else "texts"


def _run_batch(runs: Runs) -> Any:
    """Make a record batch with a row per run; patterns wider than 64 bits are written in hex."""
    columns: dict[str, Any] = {"slope": pa.array(runs.slope), "straight": pa.array(runs.straight)}
    for name in DATUM_COLUMNS:
        column, rows = getattr(runs, name), runs.first.size
        columns[name] = pa.nulls(rows, pa.uint64())
        columns[f"{name}_object"] = pa.nulls(rows, pa.binary())
        match _kind(column):
            case "patterns":
                columns[name] = pa.array(column, pa.uint64())
            case "texts":
                encoded = [text.encode("utf-8", "surrogatepass") for text in column]
                columns[f"{name}_object"] = pa.array(encoded, pa.binary())
            case "numbers":
                columns[f"{name}_object"] = pa.array([b"%x" % code for code in column], pa.binary())
    columns["array"] = pa.nulls(runs.first.size, pa.large_binary())
    return pa.record_batch(columns, SCHEMA)


def _array_batch(arrays: Sequence[DatumArray]) -> Any:
    """Make a record batch with a row per array; to compress one for each would take longer."""
    columns = {field.name: pa.nulls(len(arrays), field.type) for field in SCHEMA}
    columns["array"] = pa.array([array.data for array in arrays], pa.large_binary())
    return pa.record_batch(columns, SCHEMA)


def _decode_columns(batch: Any, kinds: Sequence[str]) -> tuple[NDArray[Any], ...]:
    data = (_decode_column(batch, *each) for each in zip(DATUM_COLUMNS, kinds, strict=True))
    others = (batch.column(name).to_numpy(zero_copy_only=False) for name in ("slope", "straight"))
    # Copied, because a view would keep the bytes of the whole part in memory.
    return (*data, *(column.copy() for column in others))


def _decode_column(batch: Any, name: str, kind: str) -> NDArray[Any]:
    if kind == "patterns":
        patterns: NDArray[np.uint64] = batch.column(name).to_numpy().copy()
        return patterns
    encoded = batch.column(f"{name}_object").to_pylist()
    objects = np.empty(len(encoded), object)
    for index, each in enumerate(encoded):
        is_number = kind == "numbers"
        objects[index] = int(each, 16) if is_number else each.decode("utf-8", "surrogatepass")
    return objects
