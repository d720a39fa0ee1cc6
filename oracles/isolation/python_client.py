"""How processes are spoken with that serve a backend in Python: ``oracles.isolation.server``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oracles.isolation.backend_supervisor import Pieces, Understood
from oracles.isolation.frames import MOST_PAYLOAD, Frame, FrameError, packed, unpacked, written
from oracles.isolation.launch_config import Home
from oracles.isolation.message_codec import Hello, hello_of, layout_words, returned_of
from oracles.isolation.remote_errors import error_of, foreign
from oracles.isolation.supervised_process import Gone, Process
from oracles.protocol import Bits
from specs.errors import CastigateError
from specs.release import VERSION


class PythonTongue:
    """Speaks with our own server under some interpreter."""

    def __init__(self, backend: str, home: Home) -> None:
        self._backend = backend
        self._home = home

    def started(self) -> Process:
        """A process that loads the backend."""
        home = self._home
        try:
            return Process(home.command(self._backend), home.environment)
        except OSError as error:
            raise self._refusal(f": {home.interpreter}: {error.strerror}") from None

    def greeted(self, process: Process) -> Hello:
        """Hear what a process is, and what it serves."""
        try:
            found = process.hear(self._home.seconds_to_begin).header.get("castigate")
        except Gone as gone:
            if self._home.python is None:
                raise
            raise self._refusal(f": {self._home.python} {gone}; {self._home.advice}") from None
        if found != VERSION:
            wrong = f"has castigate {found}, this is {VERSION}"
            raise self._refusal(f": {self._home.python} {wrong}; {self._home.advice}")
        words = process.hear(self._home.seconds_to_begin).header
        if "failed" in words:
            where = f" ({self._home.python})" if self._home.python is not None else ""
            raise CastigateError(f"{words['failed']}{where}")
        try:
            return hello_of(words.get("hello"))
        except FrameError as error:
            raise self._refusal(f": {error}") from None

    def asked(
        self, number: int, question: Mapping[str, Any], arrays: Mapping[str, Bits]
    ) -> tuple[Pieces, int, Understood]:
        """A question as a frame."""
        fields, payload = packed(arrays)
        layouts = layout_words(arrays)
        asked = {"number": number, **question, "arrays": fields, "layouts": layouts}
        return written(asked, payload), MOST_PAYLOAD, _value

    def parted(self, process: Process) -> None:
        """Nothing is to be said to one of our own."""

    def _refusal(self, message: str) -> CastigateError:
        return CastigateError(f"backend `{self._backend}`{message}")


def _value(answer: Frame) -> Any:
    """What was asked for: a text, a yes or no, a call's result, an array, or the error instead."""
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
        if "flag" in words:
            return bool(words["flag"])
        return returned_of(words["returned"], arrays) if "returned" in words else arrays.get("")
    except (TypeError, LookupError, AttributeError, ValueError):
        raise FrameError("what came back is not told in full") from None
