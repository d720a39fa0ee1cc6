"""Problems: what is wrong about the answers to a case, as data.

A problem has fields, never a sentence. So a cause can be recognized by what happened, and a page
can lay it out. ``reports/problem_words.py`` says it in words, for people and for the tables of a
run.

Part files and ``problems.parquet`` hold problems by the names in ``KINDS`` and by their fields:
renaming one changes the format.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, Self, get_args

from reports.grading.failure_runs import Runs
from specs.cases import Case, Shape
from specs.operations import problem_of_family

ShownDatum = int | str
"""A bit pattern, or a text of the string dtype."""


@dataclass(frozen=True)
class BreaksRule:
    """A problem that breaks a rule, by its name, the clause that it cites, and its level."""

    rule: str
    clause: str
    level: str


@dataclass(frozen=True)
class WrongValues(BreaksRule):
    """The inputs whose answers break one rule at one level, with an example.

    ``runs`` has them as runs of inputs with their answers. ``smallest`` is the simplest of the
    ``count`` inputs, ``answer`` the backend's answer to it, and ``allowed`` what the rule allows
    instead, in words.
    """

    count: int
    runs: Runs
    smallest: ShownDatum
    answer: ShownDatum
    allowed: tuple[str, ...]


@dataclass(frozen=True)
class WrongShape(BreaksRule):
    """An answer has the shape ``got`` instead of ``wanted``.

    ``given`` is the shape of the input. If ``wanted`` is None, the answer must have the same.
    """

    given: Shape
    got: Shape
    wanted: Shape | None = None


@dataclass(frozen=True)
class WrongElement(BreaksRule):
    """The first element of an answer that has wrong bits, where bits must stay as they are.

    ``shape`` is the shape of the input. ``index`` counts the elements of the answer, whose shape
    may be another, in row-major order; ``got`` and ``wanted`` are patterns in hex. ``followed``
    names the mechanisms that give all answers of the case. ``layout`` describes how the input lies
    in memory, if that is unusual. Files of earlier versions may lack ``followed`` and ``layout``.
    """

    shape: Shape
    index: int
    got: str
    wanted: str
    followed: tuple[str, ...] = ()
    layout: str = ""


@dataclass(frozen=True)
class WrongByAnyReading(BreaksRule):
    """An answer is wrong by each reading of a document that can be read in several ways.

    ``readings`` has what is wrong by each.
    """

    readings: tuple[WrongShape | WrongElement | NotRefused, ...]


@dataclass(frozen=True)
class ChangesWithShape(BreaksRule):
    """Some answers in a tensor of this shape are wrong and differ from those in one row."""

    shape: Shape


@dataclass(frozen=True)
class ChangesWithLayout(BreaksRule):
    """An input gets another answer at another position, in another tensor or another layout.

    ``given`` is the input, ``in_row`` its answer in one row, and ``elsewhere`` the one at
    ``where``. ``switch`` describes the shortest row of only this input in which its answer changes;
    empty if there is none.
    """

    given: str
    in_row: str
    elsewhere: str
    where: str
    switch: str


@dataclass(frozen=True)
class DiffersFromVariant(BreaksRule):
    """Some inputs get another answer than from the first variant of the same framework.

    ``road`` is the name of that variant. ``changed`` counts these inputs among the ``inputs``
    compared. ``given`` is the simplest of them in words, ``there`` the answer of the variant
    ``road``, and ``here`` the answer of the backend that is judged.
    """

    road: str
    changed: int
    inputs: int
    given: str
    there: str
    here: str


@dataclass(frozen=True)
class WrongEnd(BreaksRule):
    """A chain of casts in one program gives answers that its steps do not give and no rule allows.

    ``given`` is the simplest input in words, and ``code`` its pattern. Of the ``inputs`` of the
    first of the ``roads``, ``wrong`` have wrong answers. ``followed`` names the mechanisms that
    give all answers of the chain that differ from those of its steps.
    """

    chain: str
    roads: tuple[str, ...]
    given: str
    got: str
    allowed: tuple[str, ...]
    code: str
    wrong: int
    inputs: int
    followed: tuple[str, ...] = ()
    script: str = ""
    question: ClassVar[str] = "chain"
    """The operation whose family explains a problem of this class."""


@dataclass(frozen=True)
class WrongTensor(BreaksRule):
    """Some elements of a named result tensor are not what a rule allows.

    ``given`` is the simplest of their inputs in words, with the other tensors that the answer
    depends on, and ``tensor`` the result's name. Of all ``inputs``, ``wrong`` have wrong answers.
    ``followed`` names the mechanisms that explain the wrong answers. ``where`` says in which drawn
    tensors alone the problem shows; it is empty if it does in listed ones.
    """

    tensor: str
    given: str
    got: str
    allowed: tuple[str, ...]
    wrong: int
    inputs: int
    followed: tuple[str, ...] = ()
    script: str = ""
    where: str = ""


@dataclass(frozen=True)
class NotRefused(BreaksRule):
    """A backend returns something although a document requires an error.

    The error must be of ``error_class`` if that is not None. Where shapes are judged, ``given`` and
    ``got`` are the shapes of the tensor and of the answer, and ``layout`` says how the tensor lies
    in memory, if that is unusual; elsewhere ``but`` says in words what the backend did.
    """

    but: str = ""
    given: Shape | None = None
    got: Shape | None = None
    error_class: str | None = None
    layout: str = ""


@dataclass(frozen=True)
class BrokenPromise(BreaksRule):
    """A backend breaks a requirement of a document that is not about values.

    ``promise`` is a key of ``reports.problem_words.PROMISES``, whose words ``facts`` complete.
    ``where`` names the tensor or the call, if there are several.
    """

    promise: str
    facts: tuple[str, ...] = ()
    where: str = ""


@dataclass(frozen=True)
class Refused:
    """A backend raises an error where an answer is due.

    ``error`` is its class and ``line`` its text. ``inputs`` names the inputs on which it is raised,
    ``where`` the tensor or the call. ``rule`` is empty unless the error breaks a rule. ``kind`` is
    `answer` if the backend returned an answer that reports the error. ``place`` is the file and
    line of an adapter that raised it, if known; files of earlier versions lack it.
    """

    error: str
    line: str
    inputs: str = ""
    where: str = ""
    rule: str = ""
    clause: str = ""
    level: str = ""
    kind: Literal["answer", "error"] = "error"
    place: str = ""


@dataclass(frozen=True)
class WrongForm:
    """An answer cannot be compared: it is no array, or has another dtype, shape or width."""

    what: str
    where: str = ""
    rule: str = ""
    clause: str = ""
    level: str = ""


@dataclass(frozen=True)
class WritesToInputs:
    """A conversion changed its input tensor."""

    where: str = ""
    rule: str = ""
    clause: str = ""
    level: str = ""


@dataclass(frozen=True)
class Unoffered:
    """A backend declines a case, one tensor of it, or a check of a requirement besides values."""

    reason: str
    where: str = ""


@dataclass(frozen=True)
class Died:
    """A backend's process died or fell silent; ``how`` says so, and on which inputs if known."""

    how: str


