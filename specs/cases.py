"""A case, its id, and the call that a case of calls stands for, as plain data.

An id has the document, version, source and target, and one segment per mode. A mode may be the
shape of a tensor, which has a text, too.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Literal

Shape = tuple[int, ...]

SCALAR = "scalar"
"""The text of the shape that has no dimensions."""
SHAPES_KEPT = 1024
FORM, MEMBER, SHAPE = "form", "member", "shape"
"""The keys of a mode that name a call's form, the member of a layer, and the shape of a tensor."""
CARRIER = "carrier"
"""The mode that names the operation by which a case carries values, such as a product with one."""
JOINT = "+"
"""Joins the name of a document and that of house rules, as in ``onnx-cast+java``."""


@dataclass(frozen=True)
class Case:
    """A pair of dtypes in a version of a document, in a mode.

    ``example`` is the name of a worked example of the page, or None.
    """

    document: str
    version: str
    source: str
    target: str
    modes: tuple[tuple[str, str], ...] = ()
    example: str | None = field(default=None)

    @property
    def mode(self) -> dict[str, str]:
        """The values of all modes by name: of parameters, and of a form, a member or a shape."""
        return dict(self.modes)

    @cached_property
    def id(self) -> str:
        """The path that identifies the case in options, results and reports."""
        segments = [f"{self.document}:{self.version}", self.source, self.target]
        segments += [f"{name}:{value}" for name, value in self.modes]
        if self.example is not None:
            segments.append(f"example:{self.example}")
        return "/".join(segments)

    @property
    def asked(self) -> Case:
        """The case without house rules, which is the one that a backend answers."""
        page, joint, _ = self.document.partition(JOINT)
        return replace(self, document=page) if joint else self

    def __str__(self) -> str:
        return self.id


def shape_of(case: Case) -> Shape:
    """Return the shape of a case's input tensor; raise KeyError if the case has no shape."""
    return parse_shape(case.mode[SHAPE])


@lru_cache(SHAPES_KEPT)
def parse_shape(text: str) -> Shape:
    """Parse a shape of a case id: `scalar`, `0`, `2x3`; raise ValueError if a part is not whole."""
    return () if text == SCALAR else tuple(map(int, text.split("x")))


def format_shape(shape: Shape) -> str:
    """Format a shape as a case id writes it; the inverse of ``parse_shape``."""
    return "x".join(map(str, shape)) if shape else SCALAR


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
