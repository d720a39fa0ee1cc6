"""A call as a document writes it: on what, which method, with which arguments; as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FORM, MEMBER, SHAPE = "form", "member", "shape"
"""The parts of a mode that name a call's form, the member of a layer, and a bitcast's shape."""
ArgumentKind = Literal[
    "dtype-name", "dtype", "device-name", "device", "tensor", "gpu-tensor", "memory-format",
    "input", "text", "word",
]  # fmt: skip
ReceiverKind = Literal["tensor", "sharded-tensor", "layer", "linear", "net-builder", "base-builder"]
MemberKind = Literal["tensor", "parameter", "buffer"]
Device = Literal["cpu", "gpu"]
ArgumentWord = Literal["none", "true", "false", "zero", "number", "list", "ten", "bytes"]


@dataclass(frozen=True)
class Argument:
    """One argument: a dtype or device by name or as an object, a tensor of a dtype, or a word.

    Names and texts are passed as they stand (``"float64"``, also ``"flaot64"``); an object or a
    tensor is what the framework has under the name. An ``input`` is the builder's variable for the
    receiver's tensor. The words are in ``ArgumentWord``.
    """

    kind: ArgumentKind
    value: str


@dataclass(frozen=True)
class Member:
    """One tensor of a receiver by its dotted name, which is empty for a tensor itself."""

    name: str
    kind: MemberKind
    dtype: str


@dataclass(frozen=True)
class Call:
    """What is called: ``receiver.method(*args, **kwargs)``; without a method nothing is called.

    A ``linear`` receiver is the framework's own Linear layer with its ``weight`` and ``bias``.
    """

    receiver: ReceiverKind
    members: tuple[Member, ...]
    method: str | None
    args: tuple[Argument, ...] = ()
    kwargs: tuple[tuple[str, Argument], ...] = ()
    device: str = "cpu"
    """Where the receiver is before the call."""
    inputs: tuple[str, ...] = ()
    """On inputs of these dtypes, all ones, a layer is run after the call, one after another."""
