"""``castigate export``: what extras write for others to run, each by its own name."""

from __future__ import annotations

from pkgutil import resolve_name

import typer

from conformance.extras import EXPORTS

export_app = typer.Typer(
    no_args_is_help=True, help="Write cases, vectors and findings for others to run."
)


@export_app.callback()
def export_options() -> None:
    """Write cases, vectors and findings for others to run."""


for name, function in EXPORTS.items():
    export_app.command(name=name)(resolve_name(function))
