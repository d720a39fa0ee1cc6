"""Places in a module whose change no test can see: annotations, and arguments that only check."""

from __future__ import annotations

import ast
from collections.abc import Iterator

Place = tuple[tuple[int, int], tuple[int, int]]
"""The start and the end, each as a line, counted from 1, and a column in characters."""

Node = ast.expr | ast.stmt | ast.keyword

SPEED_ONLY = {"cache", "lru_cache", "njit", "overload", "override"}
"""Decorators without which a function returns the same."""


def silent_places(source: str) -> list[Place]:
    """Return the places that are not to be changed.

    These are annotations and aliases of types, imports for types, arguments of decorators,
    decorators that only make faster, and ``strict=`` of ``zip``, which guards against mistakes in
    the code itself.
    """
    lines = source.splitlines()
    tree = ast.parse(source)
    nodes = [*_annotations(tree), *_aliases(tree), *_decorators(tree), *_checks(tree)]
    return [_place(node, lines) for node in nodes]


def _annotations(tree: ast.Module) -> Iterator[Node]:
    for node in ast.walk(tree):
        match node:
            case ast.arg(annotation=ast.expr() as annotation):
                yield annotation
            case ast.AnnAssign(annotation=annotation):
                yield annotation
            case ast.FunctionDef(returns=ast.expr() as annotation):
                yield annotation


def _aliases(tree: ast.Module) -> Iterator[Node]:
    """Aliases such as ``Reply = Answered | Declined``, and ``if TYPE_CHECKING``."""
    for node in tree.body:
        match node:
            case ast.Assign(value=ast.Subscript() | ast.BinOp(op=ast.BitOr()) as value):
                yield value
            case ast.If(test=ast.Name("TYPE_CHECKING")):
                yield node


def _decorators(tree: ast.Module) -> Iterator[Node]:
    for node in ast.walk(tree):
        decorators: list[ast.expr] = getattr(node, "decorator_list", [])
        for decorator in decorators:
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            if ast.unparse(called).rpartition(".")[2] in SPEED_ONLY:
                yield decorator
            elif isinstance(decorator, ast.Call):
                yield from decorator.args
                yield from decorator.keywords


def _checks(tree: ast.Module) -> Iterator[Node]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name("zip"), keywords=[ast.keyword(arg="strict") as keyword]):
                yield keyword


def _place(node: Node, lines: list[str]) -> Place:
    start = (node.lineno, _column(lines[node.lineno - 1], node.col_offset))
    assert node.end_lineno is not None, "only nodes that are made by hand have no end"
    assert node.end_col_offset is not None, "likewise"
    end = (node.end_lineno, _column(lines[node.end_lineno - 1], node.end_col_offset))
    # Python's node of a decorator begins after the ``@``.
    return ((start[0], start[1] - _signs(lines[start[0] - 1], start[1])), end)


def _signs(line: str, column: int) -> int:
    return int(line[:column].strip() == "@")


def _column(line: str, offset: int) -> int:
    """Convert an offset in bytes, as in Python's syntax tree, to one in characters."""
    return len(line.encode()[:offset].decode())
