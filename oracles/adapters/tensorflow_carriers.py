"""TensorFlow's carriers: operations that should move or convert the elements of a row exactly.

A carrier that sets a mode resets it, also if it fails: other cases run in the same process. NumPy
behavior is switched off again, but the methods that it gave tensors stay.
"""

from __future__ import annotations

from collections.abc import Mapping

OPERATIONS: Mapping[str, str] = {
    # The operation computes, and should give what it gets.
    "multiply-by-one": "tf.math.multiply(x, tf.ones_like(x))",
    "multiply-by-weak-one": "x * 1",
    "divide-by-one": "tf.math.truediv(x, tf.ones_like(x))",
    "divide-product-by-255": "tf.cast(x, {target}) * 255 / 255",
    "divide-hidden-product-by-255": (
        "tf.cast(x, {target}) * tf.where(tf.math.equal(x, x), 255.0, 1.0) / 255"
    ),
    "add-zero": "tf.math.add(x, tf.zeros_like(x))",
    "add-n": "tf.math.add_n([x, tf.zeros_like(x)])",
    "bias-add": "tf.nn.bias_add(x[:, tf.newaxis], tf.zeros(1, {source}))[:, 0]",
    "subtract-zero": "tf.math.subtract(x, tf.zeros_like(x))",
    "maximum-with-itself": "tf.math.maximum(x, x)",
    "minimum-with-itself": "tf.math.minimum(x, x)",
    "negate-twice": "tf.math.negative(tf.math.negative(x))",
    "absolute-with-sign": "tf.math.sign(x) * tf.math.abs(x)",
    "sum-of-one": "tf.math.reduce_sum(x[:, tf.newaxis], axis=1)",
    "product-of-one": "tf.math.reduce_prod(x[:, tf.newaxis], axis=1)",
    "mean-of-one": "tf.math.reduce_mean(x[:, tf.newaxis], axis=1)",
    "maximum-of-one": "tf.math.reduce_max(x[:, tf.newaxis], axis=1)",
    "cumulative-sum-of-one": "tf.math.cumsum(x[:, tf.newaxis], axis=1)[:, 0]",
    "segment-sum-of-one": "tf.math.segment_sum(x, tf.range(tf.size(x)))",
    "scatter-add": "tf.scatter_nd(tf.range(tf.size(x))[:, tf.newaxis], x, tf.shape(x))",
    "matmul-by-one": "tf.linalg.matmul(x[:, tf.newaxis], tf.ones((1, 1), {source}))[:, 0]",
    "convolve-by-one": (
        "tf.nn.conv2d(tf.reshape(x, (-1, 1, 1, 1)), tf.ones((1, 1, 1, 1), {source}), 1, "
        '"VALID")[:, 0, 0, 0]'
    ),
    "clip-to-itself": "tf.clip_by_value(x, x, x)",
    "maximum-of-segment": ("tf.math.unsorted_segment_max(x, tf.range(tf.size(x)), tf.size(x))"),
    "minimum-of-segment": ("tf.math.unsorted_segment_min(x, tf.range(tf.size(x)), tf.size(x))"),
    "maximum-of-window": (
        'tf.nn.max_pool2d(tf.reshape(x, (-1, 1, 1, 1)), 1, 1, "VALID")[:, 0, 0, 0]'
    ),
    "top-of-one": "tf.math.top_k(x[:, tf.newaxis], 1).values[:, 0]",
    "cumulative-log-sum-of-one": ("tf.math.cumulative_logsumexp(x[:, tf.newaxis], axis=1)[:, 0]"),
    # The operation moves elements.
    "identity": "tf.identity(x)",
    "concatenate": "tf.concat([x[:1], x[1:]], 0)",
    "stack": "tf.stack([x, x])[0]",
    "where": "tf.where(tf.ones(tf.shape(x), tf.bool), x, tf.zeros_like(x))",
    "take": "tf.gather(x, tf.range(tf.size(x)))",
    "embedding": "tf.nn.embedding_lookup(x[:, tf.newaxis], tf.range(tf.size(x)))[:, 0]",
    "scatter": (
        "tf.tensor_scatter_nd_update(tf.zeros_like(x), tf.range(tf.size(x))[:, tf.newaxis], x)"
    ),
    "flip-twice": "tf.reverse(tf.reverse(x, [0]), [0])",
    "sort-of-one": "tf.sort(x[:, tf.newaxis], axis=1)[:, 0]",
    "pad-and-slice": "tf.pad(x, [[1, 1]])[1:-1]",
    "transpose": "tf.transpose(x[tf.newaxis])[:, 0]",
    "serialize": (
        "tf.ensure_shape(tf.io.parse_tensor(tf.io.serialize_tensor(x), {source}), x.shape)"
    ),
    "variable": "held = tf.Variable(tf.zeros_like(x))\nheld.assign(x)\ny = held.read_value()\n",
    "to-numpy-and-back": "y = tf.constant(x.numpy())\n",
    # The store has another dtype.
    "saturate-cast": "tf.saturate_cast(x, {target})",
    "mixed-bfloat16": 'y = tf.keras.layers.Activation("linear", dtype="mixed_bfloat16")(x)\n',
    "mixed-float16": 'y = tf.keras.layers.Activation("linear", dtype="mixed_float16")(x)\n',
    # Promotion is refused, but for that of NumPy's functions.
    "multiply-by-one-of-target": "tf.math.multiply(x, tf.ones(tf.shape(x), {target}))",
    "divide-by-one-of-target": "tf.math.truediv(x, tf.ones(tf.shape(x), {target}))",
    "add-zero-of-target": "tf.math.add(x, tf.zeros(tf.shape(x), {target}))",
    "where-with-target": (
        "tf.where(tf.ones(tf.shape(x), tf.bool), x, tf.zeros(tf.shape(x), {target}))"
    ),
    "numpy-multiply-by-one-of-target": (
        "tf.experimental.numpy.multiply(x, tf.ones(tf.shape(x), {target}))"
    ),
    "numpy-concatenate-with-target": (
        "tf.experimental.numpy.concatenate([x, tf.zeros(1, {target})])[:-1]"
    ),
}
"""The carriers that set no mode."""


