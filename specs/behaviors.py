"""Named closed forms of what oracles do on open inputs, read from ``behaviours.yaml``."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from specs.formats import Format, Kind, format_named, formats
from specs.model.vocabulary import Rounding
from specs.model.yaml_source import Location, Source, explained, read_yaml, telling
from specs.suggestions import nearest

BEHAVIOURS_FILE = Path(__file__).with_name("behaviours.yaml")
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")

RoundingStep = Literal["truncate", "floor", "ceil", "round-half-even", "round-half-away"]
PatternStep = Literal["flush-subnormals", "drop-sign"]
LastStep = Literal["low-bits", "saturate", "to-infinity", "to-nan", "nonzero"]
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


def _dtype(name: str) -> Format:
    if name not in formats():
        raise ValueError(f"unknown dtype `{name}`; {nearest(name, formats())}".rstrip("; "))
    return formats()[name]


def _integer(name: str) -> str:
    if _dtype(name).kind != "integer":
        raise ValueError(f"`{name}` is no integer")
    return name


def _with_infinity(name: str) -> str:
    if not _dtype(name).entry.infinity:
        raise ValueError(f"`{name}` has no infinity for what overflows on the way")
    return name


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Via(_Entry):
    """The value goes through another float first: nearest even, infinity beyond it."""

    via: Annotated[str, AfterValidator(_with_infinity)]


class Into(_Entry):
    """The rounded value goes into an integer; what does not fit becomes a sentinel of it.

    With ``up-to``, another integer of the same width, what fits goes on to the largest of that one.
    With ``fits: unrounded``, the value must lie in the range before it is rounded.
    """

    into: Annotated[str, AfterValidator(_integer)]
    up_to: Annotated[str, AfterValidator(_integer)] | None = Field(None, alias="up-to")
    fits: Literal["rounded", "unrounded"] = "rounded"
    above: Sentinel
    below: Sentinel
    nan: Sentinel

    @model_validator(mode="after")
    def _check(self) -> Into:
        if self.nan in ("nearest", "low-bits"):
            raise ValueError(f"a NaN has no `{self.nan}`; say minimum, maximum or zero")
        if self.up_to and format_named(self.up_to).bits != format_named(self.into).bits:
            raise ValueError(f"`{self.up_to}` has not the width of `{self.into}`")
        return self


class Nan(_Entry):
    """What becomes of a NaN, whatever the other steps make of it."""

    nan: Constant


class Answer(_Entry):
    """One pattern of the target, whatever the input."""

    answer: Constant


Step = RoundingStep | PatternStep | LastStep | Via | Into | Nan | Answer


class Behaviour(_Entry):
    """One closed form: a sentence, the kinds of pair it speaks of, and its steps in their order."""

    name: str
    says: str
    from_: tuple[Kind, ...] = Field(alias="from")
    to: tuple[Kind, ...]
    steps: tuple[Step, ...]

    @model_validator(mode="after")
    def _check(self) -> Behaviour:
        if not NAME.fullmatch(self.name):
            raise ValueError("a name is lower-case words joined by `-`")
        if not self.says or "\n" in self.says or self.says.endswith("."):
            raise ValueError("`says` is one line that goes into a sentence, without a full stop")
        ends = [at for at, step in enumerate(self.steps) if is_last(step)]
        if len(ends) != 1:
            words = ", ".join(LAST_STEPS)
            raise ValueError(f"exactly one step makes the answer: `answer: …`, {words}")
        for at, step in enumerate(self.steps):
            if at > ends[0] and not (step == "flush-subnormals" or isinstance(step, Nan)):
                raise ValueError("after the answer only `nan: …` and `flush-subnormals` may stand")
            if at < ends[0] and isinstance(step, Nan):
                raise ValueError("`nan: …` stands after the step that makes the answer")
            rounds = isinstance(step, Into) or step in LAST_STEPS
            if rounds and step != "nonzero" and not set(self.steps[:at]) & set(ROUNDING_STEPS):
                words = ", ".join(ROUNDING_STEPS)
                raise ValueError(f"it is not said how it rounds: {words}")
        return self


def is_last(step: Step) -> bool:
    """Whether a step makes a pattern of the target."""
    return isinstance(step, Answer) or step in LAST_STEPS


@cache
def behaviours() -> dict[str, Behaviour]:
    """The shipped forms by name, the simplest first."""
    return load_behaviours(BEHAVIOURS_FILE)


def load_behaviours(path: Path) -> dict[str, Behaviour]:
    """Read and check a file of forms, or raise an error that names file, line and form."""
    source = read_yaml(path)
    if not isinstance(source.data, dict):
        raise source.error((), "a file of behaviours maps names to forms")
    result: dict[str, Behaviour] = {}
    steps: dict[tuple[object, ...], str] = {}
    for name, fields in source.data.items():
        try:
            form = Behaviour.model_validate({**(fields or {}), "name": name})
        except (ValidationError, TypeError) as error:
            location, message = _explain(source, name, error)
            raise source.error(location, f"{name}: {message}") from None
        meaning = (form.from_, form.to, form.steps)
        if meaning in steps:
            raise source.error((name,), f"{name}: `{steps[meaning]}` has the same steps")
        steps[meaning] = name
        result[name] = form
    return result


def _explain(source: Source, name: str, error: ValidationError | TypeError) -> tuple[Location, str]:
    """Where the first complaint is about, and what it says."""
    if isinstance(error, TypeError):
        return (name,), "a form is a mapping with says, from, to and steps"
    location, message = explained(source, error, (name,))
    is_step = len(location) > 2 and location[1] == "steps"
    if is_step and telling(error)["type"] not in ("value_error", "missing"):
        given = source.data[name]["steps"][location[2]]
        words = [*ROUNDING_STEPS, *get_args(PatternStep), *LAST_STEPS]
        hint = nearest(given, words) if isinstance(given, str) else ""
        message = f"`{given}` is no step; {hint}a step is one of {', '.join(words)}, or a"
        message += " mapping that begins with via, into, nan or answer"
    return location, message
