"""The parts of the scripts that repeat what the adapter of onnxruntime does."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from oracles.adapters.onnx_quantize_models import (
    OpsetNode,
    patterns_expression,
    print_patterns,
    results,
)
from oracles.adapters.script_text import (
    NUMPY_DTYPES,
    PACK,
    UNPACK,
    mask_expression,
    print_statement,
    print_tensor,
)
from oracles.memory_layouts import is_packed
from oracles.protocol import Bits
from specs.cases import Case
from specs.formats import format_named

HEADER = """\
# onnxruntime {heading}
{modules}import numpy as np
import onnx.parser
import onnxruntime as ort

"""

INITIALIZER = """\
x = onnx.helper.make_tensor("x", {number}, bits.shape, {content})
model.graph.initializer.append(x)
"""

SESSION = """\
session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
"""

SESSION_OF_LEVEL = """\
options = ort.SessionOptions()
options.graph_optimization_level = ort.GraphOptimizationLevel.{level}
session = ort.InferenceSession(
    model.SerializeToString(), options, providers=["CPUExecutionProvider"]
)
"""

ORT_VALUE = "x = ort.OrtValue.ortvalue_from_numpy_with_onnx_type({array}, {number})\n"

PADDED = """\
padded = np.resize(packed, bits.shape)  # the tensor takes its shape from the array
"""

TENSORS = """\
tensor = ort.OrtValue.ortvalue_from_numpy_with_onnx_type
given = {{{given}}}
"""

RAW = "raw = ctypes.string_at(y.data_ptr(), y.tensor_size_in_bytes())\n"


def header(heading: str, target: str) -> str:
    """Return a script's first lines: a comment with the ``heading``, and the imports.

    The heading has a version, and the case or the chain. For a ``target`` whose memory is read
    (``is_raw``) the script imports ctypes, too.
    """
    modules = "import ctypes\n\n" if is_raw(target) else ""
    return HEADER.format(heading=heading, modules=modules)


def initializer(dtype: str, number: int, bits: Bits) -> str:
    """Return the statements that make the array ``bits`` the initializer x of a script's ``model``.

    ``number`` is the dtype's number in ``TensorProto.DataType``.
    """
    entry = format_named(dtype)
    if entry.kind == "text":
        return INITIALIZER.format(number=number, content="[text.encode() for text in bits.flat]")
    pack = PACK.format(bits=entry.bits) if _needs_packing(dtype, bits) else ""
    array = "packed" if pack else "bits"
    return pack + INITIALIZER.format(number=number, content=f"{array}.tobytes(), raw=True")


def session(level: str | None) -> str:
    """Return the statements that open a script's session on the CPU.

    ``level`` is a name in ``GraphOptimizationLevel``; if it is None, the script leaves
    onnxruntime's default.
    """
    return SESSION if level is None else SESSION_OF_LEVEL.format(level=level)


def run(
    case: Case,
    number: int,
    bits: Bits,
    outputs: str = "None",
    *,
    is_constant: bool,
    is_bitcast: bool = False,
) -> str:
    """Return the statements that run a script's session and print its answers.

    ``number`` is that of the source in ``TensorProto.DataType``, and ``outputs`` the expression of
    the names of outputs. If the input ``is_constant``, the session is given none. The script also
    prints shapes with ``is_bitcast``, and for ``bits`` that are no row.
    """
    in_memory = is_raw(case.target)
    if is_constant:
        feed, is_numpy = "{}", not in_memory
    elif case.source == "string":
        feed, is_numpy = '{"x": bits}', True
    elif case.source in NUMPY_DTYPES and not in_memory:
        feed, is_numpy = f'{{"x": bits.view("{case.source}")}}', True
    else:
        feed, is_numpy = '{"x": x}', False
    statements = _ort_value(case.source, number, bits) if feed == '{"x": x}' else ""
    method = "run" if is_numpy else "run_with_ort_values"
    statements += f"(y,) = session.{method}({outputs}, {feed})\n"
    answers = "y" if is_numpy else "y.numpy()"
    if in_memory:
        more, answers = _from_memory(case.target, bits)
        statements += more
    elif case.target != "string":
        answers += f'.view("{format_named(case.target).storage}")'
    if is_bitcast:
        return statements + print_tensor(case.target, answers)
    return statements + print_statement(case.source, case.target, bits, answers)


def _ort_value(dtype: str, number: int, bits: Bits) -> str:
    """Return the statements that bind x to an OrtValue of the array ``bits``.

    ``number`` is the dtype's number in ``TensorProto.DataType``.
    """
    if not _needs_packing(dtype, bits):
        return ORT_VALUE.format(array="bits", number=number)
    pack = PACK.format(bits=format_named(dtype).bits)
    return pack + PADDED + ORT_VALUE.format(array="padded", number=number)


def _from_memory(dtype: str, bits: Bits) -> tuple[str, str]:
    """Return the statements that read the memory of y, and the expression of the patterns in it."""
    entry, shaped = format_named(dtype), "" if bits.ndim == 1 else ".reshape(bits.shape)"
    if _needs_packing(dtype, bits):
        return RAW + UNPACK.format(bits=entry.bits), f"answers{shaped}"
    return RAW, f'np.frombuffer(raw, "{entry.storage}"){mask_expression(dtype)}{shaped}'


def node_run(
    node: OpsetNode,
    tensors: Mapping[str, Bits],
    number_of: Callable[[str], int],
    *,
    is_constant: bool,
) -> str:
    """Return the statements that run a script's session on a node's inputs and print its results.

    ``number_of`` returns a dtype's number in ``TensorProto.DataType``. If the inputs are constants
    (``is_constant``), the session is given none.
    """
    given = [f'"{name}": tensor({name}, {number_of(dtype)})' for name, dtype in node.inputs]
    feed = "{}" if is_constant else "given"
    statements = "" if is_constant else TENSORS.format(given=", ".join(given))
    statements += f"{results(node)} = session.run_with_ort_values(None, {feed})\n"
    for name, dtype in node.outputs:
        patterns = f'{name}.numpy().view("{format_named(dtype).storage}")'
        if is_raw(dtype):
            statements += RAW
            memory, count = 'np.frombuffer(raw, "uint8")', tensors["x"].size
            patterns = patterns_expression(dtype, memory, count)
        statements += print_patterns(name, patterns)
    return statements


def is_raw(dtype: str) -> bool:
    """Return whether scripts read a tensor's memory: its dtype is no text, nor a numpy dtype.

    Those are ``NUMPY_DTYPES``; onnxruntime exchanges all others, even complex64, as memory.
    """
    return dtype not in NUMPY_DTYPES and dtype != "string"


def _needs_packing(dtype: str, bits: Bits) -> bool:
    """Return whether ``bits`` are packed: codes of less than a byte, but not a single one."""
    return is_packed(format_named(dtype)) and bits.size != 1
