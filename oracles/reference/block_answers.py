"""The reference's own answers to cases of blocks; zeros where the document leaves them open."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from oracles.protocol import Bits
from oracles.reference.block_kernels import codes, products, scales
from specs.block_ruling import block_ruling
from specs.cases import Case


def answer_blocks(case: Case, tensors: Mapping[str, Bits]) -> dict[str, Bits]:
    """Quantize or dequantize blocks along the last dimension of ``x``."""
    ruling = block_ruling(case)
    whole = float(tensors["global"].view(np.float32)) if "global" in tensors else 1.0
    if ruling.is_decoding:
        return {"y": products(ruling, tensors["x"], tensors["scale"], whole).codes}
    scale = scales(ruling, tensors["x"], whole).codes
    return {"y": codes(ruling, tensors["x"], scale, whole).codes, "scale": scale}
