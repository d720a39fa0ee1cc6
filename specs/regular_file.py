"""Refuses pipes and devices where a user is to name a file: reading one may never end."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from specs.errors import CastigateError


def require_regular(path: str | Path) -> None:
    """Raise CastigateError if a pipe, a socket or a device is at a path.

    A folder passes; reading it fails at once. Raise OSError if nothing is there.
    """
    mode = os.stat(path).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise CastigateError(f"{path} is a pipe or a device; give the name of a file")
