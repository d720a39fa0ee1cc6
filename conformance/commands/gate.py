"""The command ``castigate gate``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from conformance.commands.options import JobsOption, PythonOption, TimeoutOption
from conformance.running.gate import Gate, baseline_of
from conformance.running.progress import progress_reporter
from oracles.isolation.launch_config import SECONDS
from reports.gate.certificate import FILE
from reports.gate.outputs import told_of
from reports.gate.policy import policy_named
from reports.gate.signing import private_key
from specs.errors import CastigateError

SHOWN = 20
"""Reasons that are printed; all of them are in the certificate."""


def gate_command(
    backend: Annotated[str, typer.Option("--backend", metavar="NAME", help="Who is judged.")],
    policy: Annotated[
        str, typer.Option(metavar="NAME|FILE", help="A policy that ships, or one of your own.")
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="A new folder, to be handed over.")],
    baseline: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="The earlier run, for a policy that is about one."),
    ] = None,
    sign: Annotated[
        Path | None,
        typer.Option(metavar="KEYFILE", help="Sign by this Ed25519 private key (PEM)."),
    ] = None,
    jobs: JobsOption = None,
    python: PythonOption = None,
    timeout: TimeoutOption = SECONDS,
) -> None:
    """Run a backend, judge it by a policy, and certify what is found."""
    if (out / FILE).exists():
        raise CastigateError(f"{out} holds a certificate; give another --out")
    gate = Gate(backend, policy_named(policy), out, tuple(python or ()), timeout)
    before = baseline_of(gate.policy, baseline)
    key = private_key(sign) if sign is not None else None
    try:
        with progress_reporter() as shown:
            found, is_certified = gate.held(before, key, jobs or os.cpu_count() or 1, shown)
    except KeyboardInterrupt:
        typer.echo("castigate: interrupted; nothing is certified", err=True)
        raise typer.Exit(130) from None
    for failure in found.failures[:SHOWN]:
        typer.echo(told_of(failure))
    if len(found.failures) > SHOWN:
        typer.echo(f"{len(found.failures) - SHOWN:,} more reasons")
    if not is_certified:
        typer.echo("castigate: nothing ran; there is no certificate of that", err=True)
        raise typer.Exit(3)
    result = "pass" if found.passes else "FAIL"
    typer.echo(f"{result}: {backend}, policy {gate.policy.name}: {out / FILE}")
    raise typer.Exit(0 if found.passes else 1)
