"""Find the line on stderr that says why a process died."""

from __future__ import annotations

import re
from itertools import takewhile

LONGEST = 200
VARYING = re.compile(r"0x[0-9a-fA-F]+|\d+(?:[-:./]\d+)+|\d{4,}")
"""Addresses, times, and numbers as long as those of processes."""

FATAL = re.compile(
    r"""
    F\d{4,8}\ [^\]]*\]\ (?P<glog>.+)            # glog, absl: F1123 03:16:42.323884 18963 a.h:681]
  | [-\d]+\ [:.\d]+:\ F\ [^\]]*\]\ (?P<tsl>.+)  # TensorFlow: 2025-11-23 03:16:42.323884: F a.h:681]
  | what\(\):\s*(?P<what>.+)                    # the C++ runtime: an uncaught exception
  | (?P<llvm>LLVM\ ERROR:.+)
    """,
    re.VERBOSE,
)
"""Lines that a library prints to give its reason before it aborts."""

TRACE = re.compile(
    r"""
    \*{3}\ .*                                   # glog, absl: *** Check failure stack trace: ***
  | @\s+0x.*                                    # and its frames
  | \#\d+\s.*                                   # frames of LLVM, sanitizers, gdb
  | \S*\([^()]*\)\s?\[0x[0-9a-f]+\]             # frames of glibc
  | .*\(most\ recent\ call\ (?:first|last)\):   # Python, paddle
  | File\ ".*                                   # frames of Python
  | Extension\ modules:.*
  | PLEASE\ submit\ a\ bug\ report.* | Stack\ dump.* | \d+\.\s+Program\ arguments:.*
  | note:\ run\ with\ .*                        # Rust
  | \W+                                         # rulers, carets
    """,
    re.VERBOSE,
)
"""Lines of a stack trace."""


TRACEBACK = "Traceback (most recent call last):"


def crash_text(said: bytes) -> str:
    """The line that says why a process died, without what differs from one death to the next.

    That is a library's fatal message, else a Python exception, else the last line above the trace.
    """
    lines = ["".join(filter(str.isprintable, line)) for line in _decoded(said)]
    text = _fatal_message(lines) or _python_exception(lines) or _above_the_trace(lines)
    return VARYING.sub("…", text)[:LONGEST]


def _decoded(said: bytes) -> list[str]:
    return [line for line in said.decode("utf-8", "backslashreplace").splitlines() if line.strip()]


def _fatal_message(lines: list[str]) -> str:
    for line in lines:
        if found := FATAL.fullmatch(line.strip()):
            message: str = next(filter(None, found.groups()))
            return message
    return ""


def _python_exception(lines: list[str]) -> str:
    """The first line below the last traceback: frames and their code are indented."""
    if TRACEBACK not in lines:
        return ""
    below = lines[len(lines) - lines[::-1].index(TRACEBACK) :]
    return next((line for line in below if not line[0].isspace()), "")


def _above_the_trace(lines: list[str]) -> str:
    """The last line above a trace; of a trace with nothing above it, the last line that is none."""
    stripped = [line.strip() for line in lines]
    above = list(takewhile(lambda line: not TRACE.fullmatch(line), stripped))
    others = [line for line in stripped if not TRACE.fullmatch(line)]
    return next(iter([*above[-1:], *others[-1:], *stripped[:1]]), "")
