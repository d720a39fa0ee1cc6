"""A call as plain data: its receiver, its method and its arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FORM, MEMBER, SHAPE = "form", "member", "shape"
"""The keys of a mode that name a call's form, the member of a layer, and the shape of a tensor."""
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

    Names and texts are passed unchanged (``"float64"``, but also ``"flaot64"``). For an object or a
    tensor, ``value`` is the name of its dtype or device in the framework. An ``input`` is the
    builder's variable for the receiver's tensor. ``ArgumentWord`` lists the words.
    """

    kind: ArgumentKind
    value: str


@dataclass(frozen=True)
class Member:
    """One tensor of a receiver by its dotted name, which is empty if the receiver is a tensor."""

    name: str
    kind: MemberKind
    dtype: str


@dataclass(frozen=True)
class Call:
    """The call ``receiver.method(*args, **kwargs)``; if ``method`` is None, nothing is called.

    A ``linear`` receiver is the framework's own Linear layer with its ``weight`` and ``bias``.
    """

    receiver: ReceiverKind
    members: tuple[Member, ...]
    method: str | None
    args: tuple[Argument, ...] = ()
    kwargs: tuple[tuple[str, Argument], ...] = ()
    device: str = "cpu"
    """The receiver's device before the call."""
    inputs: tuple[str, ...] = ()
    """The dtypes of tensors of ones, on which a layer is run one by one after the call."""
