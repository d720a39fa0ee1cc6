"""Reads a document's YAML and checks everything about it that needs no case."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from pydantic import ValidationError

from specs.complaints import explained
from specs.document import DocumentEntry
from specs.errors import CastigateError
from specs.mistakes import mistakes
from specs.suggest import nearest
from specs.yaml_source import Source, read_yaml

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
        location, message = explained(source, error)
        raise source.error(location, message) from None
    for location, message in mistakes(entry):
        raise source.error(location, message)
    return Document(entry, source)
