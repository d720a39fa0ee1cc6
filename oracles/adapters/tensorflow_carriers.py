"""TensorFlow's carriers: operations that should move or convert the elements of a row exactly."""

from __future__ import annotations

from collections.abc import Mapping

CARRIERS: Mapping[str, str] = {
    # The operation computes, and should give what it gets.
    "multiply-by-one": "tf.math.multiply(x, tf.ones_like(x))",
    "multiply-by-weak-one": "x * 1",
    "divide-by-one": "tf.math.truediv(x, tf.ones_like(x))",
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
    # A mode was set before.
    "under-mixed-precision": (
        'tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")\n'
        "try:\n"
        "    y = tf.math.multiply(x, tf.ones_like(x))\n"
        "finally:\n"
        '    tf.keras.mixed_precision.set_global_policy("float32")\n'
    ),
    "after-no-tensor-float-32": (
        "tf.config.experimental.enable_tensor_float_32_execution(False)\n"
        "tf.config.experimental.enable_tensor_float_32_execution(True)\n"
        "y = tf.linalg.matmul(x[:, tf.newaxis], tf.ones((1, 1), {source}))[:, 0]\n"
    ),
}
