"""The types of the functions and objects that a family of questions offers the core.

A **family** is what documents say of some operations: of casts, of bitcasts, of quantization. Its
folder or module holds all that it takes to ask a backend and to judge the answers: the exact
definition, the kernels, the inputs, the judge, the ways in which a backend may be wrong, and how
people spell a question. The core reaches these only by the record ``Family``. Casts are older:
their definition and kernels lie in ``oracles.reference``, and the checks of pairs call their
judges.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from conformance.families.value_spelling import InputDatum, OutputDatum
from conformance.judging.asking import Ask, Subject
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
"""The error if a question takes no scale or zero point; --help shows the texts above."""
INSTEAD_OF_SCALES = "leave them out, or ask as castigate explain quantize 0.25 by 0.1 as float32"
"""The advice to a user for such a case."""


class WrittenQuestion(NamedTuple):
    """A question about a case: the texts that a person writes for inputs, scale and zero point."""

    inputs: Sequence[str]
    scale: str | None = None
    zero: str | None = None


class Sentence(NamedTuple):
    """A question read from a sentence: its case, and the texts of input, scale and zero point.

    ``zero`` is None if the sentence names no zero point.
    """

    case: Case
    given: str
    scale: str
    zero: str | None


@dataclass(frozen=True)
class Explained:
    """What a document requires for a question, and functions that get and show backends' answers.

    ``told`` is the requirement as data for JSON. ``ask`` starts a judge that puts the question to
    one backend and returns the answer as data. ``lines`` takes ``told`` with a further member
    ``answers``, the answers by names of backends, and yields it as lines of text. ``brief`` yields
    the few lines that answer a sentence; only families that read sentences have it.
    """

    told: dict[str, Any]
    ask: Callable[[], Ask[Any]]
    lines: Callable[[dict[str, Any]], Iterator[str]]
    brief: Callable[[dict[str, Any]], Iterator[str]] | None = None


class Rule(NamedTuple):
    """The name of a rule, the level at which it binds, and its clause."""

    rule: str
    level: str
    clause: str


@dataclass(frozen=True, eq=False)
class GradedTensor:
    """A result of an operation by its name, with what the document allows for each element.

    ``answer`` holds the result's patterns; it is None if an error came instead. Elements have
    indices in row-major order, and ``is_open`` marks those that may be anything. ``inputs`` are a
    format and one pattern for each element, by which the simplest element is found. ``rule(index)``
    returns the rule that decides an element, and ``given(index)`` its inputs as texts by name.
    ``allowed(index, at_required)`` returns its allowed patterns as texts; if ``at_required`` is
    true, also those that break only a recommendation. ``wrong(level)`` returns the mask of the
    elements that break a rule of a level, `required` or `recommended`.
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


Cut = Literal["anywhere", "between rows", "nowhere"]
"""Where tensors may be cut: a row is all that shares an index of the first dimension."""


@dataclass(frozen=True)
class TensorFunctions:
    """The functions of a family whose operations take and return tensors by name.

    ``answer`` takes a case and its tensors, and returns the reference's results. ``results`` takes
    recorded results too, and yields each graded; with None for a recorded error it may yield only
    the first. ``sample`` returns tensors of a case whose results no document leaves open.
    ``listed`` takes a case, a seed and a number. It yields the inputs of the tier quick except
    drawn ones, cut to about that many elements where that does not change their scales. ``shapes``
    takes a case and the shape of ``x``, and yields the name of each tensor of scales or zero points
    with the shapes that it may have. ``optional`` returns the names of the tensors that may be left
    out. ``cut`` says where the tensors of a case may be cut so that each part is judged as before.
    """

    answer: Callable[[Case, TensorsByName], TensorsByName]
    results: Callable[[Case, TensorsByName, TensorsByName | None], Iterator[GradedTensor]]
    sample: Callable[[Case], dict[str, Bits]]
    listed: Callable[[Case, int, int], Iterator[TensorsByName]]
    shapes: Callable[[Case, Shape], Iterator[tuple[str, Sequence[Shape]]]]
    optional: Callable[[Case], Collection[str]]
    cut: Callable[[Case], Cut]


class ShapedTensor(NamedTuple):
    """The functions of a family whose operations take one tensor, and judge the result's shape.

    ``request`` makes the request of a case for a tensor of any shape. ``answer`` returns the
    reference's result. ``comes_back`` says whether the document requires that the result equals the
    tensor in shape and bits. ``read`` returns the tensor of the elements that a person writes, or a
    default one if there are none.
    """

    request: Callable[[Case, Bits], MethodRequest]
    answer: Callable[[Case, Bits], Bits]
    comes_back: Callable[[Case, Bits], bool]
    read: Callable[[Case, Sequence[str]], Bits]


class CaseLines(Protocol):
    """Lists, spells and judges the JSON lines of one case.

    ``listed`` yields inputs of the tier quick as JSON data, and ``spelled`` returns the input of a
    line in the same spelling. ``judge`` returns as data the verdict on an output and what decides
    it. The data have an ``input_pattern`` or ``output_pattern`` where the line does not spell full
    patterns. ``spelled`` and ``judge`` raise CastigateError for data that do not fit the case.
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
"""Takes the words of a question about several cases, and the scale and the zero point or None.

It returns a function that takes a ``Drive``, backends, and whether to write JSON; this yields the
lines that answer the question.
"""
Judge = Callable[[Subject, Case], Ask[Any]]
Explain = Callable[[Case, WrittenQuestion], Explained]
Says = Callable[[str], str]
