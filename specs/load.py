"""Reads a document's YAML and checks everything about it that needs no case."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from specs.document import (
    ABSENT,
    ELEMENTS,
    HEX,
    KIND_WORDS,
    PAIR_WORDS,
    RANKS,
    TILE_RANKS,
    DocumentEntry,
    VersionEntry,
)
from specs.errors import CastigateError
from specs.formats import formats
from specs.suggest import nearest
from specs.yaml_source import Location, Source, read_yaml

DOCUMENTS = Path(__file__).with_name("documents")


@dataclass(frozen=True)
class Document:
    """A document as its YAML states it, and where each part stands."""

    entry: DocumentEntry
    source: Source

    @property
    def name(self) -> str:
        return self.entry.document

    @property
    def digest(self) -> str:
        """The sha256 of the YAML file."""
        return sha256(self.source.path.read_bytes()).hexdigest()

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


@cache
def documents() -> dict[str, Document]:
    """The shipped documents by name."""
    loaded = [load_document(path) for path in sorted(DOCUMENTS.glob("*.yaml"))]
    return {document.name: document for document in loaded}


def document_named(name: str) -> Document:
    """The shipped document of that name, or an error that suggests one."""
    try:
        return documents()[name]
    except KeyError:
        known = documents()
        raise CastigateError(
            f"unknown document `{name}`; {nearest(name, known)}the documents are {', '.join(known)}"
        ) from None


def load_document(path: Path) -> Document:
    """Read and check one document, or raise an error that names file, line and rule."""
    source = read_yaml(path)
    if not isinstance(source.data, dict):
        raise source.error((), "a document is a mapping that begins with `document: NAME`")
    try:
        entry = DocumentEntry.model_validate(source.data)
    except ValidationError as error:
        location, message = _explain(source, error)
        raise source.error(location, message) from None
    for location, message in _mistakes(entry):
        raise source.error(location, message)
    return Document(entry, source)


def _explain(source: Source, error: ValidationError) -> tuple[Location, str]:
    """The one pydantic complaint that helps most: our own words first, then the deepest."""

    def weight(detail: ErrorDetails) -> tuple[bool, int]:
        return detail["type"] == "value_error", len(detail["loc"])

    detail = max(error.errors(), key=weight)
    location: Location = ()
    for part in detail["loc"]:
        if (*location, part) in source.lines:
            location = (*location, part)
    message = detail["msg"].removeprefix("Value error, ")
    if detail["type"] == "missing":
        message = f"`{detail['loc'][-1]}` is missing"
    if detail["type"] == "extra_forbidden":
        message = f"unknown word `{detail['loc'][-1]}`"
    return location, message


def _mistakes(entry: DocumentEntry) -> Iterator[tuple[Location, str]]:
    for name, parameter in entry.parameters.items():
        if parameter.default not in parameter.values:
            yield ("parameters", name, "default"), f"`{parameter.default}` is not among the values"
        if parameter.since is not None and parameter.since not in entry.versions:
            yield ("parameters", name, "since"), f"there is no version `{parameter.since}`"
        yield from _bad_conditions(entry, ("parameters", name, "affects"), parameter.affects)
    for name, rule in entry.rules.items():
        location = ("rules", name)
        yield from _bad_conditions(entry, (*location, "when"), rule.when)
        if (rule.then is None) == (rule.table is None):
            yield location, "a rule has either `then` or `table`"
        if rule.table is not None:
            yield from _bad_table(entry, (*location, "table"), rule.table.columns, name)
    for name, tensor_rule in entry.tensors.items():
        for field, known in (("rank", RANKS), ("elements", ELEMENTS), ("tile_rank", TILE_RANKS)):
            for word in getattr(tensor_rule.when, field):
                if word not in known:
                    yield (
                        ("tensors", name, "when", field.replace("_", "-")),
                        f"unknown word `{word}`; the words are {', '.join(known)}",
                    )
    for name, version in entry.versions.items():
        yield from _bad_version(entry, ("versions", name), name, version)
    for name, example in entry.examples.items():
        location = ("examples", name)
        for version_name in example.versions:
            if version_name not in entry.versions:
                yield (*location, "versions"), f"there is no version `{version_name}`"
        for code in (*example.table, *example.table.values()):
            if not HEX.fullmatch(code):
                yield (*location, "table"), f"`{code}` is not a quoted hex pattern such as '0x7f'"


def _bad_conditions(
    entry: DocumentEntry, location: Location, conditions: dict[str, list[str]]
) -> Iterator[tuple[Location, str]]:
    types = (*formats(), *entry.groups, *KIND_WORDS)
    pairs = (*PAIR_WORDS, *entry.pair_groups)
    known: dict[str, tuple[str, ...]] = {
        "from": types,
        "to": types,
        "pair": (*pairs, *(f"not-{word}" for word in pairs)),
    }
    for name, parameter in entry.parameters.items():
        known[name] = (*parameter.values, ABSENT)
    for key, words in conditions.items():
        if key not in known:
            yield (*location, key), f"unknown condition `{key}`; {nearest(key, known)}".rstrip("; ")
            continue
        for word in words:
            if word not in known[key]:
                hint = nearest(word, known[key])
                what = "dtype or group" if key in ("from", "to") else "word"
                yield (*location, key), f"unknown {what} `{word}`; {hint}".rstrip("; ")


def _bad_table(
    entry: DocumentEntry, location: Location, columns: str, name: str
) -> Iterator[tuple[Location, str]]:
    table = entry.rules[name].table
    assert table is not None
    if columns != "to" and columns not in entry.parameters:
        yield (*location, "columns"), f"`{columns}` is neither `to` nor a parameter"
        return
    known = tuple(formats()) if columns == "to" else tuple(entry.parameters[columns].values)
    for word in table.x:
        if word not in known:
            yield (*location, "x"), f"unknown column `{word}`; {nearest(word, known)}".rstrip("; ")
    for row, cells in table.rows.items():
        if isinstance(cells, list) and len(cells) != len(table.x):
            yield (
                (*location, "rows", row),
                f"the row `{row}` has {len(cells)} cells, the header {len(table.x)}",
            )


def _bad_version(
    entry: DocumentEntry, location: Location, name: str, version: VersionEntry
) -> Iterator[tuple[Location, str]]:
    if version.extends is not None:
        earlier = list(entry.versions)[: list(entry.versions).index(name)]
        if version.extends not in earlier:
            yield (*location, "extends"), f"`{version.extends}` is no version above this one"
    elif version.from_ is None or version.to is None:
        yield location, "a version that extends none needs `from` and `to`"
    if version.pairs is not None and version.pairs not in entry.pair_groups:
        yield (*location, "pairs"), f"`{version.pairs}` is not among the pair groups"
    named = (*(version.rules or ()), *version.add, *version.remove)
    for rule in (*named, *version.replace, *version.replace.values()):
        if rule not in entry.rules:
            yield location, f"there is no rule `{rule}`; {nearest(rule, entry.rules)}".rstrip("; ")
