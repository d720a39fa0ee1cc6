"""Helpers that put one mistake into a valid document and check the error that linting reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from specs.errors import DocumentError
from specs.lint import prove
from specs.loader import load_document

Mistake = tuple[str, str, str, str]
"""A text in the document, its replacement, how the reported line begins, and part of the error."""


def lint_error(tmp_path: Path, text: str) -> str:
    """The error of linting a document's text, from the line number on; it must be one line."""
    path = tmp_path / "broken.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DocumentError) as caught:
        prove(load_document(path))
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{path}:")
    return message.removeprefix(f"{path}:")


def lines_starting(text: str, start: str) -> list[int]:
    """The numbers of the lines that begin with a text, leading white space aside."""
    lines = enumerate(text.splitlines(), 1)
    return [number for number, line in lines if f"{line.strip()}\n".startswith(start)]


def assert_reported(tmp_path: Path, document: str, mistake: Mistake, prefix: str = "") -> None:
    """Make a mistake in a document and check the line, the prefix and the text of its error."""
    old, new, line_start, expected = mistake
    assert document.count(old) == 1, f"{old!r} must occur once in the document"
    text = document.replace(old, new)
    message = lint_error(tmp_path, text)
    assert message.startswith(f"{lines_starting(text, line_start)[0]}: {prefix}")
    assert expected in message
