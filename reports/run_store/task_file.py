"""Encodes what a finished task found as the bytes of a part, and decodes it again.

A part is an Arrow stream with the columns of all runs, one divergence after another; the rest is
JSON in its metadata. A sha256 of everything before it ends the part, so that damage is noticed.
"""

from __future__ import annotations

import json
from dataclasses import fields
from hashlib import sha256
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reports.grading.failure_runs import Runs
from reports.judgement import Judgement
from reports.problems import Problem, WrongValues, decode_problem, problem_json
from reports.run_store.answer_arrays import DatumArray, InputsAndAnswers, decode_array

METADATA_KEY = b"castigate part 6"
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
ARRAY_COLUMN = len(SCHEMA) - 1


class DamagedPartError(Exception):
    """The bytes are not a part, or are damaged."""


def encode_task(name: str, judgements: list[Judgement]) -> bytes:
    """Encode a task's name and what it found."""
    batches: list[Any] = []
    arrays: dict[str, DatumArray] = {}
    content = {
        "name": name,
        "judgements": [_judgement_json(each, batches, arrays) for each in judgements],
        "arrays": [array.dtype for array in arrays.values()],
    }
    batches += [_array_batch(array) for array in arrays.values()]
    # Texts come from frameworks and may hold lone surrogates, which plain UTF-8 refuses.
    encoded = json.dumps(content, ensure_ascii=False).encode("utf-8", "surrogatepass")
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA.with_metadata({METADATA_KEY: encoded})) as stream:
        for batch in batches:
            stream.write_batch(batch)
    payload: bytes = sink.getvalue().to_pybytes()
    return payload + sha256(payload).digest()


def read_task_name(part: bytes) -> str:
    """The name of the task that a part belongs to; raise DamagedPartError if it is damaged."""
    return str(_open(part)[0]["name"])


def decode_task(part: bytes) -> tuple[str, list[Judgement]]:
    """The name of the task and what it found; raise DamagedPartError if the part is damaged."""
    content, stream = _open(part)
    batches = list(stream)
    run_batches = iter(batches)
    dtypes = content["arrays"]
    array_batches = batches[len(batches) - len(dtypes) :]
    arrays = [
        decode_array(dtype, batch.column(ARRAY_COLUMN)[0].as_py())
        for dtype, batch in zip(dtypes, array_batches, strict=True)
    ]
    by_digest = {array.digest: array for array in arrays}
    return content["name"], [
        _decode_judgement(each, run_batches, by_digest) for each in content["judgements"]
    ]


def _open(part: bytes) -> tuple[Any, Any]:
    """The JSON in a part's metadata, and the stream of its batches."""
    payload, checksum = part[:-CHECKSUM_BYTES], part[-CHECKSUM_BYTES:]
    if sha256(payload).digest() != checksum:
        raise DamagedPartError("its checksum is wrong")
    try:
        stream = pa.ipc.open_stream(payload)
        encoded = stream.schema.metadata[METADATA_KEY]
        return json.loads(encoded.decode("utf-8", "surrogatepass")), stream
    except (pa.ArrowException, KeyError, TypeError, ValueError):
        raise DamagedPartError("another version of castigate wrote it") from None


def _judgement_json(
    judgement: Judgement, batches: list[Any], arrays: dict[str, DatumArray]
) -> dict[str, Any]:
    """A judgement as JSON, without its runs, which go to ``batches``, and its ``arrays``."""
    batches += [_run_batch(divergence.runs) for divergence in judgement.divergences]
    content = _fields(judgement)
    content["problems"] = [*map(_problem_json, judgement.problems)]
    content["further"] = [*map(problem_json, judgement.further)]
    if judgement.answered is not None:
        both = (judgement.answered.inputs, judgement.answered.answers)
        arrays.update({array.digest: array for array in both})
        content["answered"] = [array.digest for array in both]
    return content


def _problem_json(problem: Problem) -> dict[str, Any]:
    """A problem as JSON; wrong values without the columns of their runs."""
    if isinstance(problem, WrongValues):
        return _fields(problem) | {"runs": _runs_json(problem.runs)}
    return problem_json(problem)


def _fields(record: Judgement | WrongValues) -> dict[str, Any]:
    """The fields by name; unlike ``asdict``, without copying what they hold."""
    return {each.name: getattr(record, each.name) for each in fields(record)}


def _decode_judgement(
    content: dict[str, Any], run_batches: Any, arrays: dict[str, DatumArray]
) -> Judgement:
    problems = tuple(_decode_problem(each, run_batches) for each in content["problems"])
    answered = None
    if content["answered"] is not None:
        answered = InputsAndAnswers(*(arrays[digest] for digest in content["answered"]))
    further = tuple(map(decode_problem, content["further"]))
    return Judgement(**content | {"problems": problems, "answered": answered, "further": further})


def _decode_problem(content: dict[str, Any], run_batches: Any) -> Problem:
    if "runs" not in content:
        problem: Problem = decode_problem(content)
        return problem
    runs = _decode_runs(content["runs"], run_batches)
    return WrongValues(**content | {"runs": runs, "allowed": tuple(content["allowed"])})


def _runs_json(runs: Runs) -> dict[str, Any]:
    """The JSON beside the batch of runs: their total and checksum, and the kind of each column."""
    whole = {"total": runs.total, "checksum": runs.checksum}
    return whole | {name: _kind(getattr(runs, name)) for name in DATUM_COLUMNS}


def _kind(column: NDArray[Any]) -> str:
    if column.dtype != object:
        return "patterns"
    return "numbers" if column.size and isinstance(column[0], int) else "texts"


def _run_batch(runs: Runs) -> Any:
    """The rows of some runs; patterns of 128 bits are written in hex."""
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


def _array_batch(array: DatumArray) -> Any:
    """One row, which holds an encoded array."""
    nulls = {field.name: pa.nulls(1, field.type) for field in SCHEMA}
    return pa.record_batch(nulls | {"array": pa.array([array.data], pa.large_binary())}, SCHEMA)


def _decode_runs(content: dict[str, Any], run_batches: Any) -> Runs:
    batch = next(run_batches)
    data = (_decode_column(batch, name, content[name]) for name in DATUM_COLUMNS)
    others = (batch.column(name).to_numpy(zero_copy_only=False) for name in ("slope", "straight"))
    # Copied, because a view would keep the bytes of the whole part in memory.
    columns = (*data, *(column.copy() for column in others))
    return Runs(content["total"], *columns, checksum=content["checksum"])


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
