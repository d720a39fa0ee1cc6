"""The five replies that a request can get, and the checks that an answer must pass.

A backend may answer, decline, raise an error, return something that cannot be compared, or die.
Each of these is data, so that a judge is a function of replies and never has to catch anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from oracles.backend.remote_errors import ProcessDied
from oracles.memory_layouts import BatchAnswers, TensorBatch
from oracles.protocol import Bits, InputsChanged, Unsupported, as_array
from specs.formats import Format
from specs.plain_text import plain_line, plain_text

MESSAGE_LENGTH = 300
NAME_LENGTH = 100
"""The most characters of the name of an error's class."""

Carried = TypeVar("Carried")


@dataclass(frozen=True)
class Answered(Generic[Carried]):
    """A well-formed answer, which ``value`` holds."""

    value: Carried


@dataclass(frozen=True)
class Declined:
    """The backend does not offer what was requested; ``text`` says why."""

    text: str


@dataclass(frozen=True)
class Raised:
    """The backend raised an error.

    If it is known which inputs cause the error, ``inputs`` says so in words, and ``smallest`` is
    one of them.
    """

    error: Exception
    inputs: str = ""
    smallest: Bits | None = None

    @property
    def text(self) -> str:
        """The inputs that cause the error, if known, then the error's class and first line."""
        return f"{self.inputs}: {described(self.error)}" if self.inputs else described(self.error)


@dataclass(frozen=True)
class Malformed:
    """The backend returned something that cannot be compared, or wrote to its inputs."""

    text: str
    writes_to_inputs: bool = False


@dataclass(frozen=True)
class Crashed:
    """The backend's process died, timed out or sent an invalid reply."""

    death: ProcessDied

    @property
    def text(self) -> str:
        """How the process ended."""
        return plain_line(str(self.death))


NoAnswer = Declined | Raised | Malformed | Crashed
Answer = Answered[Bits] | NoAnswer
"""The reply to a request for bits."""
Reply = Answered[Any] | NoAnswer


@dataclass(frozen=True)
class BatchReply:
    """The replies to the tensors of a batch, in their order.

    If all tensors were answered in one message, ``elements`` has all answers in one row. Else
    ``replies`` has a reply for each tensor; the first that is neither an answer nor ``Declined`` is
    the last.
    """

    batch: TensorBatch
    elements: Bits | None = None
    replies: Sequence[Answer] = ()

    def each(self) -> Iterator[Answer]:
        """Yield the reply to each tensor, as far as there are replies."""
        if self.elements is None:
            yield from self.replies
        else:
            whole = BatchAnswers(self.elements, len(self.batch.shapes))
            yield from map(Answered, whole.split(self.batch))


class Unanswered(BaseException):
    """Carries a missing answer out of nested code, to where it becomes a verdict.

    It is a BaseException, so that code which expects errors of a backend cannot swallow it.
    """

    def __init__(self, answer: NoAnswer) -> None:
        super().__init__(answer.text)
        self.answer = answer


def attempt(call: Callable[[], Carried]) -> Answered[Carried] | NoAnswer:
    """Call a backend; return its answer or failure as a reply. Only KeyboardInterrupt is raised."""
    try:
        return Answered(call())
    except BaseException as error:
        return no_answer(error)


def no_answer(error: BaseException) -> NoAnswer:
    """Return the reply for an exception of a backend's call; raise only KeyboardInterrupt."""
    match error:
        case Unanswered():
            return error.answer
        case Unsupported():
            return Declined(one_line(error))
        case InputsChanged():
            return Malformed(str(error), writes_to_inputs=True)
        case ProcessDied():
            return Crashed(error)
        case Exception():
            return Raised(error)
        case KeyboardInterrupt():
            raise error
    # SystemExit, or a test runner's own signals: a backend must not end the run.
    return Raised(RuntimeError(f"it wanted to end the run: {described(error)}"))


def value_of(answer: Answered[Carried] | NoAnswer) -> Carried:
    """Return the answer in a reply; raise ``Unanswered`` if the reply has none."""
    if isinstance(answer, Answered):
        return answer.value
    raise Unanswered(answer)


def checked(target: Format, inputs: Bits, answer: object) -> Bits:
    """Return an answer that holds the target's patterns in the shape of the inputs.

    Raises ``Unanswered`` for any other answer.
    """
    array = stored(target, answer)
    if array.shape != inputs.shape:
        raise malformed(f"the answer has shape {array.shape}, the input {inputs.shape}")
    return array


def stored(target: Format, answer: object, widest: int | None = None) -> Bits:
    """Return an answer that is an array of the target's patterns, of any shape.

    A numpy scalar counts as an array of rank 0. Where the target has fewer bits than its storage,
    no pattern may exceed ``widest``, by default the target's largest. Raises ``Unanswered`` for any
    other answer.
    """
    array = as_array(answer)
    if not isinstance(array, np.ndarray) or type(array) is not np.ndarray:
        raise malformed(f"the answer is {type(answer).__name__}, not a numpy array")
    if array.dtype != (storage := np.dtype(target.storage)):
        if (
            array.dtype.itemsize == storage.itemsize
            and array.dtype.isnative
            and storage.kind != "O"
        ):
            raise malformed(
                f"the answer is an array of {array.dtype}; return its bits: "
                f"y.view(np.{target.storage})"
            )
        raise malformed(
            f"the answer's storage is {array.dtype}, {target.name} is held in {target.storage}"
        )
    if target.kind == "text":
        kinds = {*map(type, array.reshape(-1).tolist())}
        if not all(issubclass(kind, str) for kind in kinds):
            raise malformed("the answer holds something else than texts")
    elif target.bits < 8 * array.dtype.itemsize and array.size:
        largest = int(array.max())
        if largest > (target.mask if widest is None else widest):
            raise malformed(f"the answer holds {largest:#x}, wider than {target.name}")
    return array


def malformed(text: str) -> Unanswered:
    """Return the exception that reports a malformed answer."""
    return Unanswered(Malformed(plain_line(text)))


def one_line(error: BaseException) -> str:
    """Return an error's first line that is not blank, cut and escaped; without one, its class."""
    lines = [line.strip() for line in text_of(error).splitlines() if line.strip()]
    return plain_text(lines[0][:MESSAGE_LENGTH]) if lines else class_name(error)


def described(error: BaseException) -> str:
    """Return an error's class and its first line."""
    return f"{class_name(error)}: {one_line(error)}"


def class_name(error: BaseException) -> str:
    """Return the name of an error's class, shortened and without unsafe characters."""
    return plain_line(type(error).__name__, NAME_LENGTH)


def text_of(error: BaseException) -> str:
    """Return an error's text or, if its ``__str__`` raises, a line that names that exception."""
    try:
        return str(error)
    except Exception as worse:
        return f"its text cannot be had: {class_name(worse)}"
