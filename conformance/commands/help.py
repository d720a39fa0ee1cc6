"""``castigate --help``: the commands by what people want of them, and hints at wrong words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, ClassVar, get_args

from conformance.commands.interruption import StoppableGroup
from conformance.extras import Group, NamedCommand
from oracles.registry import BUILTINS, NAMES
from specs.errors import CastigateError
from specs.formats import dtypes_spelled

MEANT = {
    "compare": "diff",
    "convert": "explain",
    "documents": "specs",
    "formats": "specs",
    "help": "--help",
    "list": "specs",
    "show": "explain",
    "test": "run",
    "validate": "judge",
    "version": "--version",
    "why": "explain",
}
"""Words that people try, and the command that does what they want."""
FIRST = "Begin with: castigate explain fp32 int8 300"


class GroupedCommands(StoppableGroup):
    """The commands of ``castigate``, listed under headings; a subclass has them in ``listed``."""

    listed: ClassVar[Mapping[str, NamedCommand]] = {}

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands under their headings, with whole sentences."""
        width = max(map(len, self.listed))
        for group in get_args(Group):
            rows = [
                (name.ljust(width), each.summary)
                for name, each in self.listed.items()
                if each.group == group
            ]
            with formatter.section(group):
                formatter.write_dl(rows)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write below the commands which of them to run first."""
        formatter.write_paragraph()
        formatter.write_text(FIRST)

    def resolve_command(self, ctx: Any, args: Sequence[str]) -> Any:
        """Return the command that the first word names; raise CastigateError with what is meant."""
        word = args[0]
        if word in self.listed or word.startswith("-"):
            return super().resolve_command(ctx, list(args))
        shown = word[:100]
        if dtypes_spelled(word):
            raise CastigateError(
                f"`{shown}` is a dtype; write castigate explain {' '.join(args)[:100]}"
            )
        near = [MEANT[word]] if word in MEANT else get_close_matches(word, self.listed, 2)
        meant = f"did you mean castigate {' or '.join(near)}? " if near else ""
        raise CastigateError(f"No such command '{shown}'; {meant}see castigate --help")


UNEXPECTED = re.compile(r"Got unexpected extra arguments? \((\S+)")


def usage_message(
    error: Any, listed: Mapping[str, NamedCommand] = {}, named: Sequence[str] = ()
) -> str:
    """Return the message of a usage error, and how to go on: the command's help, or what is meant.

    ``error`` is a typer exception. A command of ``listed`` that lacks something is shown with its
    example. ``named`` are the words of the command, if the error does not know it.
    """
    message = str(error.format_message())
    if "\n" in message:
        return message
    message = message.rstrip(".").replace("Value error, ", "")
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else " ".join(["castigate", *named])
    example = listed[named[0]].example if "".join(named) in listed else ""
    if example and message.startswith("Missing "):
        return f"{message}; write castigate {named[0]} {example}, or see {command} --help"
    extra = UNEXPECTED.match(message.replace("(s)", "s"))
    if extra and extra[1].rstrip(")") in (*BUILTINS, *NAMES):
        return f"{message}; did you mean --backend {extra[1].rstrip(')')}? see {command} --help"
    return f"{message}; see {command} --help"
