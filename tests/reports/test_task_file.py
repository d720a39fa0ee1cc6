"""A part decodes to what was encoded, or is found to be damaged."""

from __future__ import annotations

import json
from hashlib import sha256

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.grading.failure_runs import MOST_RUNS
from reports.judgement import Judgement
from reports.run_store.task_file import DamagedPartError, decode_task, encode_task, read_task_name
from tests.reports.common import HALF, divergence, judgement, same, steps
from tests.reports.judgement_strategies import JUDGEMENTS, TEXTS

SMALL = encode_task("task", [judgement(HALF, divergence(steps(3)))])


@given(TEXTS, st.lists(JUDGEMENTS, max_size=3))
def test_judgements_survive_encoding_and_decoding(name: str, found: list[Judgement]) -> None:
    data = encode_task(name, found)
    assert read_task_name(data) == name
    again, judgements = decode_task(data)
    assert again == name
    assert same(tuple(found), tuple(judgements))


def test_the_last_run_survives_even_beyond_the_cap() -> None:
    found = judgement(HALF, divergence(steps(MOST_RUNS + 1, total=1 << 30)))
    _, (again,) = decode_task(encode_task("task", [found]))
    assert same(found, again)
    assert again.divergences[0].runs.last[-1] == 4 * MOST_RUNS


@pytest.mark.parametrize("at", [0, 8, len(SMALL) // 2, len(SMALL) - 33, len(SMALL) - 1])
def test_one_flipped_bit_is_detected(at: int) -> None:
    data = bytearray(SMALL)
    data[at] ^= 4
    with pytest.raises(DamagedPartError, match="checksum"):
        decode_task(bytes(data))


@pytest.mark.parametrize("size", [0, 1, 31, 32, len(SMALL) // 2, len(SMALL) - 1])
def test_a_truncated_part_is_detected(size: int) -> None:
    with pytest.raises(DamagedPartError):
        read_task_name(SMALL[:size])


def test_undamaged_bytes_of_another_version_are_rejected() -> None:
    sink = pa.BufferOutputStream()
    schema = pa.schema([("first", pa.uint64())], {"castigate part 3": json.dumps({"name": "x"})})
    pa.ipc.new_stream(sink, schema).close()
    for payload in (sink.getvalue().to_pybytes(), b"", b"\0" * 100):
        with pytest.raises(DamagedPartError, match="another version"):
            read_task_name(payload + sha256(payload).digest())
