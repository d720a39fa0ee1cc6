"""The small changes that cosmic-ray can make to one module, without those that no test can see.

cosmic-ray is imported late: pages are made, and stored results read, without it.
"""

from __future__ import annotations

import ast
import difflib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from random import Random
from typing import Any

from lab.code_mutation.silent_places import Place, silent_places

FAMILIES = {
    "binary_operator_replacement": {"operator"},
    "boolean_replacer": {"keyword", "if_stmt", "while_stmt", "assert_stmt", "test"},
    "break_continue": {"keyword"},
    "comparison_operator_replacement": {"comparison"},
    "exception_replacer": {"except_clause"},
    "number_replacer": {"number"},
    "remove_decorator": {"decorator"},
    "unary_operator_replacement": {"factor", "not_test"},
    "zero_iteration_for_loop": {"for_stmt"},
}
"""Modules of ``cosmic_ray.operators``, and the types of syntax node that each can change."""

Change = tuple[str, int]
"""An operator of cosmic-ray, and which of its possible changes in a module is meant."""


@dataclass(frozen=True)
class Mutant:
    """One change to one module: where it is, its line before and after, and what makes it.

    ``inside`` is the innermost function or class, such as ``Format.mask``.
    """

    file: str
    line: int
    inside: str
    before: str
    after: str
    operator: str
    occurrence: int


def draw_mutants(file: str, source: str, chance: Random) -> Iterator[Mutant]:
    """Yield the mutants of a module in a random order, one for each place that can be changed.

    A change is drawn again if it does not compile without a warning, or leaves the syntax tree
    as it was.
    """
    places = sorted(changes_by_place(source).items())
    chance.shuffle(places)
    unchanged = ast.dump(ast.parse(source))
    for _, changes in places:
        chance.shuffle(changes)
        for operator, occurrence in changes:
            mutated = mutate(source, operator, occurrence)
            if _tree(mutated) not in (None, unchanged):
                line, before, after = changed_line(source, mutated)
                inside = definition_at(source, line)
                yield Mutant(file, line, inside, before, after, operator, occurrence)
                break


def changes_by_place(source: str) -> dict[tuple[Place, str], list[Change]]:
    """Return the changes by their place and family of operators, without those in silent places."""
    counts: dict[str, int] = {}
    found: dict[tuple[Place, str], list[Change]] = {}
    silent = silent_places(source)
    for node in import_module("cosmic_ray.ast").ast_nodes(_parse(source)):
        for family, name, operator in _operators_by_type().get(node.type, ()):
            for start, end in operator.mutation_positions(node):
                occurrence = counts.get(name, 0)
                counts[name] = occurrence + 1
                if not any(place[0] <= start < place[1] for place in silent):
                    found.setdefault(((start, end), family), []).append((name, occurrence))
    return found


def mutate(source: str, operator: str, occurrence: int) -> str:
    """Return the source with one change; raise ValueError if the operator makes fewer changes."""
    mutating = import_module("cosmic_ray.mutating")
    [change] = [each for _, name, each in _operators() if name == operator]
    mutated: str | None = mutating.mutate_code(source, change, occurrence)
    if mutated is None:
        raise ValueError(f"`{operator}` makes fewer than {occurrence + 1} changes")
    return mutated


def changed_line(before: str, after: str) -> tuple[int, str, str]:
    """Return the number of the first changed line, and the changed lines before and after."""
    old, new = before.splitlines(), after.splitlines()
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    _, old_start, old_end, new_start, new_end = next(
        each for each in matcher.get_opcodes() if each[0] != "equal"
    )
    # With a decorator, cosmic-ray removes the blank lines before it.
    while old_start < old_end and not old[old_start].strip():
        old_start += 1
    removed, added = (
        " ".join(" ".join(lines).split())
        for lines in (old[old_start:old_end], new[new_start:new_end])
    )
    return old_start + 1, removed, added


def definition_at(source: str, line: int) -> str:
    """The dotted name of the innermost function or class that a line is in, or of its decorator."""
    names = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            if first <= line <= (node.end_lineno or first):
                names.append((first, node.name))
    return ".".join(name for _, name in sorted(names))


def _tree(source: str) -> str | None:
    """The syntax tree as text, or None if the source does not compile or does so with a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            compile(source, "mutant", "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            return None
        return ast.dump(ast.parse(source))


def _parse(source: str) -> Any:
    return import_module("cosmic_ray.ast").get_ast(source)


@cache
def _operators() -> list[tuple[str, str, Any]]:
    """The family, the name and an instance of each operator that needs no arguments."""
    found = []
    for family in FAMILIES:
        module = import_module(f"cosmic_ray.operators.{family}")
        listed = module.operators() if hasattr(module, "operators") else _own(module)
        found += [(family, operator.__name__, operator()) for operator in listed]
    return found


def _own(module: Any) -> list[type]:
    """The operators that a module defines itself, which has no list of them."""
    return [
        each
        for _, each in sorted(vars(module).items())
        if isinstance(each, type)
        and each.__module__ == module.__name__
        and hasattr(each, "mutation_positions")
    ]


@cache
def _operators_by_type() -> dict[str, list[tuple[str, str, Any]]]:
    """Return the triples of ``_operators`` by the type of syntax node that they can change."""
    found: dict[str, list[tuple[str, str, Any]]] = {}
    for family, name, operator in _operators():
        for node_type in FAMILIES[family]:
            found.setdefault(node_type, []).append((family, name, operator))
    return found
