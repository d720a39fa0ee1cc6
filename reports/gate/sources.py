"""The digest of the suite's own sources: what judged, down to the last byte."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

FLOORS = ("specs", "oracles", "reports", "conformance")
KINDS = (".py", ".yaml")
"""Programs, documents, formats, ledgers, policies; how pages look does not judge."""


@cache
def suite_digest() -> str:
    """The sha256 of all paths and contents, whether from a checkout or from a wheel."""
    digest = sha256()
    for floor in FLOORS:
        folder = _folder(floor)
        for path in sorted(folder.rglob("*"), key=lambda path: path.relative_to(folder).as_posix()):
            if path.suffix in KINDS:
                name = f"{floor}/{path.relative_to(folder).as_posix()}"
                digest.update(f"{name} {sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def _folder(floor: str) -> Path:
    spec = find_spec(floor)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent
