"""The base class of adapters that execute the lines of their own scripts.

A script binds ``bits`` to patterns, ``x`` to a tensor of them, ``y`` to what the framework makes of
it, and ``answers`` to the patterns in y. An adapter writes each of these as Python text. The text
is compiled once per case, and kept: a cast executes it, and a reproduction script shows it.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from oracles.adapters.refusals import plain_road, require_plain
from oracles.adapters.script_text import (
    WIDTH,
    bits_statement,
    print_statement,
    print_tensor,
)
from oracles.protocol import Bits
from specs.cases import Case

if TYPE_CHECKING:
    from specs.chains import Chain, Company

Function = Callable[..., Any]
ScriptedOperation = Literal["cast", "bitcast", "copy"]
"""What a function does to a tensor; a copy tells a broken adapter from a failing framework."""

MODULE = "castigate_script"
"""The value of ``__name__`` that statements see."""


@dataclass(frozen=True)
class Statements:
    """The statements that bind y to what is made of x.

    Those in ``once`` are executed first and a single time, those in ``each`` for every x.
    """

    each: str
    once: str = ""

    @property
    def text(self) -> str:
        """All statements, as a script has them: those in ``once``, then those in ``each``."""
        return self.once + self.each


def call_steps(expression: str, maker: str = "", options: str = "", names: str = "x") -> Statements:
    """Return the statements that bind y to an expression in ``names``.

    With a ``maker``, such as ``jax.jit``, they compile the expression once to a function.
    ``options`` are further arguments of the maker.
    """
    if not maker:
        return Statements(f"y = {expression}\n")
    arguments = f"lambda {names}: {expression}" + (f", {options}" if options else "")
    once = f"function = {maker}({arguments})\n"
    if len(once) > WIDTH:
        once = f"function = {maker}(\n    {arguments}\n)\n"
    return Statements(f"y = function({names})\n", once)


def function_of(names: dict[str, Any], takes: str, statements: str, gives: str) -> Function:
    """Return a function of the names ``takes`` that executes statements and returns ``gives``.

    Its statements find all other names in ``names``.
    """
    tree = ast.parse(f"def function({takes}):\n    return {gives}")
    [definition] = tree.body
    assert isinstance(definition, ast.FunctionDef)
    definition.body[:0] = ast.parse(statements).body
    found: dict[str, Function] = {}
    exec(compile(tree, "<script>", "exec"), names, found)
    return found["function"]


class Scripted(ABC):
    """Casts and bitcasts by the statements of scripts, which a subclass writes."""

    name: str
    version: str
    header: str
    """The first lines of a script, with places for `version` and `case`."""
    results: str = "y"
    """The expression that a compiled function of x returns."""
    operations: ClassVar[Mapping[ScriptedOperation, str]]
    """What refusals call each operation."""
    target_first: tuple[ScriptedOperation, ...] = ()
    """The operations whose refusals name the target if both dtypes are missing."""
    kept: ClassVar[int] = 1024
    """The number of functions that are kept."""

    def __init__(self, **imported: Any) -> None:
        self.names = {"__name__": MODULE, "np": np, **imported}
        self.prepared = lru_cache(self.kept)(self._prepare)
        self.made = lru_cache(self.kept)(self._make)
        self.into = lru_cache(None)(self._into)
        self.out_of = lru_cache(None)(self._out_of)

    @abstractmethod
    def require_dtype(self, operation: ScriptedOperation, dtype: str) -> None:
        """Raise Unsupported for a dtype that an operation does not take."""

    @abstractmethod
    def tensor_text(self, dtype: str) -> str:
        """Return the expression of a tensor of ``bits``."""

    def input_text(self, dtype: str, bits: Bits) -> str:
        """Return the expression of a script's tensor of these bits."""
        return self.tensor_text(dtype)

    @abstractmethod
    def patterns_text(self, dtype: str) -> str:
        """Return the expression of the patterns in the tensor ``y``."""

    @abstractmethod
    def steps(self, operation: ScriptedOperation, case: Case, form: Hashable) -> Statements:
        """Return the statements that do an operation to x, whose form ``form_of`` returned."""

    def form_of(self, operation: ScriptedOperation, case: Case, bits: Bits) -> Hashable:
        """Return what the steps depend on besides the case, such as the rank or shape, or None."""
        return None

    def require_parameters(self, operation: ScriptedOperation, case: Case) -> None:
        """Raise Unsupported for a case with parameters that an operation lacks."""
        require_plain(case, self.operations.get(operation, operation))

    def require(self, operation: ScriptedOperation, case: Case) -> None:
        """Raise Unsupported for a case that an operation does not take."""
        self.require_parameters(operation, case)
        for dtype in (case.source, case.target):
            self.require_dtype(operation, dtype)

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Return ``bits`` cast by the steps of a cast."""
        return self.answer("cast", case, bits)

    def answer(self, operation: ScriptedOperation, case: Case, bits: Bits) -> Bits:
        """Cast or bitcast ``bits`` by the statements of the script; return the patterns."""
        return self.run(self.made(operation, case, self.form_of(operation, case, bits)), case, bits)

    def run(self, make: Function, case: Case, bits: Bits) -> Bits:
        """Return the patterns of what ``make`` returns for a tensor of ``bits``."""
        return self.patterns(case.target, make(self.tensor(case.source, bits)))

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Return the bits after a round trip through a tensor of the dtype."""
        self.require_dtype("copy", dtype)
        return self.patterns(dtype, self.tensor(dtype, bits)).copy()

    def tensor(self, dtype: str, bits: Bits) -> Any:
        """Return the framework's tensor of these patterns."""
        return self.into(dtype)(bits)

    def patterns(self, dtype: str, tensor: Any) -> Bits:
        """Return the patterns in a tensor, as an array even if its rank is 0."""
        return np.asarray(self.out_of(dtype)(tensor))

    def road(self, case: Case) -> str:
        """Return the pair of dtypes as text: a cast has no parameters that cases vary."""
        self.require("cast", case)
        return f"{case.source}->{case.target}"

    def bitcast_road(self, case: Case) -> str:
        """Return the pair of dtypes as text: a bitcast has no parameters besides the shape."""
        return plain_road(case, self.operations["bitcast"])

    def reproduce(self, case: Case, bits: Bits) -> str:
        """Return a self-contained script that casts."""
        self.require("cast", case)
        steps = self.steps("cast", case, self.form_of("cast", case, bits))
        script = self.script(case, (case.source, case.target), steps, bits)
        return script + print_statement(case.source, case.target, bits)

    def reproduce_bitcast(self, case: Case, bits: Bits) -> str:
        """Return a self-contained script that reinterprets bits."""
        for dtype in (case.source, case.target):
            self.require_dtype("bitcast", dtype)
        steps = self.steps("bitcast", case, self.form_of("bitcast", case, bits))
        return self.script(case, (case.source, case.target), steps, bits) + print_tensor(
            case.target
        )

    def script(self, asked: object, pair: tuple[str, str], steps: Statements, bits: Bits) -> str:
        """Return a script up to the statement that binds ``answers``.

        Its first line names ``asked``, and ``pair`` has the dtypes of ``bits`` and of the answers.
        """
        source, target = pair
        return (
            self.header.format(version=self.version, case=asked)
            + f"{bits_statement(source, bits)}\n"
            + f"x = {self.input_text(source, bits)}\n"
            + steps.text
            + f"answers = {self.patterns_text(target)}\n"
        )

    def _prepare(self, once: str, form: Hashable) -> dict[str, Any]:
        """Return the names that a case's steps find, after executing the statements ``once``."""
        names = dict(self.names)
        exec(once, names)
        return names

    def _make(self, operation: ScriptedOperation, case: Case, form: Hashable) -> Function:
        """Compile the steps of a case to a function of x; raise Unsupported as ``require`` does."""
        self.require_parameters(operation, case)
        order = -1 if operation in self.target_first else 1
        for dtype in (case.source, case.target)[::order]:
            self.require_dtype(operation, dtype)
        steps = self.steps(operation, case, form)
        return function_of(self.prepared(steps.once, form), "x", steps.each, self.results)

    def _into(self, dtype: str) -> Function:
        return function_of(self.names, "bits", "", self.tensor_text(dtype))

    def _out_of(self, dtype: str) -> Function:
        return function_of(self.names, "y", "", self.patterns_text(dtype))


