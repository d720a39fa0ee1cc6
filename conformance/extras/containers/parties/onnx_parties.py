"""TensorProto by the onnx package and onnx-ir; by onnxruntime and openvino as an initializer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from conformance.extras.containers.parties.numpy_arrays import Arrays
from conformance.extras.containers.parties.party import ContainerRoad, Party, tensor
from conformance.extras.containers.parties.text_onnx import NAMES, number_of, write_tensor
from oracles.adapters.openvino_tensors import DTYPES as OPENVINO_DTYPES
from oracles.adapters.refusals import first_line, load
from oracles.adapters.tensor_memory import patterns_in, patterns_of_ort_value
from oracles.protocol import Bits, Tensor, Unsupported
from specs.cases import Case
from specs.formats import format_named, formats

MAKE = "import ml_dtypes, onnx.helper, onnx.numpy_helper\nx = bits.view({dtype})\n"
READ = (
    "import onnx.numpy_helper\n"
    "y = onnx.numpy_helper.to_array(onnx.TensorProto.FromString(content))\n"
)
SERIALIZE = "content = made.SerializeToString()\n"
ONLY_FATAL = 4
IR_VERSION, OPSET = 13, 25

OPENVINO_NAMES = {word: name for name, word in OPENVINO_DTYPES.items()}


class OnnxParty(Party):
    """Writes a TensorProto by `from_array` or `helper.make_tensor`, and reads it by `to_array`."""

    name = "onnx"

    def __init__(self) -> None:
        self._onnx: Any = load("onnx", "onnx")
        self._helper: Any = load("onnx.helper", "onnx")
        self._numpy_helper: Any = load("onnx.numpy_helper", "onnx")
        self._arrays = Arrays()
        self.version = str(self._onnx.__version__)
        super().__init__()

    def roads(self) -> Mapping[str, ContainerRoad]:
        """Return how onnx writes and reads a TensorProto by `raw_data` and by its dtype's field."""
        raw = MAKE + 'made = onnx.numpy_helper.from_array(x, "x")\n' + SERIALIZE
        typed = (
            MAKE
            + "number = onnx.helper.np_dtype_to_tensor_dtype(x.dtype)\n"
            + 'made = onnx.helper.make_tensor("x", number, x.shape, x.ravel())\n'
            + SERIALIZE
        )
        return {
            "onnx-raw": ContainerRoad(self._from_array, self._to_array, raw, READ),
            "onnx-typed": ContainerRoad(self._make_tensor, self._to_array, typed, READ),
        }

    def dtype_expression(self, dtype: str) -> str:
        """Return numpy's or ml_dtypes' expression for a dtype, as scripts use it."""
        return self._arrays.expression(dtype)

    def _from_array(self, case: Case, bits: Bits) -> bytes:
        number_of(case.source)
        made = self._numpy_helper.from_array(self._arrays.array(case, bits), "x")
        content: bytes = made.SerializeToString()
        return content

    def _make_tensor(self, case: Case, bits: Bits) -> bytes:
        array, number = self._arrays.array(case, bits), number_of(case.source)
        made = self._helper.make_tensor("x", number, array.shape, array.ravel())
        content: bytes = made.SerializeToString()
        return content

    def _to_array(self, case: Case, content: bytes) -> Tensor:
        return self._arrays.read(
            self._numpy_helper.to_array(self._onnx.TensorProto.FromString(content))
        )


class OnnxIrParty(Party):
    """Writes a TensorProto by serializing `onnx_ir.tensor`; reads one by `onnx_ir.from_proto`."""

    name = "onnx_ir"

    def __init__(self) -> None:
        self._onnx: Any = load("onnx", "onnx")
        self._ir: Any = load("onnx_ir", "onnx")
        self._arrays = Arrays()
        self.version = str(self._ir.__version__)
        super().__init__()

    def roads(self) -> Mapping[str, ContainerRoad]:
        """Return how onnx-ir reads a TensorProto by `raw_data`, and by its dtype's field.

        It writes `raw_data` only.
        """
        read = (
            "import onnx, onnx_ir\n"
            "y = onnx_ir.from_proto(onnx.TensorProto.FromString(content)).numpy()\n"
        )
        write = (
            "import ml_dtypes, onnx_ir\nx = bits.view({dtype})\n"
            'content = onnx_ir.to_proto(onnx_ir.tensor(x, name="x")).SerializeToString()\n'
        )
        return {
            "onnx-raw": ContainerRoad(self._write, self._read, write, read),
            "onnx-typed": ContainerRoad(None, self._read, "", read),
        }

    def dtype_expression(self, dtype: str) -> str:
        """Return numpy's or ml_dtypes' expression for a dtype, as scripts use it."""
        return self._arrays.expression(dtype)

    def _write(self, case: Case, bits: Bits) -> bytes:
        number_of(case.source)
        made = self._ir.tensor(self._arrays.array(case, bits), name="x")
        content: bytes = self._ir.to_proto(made).SerializeToString()
        return content

    def _read(self, case: Case, content: bytes) -> Tensor:
        proto = self._onnx.TensorProto.FromString(content)
        return self._arrays.read(self._ir.from_proto(proto).numpy())


