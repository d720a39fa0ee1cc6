"""mlx's carriers: operations that should move or convert the elements of a row exactly."""

from __future__ import annotations

from collections.abc import Mapping

CARRIERS: Mapping[str, str] = {
    # The operation moves elements.
    "concatenate": "mx.concatenate([x[:1], x[1:]])",
    "stack": "mx.stack([x, x])[0]",
    "where": "mx.where(mx.ones(x.shape, mx.bool_), x, mx.zeros_like(x))",
    "take": "mx.take(x, mx.arange(x.size))",
    "take-along-axis": "mx.take_along_axis(x, mx.arange(x.size), axis=0)",
    "repeat": "mx.repeat(x, 2)[::2]",
    "tile": "mx.tile(x, 2)[: x.size]",
    "roll": "mx.roll(mx.roll(x, 1), -1)",
    "pad": "mx.pad(x, 1)[1:-1]",
    "positive": "mx.positive(x)",
    "stop-gradient": "mx.stop_gradient(x)",
    "sort-of-one": "mx.sort(x.reshape(-1, 1), axis=1).reshape(-1)",
    "put-along-axis": "mx.put_along_axis(mx.zeros_like(x), mx.arange(x.size), x, axis=0)",
    "set-items": "y = mx.zeros(x.shape, {target})\ny[:] = x\n",
    # The operation computes, and should give what it gets.
    "multiply-by-one": "x * mx.array(1, {source})",
    "multiply-by-python-one": "x * 1",
    "divide-by-one": "x / mx.array(1, {source})",
    "floor-divide-by-one": "x // mx.array(1, {source})",
    "add-zero": "x + mx.array(0, {source})",
    "add-python-zero": "x + 0",
    "add-at": "mx.zeros_like(x).at[mx.arange(x.size)].add(x)",
    "subtract-zero": "x - mx.array(0, {source})",
    "negate-twice": "-(-x)",
    "outer-by-one": "mx.outer(x, mx.ones(1, {source})).reshape(-1)",
    "power-of-one": "x ** mx.array(1, {source})",
    "maximum-with-itself": "mx.maximum(x, x)",
    "minimum-with-itself": "mx.minimum(x, x)",
    "clip-to-infinities": "mx.clip(x, -mx.inf, mx.inf)",
    "nan-to-nan": "mx.nan_to_num(x, nan=mx.nan, posinf=mx.inf, neginf=-mx.inf)",
    "maximum-of-one": "x.reshape(-1, 1).max(axis=1)",
    "median-of-one": "mx.median(x.reshape(-1, 1), axis=1)",
    "sum-of-one": "x.reshape(-1, 1).sum(axis=1)",
    "cumulative-sum-of-one": "mx.cumsum(x.reshape(-1, 1), axis=1).reshape(-1)",
    "product-of-one": "x.reshape(-1, 1).prod(axis=1)",
    "mean-of-one": "x.reshape(-1, 1).mean(axis=1)",
    "matmul-by-one": "(x.reshape(-1, 1) @ mx.ones((1, 1), {source})).reshape(-1)",
    # The operation computes in another dtype.
    "cumulative-sum-as-target": "mx.cumsum(x.reshape(-1, 1), axis=1, dtype={target}).reshape(-1)",
    # Promotion widens.
    "add-zero-of-target": "x + mx.zeros(x.shape, {target})",
    "multiply-by-one-of-target": "x * mx.ones(x.shape, {target})",
    "concatenate-with-target": "mx.concatenate([x, mx.zeros(1, {target})])[:-1]",
    "where-with-target": "mx.where(mx.ones(x.shape, mx.bool_), x, mx.zeros(x.shape, {target}))",
}
