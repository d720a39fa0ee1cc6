"""The types that the wheel ships, ``castigate-stubs``, are those of ``castigate.py``.

``REWRITE_DOCS=1 pytest tests/conformance/api/test_stubs.py`` writes them. A module that is one file
cannot say that it is typed, so type checkers read a package of stubs in its place.
"""

from __future__ import annotations

import ast
import os
from pathlib import Path

import castigate

ROOT = Path(__file__).parents[3]
STUBS = ROOT / "conformance" / "api" / "stubs" / "castigate-stubs" / "__init__.pyi"
HEAD = "# Made from castigate.py by: REWRITE_DOCS=1 pytest tests/conformance/api/test_stubs.py\n"


def stubs(module: str) -> str:
    """Return the imports for types, the aliases, and the public functions, without bodies."""
    kept: list[ast.stmt] = []
    for node in ast.parse(module).body:
        match node:
            case ast.If(test=ast.Name("TYPE_CHECKING")):
                kept += node.body
            case ast.Assign(targets=[ast.Name("__all__")]):
                kept.append(node)
            case ast.FunctionDef(name=name) if name in castigate.__all__:
                node.body = [ast.Expr(ast.Constant(...))]
                kept.append(node)
    kept += ast.parse("__version__: str").body
    used = {node.id for each in kept for node in ast.walk(each) if isinstance(node, ast.Name)}
    for each in kept:
        if isinstance(each, ast.Import | ast.ImportFrom):
            each.names = [
                name
                for name in each.names
                if name.asname == name.name or (name.asname or name.name) in used
            ]
    written = (each for each in kept if getattr(each, "names", True))
    return HEAD + "\n".join(map(ast.unparse, written)) + "\n"


def test_the_stubs_are_those_of_the_module() -> None:
    made = stubs((ROOT / "castigate.py").read_text(encoding="utf-8"))
    if os.environ.get("REWRITE_DOCS"):
        STUBS.write_text(made, encoding="utf-8")
    assert STUBS.read_text(encoding="utf-8") == made
    assert all(f"def {name}(" in made for name in castigate.__all__ if name[0].islower())
