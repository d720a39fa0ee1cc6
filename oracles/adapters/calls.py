"""The calls that a document writes, as statements that adapters execute and scripts show."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from oracles.adapters.refusals import first_line
from oracles.adapters.script_text import bits_statement
from oracles.adapters.scripted import function_of
from oracles.protocol import Bits, Tensor, Unsupported
from specs.cases import MEMBER, Argument, ArgumentKind, Call, Case, Member
from specs.formats import format_named

WORD_VALUES: Mapping[str, object] = {
    "none": None,
    "true": True,
    "false": False,
    "zero": 0,
    "number": 3.5,
    "list": [],
    "ten": [10],
    "bytes": b"float32",
}
"""The Python values of ``specs.cases.ArgumentWord``."""

ArgumentTexts = Mapping[ArgumentKind, Callable[[str], str]]
"""How a framework writes each kind of argument, from the argument's value."""

PLAIN_ARGUMENTS: ArgumentTexts = {
    "dtype-name": repr,
    "device-name": repr,
    "text": repr,
    "word": lambda word: repr(WORD_VALUES[word]),
}
"""How every framework writes the arguments that are no objects of its own."""


def arguments_text(call: Call, texts: ArgumentTexts, refusal: str) -> str:
    """Return a call's arguments as Python text, separated by commas.

    Raises Unsupported for a kind of argument that ``texts`` lacks. The message is ``refusal``, a
    text with a place for the kind.
    """

    def written(argument: Argument) -> str:
        if argument.kind not in texts:
            raise Unsupported(refusal.format(argument.kind))
        return texts[argument.kind](argument.value)

    keywords = (f"{name}={written(each)}" for name, each in call.kwargs)
    return ", ".join([*map(written, call.args), *keywords])


@dataclass(frozen=True)
class CallSyntax:
    """How a framework writes the parts of a call, each as a Python expression.

    ``arguments`` adds to ``PLAIN_ARGUMENTS``. ``tensor`` takes a dtype and makes a tensor of it
    from the array ``bits``; ``ones`` takes a dtype and makes a tensor of ones. ``module`` makes an
    empty layer. ``parameter`` takes a dtype and the expression of a tensor, and makes a parameter.
    """

    framework: str
    arguments: ArgumentTexts
    tensor: Callable[[str], str]
    ones: Callable[[str], str]
    module: str
    parameter: Callable[[str, str], str]

    def invoke(
        self,
        names: Mapping[str, Any],
        call: Call,
        receiver: Any,
        require: Callable[[Argument], None],
    ) -> Any:
        """Call a receiver's method with the call's arguments, and return the result.

        The arguments' expressions use the variables ``names``. Raises Unsupported if the receiver
        has no such method or the framework no such argument, or as ``require`` does for an
        argument.
        """
        if not hasattr(receiver, str(call.method)):
            raise Unsupported(f"{self.framework}'s {call.receiver} has no method {call.method}")
        for argument in (*call.args, *(each for _, each in call.kwargs)):
            require(argument)
        text = self._call("receiver", call, f"{self.framework} has no argument of the kind `{{}}`")
        return function_of({**names}, "receiver", "", text)(receiver)

    def layer(
        self, names: Mapping[str, Any], call: Call, tensors: Mapping[str, Any], module: str = ""
    ) -> Any:
        """Return a layer whose members are ``tensors``, by the names of the call's members.

        ``module`` is the expression that makes the layer; without it the layer is empty at first.
        The expressions use the variables ``names``.
        """
        texts = {name: f"tensors[{name!r}]" for name in tensors}
        statements = "\n".join(self._layer(call.members, texts, module or self.module))
        return function_of({**names}, "tensors", statements, "layer")(tensors)

    def call_statements(self, case: Case, call: Call, bits: Mapping[str, Bits]) -> str:
        """Return the statements that make a case's call and print the result.

        The receiver holds ``bits``; of a layer, only the member that the case's mode names does,
        and the others hold ones. Raises Unsupported for a receiver or an argument that scripts
        cannot write, and for a case without a method.
        """
        if call.receiver not in ("tensor", "layer") or call.device != "cpu" or not call.method:
            raise Unsupported(f"{self.framework}'s scripts make no {call.receiver} of this kind")
        asked = case.mode.get(MEMBER, "")
        lines = [bits_statement(case.source, bits[asked]), f"x = {self.tensor(case.source)}"]
        receiver = "x"
        if call.receiver == "layer":
            receiver = "layer"
            texts = {each.name: self.ones(each.dtype) for each in call.members} | {asked: "x"}
            lines += self._layer(call.members, texts, self.module)
        call_text = self._call(receiver, call, f"{self.framework}'s scripts write no `{{}}`")
        answer = f"result.{asked}" if asked else "result"
        lines.append(f"result = {call_text}")
        lines.append(f'print("the receiver itself:", result is {receiver})')
        lines.append(f'print("its memory:", {answer}.data_ptr() == x.data_ptr())')
        lines.append(f"print({answer}.dtype, {answer})")
        return "\n".join(lines) + "\n"

    def _call(self, receiver: str, call: Call, refusal: str) -> str:
        texts: ArgumentTexts = {**PLAIN_ARGUMENTS, "tensor": self.ones, **self.arguments}
        return f"{receiver}.{call.method}({arguments_text(call, texts, refusal)})"

    def _layer(
        self, members: tuple[Member, ...], tensors: Mapping[str, str], module: str
    ) -> Iterator[str]:
        """Yield the statements that build a layer from the expressions of its tensors.

        A dotted name is a member of a nested layer. ``module`` is the expression of the outermost
        layer.
        """
        yield f"layer = {module}"
        known = {"layer"}
        for member in members:
            *path, name = f"layer.{member.name}".split(".")
            for length in range(2, len(path) + 1):
                owner = ".".join(path[:length])
                if owner not in known:
                    known.add(owner)
                    yield f"{owner} = {self.module}"
            owner, tensor = ".".join(path), tensors[member.name]
            if member.kind == "buffer":
                yield f'{owner}.register_buffer("{name}", {tensor})'
            elif member.kind == "parameter":
                yield f"{owner}.{name} = {self.parameter(member.dtype, tensor)}"
            else:
                yield f"{owner}.{name} = {tensor}"


def layer_output(
    layer: Callable[[Any], Any], x: Any, read: Callable[[Any], Tensor]
) -> Tensor | str:
    """Return the output of a layer for an input, or an error in one line.

    ``read`` makes a ``Tensor`` of the output; the error may be its own.
    """
    try:
        return read(layer(x))
    except Exception as error:
        return f"{type(error).__name__}: {first_line(error)}"


def ones(dtype: str, shape: tuple[int, ...]) -> Bits:
    """Return an array of this shape in which each pattern is that of one."""
    entry = format_named(dtype)
    code = format_named(entry.entry.part or dtype).one_code
    storage = np.dtype(entry.storage)
    one = np.frombuffer(code.to_bytes(storage.itemsize, "little"), storage)[0]
    return np.full(shape, one)
