"""The command ``castigate``: assembles the commands, and turns errors into exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, NoReturn

import typer

from specs.errors import CastigateError
from specs.release import VERSION

USAGE_ERROR, INTERRUPTED = 2, 130

COMMANDS = {
    "specs": "specs_command",
    "explain": "explain_command",
    "backends": "backends_command",
    "selftest": "selftest_command",
    "run": "run_command",
    "merge": "merge_command",
    "diff": "diff_command",
    "findings": "findings_command",
    "report": "report_command",
    "nightly": "nightly_command",
    "export": "export_app",
    "gate": "gate_command",
    "verify": "verify_command",
    "inputs": "inputs_command",
    "judge": "judge_command",
}
"""The commands in the order of ``--help``, and what the module of each command exports."""
MODULES = {"merge": "run"}
"""The modules that are not named like their command."""


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
    """Import some commands, and assemble them."""
    app = typer.Typer(
        name="castigate",
        help="Tells, bit for bit, whether a framework converts numbers the way its documents say.",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        callback=options,
    )
    for name in names:
        module = import_module(f"conformance.commands.{MODULES.get(name, name)}")
        command = getattr(module, COMMANDS[name])
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(name=name)(command)
    return app


def commands_for(arguments: Sequence[str]) -> Iterable[str]:
    """The command that the arguments name; all commands if they name none, as for ``--help``.

    Importing all of them takes longer than most commands.
    """
    named = arguments[0] if arguments else ""
    return [named] if named in COMMANDS else COMMANDS


def main() -> None:
    """Run the command; report a user's error as one line on stderr with exit code 2."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        app = build_app(commands_for(sys.argv[1:]))
        code = app(prog_name="castigate", standalone_mode=False)
        # Flushed here because at exit Python would report a closed pipe by itself.
        sys.stdout.flush()
    except CastigateError as error:
        _exit_with(str(error), USAGE_ERROR)
    except typer.TyperException as error:
        message = error.format_message()
        hint = "" if "\n" in message else "; see castigate --help"
        _exit_with(f"{message.rstrip('.') if hint else message}{hint}", USAGE_ERROR)
    except BrokenPipeError:
        _discard_stdout()
        sys.exit(1)
    except OSError as error:
        _discard_stdout()
        _exit_with(f"cannot write the output: {error.strerror}", USAGE_ERROR)
    except KeyboardInterrupt as interrupt:
        _exit_with(str(interrupt) or "interrupted", INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)


def _exit_with(message: str, code: int) -> NoReturn:
    sys.stderr.write(f"castigate: {message}\n")
    sys.exit(code)


def _discard_stdout() -> None:
    """Redirect stdout to the null device, so that Python's flush at exit does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
