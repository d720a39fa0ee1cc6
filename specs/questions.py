"""Finds the cases that a question is about, in the words in which people ask it.

A question is a case id; or a document, with or without a version, and two dtypes; or two dtypes
alone, which all documents answer. A word or the beginning of a document's name stands for all
documents with such a name. Dtypes are spelled as frameworks do; they stand one after another, with
`to` or a slash between them or nothing. What a question leaves out is the newest version that has
the pair, and the default modes. Families read other questions, such as those of more dtypes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import prod
from typing import NamedTuple

from specs.cases import SHAPE, Case, parse_shape
from specs.editions import edition
from specs.errors import CastigateError, DocumentError, closest
from specs.formats import dtype_spelled, dtypes_spelled, either, refuse_rounded_operands
from specs.loader import document_and_version, document_named, documents, typed_name, yardsticks
from specs.operations import is_cast
from specs.outcomes import Anything
from specs.ruling import case_rules, ruling
from specs.selection import case_named, cases_of_pair

SHAPE_TEXT = re.compile(r"scalar|\d{1,9}(x\d{1,9}){0,63}", re.ASCII)
MOST_ELEMENTS = 1 << 24
"""The most elements of a tensor that is given on a command line or in a file."""


TO = "to"
"""People may write this word between two dtypes."""


class Question(NamedTuple):
    """The cases that a question means, and the words after them, which are its inputs.

    ``is_open`` says that the question names dtypes and not a case, so that people want to know what
    comes out, and not yet by which rule. Each case is then of another document.
    """

    cases: list[Case]
    inputs: list[str]
    is_open: bool = False


def read_question(words: Sequence[str]) -> Question:
    """Read a question and its inputs; raise CastigateError if it names no case."""
    document, path, inputs = parts_of(words)
    is_known = is_document(document) or bool(documents_called(document))
    if is_known and len(path) < 2:
        raise CastigateError(
            f"`{document}` names documents; add two dtypes: {document} {_listed_pair(document)}"
        )
    if is_document(document):
        is_by_dtypes = "/" not in words[0] and len(path) == len(("source", "target"))
        return Question([case_meant(document, path)], inputs, is_by_dtypes)
    if document and not is_known:
        return Question([case_named("/".join([document, *path]))], inputs)
    if len(path) < 2:
        dtype_spelled(words[0])
        raise CastigateError(f"`{words[0]}` is one dtype; name two: {words[0]} int32")
    if not document:
        return Question(_of_all_documents(path, documents_always_asked()), inputs, is_open=True)
    cases = _of_documents_called(document, path)
    return Question(cases, inputs, is_open=all(map(is_cast, cases)))


def _listed_pair(document: str) -> str:
    """Return two dtypes whose pair a document lists: float32 and int32 if it can be."""
    name, _, version = document.partition(":")
    one = documents().get(name) or documents()[documents_called(document)[0]]
    listed = edition(one, version or [*one.entry.versions][-1]).listed
    usual = ("float32", "int32")
    order = sorted(listed, key=lambda pair: (pair[0] != usual[0], pair))
    return " ".join(usual if usual in listed else next(iter(order), usual))


def worked_case(case: Case, code: int) -> Case:
    """Return the worked example that has the input ``code``, if ``case`` leaves all inputs open.

    Return ``case`` itself if it does not, or if no example in its modes has the input.
    """
    if case.example is None and ruling(case).is_open:
        for each in cases_of_pair(case.document, case.version, case.source, case.target):
            has_example = each.example is not None and each.modes == case.modes
            if has_example and code in dict(ruling(each).worked):
                return each
    return case


def documents_always_asked() -> list[str]:
    """Return the documents that answer a question in which no document is named."""
    return [name for name, each in documents().items() if each.entry.asked == "always"]


def documents_called(word: str) -> list[str]:
    """Return the documents whose name begins with a word or has it among its parts.

    With `:VERSION` behind the word, only documents that have this version.

    >>> documents_called("wasm")
    ['wasm-convert', 'wasm-reinterpret']
    """
    name, _, version = word.lower().replace("_", "-").partition(":")
    return [
        each
        for each, document in documents().items()
        if name and (each.startswith(name) or name in each.split("-"))
        if not version or version in document.entry.versions
    ]


class Parts(NamedTuple):
    """A question's document (empty if it has none), its dtypes with modes, and its inputs."""

    document: str
    path: list[str]
    inputs: list[str]


