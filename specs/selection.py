"""Finds cases: of documents and versions, or by id."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, lru_cache

from specs.cases import JOINT, Case
from specs.editions import Edition, edition, editions
from specs.errors import CastigateError, closest, did_you_mean
from specs.formats import every_format, formats
from specs.house_rules import HouseRules, rules_named
from specs.loader import document_and_version, document_named, documents, typed_name


def select(names: Iterable[str]) -> list[Case]:
    """Return the cases of documents (``name`` or ``name:version``; of all documents if none given).

    They come pair by pair, so that one pair's inputs and expectations serve all its cases. Raise
    CastigateError for an unknown document or version.
    """
    return [*_selected(tuple(names))]


@lru_cache(1)
def _selected(names: tuple[str, ...]) -> list[Case]:
    return _pair_by_pair(case for each in _editions(names) for case in each.cases())


def _pair_by_pair(cases: Iterable[Case]) -> list[Case]:
    order = {name: index for index, name in enumerate(every_format())}
    return sorted(cases, key=lambda case: (order[case.source], order[case.target]))


def _editions(names: Sequence[str]) -> Iterator[Edition]:
    if not names:
        for document in documents().values():
            yield from editions(document)
        return
    chosen: dict[tuple[str, str], Edition] = {}
    for given in names:
        document, version = document_and_version(given)
        for each in editions(document):
            if version in (None, each.version):
                chosen[document.name, each.version] = each
    yield from chosen.values()


def with_house_rules(named: Sequence[str], words: Sequence[str]) -> tuple[str, ...]:
    """Return the documents ``named``, and each again with the house rules in ``words`` for it.

    If none is named, return only documents with house rules: all that the rules are for. Raise
    CastigateError if house rules are invalid, for none of the documents named, or for no pair.
    """
    found = list(named)
    for word in words:
        rules, before = house_rules_for(word), len(found)
        for document in rules.entry.documents:
            versions = [each.partition(":") for each in named]
            asked = [colon + version for name, colon, version in versions if name == document]
            for version in asked if named else [""]:
                name = f"{document}{JOINT}{rules.name}{version}"
                if not any(any(each.pairs()) for each in _editions([name])):
                    raise CastigateError(
                        f"the house rules {rules.name} decide no pair that {document}{version} "
                        f"lists; castigate specs {typed_name(document)[0]} shows which it has"
                    )
                found.append(name)
        if len(found) == before:
            raise CastigateError(
                f"the house rules {rules.name} are for {', '.join(rules.entry.documents)}; "
                "name one of these with --document, or none"
            )
    return tuple(dict.fromkeys(found))


def house_rules_for(word: str) -> HouseRules:
    """Return the house rules of a name or path; those of a file are registered.

    Raise CastigateError as ``rules_named`` does, or if they are for a document that does not exist
    or is not of casts.
    """
    rules = rules_named(word)
    for index, name in enumerate(rules.entry.documents):
        if name not in documents() or JOINT in name:
            hint = did_you_mean(name, documents())
            message = f"unknown document `{name}`; {hint}the documents are {', '.join(documents())}"
            raise rules.source.error(("documents", index), message)
        if documents()[name].entry.operation != "cast":
            message = (
                f"`{name}` is no document of casts, and house rules are for casts; leave it out"
            )
            raise rules.source.error(("documents", index), message)
    return rules


def decided_by(cases: Iterable[Case], words: Sequence[str]) -> Iterator[Case]:
    """Yield each case with each of the house rules in ``words`` that have a choice for its pair.

    They must be for the case's document, too. Worked examples have no house rules.
    """
    for word in words:
        rules = house_rules_for(word)
        for case in cases:
            with_rules = replace(case, document=f"{case.document}{JOINT}{rules.name}")
            if case.document in rules.entry.documents and with_rules in cases_of_pair(
                with_rules.document, case.version, case.source, case.target
            ):
                yield with_rules


def case_named(case_id: str) -> Case:
    """Return the case with an id; if none has it, raise CastigateError, which names the nearest."""
    document, _, rest = case_id.partition(":")
    version = rest.partition("/")[0]
    known = documents()
    if document in known and version in known[document].entry.versions:
        found = _ids(document, version).get(case_id)
        if found is not None:
            return found
    hint = _hint(case_id[:200]) or "castigate specs DOCUMENT:VERSION lists the cases"
    raise CastigateError(f"unknown case `{case_id[:200]}`; {hint}".rstrip())


def _hint(case_id: str) -> str:
    """Return ``did you mean `ID`? `` with a similar known id, or an empty text.

    The parts of an id are compared one after another, because the command `judge` may read many
    wrong ids.
    """
    parts = [*case_id.split("/"), "", ""]
    document, _, version = parts[0].partition(":")
    known_document = closest(document, documents())
    if known_document is None:
        return ""
    versions = list(document_named(known_document).entry.versions)
    ids = _ids(known_document, closest(version, versions) or versions[-1])
    source, target = (closest(dtype, formats()) for dtype in parts[1:3])
    pair = [known for known, case in ids.items() if (case.source, case.target) == (source, target)]
    return did_you_mean(case_id, pair)


@cache
def first_cases(document: str, version: str) -> dict[tuple[str, str], Case]:
    """Map each pair of dtypes that a version of a document has to its first case."""
    return {pair: cases[0] for pair, cases in _pairs(document, version).items()}


def cases_of_pair(document: str, version: str, source: str, target: str) -> list[Case]:
    """Return the cases of a pair in a version of a document, the one of default modes first."""
    return list(_pairs(document, version).get((source, target), ()))


@cache
def _pairs(document: str, version: str) -> dict[tuple[str, str], list[Case]]:
    found: dict[tuple[str, str], list[Case]] = {}
    for case in _ids(document, version).values():
        found.setdefault((case.source, case.target), []).append(case)
    return found


@cache
def _ids(document: str, version: str) -> dict[str, Case]:
    cases = edition(document_named(document), version).cases()
    return {case.id: case for case in _pair_by_pair(cases)}
