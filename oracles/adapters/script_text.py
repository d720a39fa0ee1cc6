"""The statements that reproduction scripts of all frameworks share.

Scripts are recorded in runs, so a change here shows as a change in every table.
"""

from __future__ import annotations

import textwrap

from oracles.memory_layouts import is_packed
from oracles.protocol import Bits
from specs.formats import format_named

WIDTH = 96
UNEVEN = 37
"""A length of rows of which vector instructions cast most elements, and a scalar loop the rest."""

PRINT_EXPRESSIONS = {"O": "repr({0})", "V16": '"0x" + {0}.tobytes()[::-1].hex()'}
"""How a script prints a pattern, by storage, where ``hex`` does not take it."""

NUMPY_DTYPES = frozenset(
    {
        *("float16", "float32", "float64", "bool"),
        *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
    }
)
"""The dtypes that onnx and onnxruntime exchange as numpy's own."""

PACK = """\
stream = np.unpackbits(bits.reshape(-1, 1), axis=1, count={bits}, bitorder="little")  # low first
packed = np.packbits(stream, bitorder="little")
"""
"""Statements that pack ``bits``, one code per byte, into ``packed``."""

UNPACK = """\
stream = np.unpackbits(np.frombuffer(raw, np.uint8), count={bits} * bits.size, bitorder="little")
answers = np.packbits(stream.reshape(-1, {bits}), axis=1, bitorder="little").reshape(bits.shape)
"""
"""Statements that unpack the memory ``raw`` into ``answers``, one code per byte."""


def bits_statement(dtype: str, bits: Bits, name: str = "bits") -> str:
    """Return the statement, without newline, that binds ``name`` to an array of these patterns."""
    storage = format_named(dtype).storage
    match storage:
        case "O":
            elements, end = [repr(text) for text in bits.ravel().tolist()], "object)"
        case "V16":
            # Python has no 128-bit array literals: write two words, the real part first.
            words = bits.ravel().copy().view("uint64").tolist()
            elements, end = [f"0x{word:016x}" for word in words], 'np.uint64).view("V16")'
        case _:
            end = f"np.{storage})"
            elements = [format_named(dtype).hexadecimal(code) for code in bits.ravel().tolist()]
    if bits.shape == (UNEVEN,) and len(set(elements)) == 1:
        return f"{name} = np.full({UNEVEN}, {elements[0]}, {end}"
    if bits.ndim != 1:
        end += f".reshape({bits.shape})"
    line = f"{name} = np.array([{', '.join(elements)}], {end}"
    if len(line) <= WIDTH:
        return line
    if storage == "O":
        body = "".join(f"    {element},\n" for element in elements)
    else:
        body = (
            textwrap.fill(
                ", ".join(elements) + ",", WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 4
            )
            + "\n"
        )
    return f"{name} = np.array([\n{body}], {end}"


def print_loop(source: str, target: str, answers: str = "answers") -> str:
    """Return the loop that prints ``bits`` and the answers, two rows, side by side.

    ``answers`` is the expression of an array.
    """
    left, right = (
        _print_expression(dtype, name) for dtype, name in ((source, "given"), (target, "answer"))
    )
    return f'for given, answer in zip(bits, {answers}):\n    print({left}, "->", {right})\n'


def print_statement(source: str, target: str, bits: Bits, answers: str = "answers") -> str:
    """Return the statements that print the answers, beside ``bits`` if these are a row.

    ``answers`` is the expression of an array.
    """
    if bits.ndim == 1:
        return print_loop(source, target, answers)
    return print_tensor(target, answers)


def print_tensor(target: str, answers: str = "answers") -> str:
    """Return the statements that print the shapes of ``bits`` and the answers, then the answers.

    ``answers`` is the expression of an array.
    """
    expression = _print_expression(target, "answer")
    binding = "" if answers == "answers" else f"answers = {answers}\n"
    return (
        f'{binding}print(bits.shape, "->", answers.shape)\n'
        f"print(*({expression} for answer in answers.flat))\n"
    )


def _print_expression(dtype: str, name: str) -> str:
    return PRINT_EXPRESSIONS.get(format_named(dtype).storage, "hex({0})").format(name)


def mask_expression(dtype: str) -> str:
    """Return the text that clears the bits above codes of less than a byte, such as `` & 0xf``.

    It follows an expression of patterns, and is empty for other dtypes.
    """
    entry = format_named(dtype)
    return f" & {entry.mask:#x}" if is_packed(entry) else ""
