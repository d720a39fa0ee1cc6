"""Checksums that are combined from those of blocks equal the checksums of whole rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.grading import uniform_checksums
from reports.grading.failure_runs import checksum_of_row
from reports.grading.uniform_checksums import BLOCK, BLOCKS, UniformChecksums
from tests.search import examples

CORNERS = st.sampled_from([0, 1, BLOCK - 1, BLOCK, 3 * BLOCK, (BLOCKS - 2) * BLOCK - 7])
COUNTS = st.sampled_from([1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 3 * BLOCK + 5])


class Counted:
    """Computes checksums of rows, and counts the inputs that it hashes."""

    def __init__(self) -> None:
        self.inputs = 0

    def __call__(self, first: int, count: int, answer: int) -> int:
        self.inputs += count
        return checksum_of_row(first, count, answer)


@examples(40)
@given(CORNERS, COUNTS, st.sampled_from([0, 0x7F, 0xFFFF_FFFF]))
def test_a_row_has_the_checksum_of_its_inputs(first: int, count: int, answer: int) -> None:
    checksums = UniformChecksums(checksum_of_row, None)
    for _ in range(2):
        assert checksums.of(first, count, answer) == checksum_of_row(first, count, answer)


def test_a_block_is_hashed_once_and_stored(tmp_path: Path) -> None:
    counted = Counted()
    found = UniformChecksums(counted, tmp_path / "new").of(5, 3 * BLOCK, 0x7F)
    assert counted.inputs == 3 * BLOCK
    again = UniformChecksums(counted, tmp_path / "new")
    assert again.of(5, 3 * BLOCK, 0x7F) == found
    assert counted.inputs == 3 * BLOCK + BLOCK
    # The block of another answer, and later blocks, are not stored yet.
    again.of(0, BLOCK, 0x80)
    again.of(0, 4 * BLOCK, 0x7F)
    assert counted.inputs == 3 * BLOCK + BLOCK + BLOCK + 2 * BLOCK


def test_the_last_inputs_of_a_source_of_32_bits_are_hashed_once() -> None:
    counted = Counted()
    checksums = UniformChecksums(counted, None)
    for _ in range(2):
        checksums.of((1 << 32) - (1 << 20), 1 << 20, 0x7F)
    assert counted.inputs == 1 << 20


def test_a_source_of_64_bits_is_hashed_as_it_is(tmp_path: Path) -> None:
    first = BLOCKS * BLOCK - BLOCK
    found = UniformChecksums(checksum_of_row, tmp_path).of(first, 2 * BLOCK, 1)
    assert found == checksum_of_row(first, 2 * BLOCK, 1)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("damage", [b"", b"\1\2\3", b"\0" * 8 * BLOCKS * 2])
def test_a_damaged_file_is_no_error(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "7f").write_bytes(damage)
    checksums = UniformChecksums(checksum_of_row, tmp_path)
    assert checksums.of(0, BLOCK, 0x7F) == checksum_of_row(0, BLOCK, 0x7F)


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    checksums = UniformChecksums(checksum_of_row, tmp_path / "file")
    assert checksums.of(0, BLOCK, 0x7F) == checksum_of_row(0, BLOCK, 0x7F)


def test_where_a_backend_must_not_reach_its_judge_nothing_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    uniform_checksums.uniform_checksums(Counted(), False).of(0, BLOCK, 1)
    assert not [*tmp_path.iterdir()]
    uniform_checksums.uniform_checksums(Counted(), True).of(0, BLOCK, 1)
    assert [each.name for each in tmp_path.glob("castigate/checksums/*/*")] == ["1"]
