"""torch's carriers: operations that should move or convert the elements of a row exactly."""

from __future__ import annotations

from collections.abc import Mapping

CARRIERS: Mapping[str, str] = {
    # The operation computes, and should give what it gets.
    "multiply-by-one": "x * torch.ones((), dtype={source})",
    "divide-by-one": "x / torch.ones((), dtype={source})",
    "add-zero": "x + torch.zeros((), dtype={source})",
    "subtract-zero": "x - torch.zeros((), dtype={source})",
    "maximum-with-itself": "torch.maximum(x, x)",
    "minimum-with-itself": "torch.minimum(x, x)",
    "negate-twice": "-(-x)",
    "absolute-with-sign": "torch.copysign(torch.abs(x), x)",
    "sum-of-one": "x.reshape(-1, 1).sum(dim=1, dtype={target})",
    "product-of-one": "x.reshape(-1, 1).prod(dim=1, dtype={target})",
    "mean-of-one": "x.reshape(-1, 1).mean(dim=1, dtype={target})",
    "maximum-of-one": "x.reshape(-1, 1).amax(dim=1)",
    "matmul-by-one": "(x.reshape(-1, 1) @ torch.ones((1, 1), dtype={source})).reshape(-1)",
    # The operation moves elements.
    "concatenate": "torch.cat([x[:1], x[1:]])",
    "where": "torch.where(torch.ones(x.shape, dtype=torch.bool), x, torch.zeros_like(x))",
    "take": "torch.index_select(x, 0, torch.arange(x.shape[0]))",
    "embedding": (
        "torch.nn.functional.embedding(torch.arange(x.shape[0]), x.reshape(-1, 1)).reshape(-1)"
    ),
    "index-put": "torch.empty_like(x).index_put_((torch.arange(x.shape[0]),), x)",
    "scatter": "torch.zeros_like(x).scatter_(0, torch.arange(x.shape[0]), x)",
    "sort-of-one": "x.reshape(-1, 1).sort(dim=1).values.reshape(-1)",
    # The store has another dtype.
    "copy-into": "torch.empty(x.shape, dtype={target}).copy_(x)",
    "set-items": "y = torch.empty(x.shape, dtype={target})\ny[:] = x\n",
    "add-out": "torch.add(x, 0, out=torch.empty(x.shape, dtype={target}))",
    # Promotion widens.
    "add-zero-of-target": "x + torch.zeros(x.shape, dtype={target})",
    "concatenate-with-target": "torch.cat([x, torch.zeros(1, dtype={target})])[:-1]",
}