class OrtParty(Party):
    """Reads a TensorProto by running a model that outputs it as an initializer.

    It writes one by loading a model with the initializer that `text` writes, and saving the model
    by onnxruntime.
    """

    name = "ort"

    def __init__(self) -> None:
        self._ort: Any = load("onnxruntime", "ort")
        self._states: Any = load("onnxruntime.capi.onnxruntime_pybind11_state", "ort")
        self._onnx: Any = load("onnx", "ort")
        self._helper: Any = load("onnx.helper", "ort")
        self.version = str(self._ort.__version__)
        super().__init__()

    def roads(self) -> Mapping[str, ContainerRoad]:
        """Return how onnxruntime reads a TensorProto by `raw_data`, and by its dtype's field.

        It writes `raw_data` only.
        """
        read = (
            "import onnx.helper, onnxruntime\n"
            "x = onnx.TensorProto.FromString(content)\n"
            "out = onnx.helper.make_tensor_value_info('x', x.data_type, x.dims)\n"
            "graph = onnx.helper.make_graph([], 'g', [], [out], [x])\n"
            f"opsets = [onnx.helper.make_opsetid('', {OPSET})]\n"
            "model = onnx.helper.make_model(\n"
            f"    graph, opset_imports=opsets, ir_version={IR_VERSION})\n"
            "session = onnxruntime.InferenceSession(model.SerializeToString())\n"
            "y = session.run_with_ort_values(['x'], {{}})[0].numpy()\n"
        )
        return {
            "onnx-raw": ContainerRoad(self._write, self._read, "", read),
            "onnx-typed": ContainerRoad(None, self._read, "", read),
        }

    def _write(self, case: Case, bits: Bits) -> bytes:
        if case.modes:
            raise Unsupported("onnxruntime takes no arrays of the other byte order")
        content = write_tensor(case.source, bits, is_raw=True)
        with TemporaryDirectory() as folder:
            written = Path(folder, "written.onnx")
            self._session(content, written)
            [found] = self._onnx.load(written).graph.initializer
            again: bytes = found.SerializeToString()
            return again

    def _read(self, case: Case, content: bytes) -> Tensor:
        binding = self._session(content).io_binding()
        binding.bind_output("x")
        self._session_run(binding)
        (value,) = binding.get_outputs()
        dtype = NAMES[value.element_type()]
        return tensor(dtype, patterns_of_ort_value(format_named(dtype), value))

    def _session_run(self, binding: Any) -> None:
        self._refusing(partial(self._current.run_with_iobinding, binding))

    def _session(self, content: bytes, written: Path | None = None) -> Any:
        proto, helper = self._onnx.TensorProto.FromString(content), self._helper
        output = helper.make_tensor_value_info("x", proto.data_type, [*proto.dims])
        graph = helper.make_graph([], "initializer", [], [output], [proto])
        opsets = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
        options = self._ort.SessionOptions()
        options.graph_optimization_level = self._ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = ONLY_FATAL
        options.intra_op_num_threads = 1
        if written is not None:
            options.optimized_model_filepath = str(written)
        open_session = partial(
            self._ort.InferenceSession,
            model.SerializeToString(),
            options,
            providers=["CPUExecutionProvider"],
        )
        self._current: Any = self._refusing(open_session)
        return self._current

    def _refusing(self, call: Callable[[], Any]) -> Any:
        states = self._states
        try:
            return call()
        except (states.NotImplemented, states.Fail, states.InvalidGraph) as error:
            raise Unsupported(first_line(error)) from None


class OpenVinoParty(Party):
    """Reads a TensorProto by openvino's ONNX front end, which makes a constant of it."""

    name = "openvino"

    def __init__(self) -> None:
        self._openvino: Any = load("openvino", "openvino")
        self._core = self._openvino.Core()
        self._onnx: Any = load("onnx", "onnx")
        self._helper: Any = load("onnx.helper", "onnx")
        self.version = str(self._openvino.__version__).partition("-")[0]
        super().__init__()

    def roads(self) -> Mapping[str, ContainerRoad]:
        """Return how openvino reads a TensorProto by `raw_data`, and by its dtype's field."""
        read = (
            "import onnx.helper, openvino\n"
            "x = onnx.TensorProto.FromString(content)\n"
            "out = onnx.helper.make_tensor_value_info('x', x.data_type, x.dims)\n"
            "model = onnx.helper.make_model(onnx.helper.make_graph([], 'g', [], [out], [x]))\n"
            "found = openvino.Core().read_model(model.SerializeToString()).get_ops()\n"
            "y = next(each for each in found if each.get_type_name() == 'Constant').data\n"
        )
        return {
            name: ContainerRoad(None, self._read, "", read) for name in ("onnx-raw", "onnx-typed")
        }

    def _read(self, case: Case, content: bytes) -> Tensor:
        proto, helper = self._onnx.TensorProto.FromString(content), self._helper
        output = helper.make_tensor_value_info("x", proto.data_type, [*proto.dims])
        graph = helper.make_graph([], "initializer", [], [output], [proto])
        opsets = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
        try:
            operations = self._core.read_model(model.SerializeToString()).get_ops()
        except RuntimeError as error:
            raise Unsupported(last_line(error)) from None
        found = next(each for each in operations if each.get_type_name() == "Constant")
        name = found.get_element_type().get_type_name()
        dtype, shape = OPENVINO_NAMES.get(name, name), tuple(found.shape)
        if dtype not in formats():
            raise ValueError(f"the constant has the type {name}")
        memory = np.frombuffer(found.data.tobytes(), np.uint8)
        return tensor(dtype, patterns_in(memory, format_named(dtype), prod(shape)).reshape(shape))


def last_line(error: Exception) -> str:
    """Return the last line of an error's text that is not blank; there must be one.

    Openvino's messages begin with the names of files.
    """
    return next(line for line in reversed(str(error).splitlines()) if line.strip())
