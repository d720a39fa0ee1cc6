"""Claims: the documents, or single versions of them, that a backend means to implement."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from oracles.protocol import Oracle, claims_of
from specs.errors import CastigateError, did_you_mean
from specs.loader import documents


@dataclass(frozen=True)
class Claim:
    """A document with all its versions or, if ``version`` is set, that version alone."""

    document: str
    version: str | None = None

    def __str__(self) -> str:
        return self.document if self.version is None else f"{self.document}:{self.version}"

    def covers(self, document: str, version: str) -> bool:
        """Return whether the claim includes this version of a document."""
        return self.document == document and self.version in (None, version)


def is_held_to(
    claimed: Iterable[Claim], named: Collection[str], document: str, version: str
) -> bool:
    """Return whether a version of a document counts against a backend with these claims.

    It does if the backend claims the version, or if the user named it: ``named`` has documents and
    versions of documents. If the backend claims no version of a named document, all of them count.
    """
    own = [each for each in claimed if each.document == document]
    if any(each.covers(document, version) for each in own) or f"{document}:{version}" in named:
        return True
    return document in named and not own


def parse_claim(text: str) -> Claim:
    """Parse ``document`` or ``document:version``; raise CastigateError if either is unknown."""
    document, colon, version = text.partition(":")
    hint = did_you_mean(text, map(str, _all_claims()))
    if document not in documents():
        others = (
            "castigate specs lists all" if hint else f"the documents are {', '.join(documents())}"
        )
        raise CastigateError(f"`{text}`, which is no document; {hint}{others}")
    if not colon:
        return Claim(document)
    versions = documents()[document].entry.versions
    if version not in versions:
        raise CastigateError(
            f"`{text}`, but {document} has no version `{version}`; "
            f"{hint}its versions are {', '.join(versions)}"
        )
    return Claim(document, version)


def claimed_by(oracle: Oracle) -> tuple[Claim, ...]:
    """Return an oracle's claims in the documents' order, each once; every document without any.

    A claim that another includes is left out. Raises CastigateError if a claim names an unknown
    document or version.
    """
    claims = claims_of(oracle)
    if claims is None:
        return tuple(map(Claim, documents()))
    claimed = set(map(parse_claim, claims))
    return tuple(
        claim
        for claim in _all_claims()
        if claim in claimed and (claim.version is None or Claim(claim.document) not in claimed)
    )


def check_claims(name: str, oracle: Oracle) -> None:
    """Raise CastigateError if an oracle's ``claims`` name an unknown document or version.

    Otherwise a misspelled claim would excuse every violation. ``name`` is the backend's.
    """
    for claim in claims_of(oracle) or ():
        try:
            parse_claim(claim)
        except CastigateError as error:
            raise CastigateError(f"backend `{name}` claims {error}") from None


def _all_claims() -> Iterator[Claim]:
    for name, document in documents().items():
        yield Claim(name)
        for version in document.entry.versions:
            yield Claim(name, version)
