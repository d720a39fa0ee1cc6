"""The structure of a document's YAML: pydantic validates it and generates its JSON schema."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, get_args

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from specs.behaviors import reductions
from specs.cases import FORM, ArgumentKind, ArgumentWord, Device, ReceiverKind
from specs.errors import Location, closest, unknown_word
from specs.formats import every_format, formats
from specs.model.block_entry import BlockAnswers, BlocksEntry
from specs.model.page_lines import LineRange, LineSpans, PointedEntry
from specs.model.step_entry import (
    MODES,
    STEPS,
    FormulaStep,
    QuantizationEntry,
    StepAnswers,
    check_answers,
)
from specs.model.strict_model import StrictModel, as_list, as_mapping
from specs.model.vocabulary import (
    CODE_WORDS,
    INPUT_CLASSES,
    NAN_SIGNS,
    OTHERWISE,
    ROUNDINGS,
    Level,
    operations,
)

BY_BITS = "-by-bits"
"""Suffix of words that count widths in bits in a document that otherwise counts bytes."""
SHAPE_WORDS = (
    "same-shape",
    "append-ratio",
    "drop-last",
    "scale-last",
    f"append-ratio{BY_BITS}",
    f"drop-last{BY_BITS}",
)
FOLLOWED = "followed"
"""The outcome word of a rule that gives the same case's answer in the document under `follows`."""
PLAIN_WORDS = (
    "value",
    "wrap",
    "same",
    "plain-text",
    "plain-value",
    "parses-to",
    "error",
    "answer",
    FOLLOWED,
    "unspecified",
)
OUTCOME_WORDS = (
    *CODE_WORDS, *ROUNDINGS, *NAN_SIGNS, *PLAIN_WORDS, *reductions(), *SHAPE_WORDS,
)  # fmt: skip
PAIR_WORDS = ("listed", "unlisted", "same", "different", "exact", "inexact", "rounds")
NOT = "not-"
"""Before a word of a `pair` condition: the pairs for which the word does not hold."""
KIND_WORDS = ("float", "integer", "boolean", "complex", "text", "numeric", "any")
RANKS = ("0", "1", "2", "3", "4", "5-or-more")
ELEMENTS = ("none", "some", "more-than-int32-max")
TILE_RANKS = ("same", "differs")
WIDTH_RELATIONS = ("same", "narrower", "wider", "undivisible")
LAST_DIMENSIONS = ("none", "ratio", "multiple", "zero", "other")
ABSENT = "absent"
"""The condition word that matches cases without the parameter."""
LAYER_RUNS, RECEIVER_UNCHANGED, NOT_COPIED = "layer-runs", "receiver-unchanged", "not-copied"
STORAGE_OFFSET = "storage-offset"
"""The names under which verdicts report broken requirements that are not about values."""
HEX = re.compile(r"0x[0-9a-f]+")
ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
LONGEST_ID, LONGEST_TEXT = 100, 4000
"""The most characters of a part of a case id, and of a title, clause, reason or pattern."""


def _check_class(word: str) -> str:
    if word not in CLASS_WORDS:
        raise ValueError(unknown_word("input class", word, CLASS_WORDS))
    return word


def _check_outcome_word(word: str) -> str:
    if word not in OUTCOME_WORDS and not HEX.fullmatch(word):
        more = "" if closest(word, OUTCOME_WORDS) else " or a quoted hex pattern such as '0x7f'"
        raise ValueError(unknown_word("outcome", word, OUTCOME_WORDS, more))
    return word


def _check_dtype(word: str) -> str:
    if word not in every_format():
        raise ValueError(unknown_word("dtype", word, formats()))
    return word


def _check_operation(word: str) -> str:
    if word not in operations():
        raise ValueError(unknown_word("operation", word, operations()))
    return word


def _check_identifier(word: str) -> str:
    if not ID.fullmatch(word):
        raise ValueError(f"`{word}` cannot be part of a case id; use letters, digits and . _ -")
    if len(word) > LONGEST_ID:
        raise ValueError(f"`{word[:20]}…` has {len(word):,} characters; use at most {LONGEST_ID}")
    return word


