"""A vendor's program over docs/protocol.md: numpy's ``astype``, and a QuantizeLinear of its own."""

import json
import math
import struct
import sys

import numpy as np

DTYPES = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
DTYPES += ["float64", "float32", "float16", "bool"]
ONE_SCALE = {"scale": "float32", "form": "tensor"}
HELLO = {"protocol": 1, "name": "numpy", "version": np.__version__,
         "claims": ["onnx-cast", "onnx-quantize-linear"], "dtypes": DTYPES,
         "operations": ["cast", "sweep", "quantize"], "depends_on": ["mode"]}  # fmt: skip


def answer_to(request, elements):
    """Return the header and the payload of the answer to a request."""
    if request["ask"] in ("hello", "bye"):
        return {"answer": request["ask"]} | (HELLO if request["ask"] == "hello" else {}), b""
    if request["ask"] == "quantize":
        return quantized(request, elements)
    source, target, mode = (request["case"][name] for name in ("source", "target", "mode"))
    if mode:
        return {"answer": "unsupported", "reason": f"astype takes no {', '.join(mode)}"}, b""
    if request["ask"] == "sweep":
        unsigned = f"u{np.dtype(source).itemsize}"
        elements = np.arange(request["first"], request["first"] + request["count"], dtype=unsigned)
    with np.errstate(all="ignore"):
        values = np.frombuffer(elements, source).astype(target)
    return {"answer": "values", "shape": request.get("shape", [values.size])}, values.tobytes()


def quantized(request, payload):
    """Answer QuantizeLinear with one scale: round(x / scale) + zero point, saturated."""
    case, tensors, start = request["case"], {"zero": 0}, 0
    if (case["document"], case["mode"]) != ("onnx-quantize-linear", ONE_SCALE):
        reason = "only QuantizeLinear by one float32 scale"
        return {"answer": "unsupported", "reason": reason}, b""
    for each in request["tensors"]:
        count = math.prod(each["shape"])
        values = np.frombuffer(payload, each["dtype"], count, start)
        tensors[each["name"]] = values.reshape(each["shape"])
        start += values.nbytes
    ends = np.iinfo(case["target"])
    with np.errstate(all="ignore"):
        codes = np.rint(tensors["x"] / tensors["scale"]).astype("float64") + tensors["zero"]
        y = np.clip(codes, ends.min, ends.max).astype(case["target"])
    return {"answer": "tensors", "tensors": [{"name": "y", "shape": y.shape}]}, y.tobytes()


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
