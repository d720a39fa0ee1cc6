"""Behaviors: named closed forms of what oracles answer, read from ``behaviors.yaml``."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Field, ValidationError, model_validator

from specs.errors import Location, did_you_mean
from specs.formats import Format, Kind, format_named, formats
from specs.model.strict_model import StrictModel, explain_validation_error, most_helpful_error
from specs.model.vocabulary import Rounding
from specs.model.yaml_file import YamlFile, read_yaml

BEHAVIORS_FILE = Path(__file__).with_name("behaviors.yaml")
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")

RoundingStep = Literal["truncate", "floor", "ceil", "round-half-even", "round-half-away"]
PatternStep = Literal["flush-subnormals", "drop-sign"]
LastStep = Literal["low-bits", "saturate", "to-infinity", "to-nan", "nonzero", "any-bit"]
Constant = Literal[
    "zero", "minus-zero", "one", "smallest", "minimum", "maximum", "infinity", "minus-infinity",
    "nan",
]  # fmt: skip
Sentinel = Literal["minimum", "maximum", "zero", "nearest", "low-bits"]

ROUNDING_STEPS: dict[RoundingStep, Rounding] = {
    "truncate": "toward-zero",
    "floor": "floor",
    "ceil": "ceil",
    "round-half-even": "nearest-even",
    "round-half-away": "nearest-away",
}
LAST_STEPS = get_args(LastStep)
NOT_ROUNDING = ("nonzero", "any-bit")
"""The last steps that do not round."""


def _dtype(name: str) -> Format:
    if name not in formats():
        raise ValueError(f"unknown dtype `{name}`; {did_you_mean(name, formats())}".rstrip("; "))
    return formats()[name]


def _check_integer(name: str) -> str:
    if _dtype(name).kind != "integer":
        raise ValueError(f"`{name}` is no integer dtype")
    return name


def _check_has_infinity(name: str) -> str:
    if not _dtype(name).entry.infinity:
        raise ValueError(f"`{name}` has no infinity for values that overflow; use a float that has")
    return name


class Via(StrictModel):
    """The step that rounds to another float format: to nearest even, infinity beyond its range.

    With ``subnormals: flushed``, a value that is below the format's smallest normal one becomes a
    zero of its sign; before that it is rounded as if the exponents went on below.
    """

    via: Annotated[str, AfterValidator(_check_has_infinity)]
    subnormals: Literal["kept", "flushed"] = "kept"


class Into(StrictModel):
    """The step that converts the rounded value to an integer format.

    Values above and below its range, and NaN, become the sentinels ``above``, ``below`` and
    ``nan``. With ``up-to``, another integer format of the same width, the range extends up to the
    largest value of that format. With ``fits: unrounded``, the value must be in range before it is
    rounded.
    """

    into: Annotated[str, AfterValidator(_check_integer)]
    up_to: Annotated[str, AfterValidator(_check_integer)] | None = Field(None, alias="up-to")
    fits: Literal["rounded", "unrounded"] = "rounded"
    above: Sentinel
    below: Sentinel
    nan: Sentinel

    @model_validator(mode="after")
    def _check(self) -> Into:
        if self.nan in ("nearest", "low-bits"):
            raise ValueError(f"a NaN has no `{self.nan}`; write minimum, maximum or zero")
        if self.up_to and format_named(self.up_to).bits != format_named(self.into).bits:
            raise ValueError(
                f"`{self.up_to}` has not the width of `{self.into}`; both must have the same"
            )
        return self


class NanAnswer(StrictModel):
    """The step that replaces the answer to a NaN input by a constant of the target."""

    nan: Constant


class ConstantAnswer(StrictModel):
    """The step that answers every input with the same constant of the target."""

    answer: Constant


BehaviorStep = RoundingStep | PatternStep | LastStep | Via | Into | NanAnswer | ConstantAnswer


class Behavior(StrictModel):
    """One behavior: its sentence, the kinds of source and target that it is for, and its steps.

    The steps are in the order in which they apply.
    """

    name: str
    says: str
    from_: Annotated[tuple[Kind, ...], Field(alias="from", strict=False)]
    to: Annotated[tuple[Kind, ...], Field(strict=False)]
    steps: Annotated[tuple[BehaviorStep, ...], Field(strict=False)]

    @model_validator(mode="after")
    def _check(self) -> Behavior:
        if not NAME.fullmatch(self.name):
            raise ValueError(f"`{self.name}`: a name is lower-case words joined by `-`")
        if not self.says or "\n" in self.says or self.says.endswith("."):
            raise ValueError(
                "`says` is part of a sentence: one line, without a full stop at the end"
            )
        answering = [index for index, step in enumerate(self.steps) if is_last(step)]
        if len(answering) != 1:
            words = ", ".join(LAST_STEPS)
            raise ValueError(f"exactly one step makes the answer: `answer: …`, {words}")
        [last] = answering
        for index, step in enumerate(self.steps):
            if index > last and not (step == "flush-subnormals" or isinstance(step, NanAnswer)):
                raise ValueError(
                    "after the answer only `nan: …` and `flush-subnormals` are allowed"
                )
            if index < last and isinstance(step, NanAnswer):
                raise ValueError("`nan: …` stands after the step that makes the answer; move it")
            rounds = isinstance(step, Into) or (step in LAST_STEPS and step not in NOT_ROUNDING)
            if rounds and not set(self.steps[:index]) & set(ROUNDING_STEPS):
                words = ", ".join(ROUNDING_STEPS)
                raise ValueError(f"it is not said how it rounds: add one of {words}")
        return self

    @property
    def silent_about(self) -> frozenset[str]:
        """Those of the inputs `nan` and `infinity` to which the behavior gives no answer."""
        if any(isinstance(step, Into | ConstantAnswer) for step in self.steps):
            return frozenset()
        silent = {"low-bits": {"nan", "infinity"}, "saturate": {"nan"}}
        words = [step for step in self.steps if isinstance(step, str)]
        found = {kind for word in words for kind in silent.get(word, ())}
        return frozenset(found - {"nan" for step in self.steps if isinstance(step, NanAnswer)})

    @property
    def on_the_way(self) -> tuple[str, ...]:
        """The names of the formats that values go through before the target, also of ``up-to``."""
        ways = ((step.into, step.up_to) for step in self.steps if isinstance(step, Into))
        floats = (step.via for step in self.steps if isinstance(step, Via))
        return (*(name for pair in ways for name in pair if name is not None), *floats)


def is_last(step: BehaviorStep) -> bool:
    """Return whether a step makes the answer: steps after it only replace some answers."""
    return isinstance(step, ConstantAnswer) or step in LAST_STEPS


@cache
def behaviors() -> dict[str, Behavior]:
    """Return the shipped behaviors by name, the simplest first."""
    return load_behaviors(BEHAVIORS_FILE)


@cache
def reductions() -> dict[str, Behavior]:
    """Return behaviors that round to a format of IEEE 754's kind before the target, by name.

    There are two for each such format: ``via-FORMAT`` keeps subnormals, and ``via-FORMAT-flushed``
    flushes them.
    """
    result: dict[str, Behavior] = {}
    for name, fmt in formats().items():
        if fmt.kind == "float" and fmt.entry.nan == "ieee" and fmt.entry.infinity:
            rounds = (
                f"rounds to {name}, to nearest, ties to even, and gives infinity beyond the range"
            )
            for suffix, subnormals, says in (
                ("", "kept", rounds),
                ("-flushed", "flushed", f"{rounds}, and zero below the smallest normal value"),
            ):
                steps = ({"via": name, "subnormals": subnormals}, "round-half-even", "to-infinity")
                fields = {"says": says, "from": ["float"], "to": ["float"], "steps": steps}
                word = f"via-{name}{suffix}"
                result[word] = Behavior.model_validate({**fields, "name": word})
    return result


def behavior_named(name: str) -> Behavior:
    """Return the shipped behavior or reduction with a name; raise KeyError if none has it."""
    return behaviors().get(name) or reductions()[name]


def load_behaviors(path: Path) -> dict[str, Behavior]:
    """Load and check a file of behaviors, and return them by name.

    Raise DocumentError with file, line and behavior if one is invalid.
    """
    file = read_yaml(path)
    if not isinstance(file.data, dict):
        raise file.error((), "a file of behaviors maps names to forms: begin with `NAME:`")
    result: dict[str, Behavior] = {}
    names: dict[tuple[object, ...], str] = {}
    for name, fields in file.data.items():
        try:
            behavior = Behavior.model_validate({**(fields or {}), "name": name})
        except TypeError:
            message = f"{name}: a form is a mapping with says, from, to and steps"
            raise file.error((name,), message) from None
        except ValidationError as error:
            location, message = _explain(file, name, error)
            raise file.error(location, f"{name}: {message}") from None
        content = (behavior.from_, behavior.to, behavior.steps)
        if content in names:
            message = f"{name}: `{names[content]}` has the same steps; delete one of the two"
            raise file.error((name,), message)
        names[content] = name
        result[name] = behavior
    return result


def _explain(file: YamlFile, name: str, error: ValidationError) -> tuple[Location, str]:
    """Return location and message of the most helpful error; suggest a step for an unknown one."""
    location, message = explain_validation_error(file, error, (name,))
    is_step = len(location) > 2 and location[1] == "steps"
    if is_step and most_helpful_error(error)["type"] not in ("value_error", "missing"):
        step = file.data[name]["steps"][location[2]]
        words = [*ROUNDING_STEPS, *get_args(PatternStep), *LAST_STEPS]
        hint = did_you_mean(step, words) if isinstance(step, str) else ""
        message = (
            f"`{step}` is no step; {hint}a step is one of {', '.join(words)}, or a mapping that"
            " begins with via, into, nan or answer"
        )
    return location, message