def _check_argument(text: str) -> str:
    kind, _, value = text.partition(" ")
    if kind not in get_args(ArgumentKind):
        kinds = ", ".join(get_args(ArgumentKind))
        raise ValueError(f"unknown kind of argument `{kind}`; the kinds are {kinds}")
    if kind == "word" and value not in get_args(ArgumentWord):
        words = ", ".join(get_args(ArgumentWord))
        raise ValueError(f"unknown argument word `{value}`; the words are {words}")
    if kind in ("dtype", "tensor", "gpu-tensor") and value not in (*formats(), "source", "target"):
        raise ValueError(f"`{value}` is neither a dtype nor `source` nor `target`")
    return text


def _check_shape(text: str) -> str:
    if text != "scalar" and not re.fullmatch(r"(\d+|\d*r)(x(\d+|\d*r))*", text):
        raise ValueError(f"`{text}` is not a shape; write `scalar`, or lengths such as 2x3xr or 2r")
    return text


def _as_text(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Dtype = Annotated[
    str,
    AfterValidator(_check_dtype),
    WithJsonSchema({"type": "string", "enum": list(every_format())}),
]
Operation = Annotated[str, AfterValidator(_check_operation)]
WordText = Annotated[str, BeforeValidator(_as_text, json_schema_input_type=str | int)]
Identifier = Annotated[WordText, AfterValidator(_check_identifier)]
OutcomeWord = Annotated[
    str,
    AfterValidator(_check_outcome_word),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": list(OUTCOME_WORDS)},
                {"type": "string", "pattern": f"^{HEX.pattern}$"},
            ]
        }
    ),
]
ShapeText = Annotated[WordText, AfterValidator(_check_shape)]
ArgumentText = Annotated[
    str,
    AfterValidator(_check_argument),
    WithJsonSchema({"type": "string", "pattern": "^[a-z-]+( .*)?$"}),
]
CLASS_WORDS = (*INPUT_CLASSES, OTHERWISE)
InputClass = Annotated[
    str, AfterValidator(_check_class), WithJsonSchema({"enum": list(CLASS_WORDS)})
]
WordList = Annotated[
    list[WordText], BeforeValidator(as_list, json_schema_input_type=str | int | list[str | int])
]
Text = Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT)]


class OutcomeEntry(PointedEntry):
    """An outcome with more than a word: a choice of two, a level, a clause or an error class.

    It has either ``is`` or ``either``, and ``lines`` only with a ``clause``.
    """

    is_: OutcomeWord | None = Field(None, alias="is")
    either: Annotated[list[OutcomeWord], Field(min_length=2, max_length=2)] | None = None
    level: Level | None = None
    clause: Text | None = None
    and_recommended: OutcomeWord | None = Field(None, alias="and-recommended")
    class_: Text | None = Field(None, alias="class")
    bits: Literal["kept", "recommended", "unspecified"] = "kept"
    dtype: Literal["target", "unspecified"] = "unspecified"

    @model_validator(mode="after")
    def _one_outcome(self) -> OutcomeEntry:
        if (self.is_ is None) == (not self.either):
            raise ValueError("an outcome has either `is` or a list `either`")
        if self.lines is not None and self.clause is None:
            raise ValueError("`lines` of an outcome go with a `clause` of its own")
        return self


TableCell = OutcomeWord | OutcomeEntry


def outcome_entry(cell: TableCell) -> OutcomeEntry:
    """Return a table cell as an entry; a plain word becomes an entry with that word as ``is``."""
    return cell if isinstance(cell, OutcomeEntry) else _entry_of_word(cell)


@cache
def _entry_of_word(word: str) -> OutcomeEntry:
    return OutcomeEntry.model_validate({"is": word})


class ConflictEntry(PointedEntry):
    """A disagreement of the page with another text or itself, and the reading that is taken."""

    with_: Text = Field(alias="with")
    about: Text
    taken: Text


def _as_columns(value: object) -> object:
    """Wrap each column that is a plain word, as in tables with one parameter, in a list."""
    if not isinstance(value, list):
        return value
    return [column if isinstance(column, list) else [column] for column in value]


class TableEntry(StrictModel):
    """A table of the page: one column per mode, one row per input class.

    ``columns`` has the names of what varies between columns: `to` for the target dtype, or
    parameters. Each item of ``x`` is one column: a list with a value for each of these names.
    ``names`` maps the page's own names of rows to input classes. ``rows`` has a row's cells, or the
    one that all columns have.
    """

    columns: WordList = Field(["to"])
    x: Annotated[
        list[list[WordText]],
        BeforeValidator(_as_columns, json_schema_input_type=list[str | int | list[str | int]]),
    ]
    names: dict[Text, InputClass] = Field({})
    rows: dict[Text, TableCell | list[TableCell]]


