"""The command ``castigate``."""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Annotated, Any, NoReturn

import typer

from conformance.commands import document_listing
from conformance.commands.backends import look
from conformance.commands.diff import diff_command
from conformance.commands.document_listing import change_listing, known_coverage, page_listing
from conformance.commands.export import export_app
from conformance.commands.gate import gate_command
from conformance.commands.nightly import nightly_command
from conformance.commands.options import BackendOption, PythonOption, TimeoutOption
from conformance.commands.report import report_command
from conformance.commands.run import MOST_EXAMPLES, merge_command, run_command
from conformance.commands.verify import verify_command
from conformance.judging.explanation import (
    bitcast_bits,
    drawn,
    drawn_bitcast,
    explain,
    explain_bitcast,
)
from conformance.judging.quick_inputs import inputs_of
from conformance.judging.recorded_answers import Tally, judge_stream
from conformance.judging.value_spelling import json_text
from conformance.running.selection import case_named
from oracles.isolation.launch_config import SECONDS, homes
from oracles.isolation.loading import close, load_isolated
from oracles.registry import BUILTINS, third_party
from specs.errors import CastigateError
from specs.lint import prove
from specs.loader import document_named, documents, load_document
from specs.model.document import json_schema
from specs.model.page_lines import digests_of, read_page
from specs.operations import is_bitcast
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
            metavar="DOCUMENT[:VERSION]|lint|schema|page",
            help="A document to show (with --coverage also a YAML file); `lint` proves documents;"
            " `schema` prints their JSON schema; `page` prints the digests of a page's lines.",
        ),
    ] = None,
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE", help="With `lint`: YAML files. With `page`: the page."),
    ] = None,
    show_coverage: Annotated[
        bool,
        typer.Option("--coverage", help="Show which rules encode which lines of the page."),
    ] = False,
    page: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With --coverage: your copy of the page. Show its text beside the rules, or what"
            " changed in it and which rules to check.",
        ),
    ] = None,
) -> None:
    """Show documents, versions, cases and rules, or prove documents total and unambiguous."""
    if files and what not in ("lint", "page"):
        raise CastigateError("only `castigate specs lint` and `castigate specs page` take files")
    if page is not None and not show_coverage:
        raise CastigateError("--page goes with --coverage")
    if show_coverage:
        _show_coverage(what, page)
        return
    match what:
        case None:
            lines = document_listing.all_documents()
        case "lint":
            given = [load_document(path) for path in files or []]
            proofs = [prove(document) for document in given or documents().values()]
            lines = document_listing.proofs(proofs)
        case "schema":
            lines = iter([json.dumps(json_schema(), indent=2)])
        case "page":
            if files is None or len(files) != 1:
                raise CastigateError("give one page: castigate specs page FILE")
            lines = iter(digests_of(read_page(files[0])))
        case _:
            name, _, version = what.partition(":")
            document = document_named(name)
            lines = (
                document_listing.version(document, version)
                if version
                else document_listing.document(document)
            )
    for line in lines:
        typer.echo(line)


def _show_coverage(what: str | None, copy: Path | None) -> None:
    """Show a document's page line by line; exit code 1 if a line is not covered or has changed."""
    if what is None:
        raise CastigateError("give one document: castigate specs --coverage DOCUMENT")
    name, _, version = what.partition(":")
    if what.endswith(".yaml"):
        document, version = load_document(Path(what)), ""
    else:
        document = document_named(name)
    changed = change_listing(document, copy) if copy is not None else []
    for line in changed or page_listing(document, version or None, copy):
        typer.echo(line)
    if changed or known_coverage(document).uncovered():
        raise typer.Exit(1)


@app.command(name="explain")
def explain_command(
    case: CaseArgument,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="INPUT",
            help="Values such as 65520, nan, true or 0x477ff000, or texts; put -- before a value"
            " that begins with -. For a bitcast: all elements of one tensor, or none.",
        ),
    ] = None,
    backend: BackendOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines.")] = False,
    python: PythonOption = None,
    timeout: TimeoutOption = SECONDS,
) -> None:
    """Show what a case allows for inputs, the rule and clause, and what each backend answers."""
    chosen = case_named(case)
    where = homes(backend or (), python or (), timeout)
    with ExitStack() as stack:
        backends = [load_isolated(name, home) for name, home in where.items()]
        for made in backends:
            stack.callback(close, made)
        if is_bitcast(chosen):
            asked = bitcast_bits(chosen, inputs or [])
            _show(explain_bitcast(chosen, asked, backends), drawn_bitcast, as_json)
        elif not inputs:
            raise CastigateError(
                f"say which inputs of {chosen.source}: castigate explain {case} INPUT…"
            )
        else:
            for told in [explain(chosen, word, backends) for word in inputs]:
                _show(told, partial(drawn, chosen), as_json)


def _show(
    told: dict[str, Any], draw: Callable[[dict[str, Any]], Iterator[str]], as_json: bool
) -> None:
    for line in [json.dumps(told, ensure_ascii=False)] if as_json else draw(told):
        typer.echo(line)


@app.command(name="backends")
def backends_command(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="Backends, also variants (default: all known)."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines.")] = False,
    python: PythonOption = None,
    timeout: TimeoutOption = SECONDS,
) -> None:
    """Show which backends are here: version, roads, operations, dtypes, and how to get the rest."""
    asked = names or [*BUILTINS, *third_party()]
    for name, home in homes(asked, python or (), timeout).items():
        seen = look(name, home)
        for line in [json.dumps(seen.words, ensure_ascii=False)] if as_json else seen.lines():
            typer.echo(line)


app.command(name="run")(run_command)
app.command(name="merge")(merge_command)
app.command(name="diff")(diff_command)
app.command(name="report")(report_command)
app.command(name="nightly")(nightly_command)
app.add_typer(export_app, name="export")
app.command(name="gate")(gate_command)
app.command(name="verify")(verify_command)


@app.command()
def inputs(
    cases: Annotated[list[str], typer.Argument(metavar="CASE", help="Case ids.")],
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random inputs.")] = 0,
    max_examples: Annotated[
        int, typer.Option(min=0, max=MOST_EXAMPLES, help="Random inputs per wide source.")
    ] = 1000,
) -> None:
    """Print the quick tier's inputs, one hex pattern a line (texts as {"text": "…"})."""
    for case, rules in [(case, ruling(case)) for case in map(case_named, cases)]:
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
        Path | None, typer.Argument(metavar="FILE|-", help="JSON lines; - or none: stdin.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print only JSON lines, no summary on stderr.")
    ] = False,
) -> None:
    """Judge recorded answers of casts and bitcasts, one JSON object per line.

    A line: {"case": "onnx-cast:25/float32/float16", "input": "0x477ff000", "output": "inf"}.
    """
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
    with _opened(file) as stream:
        for result in judge_stream(stream, tally):
            yield f"{json_text(result)}\n"


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
        told = error.format_message()
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
