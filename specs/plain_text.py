r"""Makes texts from outside safe to show: on terminals, in Markdown, in spreadsheets and in XML.

Names, versions, messages and answers come from frameworks, programs and files. They may hold escape
sequences of terminals, line ends, marks that reverse the order of letters, and lone surrogates,
which no stream accepts. All of these become escapes such as ``\u001b``, as JSON writes them.
"""

from __future__ import annotations

import re

LONGEST_LINE = 1_000
"""The most characters of a text that is shown on one line."""
UNSAFE = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but tab and line feed
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # direction of writing
    "\u2028\u2029\ufffe\uffff"  # line separators, and characters that XML cannot hold
    "\ud800-\udfff"
    "]"
)
MARKUP = re.compile(
    r"""
    \\(?=[!-/:-@\[-`{-~]|$)                # would escape what follows
    | [`*|~]
    | (?<![^\W_])_ | _(?![^\W_])           # within a word it is one of its letters
    | \[(?=[^\[]*\][(:\[]) | \](?=[(:\[])  # links
    | <(?=\S)                             # tags and addresses
    | &(?=\#?\w+;)                         # character references
    | ^(?: \#(?=\#*(?:\s|$)) | > | [+](?=\s|$) | -(?=[-\s]|$) | =(?==*$) )  # blocks
    """,
    re.VERBOSE,
)
"""Matches what Markdown interprets where it stands: elsewhere the same characters stay."""
NUMBER_OF_LIST = re.compile(r"^(\d{1,9})([.)])(?=\s|$)")
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters that make a spreadsheet evaluate a text."""


def plain_text(text: str) -> str:
    """Escape characters that are unsafe for terminals, encoders or XML parsers; keep the lines."""
    return UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def plain_line(text: str, longest: int = LONGEST_LINE) -> str:
    """Join a text's words by spaces, escape them, and cut out the middle beyond ``longest``."""
    line = plain_text(" ".join(text.split()))
    if len(line) <= longest:
        return line
    # The end stays, because there an error says what to do.
    end = longest // 3
    return f"{line[: longest - end - 1].rstrip()}…{line[-end:].lstrip()}"


def is_plain(text: str) -> bool:
    """Return whether a text is one line without anything that needs an escape."""
    return "\n" not in text and not UNSAFE.search(text)


def escape_markdown(text: str) -> str:
    """Join a text's words by spaces; escape unsafe characters, and what is markup for Markdown."""
    escaped = MARKUP.sub(r"\\\g<0>", plain_text(" ".join(text.split())))
    return NUMBER_OF_LIST.sub(r"\1\\\2", escaped)


def escape_formula(text: str) -> str:
    """Put a quote before a text that a spreadsheet would evaluate, and escape unsafe characters."""
    return plain_text(f"'{text}" if text.startswith(FORMULA) else text)