def _under(sets: str, resets: str, expression: str) -> str:
    """Return the statements that carry while a mode is set."""
    return f"try:\n    {sets}\n    y = {expression}\nfinally:\n    {resets}\n"


def _after(sets: str, resets: str, within: str, expression: str) -> str:
    """Return the statements that evaluate ``within`` while a mode is set, and carry afterwards."""
    return f"try:\n    {sets}\n    {within}\nfinally:\n    {resets}\ny = {expression}\n"


def _in_threads(sets: str, here: str, resets: str) -> str:
    """Return the statements that set a mode, run ``here``, and reset it, with a second thread."""
    start = (
        "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(1) as pool:\n"
    )
    return f"{start}    try:\n        {sets}\n        {here}\n    finally:\n        {resets}\n"


def _beside(sets: str, resets: str, expression: str) -> str:
    """Return the statements that carry while a mode is set by another thread."""
    there = "pool.submit(lambda: {}).result()"
    return _in_threads(there.format(sets), f"y = {expression}", there.format(resets))


def _in_thread(sets: str, resets: str, expression: str) -> str:
    """Return the statements that carry in another thread while a mode is set."""
    return _in_threads(sets, f"y = pool.submit(lambda: {expression}).result()", resets)


def _numpy_behavior(mode: str) -> str:
    enable = "tf.experimental.numpy.experimental_enable_numpy_behavior"
    return f'{enable}(dtype_conversion_mode="{mode}")'


_POLICY = 'tf.keras.mixed_precision.set_global_policy("{}")'
_MIXED = _POLICY.format("mixed_bfloat16"), _POLICY.format("float32")
_TF32 = "tf.config.experimental.enable_tensor_float_32_execution({})"
_NO_TF32 = _TF32.format(False), _TF32.format(True)
_OFF = _numpy_behavior("off")
_LIKE_NUMPY = _numpy_behavior("legacy"), _OFF
_CONFIG = "from tensorflow.python.framework import config\n"
_DETERMINISTIC = (
    "tf.config.experimental.enable_op_determinism()",
    "config.disable_op_determinism()",
)
_MULTIPLY = OPERATIONS["multiply-by-one"]
_MATMUL = OPERATIONS["matmul-by-one"]
_PROMOTE = "x * tf.ones(tf.shape(x), {target})"
_LAYER = 'tf.keras.layers.Activation("linear")(x)'

MODES: Mapping[str, str] = {
    "under-mixed-precision": _under(*_MIXED, _MULTIPLY),
    "layer-under-mixed-bfloat16": _under(*_MIXED, _LAYER),
    "layer-after-mixed-bfloat16": _after(*_MIXED, _LAYER, _LAYER),
    "layer-in-thread-under-mixed-bfloat16": _in_thread(*_MIXED, _LAYER),
    "matmul-under-no-tensor-float-32": _under(*_NO_TF32, _MATMUL),
    "after-no-tensor-float-32": _after(*_NO_TF32, _MATMUL, _MATMUL),
    "matmul-beside-no-tensor-float-32": _beside(*_NO_TF32, _MATMUL),
    **{
        f"{name}-under-determinism": _CONFIG + _under(*_DETERMINISTIC, OPERATIONS[name])
        for name in ("take", "scatter", "scatter-add", "segment-sum-of-one", "convolve-by-one")
    },
    "promote-under-numpy-behavior": _under(*_LIKE_NUMPY, _PROMOTE),
    "promote-beside-numpy-behavior": _beside(*_LIKE_NUMPY, _PROMOTE),
    "promote-after-numpy-behavior": _after(*_LIKE_NUMPY, _PROMOTE, _PROMOTE),
    "promote-under-all-promotion": _under(_numpy_behavior("all"), _OFF, _PROMOTE),
    "promote-under-safe-promotion": _under(_numpy_behavior("safe"), _OFF, _PROMOTE),
}
"""Carriers while a mode is set, after it was set, or while another thread has set it."""

CARRIERS: Mapping[str, str] = {**OPERATIONS, **MODES}