@dataclass(frozen=True)
class BrokenAdapter:
    """An adapter changes bits of a dtype that it only moves in and out; ``how`` describes it."""

    dtype: str
    how: str


@dataclass(frozen=True)
class Origin(ABC):
    """The place from which the wrong values of a case come, as far as its family knows it.

    The family names its subclass, a dataclass with fields that JSON can hold, in its record.
    """

    @property
    @abstractmethod
    def words(self) -> str:
        """The origin in words."""

    @property
    @abstractmethod
    def name_end(self) -> str:
        """The end of a finding's name, so that each origin has its own finding; may be empty."""

    @classmethod
    @abstractmethod
    def sentence_end(cls, found: Sequence[tuple[Case, Self]]) -> str:
        """Return the end of a finding's sentence, given its cases with their origins."""


@dataclass(frozen=True)
class Note:
    """A remark about answers that break no rule."""

    text: str


Fault = (
    WrongShape
    | WrongElement
    | WrongByAnyReading
    | ChangesWithShape
    | ChangesWithLayout
    | DiffersFromVariant
    | WrongEnd
    | WrongTensor
    | NotRefused
    | BrokenPromise
    | Refused
    | WrongForm
    | WritesToInputs
)
"""A problem of a whole answer that breaks a rule, if it names one."""
BrokenRule = WrongValues | Fault
Problem = BrokenRule | Origin | Unoffered | Died | BrokenAdapter | Note

STORED = (*get_args(Fault), Unoffered, Died, BrokenAdapter, Note)
"""The classes of the problems that JSON can hold. Wrong values go into tables, because they may
have many runs."""
NAMES: Mapping[type[Any], str] = {
    **{kind: kind.__name__ for kind in STORED},
    WrongEnd: "WrongInChain",
    WrongTensor: "WrongQuantized",
}
"""The names of these classes in JSON."""
KINDS = {name: kind for kind, name in NAMES.items()}


def problem_json(problem: Problem) -> dict[str, Any]:
    """Encode a problem as an object for JSON; raise KeyError for wrong values."""
    kind = type(problem)
    encoded = {each.name: getattr(problem, each.name) for each in fields(kind)}
    if isinstance(problem, WrongByAnyReading):
        encoded["readings"] = [*map(problem_json, problem.readings)]
    return {"problem": kind.__name__ if issubclass(kind, Origin) else NAMES[kind]} | encoded


def decode_problem(encoded: Mapping[str, Any]) -> Any:
    """Decode what ``problem_json`` encoded; the values of fields are not checked.

    Raise LookupError or TypeError for an unknown kind, or if a field is unknown or missing.
    """
    kind = KINDS.get(encoded["problem"]) or problem_of_family(encoded["problem"])
    return kind(
        **{
            name: tuple(decode_problem(each) if isinstance(each, dict) else each for each in value)
            if isinstance(value, list)
            else value
            for name, value in encoded.items()
            if name != "problem"
        }
    )


def wrong_inputs(problem: Problem) -> int:
    """Return the number of wrong inputs of ``WrongValues`` or ``WrongTensor``; else 0."""
    match problem:
        case WrongValues(count=count) | WrongTensor(wrong=count):
            return count
    return 0
