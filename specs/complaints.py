"""What a failed validation says to the person who wrote the file, and where in it."""

from __future__ import annotations

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from specs.yaml_source import Location, Source


def telling(error: ValidationError) -> ErrorDetails:
    """The complaint that helps most: our own words first, then the deepest."""

    def weight(detail: ErrorDetails) -> tuple[int, int]:
        ranks = {"value_error": 2, "too_short": 2, "too_long": 2, "extra_forbidden": 1}
        return ranks.get(detail["type"], 0), len(detail["loc"])

    return max(error.errors(), key=weight)


def explained(
    source: Source, error: ValidationError, within: Location = ()
) -> tuple[Location, str]:
    """Where the telling complaint is about, from where the validated part begins, and its words."""
    detail = telling(error)
    location = within
    for part in detail["loc"]:
        if (*location, part) in source.lines:
            location = (*location, part)
    message = detail["msg"].removeprefix("Value error, ")
    if detail["type"] == "missing":
        message = f"`{detail['loc'][-1]}` is missing"
    if detail["type"] == "extra_forbidden":
        message = f"unknown word `{detail['loc'][-1]}`"
    return location, message
