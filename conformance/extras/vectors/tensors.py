"""Tensors: small calls of operations on them, and what may come out, as files of plain text.

A file begins with a line that has the number of its records, and lines that begin with `#`. Records
are paragraphs:

    case ID
    attribute form tensor
    x float32 1x3 : 3f000000 42fe0000 7fc00000
    y_scale float32 - : 3e800000
    =y int8 1x3 : 02 7f ?

A line of a tensor has its name, dtype and dimensions, `-` if there are none, and a word for each
element in row-major order. Of a result, whose name has `=` before it, a word says what is allowed:
`02` a code, `7e..7f` a range, `00/7f` a code under a mask, `7c01..7fff/7fff` a range under a mask,
`00|ff` one of several, `?` anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from conformance.extras.vectors.vector_text import FORMAT
from conformance.families import SMALL_TENSORS, small_of
from conformance.families.small_tensors import (
    AllowedCodes,
    AllowedTensor,
    Alternatives,
    GivenTensor,
    Records,
    SmallRecord,
)
from specs.cases import Case, Shape
from specs.formats import Format
from specs.operations import operation_of

FOLDER = "tensors"
NOTES = (
    "A record is a paragraph: the case, attributes, tensors that go in, and results, named with =.",
    "A tensor: name dtype dimensions : a word for each element (no dimensions: -).",
    "A result's word: 7f a code; 7e..7f a range; 00/7f, 7c01..7fff/7fff under a mask; 00|ff one of"
    " several; ? anything.",
    "Elements are not packed, however few bits they have.",
)


@dataclass(frozen=True)
class TensorFile:
    """The file of a version of a document: its path in a folder of vectors, and its content.

    ``cases`` has the ids of the cases that have records, ``records`` counts these, and ``left_out``
    has the ids of the other cases by why they have none.
    """

    path: str
    content: bytes
    cases: tuple[str, ...]
    records: int
    left_out: Mapping[str, Sequence[str]]


def tensor_records(case: Case) -> Records:
    """Return the records of a case of an operation in ``SMALL_TENSORS``, or why it has none."""
    return small_of(case)(case)


def tensor_files(cases: Iterable[Case]) -> Iterator[TensorFile]:
    """Yield a file for each version of a document, with the records of its cases in their order.

    Cases of operations that have no small tensors are passed over. A file may have no records.
    Raise CastigateError if two definitions of an operation disagree.
    """
    found = sorted(
        (case for case in cases if operation_of(case) in SMALL_TENSORS),
        key=lambda case: (case.document, case.version),
    )
    for (document, version), each in groupby(found, lambda case: (case.document, case.version)):
        yield _file(document, version, {case.id: tensor_records(case) for case in each})


def _file(document: str, version: str, of_cases: Mapping[str, Records]) -> TensorFile:
    paragraphs: list[str] = []
    told: list[str] = []
    left_out: dict[str, list[str]] = {}
    for case_id, found in of_cases.items():
        if found.records:
            told.append(case_id)
        else:
            left_out.setdefault(found.left_out, []).append(case_id)
        paragraphs += ["\n".join(_lines(case_id, record)) for record in found.records]
    header = f"vectors {FORMAT} {FOLDER} {document}:{version} {len(paragraphs)}"
    head = "\n".join([header, *(f"# {note}" for note in NOTES)])
    text = "\n\n".join([head, *paragraphs]) + "\n"
    path = f"{FOLDER}/{document}-{version}.txt"
    return TensorFile(path, text.encode("ascii"), tuple(told), len(paragraphs), left_out)


def _lines(case_id: str, record: SmallRecord) -> Iterator[str]:
    yield f"case {case_id}"
    for name, value in record.attributes.items():
        yield f"attribute {name} {value}"
    for given in record.given:
        yield _line(
            given.name, given, (f"{code:0{given.form.hex_digits}x}" for code in given.codes)
        )
    for returned in record.returned:
        if returned.recommended:
            yield f"# only recommended: {returned.name} {_places(returned)}".rstrip()
        words = (_word(returned.form, each) for each in returned.allowed)
        yield _line(f"={returned.name}", returned, words)


def _line(name: str, tensor: GivenTensor | AllowedTensor, words: Iterable[str]) -> str:
    parts = (name, tensor.form.name, _dimensions(tensor.shape), ":", *words)
    return " ".join(parts)


def _dimensions(shape: Shape) -> str:
    return "x".join(map(str, shape)) or "-"


def _places(returned: AllowedTensor) -> str:
    """Return the indices of recommended elements as text; empty if all others are open."""
    settled = [at for at, each in enumerate(returned.allowed) if each]
    if settled == [*returned.recommended]:
        return ""
    found: list[str] = []
    for _, run in groupby(enumerate(returned.recommended), lambda each: each[1] - each[0]):
        (_, first), *_, (_, last) = [*run] * 2
        found.append(str(first) if first == last else f"{first}-{last}")
    return " ".join(found)


def _word(form: Format, allowed: Alternatives) -> str:
    return "|".join(_alternative(form, each) for each in allowed) or "?"


def _alternative(form: Format, codes: AllowedCodes) -> str:
    digits = form.hex_digits
    word = f"{codes.low:0{digits}x}"
    if codes.high != codes.low:
        word += f"..{codes.high:0{digits}x}"
    # A bool may have eight bits, if these were only moved; then the mask has them, too.
    return word if codes.mask & form.mask == form.mask else f"{word}/{codes.mask:0{digits}x}"
