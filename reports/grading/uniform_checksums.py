"""Checksums of consecutive inputs that share one answer, put together from those of aligned blocks.

A checksum hashes each input with its answer, which takes longer than most casts. That of a block
depends only on the block and the answer, so it is computed once and stored in a folder.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reports.grading.failure_runs import FACTORS, SHIFTS, WORD
from specs.model.cache import cache_folder

BLOCK = 1 << 17
"""The inputs of a block."""
BLOCKS = (1 << 32) // BLOCK
"""The blocks whose checksums are stored for an answer: those of a source of 32 bits."""

ChecksumOfRow = Callable[[int, int, int], int]
"""Computes the checksum of consecutive inputs from their first, their count and their answer."""


class UniformChecksums:
    """Computes checksums of consecutive inputs that share an answer; caches those of whole blocks.

    With a ``folder``, the blocks' checksums are also stored there, a file per answer.
    """

    def __init__(self, checksum_of_row: ChecksumOfRow, folder: Path | None) -> None:
        self._checksum_of_row = checksum_of_row
        self._folder = folder
        self._blocks: dict[int, NDArray[np.uint64]] = {}
        """Per answer the checksum of each block, or 0 where it has not been computed."""

    def of(self, first: int, count: int, answer: int) -> int:
        """Return the checksum of ``count`` inputs from ``first`` on that share an answer."""
        begin, end = -(-first // BLOCK), (first + count) // BLOCK
        if begin >= end or end > BLOCKS:
            return self._checksum_of_row(first, count, answer)
        before = self._checksum_of_row(first, begin * BLOCK - first, answer)
        after = self._checksum_of_row(end * BLOCK, first + count - end * BLOCK, answer)
        within = int(self._of_blocks(begin, end, answer).sum(dtype=np.uint64))
        return before + within + after & WORD

    def _of_blocks(self, begin: int, end: int, answer: int) -> NDArray[np.uint64]:
        if answer not in self._blocks:
            self._blocks[answer] = self._stored(answer)
        checksums = self._blocks[answer][begin:end]
        missing = np.flatnonzero(checksums == 0).tolist()
        for block in missing:
            checksums[block] = self._checksum_of_row((begin + block) * BLOCK, BLOCK, answer)
        if missing:
            self._store(answer, begin, checksums)
        return checksums

    def _stored(self, answer: int) -> NDArray[np.uint64]:
        """Return the stored checksum of each block for an answer, 0 where none can be read."""
        blocks = np.zeros(BLOCKS, np.uint64)
        if self._folder is not None:
            with suppress(OSError):
                stored = np.fromfile(self._path(answer), np.uint64, BLOCKS)
                blocks[: stored.size] = stored
        return blocks

    def _store(self, answer: int, begin: int, checksums: NDArray[np.uint64]) -> None:
        """Write the checksums of the blocks from ``begin`` on; a failure to write is ignored.

        Other blocks in the file stay, as other processes may have written them.
        """
        if self._folder is None:
            return
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            file = os.open(self._path(answer), os.O_WRONLY | os.O_CREAT, 0o644)
            try:
                os.pwrite(file, checksums.tobytes(), begin * checksums.itemsize)
            finally:
                os.close(file)

    def _path(self, answer: int) -> Path:
        assert self._folder is not None
        return self._folder / f"{answer:x}"


@lru_cache(maxsize=4)
def uniform_checksums(checksum_of_row: ChecksumOfRow, is_stored: bool) -> UniformChecksums:
    """Return the ``UniformChecksums`` for a function, cached for later calls.

    If ``is_stored``, the checksums of blocks are also stored in the user's cache.
    """
    constants = "-".join(f"{each:x}" for each in (BLOCK, *SHIFTS, *FACTORS))
    folder = cache_folder("checksums") / constants if is_stored else None
    return UniformChecksums(checksum_of_row, folder)
