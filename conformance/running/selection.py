"""Which cases a run is about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from specs.cases import Case
from specs.editions import Edition, editions
from specs.errors import CastigateError
from specs.formats import formats
from specs.loader import document_named, documents
from specs.suggestions import closest, nearest


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
    hint = _hint(name[:200]) or "castigate specs DOCUMENT:VERSION lists the cases"
    raise CastigateError(f"unknown case `{name[:200]}`; {hint}".rstrip())


def _hint(name: str) -> str:
    """The known id nearest to an unknown one, part by part: wrong ids come in thousands."""
    parts = [*name.split("/"), "", ""]
    document, _, version = parts[0].partition(":")
    made = closest(document, documents())
    if made is None:
        return ""
    versions = list(document_named(made).entry.versions)
    ids = _ids(made, closest(version, versions) or versions[-1])
    source, target = (closest(word, formats()) for word in parts[1:3])
    pair = [known for known, case in ids.items() if (case.source, case.target) == (source, target)]
    return nearest(name, pair)


@cache
def _ids(document: str, version: str) -> dict[str, Case]:
    return {case.id: case for case in select([f"{document}:{version}"])}
