"""The exported tests beside ONNX's own: they have every case of those, with more inputs."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from conformance.extras.onnx_tests.command import Exporter
from conformance.extras.onnx_tests.tests import exported_case
from specs.formats import format_named
from specs.selection import case_named, select
from tests.conformance.onnx_tests import node_tests

OPSET = 25
LONG_NAMES = {"FLOAT": "float32", "DOUBLE": "float64"}


def onnxs_own_inputs() -> Iterator[tuple[str, int]]:
    """The case of each of ONNX's own tests of Cast, and the number of its inputs."""
    onnx = pytest.importorskip("onnx")

    def name(number: int) -> str:
        word = onnx.TensorProto.DataType.Name(number)
        return LONG_NAMES.get(word, word.lower())

    for test in node_tests("Cast"):
        [node] = test.model.graph.node
        given = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
        source = name(test.model.graph.input[0].type.tensor_type.elem_type)
        target = name(given.pop("to"))
        modes = {}
        if "float8" in target and source in ("float32", "float16"):
            modes["saturate"] = str(given.pop("saturate", 1))
        if target == "float8e8m0":
            modes["round_mode"] = given.pop("round_mode", b"up").decode()
        assert not given
        words = "".join(f"/{key}:{value}" for key, value in modes.items())
        inputs = test.data_sets[0][0][0]
        yield f"onnx-cast:{OPSET}/{source}/{target}{words}", math.prod(inputs.dims)


@pytest.mark.nightly
def test_the_export_covers_onnxs_own_tests_with_more_inputs() -> None:
    found, exporter = dict(onnxs_own_inputs()), Exporter()
    assert len(found) == 60
    for name, size in found.items():
        case = case_named(name)
        assert not exporter.why_unsupported(case)
        [question] = exported_case(case).tests
        most = 1 << format_named(case.source).bits
        assert question.size > size or question.size >= most - 2, name
    assert set(found) < {case.id for case in select([f"onnx-cast:{OPSET}"])}
