"""A pydantic model that converts nothing, and the error to show if a file does not fit a model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from specs.errors import Location, did_you_mean, quoted
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
    key, given = _key_of(location), detail["input"]
    if key and message.startswith(SHOULD_BE) and isinstance(given, str | int | float):
        should_be = message.removeprefix(SHOULD_BE)
        return location, f"{quoted(key)} is {quoted(str(given))}, and must be {should_be}"
    if detail["type"] == "missing":
        message = f"{quoted(str(detail['loc'][-1]))} is missing"
    elif detail["type"] == "extra_forbidden":
        key = str(detail["loc"][-1])
        hint = did_you_mean(key, _keys_beside(file, location))
        message = f"unknown key {quoted(key)}{f'; {hint.rstrip()}' if hint else ''}"
    elif detail["type"] != "value_error" and (key := _key_of(location)):
        message = f"{quoted(key)}: {message}"
    return location, message


def _key_of(location: Location) -> str:
    return next((each for each in reversed(location) if isinstance(each, str)), "")


def _keys_beside(file: YamlFile, location: Location) -> set[str]:
    """Return the keys that may stand beside those in the mapping to which an unknown key belongs.

    They are those of the model that has most of the mapping's keys.
    """
    data = file.data
    for step in location[:-1]:
        data = data[step]
    mapping = frozenset[str](data)
    models = [
        {field.alias or name for name, field in each.model_fields.items()}
        for each in _every_model(StrictModel)
    ]
    return max(models, key=lambda keys: len(keys & mapping)) - mapping


def _every_model(model: type[StrictModel]) -> Iterator[type[StrictModel]]:
    yield model
    for each in model.__subclasses__():
        yield from _every_model(each)


class StrictModel(BaseModel):
    """A model that refuses unknown keys and values of another type, and cannot be changed.

    A text is no number, a boolean no integer, and an integer no boolean.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


Model = TypeVar("Model", bound=StrictModel)


def validated(model: type[Model], file: YamlFile) -> Model:
    """Return the content of a file as a model; raise DocumentError if it is none."""
    try:
        return model.model_validate(file.data)
    except ValidationError as error:
        raise file.error(*explain_validation_error(file, error)) from None


def as_list(value: object) -> object:
    """Put a value that is no list into one; for BeforeValidator."""
    return value if isinstance(value, list) else [value]


def as_mapping(value: object) -> object:
    """Write a word as the mapping ``{"is": word}``, for which it is short; for BeforeValidator."""
    return {"is": value} if isinstance(value, str) else value
