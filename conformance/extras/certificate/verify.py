"""``castigate verify``: checks a certificate, and asks some of its cases again."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from secrets import randbelow
from typing import Annotated, Any

import typer

from conformance.commands.options import JobsOption, PythonOption, TimeoutOption
from conformance.extras.certificate.replay import Replay, fresh_count
from conformance.running.gate import SEEDS
from conformance.running.program_identity import identity_differences, program_identity
from conformance.running.progress import progress_reporter
from conformance.running.run import asked_names
from oracles.backend.backend_supervisor import DEFAULT_TIMEOUT
from oracles.registry import is_program
from reports.findings.finding_text import counted
from reports.gate.canonical_json import digest_of, read_canonical
from reports.gate.certificate import FILE, Evidence, file_digests, only_backend
from reports.gate.certificate_check import (
    certificate_bytes,
    check_seals,
    differences,
    load_evidence,
)
from reports.gate.left_out import policy_words
from reports.gate.outputs import answered_line
from reports.gate.policy import CLAIMED, policy_named
from reports.gate.signing import load_public_key
from reports.run_store.open_run import open_run
from reports.run_store.store import LOG, RunStore
from specs.errors import CastigateError
from specs.house_rules import HouseRules
from specs.plain_text import plain_line
from specs.selection import house_rules_for


def verify_command(
    certificate: Annotated[
        Path,
        typer.Argument(metavar="CERTIFICATE", help="The file, or the folder of its gate."),
    ],
    key: Annotated[
        Path | None,
        typer.Option(metavar="PUBLIC", help="The Ed25519 public key of the required signer (PEM)."),
    ] = None,
    policy: Annotated[
        str | None, typer.Option(metavar="NAME|FILE", help="The required policy.")
    ] = None,
    rules: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME|FILE", help="The required house rules (repeatable)."),
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(metavar="RUN", help="The required run to compare with.")
    ] = None,
    replay: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            help="Ask N answered cases again, half of them, at least one, with fresh inputs.",
        ),
    ] = 0,
    backend: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The certified backend, if --replay starts a command."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Seed of the choice and of the fresh inputs (default: drawn)."),
    ] = None,
    jobs: JobsOption = None,
    python: PythonOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Check a certificate: its bytes, its seals and its run, and with --replay some answers.

    Exit code 0 if it holds and its result is pass, otherwise 1.
    """
    if certificate.is_dir():
        certificate = certificate / FILE
    data = certificate_bytes(certificate)
    required_key = load_public_key(key) if key is not None else None
    required_rules = [house_rules_for(each) for each in rules or ()]
    required_policy = policy_named(policy) if policy is not None else None
    if python and not replay:
        raise CastigateError("--python needs --replay N; add it, or leave --python out")
    if seed is None:
        seed = randbelow(SEEDS)
    try:
        content = read_canonical(data, str(certificate))
        signer = check_seals(content, str(certificate), required_key)
        evidence = load_evidence(content, certificate.parent, asked_names, str(certificate))
        problems = differences(content, evidence)
        if required_policy is not None and required_policy.digest != evidence.policy.digest:
            problems.append(f"it is not by policy {required_policy.name}: {evidence.policy.digest}")
        problems += _without_rules(evidence, required_rules)
        if baseline is not None:
            problems += _other_baseline(evidence, baseline)
    except CastigateError as error:
        problems = [str(error)]
    if not problems and replay:
        check_command(only_backend(evidence.store), backend)
        problems += _other_identity(evidence, content["program"], tuple(python or ()), timeout)
    if not problems and replay:
        with progress_reporter() as progress:
            again = Replay(
                replay, seed, jobs or os.cpu_count() or 1, tuple(python or ()), timeout, progress
            )
            problems += again.differences(evidence.store)
    if problems:
        for line in problems:
            typer.echo(f"castigate: {plain_line(line)}", err=True)
        typer.echo(f"{certificate} does not hold")
        raise typer.Exit(1)
    for line in _summary(content, evidence, signer, replay, seed):
        typer.echo(line)
    raise typer.Exit(0 if content["result"] == "pass" else 1)


