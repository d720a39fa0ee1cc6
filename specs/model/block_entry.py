"""Rules about blocks: the words that answer questions about scales, codes and products."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, Field

from specs.formats import Format
from specs.model.page_lines import PointedEntry
from specs.model.strict_model import as_mapping
from specs.model.vocabulary import Level

ScaleRule = Literal[
    "floor", "ceil", "round-up", "round-down", "even", "nearest", "nearest-log", "round-up-7.25",
    "nearest-even", "nearest-away",
]  # fmt: skip
"""How a scale follows from the largest magnitude in a block;
``conformance/families/blocks/exact.py`` defines each word."""
BlockWord = Literal[
    "floor", "ceil", "round-up", "round-down", "even", "nearest", "nearest-log", "round-up-7.25",
    "nearest-even", "nearest-away",
    "smallest", "largest", "-zero", "nan", "inf", "either", "unspecified",
]  # fmt: skip
BlockQuestion = Literal[
    "scale", "scale-above-largest", "scale-below-smallest",
    "zero-block", "nan-block", "infinity-block",
    "element", "element-above-largest", "element-lowest", "element-negative-zero",
    "product", "product-inexact", "product-above-largest",
    "nan-scale", "nan-code", "infinity-code",
]  # fmt: skip
OPEN: BlockWord = "unspecified"
SCALES = ("float8e8m0", "float8e4m3fn")
"""The dtypes of scales."""
WORDS: Mapping[BlockQuestion, tuple[BlockWord, ...]] = {
    "scale": get_args(ScaleRule),
    "scale-above-largest": ("largest", OPEN),
    "scale-below-smallest": ("smallest", OPEN),
    "zero-block": (OPEN,),
    "nan-block": (OPEN,),
    "infinity-block": (OPEN,),
    "element": ("nearest-even",),
    "element-above-largest": ("largest", OPEN),
    "element-lowest": ("either", OPEN),
    "element-negative-zero": ("-zero", OPEN),
    "product": ("nearest-even",),
    "product-inexact": ("nearest-even", OPEN),
    "product-above-largest": ("inf", OPEN),
    "nan-scale": ("nan", OPEN),
    "nan-code": ("nan", OPEN),
    "infinity-code": ("inf", OPEN),
}
"""The words that may answer each question."""
OF_DECODING = ("product", "product-inexact", "product-above-largest", "nan-scale")
OF_CODES = ("nan-code", "infinity-code")


def questions(element: Format, *, is_decoding: bool) -> list[BlockQuestion]:
    """Return the questions that rules of decoding or of encoding answer for an element dtype."""
    arises = {
        "element-lowest": element.is_integral,
        "element-negative-zero": not element.is_integral,
        "nan-code": bool(element.nan_codes),
        "infinity-code": element.entry.infinity,
    }
    decoding = (*OF_DECODING, *OF_CODES)
    return [each for each in WORDS if (each in decoding) == is_decoding and arises.get(each, True)]


class BlockOutcomeEntry(PointedEntry):
    """The answer to a question, with its level, clause or lines where they are not the rule's."""

    is_: BlockWord = Field(alias="is")
    level: Level | None = None
    clause: str | None = None


def _check_words(answers: Mapping[BlockQuestion, BlockOutcomeEntry]) -> object:
    for question, answer in answers.items():
        if answer.is_ not in WORDS[question]:
            words = ", ".join(WORDS[question])
            raise ValueError(f"`{answer.is_}` answers no `{question}`; the words are {words}")
    return answers


BlockAnswers = Annotated[
    dict[
        BlockQuestion,
        Annotated[
            BlockOutcomeEntry,
            BeforeValidator(as_mapping, json_schema_input_type=BlockWord | BlockOutcomeEntry),
        ],
    ],
    AfterValidator(_check_words),
]


def _check_scale(name: str) -> str:
    if name not in SCALES:
        raise ValueError(f"`{name}` is no {' or '.join(SCALES)}")
    return name


class BlocksEntry(PointedEntry):
    """The section `blocks` of a document: the dtype of its scales."""

    scale: Annotated[str, AfterValidator(_check_scale)]
