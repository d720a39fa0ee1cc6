"""The table of known answers, which predicts what frameworks answer to casts.

It ships with Castigate, and ``castigate explain`` reads it for frameworks that are not installed.
It stores closed forms instead of answers: for each framework and pair of dtypes, the behavior that
reproduces the answers in each class of inputs (see ``docs/findings.md``). A class that no behavior
reproduces has its few answers one by one, or none. ``python -m lab.known_answers`` makes the table
from stored runs.
"""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from oracles.protocol import Bits
from oracles.reference.kernels import select_arrays
from oracles.registry import installed, installed_version
from reports.behaviors.regions import evaluate, mark_of, real_format, real_patterns
from specs.behaviors import behaviors
from specs.formats import Format
from specs.model.strict_model import StrictModel
from specs.model.vocabulary import Rounding

FILE = Path(__file__).with_name("known_answers.json")
InputMark = Annotated[int, Field(ge=0, le=255)]


class KnownPair(StrictModel):
    """The answers to one pair of dtypes.

    ``does`` has the classes of inputs, as ``regions.mark_of`` numbers them, by the behavior that
    reproduces all answers there. ``listed`` has answers by input, in hex. ``inputs`` is how many
    inputs were asked; ``is_whole`` says that these are all.
    """

    does: dict[str, tuple[InputMark, ...]]
    listed: dict[str, str] = Field(default_factory=dict)
    inputs: int
    is_whole: bool

    def answer(self, source: Format, target: Format, code: int) -> int | None:
        """Return the answer to an input; None if the table has none."""
        codes, is_known = self.answers(source, target, np.array([code], source.storage))
        return int(codes[0]) if is_known[0] else None

    def answers(
        self, source: Format, target: Format, inputs: Bits
    ) -> tuple[Bits, NDArray[np.bool_]]:
        """Return the answers to inputs, and the mask of those that the table has."""
        codes, is_known = np.zeros(inputs.size, target.storage), np.zeros(inputs.size, bool)
        marks = marks_of(source, target, inputs)
        for name, known_marks in self.does.items():
            here = np.isin(marks, known_marks)
            if here.any():
                codes[here], is_known[here] = evaluate(
                    behaviors()[name], source, target, inputs[here]
                )
        for given, answer in self.listed.items():
            here = inputs == int(given, 16)
            codes[here], is_known[here] = int(answer, 16), True
        return codes, is_known


class KnownFramework(StrictModel):
    """A framework's answers: its version, when and on which machine it was asked, and its pairs.

    Pairs are named ``SOURCE/TARGET``.
    """

    version: str
    date: str
    machine: str
    pairs: dict[str, KnownPair]

    def answer(self, source: Format, target: Format, code: int) -> int | None:
        """Return the answer to an input of a pair; None if the table has none."""
        pair = self.pairs.get(f"{source.name}/{target.name}")
        return pair.answer(source, target, code) if pair is not None else None

    @property
    def public_version(self) -> str:
        """The version without what an adapter or a build adds to it."""
        return self.version.partition("+")[0]


class KnownAnswers(StrictModel):
    """The table: frameworks by the name of the backend."""

    frameworks: dict[str, KnownFramework]


@cache
def known_answers() -> KnownAnswers:
    """Return the table that ships with Castigate."""
    return KnownAnswers.model_validate_json(FILE.read_bytes())


def outdated() -> list[str]:
    """Return the backends that are installed, but not as the table knows them.

    They have another version, or this machine is of another kind, on which they may convert
    otherwise.
    """
    table, here = known_answers().frameworks, platform.machine()
    return [
        name
        for name in installed()
        if name in table
        and (table[name].public_version, table[name].machine)
        != (installed_version(name).partition("+")[0], here)
    ]


def marks_of(source: Format, target: Format, inputs: Bits) -> NDArray[np.uint8]:
    """Return the number of each input's class, by which ``KnownPair.does`` names it."""
    rounding: Rounding = "nearest-even" if target.kind == "float" else "toward-zero"
    patterns = real_patterns(source, inputs)
    marks = mark_of(real_format(source), target, rounding, patterns, select_arrays)
    return np.asarray(marks).astype(np.uint8)
