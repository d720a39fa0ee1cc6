"""The statements of reproduction scripts that make a call; torch's and paddle's differ in names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from oracles.adapters.calls import WORD_VALUES
from oracles.adapters.script_text import bits_statement
from oracles.protocol import Bits, Unsupported
from specs.calls import MEMBER, Argument, ArgumentKind, Call, Member
from specs.cases import Case


@dataclass(frozen=True)
class CallSyntax:
    """How a framework writes the parts of a call, each as a Python expression.

    ``tensor`` makes a tensor of a dtype from the array ``bits``, and ``ones`` a tensor of ones.
    ``module`` makes an empty layer, and ``parameter`` a parameter from a tensor's expression.
    """

    framework: str
    arguments: Mapping[ArgumentKind, Callable[[str], str]]
    tensor: Callable[[str], str]
    ones: Callable[[str], str]
    module: str
    parameter: Callable[[str, str], str]

    def call_statements(self, case: Case, call: Call, bits: Mapping[str, Bits]) -> str:
        """Return the statements that make a case's call on a receiver that holds these bits.

        If the receiver has several members, only the one that the case asks about holds the bits.
        Raises Unsupported for a receiver or an argument that scripts cannot write.
        """
        if call.receiver not in ("tensor", "layer") or call.device != "cpu" or not call.method:
            raise Unsupported(f"{self.framework}'s scripts make no {call.receiver} of this kind")
        asked = case.mode.get(MEMBER, "")
        lines = [bits_statement(case.source, bits[asked]), f"x = {self.tensor(case.source)}"]
        receiver = "x"
        if call.receiver == "layer":
            receiver = "layer"
            lines += self._layer(call.members, asked)
        arguments = [self._argument(each) for each in call.args]
        arguments += [f"{name}={self._argument(each)}" for name, each in call.kwargs]
        lines.append(f"result = {receiver}.{call.method}({', '.join(arguments)})")
        answer = f"result.{asked}" if asked else "result"
        lines.append(f'print("the receiver itself:", result is {receiver})')
        lines.append(f'print("its memory:", {answer}.data_ptr() == x.data_ptr())')
        lines.append(f"print({answer}.dtype, {answer})")
        return "\n".join(lines) + "\n"

    def _argument(self, argument: Argument) -> str:
        match argument.kind:
            case "dtype-name" | "device-name" | "text":
                return repr(argument.value)
            case "word":
                return repr(WORD_VALUES[argument.value])
            case "tensor":
                return self.ones(argument.value)
        write = self.arguments.get(argument.kind)
        if write is None:
            raise Unsupported(f"{self.framework}'s scripts write no `{argument.kind}`")
        return write(argument.value)

    def _layer(self, members: tuple[Member, ...], asked: str) -> Iterator[str]:
        """Yield the statements that build a layer; a dotted name is a member of a nested layer."""
        yield f"layer = {self.module}"
        known = {"layer"}
        for member in members:
            *path, name = f"layer.{member.name}".split(".")
            for length in range(2, len(path) + 1):
                owner = ".".join(path[:length])
                if owner not in known:
                    known.add(owner)
                    yield f"{owner} = {self.module}"
            owner, tensor = ".".join(path), "x" if member.name == asked else self.ones(member.dtype)
            if member.kind == "buffer":
                yield f'{owner}.register_buffer("{name}", {tensor})'
            else:
                yield f"{owner}.{name} = {self.parameter(member.dtype, tensor)}"
