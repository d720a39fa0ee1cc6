"""A command for ``program.py``: runs a model on an input with ONNX's own evaluator."""

import sys

import onnx
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

model, input_path, output_path = sys.argv[1:]
x = numpy_helper.to_array(onnx.load_tensor(input_path))
[y] = ReferenceEvaluator(onnx.load(model)).run(None, {"x": x})
onnx.save_tensor(numpy_helper.from_array(y), output_path)
