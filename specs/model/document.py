"""The shape of a document's YAML; pydantic checks it and the JSON schema comes from it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    model_validator,
)

from specs.calls import FORM, ArgumentKind, ArgumentWord, Device, ReceiverKind
from specs.formats import formats
from specs.model.page_lines import LineRange, Lines
from specs.model.vocabulary import (
    CODE_WORDS,
    INPUT_CLASSES,
    NAN_SIGNS,
    OTHERWISE,
    ROUNDINGS,
    Level,
)

BY_BITS = "-by-bits"
"""Ends a word that counts widths in bits where the document itself counts bytes."""
SHAPE_WORDS = (
    "same-shape",
    "append-ratio",
    "drop-last",
    "scale-last",
    f"append-ratio{BY_BITS}",
    f"drop-last{BY_BITS}",
)
PLAIN_WORDS = (
    "value",
    "wrap",
    "same",
    "plain-text",
    "plain-value",
    "parses-to",
    "error",
    "answer",
    "unspecified",
)
OUTCOME_WORDS = (*CODE_WORDS, *ROUNDINGS, *NAN_SIGNS, *PLAIN_WORDS, *SHAPE_WORDS)
PAIR_WORDS = ("listed", "unlisted", "same", "different", "exact", "inexact", "rounds")
KIND_WORDS = ("float", "integer", "boolean", "complex", "text", "numeric", "any")
RANKS = ("0", "1", "2", "3", "4", "5-or-more")
ELEMENTS = ("none", "some", "more-than-int32-max")
TILE_RANKS = ("same", "differs")
WIDTHS = ("same", "narrower", "wider", "undivisible")
LASTS = ("none", "ratio", "multiple", "zero", "other")
ABSENT = "absent"
LAYER_RUNS, RECEIVER_UNCHANGED, NOT_COPIED = "layer-runs", "receiver-unchanged", "not-copied"
"""The names under which what a page promises beside the values is broken."""
HEX = re.compile(r"0x[0-9a-f]+")
ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def _one_of(known: tuple[str, ...], what: str) -> AfterValidator:
    def check(word: str) -> str:
        if word not in known:
            raise ValueError(f"unknown {what} `{word}`; the words are {', '.join(known)}")
        return word

    return AfterValidator(check)


def _outcome_word(word: str) -> str:
    if word not in OUTCOME_WORDS and not HEX.fullmatch(word):
        raise ValueError(
            f"unknown outcome `{word}`; it is one of {', '.join(OUTCOME_WORDS)}"
            " or a quoted hex pattern such as '0x7f'"
        )
    return word


def _dtype(word: str) -> str:
    if word not in formats():
        raise ValueError(f"unknown dtype `{word}`; the dtypes are {', '.join(formats())}")
    return word


def _identifier(word: str) -> str:
    if not ID.fullmatch(word):
        raise ValueError(f"`{word}` cannot stand in a case id; use letters, digits and . _ -")
    return word


def _argument(text: str) -> str:
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


def _shape(text: str) -> str:
    if text != "scalar" and not re.fullmatch(r"(\d+|\d*r)(x(\d+|\d*r))*", text):
        raise ValueError(f"`{text}` is no shape: `scalar`, or lengths such as 2x3xr or 2r")
    return text


def _listed(value: object) -> object:
    return value if isinstance(value, list) else [value]


def _entry(value: object) -> object:
    return {"is": value} if isinstance(value, str) else value


def _worded(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Dtype = Annotated[
    str, AfterValidator(_dtype), WithJsonSchema({"type": "string", "enum": list(formats())})
]
Word = Annotated[str, BeforeValidator(_worded, json_schema_input_type=str | int)]
Identifier = Annotated[Word, AfterValidator(_identifier)]
OutcomeWord = Annotated[
    str,
    AfterValidator(_outcome_word),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": list(OUTCOME_WORDS)},
                {"type": "string", "pattern": f"^{HEX.pattern}$"},
            ]
        }
    ),
]
ShapeText = Annotated[Word, AfterValidator(_shape)]
ArgumentWords = Annotated[
    str, AfterValidator(_argument), WithJsonSchema({"type": "string", "pattern": "^[a-z-]+( .*)?$"})
]
CLASS_WORDS = (*INPUT_CLASSES, OTHERWISE)
InputClass = Annotated[
    str, _one_of(CLASS_WORDS, "input class"), WithJsonSchema({"enum": list(CLASS_WORDS)})
]
Words = Annotated[
    list[Word],
    BeforeValidator(_listed, json_schema_input_type=str | int | list[str | int]),
]
Text = Annotated[str, Field(min_length=1)]


class Entry(BaseModel):
    """What all parts of a document share: no unknown keys, no changes."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class PointedEntry(Entry):
    """A part of a document that can point at the lines of the page that it encodes."""

    lines: Lines | None = None
    """Empty where the page has no line for it: its clause names another source."""


