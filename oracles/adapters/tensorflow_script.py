"""Reproduction scripts for TensorFlow."""

from __future__ import annotations

from collections.abc import Mapping

from oracles.adapters.script_text import given, masked, printed
from oracles.protocol import Bits
from specs.cases import Case
from specs.formats import format_named

HEADER = """\
# tensorflow {version}: {case}
import os

os.environ |= {{"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3", "NPROC": "1"}}

import numpy as np
import tensorflow as tf
"""

EAGER = """\
x = tf.convert_to_tensor(bits.view(tf.as_dtype("{source}").as_numpy_dtype))
y = tf.cast(x, "{target}")
"""

TRACED = """\
x = tf.convert_to_tensor(bits.view(tf.as_dtype("{source}").as_numpy_dtype))
y = tf.function(lambda x: tf.cast(x, "{target}"), {options})(x)
"""

IMPORT = "from tensorflow.core.framework.tensor_pb2 import TensorProto\n"

FOLDED = """\
shape = tf.TensorShape([1, len(bits)]).as_proto()  # XLA makes a row that counts from 0 an iota
dtype = tf.as_dtype("{source}").as_datatype_enum
constant = TensorProto(dtype=dtype, tensor_shape=shape, tensor_content=bits.tobytes())
cast = tf.function(
    lambda: tf.cast(tf.constant(constant), "{target}"), {options}
)
y = cast()
"""


def reproduction(
    version: str,
    case: Case,
    bits: Bits,
    types: Mapping[str, str],
    options: Mapping[str, bool] | None,
    *,
    folded: bool,
) -> str:
    """The script of one case; ``options`` are those of its ``tf.function``, where it has one."""
    call = FOLDED if folded else EAGER if options is None else TRACED
    return (
        HEADER.format(version=version, case=case)
        + (IMPORT if folded else "")
        + f"\n{given(case.source, bits)}\n"
        + call.format(
            source=types[case.source],
            target=types[case.target],
            options=", ".join(f"{name}={value}" for name, value in (options or {}).items()),
        )
        + f"answers = y.numpy(){'[0]' if folded else ''}"
        + f'.view("{format_named(case.target).storage}"){masked(case.target)}\n'
        + printed(case.source, case.target)
    )
