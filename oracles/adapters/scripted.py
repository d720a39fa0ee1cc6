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
from types import CodeType
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
ScriptedOperation = Literal["cast", "bitcast", "carry", "copy"]
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
        """All statements as one text, those in ``once`` before those in ``each``."""
        return self.once + self.each


def call_steps(expression: str, maker: str = "", options: str = "", names: str = "x") -> Statements:
    """Return the statements that bind y to an expression in ``names``.

    ``names`` are variables, separated by commas. With a ``maker``, such as ``jax.jit``, the
    statements compile the expression once to a function, and call it. ``options`` are further
    arguments of the maker, as text.
    """
    if not maker:
        return Statements(f"y = {expression}\n")
    arguments = f"lambda {names}: {expression}" + (f", {options}" if options else "")
    once = f"function = {maker}({arguments})\n"
    if len(once) > WIDTH:
        once = f"function = {maker}(\n    {arguments}\n)\n"
    return Statements(f"y = function({names})\n", once)


def function_of(names: dict[str, Any], takes: str, statements: str, gives: str) -> Function:
    """Return a function with the parameters ``takes`` that runs statements and returns ``gives``.

    These are Python text, ``gives`` an expression. The statements find all other names in
    ``names``, to which ``__builtins__`` is added.
    """
    found: dict[str, Function] = {}
    exec(_compiled(takes, statements, gives), names, found)
    return found["function"]


@lru_cache(1024)
def _compiled(takes: str, statements: str, gives: str) -> CodeType:
    """Compile the definition of a function as ``function_of`` returns it."""
    tree = ast.parse(f"def function({takes}):\n    return {gives}")
    [definition] = tree.body
    assert isinstance(definition, ast.FunctionDef)
    definition.body[:0] = ast.parse(statements).body
    return compile(tree, "<script>", "exec")


