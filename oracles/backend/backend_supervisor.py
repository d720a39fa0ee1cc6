"""Launches one process of a backend, restarts it when it fails, and sends it requests."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Generic, Protocol, TypeVar

from oracles.backend.frames import Frame, FrameError, Pieces
from oracles.backend.remote_errors import CannotRestart, ProcessDied
from oracles.backend.resource_limits import memory_share
from oracles.backend.supervised_process import (
    ProcessFailed,
    ProcessTimeout,
    SupervisedProcess,
    describe_invalid_reply,
)
from oracles.protocol import Bits
from specs import VERSION
from specs.errors import CastigateError

MAX_STARTS = 3
"""How often a process is started if SIGKILL ends it before it is ready."""
DEFAULT_TIMEOUT = 60.0
"""Seconds for one call: as many as the slowest compilation takes, many more than a cast."""
STARTUP_TIMEOUT = 300.0
"""Seconds in which a framework must be loaded, or a program must have opened its device."""


@dataclass(frozen=True)
class LaunchConfig:
    """How to launch a backend's process; without ``python`` it runs under our own interpreter.

    ``seconds`` is the timeout of one call, ``startup_seconds`` that of each step of a start, and
    ``memory`` the limit of the process in bytes. If it ``shares_answers``, cases that the adapter
    puts on one road share the answers of each method in ``ROADS``.
    """

    python: str | None = None
    seconds: float = DEFAULT_TIMEOUT
    startup_seconds: float = STARTUP_TIMEOUT
    memory: int = field(default_factory=lambda: memory_share(1))
    shares_answers: bool = True

    @property
    def interpreter(self) -> str:
        """The Python that runs the backend's server."""
        return self.python or sys.executable

    def command(self, backend: str) -> list[str]:
        """Return the command that serves a backend; its two pipes are still to be appended."""
        # -P: modules in the current folder must not shadow installed packages.
        server = ["-P", "-m", "oracles.backend.server"]
        numbers = str(self.memory), str(int(self.shares_answers))
        return [self.interpreter, *server, backend, *numbers]

    @property
    def environment(self) -> Mapping[str, str]:
        """The process's environment; under our own interpreter, it finds the modules we find."""
        if self.python is not None:
            return os.environ
        return os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}

    @property
    def install_hint(self) -> str:
        """Advice for an interpreter that lacks this version of Castigate."""
        return f"install this version there: {self.interpreter} -m pip install castigate=={VERSION}"


class Description(Protocol):
    """The facts about its backend that a new process reports."""

    @property
    def name(self) -> str:
        """The backend's name."""

    @property
    def version(self) -> str:
        """The backend's version."""


Info = TypeVar("Info", bound=Description, covariant=True)


@dataclass(frozen=True)
class EncodedRequest:
    """A request as a frame, and how to decode its reply."""

    frame: Pieces
    max_reply: int
    """The most bytes of payload that the reply may have."""
    decode: Callable[[Frame], Any]
    """Returns the answer, or the exception sent in its place; raises FrameError if malformed."""


class ProtocolClient(Protocol[Info]):
    """Speaks the protocol of one kind of backend process."""

    def start(self) -> SupervisedProcess:
        """Start a process; raise CastigateError if that is impossible."""

    def handshake(self, process: SupervisedProcess) -> Info:
        """Return what a new process reports about itself.

        Raises ProcessFailed, ProcessTimeout, or CastigateError if it cannot serve the backend.
        """

    def encode(
        self, number: int, request: Mapping[str, Any], arrays: Mapping[str, Bits]
    ) -> EncodedRequest:
        """Return a request and its named arrays as a frame; the reply repeats ``number``."""

    def say_goodbye(self, process: SupervisedProcess) -> None:
        """Let a process end by itself, if the protocol has a message for that."""


@dataclass(frozen=True)
class _PendingReply:
    number: int
    request: EncodedRequest


