"""jax's carriers: operations that should move or convert the elements of a row exactly.

A carrier that sets a mode leaves none behind, also if it fails: other cases run in the same
process.
"""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import indent

OPERATIONS: Mapping[str, str] = {
    # The operation computes, and should give what it gets.
    "multiply-by-one": "jax.lax.mul(x, jnp.ones_like(x))",
    "multiply-by-hidden-one": "jax.lax.mul(x, jax.lax.optimization_barrier(jnp.ones_like(x)))",
    "multiply-by-weak-one": "x * 1",
    "divide-by-one": "jax.lax.div(x, jnp.ones_like(x))",
    "divide-product-by-255": "x.astype({target}) * 255 / 255",
    "divide-hidden-product-by-255": (
        "jax.lax.optimization_barrier(x.astype({target}) * 255) / 255"
    ),
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
}
"""The carriers that set no mode, and those whose mode gives the result another dtype."""


def _within(context: str, statements: str) -> str:
    return f"with {context}:\n{indent(statements, '    ')}"


def _under(context: str, expression: str) -> str:
    """Return the statements that carry within a context."""
    return _within(context, f"y = {expression}\n")


def _after(context: str, expression: str) -> str:
    """Return the statements of one compiled function that runs within a context, and then without.

    Within the context it gets ones, because a mode may refuse what x has.
    """
    made = f"function = jax.jit(lambda x: {expression})\n"
    return made + _within(context, "function(jnp.ones_like(x))\n") + "y = function(x)\n"


_THREAD = "from concurrent.futures import ThreadPoolExecutor\n"


def _beside(context: str, expression: str) -> str:
    """Return the statements that carry while another thread is within a context."""
    body = (
        "with ThreadPoolExecutor(1) as pool, ExitStack() as stack:\n"
        f"    pool.submit(stack.enter_context, {context}).result()\n"
        f"    y = {expression}\n"
        "    pool.submit(stack.close).result()\n"
    )
    return f"{_THREAD}from contextlib import ExitStack\n{body}"


def _in_thread_of(context: str, expression: str) -> str:
    """Return the statements that carry in a thread that was started within a context."""
    body = f"with {context}, ThreadPoolExecutor(1) as pool:\n"
    return f"{_THREAD}{body}    y = pool.submit(lambda: {expression}).result()\n"


def _while_set(name: str, value: str, usual: str, statements: str) -> str:
    """Return the statements that run while an option has another value than usual."""
    sets = 'jax.config.update("{}", "{}")'
    return (
        f"try:\n    {sets.format(name, value)}\n{indent(statements, '    ')}"
        f"finally:\n    {sets.format(name, usual)}\n"
    )


def _rounding(under: str, after: str = "") -> str:
    """Return the statements that run ``under`` rounding toward zero, and then ``after`` it."""
    return (
        "import ctypes\nset_rounding = ctypes.CDLL(None).fesetround\n"
        f"try:\n    set_rounding(0xC00)\n    {under}\nfinally:\n    set_rounding(0)\n{after}"
    )


_MULTIPLY = "jax.lax.mul(x, jnp.ones_like(x))"
_MATMUL = OPERATIONS["matmul-by-one-at-default"]
_PROMOTE = OPERATIONS["multiply-by-one-of-target"]
_STORE = OPERATIONS["set-items"]
_HIGHEST = 'jax.default_matmul_precision("highest")'
_BFLOAT16 = 'jax.default_matmul_precision("bfloat16")'
_WITHOUT_X64 = "jax.enable_x64(False)"
_STRICT = 'jax.numpy_dtype_promotion("strict")'
_NO_NANS = "jax.debug_nans(True)"

MODES: Mapping[str, str] = {
    "after-x64-off": _within(_WITHOUT_X64, "jnp.ones(3) * 2\n") + f"y = {_MULTIPLY}\n",
    "multiply-after-x64-off": _after(_WITHOUT_X64, _MULTIPLY),
    "multiply-beside-x64-off": _beside(_WITHOUT_X64, _MULTIPLY),
    "multiply-in-thread-of-x64-off": _in_thread_of(_WITHOUT_X64, _MULTIPLY),
    "explicit-dtype-with-x64-off": _while_set(
        "jax_explicit_x64_dtypes",
        "allow",
        "warn",
        _under(_WITHOUT_X64, "jnp.asarray(np.asarray(x), dtype={source})"),
    ),
    "matmul-under-highest-precision": _under(_HIGHEST, _MATMUL),
    "matmul-under-bfloat16-precision": _under(_BFLOAT16, _MATMUL),
    "matmul-after-bfloat16-precision": _within(_HIGHEST, _after(_BFLOAT16, _MATMUL)),
    "matmul-beside-bfloat16-precision": _within(_HIGHEST, _beside(_BFLOAT16, _MATMUL)),
    "promote-after-strict-promotion": _within(_STRICT, "x * x\n") + f"y = {_PROMOTE}\n",
    "promote-beside-strict-promotion": _beside(_STRICT, _PROMOTE),
    "promote-in-thread-of-strict-promotion": _in_thread_of(_STRICT, _PROMOTE),
    "multiply-after-debug-nans": _after(_NO_NANS, _MULTIPLY),
    "multiply-beside-debug-nans": _beside(_NO_NANS, _MULTIPLY),
    **{
        f"{name}-without-jit": _under("jax.disable_jit()", OPERATIONS[name])
        for name in ("scatter", "sum-of-one", "matmul-by-one")
    },
    "scan-without-jit": _under(
        "jax.disable_jit()",  # a loop of Python, so x is a single step
        "jax.lax.scan(lambda carried, each: (carried, each), 0, x[jnp.newaxis])[1][0]",
    ),
    "set-items-under-rounding-toward-zero": _rounding(f"y = {_STORE}"),
    "set-items-after-rounding-toward-zero": _rounding(_STORE, f"y = {_STORE}\n"),
}
"""Carriers while a mode is set, after it was set, or while another thread has set it."""

CARRIERS: Mapping[str, str] = {**OPERATIONS, **MODES}