def parts_of(words: Sequence[str]) -> Parts:
    """Split a question's words, at least one; dtypes may be joined by slashes or be single words.

    Raise CastigateError for a document with a colon and no version, for a format that no tensor
    has, and for an unknown word among three or more dtypes.
    """
    first, *rest = words
    head, *path = first.split("/")
    name, colon, version = head.partition(":")
    if colon and not version and name in documents():
        document_named(head)  # Raises an error: the word as a whole is no name.
    is_dtype = bool(dtypes_spelled(head))
    is_document = name in documents() or name in yardsticks()
    is_document |= not is_dtype and (bool(documents_called(head)) or len(path) > 1)
    for word in (head, *path):
        refuse_rounded_operands(word)
    if path:
        return Parts(head, path, rest) if is_document else Parts("", [head, *path], rest)
    path, inputs = _dtypes_first(rest if is_document else words)
    if not (is_document or is_dtype) and len(path) > 2:
        near = closest(name, [*documents(), *(each.split("-")[0] for each in documents())])
        meant = f"did you mean `{near}`? " if near else ""
        raise CastigateError(
            f"`{head[:100]}` is no document and no dtype; {meant}castigate specs lists the"
            " documents"
        )
    if len(path) > 2:
        path = [*map(dtype_spelled, path)]
    return Parts(head if is_document else "", path, inputs)


