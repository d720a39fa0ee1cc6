"""The command ``castigate``: assembles the commands, and turns errors into exit codes."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Collection, Sequence
from contextlib import suppress
from pkgutil import resolve_name
from typing import Annotated

import typer

from conformance.commands.help import GroupedCommands, usage_message
from conformance.commands.interruption import (
    CarriedInterrupt,
    OutputClosedError,
    open_closed_streams,
    plain_stdout,
    signals_raise,
    stderr_is_open,
)
from conformance.extras import ADDONS, NamedCommand
from oracles.backend.resource_limits import collect_garbage_rarely
from specs import VERSION
from specs.errors import IS_A_BUG, CastigateError
from specs.plain_text import plain_line, plain_text

FAILED = 2
OUTPUT_CLOSED = 141
"""The exit code that a shell reports of a program that SIGPIPE ended."""
NAME_SHOWN = 80
"""The most characters of a file's name in an error."""
NO_MEMORY = "out of memory; free some, raise the limit, or use fewer --jobs"

COMMANDS = {
    "explain": NamedCommand(
        "conformance.commands.explain:explain_command",
        "Say what documents allow for a value, and what frameworks answer.",
        "Ask",
        "fp32 int8 300",
    ),
    "run": NamedCommand(
        "conformance.commands.run:run_command",
        "Run cases against backends, and store the verdicts.",
        "Judge",
    ),
    "merge": NamedCommand(
        "conformance.commands.run:merge_command",
        "Join the shards of a run into one run.",
        "Judge",
        "SHARD SHARD --out RUN",
    ),
    "gate": NamedCommand(
        "conformance.commands.gate:gate_command",
        "Run a backend, judge it by a policy, and certify the result.",
        "Judge",
        "--backend ort --policy pull-request --out GATE",
    ),
    "judge": NamedCommand(
        "conformance.commands.judge:judge_command",
        "Judge recorded answers, one JSON object per line.",
        "Judge",
    ),
    "backends": NamedCommand(
        "conformance.commands.backends:backends_command",
        "List backends, or show what some support.",
        "Judge",
    ),
    "nightly": NamedCommand(
        "conformance.commands.nightly:nightly_command",
        "Run installed backends, compare with ledgers, and report.",
        "Releases",
        "--out NIGHT",
    ),
    "diff": NamedCommand(
        "conformance.commands.diff:diff_command",
        "Show where two runs, or two backends of one run, differ.",
        "Releases",
        "BEFORE AFTER",
    ),
    "findings": NamedCommand(
        "conformance.commands.findings:findings_command",
        "List the root causes behind the failures of a run.",
        "Read",
        "RUN",
    ),
    "report": NamedCommand(
        "conformance.commands.report:report_command",
        "Write the HTML report of a run, with the changes since others.",
        "Read",
        "RUN --out REPORT",
    ),
    "specs": NamedCommand(
        "conformance.commands.specs:specs_command",
        "Show documents, their versions, cases and rules, or prove them.",
        "Extend",
    ),
    "inputs": NamedCommand(
        "conformance.commands.inputs:inputs_command",
        "Print the inputs of the quick tier.",
        "Extend",
        "onnx-cast:25/float32/int8",
    ),
    "export": NamedCommand(
        "conformance.commands.export:export_app",
        "Write cases, vectors and findings for others to run.",
        "Extend",
    ),
} | {name: command for each in ADDONS for name, command in each.commands.items()}
"""All commands, in the order of ``--help``."""


class Commands(GroupedCommands):
    """The commands of ``castigate``."""

    listed = COMMANDS


COMPLETED = ("COMP_WORDS", "_TYPER_COMPLETE_ARGS")
"""The environment variables in which shells put the line that they complete."""
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


def build_app(names: Collection[str]) -> typer.Typer:
    """Assemble all commands, and import only those in ``names``.

    The others have a name and a summary: importing all takes longer than most commands.
    """
    app = typer.Typer(
        name="castigate",
        help="Tells, bit for bit, whether a framework converts numbers the way its documents say.",
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        callback=options,
        cls=Commands,
    )
    for name, listed in COMMANDS.items():
        command = resolve_name(listed.function) if name in names else _not_imported
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name, short_help=listed.summary)
        else:
            cls = resolve_name(CLASSES[name]) if name in CLASSES and name in names else None
            app.command(name=name, cls=cls, short_help=listed.summary)(command)
    return app


def _not_imported() -> None:
    """Do nothing: ``--help`` lists a command by this function without importing its module."""


def named_commands(arguments: Sequence[str]) -> Collection[str]:
    """Return the commands that ``arguments`` or the line that a shell completes begin with.

    There are none if these begin with an option, such as --help, or an unknown word.
    """
    line = next((os.environ[name] for name in COMPLETED if name in os.environ), "").split()
    named = [*line[1:2], *arguments[:1]]
    return [name for name in named if name in COMMANDS]


def main() -> None:
    """Run the command in ``sys.argv``, and exit with one of the codes that docs/verdicts.md lists.

    A user's error is one line on stderr and code 2.
    """
    open_closed_streams()
    collect_garbage_rarely()
    code = _run()
    sys.exit(code if stderr_is_open() else OUTPUT_CLOSED)


def _run() -> int:
    """Run the command; return the exit code, after a line on stderr about an error."""
    try:
        with signals_raise(), plain_stdout():
            app = build_app(named_commands(sys.argv[1:]))
            code = app(prog_name="castigate", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except CastigateError as error:
        return _complain(str(error), FAILED)
    except typer.TyperException as error:
        return _complain(usage_message(error, COMMANDS, sys.argv[1:2]), FAILED)
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
        if error.errno == errno.ENOMEM:
            return _complain(NO_MEMORY, FAILED)
        name = error.filename
        what = "write the output" if name is None else f"use {plain_line(str(name), NAME_SHOWN)}"
        return _complain(f"cannot {what}: {error.strerror}", FAILED)
    except Exception:
        # Python would exit with 1, which means that a rule is broken.
        traceback.print_exc()
        return _complain(IS_A_BUG, FAILED)


def _complain(message: str, code: int) -> int:
    with suppress(OSError):
        sys.stderr.write(f"castigate: {plain_text(message)}\n")
    return code


if __name__ == "__main__":
    main()
