"""How far a run has come: a live bar per backend on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from time import monotonic

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from conformance.running.plan import Task

SECONDS_BETWEEN_LINES = 5.0
TASK_WEIGHT = 1 << 22
"""What a task counts beside its inputs, so that tasks with few inputs count too."""

ROOM_OF_NUMBERS = 70
NARROWEST_WITH_BAR = 100


class Advance:
    """One backend's numbers."""

    def __init__(self, backend: str, tasks: Iterable[Task]) -> None:
        weights = [task.weight for task in tasks]
        self.backend = backend
        self.tasks = len(weights)
        self.tasks_done = self.inputs = self.wrong = 0
        self._total = sum(weights) + TASK_WEIGHT * self.tasks
        self._inputs_done = 0
        self._started = monotonic()

    @property
    def share(self) -> float:
        """How much of the work is done, from 0 to 1."""
        inputs = max(self._inputs_done, self.inputs)
        return min(1.0, (inputs + TASK_WEIGHT * self.tasks_done) / max(1, self._total))

    def told(self, inputs: int, wrong: int) -> None:
        """Some inputs were visited."""
        self.inputs += inputs
        self.wrong += wrong

    def done(self, task: Task) -> None:
        """A task is done."""
        self.tasks_done += 1
        self._inputs_done += task.weight

    def __str__(self) -> str:
        spent = monotonic() - self._started
        left = f"{spent * (1 / self.share - 1):.0f} s left" if self.share else "begun"
        return (
            f"{self.tasks_done} of {self.tasks} tasks, {self.inputs / 1e9:.2f} G inputs, "
            f"{self.inputs / 1e9 / max(spent, 0.1):.2f} G/s, {self.wrong:,} wrong, {left}"
        )


class Reporter:
    """Shows the numbers of the backend that is at work."""

    def __init__(self, console: Console, bars: Progress | None) -> None:
        self._console = console
        self._bars = bars
        self._bar = TaskID(0)
        self._last = monotonic()
        self._now = Advance("", [])

    def begin(self, backend: str, tasks: Iterable[Task]) -> None:
        """A backend's tasks begin."""
        self._now = Advance(backend, tasks)
        if self._bars is not None:
            room = max(10, self._console.width - ROOM_OF_NUMBERS)
            name = backend if len(backend) <= room else f"…{backend[1 - room :]}"
            self._bar = self._bars.add_task(name, total=1.0, numbers="")

    def told(self, inputs: int, wrong: int) -> None:
        """Some inputs were visited."""
        self._now.told(inputs, wrong)
        self._show()

    def done(self, task: Task) -> None:
        """A task is done."""
        self._now.done(task)
        self._show()

    def end(self) -> None:
        """A backend's tasks are done."""
        self._show(at_once=True)

    def say(self, message: str) -> None:
        """Something happened that the user should know."""
        self._console.print(message, markup=False, emoji=False, highlight=False, soft_wrap=True)

    def _show(self, at_once: bool = False) -> None:
        if self._bars is not None:
            self._bars.update(self._bar, completed=self._now.share, numbers=str(self._now))
        elif at_once or monotonic() - self._last >= SECONDS_BETWEEN_LINES:
            self._last = monotonic()
            self.say(f"{self._now.backend}: {self._now}")


@contextmanager
def reporter() -> Iterator[Reporter]:
    """A reporter on stderr, live where that is a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield Reporter(console, None)
        return
    name = TextColumn("{task.description}", markup=False)
    numbers = TextColumn("{task.fields[numbers]}", markup=False)
    bar = [BarColumn()] if console.width >= NARROWEST_WITH_BAR else []
    with Progress(name, *bar, numbers, console=console, refresh_per_second=5) as bars:
        yield Reporter(console, bars)
