"""The base class of adapters that ask the conversion functions of a vendor's C++ headers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from oracles.adapters.compiled_loops import CompiledLoops, Loop
from oracles.adapters.refusals import require_plain
from oracles.adapters.scripted import ScriptedOperation
from oracles.protocol import Unsupported
from specs.cases import Case

HeaderArguments = Mapping[str, tuple[str, Mapping[str, str]]]
"""By a document's parameter, the argument that it is, and by value of it what the headers say."""


class HeaderFunctions(CompiledLoops):
    """Casts by the functions of headers; a subclass writes the calls."""

    language = "c++"
    operations: ClassVar[Mapping[ScriptedOperation, str]] = {"cast": "a conversion of the headers"}
    types: ClassVar[Mapping[str, str]]
    """By dtype, the type of its elements."""
    arguments: ClassVar[HeaderArguments]

    @abstractmethod
    def expression(self, source: str, target: str, arguments: Mapping[str, str]) -> str | None:
        """Return the call that converts ``x[i]``; None if no function does.

        A parameter is ignored if the functions of the pair have no such argument.
        """

    @abstractmethod
    def header_of(self, source: str, target: str) -> str:
        """Return the header that declares the functions for a pair."""

    def require_dtype(self, operation: ScriptedOperation, dtype: str) -> None:
        """Raise Unsupported for a dtype of which the headers have no type."""
        if dtype not in self.types:
            raise Unsupported(f"{self.name} {self.version} have no type of {dtype}")

    def require_parameters(self, operation: ScriptedOperation, case: Case) -> None:
        """Raise Unsupported for modes that are no argument, and values that it does not take."""
        others = tuple(each for each in case.modes if each[0] not in self.arguments)
        require_plain(replace(case, modes=others), self.operations["cast"])
        for name, value in case.modes:
            if name in self.arguments and value not in self.arguments[name][1]:
                raise Unsupported(f"{self.name} {self.version} have no {name} {value}")

    def require(self, operation: ScriptedOperation, case: Case) -> None:
        """Raise Unsupported as ``require_parameters`` does, or for a pair without a function."""
        super().require(operation, case)
        self.loop(case)

    def loop(self, case: Case) -> Loop:
        """Return the loop of a case; raise Unsupported if no function makes the conversion."""
        given = {
            self.arguments[name][0]: self.arguments[name][1][value]
            for name, value in case.modes
            if name in self.arguments
        }
        answer = self.expression(case.source, case.target, given)
        if answer is None:
            pair = " ".join([f"{case.source} to {case.target}", *given.values()])
            raise Unsupported(f"{self.name} {self.version} have no function for {pair}")
        included = self.header_of(case.source, case.target)
        before = f'#include <{included}>\n#include <cstdint>\nextern "C"\n'
        return Loop(self.types[case.source], self.types[case.target], answer, before)

    def road(self, case: Case) -> str:
        """Return the pair and the call that converts it; raise Unsupported as ``require`` does."""
        return f"{super().road(case)}: {self.loop(case).answer}"
