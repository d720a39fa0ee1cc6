"""The command ``castigate``: assembles the commands, and turns errors into exit codes."""

from __future__ import annotations

import errno
import sys
import traceback
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pkgutil import resolve_name
from typing import Annotated

import typer

from conformance.commands.interruption import (
    CarriedInterrupt,
    OutputClosedError,
    StoppableGroup,
    open_closed_streams,
    plain_stdout,
    signals_raise,
    stderr_is_open,
)
from conformance.extras import ADDONS
from oracles.backend.resource_limits import collect_garbage_rarely
from specs.errors import IS_A_BUG, CastigateError
from specs.plain_text import plain_text
from specs.release import VERSION

FAILED = 2
OUTPUT_CLOSED = 141
"""The exit code that a shell reports of a program that SIGPIPE ended."""
NO_MEMORY = "out of memory; free some, raise the limit, or use fewer --jobs"

COMMANDS = {
    "specs": "conformance.commands.specs:specs_command",
    "rules": "conformance.commands.rules:rules_command",
    "explain": "conformance.commands.explain:explain_command",
    "chains": "conformance.commands.chains:chains_command",
    "backends": "conformance.commands.backends:backends_command",
    "selftest": "conformance.commands.selftest:selftest_command",
    "run": "conformance.commands.run:run_command",
    "merge": "conformance.commands.run:merge_command",
    "diff": "conformance.commands.diff:diff_command",
    "findings": "conformance.commands.findings:findings_command",
    "report": "conformance.commands.report:report_command",
    "nightly": "conformance.commands.nightly:nightly_command",
    "gate": "conformance.commands.gate:gate_command",
    "inputs": "conformance.commands.inputs:inputs_command",
    "judge": "conformance.commands.judge:judge_command",
} | {command: function for each in ADDONS for command, function in each.commands.items()}
"""The functions of all commands, in the order of ``--help``."""
CLASSES = {"explain": "conformance.commands.explain:ExplainCommand"}
"""The commands that read their arguments in a way of their own."""


def _show_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"castigate {VERSION}")
        raise typer.Exit


def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Options of the command itself."""


def build_app(names: Iterable[str]) -> typer.Typer:
    """Import the commands of some names, and return the application that has them."""
    app = typer.Typer(
        name="castigate",
        help="Tells, bit for bit, whether a framework converts numbers the way its documents say.",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        callback=options,
        cls=StoppableGroup,
    )
    for name in names:
        command = resolve_name(COMMANDS[name])
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            cls = resolve_name(CLASSES[name]) if name in CLASSES else None
            app.command(name=name, cls=cls)(command)
    return app


def commands_for(arguments: Sequence[str]) -> Iterable[str]:
    """Return the name of the command to import; all names if the arguments begin with none.

    Importing all of them takes longer than most commands.
    """
    named = arguments[0] if arguments else ""
    return [named] if named in COMMANDS else COMMANDS


def main() -> None:
    """Run the command and exit; a user's error is one line on stderr and exit code 2."""
    open_closed_streams()
    collect_garbage_rarely()
    code = _run()
    sys.exit(code if stderr_is_open() else OUTPUT_CLOSED)


def _run() -> int:
    """Run the command; return the exit code."""
    try:
        with signals_raise(), plain_stdout():
            app = build_app(commands_for(sys.argv[1:]))
            code = app(prog_name="castigate", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except CastigateError as error:
        return _complain(str(error), FAILED)
    except typer.TyperException as error:
        message = error.format_message()
        hint = "" if "\n" in message else "; see castigate --help"
        return _complain(f"{message.rstrip('.') if hint else message}{hint}", FAILED)
    except OutputClosedError:
        return OUTPUT_CLOSED
    except CarriedInterrupt as stop:
        return _complain(str(stop), stop.exit_code)
    except KeyboardInterrupt as interrupt:
        stopped = CarriedInterrupt(interrupt)
        return _complain(str(stopped), stopped.exit_code)
    except MemoryError:
        return _complain(NO_MEMORY, FAILED)
    except OSError as error:
        is_memory = error.errno == errno.ENOMEM
        return _complain(
            NO_MEMORY if is_memory else f"cannot write the output: {error.strerror}", FAILED
        )
    except Exception:
        # Python would exit with 1, which means that a rule is broken.
        traceback.print_exc()
        return _complain(IS_A_BUG, FAILED)


def _complain(message: str, code: int) -> int:
    """Print a message on stderr; return the exit code."""
    with suppress(OSError):
        sys.stderr.write(f"castigate: {plain_text(message)}\n")
    return code


if __name__ == "__main__":
    main()
