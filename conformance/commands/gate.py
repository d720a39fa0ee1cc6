"""``castigate gate``: certifies that a backend passes a policy."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from conformance.commands.options import (
    JobsOption,
    PythonOption,
    RulesOption,
    TimeoutOption,
    VerboseOption,
    parse_local_folder,
)
from conformance.running.gate import Gate, load_baseline
from conformance.running.progress import progress_reporter
from oracles.backend.backend_supervisor import DEFAULT_TIMEOUT
from oracles.registry import file_of
from reports.findings.read_findings import read_findings
from reports.gate.certificate import FILE, RUN
from reports.gate.left_out import policy_words
from reports.gate.outputs import answered_line, defects
from reports.gate.policy import policy_named
from reports.gate.signing import load_private_key
from reports.outputs.annotations import annotation, is_on_github
from reports.outputs.sarif import write_sarif
from reports.outputs.totals import ROWS, BackendScreen, last_screen
from reports.run_store.open_run import open_run
from reports.run_store.record import EPOCH
from reports.run_store.storage import file_to_write
from specs.errors import CastigateError
from specs.selection import house_rules_for


def gate_command(
    backend: Annotated[
        list[str], typer.Option("--backend", metavar="NAME", help="The backend to test.")
    ],
    policy: Annotated[
        str, typer.Option(metavar="NAME|FILE", help="A built-in policy, or the file of your own.")
    ],
    out: Annotated[
        Path,
        typer.Option(metavar="DIR", parser=parse_local_folder, help="A new folder for all files."),
    ],
    rules: RulesOption = None,
    baseline: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="The earlier run, if the policy compares with one."),
    ] = None,
    sign: Annotated[
        Path | None,
        typer.Option(metavar="KEYFILE", help="Sign with this Ed25519 private key (PEM)."),
    ] = None,
    sarif: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Also write what fails as SARIF, for code scanning."),
    ] = None,
    jobs: JobsOption = None,
    python: PythonOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
    verbose: VerboseOption = False,
) -> None:
    """Run a backend, judge it by a policy, and certify the result.

    The exit code is 0 if the policy holds, 1 if not, 3 if the backend answered no case.
    """
    if (out / FILE).exists():
        raise CastigateError(f"{out} holds a certificate already; give another --out")
    if next(out.glob("*"), None) is not None:
        raise CastigateError(f"{out} is not empty; give a new folder as --out")
    if len(backend) > 1:
        raise CastigateError(f"a gate tests one backend; run it {len(backend)} times")
    for each in rules or ():
        house_rules_for(each)  # so that the policy can name a document with them
    gate = Gate(backend[0], policy_named(policy), out, tuple(python or ()), timeout)
    if EPOCH in os.environ and gate.policy.entry.accepted:
        raise CastigateError(
            f"policy {gate.policy.name} accepts divergences until a day, and {EPOCH} replaces "
            "the clock; unset it"
        )
    if sarif is not None:
        file_to_write(sarif)  # Raises an error before anything is written.
    earlier = load_baseline(gate.policy, baseline)
    key = load_private_key(sign) if sign is not None else None
    try:
        with progress_reporter() as progress:
            result, certificate = gate.run(earlier, key, jobs or os.cpu_count() or 1, progress)
    except KeyboardInterrupt as interrupt:
        raise type(interrupt)("; nothing is certified") from None
    if certificate is None:
        typer.echo(
            "castigate: the backend answered no case, so there is no certificate; "
            f"{out / RUN} has the reasons",
            err=True,
        )
        raise typer.Exit(3)
    if sarif is not None:
        failing = {case for failure in result.failures for case in failure.cases}
        write_sarif(open_run(str(out / RUN)), failing, sarif)
    verdict = "pass" if result.passes else "FAIL"
    heading = f"{verdict}: {gate.backend}, policy {policy_words(gate.policy)}"
    found = read_findings(open_run(str(out / RUN))).get(gate.backend, ())
    wrong = [*defects(found, result.failures)]
    lines = [[f"  {first}", *(f"    {line}" for line in rest)] for first, *rest in wrong]
    screen = BackendScreen(heading, lines, noun="defect")
    for line in last_screen([screen], None if verbose else ROWS):
        typer.echo(line)
    if is_on_github():
        for defect in wrong:
            title = f"castigate gate: {gate.backend}"
            typer.echo(annotation("error", title, ". ".join(defect), file_of(gate.backend)))
    typer.echo(answered_line(result.answered))
    typer.echo(f"asked: {', '.join(certificate['asked']['documents'])}")
    for line in certificate["left-out"]:
        typer.echo(line)
    for entry in result.unused:
        typer.echo(f"not needed: nothing breaks {entry.rule or entry.verdict} in {entry.cases[0]}")
    if earlier is not None:
        typer.echo(f"baseline: {earlier.record.backend_words}")
    typer.echo(f"{out / 'summary.md'}, {out / 'report'}/index.html, {out / FILE}")
    raise typer.Exit(0 if result.passes else 1)
