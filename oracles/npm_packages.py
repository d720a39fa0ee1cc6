"""Finds packages that npm installed, where Node.js would look for them."""

from __future__ import annotations

import json
import os
from pathlib import Path


def npm_version(name: str) -> str:
    """Return the version of an installed npm package, or an empty text if there is none.

    It is looked for in ``node_modules`` of the working directory and those above, and in NODE_PATH.
    """
    here = Path.cwd()
    folders = [each / "node_modules" for each in (here, *here.parents)]
    folders += map(Path, filter(None, os.environ.get("NODE_PATH", "").split(os.pathsep)))
    for folder in folders:
        if (package := folder / name / "package.json").is_file():
            return str(json.loads(package.read_text(encoding="utf-8")).get("version", ""))
    return ""
