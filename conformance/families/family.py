"""What the core asks of a family of questions, in one record.

A **family** is what documents say of some operations: of casts, of bitcasts, of quantization. Its
folder holds all that it takes to ask a backend and to judge the answers: the exact definition, the
kernels, the inputs, the judge, the ways in which a backend may be wrong, and how people spell a
question. The core reaches these by the record alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from conformance.judging.asking import Ask
from conformance.judging.subject import Subject
from conformance.value_spelling import InputDatum, OutputDatum
from oracles.protocol import Bits
from specs.cases import Case
from specs.formats import Format

Shape = tuple[int, ...]


class Question(NamedTuple):
    """What a person asks of a case: inputs as they are written, a scale, and a zero point."""

    inputs: Sequence[str]
    scale: str | None = None
    zero: str | None = None


@dataclass(frozen=True)
class Explained:
    """What a document says of a question, as data for JSON, and how a backend is asked the same.

    ``lines`` shows the data together with the ``answers`` of backends, by name.
    """

    told: dict[str, Any]
    ask: Callable[[], Ask[Any]]
    lines: Callable[[dict[str, Any]], Iterator[str]]


class Rule(NamedTuple):
    """A rule with the level at which it decides something, and its clause."""

    rule: str
    level: str
    clause: str


@dataclass(frozen=True, eq=False)
class Result:
    """A tensor that an operation returns, beside what is allowed for each of its elements.

    ``answer`` is None if an error came. ``inputs`` are those by which elements are ordered, the
    simplest first. ``rule`` returns what decides the element at an index, ``given`` its inputs in
    words, ``allowed`` the patterns that it may have, ``wrong`` which elements break a level.
    """

    name: str
    form: Format
    shape: Shape
    answer: Bits | None
    is_open: NDArray[np.bool_]
    inputs: tuple[Format, Bits]
    rule: Callable[[int], Rule]
    given: Callable[[int], dict[str, str]]
    allowed: Callable[[int, bool], list[str]]
    wrong: Callable[[str], NDArray[np.bool_]]


Tensors = Mapping[str, Bits]


@dataclass(frozen=True)
class TensorFunctions:
    """The functions of a family whose operations take and return tensors by name.

    ``answer`` is what the reference returns, ``results`` grades what somebody recorded, ``sample``
    has tensors whose results no document leaves open. ``listed`` yields the inputs of the tier
    quick in tensors of at most so many elements, ``shapes`` the shapes that scales and zero points
    may have beside an ``x`` of some shape, ``optional`` the tensors that may be left out.
    """

    answer: Callable[[Case, Tensors], Tensors]
    results: Callable[[Case, Tensors, Tensors | None], Iterator[Result]]
    sample: Callable[[Case], dict[str, Bits]]
    listed: Callable[[Case, int, int], Iterator[Tensors]]
    shapes: Callable[[Case, Shape], Iterator[tuple[str, Sequence[Shape]]]]
    optional: Callable[[Case], Collection[str]]


class CaseLines(Protocol):
    """The questions of a case as JSON lines have them.

    ``listed`` yields the inputs of the tier quick, ``spelled`` spells an input of a line likewise.
    ``judge`` returns the verdict on an output, with what decides it and, where a line does not
    spell patterns, the ``input_pattern`` and the ``output_pattern``.
    """

    def listed(self, seed: int, max_examples: int) -> Iterator[Any]: ...
    def spelled(self, given: InputDatum) -> Any: ...
    def judge(self, given: InputDatum, output: OutputDatum) -> dict[str, Any]: ...


LinesOf = Callable[[Case], CaseLines]
Judge = Callable[[Subject, Case], Ask[Any]]
Explain = Callable[[Case, Question], Explained]
Says = Callable[[str], str]
