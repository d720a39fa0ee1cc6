"""A small document with one mistake in it, and what is said of that."""

from __future__ import annotations

from pathlib import Path

import pytest

from specs.errors import DocumentError
from specs.lint import prove
from specs.loader import load_document

Mistake = tuple[str, str, str, str]
"""What stands in the text, what it becomes, how the line begins that is named, what is said."""


def error_of(tmp_path: Path, text: str) -> str:
    """The error's line and words; it is one line, and begins with the file."""
    path = tmp_path / "broken.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DocumentError) as caught:
        prove(load_document(path))
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{path}:")
    return message.removeprefix(f"{path}:")


def lines_of(text: str, at: str) -> list[int]:
    """The numbers of the lines that begin so."""
    lines = enumerate(text.splitlines(), 1)
    return [number for number, line in lines if f"{line.strip()}\n".startswith(at)]


def assert_told(tmp_path: Path, small: str, mistake: Mistake) -> None:
    """See a mistake told with its place."""
    old, new, at, says = mistake
    assert small.count(old) == 1
    text = small.replace(old, new)
    line, _, message = error_of(tmp_path, text).partition(":")
    assert int(line) in lines_of(text, at), message
    assert says in message
