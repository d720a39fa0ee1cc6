"""A vendor's program in 30 lines: numpy's ``astype``, asked as docs/protocol.md says."""

import json
import struct
import sys

import numpy as np

DTYPES = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
DTYPES += ["float64", "float32", "float16", "bool"]
HELLO = {"protocol": 1, "name": "numpy", "version": np.__version__, "claims": ["onnx-cast"],
         "dtypes": DTYPES, "operations": ["cast", "sweep"], "depends_on": ["mode"]}  # fmt: skip


def answered(asked, elements):
    """The answer to a question: its header, and its payload."""
    if asked["ask"] in ("hello", "bye"):
        return {"answer": asked["ask"]} | (HELLO if asked["ask"] == "hello" else {}), b""
    source, target, mode = (asked["case"][name] for name in ("source", "target", "mode"))
    if mode:
        return {"answer": "unsupported", "reason": f"astype takes no {', '.join(mode)}"}, b""
    if asked["ask"] == "sweep":
        unsigned = f"u{np.dtype(source).itemsize}"
        elements = np.arange(asked["first"], asked["first"] + asked["count"], dtype=unsigned)
    with np.errstate(all="ignore"):
        values = np.frombuffer(elements, source).astype(target)
    return {"answer": "values", "shape": asked.get("shape", [values.size])}, values.tobytes()


while start := sys.stdin.buffer.read(16):
    _, words, size = struct.unpack("<4sIQ", start)
    question = json.loads(sys.stdin.buffer.read(words))
    answer, content = answered(question, sys.stdin.buffer.read(size))
    header = json.dumps(answer | {"number": question["number"]}).encode()
    start = struct.pack("<4sIQ", b"CST1", len(header), len(content))
    sys.stdout.buffer.write(start + header + content)
    sys.stdout.buffer.flush()
