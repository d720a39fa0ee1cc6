"""How a command of the lab is run: ``python -m lab.NAME``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from specs.errors import CastigateError


def run(command: Callable[..., Any] | typer.Typer) -> None:
    """Run a command and exit; an error of the user is one line on stderr and exit code 2."""
    app = command
    if not isinstance(app, typer.Typer):
        app = typer.Typer(
            add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
        )
        app.command()(command)
    try:
        app()
    except CastigateError as error:
        typer.echo(str(error), err=True)
        raise SystemExit(2) from None


def progress() -> Progress:
    """A progress bar on stderr."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    return Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True))
