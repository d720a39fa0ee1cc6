"""The command ``castigate verify``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from conformance.commands.options import JobsOption, PythonOption, TimeoutOption
from conformance.running.gate import claims_of
from conformance.running.progress import progress_reporter
from conformance.running.replay import replayed
from conformance.running.run import selected_cases
from oracles.isolation.launch_config import SECONDS
from reports.gate.canonical_json import read_canonical
from reports.gate.certificate import Evidence
from reports.gate.certificate_check import check_seals, differences, evidence_of
from reports.gate.policy import CLAIMED, policy_named
from reports.gate.signing import public_key
from reports.run_store.record import Selection
from specs.errors import CastigateError


def verify_command(
    certificate: Annotated[
        Path, typer.Argument(metavar="CERTIFICATE", help="The file, in the folder of its gate.")
    ],
    key: Annotated[
        Path | None,
        typer.Option(metavar="PUBLIC", help="Who must have signed it: an Ed25519 key (PEM)."),
    ] = None,
    policy: Annotated[
        str | None, typer.Option(metavar="NAME|FILE", help="The policy that it must be by.")
    ] = None,
    replay: Annotated[
        int, typer.Option(min=0, metavar="N", help="Ask N random cases of the backend again.")
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random choice.")] = 0,
    jobs: JobsOption = None,
    python: PythonOption = None,
    timeout: TimeoutOption = SECONDS,
) -> None:
    """Check a certificate again: its bytes, its seals, its run, and some answers."""
    data = _bytes_of(certificate)
    due = public_key(key) if key is not None else None
    wanted = policy_named(policy) if policy is not None else None
    if python and not replay:
        raise CastigateError("--python is for --replay N")
    try:
        content = read_canonical(data, str(certificate))
        signer = check_seals(content, str(certificate), due)
        evidence = evidence_of(content, certificate.parent, _ids, str(certificate))
        told = differences(content, evidence)
        if wanted is not None and wanted.digest != evidence.policy.digest:
            told.append(f"it is not by policy {wanted.name}: {evidence.policy.digest}")
    except CastigateError as error:
        told = [str(error)]
    if not told and replay:
        if evidence.policy.entry.documents == CLAIMED:
            told += _claims(evidence, tuple(python or ()), timeout)
        with progress_reporter() as shown:
            told += list(
                replayed(
                    evidence.store,
                    replay,
                    seed,
                    jobs or os.cpu_count() or 1,
                    tuple(python or ()),
                    timeout,
                    shown,
                )
            )
    if told:
        for line in told:
            typer.echo(f"castigate: {line}", err=True)
        typer.echo(f"{certificate} does not hold")
        raise typer.Exit(1)
    for line in _words(content, evidence, signer, replay):
        typer.echo(line)
    raise typer.Exit(0 if content["result"] == "pass" else 1)


def _claims(evidence: Evidence, pythons: tuple[str, ...], seconds: float) -> Iterator[str]:
    """Whether the backend still claims just what was asked of it, where that was left to it."""
    record = evidence.store.record
    now = claims_of(record.backends[0].name, pythons, seconds)
    if now != record.selection.documents:
        before = ", ".join(record.selection.documents)
        yield f"the backend claims {', '.join(now)}; it was asked {before}"


def _words(
    content: dict[str, Any], evidence: Evidence, signer: str | None, replay: int
) -> Iterator[str]:
    """What holds, and what it does not say."""
    backend = evidence.store.record.backends[0]
    policy = evidence.policy
    yield f"backend   {backend.name} {backend.version}"
    yield f"policy    {policy.name} {policy.digest}"
    yield f"cases     {content['cases']['count']:,}, {replay:,} asked again"
    yield f"signed    {f'by {signer}' if signer else 'by nobody: whoever had it could remake it'}"
    today = datetime.now(UTC).date().isoformat()
    over = {each["expires"] for each in content["divergences"] if "expires" in each}
    late = sorted(day for day in over if day < today)
    if late and content["result"] == "pass":
        yield f"note      what was accepted until {late[0]} is so no more"
    yield f"result    {content['result']}; the certificate holds"


def _bytes_of(certificate: Path) -> bytes:
    try:
        return certificate.read_bytes()
    except OSError as error:
        raise CastigateError(f"{certificate} cannot be read: {error.strerror}") from None


def _ids(selection: Selection) -> list[str]:
    return [case.id for case in selected_cases(selection)]
