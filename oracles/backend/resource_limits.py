"""Limits on a backend's process: its memory, its core dumps, and its lifetime.

``python resource_limits.py MEMORY COMMAND…`` replaces itself by the command within these limits,
MEMORY in bytes, or exits with 1 if the command cannot be run. It is run by its path in other
environments, so it imports the standard library only.
"""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import signal
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

PR_SET_PDEATHSIG = 1
MIN_MEMORY = 4 << 30
"""Bytes: with less, a large framework cannot even be loaded."""
CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
NEARLY_FULL = 0.5
"""The share of the memory limit from which an error may be due to a lack of memory."""


MALLOC_PARAMETERS = {-3: 1 << 25, -1: 1 << 28, -2: 1 << 24}
"""Arguments of glibc's mallopt: M_MMAP_THRESHOLD, M_TRIM_THRESHOLD and M_TOP_PAD, in bytes."""

GC_THRESHOLDS = (50_000, 20, 100)


def memory_share(processes: int) -> int:
    """Return how many bytes each process may use, so that a quarter of the memory stays free.

    It is at least ``MIN_MEMORY``.
    """
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in CGROUP_LIMITS:
        with suppress(OSError, ValueError):  # the file holds `max` if there is no limit
            total = min(total, int(Path(path).read_text()))
    return max(MIN_MEMORY, total * 3 // 4 // processes)


def limit_memory(limit: int) -> None:
    """Make this process's allocations fail beyond this many bytes, or an earlier lower limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    for current in (soft, hard):
        if current != resource.RLIM_INFINITY:
            limit = min(limit, current)
    with suppress(OSError, ValueError):  # not every system has this limit
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


def is_memory_nearly_full() -> bool:
    """Return whether this process has used so much that an error may be for lack of memory.

    Without a limit, or if the memory in use cannot be read, the result is false.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_DATA)
    if limit == resource.RLIM_INFINITY:
        return False
    try:
        data_pages = _memory_pages()[5]
    except OSError:
        return False
    return data_pages * os.sysconf("SC_PAGE_SIZE") > NEARLY_FULL * limit


def _memory_pages() -> list[int]:
    """Return this process's pages as ``/proc/self/statm`` lists them: all, resident, and others."""
    return [*map(int, os.pread(_memory_statistics(), 256, 0).split())]


@cache
def _memory_statistics() -> int:
    """Return a file descriptor of ``/proc/self/statm``, which stays open.

    The file is read after every error of a backend, and opening it takes long.
    """
    return os.open("/proc/self/statm", os.O_RDONLY)


def keep_freed_memory() -> None:
    """Have glibc keep freed memory, up to a limit, for this process's next arrays.

    Otherwise every array of a megabyte is new memory, which Linux fills with zeros page by page: a
    fifth of the time of judging the reference.
    """
    with suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        for parameter, number in MALLOC_PARAMETERS.items():
            mallopt(parameter, number)


def return_freed_memory(beyond: int = 0) -> None:
    """Have glibc return the memory of freed arrays to Linux, if this process has more bytes.

    Python's own objects cannot use this memory: a process that makes many of them next would hold
    both.
    """
    with suppress(AttributeError, OSError):
        if _memory_pages()[1] * os.sysconf("SC_PAGE_SIZE") > beyond:
            ctypes.CDLL(None).malloc_trim(0)


def collect_garbage_rarely() -> None:
    """Raise Python's thresholds for the garbage collection of this process.

    Judgements and rows live until a run or a report ends, and are hardly ever garbage: otherwise
    the searches through them take up to an eighth of the time.
    """
    gc.set_threshold(*GC_THRESHOLDS)


def disable_core_dumps() -> None:
    """Let this process write no core dump: crashes of a backend are expected here."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def die_with_parent() -> None:
    """Have Linux kill this process when its parent ends, even while it runs C code."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    die_with_parent()
    disable_core_dumps()
    limit_memory(int(sys.argv[1]))
    try:
        os.execvp(sys.argv[2], sys.argv[2:])
    except OSError as error:
        sys.exit(f"{sys.argv[2]}: {error.strerror}")