class Scripted(ABC):
    """Casts and bitcasts by the statements of scripts, which a subclass writes."""

    name: str
    version: str
    header: str
    """The first lines of a script, with places for `version` and `case`."""
    results: str = "y"
    """The expression that a compiled function of x returns."""
    operations: ClassVar[Mapping[ScriptedOperation, str]]
    """By operation, its name in the messages of Unsupported."""
    target_first: tuple[ScriptedOperation, ...] = ()
    """The operations whose Unsupported names the target if the framework lacks both dtypes."""
    kept: ClassVar[int] = 1024
    """The number of compiled functions that are cached."""

    def __init__(self, **imported: Any) -> None:
        self.names = {"__name__": MODULE, "np": np, **imported}
        self.prepared = lru_cache(self.kept)(self._prepare)
        self.made = lru_cache(self.kept)(self._make)
        self.into = lru_cache(None)(self._into)
        self.out_of = lru_cache(None)(self._out_of)

    @abstractmethod
    def require_dtype(self, operation: ScriptedOperation, dtype: str) -> None:
        """Raise Unsupported for a dtype that the framework lacks for an operation."""

    @abstractmethod
    def tensor_text(self, dtype: str) -> str:
        """Return the Python expression of a tensor of this dtype, made from the array ``bits``."""

    def input_text(self, dtype: str, bits: Bits) -> str:
        """Return the Python expression of a script's tensor of this dtype and these bits.

        A subclass overrides it if the expression depends on the bits.
        """
        return self.tensor_text(dtype)

    @abstractmethod
    def patterns_text(self, dtype: str) -> str:
        """Return the Python expression of the patterns in ``y``, a tensor of this dtype."""

    @abstractmethod
    def steps(self, operation: ScriptedOperation, case: Case, form: Hashable) -> Statements:
        """Return the statements that bind ``y`` to the result of an operation on ``x``.

        ``form`` is what ``form_of`` returned for the bits of ``x``.
        """

    def form_of(self, operation: ScriptedOperation, case: Case, bits: Bits) -> Hashable:
        """Return what of the bits the steps depend on, such as the rank or the shape; here None."""
        return None

    def require_parameters(self, operation: ScriptedOperation, case: Case) -> None:
        """Raise Unsupported for a case with modes that ``require_plain`` refuses."""
        require_plain(case, self.operations.get(operation, operation))

    def require(self, operation: ScriptedOperation, case: Case) -> None:
        """Raise Unsupported as ``require_parameters`` does, or for a dtype an operation lacks."""
        self.require_parameters(operation, case)
        for dtype in (case.source, case.target):
            self.require_dtype(operation, dtype)

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Return ``bits`` cast by the statements that ``steps`` returns.

        Raises Unsupported as ``require`` does.
        """
        return self.answer("cast", case, bits)

    def answer(self, operation: ScriptedOperation, case: Case, bits: Bits) -> Bits:
        """Return the patterns of ``bits`` after a cast or bitcast by the statements of ``steps``.

        Raises Unsupported as ``require`` does.
        """
        return self.run(self.made(operation, case, self.form_of(operation, case, bits)), case, bits)

    def run(self, make: Function, case: Case, bits: Bits) -> Bits:
        """Return the patterns of what ``make`` returns for a tensor of ``bits``.

        ``make`` is a compiled function of the tensor ``x``.
        """
        return self.patterns(case.target, make(self.tensor(case.source, bits)))

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Return ``bits`` after a round trip through a tensor of the dtype.

        Raises Unsupported if the framework lacks the dtype.
        """
        self.require_dtype("copy", dtype)
        return self.patterns(dtype, self.tensor(dtype, bits)).copy()

    def tensor(self, dtype: str, bits: Bits) -> Any:
        """Return a framework's tensor of this dtype that holds these patterns."""
        return self.into(dtype)(bits)

    def patterns(self, dtype: str, tensor: Any) -> Bits:
        """Return the patterns in a tensor of this dtype, as an array even if its rank is 0."""
        return np.asarray(self.out_of(dtype)(tensor))

    def road(self, case: Case) -> str:
        """Return the pair of dtypes as text; raise Unsupported as ``require`` does for a cast."""
        self.require("cast", case)
        return f"{case.source}->{case.target}"

    def bitcast_road(self, case: Case) -> str:
        """Return the pair of dtypes as text; raise Unsupported as ``require_plain`` does."""
        return plain_road(case, self.operations["bitcast"])

    def reproduce(self, case: Case, bits: Bits) -> str:
        """Return a self-contained script that does the cast.

        Raises Unsupported as ``require`` does.
        """
        self.require("cast", case)
        steps = self.steps("cast", case, self.form_of("cast", case, bits))
        script = self.script(case, (case.source, case.target), steps, bits)
        return script + print_statement(case.source, case.target, bits)

    def reproduce_bitcast(self, case: Case, bits: Bits) -> str:
        """Return a self-contained script that does the bitcast.

        Raises Unsupported as ``require`` does.
        """
        self.require("bitcast", case)
        steps = self.steps("bitcast", case, self.form_of("bitcast", case, bits))
        return self.script(case, (case.source, case.target), steps, bits) + print_tensor(
            case.target
        )

    def script(self, asked: object, pair: tuple[str, str], steps: Statements, bits: Bits) -> str:
        """Return a script that ends with the statement that binds ``answers``.

        Its first line names ``asked``, the case or the chain. ``pair`` has the dtypes of ``bits``
        and of the answers.
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
        """Return the names that are bound after the statements ``once`` have been executed.

        ``form`` is a part of the cache's key, and otherwise unused.
        """
        names = dict(self.names)
        exec(once, names)
        return names

    def _make(self, operation: ScriptedOperation, case: Case, form: Hashable) -> Function:
        """Return the function of ``x`` that a case's steps define; it returns ``results``.

        Raises Unsupported as ``require`` does.
        """
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
    """The base class of adapters that also run chains of casts: a company in one function."""

    chain_roads: tuple[str, ...]

    @abstractmethod
    def cast_text(self, case: Case, x: str) -> str:
        """Return the Python expression that casts the expression ``x`` as a case says."""

    @abstractmethod
    def chain_steps(self, road: str, names: str, ends: str) -> Statements:
        """Return the statements that bind ``y`` to ``ends``, an expression in ``names``, on a road.

        ``names`` are those of the inputs, separated by commas.
        """

    def chains(self, case: Case, company: Company, bits: Mapping[str, Bits]) -> list[Bits]:
        """Return the result of each chain of a company, all computed by one function.

        ``bits`` has the input of each chain under its index, as text. Raises Unsupported as
        ``require`` does for a step.
        """
        names = [f"x{number}" for number in range(len(company.chains))]
        ends = [self._end(chain, name) for chain, name in zip(company.chains, names, strict=True)]
        pairs = zip(company.chains, company.inputs(bits), strict=True)
        tensors = [self.tensor(chain.source, own) for chain, own in pairs]
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
        """Return a self-contained script that runs the only chain of a company.

        Raises Unsupported as ``require`` does for a step.
        """
        [chain], [own] = company.chains, [*bits.values()]
        steps = self.chain_steps(company.road, "x", self._end(chain, "x"))
        ends = (chain.source, chain.target)
        script = self.script(f"{chain.id} on {company.road}", ends, steps, own)
        return script + print_statement(*ends, own)
