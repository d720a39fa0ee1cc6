"""JSON in one form only: the same content has the same bytes, and no other bytes are taken."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from specs.errors import CastigateError


def canonical(content: Any) -> bytes:
    """The bytes of a content: keys sorted, one blank of indentation, ASCII, no floats."""
    _refuse_floats(content)
    text = json.dumps(content, sort_keys=True, indent=1, ensure_ascii=True, allow_nan=False)
    return f"{text}\n".encode("ascii")


def digest_of(content: Any) -> str:
    """The sha256 of a content's bytes."""
    return sha256(canonical(content)).hexdigest()


def read_canonical(data: bytes, named: str) -> dict[str, Any]:
    """The mapping whose bytes these are, or an error; another spelling of it is an error too."""
    try:
        content = json.loads(data.decode("ascii"))
    except (ValueError, RecursionError):
        raise CastigateError(f"{named} is cut short or altered: it is not JSON in ASCII") from None
    if not isinstance(content, dict):
        raise CastigateError(f"{named} is no certificate: it is not a JSON object")
    if canonical(content) != data:
        raise CastigateError(
            f"{named} is altered: its bytes are not those that castigate writes for its content"
        )
    return content


def _refuse_floats(content: Any) -> None:
    match content:
        case float():
            raise CastigateError(f"`{content}` is a float, which a certificate never holds")
        case dict():
            for each in content.values():
                _refuse_floats(each)
        case list() | tuple():
            for each in content:
                _refuse_floats(each)
