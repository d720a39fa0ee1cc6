"""numpy-astype refuses and allows what numpy's texts say, mode by mode."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from oracles.reference.expect_by_exact import allow
from specs.branches import Ruling
from specs.cases import Case
from specs.editions import edition
from specs.loader import document_named
from specs.outcomes import Rejected
from specs.ruling import ruling

DTYPES = {
    "?": "bool", "b": "int8", "h": "int16", "i": "int32", "l": "int64",
    "B": "uint8", "H": "uint16", "I": "uint32", "L": "uint64",
    "e": "float16", "f": "float32", "d": "float64", "F": "complex64", "D": "complex128",
}  # fmt: skip
CAN_CAST_SAFELY = """
  ? b h i l B H I L e f d F D
? Y Y Y Y Y Y Y Y Y Y Y Y Y Y
b - Y Y Y Y - - - - Y Y Y Y Y
h - - Y Y Y - - - - - Y Y Y Y
i - - - Y Y - - - - - - Y - Y
l - - - - Y - - - - - - Y - Y
B - - Y Y Y Y Y Y Y Y Y Y Y Y
H - - - Y Y - Y Y Y - Y Y Y Y
I - - - - Y - - Y Y - - Y - Y
L - - - - - - - - Y - - Y - Y
e - - - - - - - - - Y Y Y Y Y
f - - - - - - - - - - Y Y Y Y
d - - - - - - - - - - - Y - Y
F - - - - - - - - - - - - Y Y
D - - - - - - - - - - - - - Y
"""
"""The guide's table, without dtypes that we lack and without second names of the same dtype."""
KINDS = {"b": "?", "i": "bhil", "u": "BHIL", "f": "efd", "c": "FD"}
"""The table at dtype.kind, with the letters of the dtypes of each kind."""
MODES = ("no", "equiv", "safe", "same_kind", "unsafe", "same_value")
PRECISION = {"float16": 11, "float32": 24, "float64": 53, "complex64": 24, "complex128": 53}
"""The significant bits of a float, or of a complex number's parts."""

Pair = tuple[str, str]


def table_pairs() -> Iterator[Pair]:
    head, *rows = CAN_CAST_SAFELY.strip("\n").splitlines()
    for row in rows:
        letter, *marks = row.split()
        yield from (
            (DTYPES[letter], DTYPES[column])
            for column, mark in zip(head.split(), marks, strict=True)
            if mark == "Y"
        )


SAFE = set(table_pairs())
KIND_OF = {DTYPES[letter]: kind for kind, letters in KINDS.items() for letter in letters}
ALL = {(source, target) for source in DTYPES.values() for target in DTYPES.values()}
WITHIN = {(source, target) for source, target in ALL if KIND_OF[source] == KIND_OF[target]}
SIGNS = {
    (source, target) for source, target in ALL if {KIND_OF[source], KIND_OF[target]} == {*"iu"}
}


def rules_of(source: str, target: str, casting: str = "unsafe", version: str = "2.4") -> Ruling:
    return ruling(Case("numpy-astype", version, source, target, (("casting", casting),)))


def refused(casting: str, version: str = "2.4") -> dict[Pair, str]:
    """The pairs that a mode refuses, each with the level."""
    found = {pair: rules_of(*pair, casting, version) for pair in ALL}
    return {pair: each.branches[0].level for pair, each in found.items() if each.is_rejection}


@pytest.mark.parametrize("version", ["2.3", "2.4"])
def test_every_pair_has_a_case_in_every_mode(version: str) -> None:
    cases = list(edition(document_named("numpy-astype"), version).cases())
    found = {(each.source, each.target, each.mode["casting"]) for each in cases}
    assert found == {(*pair, mode) for pair in ALL for mode in MODES}
    assert document_named("numpy-astype").entry.parameters["casting"].default == "unsafe"


@pytest.mark.parametrize("version", ["2.3", "2.4"])
class TestRefusals:
    @pytest.mark.parametrize("casting", ["no", "equiv"])
    def test_these_modes_refuse_every_other_dtype(self, version: str, casting: str) -> None:
        others = {pair for pair in ALL if pair[0] != pair[1]}
        assert refused(casting, version) == dict.fromkeys(others, "required")

    def test_safe_refuses_what_the_table_does_not_have(self, version: str) -> None:
        assert refused("safe", version) == dict.fromkeys(ALL - SAFE, "required")

    def test_same_kind_adds_the_casts_within_a_kind(self, version: str) -> None:
        found = refused("same_kind", version)
        assert set(found) == ALL - SAFE - WITHIN
        assert {pair for pair, level in found.items() if level == "recommended"} == SIGNS - SAFE

    def test_unsafe_refuses_nothing(self, version: str) -> None:
        assert refused("unsafe", version) == {}
        assert all(rules_of(*pair, version=version).answer_due for pair in ALL)


def test_same_value_comes_with_2_4() -> None:
    assert refused("same_value", "2.3") == dict.fromkeys(ALL, "recommended")
    assert refused("same_value", "2.4") == {}


def test_only_64_bits_as_a_double_are_in_the_table_and_do_not_preserve_values() -> None:
    odd = {pair for pair in ALL if (pair in SAFE) != preserves(*pair)}
    assert odd == {
        (source, target) for source in ("int64", "uint64") for target in ("float64", "complex128")
    }


