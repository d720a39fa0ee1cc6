"""``castigate export findings``: writes each finding of a run as a folder that runs alone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from conformance.commands.options import parse_local_folder
from conformance.extras.repros.files import SCRIPT, files_of, is_python
from oracles.protocol import NotInstalled
from reports.findings.finding_text import counted
from reports.findings.issue_text import issue_text
from reports.findings.read_findings import read_findings
from reports.run_store.open_run import open_run
from reports.run_store.storage import filled_at_once
from specs.errors import CastigateError

LONGEST = 80
"""The most characters of a folder's name that come from a finding's."""


def export_findings(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run's folder or URL.")],
    out: Annotated[
        Path, typer.Option(metavar="DIR", parser=parse_local_folder, help="A new folder.")
    ],
) -> None:
    """Write each finding as a folder that runs alone: issue, script, ONNX model, and tensors.

    Exit code 3 if no finding has a script.
    """
    store = open_run(run)
    findings = [each for found in read_findings(store).values() for each in found]
    shown = [each for each in findings if is_python(each.simplest.script)]
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise CastigateError(f"{out} is not empty; give a new folder as --out")
    try:
        with filled_at_once(out) as folder:
            for place, each in enumerate(shown, 1):
                own = folder / _folder_of(each.id, place)
                own.mkdir()
                (own / "issue.md").write_text(issue_text(each, store.record), encoding="utf-8")
                for name, content in files_of(each.simplest.script).items():
                    (own / name).write_bytes(content)
    except NotInstalled as error:
        raise CastigateError(f"cannot write models: {error}") from None
    except OSError as error:
        raise CastigateError(f"cannot write {out}: {error.strerror}; give another --out") from None
    left_out = len(findings) - len(shown)
    more = f", {left_out} without a script left out" if left_out else ""
    typer.echo(f"{out}: {counted(len(shown), 'finding')}{more}; each runs by python {SCRIPT}")
    raise typer.Exit(0 if shown else 3)


def _folder_of(finding: str, place: int) -> str:
    """Return the name of a finding's folder; its end tells more than the backend before it."""
    return f"{place:02}-" + re.sub(r"[^A-Za-z0-9]+", "_", finding)[-LONGEST:].strip("_")
