"""Splits a script into files that other tools can read: the script, its model and its tensors."""

from __future__ import annotations

import ast
import io
from collections.abc import Iterator
from typing import Any

import numpy as np

from oracles.adapters.refusals import load

SCRIPT = "script.py"
ARRAYS = frozenset({"array", "full", "reshape", "view"})
"""The functions and methods of which a script makes a tensor's bits."""
LITERALS = (ast.Constant, ast.List, ast.Tuple, ast.Load)


def is_python(script: str) -> bool:
    """Return whether an adapter wrote a script, not a command of castigate, or none."""
    return bool(script) and not script.startswith("castigate ")


def files_of(script: str) -> dict[str, bytes]:
    """Return by name the files of a script: itself, changed to read the others, model and tensors.

    The model is ``model.onnx``, and a tensor NAME ``NAME.npy``, as its bit patterns. Tensors that
    the script does not make from literals stay in it. Nothing of it is executed.
    Raises NotInstalled if it has a model, and onnx is not installed.
    """
    try:
        bindings = [*_bindings(ast.parse(script))]
    except SyntaxError:
        bindings = []  # A run that was edited may hold any text.
    found, lines = dict[str, bytes](), script.splitlines(keepends=True)
    for name, value in reversed(bindings):
        match value:
            case ast.Call(
                func=ast.Attribute(attr="parse_model"), args=[ast.Constant(value=str(text))]
            ):
                file = f"{name}.onnx"
                found[file] = load("onnx.parser", "onnx").parse_model(text).SerializeToString()
                read = f'onnx.load("{file}")'
            case _ if _is_array(value) and (content := _npy(value)):
                file = f"{name}.npy"
                found[file] = content
                read = f'np.load("{file}")'
            case _:
                continue
        assert value.end_lineno is not None
        lines[value.lineno - 1 : value.end_lineno] = [f"{name} = {read}\n"]
    if any(file.endswith(".onnx") for file in found):
        lines = ["import onnx\n" if line == "import onnx.parser\n" else line for line in lines]
    return {SCRIPT: "".join(lines).encode()} | found


def _bindings(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names that a script's own lines bind, and the expressions."""
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value


def _is_array(value: ast.expr) -> bool:
    """Return whether an expression calls nothing but numpy, to make an array of literals."""
    if not isinstance(value, ast.Call):
        return False
    return all(
        isinstance(node, LITERALS)
        or (isinstance(node, ast.Name) and node.id in ("np", "object"))
        or (isinstance(node, ast.Attribute) and _is_known(node.attr))
        or (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute))
        for node in ast.walk(value)
    )


def _is_known(attribute: str) -> bool:
    return attribute in ARRAYS or attribute.removeprefix("u").startswith("int")


def _npy(value: ast.expr) -> bytes:
    """Return the file of an array; empty for texts, which would be read by executing code."""
    code = compile(ast.Expression(value), SCRIPT, "eval")
    array: Any = eval(code, {"np": np, "object": object, "__builtins__": {}})
    if not isinstance(array, np.ndarray) or array.dtype.hasobject:
        return b""
    content = io.BytesIO()
    np.save(content, array, allow_pickle=False)
    return content.getvalue()