def preserves(source: str, target: str) -> bool:
    """Whether a dtype holds every value of another, by kinds and bits."""
    kind, to = KIND_OF[source], KIND_OF[target]
    if kind == "b" or (kind, to) == ("c", "c"):
        return kind == "b" or PRECISION[source] <= PRECISION[target]
    if to == "b" or kind == "c":
        return False
    if kind == "f":
        return to in "fc" and PRECISION[source] <= PRECISION[target]
    bits = int(source.lstrip("uint")) - (kind == "i")
    if to in "fc":
        return bits <= PRECISION[target]
    return not (kind == "i" and to == "u") and bits <= int(target.lstrip("uint")) - (to == "i")


def code(value: float, form: str = "<f") -> int:
    return int.from_bytes(struct.pack(form, value), "little")


UNDEFINED = ("unspecified", ())


@pytest.mark.parametrize(
    ("source", "target", "pattern", "expected"),
    [
        ("float32", "int8", code(2), ("required", (2,))),
        ("float32", "int8", code(2.5), ("recommended", (2,))),
        ("float32", "int8", code(-2.5), ("recommended", (0xFE,))),
        ("float32", "int8", code(127.75), ("recommended", (127,))),
        ("float32", "uint8", code(-0.5), ("recommended", (0,))),
        ("float32", "int8", code(128), UNDEFINED),
        ("float32", "int8", code(-129), UNDEFINED),
        ("float32", "int8", code(float("inf")), UNDEFINED),
        ("float32", "int8", code(float("nan")), UNDEFINED),
        ("int64", "int8", 300, ("recommended", (44,))),
        ("int16", "uint8", 0xFFFF, ("recommended", (255,))),
        ("int16", "uint8", 255, ("required", (255,))),
        ("float64", "float32", code(2e300, "<d"), ("recommended", (code(float("inf")),))),
        ("float64", "float32", code(-2e300, "<d"), ("recommended", (code(float("-inf")),))),
        ("float64", "float32", code(0.1, "<d"), ("recommended", (code(0.1),))),
        ("float64", "float32", code(0.25, "<d"), ("required", (code(0.25),))),
        ("float32", "float64", 1, ("required", (code(2.0**-149, "<d"),))),
        ("bool", "float32", 1, ("recommended", (code(1),))),
        ("float32", "bool", code(0.5), ("recommended", (1,))),
        ("float32", "bool", code(-0.0), ("recommended", (0,))),
        ("float32", "bool", code(float("nan")), ("recommended", (1,))),
    ],
)
def test_values(
    source: str, target: str, pattern: int, expected: tuple[str, tuple[int, ...]]
) -> None:
    allowed = allow(rules_of(source, target), pattern)
    assert (allowed.branch.level, allowed.codes) == expected


REFUSED = ("required", Rejected("ValueError"))


@pytest.mark.parametrize(
    ("source", "target", "pattern", "expected"),
    [
        ("float32", "int8", code(2), ("required", (2,))),
        ("float32", "int8", code(2.5), REFUSED),
        ("float32", "int8", code(128), REFUSED),
        ("float32", "int8", code(float("inf")), REFUSED),
        ("float32", "int8", code(float("nan")), REFUSED),
        ("float32", "int8", code(-0.0), UNDEFINED),
        ("int32", "uint8", 256, REFUSED),
        ("int32", "uint8", 255, ("required", (255,))),
        ("int32", "float32", 2**24 + 1, REFUSED),
        ("float64", "float32", code(0.1, "<d"), REFUSED),
        ("float64", "float32", code(0.5, "<d"), ("required", (code(0.5),))),
        ("float64", "float32", code(float("inf"), "<d"), ("recommended", (code(float("inf")),))),
        ("float64", "float32", code(float("nan"), "<d"), UNDEFINED),
        ("float32", "bool", code(1), ("required", (1,))),
        ("float32", "bool", code(2), UNDEFINED),
    ],
)
def test_same_value_keeps_values_and_refuses_what_would_change(
    source: str, target: str, pattern: int, expected: tuple[str, object]
) -> None:
    allowed = allow(rules_of(source, target, "same_value"), pattern)
    outcome = allowed.branch.outcome
    given = outcome if isinstance(outcome, Rejected) else allowed.codes
    assert (allowed.branch.level, given) == expected


def test_the_modes_agree_on_the_values_of_what_they_allow() -> None:
    """A mode determines which casts are allowed, not their results."""
    for pair in ALL:
        unsafe = rules_of(*pair)
        for casting in ("no", "equiv", "safe", "same_kind"):
            rules = rules_of(*pair, casting)
            assert rules.is_rejection or rules.meaning == unsafe.meaning, (pair, casting)


def test_the_printed_results_are_worked_examples() -> None:
    found = {
        each.example: ruling(each).worked
        for each in edition(document_named("numpy-astype"), "2.4").cases()
        if each.example
    }
    doubles = {value: code(value, "<d") for value in (1, 2, 2.5)}
    assert found == {
        "one-two-and-a-half": ((doubles[1], 1), (doubles[2], 2), (doubles[2.5], 2)),
        "one-two": ((doubles[1], 1), (doubles[2], 2)),
        "three-hundred": ((300, 44),),
    }
