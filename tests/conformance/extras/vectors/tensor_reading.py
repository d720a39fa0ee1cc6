"""A strict reader of files of tensors that shares no code with the product."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from math import prod

CODE = "[0-9a-f]+"
ALTERNATIVE = re.compile(rf"({CODE})(?:\.\.({CODE}))?(?:/({CODE}))?")
NAME = re.compile(r"=?[A-Za-z]\w*")
DIMENSIONS = re.compile(r"-|\d+(x\d+)*")


@dataclass
class Tensor:
    dtype: str
    shape: tuple[int, ...]
    words: list[str]

    @property
    def codes(self) -> list[int]:
        return [int(word, 16) for word in self.words]


@dataclass
class Record:
    case: str
    attributes: dict[str, str] = field(default_factory=dict)
    given: dict[str, Tensor] = field(default_factory=dict)
    results: dict[str, Tensor] = field(default_factory=dict)


def allows(word: str, code: int) -> bool:
    return word == "?" or any(_allows_one(each, code) for each in word.split("|"))


def codes_of(word: str) -> set[int]:
    """All codes that a word without a mask allows."""
    ends = ([int(end, 16) for end in each.split("..")] for each in word.split("|"))
    return {code for each in ends for code in range(each[0], each[-1] + 1)}


def _allows_one(alternative: str, code: int) -> bool:
    found = ALTERNATIVE.fullmatch(alternative)
    assert found is not None
    low, high, mask = (None if each is None else int(each, 16) for each in found.groups())
    assert low is not None
    kept = code if mask is None else code & mask
    return low <= kept <= (low if high is None else high)


def read_tensors(content: bytes) -> tuple[str, list[Record]]:
    """The document of a file and its records; raises AssertionError unless it is well formed."""
    text = content.decode("ascii")
    assert re.search(r"[^\n]\n\Z", text), "the end"
    head, *paragraphs = text[:-1].split("\n\n")
    first, *notes = head.split("\n")
    header = re.fullmatch(r"vectors 1 tensors (\S+) (\d+)", first)
    assert header is not None, first
    assert all(note.startswith("# ") for note in notes)
    assert int(header[2]) == len(paragraphs), "another number of records"
    return header[1], [_record(paragraph, header[1]) for paragraph in paragraphs]


def _record(paragraph: str, document: str) -> Record:
    first, *lines = paragraph.split("\n")
    assert first.startswith(f"case {document}/"), first
    record = Record(first.removeprefix("case "))
    for line in lines:
        match line.split(" "):
            case ["#", *_]:
                continue
            case ["attribute", name, value]:
                assert not record.given, line
                assert name not in record.attributes, line
                record.attributes[name] = value
            case [name, dtype, dimensions, ":", *words]:
                _add(record, name, Tensor(dtype, _shape(dimensions), words))
            case _:
                raise AssertionError(line)
    assert record.given, first
    assert record.results, first
    return record


def _shape(dimensions: str) -> tuple[int, ...]:
    assert DIMENSIONS.fullmatch(dimensions), dimensions
    return () if dimensions == "-" else tuple(map(int, dimensions.split("x")))


def _add(record: Record, name: str, tensor: Tensor) -> None:
    assert NAME.fullmatch(name), name
    tensors = record.results if name.startswith("=") else record.given
    name = name.removeprefix("=")
    assert name not in tensors, name
    assert tensors is record.results or not record.results, "an input after a result"
    assert len(tensor.words) == prod(tensor.shape), f"{name}: words missing"
    digits = {len(each) for word in tensor.words for each in re.findall(CODE, word)}
    assert len(digits) <= 1, f"{name}: codes of different lengths"
    for word in tensor.words:
        if tensors is record.given:
            assert re.fullmatch(CODE, word), word
        else:
            assert word == "?" or all(map(ALTERNATIVE.fullmatch, word.split("|"))), word
    tensors[name] = tensor
