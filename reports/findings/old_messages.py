"""Reads the problems of runs that earlier versions wrote, which kept sentences instead of problems.

These sentences are frozen: no version writes such a run any more, and the patterns below match what
was written then. Nothing else in castigate reads its own sentences.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from reports.problems import (
    ChangesWithShape,
    Died,
    Note,
    NotRefused,
    Problem,
    Refused,
    WrongForm,
    WrongShape,
)

if TYPE_CHECKING:
    from reports.findings.cells import Cell, Divergence

ERROR_CLASS = re.compile(r"(?:^|: )([A-Za-z_]\w*): (.*)", re.DOTALL)
"""The class of an error within a message, and its text."""
OPEN_INPUTS = re.compile(r"^open inputs: .*; (?=shape \()", re.DOTALL)
"""The part of a message about open inputs, which precedes the fault of a shape."""
OTHERWISE = re.compile(r"shape \([\d, ]*\): an element answers otherwise than in one row")
"""The part of a message that names an answer that depends on the shape."""
MALFORMED = re.compile(r"(?:shape \([\d, ]*\): )?the (?:answer|adapter)\b")
"""Matches the beginning of a message about an answer that cannot be compared."""
SHAPES = re.compile(r"shape \(([\d, ]*)\) ([^;]*?)gives shape \(([\d, ]*)\)")
"""The two shapes in a message: the tensor's and the answer's."""


def problems_of_message(cell: Cell) -> list[Problem]:
    """The problems of a cell other than wrong values, one for each rule that these break."""
    rules = [each for each in cell.broken if each.smallest is None]
    if rules:
        return [_problem(cell, each) for each in rules]
    return [] if cell.broken else [_problem(cell, None)]


def _problem(cell: Cell, broken: Divergence | None) -> Problem:
    message = cell.message
    rule = (broken.rule, broken.clause, broken.level) if broken is not None else ("", "", "")
    if cell.verdict == "crashed":
        return Died(message)
    if broken is not None and (shapes := SHAPES.search(message)):
        given, got = map(_shape, shapes.group(1, 3))
        if "not refused" in shapes[2]:
            return NotRefused(*rule, "", given, got)
        return WrongShape(*rule, given, got)
    if "is not refused" in message:
        return NotRefused(*rule, message)
    if error := ERROR_CLASS.search(OPEN_INPUTS.sub("", message)):
        named = dict(zip(("rule", "clause", "level"), rule, strict=True))
        return Refused(error[1], error[2], where=message[: error.start(1)], **named)  # type: ignore[arg-type]
    if broken is None:
        return WrongForm(message) if MALFORMED.match(message) else Note(message)
    if OTHERWISE.match(message):
        return ChangesWithShape(*rule, ())
    return Note(message)


def _shape(text: str) -> tuple[int, ...]:
    return tuple(int(each) for each in text.split(",") if each.strip())
