"""Any ONNX runtime as a backend: each request becomes a model of one node, and a command runs it.

The command gets the paths of three files: the model, its input and its output. Input and output are
one TensorProto each, as in ONNX's own backend tests. docs/protocol.md describes the protocol.
"""

import json
import re
import struct
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
from onnx import TensorProto, helper

COMMAND = sys.argv[1:]
LATEST, FIRST_BITCAST, FIRST_NUMBERED = 25, 26, 6
ATTRIBUTES = {"saturate": int, "round_mode": str}
LONG_NAMES = {"FLOAT": "float32", "DOUBLE": "float64"}
TYPES = {
    LONG_NAMES.get(name, name.lower()): number
    for name, number in TensorProto.DataType.items()
    if name != "UNDEFINED"
}
HELLO = {
    "answer": "hello",
    "protocol": 1,
    "name": "onnx-by-command",
    "version": f"{' '.join(Path(word).name for word in COMMAND)}, onnx {onnx.__version__}"[-99:],
    "claims": ["onnx-cast", "onnx-bitcast"],
    "dtypes": list(TYPES),
    "operations": ["cast", "bitcast"],
    "depends_on": ["version", "mode"],
}


def bits_of(dtype):
    """Return the width of an element in a TensorProto."""
    return 8 if dtype == "bool" else int(re.search(r"\d+", dtype)[0])


def tensor(dtype, shape, payload):
    """Return a TensorProto of a payload; elements of less than a byte are packed."""
    proto = TensorProto(name="x", data_type=TYPES[dtype], dims=shape)
    if dtype == "string":
        proto.string_data.extend(text.encode() for text in json.loads(payload))
    elif (bits := bits_of(dtype)) < 8:
        codes = np.frombuffer(payload, np.uint8)
        shifts = np.arange(0, 8, bits, dtype=np.uint8)
        padded = np.append(codes, np.zeros(-codes.size % shifts.size, np.uint8))
        proto.raw_data = bytes(np.bitwise_or.reduce(padded.reshape(-1, shifts.size) << shifts, 1))
    else:
        proto.raw_data = payload
    return proto


def elements(proto, dtype):
    """Return a TensorProto's elements as a payload."""
    if proto.data_type != TYPES[dtype]:
        raise ValueError(f"the output is of data type {proto.data_type}, not {TYPES[dtype]}")
    if dtype == "string":
        return json.dumps([text.decode() for text in proto.string_data]).encode()
    if (bits := bits_of(dtype)) < 8:
        packed = np.frombuffer(proto.raw_data, np.uint8)[:, np.newaxis]
        codes = packed >> np.arange(0, 8, bits, dtype=np.uint8) & (1 << bits) - 1
        return bytes(codes.ravel())[: int(np.prod(proto.dims))]
    return proto.raw_data


def model(request):
    """Return a model with one Cast or BitCast from x to y."""
    case, shape = request["case"], request["shape"]
    operator = {"cast": "Cast", "bitcast": "BitCast"}[request["ask"]]
    opset = int(case["version"]) if case["document"] == "onnx-cast" else LATEST
    opset = FIRST_BITCAST if operator == "BitCast" else opset
    to = TYPES[case["target"]]
    # The mode of a bitcast names its shape, which is no attribute.
    attributes = {
        name: read(case["mode"][name]) for name, read in ATTRIBUTES.items() if name in case["mode"]
    }
    if opset < FIRST_NUMBERED:
        to = TensorProto.DataType.Name(to)
    node = helper.make_node(operator, ["x"], ["y"], to=to, **attributes)
    x = helper.make_tensor_value_info("x", TYPES[case["source"]], shape)
    y = helper.make_tensor_value_info("y", TYPES[case["target"]], None)
    imports = [helper.make_opsetid("", opset)]
    graph = helper.make_graph([node], "case", [x], [y])
    version = helper.find_min_ir_version_for(imports)
    return helper.make_model(graph, opset_imports=imports, ir_version=version)


def answer_to(request, payload):
    """Return the header and the payload of the answer to a request."""
    if request["ask"] == "hello":
        return HELLO, b""
    if request["ask"] == "bye":
        return {"answer": "bye"}, b""
    case = request["case"]
    if request["ask"] == "cast" and set(case["mode"]) - set(ATTRIBUTES):
        return {"answer": "unsupported", "reason": f"Cast takes no {', '.join(case['mode'])}"}, b""
    with TemporaryDirectory() as name:
        files = [Path(name, file) for file in ("model.onnx", "input_0.pb", "output_0.pb")]
        files[0].write_bytes(model(request).SerializeToString())
        files[1].write_bytes(tensor(case["source"], request["shape"], payload).SerializeToString())
        done = subprocess.run([*COMMAND, *files], capture_output=True, text=True, errors="replace")
        sys.stderr.write(done.stdout + done.stderr)
        if done.returncode or not files[2].exists():
            lines = done.stderr.splitlines() or [f"the command ended with {done.returncode}"]
            return {"answer": "error", "text": lines[-1]}, b""
        proto = TensorProto.FromString(files[2].read_bytes())
    return {"answer": "values", "shape": list(proto.dims)}, elements(proto, case["target"])


while start := sys.stdin.buffer.read(16):
    _, words, size = struct.unpack("<4sIQ", start)
    request = json.loads(sys.stdin.buffer.read(words))
    content = sys.stdin.buffer.read(size)
    try:
        answer, content = answer_to(request, content)
    except Exception as error:
        answer, content = {"answer": "error", "kind": type(error).__name__, "text": str(error)}, b""
    header = json.dumps(answer | {"number": request["number"]}).encode()
    start = struct.pack("<4sIQ", b"CST1", len(header), len(content))
    sys.stdout.buffer.write(start + header + content)
    sys.stdout.buffer.flush()
    if request["ask"] == "bye":
        break
