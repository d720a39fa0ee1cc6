"""The command ``castigate``."""

from __future__ import annotations

import gc
import json
import os
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import StrEnum
from io import TextIOWrapper
from pathlib import Path
from shutil import get_terminal_size
from typing import IO, Annotated, NoReturn

import typer

from conformance import listing
from conformance.explaining import drawn, explain
from conformance.inputs import inputs_of
from conformance.progress import reporter
from conformance.recorded import Tally, judge_stream
from conformance.running import Wanted, finish, merge, run, wanted_of
from conformance.selection import case_named
from oracles.registry import listing as backends_known
from oracles.registry import load_backend
from reports.places import place_of
from reports.run_record import Selection, Shard
from reports.store import RunStore, read_record
from reports.summary import NARROWEST
from specs.document import json_schema
from specs.errors import CastigateError
from specs.lint import prove
from specs.load import document_named, documents, load_document
from specs.release import VERSION
from specs.ruling import ruling

app = typer.Typer(
    name="castigate",
    help="Tells, bit for bit, whether a framework converts numbers the way its documents say.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


class TierWord(StrEnum):
    """How much is asked."""

    quick = "quick"
    full = "full"


MOST_EXAMPLES = 100_000_000
CaseArgument = Annotated[str, typer.Argument(metavar="CASE", help="A case id.")]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"castigate {VERSION}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options of the command itself."""


@app.command()
def specs(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[DOCUMENT[:VERSION] | lint | schema]",
            help="A document to show; `lint` proves documents; `schema` prints their JSON schema.",
        ),
    ] = None,
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILE]…", help="With `lint`: YAML files.")
    ] = None,
) -> None:
    """Show documents, versions, cases and rules, or prove documents total and unambiguous."""
    if files and what != "lint":
        raise CastigateError("only `castigate specs lint` takes files")
    match what:
        case None:
            lines = listing.all_documents()
        case "lint":
            given = [load_document(path) for path in files or []]
            proofs = [prove(document) for document in given or documents().values()]
            lines = listing.proofs(proofs)
        case "schema":
            lines = iter([json.dumps(json_schema(), indent=2)])
        case _:
            name, _, version = what.partition(":")
            document = document_named(name)
            lines = listing.version(document, version) if version else listing.document(document)
    for line in lines:
        typer.echo(line)