class OutcomeEntry(PointedEntry):
    """An outcome that needs more than a word: its own level or clause, or a choice."""

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


Cell = OutcomeWord | OutcomeEntry


class ConflictEntry(PointedEntry):
    """Where two texts disagree: with which, about what, and which reading is taken and why."""

    with_: Text = Field(alias="with")
    about: Text
    taken: Text


def _columns(value: object) -> object:
    """A table with one kind of column lists plain words; each becomes a column of one word."""
    if not isinstance(value, list):
        return value
    return [column if isinstance(column, list) else [column] for column in value]


class TableEntry(Entry):
    """A table of the page.

    A column stands for a target dtype (`to`) or for values of the parameters that ``columns``
    names. A row is an input class, or the page's own name for one (``names``).
    """

    columns: Words = ["to"]
    x: Annotated[
        list[list[Word]],
        BeforeValidator(_columns, json_schema_input_type=list[str | int | list[str | int]]),
    ]
    names: dict[Text, InputClass] = {}
    rows: dict[Text, Cell | list[Cell]]


class ChangedCellsEntry(Entry):
    """The cells of a table, row by row, that differ from those of the rule it replaces."""

    from_: Text = Field(alias="from")
    cells: dict[Text, list[Word]]


class RuleEntry(PointedEntry):
    """One rule about values: where it applies, what must come out, its clause, its level."""

    clause: Text
    level: Level
    when: dict[str, Words]
    then: Cell | dict[InputClass, Cell] | None = None
    table: TableEntry | None = None
    changed: ChangedCellsEntry | None = None
    conflict: list[ConflictEntry] = []
    note: Text | None = None


class TensorConditions(Entry):
    """Which tensors a tensor rule applies to; what is not named may be anything."""

    version: list[Word] | None = None
    rank: Annotated[Words, Field(default=list(RANKS))]
    elements: Annotated[Words, Field(default=list(ELEMENTS))]
    tile_rank: Annotated[Words, Field(default=list(TILE_RANKS), alias="tile-rank")]


class TensorRuleEntry(PointedEntry):
    """One rule about the tensor as a whole: its rank, its number of elements, its tile shape."""

    clause: Text
    level: Level
    when: TensorConditions = TensorConditions.model_validate({})
    then: Literal["same-shape", "unspecified"]
    note: Text | None = None


class MemberEntry(Entry):
    """A tensor of a layer; of which dtype it is where it is the one asked about."""

    kind: Literal["parameter", "buffer"]
    when: dict[str, Words] = {}


class PromiseEntry(PointedEntry):
    """What a page promises beside the values: where it says so, and how firmly."""

    clause: Text
    level: Literal["required", "recommended"]
    note: Text | None = None
    conflict: list[ConflictEntry] = []


class ReceiverEntry(PointedEntry):
    """What a document's calls are made on: a tensor of the source, a layer, or a builder."""

    is_: Literal["tensor", "sharded-tensor", "layer", "net-builder"] = Field(alias="is")
    method: Identifier
    members: dict[Identifier, MemberEntry] = {}
    runs: PromiseEntry | None = None
    """A Linear layer gives the target's dtype afterwards, on inputs of the source and target."""
    unchanged: PromiseEntry | None = None
    """The tensor that the call is made on stays as it was."""


ReturnsWord = Literal["receiver", "another"]
MemoryWord = Literal["shared", "own"]


class ReturnsEntry(Entry):
    """Whether a call gives its receiver back; at the form's level where none is named."""

    is_: ReturnsWord = Field(alias="is")
    level: Level | None = None


class MemoryEntry(Entry):
    """Whether what a call gives lies in its receiver's memory; levels as for what it returns."""

    is_: MemoryWord = Field(alias="is")
    level: Level | None = None


class FormEntry(PointedEntry):
    """One form of a call: its arguments, the pairs it is asked of, and what it gives back.

    ``source`` and ``target`` as the value of an argument are the case's own dtypes.
    """

    clause: Text
    when: dict[str, Words] = {}
    on: ReceiverKind | None = None
    """What this form is called on, where it is not the document's receiver."""
    args: list[ArgumentWords] = []
    kwargs: dict[Identifier, ArgumentWords] = {}
    returns: Annotated[
        ReturnsEntry | None,
        BeforeValidator(_entry, json_schema_input_type=ReturnsWord | ReturnsEntry),
    ] = None
    memory: Annotated[
        MemoryEntry | None,
        BeforeValidator(_entry, json_schema_input_type=MemoryWord | MemoryEntry),
    ] = None
    level: Level = "required"
    device_before: Device = Field("cpu", alias="device-before")
    device_after: Device = Field("cpu", alias="device-after")
    shape: ShapeText | None = None
    """The shape of the page's own sample, in which the form is called as well."""
    note: Text | None = None
    conflict: list[ConflictEntry] = []


