"""The array API standard's carriers: operations that should move or convert elements exactly."""

from __future__ import annotations

from collections.abc import Mapping

DOCUMENT = "array-api-carriers"

NAMESPACE = "xp."
"""The standard's namespace, as the expressions write it."""

CARRIERS: Mapping[str, str] = {
    # The operation moves elements.
    "concatenate": "xp.concat([x, x])[: x.shape[0]]",
    "stack": "xp.stack([x, x])[0, :]",
    "where": "xp.where(xp.ones(x.shape, dtype=xp.bool), x, xp.zeros_like(x))",
    "take": "xp.take(x, xp.arange(x.shape[0]))",
    "take-along-axis": "xp.take_along_axis(x, xp.arange(x.shape[0]))",
    "select-items": "x[xp.ones(x.shape, dtype=xp.bool)]",
    "repeat": "xp.repeat(x, 2)[::2]",
    "tile": "xp.tile(x, (2,))[: x.shape[0]]",
    "roll": "xp.roll(xp.roll(x, 1), -1)",
    "flip": "xp.flip(xp.flip(x))",
    "expand-dims": "xp.squeeze(xp.expand_dims(x, axis=0), axis=0)",
    "make-array": "xp.asarray(x, copy=True)",
    "sort-of-one": "xp.reshape(xp.sort(xp.reshape(x, (-1, 1)), axis=1), x.shape)",
    "set-items": "y = xp.empty(x.shape, dtype={target})\ny[...] = x\n",
    # The operation computes, and should give what it gets.
    "multiply-by-one": "x * xp.ones_like(x)",
    "multiply-by-python-one": "x * 1",
    "multiply-by-python-float": "x * 1.0",
    "divide-by-one": "x / xp.ones_like(x)",
    "divide-by-python-one": "x / 1",
    "floor-divide-by-one": "x // xp.ones_like(x)",
    "add-zero": "x + xp.zeros_like(x)",
    "add-python-zero": "x + 0",
    "add-minus-zero": "x + -0.0",
    "subtract-zero": "x - xp.zeros_like(x)",
    "positive": "+x",
    "negate-twice": "-(-x)",
    "absolute-with-sign": "xp.copysign(xp.abs(x), x)",
    "hypot-with-sign": "xp.copysign(xp.hypot(x, xp.zeros_like(x)), x)",
    "power-of-one": "x ** xp.ones_like(x)",
    "maximum-with-itself": "xp.maximum(x, x)",
    "minimum-with-itself": "xp.minimum(x, x)",
    "clip-to-nothing": "xp.clip(x)",
    "clip-to-infinities": "xp.clip(x, -xp.inf, xp.inf)",
    "or-with-itself": "x | x",
    "exclusive-or-with-zero": "x ^ xp.zeros_like(x)",
    "shift-by-zero": "(x << xp.zeros_like(x)) >> xp.zeros_like(x)",
    "logical-or-with-itself": "xp.logical_or(x, x)",
    "maximum-of-one": "xp.max(xp.reshape(x, (-1, 1)), axis=1)",
    "sum-of-one": "xp.sum(xp.reshape(x, (-1, 1)), axis=1, dtype={source})",
    "product-of-one": "xp.prod(xp.reshape(x, (-1, 1)), axis=1, dtype={source})",
    "cumulative-sum-of-one": (
        "xp.reshape(xp.cumulative_sum(xp.reshape(x, (-1, 1)), axis=1, dtype={source}), x.shape)"
    ),
    "mean-of-one": "xp.mean(xp.reshape(x, (-1, 1)), axis=1)",
    "matmul-by-one": (
        "xp.reshape(xp.reshape(x, (-1, 1)) @ xp.ones((1, 1), dtype={source}), x.shape)"
    ),
    "vecdot-by-one": "xp.vecdot(xp.reshape(x, (-1, 1)), xp.ones((1, 1), dtype={source}))",
    "tensordot-by-one": "xp.reshape(xp.tensordot(x, xp.ones(1, dtype={source}), axes=0), x.shape)",
    # The operation computes in another dtype.
    "sum-as-target": "xp.sum(xp.reshape(x, (-1, 1)), axis=1, dtype={target})",
    "product-as-target": "xp.prod(xp.reshape(x, (-1, 1)), axis=1, dtype={target})",
    "cumulative-sum-as-target": (
        "xp.reshape(xp.cumulative_sum(xp.reshape(x, (-1, 1)), axis=1, dtype={target}), x.shape)"
    ),
    # Promotion widens.
    "add-zero-of-target": "x + xp.zeros(x.shape, dtype={target})",
    "multiply-by-one-of-target": "x * xp.ones(x.shape, dtype={target})",
    "maximum-with-lowest-of-target": (
        "xp.maximum(x, xp.full(x.shape, float('-inf'), dtype={target}))"
    ),
    "concatenate-with-target": "xp.concat([x, xp.zeros(1, dtype={target})])[:-1]",
    "where-with-target": (
        "xp.where(xp.ones(x.shape, dtype=xp.bool), x, xp.zeros(x.shape, dtype={target}))"
    ),
    "multiply-by-unsigned-one": "x * xp.ones(x.shape, dtype=xp.uint8)",
}
"""By carrier, its expression or statements in the standard's functions."""


def carriers_in(name: str) -> dict[str, str]:
    """Return the standard's carriers for a namespace that scripts call ``name``."""
    return {key: text.replace(NAMESPACE, f"{name}.") for key, text in CARRIERS.items()}
