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
    """What comes in place of an answer to a call that Dask could not finish."""


@dataclass(eq=False)
class Job:
    """A function that one of the workers is to call, and the calls that are under way.

    A call passes ``arguments``, then what ``Cluster.start`` gets. ``more`` are arguments for that,
    and ``tasks`` are those that the function does.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    tasks: tuple[Task, ...] = ()
    more: tuple[Any, ...] = ()
    losses: int = 0
    """Workers that were lost during its calls."""
    failures: int = 0
    """Workers whose call raised an error."""
    calls: dict[str, Any] = field(default_factory=dict)
    """The future of each worker's call."""
    begun: float = 0.0


class Cluster:
    """The connection to a scheduler; raises CastigateError if there is none at the address."""

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
        """Return the error to raise when the connection is gone."""
        return CastigateError(f"the Dask scheduler at {self.address} was lost; {RESUME_ADVICE}")

    def workers(self) -> dict[str, int]:
        """Return the threads of each worker by address; raise CastigateError if that fails."""
        if self.client.status != "running":
            raise self.lost()
        try:
            return dict(self.client.nthreads(callback_timeout=SECONDS_TO_ANSWER))
        except Exception:
            raise self.lost() from None

    def start(self, job: Job, worker: str, *more: Any) -> None:
        """Have a worker do a job, with ``more`` arguments; ``answer`` returns the result later."""
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
        """Keep an answer for the main thread: a result, or the Exception that the call raised."""
        try:
            answer = pickle.loads(future.result())
        except Exception as error:
            answer = error if NOT_INSTALLED in str(error) else LostCallError(LOST)
        except BaseException:
            # A future that is cancelled raises an error of asyncio, which is no Exception.
            answer = LostCallError(LOST)
        self._answers.put((job, worker, future, answer))

    def answer(self) -> tuple[Job, str, Any] | None:
        """Wait a short time for an answer; return the job, the worker and the answer, or None.

        An answer is a result or an Exception. One to a call that was dropped is left out.
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
        """Cancel a job's calls, or only that of one worker."""
        for each in [worker] if worker else list(job.calls):
            future = job.calls.pop(each, None)
            with suppress(Exception):
                if future is not None and self.client.status == "running":
                    future.cancel()
