"""Rows as text, which ten lines of C read, and as a C header for those who want no files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from conformance.extras.vectors.intervals import FIELDS, IntervalRows
from specs.formats import Format

FORMAT = 1
"""The number of the text format, which its first word but one is."""


@dataclass(frozen=True)
class Vectors:
    """Rows of a cast between two formats; ``answer`` is the name and the bits of what comes out.

    ``notes`` are lines for readers of the file.
    """

    source: Format
    answer: tuple[str, int]
    rows: IntervalRows
    is_whole: bool
    notes: Sequence[str]

    @property
    def header(self) -> str:
        """The first line: format, source, answer, whether all inputs are told of, and rows."""
        covers = "all" if self.is_whole else "some"
        source, (name, bits) = self.source, self.answer
        sizes = f"{source.name} {source.bits} {name} {bits}"
        return f"vectors {FORMAT} {sizes} {covers} {self.rows.size}"


def as_text(vectors: Vectors) -> bytes:
    """Write rows as lines ``lo hi code [last [mask [step [other]]]]``, hexadecimal.

    What is left out is the usual: one code, all bits of it, and the same for the whole interval.
    """
    lines = [vectors.header, *(f"# {note}" for note in vectors.notes), *_lines(vectors)]
    return ("\n".join(lines) + "\n").encode()


def _lines(vectors: Vectors) -> Iterator[str]:
    wide, bits = vectors.source.hex_digits, vectors.answer[1]
    every, narrow = (1 << bits) - 1, -(-bits // 4)
    for lo, hi, first, last, mask, step, other, either in vectors.rows.tolist():
        line = f"{lo:0{wide}x} {hi:0{wide}x} {first:0{narrow}x}"
        if either or step or mask != every or last != first:
            line += f" {last:0{narrow}x}"
        if either or step or mask != every:
            line += f" {mask:0{narrow}x}"
        if either or step:
            line += f" {step:x}"
        if either:
            line += f" {other:0{narrow}x}"
        yield line


STRUCT = f"""\
#ifndef CASTIGATE_ROW
#define CASTIGATE_ROW
#include <stdint.h>
/* Of x in lo to hi is allowed: first <= ((answer - (x - lo) * step) & mask) <= last,
   and other, if either is 1. */
struct castigate_row {{ uint64_t {", ".join(FIELDS)}; }};
#endif
"""


def as_c_header(vectors: Vectors, name: str) -> bytes:
    """Write rows as an array of C, ``castigate_NAME``; ``name`` is an identifier."""
    notes = "\n".join(f"   {note}" for note in (vectors.header, *vectors.notes))
    rows = ",\n".join(
        "  {" + ", ".join(f"0x{value:x}" for value in row) + "}" for row in vectors.rows.tolist()
    )
    array = f"static const struct castigate_row castigate_{name}[{vectors.rows.size}] = {{"
    return f"/* castigate vectors\n{notes} */\n{STRUCT}{array}\n{rows}\n}};\n".encode()