class ShapesEntry(Entry):
    """Some pairs in shapes of their own."""

    pairs: dict[Dtype, list[Dtype]]
    shapes: Annotated[list[ShapeText], Field(min_length=1)]


class NamedTestsEntry(ShapesEntry, PointedEntry):
    """Bitcasts that a page demands as tests."""

    clause: Text


class BitcastEntry(PointedEntry):
    """How a document counts widths, and the shapes in which its pairs are asked.

    In every shape, `r` is how many elements of the narrower dtype make one of the wider, `2r` twice
    as many. ``shapes`` are asked of every pair, ``more`` of pairs that stand for the others.
    """

    ratio_by: Literal["bits", "bytes"] = Field(alias="ratio-by")
    shapes: Annotated[list[ShapeText], Field(min_length=1)]
    more: ShapesEntry
    demanded: dict[Identifier, NamedTestsEntry] = {}
    memory: PromiseEntry | None = None
    """The result lies in the input's memory: nothing is copied."""


class ParameterEntry(PointedEntry):
    """A parameter of the operation, and on which pairs it has an effect."""

    values: Annotated[list[Identifier], Field(min_length=1)]
    default: Identifier
    since: Identifier | None = None
    affects: dict[str, Words]


class VersionEntry(PointedEntry):
    """A dated edition: its pairs and rules, or what it changes in the edition it extends.

    ``section`` is where the page speaks of it, if the page has a part for each edition; ``lines``
    are those of its lists of types and attributes.
    """

    section: LineRange | None = None
    extends: Identifier | None = None
    from_: list[Dtype] | None = Field(None, alias="from")
    to: list[Dtype] | None = None
    pairs: str | None = None
    add_types: list[Dtype] = Field([], alias="add-types")
    attributes: dict[str, Text] = {}
    rules: list[str] | None = None
    add: list[str] = []
    remove: list[str] = []
    replace: dict[str, str] = {}
    conflict: list[ConflictEntry] = []


class ExampleEntry(PointedEntry):
    """An example the page works out: inputs and the outputs it prints."""

    clause: Text
    level: Level = "required"
    versions: Words
    from_: Dtype = Field(alias="from")
    to: Dtype
    with_: dict[str, Identifier] = Field({}, alias="with")
    table: dict[str, str]


class NotEncodedEntry(Entry):
    """Lines of the page that no rule encodes, and why."""

    lines: Annotated[Lines, Field(min_length=1)]
    reason: Text


class DocumentEntry(Entry):
    """A whole document."""

    document: Identifier
    title: Text
    operation: Literal["cast", "call", "bitcast"]
    seed: Text
    scope: Literal["every-dtype", "own-dtypes"] = "every-dtype"
    parameters: dict[Identifier, ParameterEntry] = {}
    receiver: ReceiverEntry | None = None
    bitcast: BitcastEntry | None = None
    forms: dict[Identifier, FormEntry] = {}
    row_names: dict[Text, InputClass] = Field({}, alias="row-names")
    groups: dict[str, list[Dtype]] = {}
    pair_groups: dict[str, dict[Dtype, list[Dtype]]] = Field({}, alias="pair-groups")
    versions: Annotated[dict[Identifier, VersionEntry], Field(min_length=1)]
    rules: Annotated[dict[str, RuleEntry], Field(min_length=1)]
    tensors: dict[str, TensorRuleEntry] = {}
    examples: dict[Identifier, ExampleEntry] = {}
    not_encoded: list[NotEncodedEntry] = Field([], alias="not-encoded")

    def promises(self) -> dict[str, PromiseEntry]:
        """What the page promises beside the values, by the names under which it is broken."""
        receiver, bitcast = self.receiver, self.bitcast
        made = {
            LAYER_RUNS: receiver.runs if receiver is not None else None,
            RECEIVER_UNCHANGED: receiver.unchanged if receiver is not None else None,
            NOT_COPIED: bitcast.memory if bitcast is not None else None,
        }
        return {name: promise for name, promise in made.items() if promise is not None}

    def conflicts(self) -> Iterator[tuple[str, str, ConflictEntry]]:
        """Each conflict with the rule, promise or `form:NAME` that it stands at, and the clause."""
        standing: dict[str, RuleEntry | PromiseEntry | FormEntry] = {
            **self.rules,
            **self.promises(),
            **{f"{FORM}:{name}": form for name, form in self.forms.items()},
        }
        for name, entry in standing.items():
            yield from ((name, entry.clause, conflict) for conflict in entry.conflict)


def json_schema() -> dict[str, Any]:
    """The JSON schema of a document, for editors."""
    schema = DocumentEntry.model_json_schema(by_alias=True)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "A Castigate document"
    return schema
