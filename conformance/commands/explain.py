"""``castigate explain``: what a case allows for an input, and what backends answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import takewhile
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from conformance.commands.options import BackendOption, PythonOption, TimeoutOption
from conformance.exchange.explanation import (
    bitcast_bits,
    explain,
    explain_bitcast,
    explain_bitcast_lines,
    explain_lines,
)
from oracles.backend.launch_config import DEFAULT_TIMEOUT, launch_configs
from oracles.backend.loading import close, load_isolated
from specs.errors import CastigateError
from specs.operations import is_bitcast
from specs.selection import case_named


class ExplainCommand(TyperCommand):
    """Takes a value such as -inf for an input; an unknown option begins with two hyphens."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Sort arguments, among which the parser takes every unknown option for an input."""
        known = {"--help", *(name for each in self.params for name in each.opts)}
        for argument in takewhile(lambda each: each != "--", args):
            name = argument.partition("=")[0]
            if name.startswith("--") and name not in known:
                raise CastigateError(f"No such option: {name}; see castigate explain --help")
        ctx.ignore_unknown_options = True
        return super().parse_args(ctx, args)


def explain_command(
    case_id: Annotated[str, typer.Argument(metavar="CASE", help="A case id.")],
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="INPUT",
            help="Values such as 65520, -inf, nan, true or 0x477ff000, or texts; put -- before a"
            " text that begins with --. For a bitcast: all elements of one tensor, or none.",
        ),
    ] = None,
    backend: BackendOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines.")] = False,
    python: PythonOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Show what a case allows for inputs, the rule and clause, and what each backend answers."""
    case = case_named(case_id)
    configs = launch_configs(backend or (), python or (), timeout)
    with ExitStack() as stack:
        backends = [load_isolated(name, config) for name, config in configs.items()]
        for loaded in backends:
            stack.callback(close, loaded)
        if is_bitcast(case):
            bits = bitcast_bits(case, inputs or [])
            _show(explain_bitcast(case, bits, backends), explain_bitcast_lines, as_json)
        elif not inputs:
            raise CastigateError(
                f"case `{case_id}` needs inputs of {case.source}; "
                f"write castigate explain {case_id} INPUT…"
            )
        else:
            # All inputs are read before the first is shown: a wrong one leaves nothing on stdout.
            for explained in [explain(case, text, backends) for text in inputs]:
                _show(explained, partial(explain_lines, case), as_json)


def _show(
    explained: dict[str, Any], draw: Callable[[dict[str, Any]], Iterator[str]], as_json: bool
) -> None:
    for line in [json.dumps(explained, ensure_ascii=False)] if as_json else draw(explained):
        typer.echo(line)
