"""The request to carry a tensor by an operation."""

from __future__ import annotations

from oracles.backend.replies import checked
from oracles.backend.requests import AboutTensor
from oracles.protocol import Bits
from specs.formats import format_named


class Carry(AboutTensor):
    """Carry one tensor by the operation of a case; the reply holds patterns in its shape."""

    method = "carry"
    lacks = "carries no values by other operations"
    script = "reproduce_carry"

    def checked(self, answer: object) -> Bits:
        """Return an answer that has the target's patterns in the tensor's shape.

        Raises ``Unanswered`` for any other.
        """
        return checked(format_named(self.case.target), self.bits, answer)
