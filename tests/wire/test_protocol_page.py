"""The schema of the wire protocol; tests/test_docs.py compares it and its page with the code."""

from __future__ import annotations

import json
from typing import Any

import jsonschema

from conformance.running.selection import case_named
from oracles.wire.program_client import case_words
from oracles.wire.schema import AskBye, AskCast, AskHello, AskSweep, Offer, Room, schema, words_of

CASE = case_named("onnx-cast:25/float32/float8e4m3fn/saturate:1")
CASE_WORDS = case_words(CASE)
RIGHT: list[dict[str, Any]] = [
    words_of(AskHello(number=1, castigate="1", memory=Offer(descriptor=5, bytes=8))),
    words_of(AskHello(number=1, castigate="1")),
    words_of(AskCast(number=1, case=CASE_WORDS, shape=[])),
    words_of(AskSweep(number=1, case=CASE_WORDS, first=0, count=2, memory=Room(offset=0, bytes=8))),
    words_of(AskBye(number=1)),
    {"answer": "values", "number": 1, "shape": [2]},
    {"answer": "error", "number": 1, "text": ""},
]
WRONG: list[dict[str, Any]] = [
    {},
    {"answer": "values", "number": 1, "shape": [-1]},
    {"answer": "values", "number": 1, "shape": [2], "more": 1},
    {"answer": "values", "shape": [2]},
    {"ask": "call", "number": 1},
    {"answer": "hello", "number": 1, "protocol": 1, "name": "a\n", "version": "1", "dtypes": []},
]


def test_the_schema_takes_headers_and_nothing_else() -> None:
    validator = jsonschema.Draft202012Validator(json.loads(schema()))
    assert [words for words in RIGHT if not validator.is_valid(words)] == []
    assert [words for words in WRONG if validator.is_valid(words)] == []
