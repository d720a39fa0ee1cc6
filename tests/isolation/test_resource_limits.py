"""The memory that a process keeps for its next arrays, and returns."""

from __future__ import annotations

import subprocess
import sys

MEASURE = """
from pathlib import Path
import numpy as np
from oracles.backend.resource_limits import keep_freed_memory, return_freed_memory

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 >> 20

keep_freed_memory()
arrays = [np.ones(1 << 20, np.uint8) for _ in range(200)]
del arrays
print(resident())
return_freed_memory(beyond=1 << 40)
print(resident())
return_freed_memory(beyond=100 << 20)
print(resident())
"""


def test_kept_memory_is_returned_if_it_is_much() -> None:
    made = subprocess.run([sys.executable, "-c", MEASURE], check=True, capture_output=True)
    kept, still_kept, returned = map(int, made.stdout.split())
    assert kept == still_kept > 200
    assert returned < 100
