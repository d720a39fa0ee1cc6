"""Rules about quantization: the steps of a formula, and the combinations that are cases.

The value of an element goes from step to step. At each step it is in one of a few situations, and
a rule gives one or more words that say how the step treats it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, Field, model_validator

from specs.formats import formats
from specs.model.page_lines import PointedEntry
from specs.model.strict_model import StrictModel, as_list, as_mapping
from specs.model.vocabulary import FORM, PRECISION, SATURATE, SCALE, Form, Level

FormulaStep = Literal[
    "scale", "input", "quotient", "rounding", "zero-point", "saturation", "difference", "product",
    "range", "dynamic-scale", "dynamic-zero-point",
]  # fmt: skip
"""The steps of the formulas, in their order within each."""
Situation = Literal[
    "positive", "negative", "zero", "infinite", "nan", "finite",
    "exact", "inexact", "out-of-range", "in-range",
    "whole", "fraction", "none", "other",
]  # fmt: skip
StepWord = Literal[
    "used", "value", "exact", "nearest-even", "of-rounded-operands", "neighbor", "added",
    "subtracted", "saturated", "cast", "max", "unspecified",
]  # fmt: skip
"""How a step treats a value; ``docs/quantization.md`` defines each word."""
MODES: Mapping[str, tuple[str, ...]] = {
    SCALE: tuple(formats()),
    FORM: get_args(Form),
    SATURATE: ("1", "0"),
    PRECISION: tuple(formats()),
}
"""The modes that rules can ask about, with their values."""
OPEN: StepWord = "unspecified"
SCALES: tuple[Situation, ...] = ("positive", "negative", "zero", "infinite", "nan")
SPECIALS: tuple[Situation, ...] = ("finite", "infinite", "nan")
ZERO_POINTS: tuple[Situation, ...] = ("none", "zero", "exact", "other")
"""`exact`: it is not 0, and the precision holds it, the other operand and the result exactly."""

SITUATIONS: Mapping[FormulaStep, tuple[Situation, ...]] = {
    "scale": SCALES,
    "input": SPECIALS,
    "quotient": ("exact", "inexact", "out-of-range", "infinite", "nan"),
    "rounding": ("whole", "fraction"),
    "zero-point": ZERO_POINTS,
    "saturation": ("in-range", "out-of-range", "infinite", "nan"),
    "difference": ZERO_POINTS,
    "product": ("exact", "inexact", "out-of-range"),
    "range": ("finite", "zero", "infinite", "nan", "out-of-range"),
    "dynamic-scale": ("exact", "inexact"),
    "dynamic-zero-point": ("whole", "fraction"),
}
"""The situations in which a value can be at each step."""
WORDS: Mapping[FormulaStep, tuple[StepWord, ...]] = {
    "scale": ("used", OPEN),
    "input": ("used", OPEN),
    "quotient": ("value", "exact", "nearest-even", "of-rounded-operands", "neighbor", OPEN),
    "rounding": ("value", "nearest-even"),
    "zero-point": ("added", OPEN),
    "saturation": ("value", "nearest-even", "saturated", "cast", "max", OPEN),
    "difference": ("subtracted", OPEN),
    "product": ("value", "nearest-even", "of-rounded-operands", "neighbor", OPEN),
    "range": ("used", OPEN),
    "dynamic-scale": ("value", "nearest-even", "of-rounded-operands", "neighbor"),
    "dynamic-zero-point": ("value", "nearest-even"),
}
"""The words that a rule can give at each step."""
STEPS: Mapping[str, tuple[FormulaStep, ...]] = {
    "quantize": ("scale", "quotient", "rounding", "zero-point", "saturation"),
    "dequantize": ("scale", "input", "difference", "product"),
    "dynamic-quantize": (
        "range", "dynamic-scale", "dynamic-zero-point", "quotient", "rounding", "zero-point",
        "saturation",
    ),
}  # fmt: skip
"""The steps of each operation."""


class StepOutcomeEntry(PointedEntry):
    """The outcome of a step: one word, or several words that are all allowed.

    ``and-recommended`` names those among several that are recommended. A level, a clause or lines
    given here replace those of the rule.
    """

    is_: StepWord | None = Field(None, alias="is")
    either: Annotated[list[StepWord], Field(min_length=2)] | None = None
    and_recommended: list[StepWord] = Field([], alias="and-recommended")
    level: Level | None = None
    clause: str | None = None

    @model_validator(mode="after")
    def _some_words(self) -> StepOutcomeEntry:
        if (self.is_ is None) == (self.either is None):
            raise ValueError("an outcome has either `is` or a list `either`")
        if not {*self.and_recommended} <= {*self.words}:
            raise ValueError("`and-recommended` names some of the words of `either`")
        if "neighbor" in self.words and "nearest-even" not in self.words:
            raise ValueError("`neighbor` stands beside `nearest-even`, which is one of the two")
        return self

    @property
    def words(self) -> tuple[StepWord, ...]:
        """The words that are allowed."""
        return (self.is_,) if self.is_ is not None else tuple(self.either or ())


StepAnswers = dict[
    Situation,
    Annotated[
        StepOutcomeEntry,
        BeforeValidator(as_mapping, json_schema_input_type=StepWord | StepOutcomeEntry),
    ],
]


def check_answers(step: FormulaStep, answers: StepAnswers) -> None:
    """Raise ValueError if a rule names a situation or word that its step does not have."""
    for situation, outcome in answers.items():
        if situation not in SITUATIONS[step]:
            known = ", ".join(SITUATIONS[step])
            raise ValueError(f"`{situation}` is no situation of `{step}`; they are {known}")
        for word in outcome.words:
            if word not in WORDS[step]:
                known = ", ".join(WORDS[step])
                raise ValueError(f"`{word}` is no word of `{step}`; the words are {known}")


def _words(values: object) -> list[str]:
    return [str(value) for value in values] if isinstance(values, list) else [str(values)]


ListedWords = Annotated[
    list[str], BeforeValidator(_words, json_schema_input_type=str | int | list[str | int])
]


VersionWord = Annotated[str, BeforeValidator(str, json_schema_input_type=str | int)]


class CombinationEntry(StrictModel):
    """A set of cases: listed pairs of dtypes, combined with every value of the other modes.

    ``from`` and ``to`` name dtypes or groups; without them all are meant. The versions from
    ``since`` to ``until``, both included, have these cases. A scale is a dtype, or `same` for the
    dtype of the pair's floats. A precision is a dtype other than the scale, or `scale` for calls
    that give none, so that the scale's dtype is used. An empty list means that the cases have no
    such mode.
    """

    since: VersionWord | None = None
    until: VersionWord | None = None
    from_: ListedWords | None = Field(None, alias="from")
    to: ListedWords | None = None
    scale: ListedWords = Field(["same"])
    form: Annotated[
        list[Form], BeforeValidator(as_list, json_schema_input_type=Form | list[Form])
    ] = Field(["tensor"])
    saturate: ListedWords = Field([])
    precision: ListedWords = Field([])


class QuantizationEntry(PointedEntry):
    """How a document's cases are combined, and how scales lie along a tensor.

    With ``ranks: kept``, scales have the rank of the tensor, and blocks divide its lengths.
    """

    ranks: Literal["own", "kept"] = "own"
    cases: Annotated[list[CombinationEntry], Field(min_length=1)] = Field(
        default_factory=lambda: [CombinationEntry.model_validate({"scale": [], "form": []})]
    )
