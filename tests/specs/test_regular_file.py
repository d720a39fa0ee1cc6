"""A pipe or a device in place of a file is one line of error, and nothing waits for it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.conformance.processes import castigate

FIFO = [
    ["specs", "lint", "FILE"],
    ["specs", "page", "FILE"],
    ["specs", "--coverage", "onnx-cast", "--page", "FILE"],
    ["verify", "FILE"],
    ["verify", "FILE/certificate.json"],
    ["gate", "--backend=reference", "--policy=FILE", "--out=OUT"],
    ["gate", "--backend=reference", "--policy=strict", "--sign=FILE", "--out=OUT"],
    ["findings", "FILE"],
]


@pytest.mark.parametrize("kind", ["a FIFO", "a device"])
@pytest.mark.parametrize("arguments", FIFO, ids=" ".join)
def test_what_is_no_file_is_refused_at_once(
    arguments: list[str], kind: str, tmp_path: Path
) -> None:
    # A run and the folder of a certificate have their file inside them.
    folder = tmp_path / "folder"
    folder.mkdir()
    inside = {"findings": "run.json", "verify": "certificate.json"}.get(arguments[0], "file.yaml")
    if kind == "a FIFO":
        os.mkfifo(folder / inside)
    else:
        (folder / inside).symlink_to("/dev/zero")
    is_folder = arguments in (["findings", "FILE"], ["verify", "FILE"])
    named = str(folder if is_folder else folder / inside)
    words = [
        each.replace("FILE/certificate.json", named).replace("FILE", named) for each in arguments
    ]
    code, out, err = castigate(*(each.replace("OUT", str(tmp_path / "out")) for each in words))
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert err == f"castigate: {folder / inside} is a pipe or a device; give the name of a file\n"
