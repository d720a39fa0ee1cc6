"""``castigate run`` and ``castigate merge``: run cases against backends, and join shards."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, NamedTuple, NoReturn

import typer

from conformance.commands.options import (
    BackendOption,
    ChainsOption,
    DocumentOption,
    JobsOption,
    MaxExamplesOption,
    PythonOption,
    RulesOption,
    SeedOption,
    SourceOption,
    TargetOption,
    TierChoice,
    TierOption,
    TimeoutOption,
    VerboseOption,
    parse_folder,
)
from conformance.running.progress import progress_reporter
from conformance.running.run import RunRequest, finish_run, request_of, run
from oracles.backend.backend_supervisor import DEFAULT_TIMEOUT
from oracles.registry import available_backends
from reports.findings.finding import Findings
from reports.findings.left_open import left_open
from reports.findings.read_findings import read_findings
from reports.findings.roads import alike_roads
from reports.ledger import has_ledger
from reports.outputs.totals import ROWS, Totals, findings_screens, last_screen, wrapped
from reports.run_store.record import RunRecord, Selection, Shard, current_time
from reports.run_store.storage import folder_at
from reports.run_store.store import RECORD, RunStore, read_record
from specs.errors import CastigateError
from specs.selection import with_house_rules

DEFAULTS = (TierChoice.quick, 0, 1000)
"""The defaults of --tier, --seed and --max-examples."""


def run_command(
    backend: BackendOption = None,
    document: DocumentOption = None,
    rules: RulesOption = None,
    source: SourceOption = None,
    target: TargetOption = None,
    tier: TierOption = TierChoice.quick,
    seed: SeedOption = 0,
    max_examples: MaxExamplesOption = 1000,
    jobs: JobsOption = None,
    shard: Annotated[
        str | None,
        typer.Option(metavar="I/N", help="Do every N-th task only; see castigate merge."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the unfinished run in --out.")
    ] = False,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="RUN",
            parser=parse_folder,
            help="The run's folder or URL (default: runs/ and the time).",
        ),
    ] = None,
    python: PythonOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
    chains: ChainsOption = False,
    executor: Annotated[
        str | None,
        typer.Option(
            metavar="dask://HOST:PORT", help="Do the tasks on a Dask cluster; see docs/clusters.md."
        ),
    ] = None,
    verbose: VerboseOption = False,
) -> None:
    """Run cases against backends, each in its own processes, and store the verdicts."""
    if resume and out is None:
        raise CastigateError("--resume needs --out, the folder of the run to continue")
    # Read here too, so that no backend is loaded in vain.
    begun = read_record(folder_at(out or "")) if resume else None
    if begun is not None and backend is None:
        if document or rules or source or target or shard or (tier, seed, max_examples) != DEFAULTS:
            raise CastigateError(
                "--resume without --backend takes all options from the run; leave the others "
                "out, or repeat all of them with --backend"
            )
        request = request_of(begun)
    elif backend is None:
        raise CastigateError(f"no backend is named; add --backend NAME; {available_backends()}")
    else:
        request = RunRequest(
            tuple(dict.fromkeys(backend)),
            Selection(
                documents=with_house_rules(document or (), rules or ()),
                source=tuple(source or ()),
                target=tuple(target or ()),
            ),
            tier.value,
            seed,
            max_examples,
            _parse_shard(shard),
            has_chains=chains,
        )
    if executor is not None and jobs is not None:
        raise CastigateError("--jobs is for this machine; leave it out with --executor")
    request = replace(request, pythons=tuple(python or ()), seconds=timeout, cluster=executor)
    folder = out if out is not None else f"runs/{current_time():%Y%m%d-%H%M%S}"
    try:
        with progress_reporter() as progress:
            jobs = jobs or os.cpu_count() or 1
            store = run(request, folder, jobs, resume, sys.argv, progress)
            if store.record.complete:
                typer.echo(f"{folder} is complete; there is nothing to continue", err=True)
                raise typer.Exit(store.record.exit_code or 0)
            progress.begin_phase("writing the tables and finding causes")
            finished = _finished(store)
            progress.begin_phase("")
        _print_and_exit(store.record, folder, finished, verbose)
    except KeyboardInterrupt as interrupt:
        raise type(interrupt)(how_to_resume(folder)) from None


def merge_command(
    shards: Annotated[
        list[str], typer.Argument(metavar="RUN", help="The folders or URLs of a run's shards.")
    ],
    out: Annotated[
        str,
        typer.Option(metavar="RUN", parser=parse_folder, help="The whole run's folder or URL."),
    ],
    verbose: VerboseOption = False,
) -> None:
    """Join the shards of a run into one run."""
    from reports.run_store.merge import merge_shards

    store = merge_shards(shards, out, sys.argv)
    _print_and_exit(store.record, out, _finished(store), verbose)


def how_to_resume(folder: str) -> str:
    """Return how to continue an interrupted run, in words; empty if it has stored nothing yet."""
    if RECORD not in folder_at(folder).names():
        return ""
    return f"; castigate run --resume --out {shlex.quote(folder)} continues it"


def _parse_shard(text: str | None) -> Shard | None:
    if text is None:
        return None
    match = re.fullmatch(r"([1-9][0-9]{0,5})/([1-9][0-9]{0,5})", text)
    if match is None or int(match[1]) > int(match[2]):
        raise CastigateError(f"--shard `{text[:20]}` is not a shard; write I/N, such as 1/4 to 4/4")
    return Shard(index=int(match[1]), count=int(match[2]))


class Finished(NamedTuple):
    """The counts of a finished run, its findings, and what else its screen says.

    That is a line per backend that has a ledger, and one per backend with open inputs.
    """

    totals: Totals
    findings: Findings
    since_ledgers: Sequence[str] = ()
    left_open: Mapping[str, str] = {}


def _finished(store: RunStore) -> Finished:
    if store.record.shard is not None:
        return Finished(finish_run(store), {})
    ledgers_apply = not store.record.selects_only_own_documents
    if not (ledgers_apply and any(has_ledger(each.name) for each in store.record.backends)):
        return Finished(finish_run(store), read_findings(store), (), left_open(store))
    from reports.changes.words import heading  # Few backends have ledgers.
    from reports.ledger.news import RunLedgers

    ledgers = RunLedgers(store.record)
    totals = finish_run(store, ledgers=ledgers)
    findings = read_findings(store)
    return Finished(
        totals,
        findings,
        [heading(each) for each in ledgers.changes(findings) if has_ledger(each.backend)],
        left_open(store),
    )


def _print_and_exit(record: RunRecord, folder: str, finished: Finished, verbose: bool) -> NoReturn:
    """Print the findings, where the run is and how to see more; exit with the run's code.

    Of a shard, print only where it is.
    """
    totals, findings, since_ledgers, opened = finished
    versions = record.versions
    if record.shard is None:
        found = {name: findings.get(name, ()) for name in versions}
        lines = last_screen([*findings_screens(found, versions)], None if verbose else ROWS)
        print_screen(lines, totals, verbose)
    for line in since_ledgers:
        typer.echo(line)
    for backends in alike_roads(opened):
        told = opened[backends[0]]
        for line in wrapped(f"{', '.join(backends)}: {told}" if len(versions) > 1 else told):
            typer.echo(line)
    typer.echo(f"{folder}: {totals.inputs:,} inputs")
    if record.shard is None:
        quoted = shlex.quote(folder)
        typer.echo(f"all findings: castigate findings {quoted}")
        typer.echo(f"a report: castigate report {quoted} --out DIR")
    raise typer.Exit(totals.exit_code)


def print_screen(lines: Sequence[str], totals: Totals, verbose: bool) -> None:
    """Print the lines of a screen, and a line of verdicts per backend.

    With ``verbose`` print tables of verdicts instead of these.
    """
    for line in lines:
        typer.echo(line)
    if not verbose:
        for line in totals.lines():
            typer.echo(line)
    else:
        typer.echo("\n".join(["", *totals.verdict_table(), ""]))
        if totals.pair_verdicts:
            typer.echo("\n".join([*totals.pair_table(), ""]))
