"""jax's carriers: operations that should move or convert the elements of a row exactly."""

from __future__ import annotations

from collections.abc import Mapping

CARRIERS: Mapping[str, str] = {
    # The operation computes, and should give what it gets.
    "multiply-by-one": "jax.lax.mul(x, jnp.ones_like(x))",
    "multiply-by-hidden-one": "jax.lax.mul(x, jax.lax.optimization_barrier(jnp.ones_like(x)))",
    "multiply-by-weak-one": "x * 1",
    "divide-by-one": "jax.lax.div(x, jnp.ones_like(x))",
    "add-zero": "jax.lax.add(x, jnp.zeros_like(x))",
    "add-hidden-zero": "jax.lax.add(x, jax.lax.optimization_barrier(jnp.zeros_like(x)))",
    "subtract-zero": "jax.lax.sub(x, jnp.zeros_like(x))",
    "maximum-with-itself": "jax.lax.max(x, x)",
    "minimum-with-itself": "jax.lax.min(x, x)",
    "negate-twice": "jax.lax.neg(jax.lax.neg(x))",
    "absolute-with-sign": "jnp.copysign(jnp.abs(x), x)",
    "sum-of-one": "jnp.sum(x.reshape(-1, 1), axis=1, dtype={target})",
    "product-of-one": "jnp.prod(x.reshape(-1, 1), axis=1, dtype={target})",
    "mean-of-one": "jnp.mean(x.reshape(-1, 1), axis=1, dtype={target})",
    "maximum-of-one": "jnp.max(x.reshape(-1, 1), axis=1)",
    "maximum-of-segment": "jax.ops.segment_max(x, jnp.arange(x.size), x.size)",
    "median-of-one": "jnp.median(x.reshape(-1, 1), axis=1)",
    "cumulative-sum-of-one": "jnp.cumsum(x.reshape(-1, 1), axis=1, dtype={target}).reshape(-1)",
    "matmul-by-one": (
        'jnp.matmul(x.reshape(-1, 1), jnp.ones((1, 1), {source}), precision="highest").reshape(-1)'
    ),
    "matmul-by-one-at-default": (
        "jnp.matmul(x.reshape(-1, 1), jnp.ones((1, 1), {source})).reshape(-1)"
    ),
    "convolve-by-one": (
        "jax.lax.conv("
        'x.reshape(1, 1, -1), jnp.ones((1, 1, 1), {source}), (1,), "VALID", precision="highest"'
        ").reshape(-1)"
    ),
    "clip-to-itself": "jnp.clip(x, x, x)",
    "scatter-add": "jnp.zeros_like(x).at[jnp.arange(x.size)].add(x)",
    "multiply-in-bfloat16": (
        "(x.astype(jnp.bfloat16) * jnp.ones(x.shape, jnp.bfloat16)).astype({target})"
    ),
    "multiply-in-float16": (
        "(x.astype(jnp.float16) * jnp.ones(x.shape, jnp.float16)).astype({target})"
    ),
    # The operation moves elements.
    "concatenate": "jax.lax.concatenate([x[:1], x[1:]], 0)",
    "stack": "jnp.stack([x, x])[0]",
    "where": "jax.lax.select(jnp.ones(x.shape, bool), x, jnp.zeros_like(x))",
    "take": "jnp.take(x, jnp.arange(x.size))",
    "dynamic-slice": "jax.lax.dynamic_slice(x, (0,), x.shape)",
    "dynamic-update-slice": "jax.lax.dynamic_update_slice(jnp.zeros_like(x), x, (0,))",
    "scatter": "jnp.zeros_like(x).at[jnp.arange(x.size)].set(x)",
    "flip-twice": "jnp.flip(jnp.flip(x))",
    "sort-of-one": "jax.lax.sort(x.reshape(-1, 1), dimension=1).reshape(-1)",
    "top-of-one": "jax.lax.top_k(x.reshape(-1, 1), 1)[0].reshape(-1)",
    "scan": "jax.lax.scan(lambda carried, each: (carried, each), 0, x)[1]",
    "barrier": "jax.lax.optimization_barrier(x)",
    "to-numpy-and-back": "y = jnp.asarray(np.asarray(x))\n",
    # The store has another dtype.
    "multiply-out": "jax.lax.mul(x, jnp.ones_like(x), out_dtype={target})",
    "set-items": "jnp.zeros(x.shape, {target}).at[:].set(x)",
    "x64-off": "with jax.enable_x64(False):\n    y = jnp.asarray(np.asarray(x))\n",
    # Promotion converts.
    "multiply-by-one-of-target": "x * jnp.ones(x.shape, {target})",
    "multiply-by-one-of-bfloat16": "x * jnp.ones(x.shape, jnp.bfloat16)",
    "multiply-by-one-of-float16": "x * jnp.ones(x.shape, jnp.float16)",
    "add-zero-of-target": "x + jnp.zeros(x.shape, {target})",
    "concatenate-with-target": "jnp.concatenate([x, jnp.zeros(1, {target})])[:-1]",
    "where-with-target": ("jnp.where(jnp.ones(x.shape, bool), x, jnp.zeros(x.shape, {target}))"),
    "strict-promotion": (
        'with jax.numpy_dtype_promotion("strict"):\n    y = x * jnp.ones(x.shape, {target})\n'
    ),
    # A mode was set before, and left.
    "after-x64-off": (
        "with jax.enable_x64(False):\n    jnp.ones(3) * 2\ny = jax.lax.mul(x, jnp.ones_like(x))\n"
    ),
}
