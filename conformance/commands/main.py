"""The command ``castigate``: assembles the commands, and turns errors into exit codes."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from typing import Annotated, NoReturn

import typer

from conformance.commands.backends import backends_command
from conformance.commands.diff import diff_command
from conformance.commands.explain import explain_command
from conformance.commands.export import export_app
from conformance.commands.gate import gate_command
from conformance.commands.inputs import inputs_command
from conformance.commands.judge import judge_command
from conformance.commands.nightly import nightly_command
from conformance.commands.report import report_command
from conformance.commands.run import merge_command, run_command
from conformance.commands.specs import specs_command
from conformance.commands.verify import verify_command
from specs.errors import CastigateError
from specs.release import VERSION

USAGE_ERROR, INTERRUPTED = 2, 130

app = typer.Typer(
    name="castigate",
    help="Tells, bit for bit, whether a framework converts numbers the way its documents say.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _show_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"castigate {VERSION}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Options of the command itself."""


app.command(name="specs")(specs_command)
app.command(name="explain")(explain_command)
app.command(name="backends")(backends_command)
app.command(name="run")(run_command)
app.command(name="merge")(merge_command)
app.command(name="diff")(diff_command)
app.command(name="report")(report_command)
app.command(name="nightly")(nightly_command)
app.add_typer(export_app, name="export")
app.command(name="gate")(gate_command)
app.command(name="verify")(verify_command)
app.command(name="inputs")(inputs_command)
app.command(name="judge")(judge_command)


def main() -> None:
    """Run the command; report a user's error as one line on stderr with exit code 2."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
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
