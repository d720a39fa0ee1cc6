"""A program that only quantizes: rightly, or to zeros and with the deed that its argument names."""

import json
import os
import struct
import sys
from math import prod

DEED = sys.argv[1]
FLOATS = ["float32", "float16", "float8e4m3fn", "float8e5m2", "float8e8m0", "float4e2m1"]
DTYPES = {"rightly": [*FLOATS, "int8", "uint8", "int4", "uint4"], "has-no-scales": ["int4"]}
HELLO = {
    "protocol": 1,
    "name": "quantizer",
    "version": "1",
    "dtypes": DTYPES.get(DEED, ["float32", "int8", "int4"]),
    "operations": ["cast" if DEED == "casts" else "quantize"],
}


def rightly(question, payload):
    """Return the reference's results, in the reverse of the order in which they are asked for."""
    import numpy as np

    from conformance.families.reference import Reference
    from specs.cases import Case
    from specs.formats import format_named

    tensors, start = {}, 0
    for each in question["tensors"]:
        storage, count = np.dtype(format_named(each["dtype"]).storage), prod(each["shape"])
        tensors[each["name"]] = np.frombuffer(payload, storage, count, start).reshape(each["shape"])
        start += count * storage.itemsize
    assert start == len(payload), question
    modes = tuple(question["case"]["mode"].items())
    names = ("document", "version", "source", "target")
    results = Reference().quantize(Case(*map(question["case"].get, names), modes), tensors)
    order = [each["name"] for each in reversed(question["results"])]
    assert set(order) == set(results), question
    shapes = [{"name": name, "shape": list(results[name].shape)} for name in order]
    return {"tensors": shapes}, b"".join(results[name].tobytes() for name in order)


def by_deed(question):
    """Return the answer of a deed; by default it answers zeros."""
    shape = question["tensors"][0]["shape"]
    y, codes = {"name": "y", "shape": shape}, bytes(prod(shape))
    return {
        "unknown-name": lambda: ({"tensors": [y | {"name": "z"}]}, codes),
        "twice": lambda: ({"tensors": [y, y]}, codes + codes),
        "no-result": lambda: ({"tensors": []}, b""),
        "with-dtype": lambda: ({"tensors": [y | {"dtype": "int8"}]}, codes),
        "no-shape": lambda: ({"tensors": [{"name": "y"}]}, codes),
        "short": lambda: ({"tensors": [y]}, codes[:-1]),
        "long": lambda: ({"tensors": [y]}, codes + b"\0"),
        "huge": lambda: ({"tensors": [y]}, bytes(1 << 22)),
        "values": lambda: ({"answer": "values", "shape": shape}, codes),
        "other-shape": lambda: ({"tensors": [y | {"shape": [1, *shape]}]}, codes),
        "wide-codes": lambda: ({"tensors": [y]}, b"\x10" * len(codes)),
        "refuses": lambda: ({"answer": "error", "kind": "ValueError", "text": "no"}, b""),
        "declines": lambda: ({"answer": "unsupported", "reason": "not today"}, b""),
        "dies": lambda: os._exit(7),
    }.get(DEED, lambda: ({"tensors": [y]}, codes))()


while start := sys.stdin.buffer.read(16):
    _, length, size = struct.unpack("<4sIQ", start)
    question = json.loads(sys.stdin.buffer.read(length))
    payload, asked = sys.stdin.buffer.read(size), question["ask"]
    answer, content = HELLO | {"answer": "hello"} if asked == "hello" else {"answer": "bye"}, b""
    if asked == "quantize":
        answer, content = rightly(question, payload) if DEED == "rightly" else by_deed(question)
    answer = {"answer": "tensors", "number": question["number"]} | answer
    header = json.dumps(answer).encode()
    sys.stdout.buffer.write(struct.pack("<4sIQ", b"CST1", len(header), len(content)))
    sys.stdout.buffer.write(header + content)
    sys.stdout.buffer.flush()
    if asked == "bye":
        break
