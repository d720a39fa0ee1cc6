"""What a backend means to implement: documents, or single versions of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from specs.errors import CastigateError
from specs.loader import documents
from specs.suggestions import nearest


@dataclass(frozen=True)
class Claim:
    """A document with all its versions, or (where there is a version) with that one alone."""

    document: str
    version: str | None = None

    def __str__(self) -> str:
        return self.document if self.version is None else f"{self.document}:{self.version}"

    def covers(self, document: str, version: str) -> bool:
        """Whether the claim includes this version of a document."""
        return self.document == document and self.version in (None, version)


def claim_of(text: str) -> Claim:
    """Parse ``document`` or ``document:version``; an unknown name is an error with the nearest."""
    document, colon, version = text.partition(":")
    hint = nearest(text, map(str, _all()))
    if document not in documents():
        raise CastigateError(
            f"`{text}`, which is no document; {hint}the documents are {', '.join(documents())}"
        )
    if not colon:
        return Claim(document)
    versions = documents()[document].entry.versions
    if version not in versions:
        raise CastigateError(
            f"`{text}`, but {document} has no version `{version}`; "
            f"{hint}its versions are {', '.join(versions)}"
        )
    return Claim(document, version)


def in_order(claims: Iterable[Claim]) -> tuple[Claim, ...]:
    """The claims in the documents' order; one that another includes is left out."""
    wanted = set(claims)
    return tuple(
        claim
        for claim in _all()
        if claim in wanted and (claim.version is None or Claim(claim.document) not in wanted)
    )


def every_document() -> tuple[Claim, ...]:
    """What a backend without ``claims`` means to implement."""
    return tuple(map(Claim, documents()))


def _all() -> Iterator[Claim]:
    for name, document in documents().items():
        yield Claim(name)
        for version in document.entry.versions:
            yield Claim(name, version)
