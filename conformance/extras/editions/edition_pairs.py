"""Pairs of editions to compare, and their cases matched by pair of dtypes and parameters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from specs.cases import Case
from specs.editions import Edition, edition
from specs.errors import CastigateError, unknown_word
from specs.loader import OWN_FILE, Document, document_and_version, load_document
from specs.model.document import ParameterEntry


class EditionPair(NamedTuple):
    """An edition and the one that replaces it."""

    old: Edition
    new: Edition


def edition_pairs(old: str, new: str) -> tuple[EditionPair, ...]:
    """Return the pairs of editions that two words name, such as ``onnx-cast:24`` or ``my.yaml``.

    A word without a version means the only version, or else the one that the other word names. If
    neither names one, each version of the old document is paired with that of the same name. Raise
    CastigateError if a word is wrong, or if the documents are about different operations.
    """
    before, after = (_document_and_version(word) for word in (old, new))
    operations = [document.entry.operation for document, _ in (before, after)]
    if operations[0] != operations[1]:
        raise CastigateError(
            f"`{old}` is about `{operations[0]}` and `{new}` about `{operations[1]}`; give two"
            " documents of one operation"
        )
    if before[1] is None and after[1] is None:
        if before[0].name == after[0].name and not any(map(_is_file, (old, new))):
            raise CastigateError(f"`{old}` names no version; write {_with_last(before[0])}")
        if pairs := tuple(_common(before[0], after[0])):
            return pairs
    versions = [
        _version(word, document, version, other)
        for word, (document, version), other in (
            (old, before, after[1]),
            (new, after, before[1]),
        )
    ]
    return (EditionPair(edition(before[0], versions[0]), edition(after[0], versions[1])),)


def _document_and_version(word: str) -> tuple[Document, str | None]:
    """Return the document that a word names, and the version if it names one.

    A file is not registered: both files may have the same name.
    """
    if (found := OWN_FILE.fullmatch(word)) is None:
        return document_and_version(word, takes_yardsticks=True)
    path = Path(found["path"])
    if not path.is_file():
        raise CastigateError(f"document {path}: there is no such file; give its path")
    document, version = load_document(path), found["version"]
    if version is not None and version not in document.entry.versions:
        problem = unknown_word("version", version, document.entry.versions)
        raise CastigateError(f"document {path}: {problem}")
    return document, version


def _is_file(word: str) -> bool:
    return OWN_FILE.fullmatch(word) is not None


def _common(old: Document, new: Document) -> Iterator[EditionPair]:
    for version in old.entry.versions:
        if version in new.entry.versions:
            yield EditionPair(edition(old, version), edition(new, version))


def _version(word: str, document: Document, version: str | None, other: str | None) -> str:
    """Return the version that ``word`` means; ``other`` is what the other word names, if any."""
    known = [*document.entry.versions]
    if version is not None:
        return version
    if other in known:
        return str(other)
    if len(known) == 1:
        return known[0]
    raise CastigateError(
        f"`{word}` has the versions {', '.join(known)}; name one, as `{word}:{known[-1]}`"
    )


def _with_last(document: Document) -> str:
    last = [*document.entry.versions][-2:]
    return f"castigate specs diff {' '.join(f'{document.name}:{each}' for each in last)}"


class CasePair(NamedTuple):
    """A case of the old edition, and the case of the new one that asks the same."""

    old: Case
    new: Case


@dataclass(frozen=True)
class MatchedCases:
    """The cases of two editions: those of both, and those that only one of them has."""

    both: tuple[CasePair, ...]
    gone: tuple[Case, ...]
    new: tuple[Case, ...]


def match_cases(pair: EditionPair) -> MatchedCases:
    """Match the cases of two editions by pair of dtypes, mode and name of a worked example.

    Where only one edition has a parameter, its default matches. Where a parameter does not affect
    the pair in one edition, every value matches.
    """
    parameters = [dict(each.parameters()) for each in pair]
    before: dict[tuple[str, ...], list[Case]] = {}
    for case in pair.old.cases():
        before.setdefault(_asked(case), []).append(case)
    both, new = [], []
    for case in pair.new.cases():
        same = [
            CasePair(each, case)
            for each in before.get(_asked(case), ())
            if _is_same_mode(each, case, *parameters)
        ]
        both += same
        if not same:
            new.append(case)
    matched = {each.old for each in both}
    gone = [each for cases in before.values() for each in cases if each not in matched]
    return MatchedCases(tuple(both), tuple(gone), tuple(new))


def _asked(case: Case) -> tuple[str, ...]:
    return case.source, case.target, case.example or ""


Parameters = dict[str, ParameterEntry]


def _is_same_mode(old: Case, new: Case, old_has: Parameters, new_has: Parameters) -> bool:
    before, after = old.mode, new.mode
    return all(
        before[key] == after[key]
        if key in before and key in after
        else _is_implied(key, before[key], old_has, new_has)
        if key in before
        else _is_implied(key, after[key], new_has, old_has)
        for key in before | after
    )


def _is_implied(key: str, value: str, own: Parameters, others: Parameters) -> bool:
    """Return whether a case without a mode asks what a case with it asks.

    ``own`` are the parameters of the edition whose case has the mode.
    """
    return key in others or (key in own and value == own[key].default)
