"""Libraries of blocks with one fault each, made of the model of integers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from lab import block_model as model
from oracles.protocol import Bits
from specs.cases import Case

Quantize = Callable[[Case, Mapping[str, Bits]], Mapping[str, Bits]]
Change = Callable[[Any], Any]
ONE = 0x3F800000


def kept(part: Any) -> Any:
    """Return a part unchanged, as a library without a fault does."""
    return part


def library(
    rule: str | None = None,
    *,
    largest: Change = kept,
    scale: Change = kept,
    used: Change = kept,
    elements: Change = kept,
    codes: Change = kept,
    mode: str = "even",
    beyond: int | None = None,
) -> Quantize:
    """Return a library that quantizes by ``rule``, or by the rule of the case if that is None.

    Each hook plants a fault in all blocks: ``largest`` changes the words that a scale is made of,
    ``scale`` the scales returned, ``used`` those that elements are divided by, ``elements`` the
    words that become codes, and ``codes`` the codes. ``mode`` is how elements are rounded, and
    ``beyond`` the code of those beyond the largest.
    """

    def quantize(case: Case, tensors: Mapping[str, Bits]) -> Mapping[str, Bits]:
        x, size = tensors["x"], int(case.mode["block"])
        missing = -x.shape[-1] % size
        words = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, missing)]).reshape(-1, size)
        whole = None
        if case.document == "nvfp4-blocks":
            whole = int(tensors.get("global", np.array(ONE)))
        pair = case.source, case.target
        scales = scale(model.scales(*pair, rule or case.mode["rule"], largest(words), whole))
        found = codes(model.codes(*pair, elements(words), used(scales), whole, mode, beyond))
        rows = found.reshape(*x.shape[:-1], -1)[..., : x.shape[-1]]
        return {
            "y": np.ascontiguousarray(rows).astype(np.uint8),
            "scale": scales.reshape(*x.shape[:-1], -1).astype(np.uint8),
        }

    return quantize


def as_bfloat16(words: Any) -> Any:
    """Round words of float32 to bfloat16; NaNs and infinities stay as they are."""
    wide = words.astype(np.uint32)
    rounded = (wide + np.uint32(0x7FFF) + (wide >> 16 & 1)) & np.uint32(0xFFFF0000)
    return np.where(wide & 0x7F800000 == 0x7F800000, wide, rounded)
