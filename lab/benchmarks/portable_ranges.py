"""Checks the ranges that ``castigate portable --json`` wrote, by each framework's own calls.

Nothing here imports the suite: each framework is one function of a few lines from an array of
floats to an array of the target. In each range, random inputs and both ends must get equal bits
from all; the neighbor outside each end must not.

    castigate portable ort torch --pair float32/uint8 --json FILE
    python -m lab.benchmarks.portable_ranges FILE
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

INPUTS = 100_000
Cast = Callable[[Any, str], Any]


def dtype_of(name: str) -> Any:
    """The numpy dtype of a name, those of ml_dtypes among them."""
    return np.dtype(ml_dtypes.float8_e4m3fn if name == "float8e4m3fn" else name)


def by_numpy(x: Any, target: str) -> Any:
    """Cast floats by numpy, to its own dtypes or those of ml_dtypes."""
    with np.errstate(all="ignore"):
        return x.astype(dtype_of(target))


def by_torch(x: Any, target: str) -> Any:
    """Cast floats by torch's ``Tensor.to``."""
    import torch

    dtype = getattr(torch, {"float8e4m3fn": "float8_e4m3fn"}.get(target, target))
    y = torch.from_numpy(x).to(dtype)
    return y.view(getattr(torch, f"uint{8 * y.element_size()}")).numpy()


def _onnx_model(x: Any, target: str) -> Any:
    import onnx
    from onnx import TensorProto, helper

    name = {"float8e4m3fn": "FLOAT8E4M3FN"}.get(target, target.upper())
    to = getattr(TensorProto, name)
    node = helper.make_node("Cast", ["x"], ["y"], to=to)
    given = helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), [None])
    made = helper.make_tensor_value_info("y", to, [None])
    graph = helper.make_graph([node], "cast", [given], [made])
    opset = helper.make_opsetid("", 24)
    return onnx.helper.make_model(graph, opset_imports=[opset], ir_version=10), to


def by_ort(x: Any, target: str) -> Any:
    """Cast floats by onnxruntime: a graph of one Cast, optimizers as they are."""
    import onnxruntime as ort

    model, to = _onnx_model(x, target)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    y = ort.OrtValue.ortvalue_from_shape_and_type(x.shape, to, "cpu")
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", ort.OrtValue.ortvalue_from_numpy(x))
    binding.bind_ortvalue_output("y", y)
    session.run_with_iobinding(binding)
    return y.numpy() if target != "float8e4m3fn" else _bytes_at(y.data_ptr(), x.size)


def _bytes_at(address: int, count: int) -> Any:
    import ctypes

    return np.frombuffer(ctypes.string_at(address, count), np.uint8)


def by_onnx(x: Any, target: str) -> Any:
    """Cast floats by onnx's reference evaluator."""
    from onnx.reference import ReferenceEvaluator

    with np.errstate(all="ignore"):
        return ReferenceEvaluator(_onnx_model(x, target)[0]).run(None, {"x": x})[0]


def by_jax(x: Any, target: str) -> Any:
    """Cast floats by JAX's ``lax.convert_element_type``, compiled."""
    import jax

    jax.config.update("jax_enable_x64", True)
    return np.asarray(jax.jit(lambda a: jax.lax.convert_element_type(a, dtype_of(target)))(x))


def by_tensorflow(x: Any, target: str) -> Any:
    """Cast floats by TensorFlow's ``tf.cast``."""
    import tensorflow as tf

    dtype = tf.dtypes.experimental.float8_e4m3fn if "8e" in target else tf.as_dtype(target)
    return tf.cast(tf.constant(x), dtype).numpy()


def by_paddle(x: Any, target: str) -> Any:
    """Cast floats by Paddle's ``Tensor.cast``."""
    import paddle

    y = paddle.to_tensor(x).cast(getattr(paddle, target.replace("8e", "8_e")))
    return np.from_dlpack(y.view(paddle.uint8) if "8e" in target else y)


def by_openvino(x: Any, target: str) -> Any:
    """Cast floats by evaluating an OpenVINO model of one Convert."""
    import openvino as ov
    from openvino import opset15

    short = {"int": "i", "uint": "u", "float": "f"}
    kind = target.rstrip("0123456789")
    dtype = getattr(ov.Type, "f8e4m3" if "8e" in target else short[kind] + target[len(kind) :])
    given = opset15.parameter([x.size], x.dtype.type)
    model = ov.Model([opset15.convert(given, dtype)], [given])
    y = ov.Tensor(dtype, [x.size])
    assert model.evaluate([y], [ov.Tensor(x)])
    return np.frombuffer(y.data.tobytes(), f"uint{8 * dtype_of(target).itemsize}")


