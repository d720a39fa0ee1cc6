"""The backend ``reference``: it answers the questions of every family by the family's kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from conformance.families import tensor_of, tensors_of
from oracles.protocol import Bits, Returned
from oracles.reference.reference_oracle import VARIANTS, Casts
from specs.cases import Call, Case

if TYPE_CHECKING:
    from specs.chains import Company

__all__ = ["VARIANTS", "Reference"]


class Reference(Casts):
    """Answers cases by kernels: what is open gets an arbitrary answer, and refusals are raised."""

    chain_roads = ("steps",)

    def chains(self, case: Case, company: Company, bits: Mapping[str, Bits]) -> list[Bits]:
        """Return the final answers of each chain, computed cast by cast: nothing is optimized here.

        ``bits`` has the inputs of each chain by its index, as a text such as ``0``.
        """
        ends = []
        for number, chain in enumerate(company.chains):
            end = bits[str(number)]
            for step in chain.steps:
                end = self.cast(step, end)
            ends.append(end)
        return ends

    def call(self, case: Case, call: Call, bits: Mapping[str, Bits]) -> Returned:
        """Make a call as its document defines it; a layer is returned itself, changed.

        Raises RefusedError if the arguments match no signature of the method, and RejectedError if
        the document requires an error for another reason.
        """
        from conformance.families.call.dispatch import make_call  # Few documents make calls.

        return make_call(self.cast, case, call, bits)

    def carry(self, case: Case, bits: Bits) -> Bits:
        """Return the tensor that a document's rules give for a carrier, as for a cast."""
        return self.cast(case, bits)

    def bitcast(self, case: Case, bits: Bits) -> Bits:
        """Return a tensor's bits in the shape that the document gives; zeros if the case is open.

        Raise RejectedError if the document wants an error.
        """
        shaped = tensor_of(case)
        assert shaped is not None
        return shaped.answer(case, bits)

    def quantize(self, case: Case, tensors: Mapping[str, Bits]) -> Mapping[str, Bits]:
        """Return the results of a case by name, for its tensors by name."""
        return tensors_of(case).answer(case, tensors)
