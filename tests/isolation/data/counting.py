"""Adapters of uint8 that count their casts, write to their inputs, raise or die."""

from __future__ import annotations

import os
import signal
import sys

import numpy as np

from oracles.protocol import Bits, Unsupported
from specs.cases import Case


class Counts:
    """Answers with the number of its casts."""

    name = "counts"
    version = "1"

    def __init__(self) -> None:
        self.casts = 0

    def cast(self, case: Case, bits: Bits) -> Bits:
        self.casts += 1
        return np.full(bits.shape, self.casts, np.uint8)


class Counting(Counts):
    """Counts bitcasts and refusals as well, and refuses the casts of one version."""

    def road(self, case: Case) -> str:
        if case.version == "24":
            raise Unsupported("no opset 24")
        return f"{case.source}->{case.target}"

    def cast(self, case: Case, bits: Bits) -> Bits:
        answer = super().cast(case, bits)
        self.road(case)
        return answer

    def bitcast(self, case: Case, bits: Bits) -> Bits:
        return self.cast(case, bits)


class RefusesToBeSwept(Counts):
    """Raises Unsupported from ``road`` for every case, but answers the case."""

    def road(self, case: Case) -> str:
        raise Unsupported("nothing is swept")


class SharesBitcasts(Counting):
    """Has one road for all bitcasts but those of one document."""

    def bitcast_road(self, case: Case) -> str:
        if case.document == "torch-view":
            raise RuntimeError("not known")
        return f"{case.source}->{case.target}"


class ExitsOnItsRoads(Counts):
    """Tries to exit, or to interrupt, when it is asked for a road."""

    def road(self, case: Case) -> str:
        sys.exit(3)

    def bitcast_road(self, case: Case) -> str:
        raise KeyboardInterrupt

    def bitcast(self, case: Case, bits: Bits) -> Bits:
        return self.cast(case, bits)

    def reproduce(self, case: Case, bits: Bits) -> str:
        sys.exit(3)


class DiesOnItsRoads(Counts):
    """Ends its process when it is asked for a road."""

    def road(self, case: Case) -> str:
        os._exit(3)


class Widens(Counts):
    """Answers its first cast in eight bits, all others in sixteen."""

    def cast(self, case: Case, bits: Bits) -> Bits:
        answer = super().cast(case, bits)
        return answer.astype(np.uint8 if self.casts == 1 else np.uint16)


class WritesToInputs(Counts):
    """Keeps the bits, and leaves zeros in its input."""

    def cast(self, case: Case, bits: Bits) -> Bits:
        answer = bits.copy()
        bits[...] = 0
        return answer


class RaisesAndDies(Counts):
    """Keeps the bits; raises an error for 100, dies of 200."""

    def cast(self, case: Case, bits: Bits) -> Bits:
        if (bits == 200).any():
            os.kill(os.getpid(), signal.SIGSEGV)
        if (bits == 100).any():
            raise ValueError("a hundred")
        return bits.copy()
