"""A backend that copies tensors; subnormal numbers of one dtype become zeros."""

from __future__ import annotations

from oracles.protocol import Bits, Unsupported
from specs.cases import Case


class LosesSubnormals:
    """It offers copies alone."""

    name, version = "loses-subnormals", "1"
    claims = ("plain-copy",)

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Decline every cast."""
        raise Unsupported("it casts nothing")

    def copy(self, case: Case, bits: Bits) -> Bits:
        """Copy a tensor."""
        answer = bits.copy()
        if case.source == "float32":
            answer[(bits & 0x7F800000) == 0] &= 0x80000000
        return answer
