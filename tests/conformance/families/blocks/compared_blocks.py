"""Compares the kernels of blocks with the model on many random blocks of each scale rule.

``python -m tests.conformance.families.blocks.compared_blocks 1000000`` writes a line for each rule.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from itertools import groupby

import numpy as np

from conformance.families.blocks.ruling import block_ruling
from specs.cases import Case
from tests.conformance.families.blocks.test_exact import ENCODED, differences, random_blocks, wholes

CHUNK = 10_000


def compared(count: int) -> Iterator[str]:
    """A line for each rule: blocks, differences, seconds."""

    def rule(case: Case) -> tuple[str, str]:
        return case.document, case.mode["rule"]

    for (document, name), cases in groupby(sorted(ENCODED, key=rule), rule):
        start, wrong, blocks = time.perf_counter(), 0, 0
        each = [(case, whole) for case in cases for whole in wholes(block_ruling(case))]
        share = -(-count // len(each))
        for number, (case, whole) in enumerate(each):
            ruling, chance = block_ruling(case), np.random.default_rng([7, number])
            for first in range(0, share, CHUNK):
                size = min(CHUNK, share - first)
                drawn = random_blocks(ruling.number, ruling.size, size, chance)
                wrong += differences(case, drawn, whole)
                blocks += size
        seconds = time.perf_counter() - start
        yield f"{document} {name}: {blocks:,} blocks, {wrong} differences, {seconds:.0f} s"


if __name__ == "__main__":
    for line in compared(int(sys.argv[1])):
        print(line, flush=True)
