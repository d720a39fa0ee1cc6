"""The requests to a backend: each kind is a value that describes itself.

A judge makes requests and gets replies. It does not know how a request travels, whether others
travel with it, or how a lost one is repeated: the client decides that. The client in turn knows
only the few kinds that it sends in a special way. A request names the adapter's method that answers
it, and the tensors that the method gets, and checks the answer. So a new kind of question brings
its request along, and the code between the judge and the adapter stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from oracles.backend.replies import checked, malformed
from oracles.memory_layouts import TensorBatch
from oracles.protocol import Bits, Returned, Tensor
from specs.calls import Call
from specs.cases import Case
from specs.formats import format_named

if TYPE_CHECKING:
    from specs.chains import Company


@dataclass(frozen=True, eq=False)
class MethodRequest:
    """A call of one method of an adapter for a case.

    The method gets the case, then the call if there is one, then the tensors: a single one without
    a name as it is, others by name. A backend without the ``method`` declines with the text
    ``lacks``. ``script`` names the method that writes a script which shows the answer.
    """

    case: Case
    """The case of the document itself, also for the judge of a case with house rules."""
    method: ClassVar[str]
    lacks: ClassVar[str] = ""
    script: ClassVar[str] = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "case", self.case.asked)

    @property
    def tensors(self) -> Mapping[str, Bits]:
        """The tensors that the method gets; if there is only one, it may have no name."""
        return {}

    @property
    def made(self) -> Call | Company | None:
        """The call that the method makes, or the chains; None if it makes neither."""
        return None

    def checked(self, answer: Any) -> Any:
        """Return an answer that is well-formed; raise ``Unanswered`` for any other."""
        return answer


@dataclass(frozen=True, eq=False)
class AboutTensor(MethodRequest):
    """A request about one tensor, ``bits``."""

    bits: Bits

    @property
    def tensors(self) -> Mapping[str, Bits]:
        """The tensor, without a name."""
        return {"": self.bits}


class Cast(AboutTensor):
    """Cast one tensor, in its own memory layout. The reply holds patterns in the same shape."""

    method = "cast"
    script = "reproduce"

    def checked(self, answer: Any) -> Bits:
        """Require patterns of the target, in the tensor's shape."""
        return checked(format_named(self.case.target), self.bits, answer)


@dataclass(frozen=True, eq=False)
class MakeCall(MethodRequest):
    """Make a call on a receiver whose members hold these bits. The reply holds a ``Returned``.

    A result that ``is_kept`` is read only after the next calls in its message, which shows whether
    they write to its memory. A request that travels alone has no next call.
    """

    call: Call
    members: Mapping[str, Bits]
    is_kept: bool = False
    method = "call"
    lacks = "makes no calls of {document}"
    script = "reproduce_call"

    @property
    def tensors(self) -> Mapping[str, Bits]:
        """The members of the receiver."""
        return self.members

    @property
    def made(self) -> Call:
        """The call."""
        return self.call

    def checked(self, answer: Any) -> Returned:
        """Require a ``Returned``."""
        if not isinstance(answer, Returned):
            raise malformed(f"the answer is {type(answer).__name__}, not a Returned")
        return answer


@dataclass(frozen=True, eq=False)
class CastBatch(MethodRequest):
    """Cast many tensors, each by a call of its own.

    The reply holds a ``BatchReply``. If the request ``is_shared``, cases on one road share one
    answer to equal tensors: for tensors that are too costly to be cast once more for every case.
    """

    batch: TensorBatch
    is_shared: bool = False
    method = "casts"

    @property
    def tensors(self) -> Mapping[str, Bits]:
        """The elements of all tensors, in a row."""
        return {"": self.batch.elements}


@dataclass(frozen=True, eq=False)
class CastAtOnce(MethodRequest):
    """Cast many tensors from two threads at the same time. The reply holds a list of answers.

    The threads take turns: every second tensor is the other thread's, which casts it as the case
    ``beside`` says, if there is one.
    """

    each: Sequence[Bits]
    beside: Case | None = None
    method = "cast_at_once"
    lacks = "is asked by one thread only"


class WriteContainer(AboutTensor):
    """Write one tensor into a container, in its own memory layout. The reply holds the bytes."""

    method = "write_container"
    lacks = "writes no containers"

    def checked(self, answer: Any) -> Bits:
        """Require a row of bytes."""
        if not isinstance(answer, np.ndarray) or answer.dtype != np.uint8 or answer.ndim != 1:
            raise malformed("the answer is no row of bytes")
        return answer


class ReadContainer(AboutTensor):
    """Read the tensor in a container's bytes. The reply holds a ``Tensor``."""

    method = "read_container"
    lacks = "reads no containers"

    def checked(self, answer: Any) -> Tensor:
        """Require a tensor."""
        if not isinstance(answer, Tensor):
            raise malformed(f"the answer is {type(answer).__name__}, not a Tensor")
        return answer


class WriteStatements(MethodRequest):
    """Write the statements of a script that writes a container. The reply holds the text."""

    method = "reproduce_write"
    lacks = "writes no script of this"


class ReadStatements(MethodRequest):
    """Write the statements of a script that reads a container. The reply holds the text."""

    method = "reproduce_read"
    lacks = "writes no script of this"


@dataclass(frozen=True, eq=False)
class Script:
    """Write a script that shows the answer to another request.

    The text is empty if the backend has no method for such scripts.
    """

    shown: MethodRequest
    lacks: ClassVar[str] = "writes no script of this"

    @property
    def case(self) -> Case:
        """The case of the request that is shown."""
        return self.shown.case

    @property
    def method(self) -> str:
        """The method that writes the script."""
        return self.shown.script

    @property
    def tensors(self) -> Mapping[str, Bits]:
        """The tensors of the request that is shown."""
        return self.shown.tensors

    @property
    def made(self) -> Call | Company | None:
        """The call of the request that is shown, or its chains."""
        return self.shown.made


class Road(MethodRequest):
    """Name the road of a case; the name is empty, or declined, if the backend declines the case."""

    method = "road"


Request = MethodRequest | Script
