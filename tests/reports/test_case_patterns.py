"""Patterns of case ids match the same ids as regular expressions do, and no pattern is slow."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reports import case_patterns
from reports.case_patterns import compress, expand, ids_of, matches
from tests.search import examples

PIECE = re.compile(r"(\*\*|\*|\{[^{}]*\})")
WILDCARDS = {"**": ".*", "*": "[^/]*"}


def expression(pattern: str) -> str:
    """The regular expression of a pattern; some of these are slow to match."""
    return "".join(WILDCARDS.get(piece) or escaped(piece) for piece in PIECE.split(pattern))


def escaped(piece: str) -> str:
    if piece.startswith("{") and piece.endswith("}"):
        return f"(?:{'|'.join(map(expression, piece[1:-1].split(',')))})"
    return re.escape(piece)


@examples(2000)
@given(
    st.lists(st.sampled_from(["*", "**", "/", "a", "b", "ab", "{", "}", ",", "\n"]), max_size=9),
    st.text("ab/*{,}\n", max_size=9),
)
@example(["{", "a", ",", "ab", "}", "*", "b"], "abab")
@example(["{", "a", ",", "a/a", "}", "*", "b"], "a/ab")
@example(["{", "}", "{", "*", ",", "}"], "*")
@example(["**", "*"], "a/\nb")
@example(["{", "a", "**", ",", "b", "}"], "a/b")
@example(["{", "a"], "{a")
@example(["{", "*", "}"], "")
def test_a_pattern_is_a_regular_expression(pieces: list[str], name: str) -> None:
    pattern = "".join(pieces)
    found = re.compile(expression(pattern)).fullmatch(name) is not None
    assert matches(pattern, name) == found


def test_small_patterns_are_regular_expressions() -> None:
    names = ["".join(each) for size in range(4) for each in product("a/*", repeat=size)]
    for size in range(5):
        for pieces in product(["*", "/", "a", "{", ",", "}"], repeat=size):
            pattern = "".join(pieces)
            compiled = re.compile(expression(pattern))
            wrong = [
                name for name in names if matches(pattern, name) != bool(compiled.fullmatch(name))
            ]
            assert wrong == [], pattern


PATTERNS = [
    "**",
    "onnx-cast:25/**",
    "onnx-cast:2*/float16/*",
    "**/float16",
    "*/float16",
    "*/{float16,bfloat16}/**",
    "**float{16,8}*/saturate:?",
    "**/saturate:{0,1}/**",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_stands_for_the_cases_that_its_regular_expression_says(pattern: str) -> None:
    compiled = re.compile(expression(pattern))
    found = [name for name in ids_of("onnx-cast") if matches(pattern, name)]
    assert found == [name for name in ids_of("onnx-cast") if compiled.fullmatch(name)]


MANY = "a" * 100


@pytest.mark.parametrize(
    ("pattern", "other", "own"),
    [
        (f"**/uint{'*' * 50}8/**", f"8/8/uint16/{MANY}", "onnx-cast:25/uint8/float16"),
        (f"{'*a' * 40}*b", f"b{MANY}", f"{MANY}b"),
        (f"{'**a' * 40}*b", f"b{MANY}/", f"{MANY}/ab"),
        (f"{'{a,aa}' * 60}b", f"b{MANY}", f"{MANY}b"),
        (f"{'{,a}*' * 60}b", f"b{MANY}", f"{MANY}b"),
        (f"{'{a*,*a}' * 60}b", f"b{MANY}", f"{MANY}b"),
    ],
)
def test_no_pattern_takes_without_end(pattern: str, other: str, own: str) -> None:
    assert not matches(pattern, other)
    assert matches(pattern, own)


def test_chains_are_listed_in_patterns_too() -> None:
    names = [
        f"chains/onnx-cast:25/{source}/bfloat16/{target}"
        for source in ("float32", "float64")
        for target in ("int8", "uint8")
    ]
    names.append("chains/onnx-cast:25/float32/float8e4m3fn/saturate:0/float32")
    patterns = compress(names)
    assert patterns == [
        "chains/onnx-cast:25/float32/float8e4m3fn/saturate:0/float32",
        "chains/onnx-cast:25/{float32,float64}/bfloat16/{int8,uint8}",
    ]
    assert sorted(name for pattern in patterns for name in expand(pattern)) == sorted(names)
    assert expand("chains/onnx-cast:25/float32/bfloat16/int8/mode:none") == []
    assert expand("chains") == expand("chains/") == []


def test_chains_of_one_version_are_those_of_all_that_match() -> None:
    among = [*ids_of("chains")]
    patterns = ("chains/onnx-cast:1/float32/**", "chains/onnx-cast:*/int64/float16/int8")
    for pattern in patterns:
        assert expand(pattern) == [name for name in among if matches(pattern, name)] != []
    [version] = {name.split("/")[1] for name in expand(patterns[0])}
    assert version == "onnx-cast:1"


def test_names_with_many_parts_are_merged_in_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trying all orders of nine parts would need 362,880 passes over the names."""
    passes: list[int] = []

    def counted(boxes: list[Any], at: int) -> list[Any]:
        passes.append(at)
        return merged_along(boxes, at)

    merged_along = case_patterns._merged_along
    monkeypatch.setattr(case_patterns, "_merged_along", counted)
    parts = [("a", "b")] * 9
    names = [f"chains/document:{'/'.join(each)}" for each in product(*parts)]
    assert compress(names) == [f"chains/document:{'/'.join(['{a,b}'] * 9)}"]
    assert len(passes) < 1000
