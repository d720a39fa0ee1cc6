"""A vendor's program in 30 lines: numpy's ``astype`` over the protocol of docs/protocol.md."""

import json
import struct
import sys

import numpy as np

DTYPES = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
DTYPES += ["float64", "float32", "float16", "bool"]
HELLO = {"protocol": 1, "name": "numpy", "version": np.__version__, "claims": ["onnx-cast"],
         "dtypes": DTYPES, "operations": ["cast", "sweep"], "depends_on": ["mode"]}  # fmt: skip


def answer_to(request, elements):
    """Return the header and the payload of the answer to a request."""
    if request["ask"] in ("hello", "bye"):
        return {"answer": request["ask"]} | (HELLO if request["ask"] == "hello" else {}), b""
    source, target, mode = (request["case"][name] for name in ("source", "target", "mode"))
    if mode:
        return {"answer": "unsupported", "reason": f"astype takes no {', '.join(mode)}"}, b""
    if request["ask"] == "sweep":
        unsigned = f"u{np.dtype(source).itemsize}"
        elements = np.arange(request["first"], request["first"] + request["count"], dtype=unsigned)
    with np.errstate(all="ignore"):
        values = np.frombuffer(elements, source).astype(target)
    return {"answer": "values", "shape": request.get("shape", [values.size])}, values.tobytes()


while start := sys.stdin.buffer.read(16):
    _, words, size = struct.unpack("<4sIQ", start)
    request = json.loads(sys.stdin.buffer.read(words))
    answer, content = answer_to(request, sys.stdin.buffer.read(size))
    header = json.dumps(answer | {"number": request["number"]}).encode()
    start = struct.pack("<4sIQ", b"CST1", len(header), len(content))
    sys.stdout.buffer.write(start + header + content)
    sys.stdout.buffer.flush()
    if request["ask"] == "bye":
        break
