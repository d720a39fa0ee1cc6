"""A part gives back what was put into it, or says that it is damaged."""

from __future__ import annotations

import json
from hashlib import sha256

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.diff.failure_runs import KEPT_RUNS
from reports.diff.judgement import Judgement
from reports.run_store.task_file import DamagedPartError, decode_task, encode_task, read_task_name
from tests.reports.common import HALF, JUDGEMENTS, TEXTS, divergence, judgement, same, steps

SMALL = encode_task("task", [judgement(HALF, divergence(steps(3)))])


@given(TEXTS, st.lists(JUDGEMENTS, max_size=3))
def test_whatever_a_task_found_comes_back(name: str, found: list[Judgement]) -> None:
    data = encode_task(name, found)
    assert read_task_name(data) == name
    again, judgements = decode_task(data)
    assert again == name
    assert same(tuple(found), tuple(judgements))


def test_the_very_last_run_of_too_many_comes_back() -> None:
    found = judgement(HALF, divergence(steps(KEPT_RUNS + 1, total=1 << 30)))
    _, (again,) = decode_task(encode_task("task", [found]))
    assert same(found, again)
    assert again.divergences[0].runs.last[-1] == 4 * KEPT_RUNS


@pytest.mark.parametrize("at", [0, 8, len(SMALL) // 2, len(SMALL) - 33, len(SMALL) - 1])
def test_one_wrong_bit_is_noticed(at: int) -> None:
    data = bytearray(SMALL)
    data[at] ^= 4
    with pytest.raises(DamagedPartError, match="checksum"):
        decode_task(bytes(data))


@pytest.mark.parametrize("size", [0, 1, 31, 32, len(SMALL) // 2, len(SMALL) - 1])
def test_a_part_that_is_cut_short_is_noticed(size: int) -> None:
    with pytest.raises(DamagedPartError):
        read_task_name(SMALL[:size])


def test_whole_bytes_of_another_make_are_noticed() -> None:
    sink = pa.BufferOutputStream()
    schema = pa.schema([("first", pa.uint64())], {"castigate part 4": json.dumps({"name": "x"})})
    pa.ipc.new_stream(sink, schema).close()
    for payload in (sink.getvalue().to_pybytes(), b"", b"\0" * 100):
        with pytest.raises(DamagedPartError, match="another version"):
            read_task_name(payload + sha256(payload).digest())
