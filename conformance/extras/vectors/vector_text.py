"""Rows as text, which ten lines of C read, and as a C header for those who want no files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from conformance.extras.vectors.intervals import FIELDS, IntervalRows
from conformance.families.cast.breakpoints import Words
from specs.formats import Format

FORMAT = 1
"""The number of the text format, which is the second word of each file."""


@dataclass(frozen=True)
class Vectors:
    """Rows of a cast between two formats; ``answer`` is the name and the bits of the target.

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
    head = [vectors.header, *(f"# {note}" for note in vectors.notes)]
    return b"\n".join([*(line.encode() for line in head), *_lines(vectors), b""])


def _lines(vectors: Vectors) -> list[bytes]:
    """Return a line for each row; those of three to five numbers, nearly all, as columns."""
    rows, bits = vectors.rows, vectors.answer[1]
    wide, narrow = vectors.source.hex_digits, -(-bits // 4)
    has_mask = rows["mask"] != np.uint64((1 << bits) - 1)
    numbers = np.select(
        [rows["either"] != 0, rows["step"] != 0, has_mask, rows["last"] != rows["first"]],
        [7, 6, 5, 4],
        3,
    )
    lines = np.empty(rows.size, object)
    columns = [("lo", wide), ("hi", wide), ("first", narrow), ("last", narrow), ("mask", narrow)]
    for count in (3, 4, 5):
        alike = rows[numbers == count]
        digits = np.hstack([_spaced(alike[name], width) for name, width in columns[:count]])
        lines[numbers == count] = digits[:, 1:].copy().view(f"S{digits.shape[1] - 1}").ravel()
    for number in np.flatnonzero(numbers > 5).tolist():
        first = [f"{int(rows[name][number]):0{width}x}" for name, width in columns]
        more = [f"{int(rows['step'][number]):x}", f"{int(rows['other'][number]):0{narrow}x}"]
        lines[number] = " ".join((first + more)[: numbers[number]]).encode()
    found: list[bytes] = lines.tolist()
    return found


DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)


def _spaced(values: Words, width: int) -> NDArray[np.uint8]:
    """Return a row of characters for each value: a space, and ``width`` hexadecimal digits."""
    text = np.full((values.size, width + 1), ord(" "), np.uint8)
    for place in range(width):
        text[:, width - place] = DIGITS[(values >> np.uint64(4 * place)) & np.uint64(15)]
    return text


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
