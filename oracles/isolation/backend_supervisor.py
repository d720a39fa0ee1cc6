"""A backend that is served by one process after another, as long as somebody asks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar

from oracles.isolation.frames import Frame, FrameError
from oracles.isolation.remote_errors import Crashed, Lost
from oracles.isolation.supervised_process import Gone, Late, Process, nonsense_in_words
from oracles.protocol import Bits
from specs.errors import CastigateError

STARTS = 3
"""How many processes are started if somebody kills them before they are ready."""

Said = TypeVar("Said", covariant=True)
"""What a process says of itself."""
Pieces = list[bytes | bytearray]
Understood = Callable[[Frame], Any]
"""Makes a value, or an error to be raised, of the answer; a ``FrameError`` of what is none."""


class Tongue(Protocol[Said]):
    """How a kind of processes is started and spoken with."""

    def started(self) -> Process:
        """A process; ``CastigateError`` where there is none to be had."""
        ...

    def greeted(self, process: Process) -> Said:
        """What a process serves: ``Gone``, ``Late`` or ``CastigateError`` where it does not."""
        ...

    def asked(
        self, number: int, question: Mapping[str, Any], arrays: Mapping[str, Bits]
    ) -> tuple[Pieces, int, Understood]:
        """A question as a frame, the most that its answer may weigh, and who understands it."""
        ...

    def parted(self, process: Process) -> None:
        """Take leave of a process that may be healthy."""
        ...


class Served(Generic[Said]):
    """Asks the backend's process, and starts a fresh one where there is none (any more)."""

    def __init__(self, backend: str, tongue: Tongue[Said], beat: Callable[[], None]) -> None:
        self._backend = backend
        self._tongue = tongue
        self._beat = beat
        self._process: Process | None = None
        self._number = 0
        self._first = 0
        self._ahead: deque[tuple[int, int, Understood]] = deque()
        self.hello: Said
        self._living()

    def close(self) -> None:
        """Take leave of the process; asked again, there is another."""
        if self._process is not None:
            self._tongue.parted(self._process)
            self._end()

    def _end(self) -> None:
        self._ahead.clear()
        if self._process is not None:
            self._process.end()
            self._process = None

    def ask(self, question: dict[str, Any], arrays: Mapping[str, Bits], seconds: float) -> Any:
        """The answer to a question; an error of the backend is raised, its process's end too."""
        value, is_full = self._answer(question, arrays, seconds)
        if is_full:
            # What was asked before may have left no memory for this: a fresh process tells.
            was_first = self._number == self._first
            self._end()
            if not was_first:
                value, _ = self._answer(question, arrays, seconds)
        if isinstance(value, BaseException):
            raise value
        return value

    def ask_ahead(self, question: dict[str, Any], seconds: float) -> int:
        """Ask, and hear the answer later; gives the number of the question."""
        process = self._asked_process()
        with self._ended_with_it():
            self._tell(process, question, {}, seconds)
        return self._number

    def heard(self, number: int, seconds: float) -> Any:
        """The answer to a question that was asked ahead, as ``ask`` gives it.

        ``Crashed`` too where nobody will answer it any more: it is to be asked again then.
        """
        if number not in [ahead for ahead, *_ in self._ahead]:
            raise Crashed("the process was asked something else before it was heard")
        with self._ended_with_it():
            while self._ahead[0][0] != number:
                self._hear(seconds)
            value = self._hear(seconds)[0]
        if isinstance(value, BaseException):
            raise value
        return value

    def _answer(
        self, question: dict[str, Any], arrays: Mapping[str, Bits], seconds: float
    ) -> tuple[Any, bool]:
        """What came back, an error too, and whether the process has hardly any memory left."""
        process = self._asked_process()
        with self._ended_with_it():
            while self._ahead:
                self._hear(seconds)  # nobody wants to know it any more
            self._tell(process, question, arrays, seconds)
            return self._hear(seconds)

    def _asked_process(self) -> Process:
        try:
            return self._living()
        except CastigateError as error:
            # It was loaded before: this is no wrong name, and no answer of the backend either.
            raise Lost(f"no other could be started: {error}") from None

    def _tell(
        self,
        process: Process,
        question: dict[str, Any],
        arrays: Mapping[str, Bits],
        seconds: float,
    ) -> None:
        self._number += 1
        pieces, most, understood = self._tongue.asked(self._number, question, arrays)
        process.tell(pieces, seconds)
        self._ahead.append((self._number, most, understood))

    def _hear(self, seconds: float) -> tuple[Any, bool]:
        assert self._process is not None
        number, most, understood = self._ahead.popleft()
        answer = self._process.hear(seconds, most)
        if answer.header.get("number") != number:
            raise FrameError("an answer to another question")
        return understood(answer), bool(answer.header.get("full"))

    @contextmanager
    def _ended_with_it(self) -> Iterator[None]:
        """Whatever breaks off between question and answer ends the process."""
        try:
            yield
        except (Gone, Late) as end:
            self._end()
            raise Crashed(f"the process {end}", silent=isinstance(end, Late)) from None
        except FrameError as error:
            self._end()
            raise Crashed(f"the process {nonsense_in_words(error)}") from None
        except BaseException:
            self._end()  # the rest of an answer must not be taken for the next
            raise
        finally:
            self._beat()

    def _living(self) -> Process:
        """The process, or a new one that is ready."""
        if self._process is not None and self._process.is_alive:
            return self._process
        for start in range(STARTS):
            self._end()
            self._process = process = self._tongue.started()
            try:
                self.hello = self._tongue.greeted(process)
                break
            except Gone as gone:
                if start == STARTS - 1 or not gone.was_killed:
                    raise self._refusal(f" {gone} before its first task") from None
            except Late as late:
                raise self._refusal(f" {late} before its first task") from None
            except BaseException:
                self._end()
                raise
        self._first = self._number + 1
        self._beat()
        return process

    def _refusal(self, message: str) -> CastigateError:
        self._end()
        return CastigateError(f"backend `{self._backend}`{message}")
