"""Lines that GitHub Actions shows beside a pull request."""

from __future__ import annotations

import os
from typing import Literal

ON_GITHUB = "GITHUB_ACTIONS"
"""The variable that the runner of GitHub Actions sets to `true`."""


def is_on_github() -> bool:
    """Return whether this process runs in a job of GitHub Actions."""
    return os.environ.get(ON_GITHUB) == "true"


def annotation(level: Literal["error", "notice"], title: str, text: str, file: str = "") -> str:
    """Return the line that makes the runner show a text under a title, beside a file if given."""
    beside = f"file={_property(file)}," if file else ""
    return f"::{level} {beside}title={_property(title)}::{_data(text)}"


def _data(text: str) -> str:
    """Escape the message of a workflow command of GitHub Actions."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
