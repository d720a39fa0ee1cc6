"""The form that an answer must have, and the form in which an error is told."""

from __future__ import annotations

import numpy as np

from oracles.protocol import Bits
from specs.formats import Format

LONGEST = 300


class AnswerError(Exception):
    """An answer that has not the form an answer must have."""


def checked(target: Format, inputs: Bits, answer: object) -> Bits:
    """The answer, if it has the form of one."""
    array = stored(target, answer)
    if array.shape != inputs.shape:
        raise AnswerError(f"the answer has shape {array.shape}, the input {inputs.shape}")
    return array


def stored(target: Format, answer: object, widest: int | None = None) -> Bits:
    """The answer, if it is an array of the target's patterns, of whatever shape.

    No pattern may exceed ``widest``, which is the format's mask unless given.
    """
    if not isinstance(answer, np.ndarray) or type(answer) is not np.ndarray:
        raise AnswerError(f"the answer is {type(answer).__name__}, not a numpy array")
    if answer.dtype != np.dtype(target.storage):
        raise AnswerError(
            f"the answer's storage is {answer.dtype}, {target.name} is held in {target.storage}"
        )
    if target.kind == "text":
        if not all(isinstance(text, str) for text in answer.reshape(-1).tolist()):
            raise AnswerError("the answer holds something else than texts")
    elif target.bits < 8 * answer.dtype.itemsize and answer.size:
        largest = int(answer.max())
        if largest > (target.mask if widest is None else widest):
            raise AnswerError(f"the answer holds {largest:#x}, wider than {target.name}")
    return answer


def one_line(error: BaseException) -> str:
    """An error's first line that says something, cut to a readable length, fit for any stream."""
    lines = [line.strip() for line in printable(str(error)).splitlines() if line.strip()]
    return lines[0][:LONGEST] if lines else type(error).__name__


def described(error: BaseException) -> str:
    """An error's kind and its first line."""
    return f"{type(error).__name__}: {one_line(error)}"


def refusal(wanted: str | None, error: BaseException) -> str:
    """A refusal in words: the class of error that the document names, and what was raised."""
    return (f"expected {wanted}, got " if wanted else "") + described(error)


def printable(text: str) -> str:
    """A text without lone surrogates, which no stream takes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
