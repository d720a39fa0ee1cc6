"""The pairs of the first screen: that they are the most asked, and that their words are true."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from conformance.extras.board.asked import Asked, asked_pairs
from conformance.extras.board.threads import threads_by_pair
from conformance.families.cast.quick_inputs import quick_inputs
from oracles.reference.exact import Number, decode
from specs.formats import dtypes_spelled
from tests.conformance.processes import ROOT

DOCKET = ROOT / "specs" / "docket"
QUESTIONS = Path("tests/conformance/data/questions.yaml")


def threads() -> Counter[tuple[str, str]]:
    """How many public threads ask about each pair, read without the code under test."""
    found: Counter[tuple[str, str]] = Counter()
    for path in DOCKET.glob("*.yaml"):
        for entry in YAML(typ="safe").load(path)["threads"].values():
            found.update({tuple(one["case"].split("/")[1:3]) for one in entry["questions"]})
    return found


def typed() -> set[tuple[str, str]]:
    """The pairs of the questions that stem from a public thread."""
    found = set()
    for entry in YAML(typ="safe").load(ROOT / QUESTIONS):
        if "thread" not in entry:
            continue
        words = entry["ask"].replace("->", " ").replace("'", " ").replace("(", " ").split()
        dtypes = [names[0] for word in words if (names := dtypes_spelled(word))]
        found.add((dtypes[0], dtypes[1]) if len(dtypes) > 1 else ("", ""))
    return found


def test_they_are_the_pairs_with_most_threads() -> None:
    counts, asked = threads(), [*asked_pairs()]
    assert len(asked) == 20
    most = [pair for pair, count in counts.items() if count > 2]
    assert {*asked[: len(most)]} == {*most}
    others = {pair for pair, count in counts.items() if count == 2 and pair in typed()}
    assert {*asked[len(most) :]} == others


def test_the_docket_is_read_as_it_stands() -> None:
    assert {pair: len(found) for pair, found in threads_by_pair().items()} == threads()
    [thread] = [
        each
        for each in threads_by_pair()["float32", "int32"]
        if each.link == "https://github.com/pytorch/pytorch/issues/180159"
    ]
    assert thread.report == "NaN and infinity to integers differ between the CPU and CUDA"


@pytest.mark.parametrize("asked", asked_pairs().values(), ids=lambda asked: "/".join(asked.pair))
def test_the_quick_tier_asks_every_telling_input(asked: Asked) -> None:
    assert asked.code in quick_inputs(*asked.pair, 1, 0)


@pytest.mark.parametrize("asked", asked_pairs().values(), ids=lambda asked: "/".join(asked.pair))
def test_a_word_names_what_it_says(asked: Asked) -> None:
    given, bits = decode(asked.source, asked.code), asked.target.bits
    lowest = -(1 << bits - 1) if asked.target.is_signed else 0
    ends = {"INT_MIN": lowest, "INT_MAX": lowest + (1 << bits) - 1}
    for answer, word in asked.words.items():
        value = answer - (1 << bits) if answer >> bits - 1 and lowest else answer
        if word in ends:
            assert value == ends[word]
        elif word in ("true", "false"):
            assert (asked.target.kind, value) == ("boolean", int(word == "true"))
        else:
            assert isinstance(given, Number)
            sign = -1 if given.sign else 1
            number = int(sign * given.significand * Fraction(2) ** given.exponent)
            wrapped = number % (1 << bits)
            clamped = min(max(number, lowest), lowest + (1 << bits) - 1)
            assert answer == {"wraps": wrapped, "clamps": clamped % (1 << bits)}[word]


@pytest.mark.parametrize(
    ("pair", "answer", "word"),
    [
        (("float32", "int32"), 0x80000000, "INT_MIN"),
        (("float32", "int32"), 0, "0"),
        (("float32", "uint8"), 0xFF, "wraps"),
        (("float32", "uint8"), 7, "7"),
        (("float32", "float8e4m3fn"), 0x7E, "448"),
        (("float32", "float8e4m3fn"), 0x7F, "NaN"),
        (("float32", "float8e4m3fn"), 0xFF, "NaN"),
        (("float32", "float8e5m2"), 0x7C, "inf"),
        (("float32", "float16"), 1, "5.96e-8"),
        (("float32", "bool"), 1, "true"),
    ],
)
def test_an_answer_is_a_word(pair: tuple[str, str], answer: int, word: str) -> None:
    assert asked_pairs()[pair].word(answer) == word
