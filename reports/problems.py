"""Problems: what is wrong about the answers to a case, as data.

A problem has fields, never a sentence. So a cause can be recognized by what happened, and a page
can lay it out. ``reports/problem_words.py`` says it in words, for people and for the tables of a
run.

Part files and ``problems.parquet`` hold problems by the names in ``KINDS`` and by their fields:
renaming one changes the format.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

from reports.grading.failure_runs import Runs
from specs.cases import Shape

ShownDatum = int | str
"""A bit pattern, or a text of the string dtype."""


@dataclass(frozen=True)
class WrongValues:
    """The inputs whose answers break one rule at one level, with an example.

    ``smallest`` is the simplest of the ``count`` inputs, ``answer`` the backend's answer to it, and
    ``allowed`` what the rule allows instead, in words.
    """

    rule: str
    clause: str
    level: str
    count: int
    runs: Runs
    smallest: ShownDatum
    answer: ShownDatum
    allowed: tuple[str, ...]


@dataclass(frozen=True)
class WrongShape:
    """An answer has another shape than ``wanted``, or if that is None than the input."""

    rule: str
    clause: str
    level: str
    given: Shape
    got: Shape
    wanted: Shape | None = None


@dataclass(frozen=True)
class WrongElement:
    """The first element of an answer that has wrong bits, where bits must stay as they are.

    ``followed`` names the mechanisms that give all answers of the case. ``layout`` describes how
    the tensor lies in memory, if that is unusual. Runs of earlier versions have neither.
    """

    rule: str
    clause: str
    level: str
    shape: Shape
    index: int
    got: str
    wanted: str
    followed: tuple[str, ...] = ()
    layout: str = ""


@dataclass(frozen=True)
class WrongByAnyReading:
    """A document can be read in several ways, and an answer is wrong by each of them."""

    rule: str
    clause: str
    level: str
    readings: tuple[WrongShape | WrongElement | NotRefused, ...]


@dataclass(frozen=True)
class ChangesWithShape:
    """Answers in a tensor of this shape differ from those in one row, and some are wrong."""

    rule: str
    clause: str
    level: str
    shape: Shape


@dataclass(frozen=True)
class ChangesWithLayout:
    """An input gets another answer at another position, in another tensor or another layout.

    ``in_row`` is the answer in one row, ``elsewhere`` that at ``where``. ``switch`` says at which
    length of rows of this input alone its answer first changes; empty if it never does.
    """

    rule: str
    clause: str
    level: str
    given: str
    in_row: str
    elsewhere: str
    where: str
    switch: str


@dataclass(frozen=True)
class DiffersFromVariant:
    """``changed`` of ``inputs`` inputs get another answer than on ``road``, another variant.

    ``given`` is the simplest of them in words, ``there`` the answer on ``road``, and ``here`` the
    answer of the backend that is judged.
    """

    rule: str
    clause: str
    level: str
    road: str
    changed: int
    inputs: int
    given: str
    there: str
    here: str


@dataclass(frozen=True)
class WrongEnd:
    """Casts in one program end otherwise than they do alone, and otherwise than is allowed.

    ``given`` is the simplest input, and ``code`` its pattern; ``wrong`` of the ``inputs`` asked on
    the first of the ``roads`` are wrong. ``followed`` are the mechanisms that give all its answers.
    """

    rule: str
    clause: str
    level: str
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
class WrongTensor:
    """Some elements of a result that has a name are not what a rule allows.

    ``given`` is the simplest of them in words, with the other tensors that it depends on, and
    ``tensor`` the result's name. ``wrong`` of the ``inputs`` asked are wrong. ``followed`` names
    the mechanisms that give all of the case's answers.
    """

    rule: str
    clause: str
    level: str
    tensor: str
    given: str
    got: str
    allowed: tuple[str, ...]
    wrong: int
    inputs: int
    followed: tuple[str, ...] = ()
    script: str = ""


@dataclass(frozen=True)
class NotRefused:
    """A backend returns something where a document wants an error, of a class if it names one.

    Where the shape is judged, ``given`` and ``got`` are those of tensor and answer, and ``layout``
    says how the tensor lies in memory, if that is unusual; elsewhere ``but`` says in words what the
    backend did.
    """

    rule: str
    clause: str
    level: str
    but: str = ""
    given: Shape | None = None
    got: Shape | None = None
    error_class: str | None = None
    layout: str = ""


@dataclass(frozen=True)
class BrokenPromise:
    """A promise of a document besides values is broken.

    ``promise`` is a key of ``reports.problem_words.PROMISES``, and ``facts`` fill the words there.
    """

    rule: str
    clause: str
    level: str
    promise: str
    facts: tuple[str, ...] = ()
    where: str = ""


@dataclass(frozen=True)
class Refused:
    """A backend raises an error where an answer is due.

    ``inputs`` names those on which it does, ``where`` the tensor or the call. A rule is named if
    one requires exactly this answer. ``kind`` says whether an `error` came back, or an `answer`
    that reports one.
    """

    error: str
    line: str
    inputs: str = ""
    where: str = ""
    rule: str = ""
    clause: str = ""
    level: str = ""
    kind: Literal["answer", "error"] = "error"


@dataclass(frozen=True)
class WrongForm:
    """An answer cannot be compared: not an array, or of another dtype, shape or width."""

    what: str
    where: str = ""
    rule: str = ""
    clause: str = ""
    level: str = ""


@dataclass(frozen=True)
class WritesToInputs:
    """A conversion changed the tensor that it was given."""

    where: str = ""
    rule: str = ""
    clause: str = ""
    level: str = ""


@dataclass(frozen=True)
class Unoffered:
    """A backend declines a whole case, one tensor of it, or what a promise besides values needs."""

    reason: str
    where: str = ""


@dataclass(frozen=True)
class Died:
    """A backend's process died or fell silent: how, and on which inputs if that is known."""

    how: str


@dataclass(frozen=True)
class BrokenAdapter:
    """An adapter changes the bits of a dtype on their way in and out, without any cast."""

    dtype: str
    how: str


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
Problem = BrokenRule | Unoffered | Died | BrokenAdapter | Note

KINDS: Mapping[str, type[Any]] = {"WrongInChain": WrongEnd, "WrongQuantized": WrongTensor} | {
    kind.__name__: kind
    for kind in (
        WrongShape,
        WrongElement,
        WrongByAnyReading,
        ChangesWithShape,
        ChangesWithLayout,
        DiffersFromVariant,
        NotRefused,
        BrokenPromise,
        Refused,
        WrongForm,
        WritesToInputs,
        Unoffered,
        Died,
        BrokenAdapter,
        Note,
    )
}
"""The problems that JSON can hold. Wrong values go into tables, because they may have many runs."""
NAMES = {kind: name for name, kind in KINDS.items()}


def problem_json(problem: Problem) -> dict[str, Any]:
    """Encode a problem as an object for JSON; raise KeyError for wrong values."""
    encoded = {each.name: getattr(problem, each.name) for each in fields(problem)}
    if isinstance(problem, WrongByAnyReading):
        encoded["readings"] = [*map(problem_json, problem.readings)]
    return {"problem": NAMES[type(problem)]} | encoded


def decode_problem(encoded: Mapping[str, Any]) -> Any:
    """Decode what ``problem_json`` encoded; raise LookupError or TypeError if it is malformed."""
    kind = KINDS[encoded["problem"]]
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
    """Return the number of inputs of ``WrongValues`` or ``WrongTensor``; 0 for other problems."""
    match problem:
        case WrongValues(count=count) | WrongTensor(wrong=count):
            return count
    return 0
