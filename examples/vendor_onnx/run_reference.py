"""A command for ``program.py``: ONNX's own evaluator runs a model on an input."""

import sys

import onnx
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

model, given, wanted = sys.argv[1:]
x = numpy_helper.to_array(onnx.load_tensor(given))
[y] = ReferenceEvaluator(onnx.load(model)).run(None, {"x": x})
onnx.save_tensor(numpy_helper.from_array(y), wanted)