class ChangedCellsEntry(StrictModel):
    """The cells of a table that differ from those in the table of the rule ``from``.

    ``cells`` maps each row to its columns that differ.
    """

    from_: Text = Field(alias="from")
    cells: dict[Text, list[WordText]]


class RuleEntry(PointedEntry):
    """One rule: where it applies, what must come out, its clause and its level.

    What must come out is in exactly one of ``then``, ``table``, ``gives`` and ``blocks``.
    """

    clause: Text
    level: Level
    when: dict[str, WordList]
    then: TableCell | dict[InputClass, TableCell] | None = None
    table: TableEntry | None = None
    step: FormulaStep | None = None
    gives: StepAnswers | None = None
    blocks: BlockAnswers = Field({})
    changed: ChangedCellsEntry | None = None
    conflict: list[ConflictEntry] = Field([])
    note: Text | None = None

    @model_validator(mode="after")
    def _answers_of_a_step(self) -> RuleEntry:
        if (self.step is None) != (self.gives is None):
            raise ValueError("`step` and `gives` require each other")
        if self.step is not None and self.gives is not None:
            check_answers(self.step, self.gives)
        return self


class TensorConditions(StrictModel):
    """The tensors that a tensor rule applies to; a condition that is not given always holds."""

    version: list[WordText] | None = None
    rank: Annotated[WordList, Field(default=list(RANKS))]
    elements: Annotated[WordList, Field(default=list(ELEMENTS))]
    tile_rank: Annotated[WordList, Field(default=list(TILE_RANKS), alias="tile-rank")]


class TensorRuleEntry(PointedEntry):
    """A rule on whether a tensor of some rank, number of elements and tile rank keeps its shape.

    The tile rank of a tensor is the same as its output's, or differs.
    """

    clause: Text
    level: Level
    when: TensorConditions = TensorConditions.model_validate({})
    then: Literal["same-shape", "unspecified"]
    note: Text | None = None


class MemberEntry(StrictModel):
    """A parameter or buffer of a layer; ``when`` limits the pairs that are cases about it."""

    kind: Literal["parameter", "buffer"]
    when: dict[str, WordList] = Field({})


class PromiseEntry(PointedEntry):
    """A requirement of the page that is not about values: its clause and level."""

    clause: Text
    level: Literal["required", "recommended"]
    note: Text | None = None
    conflict: list[ConflictEntry] = Field([])


class ReceiverEntry(PointedEntry):
    """The object that a document's calls are made on: a tensor, a layer or a builder."""

    is_: Literal["tensor", "sharded-tensor", "layer", "net-builder"] = Field(alias="is")
    method: Identifier
    members: dict[Identifier, MemberEntry] = Field({})
    runs: PromiseEntry | None = None
    """A converted Linear layer runs on inputs of both dtypes and returns the target's dtype."""
    unchanged: PromiseEntry | None = None
    """The call does not change the tensor that it is made on."""


ReturnsWord = Literal["receiver", "another"]
MemoryWord = Literal["shared", "own"]


class ReturnsEntry(StrictModel):
    """Whether a call returns its receiver; without ``level``, at the level of the form."""

    is_: ReturnsWord = Field(alias="is")
    level: Level | None = None


class MemoryEntry(StrictModel):
    """Whether a result shares its receiver's memory; without ``level``, at the form's level."""

    is_: MemoryWord = Field(alias="is")
    level: Level | None = None


class FormEntry(PointedEntry):
    """One form of a call: its arguments, the pairs it is a case for, and what it returns.

    As the value of an argument, `source` and `target` mean the case's own dtypes.
    """

    clause: Text
    when: dict[str, WordList] = Field({})
    on: ReceiverKind | None = None
    """The receiver of this form's call, where it differs from the document's."""
    args: list[ArgumentText] = Field([])
    kwargs: dict[Identifier, ArgumentText] = Field({})
    returns: Annotated[
        ReturnsEntry | None,
        BeforeValidator(as_mapping, json_schema_input_type=ReturnsWord | ReturnsEntry),
    ] = None
    memory: Annotated[
        MemoryEntry | None,
        BeforeValidator(as_mapping, json_schema_input_type=MemoryWord | MemoryEntry),
    ] = None
    level: Level = "required"
    device_before: Device = Field("cpu", alias="device-before")
    device_after: Device = Field("cpu", alias="device-after")
    shape: ShapeText | None = None
    """The shape in the page's sample code; the form is called in this shape, too."""
    note: Text | None = None
    conflict: list[ConflictEntry] = Field([])


