"""A bar on stderr that counts inputs, if stderr is a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn


@contextmanager
def input_progress() -> Iterator[Callable[[int], Callable[[int], None]]]:
    """Show a progress bar on a terminal, and yield a function that begins it.

    That function takes the total of inputs, and returns another, which takes the number of inputs
    done since its last call.
    """
    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(show_speed=True)
    console = Console(stderr=True)
    shown = (*columns, TimeRemainingColumn())
    hidden = not console.is_terminal
    with Progress(*shown, console=console, transient=True, disable=hidden) as bar:

        def begin(total: int) -> Callable[[int], None]:
            task = bar.add_task("inputs", total=total)
            return lambda more: bar.advance(task, more)

        yield begin
