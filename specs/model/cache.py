"""A folder of computed results, each under a digest of all that it was computed from."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any


@dataclass(frozen=True)
class CacheEntry:
    """One result as a JSON file; a cache that cannot be read or written is no error."""

    path: Path

    def read(self) -> Any | None:
        """Return the stored result, or None if it is missing or damaged."""
        try:
            return json.loads(self.path.read_bytes())
        except (OSError, ValueError):
            return None

    def write(self, result: Any) -> None:
        """Store a result, whole or not at all; do nothing if the folder cannot be written."""
        with suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with NamedTemporaryFile("w", dir=self.path.parent, delete=False) as file:
                try:
                    json.dump(result, file)
                    file.flush()
                    os.replace(file.name, self.path)
                finally:
                    Path(file.name).unlink(missing_ok=True)  # Nothing is left after a move.


def cache_entry(kind: str, *inputs: bytes) -> CacheEntry:
    """Return the cache entry of a result of a kind that is computed from exactly these inputs.

    It is in the user's cache folder.
    """
    digest = sha256()
    for each in inputs:
        digest.update(len(each).to_bytes(8, "little") + each)
    return CacheEntry(cache_folder(kind) / f"{digest.hexdigest()}.json")


def cache_folder(kind: str) -> Path:
    """Return the folder of one kind of results in the user's cache folder; it need not exist."""
    folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(folder) / "castigate" / kind
