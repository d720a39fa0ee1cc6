"""Executables of jax on disk, so that no later run compiles them again."""

from __future__ import annotations

import platform
from hashlib import sha256
from pathlib import Path
from typing import Any

from specs.model.cache import cache_folder

KEPT_FROM = "jax_persistent_cache_min_compile_time_secs"
"""jax's option for the seconds from which on an executable is kept."""
PROCESSOR_LINES = ("model name", "flags", "CPU implementer", "CPU part", "Features")
"""The lines of ``/proc/cpuinfo`` that tell which instructions the processor has."""


def keep_executables(jax: Any) -> None:
    """Set jax to cache executables on disk, in a folder for this kind of processor."""
    jax.config.update("jax_compilation_cache_dir", str(cache_folder("jax") / _processor()))
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    jax.config.update(KEPT_FROM, 0)


def _processor() -> str:
    """Return a digest of the processor's model and instructions, which names the cache's folder.

    Machines with different processors may share a home folder.
    """
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    instructions = {line for line in lines if line.startswith(PROCESSOR_LINES)}
    named = [platform.machine(), platform.processor(), *sorted(instructions)]
    return sha256("\n".join(named).encode()).hexdigest()[:16]