def _without_rules(evidence: Evidence, required: Sequence[HouseRules]) -> Iterator[str]:
    """Yield a line for each required set of house rules that the run did not use.

    Names suffice here: ``load_evidence`` fails for a run whose rules of that name have another
    text.
    """
    for each in required:
        if each.name not in evidence.store.record.rules:
            yield f"it is not by the house rules {each.name} of {each.source.path}"


def _other_baseline(evidence: Evidence, required: str) -> Iterator[str]:
    if evidence.baseline is None:
        yield f"policy {evidence.policy.name} compares with no run; leave --baseline out"
    elif _without_log(evidence.baseline) != _without_log(open_run(required)):
        yield f"it was compared with another run than {required}"


def _without_log(store: RunStore) -> dict[str, str]:
    """Return the digests of a run's files without its log, which a gate does not copy."""
    return {name: digest for name, digest in file_digests(store).items() if name != LOG}


def check_command(certified: str, repeated: str | None) -> None:
    """Raise CastigateError if --backend does not fit the certificate's backend.

    ``repeated`` is the value of --backend, or None. It may be left out unless the backend is a
    command, which a certificate alone must not start. It must not name another backend.
    """
    if repeated is None and is_program(certified):
        raise CastigateError(
            f"--replay would run `{certified}`, which the certificate names; "
            f"if you trust it, add --backend {shlex.quote(certified)}"
        )
    if repeated not in (None, certified):
        raise CastigateError(f"the certificate is about backend `{certified}`, not `{repeated}`")


def _other_identity(
    evidence: Evidence, program: dict[str, Any] | None, pythons: tuple[str, ...], seconds: float
) -> Iterator[str]:
    """Yield a line for each difference of the backend from the certified ``program``.

    If ``program`` is None, the only line says that it is missing. If the policy asks for claimed
    documents, other claims are a difference too.
    """
    record = evidence.store.record
    now = program_identity(record.backends[0].name, pythons, seconds)
    if program is None:
        yield "the certificate does not say which program it is about; run the gate again"
        return
    yield from identity_differences(program, now)
    claims = tuple(now["hello"]["claims"])
    if evidence.policy.entry.documents == CLAIMED and claims != record.selection.documents:
        before = ", ".join(record.selection.documents)
        yield f"the backend claims {', '.join(claims)}; it was asked {before}"


def _summary(
    content: dict[str, Any], evidence: Evidence, signer: str | None, replay: int, seed: int
) -> Iterator[str]:
    """Yield lines that describe a certificate that holds, and its replay if there was one."""
    answered = content["answered"]
    backend = evidence.store.record.backends[0]
    policy = evidence.policy
    yield f"answered  {answered_line(answered)}"
    # What a backend calls itself must not look like a line of ours.
    yield "backend   " + plain_line(f"{backend.name} {backend.version}")
    if program := content["program"]:
        hello = program["hello"]
        count = len(program["files"])
        digests = f"{count} file digest{'' if count == 1 else 's'}"
        yield "program   " + plain_line(f"{hello['name']} {hello['version']}, {digests}")
    yield f"asked     {', '.join(evidence.store.record.selection.documents)}"
    yield f"policy    {policy_words(policy)} {policy.digest}"
    for name, text in evidence.store.record.rules.items():
        yield f"rules     {name} {sha256(text.encode()).hexdigest()}"
    if evidence.baseline is not None:
        digest = digest_of(file_digests(evidence.baseline))
        yield f"baseline  {evidence.baseline.record.backend_words} {digest}"
    if replay:
        count = min(replay, answered["answered"])
        fresh = f"{fresh_count(replay, answered['answered']):,} of them fresh inputs by seed {seed}"
        yield f"replayed  {counted(count, 'answered case')}, {fresh}"
    yield f"signed    {f'by {signer}' if signer else 'by nobody: anyone could have written it'}"
    today = datetime.now(UTC).date().isoformat()
    yield from content.get("left-out", ())
    expiries = {each["expires"] for each in content["divergences"] if "expires" in each}
    expired = sorted(day for day in expiries if day < today)
    if expired and content["result"] == "pass":
        yield f"note      a divergence was accepted until {expired[0]} only"
    yield f"result    {content['result']}; the certificate holds"
