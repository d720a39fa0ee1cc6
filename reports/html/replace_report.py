"""Writes a report's files into a folder, where they replace an older report."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from secrets import token_hex
from shutil import rmtree

from reports.run_store.storage import UNFINISHED, Folder, folder_at
from specs.errors import CastigateError

MARK = "castigate-report"
"""An empty file that marks a folder as a report, which may be replaced."""
FRONT_PAGE = "index.html"
INCOMPLETE = b"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Incomplete report</title>
<p>This report is incomplete: it is being written, or its writer was stopped.
If it stays so, run <code>castigate report</code> again with the same --out.</p>
</html>
"""
"""The front page while the objects of a report are replaced one by one."""
ADVICE = "give another --out, or write the report again"
Files = Callable[[], Iterator[tuple[str, bytes]]]
"""Renders the files of a report, and yields their relative paths and contents."""


def check_output_folder(out: str) -> Folder:
    """Return the folder for a report; raise CastigateError if it may not be replaced.

    It may not if it is a file, or a folder that is not empty and holds no report.
    """
    folder = folder_at(out)
    if folder.is_local and os.path.exists(folder.path) and not folder.exists:
        raise CastigateError(f"report folder {out} is a file; give a folder as --out")
    names = folder.names()
    if names and MARK not in names:
        raise CastigateError(
            f"report folder {out} holds other files (`{names[0]}`) and is not a report; "
            "give a new folder or an empty one as --out"
        )
    return folder


def replace_report(folder: Folder, files: Files) -> None:
    """Write a report in place of the older one; raise CastigateError if it cannot be written.

    On this machine, all of it is replaced or nothing. In an object store, the files are replaced
    one by one, the front page last.
    """
    if not folder.is_local:
        _replace_objects(folder, files())
        return
    try:
        _replace_folder(Path(os.path.realpath(folder.path)), files())
    except OSError as error:
        raise CastigateError(
            f"report cannot be written to {folder.display_name}: {error.strerror}; "
            "give another --out"
        ) from None


def _replace_objects(folder: Folder, files: Iterable[tuple[str, bytes]]) -> None:
    """Replace the objects of a report in a store, the front page last.

    Until all others are written, the front page says that the report is incomplete. All are
    rendered before the first change, so that an error in rendering leaves the older report as it
    is.
    """
    rendered = dict(files)
    folder.write(MARK, b"", ADVICE)
    folder.write(FRONT_PAGE, INCOMPLETE, ADVICE)
    for name in folder.files():
        if name not in rendered and name != MARK:
            folder.remove_file(name)
    for name in sorted(rendered, key=FRONT_PAGE.__eq__):
        folder.write(name, rendered[name], ADVICE)


def _replace_folder(folder: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Write the files to a temporary folder beside ``folder``, which replaces it when complete."""
    temporary = folder.with_name(f".{folder.name}.{token_hex(8)}{UNFINISHED}")
    temporary.mkdir(parents=True)
    try:
        for name, data in files:
            file = temporary / name
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(data)
        (temporary / MARK).touch()
        _swap(folder, temporary)
    finally:
        rmtree(temporary, ignore_errors=True)


def _swap(folder: Path, new: Path) -> None:
    """Move a finished report to a folder that is missing, empty, or an older report."""
    if not (folder / MARK).exists():
        new.replace(folder)
        return
    old = new.with_name(f"{new.name}.old")
    folder.replace(old)
    try:
        new.replace(folder)
    except OSError:
        old.replace(folder)
        raise
    rmtree(old, ignore_errors=True)
