"""The reference's answers to quantization: by the kernels, tensor by tensor."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from oracles.protocol import Bits
from oracles.reference.quantization_kernels import expect
from specs.cases import Case
from specs.quantization_cases import AXIS, BLOCK, FORM
from specs.quantization_ruling import Formula, formula


def quantize(case: Case, tensors: Mapping[str, Bits]) -> dict[str, Bits]:
    """Quantize or dequantize as the case's document says; zeros where it is open."""
    rules, x = formula(case), tensors["x"]
    if rules.operation == "dynamic-quantize":
        return _quantize_dynamically(rules, x)
    scale = spread(case, x.shape, tensors["scale"])
    zero = spread(case, x.shape, tensors["zero"]) if "zero" in tensors else None
    return {"y": expect(rules, x, scale, zero).answers(rules.target)}


def spread(case: Case, shape: tuple[int, ...], values: Bits) -> Bits:
    """Scales or zero points of a case, one for each element of a tensor of this shape."""
    form = case.mode.get(FORM, "tensor")
    if form == "tensor":
        return np.broadcast_to(values.reshape(()), shape)
    if form == "block":
        wide = np.repeat(values, int(case.mode[BLOCK]), axis=AXIS)
        return wide[:, : shape[AXIS]]
    lengths = [1] * len(shape)
    lengths[AXIS] = shape[AXIS]
    return np.broadcast_to(values.reshape(lengths), shape)


def _quantize_dynamically(rules: Formula, x: Bits) -> dict[str, Bits]:
    """The body of the operator's function, in float32: the scale, the zero point, the codes."""
    values = x.view(np.float32)
    largest, codes = np.float32(0), rules.target.max_code
    with np.errstate(all="ignore"):
        smallest = np.minimum(values.min(initial=largest), largest)
        width = np.maximum(values.max(initial=largest), largest) - smallest
        scale = np.float32(width / np.float32(codes))
        found = np.rint(np.clip(-smallest / scale, 0, codes))
    zero = np.full((), 0 if np.isnan(found) else int(found), rules.target.storage)
    patterns = np.full((), scale.view(np.uint32), rules.scale.storage)
    if not np.isfinite(values).all() or not 0 < scale < np.inf:
        return {"y": np.zeros(x.shape, rules.target.storage), "scale": patterns, "zero": zero}
    expected = expect(rules, x, np.broadcast_to(patterns, x.shape), np.broadcast_to(zero, x.shape))
    return {"y": expected.answers(rules.target), "scale": patterns, "zero": zero}
