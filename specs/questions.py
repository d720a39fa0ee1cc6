"""Finds the cases that a question is about, in the words in which people ask it.

A question is a case id; or a document, with or without a version, and two dtypes; or two dtypes
alone, which all documents answer. Dtypes are spelled as frameworks do. What a question leaves out
is the newest version that has the pair, and the default modes. One number of a quantization is
asked about in a sentence: quantize 0.25 by 0.1 as float16.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import NamedTuple

from specs.bitcast_ruling import ruling_if_any
from specs.bitcast_shapes import parse_shape
from specs.calls import SHAPE
from specs.cases import Case
from specs.dtype_names import dtype_spelled, dtypes_spelled
from specs.errors import CastigateError
from specs.loader import documents
from specs.operations import is_bitcast, is_cast
from specs.outcomes import Anything
from specs.ruling import ruling
from specs.selection import case_named, cases_of_pair

SHAPE_TEXT = re.compile(r"scalar|\d{1,9}(x\d{1,9}){0,63}", re.ASCII)
MOST_ELEMENTS = 1 << 24
"""Elements of a tensor that is given on a command line or in a file."""


SENTENCES = {
    "quantize": ("onnx-quantize-linear", "uint8"),
    "dequantize": ("onnx-dequantize-linear", "float32"),
}
"""By the verb of a sentence, the document that it is about, and the dtype of the results.

Codes are of uint8 if nothing names another dtype, as that document has it.
"""
PREPOSITIONS = ("by", "as", "to", "zero")
"""The words of a sentence before the scale, the dtype of the input, that of the result, and the
zero point; the last two may be left out."""


class Question(NamedTuple):
    """The cases that are asked about, and the words after them.

    ``is_open`` says that no document was named.
    """

    cases: list[Case]
    inputs: list[str]
    is_open: bool = False


class Sentence(NamedTuple):
    """A case, an input, its scale, and its zero point if there is one."""

    case: Case
    given: str
    scale: str
    zero: str | None


def read_sentence(words: Sequence[str]) -> Sentence | None:
    """Read a question about a quantization; None if its first word is no verb of one."""
    verb, *rest = words
    if verb not in SENTENCES:
        return None
    document, usual = SENTENCES[verb]
    given, names, values = "".join(rest[:1]), rest[1::2], rest[2::2]
    found = dict(zip(names, values, strict=False))
    is_whole = len(names) == len(values) == len(found)
    if not (is_whole and {"by", "as"} <= found.keys() <= {*PREPOSITIONS}):
        raise CastigateError(
            f"`{' '.join(words)[:200]}` is no question about a quantization; write"
            f" {verb} INPUT by SCALE as DTYPE [to DTYPE] [zero ZERO]"
        )
    case = _case(document, [found["as"], found.get("to", usual)])
    return Sentence(case, given, found["by"], found.get("zero"))


def read_question(words: Sequence[str]) -> Question:
    """Read a question and its inputs; raise an error if it names no case."""
    first, *rest = words
    parts = first.split("/")
    if len(parts) == 1 and _is_document(first):
        if len(rest) < 2:
            raise CastigateError(
                f"`{first}` is a document; name two dtypes too: {first} float32 int32"
            )
        source, target, *inputs = rest
        return Question([_case(first, [source, target])], inputs)
    if len(parts) > 2 and (_is_document(parts[0]) or not dtypes_spelled(parts[0])):
        return Question([_case(parts[0], parts[1:])], rest)
    if len(parts) == 1:
        if not rest:
            dtype_spelled(first)
            raise CastigateError(f"`{first}` is one dtype; name two: {first} int32")
        target, *inputs = rest
        return Question(_of_all_documents(first, [target]), inputs, is_open=True)
    return Question(_of_all_documents(parts[0], parts[1:]), rest, is_open=True)


def case_of_any_shape(case_id: str) -> Case:
    """The case of an id; that of a bitcast may have a shape that the document's cases do not list.

    Raise CastigateError with the nearest id if there is none.
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
            if is_bitcast(case) and case.id == case_id and ruling_if_any(case) is not None:
                return case
    return case_named(case_id)


def _is_document(word: str) -> bool:
    return word.partition(":")[0] in documents()


def _case(document: str, parts: Sequence[str]) -> Case:
    """The case of a document that a question means; the id itself, if it is one."""
    asked = "/".join([document, *parts])
    name, _, version = document.partition(":")
    if len(parts) < 2 or not _is_document(document):
        return case_named(asked)
    if version and version not in documents()[name].entry.versions:
        return case_named(asked)
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
        f"{document} lists no pair {source} to {target}; castigate specs {document} lists its cases"
    )


def _of_all_documents(source_word: str, more: Sequence[str]) -> list[Case]:
    """The case of a pair in each document of casts that lists it and speaks of values.

    A document that only follows another one adds nothing to it.
    """
    source, target = dtype_spelled(source_word), dtype_spelled(more[0])
    found = []
    for name in documents():
        first_of_version = []
        versions = documents()[name].entry.versions
        for version in _newest_first(name):
            if versions[version].follows:
                continue
            for case in cases_of_pair(name, version, source, target):
                if is_cast(case) and set(more[1:]) <= set(case.id.split("/")[3:]):
                    first_of_version.append(case)
                    break
        telling = filter(_tells_values, first_of_version)
        found += [next(telling, first_of_version[0])] if first_of_version else []
    found = [case for case in found if _tells_values(case)] or found
    if not found:
        raise CastigateError(
            f"no document lists a cast from {source} to {target}"
            + (f" with {', '.join(more[1:])}" if more[1:] else "")
            + "; castigate specs lists the documents"
        )
    return found


def _tells_values(case: Case) -> bool:
    """Whether a document fixes the answer to any input; some pages of calls fix none."""
    return any(not isinstance(each.outcome, Anything) for each in ruling(case).branches)


def _newest_first(document: str) -> list[str]:
    return list(reversed(documents()[document].entry.versions))
