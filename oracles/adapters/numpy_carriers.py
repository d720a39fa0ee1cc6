"""numpy's carriers: operations that should move or convert the elements of a row exactly."""

from __future__ import annotations

from collections.abc import Mapping

CARRIERS: Mapping[str, str] = {
    # The operation computes, and should give what it gets.
    "multiply-by-one": "x * x.dtype.type(1)",
    "divide-by-one": "x / x.dtype.type(1)",
    "add-zero": "x + x.dtype.type(0)",
    "subtract-zero": "x - x.dtype.type(0)",
    "maximum-with-itself": "np.maximum(x, x)",
    "minimum-with-itself": "np.minimum(x, x)",
    "negate-twice": "-(-x)",
    "absolute-with-sign": "np.copysign(np.abs(x), x)",
    "sum-of-one": "x.reshape(-1, 1).sum(axis=1, dtype=x.dtype)",
    "product-of-one": "x.reshape(-1, 1).prod(axis=1, dtype=x.dtype)",
    "mean-of-one": "x.reshape(-1, 1).mean(axis=1)",
    "maximum-of-one": "x.reshape(-1, 1).max(axis=1)",
    "matmul-by-one": "(x.reshape(-1, 1, 1) @ np.ones((1, 1), x.dtype)).reshape(-1)",
    # The operation moves elements.
    "concatenate": "np.concatenate([x[:1], x[1:]])",
    "where": "np.where(np.ones(x.shape, bool), x, np.zeros_like(x))",
    "take": "np.take(x, np.arange(x.size))",
    "sort-of-one": "np.sort(x.reshape(-1, 1), axis=1).reshape(-1)",
    # The store has another dtype.
    "copy-into": "y = np.empty(x.shape, {target})\nnp.copyto(y, x, casting='unsafe')\n",
    "set-items": "y = np.empty(x.shape, {target})\ny[...] = x\n",
    "put": "y = np.empty(x.shape, {target})\nnp.put(y, np.arange(x.size), x)\n",
    "add-out": "np.add(x, x.dtype.type(0), out=np.empty(x.shape, {target}), casting='unsafe')",
    # Promotion widens.
    "add-zero-of-target": "x + np.zeros(x.shape, {target})",
    "concatenate-with-target": "np.concatenate([x, np.zeros(1, {target})])[:-1]",
}
