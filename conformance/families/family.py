"""What the core asks of a family of questions, in one record.

A **family** is what documents say of some operations: of casts, of bitcasts, of quantization. Its
folder or module holds all that it takes to ask a backend and to judge the answers: the exact
definition, the kernels, the inputs, the judge, the ways in which a backend may be wrong, and how
people spell a question. The core reaches these by the record alone. Casts are older: their
definition and kernels lie in ``oracles.reference``, and the checks of pairs call their judges.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from conformance.families.value_spelling import InputDatum, OutputDatum
from conformance.judging.asking import Ask
from conformance.judging.subject import Subject
from oracles.backend.requests import MethodRequest
from oracles.protocol import Bits
from specs.cases import Case, Shape
from specs.formats import Format

if TYPE_CHECKING:
    from oracles.registry import Backend


QUESTION_HELP = (
    "What is asked: two dtypes (float32 e4m3fn), or more for a chain of casts (float32"
    " int32 bool), with `to` between them or not; before them a document (onnx-cast float32"
    " int8) or a word of its name (wasm float32 int32); or a case id; or one"
    " quantization, in words (quantize 0.25 by 0.1 as float16 to int8 zero 3)."
    " Then values such as 65520, 0x1.8p3, -inf, nan, true or 0x477ff000, or texts; put --"
    " before a"
    " text that begins with --. For a bitcast: all elements of one tensor, or none."
)
SCALE_HELP = "The scale of a quantization, or the global scale of blocks."
WITH_SCALES = "--scale and --zero are for documents of quantization"
"""The error for a scale or a zero point in another question; the texts above are of --help."""


class WrittenQuestion(NamedTuple):
    """A question about a case as a person writes it: inputs, a scale, and a zero point."""

    inputs: Sequence[str]
    scale: str | None = None
    zero: str | None = None


class Sentence(NamedTuple):
    """A question in a sentence: a case, an input, its scale, and its zero point if there is one."""

    case: Case
    given: str
    scale: str
    zero: str | None


@dataclass(frozen=True)
class Explained:
    """What a document requires for a question, as data for JSON, and how to ask a backend the same.

    ``told`` is the data. ``ask`` makes a judge that returns one backend's answer. ``lines`` shows
    as text the data with a member ``answers``, which has the answers by the names of the backends.
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
class GradedTensor:
    """A tensor that an operation returns, beside what is allowed for each of its elements.

    ``answer`` is None if an error came. ``inputs`` are the format and patterns by which elements
    are ordered, the simplest first. ``rule`` returns what decides the element at an index, and
    ``given`` its inputs in words. ``allowed`` returns the patterns that the element may have; if
    its second argument is true, also those that are not recommended. ``wrong`` returns which
    elements break rules of a level.
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


TensorsByName = Mapping[str, Bits]


@dataclass(frozen=True)
class TensorFunctions:
    """The functions of a family whose operations take and return tensors by name.

    ``answer`` is what the reference returns. ``results`` grades recorded results, or an error if
    these are None. ``sample`` has tensors whose results no document leaves open. ``listed`` takes a
    seed and a number, and yields the inputs of the tier quick in tensors of at most so many
    elements. ``shapes`` yields the shapes that scales and zero points may have beside an ``x`` of
    some shape. ``optional`` has the names of the tensors that may be left out.
    """

    answer: Callable[[Case, TensorsByName], TensorsByName]
    results: Callable[[Case, TensorsByName, TensorsByName | None], Iterator[GradedTensor]]
    sample: Callable[[Case], dict[str, Bits]]
    listed: Callable[[Case, int, int], Iterator[TensorsByName]]
    shapes: Callable[[Case, Shape], Iterator[tuple[str, Sequence[Shape]]]]
    optional: Callable[[Case], Collection[str]]


class ShapedTensor(NamedTuple):
    """The functions of a family whose operations take one tensor, and judge its shape.

    ``request`` asks a case for a tensor of any shape, ``answer`` is what the reference returns, and
    ``comes_back`` says whether the document wants that to be the tensor itself. ``read`` reads the
    elements of a tensor as people write them.
    """

    request: Callable[[Case, Bits], MethodRequest]
    answer: Callable[[Case, Bits], Bits]
    comes_back: Callable[[Case, Bits], bool]
    read: Callable[[Case, Sequence[str]], Bits]


class CaseLines(Protocol):
    """Reads and judges the JSON lines of one case.

    ``listed`` yields the inputs of the tier quick, ``spelled`` spells an input of a line likewise.
    ``judge`` returns the verdict on an output, with what decides it and, where a line does not
    spell patterns, the ``input_pattern`` and the ``output_pattern``.
    """

    def listed(self, seed: int, max_examples: int) -> Iterator[Any]: ...
    def spelled(self, given: InputDatum) -> Any: ...
    def judge(self, given: InputDatum, output: OutputDatum) -> dict[str, Any]: ...


LinesOf = Callable[[Case], CaseLines]
Drive = Callable[[Ask[Any], "Backend"], Any]
"""Runs a judge with one backend, and returns the judge's result."""
Asks = Callable[
    [Sequence[str], str | None, str | None],
    Callable[[Drive, Sequence["Backend"], bool], Iterator[str]],
]
"""Reads a question about several cases, with a scale and a zero point if these are given.

The function that is returned yields the lines that answer it for some backends, in JSON if its last
argument is true.
"""
Judge = Callable[[Subject, Case], Ask[Any]]
Explain = Callable[[Case, WrittenQuestion], Explained]
Says = Callable[[str], str]
