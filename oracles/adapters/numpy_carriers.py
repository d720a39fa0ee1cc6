"""numpy's carriers: operations that should move or convert the elements of a row exactly."""

from __future__ import annotations

from collections.abc import Mapping

CARRIERS: Mapping[str, str] = {
    # The operation moves elements.
    "concatenate": "np.concatenate([x[:1], x[1:]])",
    "where": "np.where(np.ones(x.shape, bool), x, np.zeros_like(x))",
    "choose": "np.choose(np.zeros(x.shape, int), [x, np.ones_like(x)])",
    "select": "np.select([np.ones(x.shape, bool)], [x], x.dtype.type(1))",
    "take": "np.take(x, np.arange(x.size))",
    "repeat": "np.repeat(x, 2)[::2]",
    "roll": "np.roll(np.roll(x, 1), -1)",
    "pad": "np.pad(x, 1)[1:-1]",
    "sort-of-one": "np.sort(x.reshape(-1, 1), axis=1).reshape(-1)",
    "place": "y = np.empty_like(x)\nnp.place(y, np.ones(x.shape, bool), x)\n",
    "positive": "+x",
    "clip-to-nothing": "np.clip(x, None, None)",
    "save-and-load": (
        "import io\nfile = io.BytesIO()\nnp.save(file, x)\nfile.seek(0)\ny = np.load(file)\n"
    ),
    # The operation computes, and should give what it gets.
    "multiply-by-one": "x * x.dtype.type(1)",
    "multiply-by-python-one": "x * 1",
    "divide-by-one": "x / x.dtype.type(1)",
    "add-zero": "x + x.dtype.type(0)",
    "add-python-zero": "x + 0",
    "subtract-zero": "x - x.dtype.type(0)",
    "add-at": "y = np.zeros_like(x)\nnp.add.at(y, np.arange(x.size), x)\n",
    "negate-twice": "-(-x)",
    "absolute-with-sign": "np.copysign(np.abs(x), x)",
    "scale-by-zero": "np.ldexp(x, 0)",
    "split-and-scale": "np.ldexp(*np.frexp(x))",
    "dot-by-one": "np.dot(x, x.dtype.type(1))",
    "outer-by-one": "np.outer(x, np.ones(1, x.dtype)).reshape(-1)",
    "maximum-with-itself": "np.maximum(x, x)",
    "minimum-with-itself": "np.minimum(x, x)",
    "fmax-with-nan": "np.fmax(x, x.dtype.type(np.nan))",
    "fmin-with-nan": "np.fmin(x.dtype.type(np.nan), x)",
    "maximum-with-minus-infinity": "np.maximum(x, -np.inf)",
    "clip-to-infinities": "np.clip(x, -np.inf, np.inf)",
    "nan-to-nan": "np.nan_to_num(x, nan=np.nan, posinf=np.inf, neginf=-np.inf)",
    "maximum-of-one": "x.reshape(-1, 1).max(axis=1)",
    "sum-of-one": "x.reshape(-1, 1).sum(axis=1, dtype=x.dtype)",
    "sum-of-one-but-nan": "np.nansum(x.reshape(-1, 1), axis=1, dtype=x.dtype)",
    "cumulative-sum-of-one": "x.reshape(-1, 1).cumsum(axis=1, dtype=x.dtype).reshape(-1)",
    "product-of-one": "x.reshape(-1, 1).prod(axis=1, dtype=x.dtype)",
    "mean-of-one": "x.reshape(-1, 1).mean(axis=1)",
    "median-of-one": "np.median(x.reshape(-1, 1), axis=1)",
    "average-of-one": (
        "np.average(x.reshape(-1, 1), axis=1, weights=np.ones((x.size, 1), x.dtype))"
    ),
    "matmul-by-one": "(x.reshape(-1, 1, 1) @ np.ones((1, 1), x.dtype)).reshape(-1)",
    "einsum-by-one": "np.einsum('i,i->i', x, np.ones_like(x))",
    "pad-with-mean": "np.pad(x.reshape(-1, 1), ((0, 0), (0, 1)), mode='mean')[:, 1]",
    "pad-with-median": "np.pad(x.reshape(-1, 1), ((0, 0), (0, 1)), mode='median')[:, 1]",
    "nanmedian-of-one": "np.nanmedian(x.reshape(-1, 1), axis=1)",
    "linspace-start": "np.linspace(x, x, 2, dtype=x.dtype)[0]",
    "round-whole": "np.round(x)",
    "rint-whole": "np.rint(x)",
    # The store has another dtype.
    "copy-into": "y = np.empty(x.shape, {target})\nnp.copyto(y, x, casting='unsafe')\n",
    "set-items": "y = np.empty(x.shape, {target})\ny[...] = x\n",
    "put": "y = np.empty(x.shape, {target})\nnp.put(y, np.arange(x.size), x)\n",
    "putmask": "y = np.empty(x.shape, {target})\nnp.putmask(y, np.ones(x.shape, bool), x)\n",
    "full": "np.full(x.shape, x, {target})",
    "make-array": "np.array(x, {target})",
    "concatenate-as-target": "np.concatenate([x], dtype={target}, casting='unsafe')",
    "add-out": "np.add(x, x.dtype.type(0), out=np.empty(x.shape, {target}), casting='unsafe')",
    "multiply-out": (
        "np.multiply(x, x.dtype.type(1), out=np.empty(x.shape, {target}), casting='unsafe')"
    ),
    "multiply-into": "y = np.ones(x.shape, {target})\ny *= x\n",
    # The operation computes in another dtype.
    "multiply-as-target": "np.multiply(x, x.dtype.type(1), dtype={target}, casting='unsafe')",
    "product-as-target": "x.reshape(-1, 1).prod(axis=1, dtype={target})",
    "sum-as-target": "x.reshape(-1, 1).sum(axis=1, dtype={target})",
    "cumulative-sum-as-target": "x.reshape(-1, 1).cumsum(axis=1, dtype={target}).reshape(-1)",
    "mean-as-target": "x.reshape(-1, 1).mean(axis=1, dtype={target})",
    # Promotion widens.
    "add-zero-of-target": "x + np.zeros(x.shape, {target})",
    "multiply-by-one-of-target": "x * np.ones(x.shape, {target})",
    "concatenate-with-target": "np.concatenate([x, np.zeros(1, {target})])[:-1]",
    "where-with-target": "np.where(np.ones(x.shape, bool), x, np.zeros(x.shape, {target}))",
    "multiply-by-python-float": "x * 1.0",
    "divide-by-python-one": "x / 1",
    "multiply-by-unsigned-one": "x * np.ones(x.shape, np.uint64)",
}
