"""Judgements and records."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np

from reports.grading.failure_runs import Runs
from reports.judgement import Judgement
from reports.problems import Problem, WrongValues
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


NO_RUNS = steps(0).at([])


def divergence(runs: Runs, rule: str = "rounds", **changes: Any) -> WrongValues:
    fields: dict[str, Any] = {"smallest": 1, "answer": 2, "allowed": ("0x0000", "any-nan")}
    return WrongValues(rule, "§ 1", "required", int(runs.total), runs, **fields | changes)


def judgement(case: Case, *problems: Problem, **changes: Any) -> Judgement:
    fields: dict[str, Any] = {"verdict": "violates" if problems else "conforms", "inputs": 256}
    return Judgement(case.id, "ort", problems=problems, **fields | changes)


CACHED_PROPERTIES = ("kept", "data", "digest", "message")


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal, arrays including their dtypes."""
    match one:
        case np.ndarray():
            return bool(one.dtype == other.dtype and one.tolist() == other.tolist())
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
