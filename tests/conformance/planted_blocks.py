"""Libraries of blocks, written here once more, with one fault each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from oracles.protocol import Bits
from specs.cases import Case
from tests.reference import block_model as model

Answer = Callable[[Case, Mapping[str, Bits]], Mapping[str, Bits]]


def library(
    rule: str | None = None,
    largest: Callable[[Any], Any] = lambda blocks: blocks,
    scales: Callable[[Any], Any] = lambda codes: codes,
    codes: Callable[[Any], Any] = lambda codes: codes,
    mode: str = "even",
) -> Answer:
    """A library that quantizes by the model, with hooks for faults.

    ``largest`` changes the patterns that a scale is made of, ``scales`` and ``codes`` the results;
    ``mode`` is how elements are rounded. Blocks of zeros, NaNs and infinities get zeros.
    """

    def quantize(case: Case, tensors: Mapping[str, Bits]) -> Mapping[str, Bits]:
        x, size = tensors["x"], int(case.mode["block"])
        missing = -x.shape[-1] % size
        padded = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, missing)])
        blocks = padded.reshape(-1, size)
        made = model.quantize(
            case.source,
            case.target,
            rule or case.mode["rule"],
            blocks,
            tensors.get("global"),
            largest,
            mode,
        )
        front = x.shape[:-1]
        found = codes(made.codes).reshape(*front, -1)[..., : x.shape[-1]]
        return {
            "y": np.ascontiguousarray(found).astype(np.uint8),
            "scale": scales(made.scales).reshape(*front, -1).astype(np.uint8),
        }

    return quantize