def _dtypes_first(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split words into the dtypes at their beginning, with or without `to` between, and the rest.

    The second word is always a dtype. A later one is a dtype if it spells one or follows a `to`,
    unless the first is `string`: inputs that are texts may spell dtypes.
    """
    path, rest = list(words[:1]), list(words[1:])
    is_text = dtypes_spelled("".join(path)) == ["string"]
    while rest:
        has_preposition = rest[0] == TO and len(rest) > 1
        given = rest[has_preposition]
        if len(path) > 1 and (is_text or not (has_preposition or dtypes_spelled(given))):
            break
        refuse_rounded_operands(given)
        path.append(given)
        rest = rest[has_preposition + 1 :]
    return path, rest


def case_of_any_shape(case_id: str) -> Case:
    """Return the case of an id, whose shape may be another than those of the document's cases.

    The shape has at most ``MOST_ELEMENTS`` elements. Raise CastigateError with the nearest id if
    there is no such case, or no rule for it.
    """
    head, _, shape = case_id.rpartition(f"/{SHAPE}:")
    name, _, version = head.partition("/")[0].partition(":")
    if (
        SHAPE_TEXT.fullmatch(shape)
        and version in (documents()[name].entry.versions if name in documents() else ())
        and prod(parse_shape(shape)) <= MOST_ELEMENTS
    ):
        _, source, target, *_ = [*head.split("/"), "", ""]
        for listed in cases_of_pair(name, version, source, target):
            modes = tuple((each, shape if each == SHAPE else value) for each, value in listed.modes)
            case = replace(listed, modes=modes)
            if case.id == case_id and _has_rule(case):
                return case
    return case_named(case_id)


def _has_rule(case: Case) -> bool:
    try:
        return any(case_rules(document_named(case.document), case))
    except DocumentError:
        return False


def is_document(word: str) -> bool:
    """Return whether a word is the name of a document, with or without a version."""
    return word.partition(":")[0] in documents()


def case_meant(document: str, parts: Sequence[str]) -> Case:
    """Return the first case of a document that has the dtypes and all modes in ``parts``.

    With a version, a shape in ``parts`` may be one that no case has; without, only the newest
    version with any case of the pair is searched. Raise CastigateError if there is no case.
    """
    asked = "/".join([document, *parts])
    name, _, version = document.partition(":")
    if len(parts) < 2 or not is_document(document):
        return case_named(asked)
    if version:
        document_and_version(document)  # Raises an error if there is no such version.
    if not all(map(dtypes_spelled, parts[:2])):
        return case_named(asked)
    if any(part.startswith(f"{SHAPE}:") for part in parts[2:]) and version:
        return case_of_any_shape("/".join([document, *map(dtype_spelled, parts[:2]), *parts[2:]]))
    source, target = map(dtype_spelled, parts[:2])
    for each in [version] if version else _newest_first(name):
        listed = cases_of_pair(name, each, source, target)
        modes = set(parts[2:])
        for case in listed:
            if modes <= set(case.id.split("/")[3:]):
                return case
        if listed:
            options = sorted({part for case in listed for part in case.id.split("/")[3:]})
            raise CastigateError(
                f"unknown case `{asked[:200]}`; "
                + (f"modes of this pair are {', '.join(options)}" if options else "it has no modes")
            )
    if version:
        return case_named(asked)
    raise CastigateError(
        f"{document} lists no pair {source} to {target}; castigate specs {typed_name(document)[0]}"
        " lists its cases"
    )


def _of_documents_called(word: str, path: Sequence[str]) -> list[Case]:
    """Return the casts of a pair in the documents that a word means, or else their only case of it.

    Where these documents list other cases too, casts count only if one decides a value. A document
    that is asked by its name counts only alone. Raise CastigateError if no casts count and the
    documents do not list exactly one case.
    """
    names, version = documents_called(word), word.partition(":")[2]
    casts = _casts(path, names, version)
    listed = [case for name in names if (case := _case_if_any(name, version, path)) is not None]
    always = documents_always_asked()
    listed = [each for each in listed if each.document in always] or listed
    if casts and (any(map(_tells_values, casts)) or all(map(is_cast, listed))):
        return casts
    pair = " to ".join(map(dtype_spelled, path[:2]))
    if not listed:
        raise CastigateError(
            f"no document called `{word}` lists {pair}: it may be {either(names)}; castigate specs"
            " DOCUMENT lists its cases"
        )
    if len(listed) > 1:
        choices = either([case.document for case in listed])
        raise CastigateError(f"`{word}` may be {choices} for {pair}; write one of these")
    return listed


def _case_if_any(document: str, version: str, path: Sequence[str]) -> Case | None:
    try:
        return case_meant(f"{document}:{version}".rstrip(":"), path)
    except CastigateError:
        return None


def _of_all_documents(path: Sequence[str], names: Iterable[str]) -> list[Case]:
    """Return what ``_casts`` finds for a pair in documents; raise CastigateError if nothing."""
    found = _casts(path, names)
    if not found:
        source, target = map(dtype_spelled, path[:2])
        raise CastigateError(
            f"no document lists a cast from {source} to {target}"
            + (f" with {', '.join(path[2:])}" if path[2:] else "")
            + "; castigate specs lists the documents"
        )
    return found


def _casts(path: Sequence[str], names: Iterable[str], only_version: str = "") -> list[Case]:
    """Return a case of a pair for each document of casts in ``names`` that decides a value of it.

    If none decides more than an error, documents that leave the values open have their cases too.
    The case is of the newest version that decides a value, if any. Versions that follow another
    document, or are not ``only_version`` if given, have none. ``path`` has two dtypes, then modes.
    """
    source, target = map(dtype_spelled, path[:2])
    found = []
    for name in names:
        first_of_version = []
        versions = documents()[name].entry.versions
        for version in _newest_first(name):
            if versions[version].follows or only_version not in ("", version):
                continue
            for case in cases_of_pair(name, version, source, target):
                if is_cast(case) and set(path[2:]) <= set(case.id.split("/")[3:]):
                    first_of_version.append(case)
                    break
        of_values = filter(_tells_values, first_of_version)
        found += [next(of_values, first_of_version[0])] if first_of_version else []
    telling = [case for case in found if _tells_values(case)]
    # Where only refusals speak of values, the others list what those lack, such as complex dtypes.
    return found if all(ruling(case).is_rejection for case in telling) else telling


def _tells_values(case: Case) -> bool:
    """Return whether a case has an input that is not open; cases of some call pages have none."""
    return any(not isinstance(each.outcome, Anything) for each in ruling(case).branches)


def _newest_first(document: str) -> list[str]:
    return list(reversed(documents()[document].entry.versions))
