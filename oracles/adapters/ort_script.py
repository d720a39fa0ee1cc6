"""Reproduction scripts for onnxruntime."""

from __future__ import annotations

from oracles.adapters.onnx_models import ModelBuilder, cast_graph, element_name
from oracles.adapters.script_text import given, printed
from oracles.bit_packing import is_packed
from oracles.protocol import Bits
from specs.cases import Case
from specs.formats import format_named

HEADER = """\
# onnxruntime {version}: {case}
import ctypes

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper

"""

PACKED = """\
stream = np.unpackbits(bits[:, None], axis=1, count={bits}, bitorder="little")  # low bits first
packed = np.packbits(stream, bitorder="little")
"""

SESSION = """\

options = ort.SessionOptions()
options.graph_optimization_level = ort.GraphOptimizationLevel.{level}
providers = ["{provider}"]
session = ort.InferenceSession(model.SerializeToString(), options, providers=providers)
(output,) = session.run_with_ort_values(None, {feed})
"""

WRAPPED = "x = ort.OrtValue.ortvalue_from_numpy_with_onnx_type({array}, TensorProto.{source})\n"

PADDED = """\
padded = np.resize(packed, bits.shape)  # the tensor takes its shape from the array
"""

RAW = "raw = ctypes.string_at(output.data_ptr(), output.tensor_size_in_bytes())\n"

UNPACKED = """\
stream = np.unpackbits(np.frombuffer(raw, np.uint8), count={bits} * len(bits), bitorder="little")
answers = np.packbits(stream.reshape(-1, {bits}), axis=1, bitorder="little").ravel()
"""


def reproduction(
    models: ModelBuilder, version: str, case: Case, bits: Bits, *, folded: bool, provider: str
) -> str:
    """The script of one case on one road."""
    graph, source = cast_graph(case), format_named(case.source)
    script = HEADER.format(version=version, case=case) + given(case.source, bits) + "\n"
    script += PACKED.format(bits=source.bits) if is_packed(source) else ""
    constant = _initializer(case.source) if folded or source.kind == "text" else None
    script += "\n" + models.script(graph, constant, shape="None")
    level = "ORT_ENABLE_BASIC" if folded else "ORT_DISABLE_ALL"
    feed = "{}"
    if constant is None:
        script += "\n" + (PADDED if is_packed(source) else "")
        array = "padded" if is_packed(source) else "bits"
        script += WRAPPED.format(array=array, source=element_name(case.source))
        feed = '{"x": x}'
    script += SESSION.format(level=level, provider=provider, feed=feed)
    return script + _answers(case.target) + printed(case.source, case.target)


def _initializer(dtype: str) -> str:
    entry = format_named(dtype)
    content = "packed.tobytes(), raw=True" if is_packed(entry) else "bits.tobytes(), raw=True"
    if entry.kind == "text":
        content = "[text.encode() for text in bits]"
    return f'helper.make_tensor("x", TensorProto.{element_name(dtype)}, bits.shape, {content})'


def _answers(dtype: str) -> str:
    entry = format_named(dtype)
    if entry.kind == "text":
        return "answers = output.numpy()\n"
    if is_packed(entry):
        return RAW + UNPACKED.format(bits=entry.bits)
    dtype_name = '"V16"' if entry.storage == "V16" else f"np.{entry.storage}"
    return RAW + f"answers = np.frombuffer(raw, {dtype_name})\n"
