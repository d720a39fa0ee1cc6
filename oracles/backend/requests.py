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

from oracles.backend.replies import checked, malformed
from oracles.memory_layouts import TensorBatch
from oracles.protocol import Bits, Returned
from specs.cases import Call, Case
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
    """The case of the document itself, also if a case with house rules is judged."""
    method: ClassVar[str]
    lacks: ClassVar[str] = ""
    script: ClassVar[str] = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "case", self.case.asked)

    @property
    def tensors(self) -> Mapping[str, Bits]:
        """The tensors that the method gets, by name; a single one may have the empty name."""
        return {}

    @property
    def made(self) -> Call | Company | None:
        """The call, or the company of chains, that the method gets; None if it gets neither."""
        return None

    def checked(self, answer: Any) -> Any:
        """Return the answer; subclasses raise ``Unanswered`` for one that is malformed."""
        return answer


@dataclass(frozen=True, eq=False)
class AboutTensor(MethodRequest):
    """A request about one tensor, ``bits``."""

    bits: Bits

    @property
    def tensors(self) -> Mapping[str, Bits]:
        """The tensor, under the empty name."""
        return {"": self.bits}


class Cast(AboutTensor):
    """Cast one tensor, in its own memory layout. The reply holds patterns in the tensor's shape."""

    method = "cast"
    script = "reproduce"

    def checked(self, answer: Any) -> Bits:
        """Return an answer that has the target's patterns in the tensor's shape.

        Raises ``Unanswered`` for any other.
        """
        return checked(format_named(self.case.target), self.bits, answer)


@dataclass(frozen=True, eq=False)
class MakeCall(MethodRequest):
    """Make a call on a receiver whose members hold these bits. The reply holds a ``Returned``.

    If the request ``is_kept``, the result's bits are read only after later calls of the same
    message: this shows whether those write to its memory. A request that travels alone is read at
    once.
    """

    call: Call
    members: Mapping[str, Bits]
    is_kept: bool = False
    method = "call"
    lacks = "makes no calls of {document}"
    script = "reproduce_call"

    @property
    def tensors(self) -> Mapping[str, Bits]:
        """The bits of the receiver's members, by name."""
        return self.members

    @property
    def made(self) -> Call:
        """The call."""
        return self.call

    def checked(self, answer: Any) -> Returned:
        """Return an answer that is a ``Returned``; raise ``Unanswered`` for any other."""
        if not isinstance(answer, Returned):
            raise malformed(f"the answer is {type(answer).__name__}, not a Returned")
        return answer


@dataclass(frozen=True, eq=False)
class CastBatch(MethodRequest):
    """Cast many tensors, each by a call of its own. The reply holds a ``BatchReply``.

    If the request ``is_shared``, cases on one road get one answer to equal tensors: this saves time
    for large tensors.
    """

    batch: TensorBatch
    is_shared: bool = False
    method = "casts"

    @property
    def tensors(self) -> Mapping[str, Bits]:
        """The elements of all tensors in one row, under the empty name."""
        return {"": self.batch.elements}


@dataclass(frozen=True, eq=False)
class CastAtOnce(MethodRequest):
    """Cast the tensors ``each`` in two threads at once. The reply holds the answers in order.

    The second thread casts every second tensor, as the case ``beside`` if there is one.
    """

    each: Sequence[Bits]
    beside: Case | None = None
    method = "cast_at_once"
    lacks = "is asked by one thread only"


@dataclass(frozen=True, eq=False)
class Script:
    """Write a script that shows the answer to the request ``shown``. The reply holds the text.

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
        """The call, or the company of chains, of the request that is shown."""
        return self.shown.made


class Road(MethodRequest):
    """Name the road of a case. The reply holds the name.

    If the backend declines the case, the name is empty, or the reply is ``Declined``.
    """

    method = "road"


Request = MethodRequest | Script
