"""Canonical JSON: equal content has equal bytes, and any other bytes are rejected."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from specs.errors import CastigateError
from specs.json_source import JsonError, parse_json


def canonical_bytes(content: Any) -> bytes:
    """Return content as JSON in ASCII with sorted keys; raise CastigateError if it has a float."""
    _reject_floats(content)
    text = json.dumps(content, sort_keys=True, indent=1, ensure_ascii=True, allow_nan=False)
    return f"{text}\n".encode("ascii")


def digest_of(content: Any) -> str:
    """Return the sha256 of content's canonical bytes in hex; raise CastigateError for a float."""
    return sha256(canonical_bytes(content)).hexdigest()


def read_canonical(data: bytes, named: str) -> dict[str, Any]:
    """Parse the canonical JSON of one object; raise CastigateError for any other bytes.

    ``named`` is the file of the bytes, which the error names.
    """
    try:
        content = parse_json(data)
    except JsonError as error:
        raise CastigateError(
            f"{named} {error}: it was cut short or altered; get the original file"
        ) from None
    if not isinstance(content, dict):
        raise CastigateError(f"{named} is not a certificate: it is not a JSON object")
    if canonical_bytes(content) != data:
        raise CastigateError(
            f"{named} was altered: its bytes are not those that castigate writes for its content"
        )
    return content


def _reject_floats(content: Any) -> None:
    match content:
        case float():
            raise CastigateError(f"`{content}` is a float, and certificates never hold floats")
        case dict():
            for each in content.values():
                _reject_floats(each)
        case list() | tuple():
            for each in content:
                _reject_floats(each)
