"""The connection to a Dask scheduler: its workers, and calls of functions on one of them."""

from __future__ import annotations

import pickle
import re
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any
from uuid import uuid4

from conformance.extras.cluster.call import call, payload_of
from conformance.running.plan import Task
from reports.run_store.storage import RESUME_ADVICE
from specs.errors import CastigateError

LOST = "its process was lost"
NOT_INSTALLED = "deserialization of the task graph"
"""Words of Dask's error if the scheduler cannot import ``call``."""
SECONDS_TO_CONNECT = 10.0
SECONDS_BETWEEN_LOOKS = 1.0
SECONDS_TO_ANSWER = 60.0
"""Seconds after which a scheduler that does not answer is lost."""


class LostCallError(Exception):
    """Stands in place of the result of a call that Dask could not finish, as a worker was lost."""


@dataclass(eq=False)
class Job:
    """A function that a worker is to call, and its calls that are in progress.

    Each call passes ``arguments``, then the further arguments of ``Cluster.start``. ``more`` are
    the last of these, if any. ``tasks`` are the tasks of the run that the function does, if any.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    tasks: tuple[Task, ...] = ()
    more: tuple[Any, ...] = ()
    losses: int = 0
    """Workers that were lost during its calls."""
    failures: int = 0
    """Calls that raised an error."""
    calls: dict[str, Any] = field(default_factory=dict)
    """The future of each worker's call."""
    begun: float = 0.0


class Cluster:
    """A connection to a Dask scheduler.

    The constructor raises CastigateError if the address is malformed, if no scheduler answers
    there, or if the package ``distributed`` is missing.
    """

    def __init__(self, address: str) -> None:
        match = re.fullmatch(r"dask://(\[[0-9a-fA-F:]+\]|[^:/\s\[\]]+):([0-9]{1,5})/?", address)
        if match is None:
            raise CastigateError(
                f"--executor `{address[:80]}` is no address; write dask://HOST:PORT"
            )
        self.address = f"tcp://{match[1]}:{match[2]}"
        try:
            distributed: Any = import_module("distributed")
        except ModuleNotFoundError as error:
            raise CastigateError(
                f"package `{error.name}` is missing; install it with "
                "`pip install 'castigate[scale]'`"
            ) from None
        try:
            with warnings.catch_warnings():
                # Versions are checked worker by worker.
                warnings.simplefilter("ignore")
                self.client = distributed.Client(
                    self.address, timeout=SECONDS_TO_CONNECT, set_as_default=False
                )
        except Exception:
            raise CastigateError(
                f"no Dask scheduler answers at {self.address}; start one with `dask scheduler`, "
                "or correct --executor"
            ) from None
        self._answers: SimpleQueue[tuple[Job, str, Any, Any]] = SimpleQueue()

    def lost(self) -> CastigateError:
        """Return the error for callers to raise when the scheduler no longer answers."""
        return CastigateError(f"the Dask scheduler at {self.address} was lost; {RESUME_ADVICE}")

    def workers(self) -> dict[str, int]:
        """Return the number of threads of each worker, by the worker's address.

        Raise CastigateError if the scheduler does not answer.
        """
        if self.client.status != "running":
            raise self.lost()
        try:
            return dict(self.client.nthreads(callback_timeout=SECONDS_TO_ANSWER))
        except Exception:
            raise self.lost() from None

    def start(self, job: Job, worker: str, *more: Any) -> None:
        """Start a call of a job on a worker, with ``more`` after the job's own arguments.

        The call is added to ``job.calls``, and ``answer`` returns its result later. Raise
        CastigateError if the scheduler does not answer.
        """
        payload = payload_of(job.function, *job.arguments, *more)
        where = {"workers": [worker], "allow_other_workers": False, "pure": False}
        try:
            future = self.client.submit(call, payload, key=f"castigate-{uuid4().hex}", **where)
        except Exception:
            raise self.lost() from None
        job.begun = job.begun if job.calls else monotonic()
        job.calls[worker] = future
        future.add_done_callback(lambda each: self._note(job, worker, each))

    def _note(self, job: Job, worker: str, future: Any) -> None:
        """Queue the result of a finished call for ``answer``, or the Exception in its place.

        That is the one that the function raised, Dask's own if the scheduler cannot import
        ``call``, or LostCallError if Dask could not finish the call.
        """
        try:
            answer = pickle.loads(future.result())
        except Exception as error:
            answer = error if NOT_INSTALLED in str(error) else LostCallError(LOST)
        except BaseException:
            # A future that is cancelled raises an error of asyncio, which is no Exception.
            answer = LostCallError(LOST)
        self._answers.put((job, worker, future, answer))

    def answer(self) -> tuple[Job, str, Any] | None:
        """Wait up to ``SECONDS_BETWEEN_LOOKS`` for a call to finish; return None if none does.

        Otherwise remove the call from ``job.calls``, and return the job, the worker's address, and
        the result or the Exception in its place. Return None for a call that was canceled by
        ``drop`` too. Raise CastigateError if the scheduler cannot import castigate.
        """
        try:
            job, worker, future, answer = self._answers.get(timeout=SECONDS_BETWEEN_LOOKS)
        except Empty:
            return None
        if job.calls.get(worker) is not future:
            return None
        del job.calls[worker]
        if isinstance(answer, Exception) and NOT_INSTALLED in str(answer):
            raise CastigateError(
                f"the scheduler at {self.address} has no castigate; install the same one there"
            )
        return job, worker, answer

    def drop(self, job: Job, worker: str | None = None) -> None:
        """Cancel all calls of a job, or only that on ``worker``; remove them from ``job.calls``."""
        for each in [worker] if worker else list(job.calls):
            future = job.calls.pop(each, None)
            with suppress(Exception):
                if future is not None and self.client.status == "running":
                    future.cancel()
