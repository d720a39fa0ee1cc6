"""The worst case of a sweep: every answer is wrong, and no answer predicts another."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oracles.protocol import Bits, Unsupported
from specs.cases import Case

SEED = 20
LARGEST = 0x7BFF
"""The largest finite pattern of float16."""
STEP = 12_347
SPARE = 1 << 16


class Noise:
    """Answers float32 to float16 with random finite nonzero numbers of the wrong sign.

    So no answer is right, not even where any NaN is allowed, and the count of wrong ones is known.
    """

    name = "noise"
    version = "1"

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Return what the first call of a bound function returns."""
        return self.bind(case, bits)()

    def bind(self, case: Case, bits: Bits) -> Callable[[], Bits]:
        """Return a function that costs next to nothing: each call slices the same noise elsewhere.

        It expects all inputs of one call to have the same sign.
        """
        if (case.source, case.target) != ("float32", "float16"):
            raise Unsupported("the noise is made of float16")
        made = np.random.default_rng(SEED).integers(
            1, LARGEST, bits.size + SPARE, np.uint16, endpoint=True
        )
        of_sign = (made | np.uint16(0x8000), made)
        shift = 0

        def call() -> Bits:
            nonlocal shift
            shift = (shift + STEP) % SPARE
            return of_sign[int(bits[0]) >> 31][shift : shift + bits.size]

        return call
