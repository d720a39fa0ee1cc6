"""The JSON schema of the wire protocol accepts the protocol's headers and nothing else."""

from __future__ import annotations

import json
from typing import Any

import jsonschema

from oracles.wire.program_client import wire_case
from oracles.wire.schema import (
    AskBye,
    AskCast,
    AskHello,
    AskQuantize,
    AskSweep,
    MemoryOffer,
    MemorySlot,
    NamedResult,
    NamedTensor,
    encode_request,
    json_schema,
)
from specs.selection import case_named

CASE = case_named("onnx-cast:25/float32/float8e4m3fn/saturate:1")
WIRE_CASE = wire_case(CASE)
VALID: list[dict[str, Any]] = [
    encode_request(AskHello(number=1, castigate="1", memory=MemoryOffer(descriptor=5, bytes=8))),
    encode_request(AskHello(number=1, castigate="1")),
    encode_request(AskCast(number=1, case=WIRE_CASE, shape=[])),
    encode_request(
        AskSweep(number=1, case=WIRE_CASE, first=0, count=2, memory=MemorySlot(offset=0, bytes=8))
    ),
    encode_request(
        AskQuantize(
            number=1,
            case=WIRE_CASE,
            tensors=[NamedTensor(name="x", dtype="float32", shape=[2])],
            results=[NamedResult(name="y", dtype="int8")],
        )
    ),
    encode_request(AskBye(number=1)),
    {"answer": "values", "number": 1, "shape": [2]},
    {"answer": "tensors", "number": 1, "tensors": [{"name": "y", "shape": [2]}]},
    {"answer": "error", "number": 1, "text": ""},
]
INVALID: list[dict[str, Any]] = [
    {},
    {"answer": "values", "number": 1, "shape": [-1]},
    {"answer": "values", "number": 1, "shape": [2], "more": 1},
    {"answer": "values", "shape": [2]},
    {"answer": "tensors", "number": 1, "tensors": [{"shape": [2]}]},
    {"answer": "tensors", "number": 1, "tensors": [{"name": "y", "shape": [2], "dtype": "int8"}]},
    {"ask": "call", "number": 1},
    {"answer": "hello", "number": 1, "protocol": 1, "name": "a\n", "version": "1", "dtypes": []},
]


def test_the_schema_accepts_exactly_the_valid_headers() -> None:
    validator = jsonschema.Draft202012Validator(json.loads(json_schema()))
    assert [header for header in VALID if not validator.is_valid(header)] == []
    assert [header for header in INVALID if validator.is_valid(header)] == []