class BackendSupervisor(Generic[Info]):
    """Sends requests to the backend's process; starts a new one whenever there is none.

    The constructor starts the first process, and raises CastigateError if the backend cannot be
    loaded. ``on_reply`` is called after every start and every exchange.
    """

    def __init__(
        self, backend: str, client: ProtocolClient[Info], on_reply: Callable[[], None]
    ) -> None:
        self._backend = backend
        self._client = client
        self._on_reply = on_reply
        self._process: SupervisedProcess | None = None
        self._number = 0
        self._first_number = 0
        """The number of the first request to the current process."""
        self._pending: deque[_PendingReply] = deque()
        self._info: Info | None = None
        self.waited = 0.0
        """Seconds spent on sending requests and waiting for the replies."""
        self.deaths: list[str] = []
        """Texts on how processes ended that failed in an exchange, even if a retry succeeded."""
        self._ensure_started()

    @property
    def info(self) -> Info:
        """The first process's description of its backend; every later one must send the same."""
        assert self._info is not None
        return self._info

    def close(self) -> None:
        """Say goodbye to the process and end it; the next request starts a new one."""
        if self._process is not None:
            self._client.say_goodbye(self._process)
            self._kill()

    def ask(self, request: dict[str, Any], arrays: Mapping[str, Bits], seconds: float) -> Any:
        """Send a request, and return the answer; raise the backend's exception, or ProcessDied.

        If the reply reports that hardly any memory is left, the process is ended, and the request
        is sent again to a new one, unless it was the first of its process.
        """
        answer, memory_is_full = self._ask_once(request, arrays, seconds)
        if memory_is_full:
            # Earlier requests may have used up the memory: only a new process can tell.
            was_first = self._number == self._first_number
            self._kill()
            if not was_first:
                answer, _ = self._ask_once(request, arrays, seconds)
        return _returned_or_raised(answer)

    def ask_ahead(self, request: dict[str, Any], seconds: float) -> int:
        """Send a request without waiting for the reply; return its number for ``wait_for``.

        Raises ProcessDied if the process fails.
        """
        process = self._ready_process()
        with self._killed_on_failure():
            self._send(process, request, {}, seconds)
        return self._number

    def wait_for(self, number: int, seconds: float) -> Any:
        """Return the answer to a request sent by ``ask_ahead``; raise its exception or ProcessDied.

        ProcessDied also means that the reply was dropped, for another request or because the
        process ended: the caller has to send the request again.
        """
        if number not in [pending.number for pending in self._pending]:
            raise ProcessDied("the process was asked something else before this answer was read")
        with self._killed_on_failure():
            while self._pending[0].number != number:
                self._receive(seconds)
            answer, _ = self._receive(seconds)
        return _returned_or_raised(answer)

    def _ask_once(
        self, request: dict[str, Any], arrays: Mapping[str, Bits], seconds: float
    ) -> tuple[Any, bool]:
        """Return the answer or exception, and whether the process has hardly any memory left."""
        process = self._ready_process()
        with self._killed_on_failure():
            while self._pending:
                self._receive(seconds)  # sent ahead, and not needed any more
            self._send(process, request, arrays, seconds)
            return self._receive(seconds)

    def _ready_process(self) -> SupervisedProcess:
        try:
            return self._ensure_started()
        except CastigateError as error:
            # The backend was loaded before, so this is neither a usage error nor its answer.
            raise CannotRestart(f"no other could be started: {error}") from None

    def _send(
        self,
        process: SupervisedProcess,
        request: dict[str, Any],
        arrays: Mapping[str, Bits],
        seconds: float,
    ) -> None:
        self._number += 1
        encoded = self._client.encode(self._number, request, arrays)
        with self._waiting():
            process.send(encoded.frame, seconds)
        self._pending.append(_PendingReply(self._number, encoded))

    def _receive(self, seconds: float) -> tuple[Any, bool]:
        assert self._process is not None
        pending = self._pending.popleft()
        with self._waiting():
            reply = self._process.receive(seconds, pending.request.max_reply)
        if reply.header.get("number") != pending.number:
            raise FrameError("an answer to another question")
        return pending.request.decode(reply), bool(reply.header.get("memory_is_full"))

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        begun = monotonic()
        try:
            yield
        finally:
            self.waited += monotonic() - begun

    @contextmanager
    def _killed_on_failure(self) -> Iterator[None]:
        """Kill the process if the block raises; turn a failure of the process into ProcessDied.

        Calls ``on_reply`` in any case.
        """
        try:
            yield
        except (ProcessFailed, ProcessTimeout) as failure:
            self._kill()
            silent = isinstance(failure, ProcessTimeout)
            raise self._death(f"the process {failure}", silent) from None
        except FrameError as error:
            self._kill()
            raise self._death(f"the process {describe_invalid_reply(error)}") from None
        except BaseException:
            self._kill()  # the rest of this reply must not be read as the next one
            raise
        finally:
            self._on_reply()

    def _death(self, how: str, silent: bool = False) -> ProcessDied:
        self.deaths.append(how)
        return ProcessDied(how, silent=silent)

    def _ensure_started(self) -> SupervisedProcess:
        """Return the running process, or start one and wait until it is ready.

        Raises CastigateError if none can be started, or if it describes another backend than
        before.
        """
        if self._process is not None and self._process.is_alive:
            return self._process
        for start in range(MAX_STARTS):
            self._kill()
            self._process = process = self._client.start()
            try:
                info = self._client.handshake(process)
                if self._info not in (None, info):
                    raise self._other_error(info)
                self._info = info
                break
            except ProcessFailed as failure:
                if start == MAX_STARTS - 1 or not failure.was_killed:
                    raise self._start_error(failure) from None
            except ProcessTimeout as timeout:
                raise self._start_error(timeout) from None
            except BaseException:
                self._kill()
                raise
        self._first_number = self._number + 1
        self._on_reply()
        return process

    def _other_error(self, info: Description) -> CastigateError:
        was, now = (f"{each.name} {each.version}" for each in (self.info, info))
        now = "described otherwise" if was == now else now
        return CastigateError(f"backend `{self._backend}` was {was}, and is {now} now")

    def _start_error(self, failure: ProcessFailed | ProcessTimeout) -> CastigateError:
        self._kill()
        return CastigateError(f"backend `{self._backend}` {failure} before its first task")

    def _kill(self) -> None:
        self._pending.clear()
        if self._process is not None:
            self._process.kill()
            self._process = None


class SupervisedOracle:
    """An oracle whose answers come from another process, which a supervisor keeps running."""

    _supervisor: BackendSupervisor[Any]

    @property
    def waited(self) -> float:
        """The seconds spent on sending requests to the process, and on waiting for its replies."""
        return self._supervisor.waited

    @property
    def deaths(self) -> list[str]:
        """Texts on how the backend's processes ended that failed in an exchange, in order."""
        return self._supervisor.deaths

    def close(self) -> None:
        """End the process; the next request starts a new one."""
        self._supervisor.close()


def _returned_or_raised(answer: Any) -> Any:
    if isinstance(answer, BaseException):
        raise answer
    return answer
