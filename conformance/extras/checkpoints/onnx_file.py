"""Reads the initializers of an ONNX model, those in other files too; needs the package onnx."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterator
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from conformance.extras.checkpoints.stored_tensors import (
    CHUNK_BYTES,
    ByteSpan,
    OtherTensor,
    StoredContents,
    StoredTensor,
    check_shape,
    check_spans,
    file_chunks,
)
from oracles.protocol import Bits
from reports.findings.finding_text import counted
from specs.errors import CastigateError, quoted, require_regular
from specs.formats import Format, format_named

FLOATS = {
    "DOUBLE": "float64",
    "FLOAT": "float32",
    "FLOAT16": "float16",
    "BFLOAT16": "bfloat16",
    "FLOAT8E4M3FN": "float8e4m3fn",
    "FLOAT8E4M3FNUZ": "float8e4m3fnuz",
    "FLOAT8E5M2": "float8e5m2",
    "FLOAT8E5M2FNUZ": "float8e5m2fnuz",
    "FLOAT8E8M0": "float8e8m0",
}
"""The dtypes of ONNX that are checked, by Castigate's names."""
FIELDS = {"float64": ("double_data", "float64"), "float32": ("float_data", "float32")}
"""The fields that hold elements as numbers, and their numpy dtype.

``int32_data`` holds those of narrower dtypes, as patterns.
"""


def read_onnx(path: Path) -> StoredContents:
    """Read the initializers of the main graph.

    Raise CastigateError if onnx is not installed, or if the model is malformed.
    """
    try:
        onnx = importlib.import_module("onnx")
    except ImportError:
        raise CastigateError(
            f"{path} is an ONNX model; to read it, run pip install 'castigate[onnx]'"
        ) from None
    # Its module is loaded with onnx; its types are not installed.
    decode_error = importlib.import_module("google.protobuf.message").DecodeError
    try:
        model = onnx.load_model(str(path), load_external_data=False)
    except decode_error as error:
        raise CastigateError(
            f"{path} is no ONNX model ({error}); give one, or copy it again"
        ) from None
    names = onnx.TensorProto.DataType
    floats, others = [], []
    spans: dict[Path, list[ByteSpan]] = {}
    for each in model.graph.initializer:
        known = each.data_type in names.values()
        dtype = names.Name(each.data_type) if known else f"dtype {each.data_type}"
        if dtype not in FLOATS:
            others.append(OtherTensor(each.name, dtype))
            continue
        floats.append(_tensor(path, each, format_named(FLOATS[dtype]), onnx, spans))
    for file, found in spans.items():
        # Initializers of equal content may share their bytes.
        for one in found:
            check_spans(file, [one])
    return StoredContents(tuple(floats), tuple(others), tuple(_notes(model.graph)))


QUANTIZING = ("QuantizeLinear", "DequantizeLinear")


def _notes(graph: Any) -> Iterator[str]:
    """Yield a line about nodes whose scales and zero points are read as any other initializer."""
    counts = Counter(node.op_type for node in graph.node if node.op_type in QUANTIZING)
    if counts:
        nodes = " and ".join(counted(each, kind) for kind, each in sorted(counts.items()))
        yield (
            f"scales and zero points of {nodes} are read as plain initializers; castigate"
            " judge judges what the nodes compute"
        )


def _tensor(
    path: Path, each: Any, dtype: Format, onnx: Any, spans: dict[Path, list[ByteSpan]]
) -> StoredTensor:
    """Return an initializer; note in ``spans`` where its bytes are if they are in another file."""
    shape = tuple(each.dims)
    check_shape(path, each.name, shape)
    wanted = prod(shape) * dtype.bits // 8
    if each.data_location == onnx.TensorProto.EXTERNAL:
        file, span = _external(path, each, wanted)
        found, chunks = span.end - span.begin, partial(file_chunks, file, span, dtype.storage)
        spans.setdefault(file, []).append(span)
    else:
        elements = _inside(each, dtype)
        found, chunks = elements.nbytes, partial(_array_chunks, elements)
    if found != wanted:
        raise CastigateError(
            f"{path}: initializer {quoted(each.name)} needs {wanted:,} bytes for its shape, and has"
            f" {found:,}; write the model again"
        )
    return StoredTensor(each.name, dtype.name, shape, chunks)


def _inside(each: Any, dtype: Format) -> Bits:
    """Return the elements of an initializer that the model itself holds."""
    if each.HasField("raw_data"):
        size = np.dtype(dtype.storage).itemsize
        raw: bytes = each.raw_data
        # A rest of less than an element shows as a wrong size.
        return np.frombuffer(raw, dtype.storage if len(raw) % size == 0 else np.uint8)
    if dtype.name in FIELDS:
        field, number = FIELDS[dtype.name]
        return np.array(getattr(each, field), number).view(dtype.storage)
    return np.array(each.int32_data, np.int32).astype(dtype.storage)


def _array_chunks(elements: Bits) -> Iterator[Bits]:
    step = CHUNK_BYTES // elements.itemsize
    for at in range(0, elements.size, step):
        yield elements[at : at + step]


def _external(path: Path, each: Any, wanted: int) -> tuple[Path, ByteSpan]:
    """Return the file that holds an initializer's elements, and their place in it."""
    entries = {entry.key: entry.value for entry in each.external_data}
    location = entries.get("location", "")
    place = Path(location)
    if not location or place.is_absolute() or ".." in place.parts or "\0" in location:
        raise CastigateError(
            f"{path}: initializer {quoted(each.name)} lies in {quoted(location)}, which is no file"
            " beside or below the model; save the model again"
        )
    file = path.parent / place
    try:
        require_regular(file)
        is_file = file.is_file()
    except OSError:
        is_file = False
    if not is_file:
        raise CastigateError(
            f"{path}: initializer {quoted(each.name)} lies in {quoted(location)}, which is not"
            " there; copy this file too"
        )
    try:
        begin = int(entries.get("offset", "0"))
        length = int(entries.get("length", wanted))
    except ValueError:
        begin = length = -1
    if begin < 0 or length < 0:
        raise CastigateError(
            f"{path}: initializer {quoted(each.name)} has a malformed offset or length in"
            f" {quoted(location)}; save the model again"
        )
    return file, ByteSpan(each.name, begin, begin + length)
