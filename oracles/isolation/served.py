"""A backend that is served by one process after another, as long as somebody asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from oracles.isolation.arrays import packed, unpacked
from oracles.isolation.ended import nonsense_in_words
from oracles.isolation.errors import Crashed, Lost, error_of, foreign
from oracles.isolation.frames import Frame, FrameError, written
from oracles.isolation.home import Home
from oracles.isolation.process import Gone, Late, Process
from oracles.isolation.words import Hello, hello_of, layout_words, returned_of
from oracles.protocol import Bits
from specs.errors import CastigateError
from specs.release import VERSION

SECONDS_TO_LOAD = 300.0
STARTS = 3
"""How many processes are started if somebody kills them before they are ready."""


class Served:
    """Asks the backend's process, and starts a fresh one where there is none (any more)."""

    def __init__(self, backend: str, home: Home, beat: Callable[[], None]) -> None:
        self._backend = backend
        self._home = home
        self._beat = beat
        self._process: Process | None = None
        self._number = 0
        self._first = 0
        self.hello: Hello
        self._living()

    def close(self) -> None:
        """End the process; asked again, there is another."""
        if self._process is not None:
            self._process.end()
            self._process = None

    def ask(self, question: dict[str, Any], arrays: Mapping[str, Bits], seconds: float) -> Any:
        """The answer to a question; an error of the backend is raised, its process's end too."""
        value, is_full = self._answer(question, arrays, seconds)
        if is_full:
            # What was asked before may have left no memory for this: a fresh process tells.
            was_first = self._number == self._first
            self.close()
            if not was_first:
                value, _ = self._answer(question, arrays, seconds)
        if isinstance(value, BaseException):
            raise value
        return value

    def _answer(
        self, question: dict[str, Any], arrays: Mapping[str, Bits], seconds: float
    ) -> tuple[Any, bool]:
        """What came back, an error too, and whether the process has hardly any memory left."""
        try:
            process = self._living()
        except CastigateError as error:
            # It was loaded before: this is no wrong name, and no answer of the backend either.
            raise Lost(f"no other could be started: {error}") from None
        self._number += 1
        fields, payload = packed(arrays)
        layouts = layout_words(arrays)
        asked = {"number": self._number, **question, "arrays": fields, "layouts": layouts}
        pieces = written(asked, payload)
        try:
            answer = process.ask(pieces, seconds)
            if answer.header.get("number") != self._number:
                raise FrameError("an answer to another question")
            value = _value(answer)
        except (Gone, Late) as end:
            self.close()
            raise Crashed(f"the process {end}", silent=isinstance(end, Late)) from None
        except FrameError as error:
            self.close()
            raise Crashed(f"the process {nonsense_in_words(error)}") from None
        except BaseException:
            self.close()  # the rest of an answer must not be taken for the next
            raise
        finally:
            self._beat()
        return value, bool(answer.header.get("full"))

    def _living(self) -> Process:
        """The process, or a new one that is ready."""
        if self._process is not None and self._process.is_alive:
            return self._process
        for start in range(STARTS):
            self.close()
            self._process = process = self._started()
            try:
                self._load(process)
                break
            except Gone as gone:
                if start == STARTS - 1 or not gone.was_killed:
                    raise self._refusal(f" {gone} before its first task") from None
            except Late as late:
                raise self._refusal(f" {late} before its first task") from None
        self._first = self._number + 1
        self._beat()
        return process

    def _started(self) -> Process:
        home = self._home
        try:
            return Process(home.command(self._backend), home.environment)
        except OSError as error:
            raise self._refusal(f": {home.interpreter}: {error.strerror}") from None

    def _load(self, process: Process) -> None:
        """Hear what a process is, and what it serves."""
        try:
            found = process.hear(SECONDS_TO_LOAD).header.get("castigate")
        except Gone as gone:
            if self._home.python is None:
                raise
            raise self._refusal(f": {self._home.python} {gone}; {self._home.advice}") from None
        if found != VERSION:
            wrong = f"has castigate {found}, this is {VERSION}"
            raise self._refusal(f": {self._home.python} {wrong}; {self._home.advice}")
        words = process.hear(SECONDS_TO_LOAD).header
        if "failed" in words:
            self.close()
            where = f" ({self._home.python})" if self._home.python is not None else ""
            raise CastigateError(f"{words['failed']}{where}")
        try:
            self.hello = hello_of(words.get("hello"))
        except FrameError as error:
            raise self._refusal(f": {error}") from None

    def _refusal(self, message: str) -> CastigateError:
        self.close()
        return CastigateError(f"backend `{self._backend}`{message}")


def _value(answer: Frame) -> Any:
    """What was asked for: a text, a call's result, an array, what stands in its place, an error."""
    words = answer.header
    arrays = unpacked(words.get("arrays", []), answer.payload)
    error = error_of(words)
    if error is not None:
        return error
    try:
        if "odd" in words:
            return foreign(str(words["odd"]))
        if "many" in words:
            return arrays
        if "text" in words:
            return str(words["text"])
        return returned_of(words["returned"], arrays) if "returned" in words else arrays.get("")
    except (TypeError, LookupError, AttributeError, ValueError):
        raise FrameError("what came back is not told in full") from None
