"""What a finished task found, as bytes that come back whole or are known to be damaged.

An Arrow stream of the runs' columns, all divergences' runs one after another; the rest is JSON in
its metadata. The last bytes are the sha256 of all before them.
"""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from hashlib import sha256
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reports.diff.failure_runs import Runs
from reports.diff.judgement import Divergence, Fault, Judgement
from reports.diff.kept_answers import Answered, Kept, kept_of

ABOUT = b"castigate part 3"
"""The key of the metadata; its number changes with the form."""
CHECKSUM_BYTES = sha256().digest_size
DATA = ("first", "last", "answer", "last_answer")
"""The columns of patterns or texts. A column is words of 64 bits, or in ``…_object`` bytes."""
SCHEMA = pa.schema(
    [
        *((name, pa.uint64()) for name in DATA),
        *((f"{name}_object", pa.binary()) for name in DATA),
        ("slope", pa.int64()),
        ("straight", pa.bool_()),
        ("array", pa.large_binary()),
    ]
)
ARRAY = len(SCHEMA) - 1


class DamagedPartError(Exception):
    """Bytes that are no part, or no longer."""


def packed(name: str, judgements: list[Judgement]) -> bytes:
    """A task's name and what it found, as bytes."""
    batches: list[Any] = []
    arrays: dict[str, Kept] = {}
    about = {
        "name": name,
        "judgements": [_told(judgement, batches, arrays) for judgement in judgements],
        "arrays": [array.dtype for array in arrays.values()],
    }
    batches += [_array_batch(array) for array in arrays.values()]
    # Texts come from frameworks and may hold lone surrogates, which plain UTF-8 refuses.
    told = json.dumps(about, ensure_ascii=False).encode("utf-8", "surrogatepass")
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA.with_metadata({ABOUT: told})) as stream:
        for batch in batches:
            stream.write_batch(batch)
    payload: bytes = sink.getvalue().to_pybytes()
    return payload + sha256(payload).digest()


def name_of(data: bytes) -> str:
    """The name of the task whose part this is."""
    return str(_opened(data)[0]["name"])


def unpacked(data: bytes) -> tuple[str, list[Judgement]]:
    """The name of the task, and what it found."""
    about, stream = _opened(data)
    batches = list(stream)
    runs = iter(batches)
    dtypes = about["arrays"]
    last = batches[len(batches) - len(dtypes) :]
    arrays = [
        kept_of(dtype, batch.column(ARRAY)[0].as_py())
        for dtype, batch in zip(dtypes, last, strict=True)
    ]
    known = {array.digest: array for array in arrays}
    return about["name"], [_judgement(told, runs, known) for told in about["judgements"]]


def _opened(data: bytes) -> tuple[Any, Any]:
    payload, checksum = data[:-CHECKSUM_BYTES], data[-CHECKSUM_BYTES:]
    if sha256(payload).digest() != checksum:
        raise DamagedPartError("its checksum is wrong")
    try:
        stream = pa.ipc.open_stream(payload)
        return json.loads(stream.schema.metadata[ABOUT].decode("utf-8", "surrogatepass")), stream
    except (pa.ArrowException, KeyError, TypeError, ValueError):
        raise DamagedPartError("another version of castigate wrote it") from None


def _told(judgement: Judgement, batches: list[Any], arrays: dict[str, Kept]) -> dict[str, Any]:
    """All of a judgement but its runs, which go to the batches, and its answers."""
    batches += [_batch(divergence.runs) for divergence in judgement.divergences]
    shallow = _shallow(judgement)
    shallow["divergences"] = [
        _shallow(divergence) | {"runs": _form(divergence.runs)}
        for divergence in judgement.divergences
    ]
    shallow["faults"] = [asdict(fault) for fault in judgement.faults]
    if judgement.answered is not None:
        both = (judgement.answered.inputs, judgement.answered.answers)
        arrays.update({array.digest: array for array in both})
        shallow["answered"] = [array.digest for array in both]
    return shallow


def _shallow(record: Judgement | Divergence) -> dict[str, Any]:
    return {each.name: getattr(record, each.name) for each in fields(record)}


def _judgement(told: dict[str, Any], batches: Any, arrays: dict[str, Kept]) -> Judgement:
    found = tuple(
        Divergence(
            **each | {"runs": _runs(each["runs"], batches), "allowed": tuple(each["allowed"])}
        )
        for each in told["divergences"]
    )
    faults = tuple(Fault(**fault) for fault in told["faults"])
    answered = None
    if told["answered"] is not None:
        answered = Answered(*(arrays[digest] for digest in told["answered"]))
    return Judgement(**told | {"divergences": found, "faults": faults, "answered": answered})


def _form(runs: Runs) -> dict[str, Any]:
    """What the columns alone do not say."""
    return {"total": runs.total} | {name: _kind(getattr(runs, name)) for name in DATA}


def _kind(column: NDArray[Any]) -> str:
    if column.dtype != object:
        return "patterns"
    return "numbers" if column.size and isinstance(column[0], int) else "texts"


def _batch(runs: Runs) -> Any:
    columns: dict[str, Any] = {"slope": pa.array(runs.slope), "straight": pa.array(runs.straight)}
    for name in DATA:
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


def _array_batch(array: Kept) -> Any:
    nothing = {field.name: pa.nulls(1, field.type) for field in SCHEMA}
    return pa.record_batch(nothing | {"array": pa.array([array.data], pa.large_binary())}, SCHEMA)


def _runs(form: dict[str, Any], batches: Any) -> Runs:
    batch = next(batches)
    data = (_datums(batch, name, form[name]) for name in DATA)
    steps = (batch.column(name).to_numpy(zero_copy_only=False) for name in ("slope", "straight"))
    # Copies: a column must not keep the bytes of the whole part.
    return Runs(form["total"], *data, *(step.copy() for step in steps))


def _datums(batch: Any, name: str, kind: str) -> NDArray[Any]:
    if kind == "patterns":
        patterns: NDArray[np.uint64] = batch.column(name).to_numpy().copy()
        return patterns
    encoded = batch.column(f"{name}_object").to_pylist()
    objects = np.empty(len(encoded), object)
    for place, each in enumerate(encoded):
        numeric = kind == "numbers"
        objects[place] = int(each, 16) if numeric else each.decode("utf-8", "surrogatepass")
    return objects
