"""The digest of the suite's own sources: what judged, down to the last byte."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

FLOORS = ("specs", "oracles", "reports", "conformance")
KINDS = (".py", ".yaml")
"""Programs, documents, formats; how pages look does not judge."""
LEDGERS = "reports/ledger/"
"""What frameworks are known to get wrong has no say in a gate, and changes by a command."""


@cache
def suite_digest() -> str:
    """The sha256 of all paths and contents, whether from a checkout or from a wheel."""
    digest = sha256()
    for floor in FLOORS:
        folder = _folder(floor)
        named = {
            f"{floor}/{path.relative_to(folder).as_posix()}": path for path in folder.rglob("*")
        }
        for name, path in sorted(named.items()):
            is_ledger = name.startswith(LEDGERS) and path.suffix == ".yaml"
            if path.suffix in KINDS and not is_ledger:
                digest.update(f"{name} {sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def _folder(floor: str) -> Path:
    spec = find_spec(floor)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent
