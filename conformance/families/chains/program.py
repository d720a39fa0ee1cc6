"""The request for chains of casts: several of them in one program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oracles.backend.replies import checked, malformed
from oracles.backend.requests import MethodRequest
from oracles.protocol import Bits
from specs.chains import Company
from specs.formats import format_named


@dataclass(frozen=True, eq=False)
class CastChains(MethodRequest):
    """Request chains of casts in one program, each of its own input.

    ``inputs`` are in the order of the chains. The reply holds the final answers of each chain.
    """

    company: Company
    inputs: Sequence[Bits]
    method = "chains"
    lacks = "makes no chains of casts"
    script = "reproduce_chains"

    @property
    def tensors(self) -> Mapping[str, Bits]:
        """The inputs, each under the index of its chain as text."""
        return {str(number): bits for number, bits in enumerate(self.inputs)}

    @property
    def made(self) -> Company:
        """The chains of casts, and the road on which the backend runs them."""
        return self.company

    def checked(self, answer: Any) -> list[Bits]:
        """Return the answers, values of a dict or items of a sequence, as a list in their order.

        Raise ``Unanswered`` if their number is wrong, or if one lacks the shape of its input or
        holds anything but patterns of its chain's target.
        """
        answers = [*answer.values()] if isinstance(answer, dict) else [*answer]
        if len(answers) != len(self.inputs):
            raise malformed(f"{len(answers)} answers to {len(self.inputs)} chains")
        pairs = zip(self.company.chains, self.inputs, answers, strict=True)
        return [checked(format_named(chain.target), *pair) for chain, *pair in pairs]
