"""``castigate board``: a static site with the verdicts of many backends, made from runs."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from conformance.commands.options import parse_folder
from conformance.extras.board.board_file import MOST_BYTES, board_bytes, schema_text
from conformance.extras.board.made_board import encode_board, rows_of
from conformance.extras.board.reported import read_reported
from conformance.extras.board.rows import Attempt, read_attempts
from conformance.extras.board.site import site_files
from reports.findings.finding_text import counted
from reports.html.replace_report import check_output_folder, replace_report
from reports.run_store.record import current_time
from reports.run_store.storage import folder_at
from specs.errors import CastigateError
from specs.plain_text import plain_line

SCHEMA = "schema"
REPORTED = re.compile(r"([^=]+)=(.+)")


def board_command(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN... | schema",
            help="Folders or URLs of runs; `schema` for the JSON schema of board.json.",
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="SITE",
            parser=parse_folder,
            help="The site's folder or URL; an older one is replaced.",
        ),
    ] = None,
    reported: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=GATE",
            help="The folder of a gate that NAME ran: its certificate is checked, and its row"
            " marked (repeatable).",
        ),
    ] = None,
) -> None:
    """Write a site with what each backend answers to the pairs that people ask about most.

    A row is a version of a backend, by its last good run. A cell leads to the verdicts by document,
    the smallest wrong input, a script, and public threads. The site needs no server.
    """
    if runs == [SCHEMA]:
        typer.echo(schema_text(), nl=False)
        return
    if not runs and not reported:
        raise CastigateError("no run is given; name folders of runs, such as nights/runs/*")
    if out is None:
        raise CastigateError("--out is missing; give the folder of the site")
    folder = check_output_folder(out)
    # All records and certificates are checked before the first table is read, which takes longer.
    own = [read_attempts(run, _warn) for run in runs or ()]
    others = [_reported(word) for word in reported or ()]
    rows, today = rows_of(chain(*own, *others)), current_time().date()
    if not any(row.good is not None for row in rows):
        raise CastigateError("no backend answered anything in these runs; there is nothing to show")
    board = encode_board(rows, today)
    size = len(board_bytes(board))
    if size > MOST_BYTES:
        _warn(f"board.json has {size:,} bytes, more than {MOST_BYTES:,}; give fewer versions")
    replace_report(folder, lambda: site_files(rows, board, today))
    latest = sum(row.is_latest for row in rows)
    typer.echo(
        f"{folder_at(out).display_path('index.html')}: {counted(latest, 'backend')},"
        f" {counted(len(rows), 'version')}, board.json {size:,} bytes"
    )


def _warn(line: str) -> None:
    typer.echo(f"castigate: {plain_line(line)}", err=True)


def _reported(word: str) -> list[Attempt]:
    match = REPORTED.fullmatch(word)
    if match is None:
        raise CastigateError(
            f"--reported `{word[:80]}` names nobody; write NAME=GATE, such as acme=gates/acme"
        )
    return read_reported(match[1], Path(match[2]))
