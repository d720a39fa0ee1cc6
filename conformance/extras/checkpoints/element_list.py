"""Lists the elements of a checkpoint on which a cast has an effect, as rows of a CSV."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO

import numpy as np

from conformance.extras.checkpoints.cast_check import BREAKING, DIFFERING, EFFECTS, CastCheck
from conformance.extras.checkpoints.results import COLUMNS
from conformance.extras.checkpoints.stored_tensors import StoredTensor
from oracles.reference import expect_by_exact
from reports.counterexample.drawing import value_text
from reports.grading.allowed_answers import describe_allowed
from specs.branches import Ruling
from specs.errors import CastigateError, did_you_mean
from specs.plain_text import plain_line

NOT_ALLOWED = "not-allowed"
LISTED = {
    **{COLUMNS[name].replace(" ", "-").lower(): 1 << bit for bit, name in enumerate(EFFECTS)},
    COLUMNS["differing"].replace(" ", "-"): 1 << DIFFERING,
    NOT_ALLOWED: -1 << BREAKING,
}
"""The names of lists, and the flags of the elements in each: columns of the table with hyphens."""


@dataclass
class ElementList:
    """Writes a CSV of at most ``most`` elements with one effect, or of all if it is 0.

    ``written`` counts the rows, and ``has_more`` says that elements were left out.
    """

    effect: str
    most: int
    file: IO[str]
    written: int = 0
    has_more: bool = False

    def __post_init__(self) -> None:
        if self.effect not in LISTED:
            meant = did_you_mean(self.effect, LISTED)
            raise CastigateError(
                f"--list `{self.effect}` is no list; {meant}name one of {', '.join(LISTED)}"
            )

    def write_rows(
        self,
        checks: Mapping[str, CastCheck],
        tensors: Sequence[StoredTensor],
        backends: Sequence[str],
    ) -> None:
        """Read tensors again, chunk by chunk, and write their elements with the effect.

        ``checks`` are by source.
        """
        rows = csv.writer(self.file, lineterminator="\n")
        rows.writerow(["tensor", "index", "pattern", "value", "allowed", *backends])
        wanted = np.uint64(LISTED[self.effect] & (1 << 64) - 1)
        for tensor in tensors:
            check, first = checks[tensor.dtype], 0
            for chunk in tensor.chunks():
                flags, answers = check.flags(chunk)
                for at in np.flatnonzero(flags & wanted).tolist():
                    if self.most and self.written == self.most:
                        self.has_more = True
                        return
                    pattern = int(chunk[at])
                    rows.writerow(
                        [
                            plain_line(tensor.name),
                            " ".join(map(str, tensor.place(first + at))),
                            check.source.hexadecimal(pattern),
                            value_text(check.source, pattern),
                            " or ".join(allowed_words(check.rulings, pattern)),
                            *(check.target.hexadecimal(int(each[at])) for each in answers),
                        ]
                    )
                    self.written += 1
                first += chunk.size


def allowed_words(rulings: Sequence[Ruling], pattern: int) -> tuple[str, ...]:
    """Return in words what any of some rulings allows for a pattern, by the exact definition."""
    words = (
        describe_allowed(rules, expect_by_exact.allow(rules, pattern), pattern) for rules in rulings
    )
    return tuple(dict.fromkeys(word for each in words for word in each))
