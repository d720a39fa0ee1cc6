"""``python -m lab.vectors OUT``: make the data release, and compare it with others' arithmetic."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from lab.command import run
from lab.vectors.peers import PEERS, compare_files
from lab.vectors.release import NAME, released_cases, write_release

MEGABYTE = 10**6


def release_command(
    out: Annotated[Path, typer.Argument(help="The folder for the packed release.")],
    with_peers: Annotated[
        bool, typer.Option("--peers/--no-peers", help="Compare each file with other arithmetic.")
    ] = True,
) -> None:
    """Write the files, compare them, and pack them; exit with 1 if anything differs."""
    out.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as temporary:
        began = time.monotonic()
        folder = Path(temporary) / NAME
        packed = out / f"{NAME}.tar.xz"
        index = write_release(folder, released_cases(), packed)
        seconds = time.monotonic() - began
        size = packed.stat().st_size / MEGABYTE
        whole = sum(each.covers == "all" for each in index.files)
        typer.echo(
            f"{packed}: {len(index.files):,} files, {whole:,} of every input,"
            f" {sum(each.lines for each in index.files):,} lines, {size:.1f} MB, {seconds:.0f} s"
        )
        differ = 0
        for peer in PEERS if with_peers else ():
            found = compare_files(folder, index, peer)
            differ += len(found.failures)
            typer.echo(
                f"{peer.name} {peer.version()}: {found.files:,} files, {found.answers:,} answers,"
                f" {found.known:,} differ as known, {len(found.failures):,} differ otherwise"
            )
            for failure in found.failures[:10]:
                typer.echo(f"  {failure}")
    raise typer.Exit(1 if differ else 0)


run(release_command)
