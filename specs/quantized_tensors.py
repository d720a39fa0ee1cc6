"""The tensors of quantization and of blocks: the dtypes of what an operation takes and returns.

They have names, and a case has the dtypes: `x` and `y` are its source and target, a zero point is
a code, and a scale has the dtype that the case or its document gives.
"""

from __future__ import annotations

from specs.block_ruling import block_ruling
from specs.cases import Case
from specs.operations import is_of_blocks, operation_of
from specs.quantization_ruling import formula

X, SCALE, ZERO, GLOBAL, Y = "x", "scale", "zero", "global", "y"
GLOBAL_DTYPE = "float32"
"""The dtype of global scales, in every document that has them."""


def operands_of(case: Case) -> dict[str, str]:
    """The tensors that a case may take, with their dtypes; a zero point may be left out."""
    taken = {X: case.source}
    if is_of_blocks(case):
        ruling = block_ruling(case)
        if ruling.is_decoding:
            taken[SCALE] = ruling.scale.name
        return taken | ({GLOBAL: GLOBAL_DTYPE} if ruling.has_global else {})
    match operation_of(case):
        case "quantize":
            return taken | {SCALE: formula(case).scale.name, ZERO: case.target}
        case "dequantize":
            return taken | {SCALE: formula(case).scale.name, ZERO: case.source}
    return taken


def results_of(case: Case) -> dict[str, str]:
    """The tensors that a case returns, with their dtypes."""
    returned = {Y: case.target}
    match operation_of(case):
        case "block-quantize":
            return {SCALE: block_ruling(case).scale.name} | returned
        case "dynamic-quantize":
            return returned | {SCALE: formula(case).scale.name, ZERO: case.target}
    return returned
