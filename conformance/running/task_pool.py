"""The interface between a run and the workers of one backend, on this machine or a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from conformance.judging.subject import Settings
from conformance.running.plan import Task
from oracles.claims import Claim
from oracles.wire.stderr_log import StderrLog
from reports.run_store.record import Environment
from specs.cases import Case

Keep = Callable[[str, bytes], None]
"""Receives the name of each finished task and the bytes of its part."""


@dataclass(frozen=True)
class Setup:
    """The options of a run that every worker needs, on whatever machine it is."""

    backends: tuple[str, ...]
    pythons: tuple[str, ...]
    seconds: float
    settings: Settings


class Listener(Protocol):
    """Is notified of a backend's progress."""

    def add_inputs(self, inputs: int, wrong: int) -> None:
        """Count inputs that were tested, and the wrong answers among them."""

    def finish_task(self, task: Task) -> None:
        """Count a task as done."""

    def say(self, message: str) -> None:
        """Show a message to the user."""


class Unheard:
    """A listener that drops what it is notified of."""

    def add_inputs(self, inputs: int, wrong: int) -> None:
        """Ignore how far a task has come."""

    def finish_task(self, task: Task) -> None:
        """Ignore the end of a task."""

    def say(self, message: str) -> None:
        """Ignore a message."""


class TaskPool(Protocol):
    """The workers of one backend: processes on this machine, or workers of a cluster."""

    backend: str
    log: StderrLog

    @property
    def version(self) -> str:
        """The backend's own version, the same on all workers."""

    @property
    def claimed(self) -> tuple[Claim, ...]:
        """The documents that the backend claims."""

    @property
    def has_chains(self) -> bool:
        """Whether the backend casts in company: one cast after another, in one program."""

    @property
    def environments(self) -> tuple[Environment, ...]:
        """The machines of the workers."""

    def roads(self, cases: Iterable[Case]) -> dict[str, str]:
        """Return the road of each case, by its id."""

    def run(
        self,
        tasks: Iterable[Task],
        keep: Keep,
        listener: Listener,
        is_over: Callable[[], bool],
    ) -> None:
        """Do all tasks, or as many as are done when ``is_over`` returns true."""

    def close(self) -> None:
        """End what the workers hold for this backend."""
