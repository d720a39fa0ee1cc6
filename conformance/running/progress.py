"""A run's progress on stderr: a live bar per backend on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from time import monotonic

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from conformance.running.plan import Task
from conformance.running.process_pool import Listener
from reports.findings.finding_text import counted
from specs.plain_text import plain_line

SECONDS_BETWEEN_LINES = 10.0
TASK_WEIGHT = 1 << 22
"""Added to a task's inputs in the share of work done, so that tasks with few inputs count too."""
SECONDS_BEFORE_ESTIMATE, SHARE_BEFORE_ESTIMATE = 2.0, 0.01
"""The time left is not estimated before this much time and this share of the work are over."""
UNITS = {"G": 1e9, "M": 1e6, "k": 1e3}
COLUMNS_OF_NUMBERS = 70
MIN_COLUMNS_WITH_BAR = 100


class BackendProgress:
    """Counts the tasks and inputs of one backend."""

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
        """The share of the work that is done, from 0 to 1."""
        inputs = max(self._inputs_done, self.inputs)
        return min(1.0, (inputs + TASK_WEIGHT * self.tasks_done) / max(1, self._total))

    def add_inputs(self, inputs: int, wrong: int) -> None:
        """Count inputs that were tested, and the wrong answers among them."""
        self.inputs += inputs
        self.wrong += wrong

    def finish_task(self, task: Task) -> None:
        """Count a task as done."""
        self.tasks_done += 1
        self._inputs_done += task.weight

    def __str__(self) -> str:
        spent = monotonic() - self._started
        return (
            f"{self.tasks_done} of {counted(self.tasks, 'task')}, {_amount(self.inputs)} inputs, "
            f"{_amount(self.inputs / max(spent, 0.1))}/s, {self.wrong:,} wrong, {self._time(spent)}"
        )

    def _time(self, spent: float) -> str:
        if self.tasks_done == self.tasks:
            return f"done in {_duration(spent)}"
        if spent < SECONDS_BEFORE_ESTIMATE or self.share < SHARE_BEFORE_ESTIMATE:
            return "begun"
        return f"{_duration(spent * (1 / self.share - 1))} left"


def _amount(number: float) -> str:
    for unit, size in UNITS.items():
        if number >= size:
            return f"{number / size:.2f} {unit}"
    return f"{number:.0f}"


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.0f} h"


class ProgressReporter(Listener):
    """Shows the progress of the backend that is being run."""

    def __init__(self, console: Console, bars: Progress | None) -> None:
        self._console = console
        self._bars = bars
        self._bar = TaskID(0)
        self._phase: TaskID | None = None
        self._begun = self._last = monotonic()
        self._said = ""
        self._current = BackendProgress("", [])

    def begin_phase(self, words: str) -> None:
        """Show what is done now besides requests to backends; with empty ``words`` show nothing.

        Off a terminal it is shown only after ``SECONDS_BETWEEN_LINES``: a short run needs no words.
        """
        if self._bars is not None:
            if self._phase is not None:
                self._bars.remove_task(self._phase)
            self._phase = self._bars.add_task("", total=None, numbers=words) if words else None
        elif words and monotonic() - self._begun >= SECONDS_BETWEEN_LINES:
            self._last = monotonic()
            self.say(words)

    def begin(self, backend: str, tasks: Iterable[Task]) -> None:
        """Start to count the tasks of a backend."""
        self._current = BackendProgress(backend, tasks)
        if self._bars is not None:
            width = max(10, self._console.width - COLUMNS_OF_NUMBERS)
            name = backend if len(backend) <= width else f"…{backend[1 - width :]}"
            self._bar = self._bars.add_task(name, total=1.0, numbers="")

    def add_inputs(self, inputs: int, wrong: int) -> None:
        """Count inputs that were tested, and the wrong answers among them."""
        self._current.add_inputs(inputs, wrong)
        self._show()

    def finish_task(self, task: Task) -> None:
        """Count a task as done."""
        self._current.finish_task(task)
        self._show()

    def end(self) -> None:
        """Show the final counts of the backend that is being run."""
        self._show(at_once=True)

    def say(self, message: str) -> None:
        """Show a message to the user."""
        self._console.print(
            plain_line(message), markup=False, emoji=False, highlight=False, soft_wrap=True
        )

    def _show(self, at_once: bool = False) -> None:
        if self._bars is not None:
            self._bars.update(self._bar, completed=self._current.share, numbers=str(self._current))
        elif at_once or monotonic() - self._last >= SECONDS_BETWEEN_LINES:
            self._last, line = monotonic(), f"{self._current.backend}: {self._current}"
            if line != self._said:  # While a process hangs, nothing changes.
                self.say(line)
            self._said = line


class _StderrConsole(Console):
    """A console on stderr that raises BrokenPipeError when stderr is closed.

    rich itself would exit with 1, the code of a broken rule.
    """

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


@contextmanager
def progress_reporter() -> Iterator[ProgressReporter]:
    """Yield a reporter that shows progress on stderr, as live bars if that is a terminal."""
    console = _StderrConsole(stderr=True)
    if not console.is_terminal:
        yield ProgressReporter(console, None)
        return
    name = TextColumn("{task.description}", markup=False)
    numbers = TextColumn("{task.fields[numbers]}", markup=False)
    bar = [BarColumn()] if console.width >= MIN_COLUMNS_WITH_BAR else []
    with Progress(name, *bar, numbers, console=console, refresh_per_second=5) as bars:
        yield ProgressReporter(console, bars)