class ShapesEntry(StrictModel):
    """Pairs of dtypes, and the shapes in which each pair is a case.

    ``pairs`` maps each source to its targets.
    """

    pairs: dict[Dtype, list[Dtype]]
    shapes: Annotated[list[ShapeText], Field(min_length=1)]


class NamedTestsEntry(ShapesEntry, PointedEntry):
    """Bitcasts that the page requires as tests."""

    clause: Text


class BitcastEntry(PointedEntry):
    """How a document counts widths, and the shapes in which its pairs are cases.

    In a shape, `r` is the number of elements of the narrower dtype that make one of the wider;
    `2r` is twice that. ``shapes`` are for every pair; ``more`` adds shapes to representative pairs.
    """

    ratio_by: Literal["bits", "bytes"] = Field(alias="ratio-by")
    shapes: Annotated[list[ShapeText], Field(min_length=1)]
    more: ShapesEntry
    demanded: dict[Identifier, NamedTestsEntry] = Field({})
    memory: PromiseEntry | None = None
    """The requirement that the result shares the input's memory: nothing is copied."""
    storage_offset: PromiseEntry | None = Field(None, alias="storage-offset")
    """The requirement to refuse storage offsets that the ratio of widths does not divide."""
    bool_bits: Literal[1, 8] = Field(1, alias="bool-bits")
    """How many bits a bool has where widths are counted in bits."""


class Section(NamedTuple):
    """A section that documents of the named operations must have, and other documents must not.

    ``conditions`` are the keys that their rules can have in ``when`` besides the usual ones, with
    the words of each. ``mismatch`` is the error of a document that has only the operation or only
    the section.
    """

    name: str
    operations: tuple[str, ...]
    conditions: Mapping[str, tuple[str, ...]]
    mismatch: str


SHAPED = ("bitcast",)
"""The operations of which only the shape of a result is judged, and whether its bits are kept."""
BLOCK_OPERATIONS = ("block-quantize", "block-dequantize")
SECTIONS = (
    Section(
        "bitcast",
        SHAPED,
        {
            "width": WIDTH_RELATIONS,
            "rank": RANKS,
            "last": LAST_DIMENSIONS,
            f"last{BY_BITS}": LAST_DIMENSIONS,
            "elements": ELEMENTS[:2],
        },
        "`operation: bitcast` and a section `bitcast` require each other; add the one that is"
        " missing",
    ),
    Section(
        "quantization",
        tuple(STEPS),
        {key: (*MODES[key], ABSENT) for key in MODES},
        f"operations {', '.join(STEPS)} and a section `quantization` require each other; add the"
        " one that is missing",
    ),
    Section(
        "blocks",
        BLOCK_OPERATIONS,
        {},
        "`operation: {}` and a section `blocks` do not go together; a document of blocks has both",
    ),
)


class ParameterEntry(PointedEntry):
    """A parameter of the operation, and the pairs that it affects."""

    values: Annotated[list[Identifier], Field(min_length=1)]
    default: Identifier
    since: Identifier | None = None
    affects: dict[str, WordList]
    only: dict[Identifier, dict[str, WordList]] = Field({})
    """Maps each value that only some affected pairs have to the conditions of these pairs."""

    @property
    def default_first(self) -> list[str]:
        """The values, the default before the others."""
        return sorted(self.values, key=lambda value: value != self.default)


