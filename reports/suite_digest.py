"""A digest of Castigate's own files, on which verdicts depend."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

LAYERS = ("specs", "oracles", "reports", "conformance")
DIGESTED_SUFFIXES = (".py", ".yaml")
"""Suffixes of files that affect verdicts: programs, documents, formats; templates and scripts do
not."""
LEDGERS = "reports/ledger/"
"""Ledgers do not affect a gate, and a command rewrites them."""


@cache
def suite_digest() -> str:
    """Return a sha256 of all Python and YAML files in ``LAYERS`` except ledgers.

    It is equal for a checkout and an installed wheel.
    """
    digest = sha256()
    for layer in LAYERS:
        folder = Path(str(files(layer)))
        paths = {
            f"{layer}/{path.relative_to(folder).as_posix()}": path for path in folder.rglob("*")
        }
        for name, path in sorted(paths.items()):
            is_ledger = name.startswith(LEDGERS) and path.suffix == ".yaml"
            if path.suffix in DIGESTED_SUFFIXES and not is_ledger:
                digest.update(f"{name} {sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()
