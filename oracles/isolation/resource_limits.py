"""What a served process may take, and how long it may live.

``python limits.py MEMORY COMMAND…`` becomes the command, within these limits.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
from contextlib import suppress
from pathlib import Path

PR_SET_PDEATHSIG = 1
LEAST_MEMORY = 4 << 30
"""Less than what a large framework takes to load is no limit but a refusal."""
CGROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
NEARLY_FULL = 0.5


def memory_share(processes: int) -> int:
    """The memory that each of so many processes may take, so that all together leave some."""
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in CGROUPS:
        with suppress(OSError, ValueError):  # a word, `max`, where there is no limit
            whole = min(whole, int(Path(path).read_text()))
    return max(LEAST_MEMORY, whole * 3 // 4 // processes)


def limit_memory(most: int) -> None:
    """Let requests for more memory than this fail, unless even less is allowed already."""
    before, hard = resource.getrlimit(resource.RLIMIT_DATA)
    for known in (before, hard):
        if known != resource.RLIM_INFINITY:
            most = min(most, known)
    with suppress(OSError, ValueError):  # a system that has no such limit
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def is_nearly_full() -> bool:
    """Whether so much of the memory allowed is taken that an error may be for want of it."""
    most, _ = resource.getrlimit(resource.RLIMIT_DATA)
    if most == resource.RLIM_INFINITY:
        return False
    try:
        data = int(Path("/proc/self/statm").read_text().split()[5])
    except OSError:
        return False
    return data * os.sysconf("SC_PAGE_SIZE") > NEARLY_FULL * most


def leave_no_core() -> None:
    """A crash is expected here: nothing is to be written to the disk of it."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def die_with_parent() -> None:
    """On Linux the system itself ends a process whose parent is gone, even one in C code."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    die_with_parent()
    leave_no_core()
    limit_memory(int(sys.argv[1]))
    try:
        os.execvp(sys.argv[2], sys.argv[2:])
    except OSError as error:
        sys.exit(f"{sys.argv[2]}: {error.strerror}")