class VersionEntry(PointedEntry):
    """A version: its pairs and rules, or what it changes in the version that it extends.

    ``section`` is the range of the page about this version, if the page has one per version;
    ``lines`` are where the page lists the version's types and attributes. ``follows`` is the
    version of another document, `NAME:VERSION`, whose rules decide the cases of rules with the
    outcome `followed`.
    """

    section: LineRange | None = None
    follows: Text | None = None
    extends: Identifier | None = None
    from_: list[Dtype] | None = Field(None, alias="from")
    to: list[Dtype] | None = None
    pairs: str | None = None
    add_types: list[Dtype] = Field([], alias="add-types")
    attributes: dict[str, Text] = Field({})
    rules: list[str] | None = None
    add: list[str] = Field([])
    remove: list[str] = Field([])
    replace: dict[str, str] = Field({})
    conflict: list[ConflictEntry] = Field([])


class ExampleEntry(PointedEntry):
    """A worked example of the page: ``table`` maps inputs to the outputs that the page prints."""

    clause: Text
    level: Level = "required"
    versions: WordList
    from_: Dtype = Field(alias="from")
    to: Dtype
    with_: dict[str, Identifier] = Field({}, alias="with")
    table: dict[str, str]


class NotEncodedEntry(StrictModel):
    """Lines of the page that nothing has to encode, and the reason."""

    lines: Annotated[LineSpans, Field(min_length=1)]
    reason: Text


class DocumentEntry(StrictModel):
    """The content of one document's file: its operation, versions, rules, forms and examples."""

    document: Identifier
    title: Text
    operation: Operation
    seed: Text
    scope: Literal["every-dtype", "own-dtypes"] = "every-dtype"
    asked: Literal["always", "by-name"] = "always"
    parameters: dict[Identifier, ParameterEntry] = Field({})
    receiver: ReceiverEntry | None = None
    bitcast: BitcastEntry | None = None
    quantization: QuantizationEntry | None = None
    blocks: BlocksEntry | None = None
    forms: dict[Identifier, FormEntry] = Field({})
    row_names: dict[Text, InputClass] = Field({}, alias="row-names")
    groups: dict[str, list[Dtype]] = Field({})
    pair_groups: dict[str, dict[Dtype, list[Dtype]]] = Field({}, alias="pair-groups")
    versions: Annotated[dict[Identifier, VersionEntry], Field(min_length=1)]
    rules: Annotated[dict[str, RuleEntry], Field(min_length=1)]
    tensors: dict[str, TensorRuleEntry] = Field({})
    examples: dict[Identifier, ExampleEntry] = Field({})
    not_encoded: list[NotEncodedEntry] = Field([], alias="not-encoded")

    def promises(self) -> dict[str, PromiseEntry]:
        """Return the requirements that are not about values, by the names that verdicts report."""
        receiver, bitcast = self.receiver, self.bitcast
        promises = {
            LAYER_RUNS: receiver.runs if receiver is not None else None,
            RECEIVER_UNCHANGED: receiver.unchanged if receiver is not None else None,
            NOT_COPIED: bitcast.memory if bitcast is not None else None,
            STORAGE_OFFSET: bitcast.storage_offset if bitcast is not None else None,
        }
        return {name: promise for name, promise in promises.items() if promise is not None}

    def further_pairs(self) -> Iterator[tuple[Location, str, str]]:
        """Yield location, source and target of each pair to which ``bitcast.more`` adds shapes."""
        for source, targets in self.bitcast.more.pairs.items() if self.bitcast is not None else ():
            yield from ((("bitcast", "more", "pairs", source), source, each) for each in targets)

    def conflicts(self) -> Iterator[tuple[str, str, ConflictEntry]]:
        """Yield each conflict of a rule, promise or form, after the name and clause of that part.

        The name of a form is `form:NAME`. Conflicts of versions are left out.
        """
        owners: dict[str, RuleEntry | PromiseEntry | FormEntry] = {
            **self.rules,
            **self.promises(),
            **{f"{FORM}:{name}": form for name, form in self.forms.items()},
        }
        for name, entry in owners.items():
            yield from ((name, entry.clause, conflict) for conflict in entry.conflict)

    def breakable(self) -> set[str]:
        """Return the names that verdicts can report as broken: rules, promises, forms, others."""
        forms = (f"{FORM}:{name}" for name in self.forms)
        return {*self.rules, *self.promises(), *forms, *self.tensors, *self.examples}


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of a document, for text editors."""
    schema = DocumentEntry.model_json_schema(by_alias=True)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "A Castigate document"
    operation = {"enum": [*operations()], "title": "Operation", "type": "string"}
    schema["properties"]["operation"] = operation
    return schema