@app.command(name="explain")
def explain_command(
    case: CaseArgument,
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT…", help="Hex patterns, or texts (after -- where one begins with -)."
        ),
    ],
    backend: Annotated[
        list[str] | None,
        typer.Option("--backend", metavar="NAME", help="Who answers (repeatable)."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines.")] = False,
) -> None:
    """Show what a case allows for inputs, the rule and clause, and what each backend answers."""
    chosen = case_named(case)
    backends = [load_backend(name) for name in backend or []]
    for word in inputs:
        explained = explain(chosen, word, backends)
        lines = [json.dumps(explained, ensure_ascii=False)] if as_json else drawn(chosen, explained)
        for line in lines:
            typer.echo(line)


@app.command(name="run")
def run_command(
    backend: Annotated[
        list[str] | None,
        typer.Option("--backend", metavar="NAME", help="Who answers (repeatable)."),
    ] = None,
    document: Annotated[
        list[str] | None,
        typer.Option(
            "--document",
            metavar="NAME[:VERSION]",
            help="Only this document (repeatable); it counts as claimed.",
        ),
    ] = None,
    source: Annotated[
        str | None, typer.Option(metavar="DTYPE", help="Only casts from this dtype.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(metavar="DTYPE", help="Only casts to this dtype.")
    ] = None,
    tier: Annotated[
        TierWord, typer.Option(help="quick: the telling inputs; full: all of 32-bit sources.")
    ] = TierWord.quick,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random inputs.")] = 0,
    max_examples: Annotated[
        int, typer.Option(min=0, max=MOST_EXAMPLES, help="Random inputs per wide source.")
    ] = 1000,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Worker processes (default: one per core).")
    ] = None,
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
) -> None:
    """Run cases against backends, each in processes of its own, and keep what is found."""
    if resume and out is None:
        raise CastigateError("--resume needs the --out of the run to go on with")
    if resume and backend is None:
        wanted = wanted_of(read_record(place_of(out or "")))
    elif backend is None:
        raise CastigateError(f"say whom to judge with --backend NAME; {backends_known()}")
    else:
        wanted = Wanted(
            tuple(dict.fromkeys(backend)),
            Selection(documents=tuple(document or ()), source=source, target=target),
            tier.value,
            seed,
            max_examples,
            _shard(shard),
        )
    where = out or f"runs/{datetime.now(UTC):%Y%m%d-%H%M%S}"
    try:
        with reporter() as shown:
            store = run(wanted, where, jobs or os.cpu_count() or 1, resume, sys.argv, shown)
        if store.record.complete:
            typer.echo(f"{where} is complete; there is nothing to go on with", err=True)
            raise typer.Exit(store.record.exit_code or 0)
        _finish(store, where)
    except KeyboardInterrupt:
        message = f"interrupted; castigate run --resume --out {where} goes on"
        raise KeyboardInterrupt(message) from None


@app.command(name="merge")
def merge_command(
    shards: Annotated[
        list[str], typer.Argument(metavar="RUN…", help="The folders of all shards of a run.")
    ],
    out: Annotated[str, typer.Option(metavar="RUN", help="The whole run's folder or URL.")],
) -> None:
    """Join the shards of a run into one run."""
    _finish(merge(shards, out, sys.argv), out)


def _shard(given: str | None) -> Shard | None:
    if given is None:
        return None
    match = re.fullmatch(r"([1-9][0-9]{0,5})/([1-9][0-9]{0,5})", given)
    if match is None or int(match[1]) > int(match[2]):
        raise CastigateError(f"--shard `{given[:20]}` is no shard; write 1/4 to 4/4")
    return Shard(index=int(match[1]), count=int(match[2]))


def _finish(store: RunStore, where: str) -> NoReturn:
    """Write the tables, and say what they come to."""
    totals = finish(store)
    width = max(NARROWEST, get_terminal_size().columns)
    if store.record.shard is None:
        if totals.breaches:
            typer.echo(f"{totals.breach_table(width)}\n")
        typer.echo(f"{totals.verdict_table(width)}\n")
    typer.echo(f"{where}: {totals.inputs:,} inputs")
    raise typer.Exit(totals.exit_code)


@app.command()
def inputs(
    cases: Annotated[list[str], typer.Argument(metavar="CASE…", help="Case ids.")],
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random inputs.")] = 0,
    max_examples: Annotated[
        int, typer.Option(min=0, max=MOST_EXAMPLES, help="Random inputs per wide source.")
    ] = 1000,
) -> None:
    """Print the quick tier's inputs, one hex pattern a line (texts as {"text": "…"})."""
    for name in cases:
        case = case_named(name)
        rules = ruling(case)
        given = inputs_of(case, rules, seed, max_examples)
        form = rules.source
        if form.kind == "text":
            lines = [json.dumps({"text": text}, ensure_ascii=False) for text in given.tolist()]
        elif form.bits > 64:
            lines = [form.hexadecimal(int.from_bytes(one.tobytes(), "little")) for one in given]
        else:
            lines = [form.hexadecimal(code) for code in given.tolist()]
        sys.stdout.write("".join(f"{line}\n" for line in lines))


@app.command()
def judge(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE|-]", help="JSON lines; - or none: stdin.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print only JSON lines, no summary on stderr.")
    ] = False,
) -> None:
    """Judge recorded answers: {"case": "…", "input": "0x…", "output": "0x…"} a line."""
    # Lines leave hardly a cycle behind; looking for them at every 700th object costs a tenth.
    gc.set_threshold(100_000)
    tally = Tally()
    for line in _judged(file, tally):
        sys.stdout.write(line)
    if not tally.lines:
        raise CastigateError(f"{file or 'stdin'} is empty; give one JSON line per answer")
    if not as_json:
        counts = ", ".join(
            f"{count} {verdict}" for verdict, count in sorted(tally.verdicts.items())
        )
        malformed = f"; {tally.malformed} malformed" if tally.malformed else ""
        typer.echo(f"{tally.lines} lines: {counts or 'nothing judged'}{malformed}", err=True)
    raise typer.Exit(tally.exit_code)


def _judged(file: Path | None, tally: Tally) -> Iterator[str]:
    """The results as lines; only what cannot be read is blamed on the file."""
    encode = json.JSONEncoder(ensure_ascii=False).encode
    with _opened(file) as stream:
        for result in judge_stream(stream, tally):
            yield f"{encode(result)}\n"


def _opened(file: Path | None) -> IO[str]:
    if file is None or str(file) == "-":
        if isinstance(sys.stdin, TextIOWrapper):
            sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")
        return sys.stdin
    try:
        return file.open(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise CastigateError(f"{file} cannot be read: {error.strerror}") from None


def main() -> None:
    """Run the command; what the user got wrong is one line on stderr and exit code 2."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        code = app(prog_name="castigate", standalone_mode=False)
        # Flushed here, where a reader that has gone can still be met in silence, not at exit.
        sys.stdout.flush()
    except CastigateError as error:
        _leave(str(error), 2)
    except typer.TyperException as error:
        told = str(error)
        _leave(told if "\n" in told else f"{told.rstrip('.')}; see castigate --help", 2)
    except BrokenPipeError:
        _abandon_stdout()
        sys.exit(1)
    except OSError as error:
        _abandon_stdout()
        _leave(f"cannot write the output: {error.strerror}", 2)
    except KeyboardInterrupt as interrupt:
        _leave(str(interrupt) or "interrupted", 130)
    sys.exit(code if isinstance(code, int) else 0)


def _leave(message: str, code: int) -> NoReturn:
    sys.stderr.write(f"castigate: {message}\n")
    sys.exit(code)


def _abandon_stdout() -> None:
    """Give what is still buffered to nobody, so that Python does not try it again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
