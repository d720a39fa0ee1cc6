"""Compares files of vectors, as they lie on the disk, with the arithmetic of others.

The files are read by a reader of this module's own, so that the writer is compared, too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from conformance.extras.vectors.index import VectorFile, VectorIndex
from conformance.families.cast.breakpoints import Words
from lab.truths.comparison import Compared
from lab.truths.generic_floats import Gfloat
from lab.truths.known import KNOWN
from lab.truths.questions import Truth, question_of
from lab.truths.rulings import reduces_precision
from lab.truths.softfloat import SoftFloat
from oracles.reference import expect_by_kernels
from oracles.reference.expectations import has_branch
from specs.branches import Ruling
from specs.cases import Case
from specs.editions import edition
from specs.formats import formats
from specs.loader import document_named
from specs.outcomes import Round, Value
from specs.ruling import ruling

SMALL_FLOATS = "small-floats"
PEERS: tuple[Truth, ...] = (SoftFloat(), Gfloat())


@dataclass
class Comparison:
    """How many files and answers were compared with a peer, and the answers that differ."""

    files: int = 0
    answers: int = 0
    known: int = 0
    failures: list[str] = field(default_factory=list)


def compare_files(folder: Path, index: VectorIndex, peer: Truth) -> Comparison:
    """Ask a peer the inputs at both ends of every line of the casts that it knows."""
    found = Comparison()
    for each in index.files:
        if each.kind == "casts":
            _compare_file(folder / each.file, each, peer, found)
    return found


def _compare_file(path: Path, about: VectorFile, peer: Truth, found: Comparison) -> None:
    case = case_of(about.cases[0])
    rules = ruling(case)
    question = question_of(rules)
    if not _is_asked(rules) or not peer.can_answer(question):
        return
    rows = rows_of(path, about.target_bits)
    found.files += 1
    for end in (0, 1):
        inputs = rows[:, end].astype(rules.source.storage)
        answers = peer.answer(question, inputs)
        expected = expect_by_kernels.expect(rules, inputs)
        asked = answers.known & has_branch(expected.branch_indices, _compared(case, rules))
        codes = answers.codes.astype(np.uint64)
        rest = (codes - (rows[:, end] - rows[:, 0]) * rows[:, 5]) & rows[:, 4]
        is_other = (rows[:, 7] != 0) & (codes == rows[:, 6])
        differs = asked & ((rest < rows[:, 2]) | (rest > rows[:, 3])) & ~is_other
        found.answers += int(asked.sum())
        if not differs.any():
            continue
        compared = Compared(peer.name, case.id, rules, question, inputs, expected)
        for entry in KNOWN:
            predicted = entry.predicts(compared) if peer.name in entry.truths else None
            if predicted is not None:
                found.known += int((differs & predicted).sum())
                differs &= ~predicted
        found.failures += [
            f"{about.file}: {given:#x}: {peer.name} {code:#x}"
            for given, code in zip(inputs[differs], answers.codes[differs], strict=True)
        ]


def _is_asked(rules: Ruling) -> bool:
    """Return whether peers mean the same by a cast.

    None knows the small floats that no document has, or a cast to a format and back. What is
    halfway between two codes of a format without a mantissa goes to the even code by gfloat, and up
    by the yardstick, whose significands are all odd.
    """
    is_known = {rules.source.name, rules.target.name} <= {*formats()}
    return is_known and rules.target.has_zero and not reduces_precision(rules)


def _compared(case: Case, rules: Ruling) -> list[int]:
    """Return the branches whose inputs a peer answers as the ruling does, if both are right.

    Of the yardstick of small floats these are the numbers in range: what becomes of the others is
    a choice of three that no peer offers.
    """
    return [
        index
        for index, branch in enumerate(rules.branches)
        if case.document != SMALL_FLOATS or isinstance(branch.outcome, Round | Value)
    ]


def case_of(case_id: str) -> Case:
    """Return the case of an id, which may be one of a yardstick."""
    name, _, version = case_id.partition("/")[0].partition(":")
    cases = edition(document_named(name), version).cases()
    return next(case for case in cases if case.id == case_id)


def rows_of(path: Path, bits: int) -> Words:
    """Read a file of vectors: eight numbers for each line.

    These are lo, hi, first, last, mask, step, other, and whether the line has that.
    """
    every = (1 << bits) - 1
    rows = []
    for line in path.read_text().splitlines()[1:]:
        if not line.startswith("#"):
            lo, hi, first, *more = (int(word, 16) for word in line.split())
            usual = (first, every, 0, 0)
            rows.append((lo, hi, first, *more, *usual[len(more) :], len(more) == len(usual)))
    return np.array(rows, np.uint64)
