"""Shards merge only if all shards of one run are there, each once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from reports.run_store.merge import merge_shards
from reports.run_store.record import BackendRecord, record_differences
from reports.run_store.store import create
from specs.errors import CastigateError
from tests.reports.common import HALF, MACHINE, divergence, judgement, record, same, shard, steps

Shards = Sequence[str]
MERGE = ("/usr/bin/castigate", "merge")


def complete_shards(folder: Path, count: int) -> list[str]:
    return [complete_shard(folder / f"s{index}", index, count) for index in range(1, count + 1)]


def complete_shard(folder: Path, index: int, count: int, **changes: Any) -> str:
    store = create(str(folder), shard(index, count, **changes))
    store.write(f"task {index}", [judgement(HALF, divergence(steps(index)))])
    store.finish([], lambda: 0)
    return str(folder)


def test_all_shards_merge_to_the_record_of_the_run(tmp_path: Path) -> None:
    elsewhere = MACHINE.model_copy(update={"cpus": 64})
    early = datetime(2025, 12, 31, tzinfo=UTC)
    shards = [
        complete_shard(tmp_path / "2", 2, 3),
        complete_shard(tmp_path / "3", 3, 3, environments=(elsewhere,), started=early),
        complete_shard(tmp_path / "1", 1, 3),
    ]
    whole = record(environments=(MACHINE, elsewhere), started=early)
    merged = merge_shards(shards, str(tmp_path / "out"), MERGE)
    assert merged.record == whole.model_copy(update={"command_line": ("castigate", "merge")})
    found = [each for name in sorted(merged.finished()) for each in merged.read(name)]
    assert same(tuple(found), tuple(judgement(HALF, divergence(steps(n))) for n in (1, 2, 3)))


def test_a_single_shard_merges_to_a_run(tmp_path: Path) -> None:
    merged = merge_shards(complete_shards(tmp_path, 1), str(tmp_path / "out"), MERGE)
    assert merged.record == record(command_line=("castigate", "merge"))


def _with_unfinished_shard(folder: Path) -> Shards:
    create(str(folder / "u"), shard(2, 2))
    return [*complete_shards(folder, 1), str(folder / "u")]


def _with_whole_run(folder: Path) -> Shards:
    create(str(folder / "w"), record()).finish([], lambda: 0)
    return [str(folder / "w")]


def _with_missing_part(folder: Path) -> Shards:
    shards = complete_shards(folder, 1)
    [part] = (folder / "s1" / "parts").iterdir()
    part.rename(folder / "s1" / "part")
    return shards


def _of_older_suite(folder: Path) -> Shards:
    return [
        complete_shard(folder / "s1", 1, 2, suite="0.0.9"),
        complete_shard(folder / "s2", 2, 2, suite="0.0.9"),
    ]


def _with_different_shard(**changes: Any) -> Callable[[Path], Shards]:
    return lambda folder: [
        complete_shard(folder / "s1", 1, 2),
        complete_shard(folder / "s2", 2, 2, **changes),
    ]


NOT_SAME_RUN = "F/s2 is no shard of the run of F/s1: "
REFUSED: dict[str, tuple[Callable[[Path], Shards], str]] = {
    "two of four": (lambda folder: complete_shards(folder, 4)[1::2],
        "shard 1/4, 3/4 of the run is missing; give the folders of all shards"),
    "one twice": (lambda folder: [*(few := complete_shards(folder, 2)), few[0]],
        "F/s1 and F/s1 are both shard 1/2; give each shard once"),
    "an unfinished one": (_with_unfinished_shard,
        "F/u holds an unfinished run; go on with it by `castigate run … --resume`"),
    "a whole run": (_with_whole_run, "F/w is a whole run; only shards can be merged"),
    "a missing part": (_with_missing_part,
        "F/s1/parts/9c70423078253913200a3450779974e8.part is missing; copy the whole shard again, "
        "or run it again into another --out"),
    "another suite": (_of_older_suite,
        "F/s1 was made by castigate 0.0.9, this is 0.3.0; merge with the version that made it"),
    "another count": (
        lambda folder: [complete_shard(folder / "s1", 1, 2), complete_shard(folder / "s2", 3, 3)],
        f"{NOT_SAME_RUN}--shard 1/2 there, --shard 3/3 here"),
    "another seed": (_with_different_shard(seed=3), f"{NOT_SAME_RUN}--seed 0 there, --seed 3 here"),
    "another tier": (_with_different_shard(tier="full"),
        f"{NOT_SAME_RUN}--tier quick there, --tier full here"),
    "another backend": (
        _with_different_shard(backends=(BackendRecord(name="torch", version="2.13.0"),)),
        f"{NOT_SAME_RUN}ort 1.31.1 there, torch 2.13.0 here"),
    "another document": (
        _with_different_shard(documents={"onnx-cast": "cd"}),
        f"{NOT_SAME_RUN}document onnx-cast of sha256 {'ab' * 32} there, "
        "document onnx-cast of sha256 cd here",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_a_refusal_says_what_is_wrong(what: str, tmp_path: Path) -> None:
    prepare, message = REFUSED[what]
    shards = prepare(tmp_path)
    with pytest.raises(CastigateError) as caught:
        merge_shards(shards, str(tmp_path / "out"), MERGE)
    assert str(caught.value) == message.replace("F/", f"{tmp_path}/")


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"chains": {"ort": ("onnx-cast:25",)}}, "--chains"),
        ({"rules": {"ours": "a text"}}, "--rules"),
        ({"isolates_sweeps": True}, "sweeps in processes of their own"),
    ],
)
def test_records_differ_by_chains_rules_and_isolation(changes: Any, name: str) -> None:
    [(missing, found)] = record_differences(record(), record(**changes))
    assert (missing, found.startswith(f"{name} ")) == (f"no {name}", True)
