"""A pydantic model that converts nothing, and the error to show for one that a file fails."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from specs.errors import Location, quoted
from specs.model.yaml_file import YamlFile

SHOULD_BE = "Input should be "
"""The beginning of pydantic's message for a value that is not allowed."""


def most_helpful_error(error: ValidationError) -> ErrorDetails:
    """Return the one of pydantic's errors to show.

    Errors of our own validators and of the lengths of lists come first, then unknown keys, then all
    others; among equals, the deepest in the file.
    """

    def rank(detail: ErrorDetails) -> tuple[int, int]:
        ranks = {"value_error": 2, "too_short": 2, "too_long": 2, "extra_forbidden": 1}
        return ranks.get(detail["type"], 0), len(detail["loc"])

    return max(error.errors(), key=rank)


def explain_validation_error(
    file: YamlFile, error: ValidationError, start: Location = ()
) -> tuple[Location, str]:
    """Return the location and the message of pydantic's most helpful error.

    ``start`` is the location of the part that was validated, from the top of the file.
    """
    detail = most_helpful_error(error)
    location = start
    for key in detail["loc"]:
        if (*location, key) in file.lines:
            location = (*location, key)
    message = detail["msg"].removeprefix("Value error, ")
    key = next((each for each in reversed(location) if isinstance(each, str)), "")
    given = detail["input"]
    if key and message.startswith(SHOULD_BE) and isinstance(given, str | int | float):
        should_be = message.removeprefix(SHOULD_BE)
        message = f"{quoted(key)} is {quoted(str(given))}, and must be {should_be}"
    if detail["type"] == "missing":
        message = f"{quoted(str(detail['loc'][-1]))} is missing"
    if detail["type"] == "extra_forbidden":
        message = f"unknown key {quoted(str(detail['loc'][-1]))}"
    return location, message


class StrictModel(BaseModel):
    """A model that refuses unknown keys and values of another type, and cannot be changed.

    A text is no number, a boolean no integer, and an integer no boolean.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