class Chained(Scripted):
    """The base class of adapters that also make chains of casts, a company in one function."""

    chain_roads: tuple[str, ...]

    @abstractmethod
    def cast_text(self, case: Case, x: str) -> str:
        """Return the expression that casts the expression ``x``."""

    @abstractmethod
    def chain_steps(self, road: str, names: str, ends: str) -> Statements:
        """Return the steps that bind y to ``ends``, expressions in ``names``, on a road."""

    def chains(self, case: Case, company: Company, bits: Mapping[str, Bits]) -> list[Bits]:
        """Return the ends of chains, each by one cast after another, all in one function."""
        pairs = [*zip(company.chains, bits.values(), strict=True)]
        tensors = [self.tensor(chain.source, own) for chain, own in pairs]
        names = [f"x{number}" for number in range(len(tensors))]
        ends = [self._end(chain, name) for chain, name in zip(company.chains, names, strict=True)]
        steps = self.chain_steps(company.road, ", ".join(names), f"({', '.join(ends)},)")
        make = function_of(self._prepare(steps.once, None), ", ".join(names), steps.each, "y")
        found = zip(company.chains, make(*tensors), strict=True)
        return [self.patterns(chain.target, end).copy() for chain, end in found]

    def _end(self, chain: Chain, name: str) -> str:
        for step in chain.steps:
            self.require("cast", step)
            name = self.cast_text(step, name)
        return name

    def reproduce_chains(self, case: Case, company: Company, bits: Mapping[str, Bits]) -> str:
        """Return a self-contained script that makes one chain."""
        [chain], [own] = company.chains, [*bits.values()]
        steps = self.chain_steps(company.road, "x", self._end(chain, "x"))
        ends = (chain.source, chain.target)
        script = self.script(f"{chain.id} on {company.road}", ends, steps, own)
        return script + print_statement(*ends, own)
