"""The statements of reproduction scripts of quantization that ONNX's runtimes share."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from oracles.adapters.onnx_quantize_models import Node
from oracles.adapters.script_text import bits_statement
from oracles.bit_packing import is_packed
from oracles.protocol import Bits
from specs.formats import Format, format_named

PACKED = "  # packed: the first code in the low bits"

INITIALIZERS = """\
for name, dtype, dims, data in [{constants}]:
    model.graph.initializer.add(name=name, data_type=dtype, dims=dims, raw_data=data.tobytes())
"""


def tensor_statements(
    node: Node, tensors: Mapping[str, Bits], memory: Callable[[Format, Bits], Bits]
) -> str:
    """Return the statements that bind a node's inputs, by name, to the content of their memory."""
    lines = []
    for name, dtype in node.inputs:
        entry, bits = format_named(dtype), tensors[name]
        statement = bits_statement(dtype, memory(entry, bits), name)
        lines.append(statement + (PACKED if is_packed(entry) and bits.size > 1 else "") + "\n")
    return "".join(lines)


def initializers(node: Node, tensors: Mapping[str, Bits], number_of: Callable[[str], int]) -> str:
    """Return the statements that make a node's inputs the initializers of ``model``."""
    constants = (
        f'("{name}", {number_of(dtype)}, {tensors[name].shape}, {name})'
        for name, dtype in node.inputs
    )
    return INITIALIZERS.format(constants=", ".join(constants))


def results(node: Node) -> str:
    """Return the names of a node's results, as a statement binds them."""
    names = [name for name, _ in node.outputs]
    return ", ".join(names) if len(names) > 1 else f"({names[0]},)"


def patterns_expression(dtype: str, memory: str, count: int) -> str:
    """Return the expression of the patterns in the memory of a tensor of ``count`` elements."""
    entry = format_named(dtype)
    if not is_packed(entry):
        return f'{memory}.view("{entry.storage}")'
    codes = f'{memory}.view("uint8")[:, None] >> np.arange(0, 8, {entry.bits}) & {entry.mask:#x}'
    return f"({codes}).ravel()[:{count}]"


def print_patterns(name: str, patterns: str) -> str:
    """Return the statement that prints the patterns of a result."""
    return f'print("{name}:", *map(hex, {patterns}.ravel()))\n'
