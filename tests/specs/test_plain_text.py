"""Texts from outside are made safe to show, and stay readable."""

from __future__ import annotations

import json
from html import unescape

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

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

GFM = ["strikethrough", "table"]
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


MARKS = st.text(st.sampled_from("\\`*_{}[]<>()#+-=!|~&;:^. ab1/@'\""), min_size=1, max_size=14)


@settings(max_examples=1_000)
@given(MARKS)
@example("1000. one")
@example("__name__ [a](b) &lt; <b@c> ![")
def test_markdown_shows_an_escaped_text_as_it_is(text: str) -> None:
    """As a paragraph, an item of a list and a line of one, by a renderer of its own."""
    line = " ".join(text.split())
    assume(line)
    escaped, render = escape_markdown(text), MarkdownIt("commonmark").enable(GFM).render
    assert unescape(render(escaped)) == f"<p>{line}</p>\n"
    assert unescape(render(f"- {escaped}")) == f"<ul>\n<li>{line}</li>\n</ul>\n"
    assert unescape(render(f"- x\n  {escaped}")) == f"<ul>\n<li>x\n{line}</li>\n</ul>\n"


def test_what_markdown_does_not_interpret_stays_readable() -> None:
    for text in (
        "0x3c08 (1.0078125) gives 0x3f80 (1), not {1, 2}",
        "shape (3, 4), [0, 1], float8_e4m3fn, a < b & c > -1!",
        "float32 NaN to int8 (answer: -128) #7 + 2 = 3",
    ):
        assert escape_markdown(text) == text


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
