"""Runs exported ONNX tests, as their page says that they are to be run, and reads ONNX's own."""

from __future__ import annotations

import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from oracles.adapters.tensor_memory import ort_value_buffer, patterns_of_ort_value
from oracles.memory_layouts import is_packed, unpack
from specs.formats import Format, format_named, formats


def node_tests(operator: str) -> list[Any]:
    """ONNX's own tests of an operator as one node, without those of its expansion into others.

    The operator's module makes them when it is imported. Nothing else is collected, so those of the
    other operators are not made.
    """
    made = import_module("onnx.backend.test.case.node")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import_module(f"{made.__name__}.{operator.lower()}")
    single = (test for test in made._NodeTestCases if len(test.model.graph.node) == 1)
    return [test for test in single if test.model.graph.node[0].op_type == operator]


def form_of(tensor: Any) -> Format:
    import onnx

    name = onnx.TensorProto.DataType.Name(tensor.data_type).lower()
    return format_named({"float": "float32", "double": "float64"}.get(name, name))


def read(file: Path) -> Any:
    import onnx

    tensor = onnx.TensorProto()
    tensor.ParseFromString(file.read_bytes())
    return tensor


def bits_of(tensor: Any) -> Any:
    """The patterns in a tensor, read from its raw bytes."""
    form, shape = form_of(tensor), tuple(tensor.dims)
    if form.kind == "text":
        return np.array([each.decode() for each in tensor.string_data], object).reshape(shape)
    raw = np.frombuffer(tensor.raw_data, np.uint8)
    if is_packed(form):
        return unpack(raw, int(np.prod(shape, dtype=int)), form.bits).reshape(shape)
    return raw.view(form.storage).reshape(shape)


def wrong(form: Format, expected: Any, answers: Any) -> Any:
    """Which answers differ; where a NaN is expected any NaN will do."""
    assert expected.shape == answers.shape

    def nan(codes: Any) -> Any:
        found = np.zeros(codes.shape, bool)
        for part in form.nan_codes if form.kind == "float" else ():
            found |= (codes >= part.start) & (codes < part.stop)
        return found

    return ~((expected == answers) | (nan(expected) & nan(answers)))


def by_evaluator(test: Path, given: Any, target: Format) -> Any:
    import onnx
    from onnx.reference import ReferenceEvaluator

    model = onnx.load(test / "model.onnx")
    with np.errstate(all="ignore"):
        (y,) = ReferenceEvaluator(model).run(None, {"x": onnx.numpy_helper.to_array(given)})
    if target.kind == "text":
        return np.asarray(y, object)
    codes = np.asarray(y).view(target.storage)
    return codes & target.mask if is_packed(target) else codes


def by_ort(test: Path, given: Any, target: Format) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        (test / "model.onnx").read_bytes(), options, providers=["CPUExecutionProvider"]
    )
    bits = bits_of(given)
    if form_of(given).kind == "text":
        return np.asarray(session.run(None, {"x": bits})[0], target.storage)
    value = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(
        ort_value_buffer(form_of(given), np.ascontiguousarray(bits)), given.data_type
    )
    (y,) = session.run_with_ort_values(None, {"x": value})
    return patterns_of_ort_value(target, y)


def failing(test: Path, run: Any) -> list[Any]:
    """The inputs that a runtime answers otherwise than expected, over all data sets of a test."""
    found: list[Any] = []
    for data in sorted(test.glob("test_data_set_*")):
        given, due = read(data / "input_0.pb"), read(data / "output_0.pb")
        target = form_of(due)
        assert target.name in formats()
        differs = wrong(target, bits_of(due), run(test, given, target))
        found += np.asarray(bits_of(given))[differs].reshape(-1).tolist()
    return found
