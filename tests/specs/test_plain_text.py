"""Texts from outside are made safe to show, and stay readable."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from specs.errors import CastigateError
from specs.plain_text import (
    LONGEST_LINE,
    UNSAFE,
    escape_formula,
    escape_markdown,
    is_plain,
    plain_line,
    plain_text,
)

TEXTS = st.text(st.characters(codec=None), max_size=50)


def test_an_ordinary_text_stays_as_it_is() -> None:
    text = "raises ValueError: `é ∞` is no number\n\tsee the log 🙂"
    assert plain_text(text) == text
    assert plain_line("one line") == "one line"


def test_escape_sequences_and_lone_surrogates_are_written_out() -> None:
    assert plain_text("\x1b[31m\x9b\0\r\ud800") == r"\u001b[31m\u009b\u0000\u000d\ud800"


@given(TEXTS)
def test_whatever_comes_is_text(text: str) -> None:
    for shown in (plain_text(text), plain_line(text), escape_markdown(text), escape_formula(text)):
        assert not UNSAFE.search(shown)
        shown.encode()
    assert is_plain(plain_line(text))


@given(TEXTS)
def test_json_stays_the_same_json(text: str) -> None:
    encoded = json.dumps(text, ensure_ascii=False)
    assert json.loads(plain_text(encoded)) == text


def test_a_long_line_keeps_its_start_and_its_end() -> None:
    line = plain_line(f"start {'x' * 5_000} end")
    assert len(line) == LONGEST_LINE
    assert line.startswith("start x")
    assert line.endswith("x end")


def test_an_error_is_one_line_of_limited_length() -> None:
    message = str(CastigateError(f"key `\x1b{'k' * 2_000_000}\n` is unknown; rename it"))
    assert len(message) == LONGEST_LINE
    assert message.startswith("key `\\u001bkkk")
    assert message.endswith("is unknown; rename it")
