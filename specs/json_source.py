"""Parses JSON that others wrote, of limited size and depth."""

from __future__ import annotations

import json
from typing import Any

from specs.plain_text import plain_line

MAX_BYTES, MAX_DEPTH = 1 << 28, 100
"""Limits of a file; a certificate of 13,000 cases has 1.3 MB and 8 levels."""


SHOWN = 40
"""The most characters of a key that an error quotes."""


class JsonError(Exception):
    """A text is not JSON, too large or too deep; the message is to stand after the file's name."""


def unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make a dict of the members of a JSON object; raise JsonError if two of them have one key."""
    members = dict(pairs)
    if len(members) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for index, key in enumerate(keys) if key in keys[:index])
        raise JsonError(f"has the key `{plain_line(twice, SHOWN)}` twice")
    return members


def refuse_constant(word: str) -> Any:
    """Raise JsonError for NaN and infinities, which Python reads though JSON lacks them."""
    raise JsonError(f"is not JSON: `{word}` is no value of JSON")


def load_json(text: str) -> Any:
    """Parse JSON as ``json.loads`` does; raise JsonError for NaN, infinity and repeated keys."""
    return json.loads(text, object_pairs_hook=unique_members, parse_constant=refuse_constant)


def parse_json(data: bytes) -> Any:
    """Parse a file's content; raise JsonError if it is not JSON in UTF-8, or exceeds the limits."""
    if len(data) > MAX_BYTES:
        raise JsonError(f"has more than {MAX_BYTES >> 20} MiB")
    try:
        content = load_json(data.decode())
    except RecursionError:
        raise JsonError(f"is nested more than {MAX_DEPTH} levels deep") from None
    except ValueError:
        raise JsonError("is not JSON") from None
    level = [content]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in _children(node)]
        if not level:
            return content
    raise JsonError(f"is nested more than {MAX_DEPTH} levels deep")


def _children(node: Any) -> Any:
    match node:
        case dict():
            return node.values()
        case list():
            return node
    return ()
