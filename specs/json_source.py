"""Parses JSON that others wrote, of limited size and depth."""

from __future__ import annotations

import json
from typing import Any

MAX_BYTES, MAX_DEPTH = 1 << 28, 100
"""Limits of a file; a certificate of 13,000 cases has 1.3 MB and 8 levels."""


class JsonError(Exception):
    """The text is not JSON, too large or too deep; the message is a predicate of the file."""


def parse_json(data: bytes) -> Any:
    """Parse a file's content; raise JsonError if it is not JSON in UTF-8, or beyond the limits."""
    if len(data) > MAX_BYTES:
        raise JsonError(f"has more than {MAX_BYTES >> 20} MiB")
    try:
        content = json.loads(data.decode())
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