def by_tvm(x: Any, target: str) -> Any:
    """Cast floats by TVM: ``te.compute`` of one ``astype``, for the CPU."""
    import tvm
    from tvm import te

    given = te.placeholder((x.size,), str(x.dtype), "x")
    name = {"float8e4m3fn": "float8_e4m3fn"}.get(target, target)
    made = te.compute((x.size,), lambda i: given[i].astype(name), "y")
    built = tvm.compile(te.create_prim_func([given, made]), target="llvm")
    y = tvm.runtime.empty((x.size,), name)
    built["main"](tvm.runtime.tensor(x), y)
    return y.numpy()


def by_wasmtime(x: Any, target: str) -> Any:
    """Cast floats by wasmtime: one ``trunc_sat`` per element."""
    from wasmtime import Engine, Instance, Module, Store

    sign, to = ("u" if target[0] == "u" else "s"), "i" + target.removeprefix("u")[3:]
    source = "f" + str(x.dtype)[5:]
    text = f'(module (func (export "f") (param {source}) (result {to}) local.get 0 {to}'
    store = Store(Engine())
    module = Module(store.engine, f"{text}.trunc_sat_{source}_{sign}))")
    cast = Instance(store, module, []).exports(store)["f"]
    found = [cast(store, float(each)) for each in x]
    return np.array(found, target.removeprefix("u"))


CASTS: dict[str, Cast] = {
    "numpy": by_numpy,
    "ml_dtypes": by_numpy,
    "torch": by_torch,
    "ort": by_ort,
    "onnx": by_onnx,
    "jax": by_jax,
    "tensorflow": by_tensorflow,
    "paddle": by_paddle,
    "openvino": by_openvino,
    "tvm": by_tvm,
    "wasmtime": by_wasmtime,
}


def place_of(pattern: int, source: Any) -> int:
    """The place of a float in the order of values; 0 has the place 0, and -0 the place -1."""
    sign = 1 << (8 * source.itemsize - 1)
    return pattern if pattern < sign else sign - pattern - 1


def floats_at(places: Any, source: Any) -> Any:
    """Return the floats at some places in the order of values, as ``place_of`` counts them."""
    sign = 1 << (8 * source.itemsize - 1)
    negative = (-1 - places).astype(np.uint64) | np.uint64(sign)
    bits = np.where(places < 0, negative, places.astype(np.uint64))
    return bits.astype(f"uint{8 * source.itemsize}").view(source)


def bits_of(answers: Any, target: str) -> Any:
    """The bits of an array, with all NaNs replaced by one."""
    bits = answers.view(f"uint{8 * answers.dtype.itemsize}")
    with np.errstate(all="ignore"):
        nan = np.isnan(bits.view(dtype_of(target)).astype(np.float64))
    return np.where(nan, np.iinfo(bits.dtype).max, bits)


@cache
def process_of(name: str) -> ProcessPoolExecutor:
    """Return a process for one framework only: some frameworks cannot share a process."""
    return ProcessPoolExecutor(1, get_context("spawn"))


def agree(names: list[str], x: Any, target: str) -> Any:
    """Return a mask of the floats for which all frameworks give the same bits."""
    made = [process_of(name).submit(CASTS[name], x, target) for name in names]
    first, *others = (bits_of(each.result(), target) for each in made)
    return np.logical_and.reduce([first == each for each in others])


def check(pair: dict[str, Any]) -> str:
    """Check the widest ranges of a pair, and return the result as one line."""
    source, target = np.dtype(pair["source"]), pair["target"]
    names = [*pair["backends"]]
    inside, outside = [], []
    chance = np.random.default_rng(1)
    bounds = [[place_of(int(each[end], 16), source) for end in ("low", "high")]
              for each in pair["ranges"]]  # fmt: skip
    widest = max(high - low for low, high in bounds)
    last = place_of(int(np.finfo(source).max.view(f"uint{8 * source.itemsize}")), source)
    for low, high in bounds:
        if 1024 * (high - low) >= widest:
            drawn = chance.integers(low, high, INPUTS, np.int64, endpoint=True)
            inside += [low, high, *drawn.tolist()]
            outside += [low - 1] * (low > -1 - last) + [high + 1] * (high < last)
    row = np.array([*inside, *outside, *[0] * (-(len(inside) + len(outside)) % 64)], np.int64)
    same = agree(names, floats_at(row, source), target)
    wrong = np.flatnonzero(~same[: len(inside)])
    missed = np.flatnonzero(same[len(inside) : len(inside) + len(outside)])
    shown = [row[wrong[0]]] if wrong.size else [outside[missed[0]]] if missed.size else []
    first = f", {floats_at(np.array(shown), source)[0]!r} the first" if shown else ""
    return (
        f"{source} to {target}, {len(names)} backends: {wrong.size} of {len(inside):,} inputs "
        f"inside differ, {missed.size} of {len(outside)} neighbors outside agree{first}"
    )


if __name__ == "__main__":
    for each in json.loads(Path(sys.argv[1]).read_text("utf-8"))["pairs"]:
        print(check(each), flush=True)
