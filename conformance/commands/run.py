"""The commands ``castigate run`` and ``castigate merge``."""

from __future__ import annotations

import os
import re
import shlex
import sys
from dataclasses import replace
from shutil import get_terminal_size
from typing import Annotated, NoReturn

import typer

from conformance.commands.options import (
    BackendOption,
    DocumentOption,
    JobsOption,
    PythonOption,
    SourceOption,
    TargetOption,
    TierChoice,
    TierOption,
    TimeoutOption,
)
from conformance.running.progress import progress_reporter
from conformance.running.run import RunRequest, finish_run, merge_shards, request_of, run
from oracles.isolation.launch_config import SECONDS
from oracles.registry import listing
from reports.diff.summary_tables import NARROWEST
from reports.diff.totals import Totals
from reports.run_store.record import Selection, Shard, now
from reports.run_store.storage import place_of
from reports.run_store.store import RECORD, RunStore, read_record
from specs.errors import CastigateError

MOST_EXAMPLES = 100_000_000
UNSAID = (TierChoice.quick, 0, 1000)


def run_command(
    backend: BackendOption = None,
    document: DocumentOption = None,
    source: SourceOption = None,
    target: TargetOption = None,
    tier: TierOption = TierChoice.quick,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random inputs.")] = 0,
    max_examples: Annotated[
        int, typer.Option(min=0, max=MOST_EXAMPLES, help="Random inputs per wide source.")
    ] = 1000,
    jobs: JobsOption = None,
    shard: Annotated[
        str | None,
        typer.Option(metavar="I/N", help="Do only every N-th task; join with castigate merge."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the unfinished run in --out.")
    ] = False,
    out: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="The run's folder or URL (default: runs/ and the time)."),
    ] = None,
    python: PythonOption = None,
    timeout: TimeoutOption = SECONDS,
) -> None:
    """Run cases against backends, each in processes of its own, and keep what is found."""
    if resume and out is None:
        raise CastigateError("--resume needs the --out of the run to go on with")
    if resume and backend is None:
        if document or source or target or shard or (tier, seed, max_examples) != UNSAID:
            raise CastigateError(
                "--resume alone goes on as the run was begun; "
                "give no other options, or all of them, --backend too"
            )
        wanted = request_of(read_record(place_of(out or "")))
    elif backend is None:
        raise CastigateError(f"no backend is named; add --backend NAME; {listing()}")
    else:
        wanted = RunRequest(
            tuple(dict.fromkeys(backend)),
            Selection(documents=tuple(document or ()), source=source, target=target),
            tier.value,
            seed,
            max_examples,
            _shard(shard),
        )
    wanted = replace(wanted, pythons=tuple(python or ()), seconds=timeout)
    where = out or f"runs/{now():%Y%m%d-%H%M%S}"
    try:
        with progress_reporter() as shown:
            store = run(wanted, where, jobs or os.cpu_count() or 1, resume, sys.argv, shown)
        if store.record.complete:
            typer.echo(f"{where} is complete; there is nothing to go on with", err=True)
            raise typer.Exit(store.record.exit_code or 0)
        _finish(store, where)
    except KeyboardInterrupt:
        # typer would turn a KeyboardInterrupt into this exit code and say nothing.
        typer.echo(f"castigate: interrupted{how_to_go_on(where)}", err=True)
        raise typer.Exit(130) from None


def merge_command(
    shards: Annotated[
        list[str], typer.Argument(metavar="RUN", help="The folders of all shards of a run.")
    ],
    out: Annotated[str, typer.Option(metavar="RUN", help="The whole run's folder or URL.")],
) -> None:
    """Join the shards of a run into one run."""
    _finish(merge_shards(shards, out, sys.argv), out)


def how_to_go_on(where: str) -> str:
    """What to say of a run that was interrupted, if it had begun."""
    place = place_of(where)
    begun = RECORD in place.names()
    return f"; castigate run --resume --out {shlex.quote(where)} goes on" if begun else ""


def _shard(given: str | None) -> Shard | None:
    if given is None:
        return None
    match = re.fullmatch(r"([1-9][0-9]{0,5})/([1-9][0-9]{0,5})", given)
    if match is None or int(match[1]) > int(match[2]):
        raise CastigateError(f"--shard `{given[:20]}` is no shard; write 1/4 to 4/4")
    return Shard(index=int(match[1]), count=int(match[2]))


def _finish(store: RunStore, where: str) -> NoReturn:
    """Write the tables, and say what they come to."""
    totals = finish_run(store)
    if store.record.shard is None:
        tell(totals)
    typer.echo(f"{where}: {totals.inputs:,} inputs")
    raise typer.Exit(totals.exit_code)


def tell(totals: Totals) -> None:
    """Print the rules that were broken, and all verdicts."""
    width = max(NARROWEST, get_terminal_size().columns)
    if totals.breaches:
        typer.echo(f"{totals.breach_table(width)}\n")
    typer.echo(f"{totals.verdict_table(width)}\n")
