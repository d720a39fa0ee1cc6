"""What a backend in another process did instead of answering, told here in the same words."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from oracles.isolation.frames import FrameError
from oracles.protocol import Bits, Unsupported

LONGEST = 20_000
"""Characters of an error's text that are told."""
KINDS_KEPT = 256


class Crashed(BaseException):
    """A backend's process died, fell silent or talked nonsense when it was asked.

    It is no ``Exception``: where an error may be a fair answer, this is none. ``inputs`` are the
    fewest found on which it happens, if it was a cast; ``silent`` says that the process hung.
    """

    def __init__(self, how: str, inputs: Bits | None = None, silent: bool = False) -> None:
        super().__init__(how)
        self.inputs = inputs
        self.silent = silent

    def on(self, inputs: Bits) -> Crashed:
        """The same, met on these inputs."""
        return Crashed(str(self), inputs, self.silent)


class Lost(Crashed):
    """No fresh process of a backend could be had, whatever it would have been asked."""


class Raised(Exception):
    """An error of a backend; its class has the name that the backend's had."""

    kinds: tuple[str, ...] = ()
    """The names of the error's class and of those above it."""


class Quits(BaseException):
    """What is no ``Exception`` on the other side either: the backend wanted to end the run."""


def told(error: BaseException) -> dict[str, Any]:
    """What is said of an error, as JSON."""
    try:
        text = str(error)
    except Exception as worse:
        text = f"its text cannot be had: {type(worse).__name__}"
    if isinstance(error, Unsupported):
        return {"unsupported": text[:LONGEST]}
    kinds = [kind.__name__ for kind in type(error).__mro__ if kind is not object]
    return {"raised": {"kinds": kinds, "text": text[:LONGEST]}}


def error_of(words: dict[str, Any]) -> BaseException | None:
    """The error that is told of, if any; a ``FrameError`` where the words are no error's."""
    if "unsupported" in words:
        return Unsupported(str(words["unsupported"]))
    if "raised" not in words:
        return None
    try:
        kinds, text = tuple(map(str, words["raised"]["kinds"])), str(words["raised"]["text"])
        return error_named(kinds, text)
    except (TypeError, LookupError, ValueError):
        raise FrameError("an error without its kinds and text") from None


def error_named(kinds: tuple[str, ...], text: str) -> BaseException:
    """What stands here for an error of the other side."""
    error = _named(kinds[0], Raised if "Exception" in kinds else Quits)(text)
    if isinstance(error, Raised):
        error.kinds = kinds
    return error  # type: ignore[no-any-return]


def kinds_of(error: BaseException) -> tuple[str, ...]:
    """The names of an error's class and of those above it, here or on the other side."""
    if isinstance(error, Raised):
        return error.kinds
    return tuple(kind.__name__ for kind in type(error).__mro__ if kind is not object)


def foreign(kind: str) -> Any:
    """Stands for a thing that cannot be had from the other side; its class has the same name."""
    return _named(kind, object)()


@lru_cache(KINDS_KEPT)
def _named(kind: str, base: type[Any]) -> type[Any]:
    return type(kind.replace("\0", ""), (base,), {})
