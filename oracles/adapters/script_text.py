"""The parts that all reproduction scripts share: the patterns going in, and those coming out."""

from __future__ import annotations

import textwrap

from oracles.bit_packing import is_packed
from oracles.protocol import Bits
from specs.formats import format_named

WIDTH = 96

PRINTED = {"O": "repr({0})", "V16": '"0x" + {0}.tobytes()[::-1].hex()'}


def given(dtype: str, bits: Bits) -> str:
    """The statement that binds ``bits`` to an array of these patterns."""
    storage = format_named(dtype).storage
    match storage:
        case "O":
            elements, made = [repr(text) for text in bits.tolist()], "object)"
        case "V16":
            # A literal has no 128-bit patterns: each is two words, the real part first.
            words = bits.copy().view("uint64").tolist()
            elements, made = [f"0x{word:016x}" for word in words], 'np.uint64).view("V16")'
        case _:
            made = f"np.{storage})"
            elements = [format_named(dtype).hexadecimal(code) for code in bits.tolist()]
    line = f"bits = np.array([{', '.join(elements)}], {made}"
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
    return f"bits = np.array([\n{body}], {made}"


def printed(source: str, target: str) -> str:
    """The loop that prints ``bits`` and ``answers`` side by side."""
    left, right = (
        PRINTED.get(format_named(dtype).storage, "hex({0})").format(name)
        for dtype, name in ((source, "given"), (target, "answer"))
    )
    return f'for given, answer in zip(bits, answers):\n    print({left}, "->", {right})\n'


def masked(dtype: str) -> str:
    """What keeps only the code of a format of less than a byte, whose upper bits mean nothing."""
    entry = format_named(dtype)
    return f" & {entry.mask:#x}" if is_packed(entry) else ""
