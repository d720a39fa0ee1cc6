"""Which cases a run is about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, lru_cache

from specs.cases import Case
from specs.editions import Edition, editions
from specs.errors import CastigateError
from specs.formats import formats
from specs.load import document_named, documents
from specs.suggest import nearest


def select(wanted: Iterable[str]) -> list[Case]:
    """The cases of the wanted documents (``name`` or ``name:version``; none named: all of them).

    They come pair by pair, so that one pair's inputs and expectations serve all its cases.
    """
    order = {name: place for place, name in enumerate(formats())}
    cases = [case for edition in _editions(list(wanted)) for case in edition.cases()]
    return sorted(cases, key=lambda case: (order[case.source], order[case.target]))


def _editions(wanted: list[str]) -> Iterator[Edition]:
    if not wanted:
        for document in documents().values():
            yield from editions(document)
        return
    chosen: dict[tuple[str, str], Edition] = {}
    for word in wanted:
        name, _, version = word.partition(":")
        known = {edition.version: edition for edition in editions(document_named(name))}
        if version and version not in known:
            raise CastigateError(f"{name} has no version `{version}`; it has {', '.join(known)}")
        for edition in [known[version]] if version else known.values():
            chosen[name, edition.version] = edition
    yield from chosen.values()


def case_named(name: str) -> Case:
    """The case of an id, or an error that suggests the nearest."""
    document, _, rest = name.partition(":")
    version = rest.partition("/")[0]
    known = documents()
    if document in known and version in known[document].entry.versions:
        found = _ids(document, version).get(name)
        if found is not None:
            return found
    raise CastigateError(f"unknown case `{name[:200]}`; {_hint(name[:200])}".rstrip("; "))


@lru_cache(maxsize=4096)
def _hint(name: str) -> str:
    """The known id nearest to an unknown one; remembered, since wrong ids come in thousands."""
    for head in (name.partition("/")[0] + "/", name.partition(":")[0] + ":", ""):
        hint = nearest(name, (known for known in _every_id() if known.startswith(head)))
        if hint:
            return hint
    return ""


@cache
def _every_id() -> tuple[str, ...]:
    return tuple(case.id for case in select([]))


@cache
def _ids(document: str, version: str) -> dict[str, Case]:
    return {case.id: case for case in select([f"{document}:{version}"])}
