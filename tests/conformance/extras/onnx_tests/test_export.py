"""``castigate export onnx``: its folders, and two runtimes that take them."""

from __future__ import annotations

import errno
import json
import unittest
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from conformance.extras.onnx_tests.command import folder_of
from conformance.extras.onnx_tests.tests import MAX_INPUTS, exported_case
from conformance.families.cast.quick_inputs import few_inputs, quick_inputs
from oracles.reference.exact import decode
from specs.formats import format_named
from specs.ruling import ruling
from specs.selection import case_named
from tests.conformance.onnx_tests import bits_of, by_evaluator, by_ort, failing, form_of, read
from tests.conformance.processes import castigate, castigate_process

CAST = "--document=onnx-cast:25"


def export_onnx(folder: Path, *arguments: str) -> dict[str, Any]:
    code, out, err = castigate("export", "onnx", *arguments, f"--out={folder}")
    assert (code, err) == (0, "")
    index: dict[str, Any] = json.loads((folder / "index.json").read_text())
    assert f"{len(index['tests'])} tests of " in out
    return index


def names_of(index: dict[str, Any]) -> set[str]:
    """The names of the tests' folders; all are in the folder of their document."""
    for test in index["tests"]:
        assert Path(test["folder"]).parent == Path(test["document"])
    return {Path(test["folder"]).name for test in index["tests"]}


def only_test(index: dict[str, Any]) -> str:
    [test] = index["tests"]
    return str(test["folder"])


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """An export of all casts from a small float."""
    folder = tmp_path_factory.mktemp("narrow") / "tests"
    return folder / "onnx-cast", export_onnx(folder, CAST, "--source=float8e5m2")


def test_every_case_is_exported_or_has_a_reason(narrow: tuple[Path, dict[str, Any]]) -> None:
    node, index = narrow
    assert {path.name for path in node.iterdir()} == names_of(index)
    left_out = index["left-out"]
    for test in index["tests"]:
        assert test["folder"] == f"onnx-cast/{folder_of(case_named(test['case']))}"
        left = sum(left_out["inputs"].get(test["case"], {}).values())
        assert test["inputs"] == sum(test["levels"].values())
        assert test["inputs"] + left == 256
    assert left_out["cases"]["onnx-cast:25/float8e5m2/complex64"] == "to be refused"


def test_onnxs_checker_accepts_every_model(narrow: tuple[Path, dict[str, Any]]) -> None:
    onnx = pytest.importorskip("onnx")
    node, index = narrow
    for entry in index["tests"]:
        test = node.parent / entry["folder"]
        names = sorted(str(path.relative_to(test)) for path in test.rglob("*.*"))
        assert names == [
            "data.json",
            "model.onnx",
            "test_data_set_0/input_0.pb",
            "test_data_set_0/output_0.pb",
        ]
        model = onnx.load(test / "model.onnx")
        onnx.checker.check_model(model, full_check=True)
        [x], [y] = model.graph.input, model.graph.output
        given, due = read(test / names[2]), read(test / names[3])
        assert (given.name, due.name) == (x.name, y.name)
        assert given.data_type == x.type.tensor_type.elem_type
        assert due.data_type == y.type.tensor_type.elem_type
        assert list(given.dims) == list(due.dims) == [entry["inputs"]]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of its own cases
def test_onnxs_loader_finds_the_tests(narrow: tuple[Path, dict[str, Any]]) -> None:
    loader = pytest.importorskip("onnx.backend.test.loader")
    node, index = narrow
    found = loader.load_model_tests(data_dir=str(node.parent), kind="onnx-cast")
    assert {test.name for test in found} == names_of(index)
    assert {(test.rtol, test.atol) for test in found} == {(0, 0)}


@pytest.mark.parametrize("run", [by_evaluator, by_ort])
def test_correct_runtimes_pass(run: Any, narrow: tuple[Path, dict[str, Any]]) -> None:
    pytest.importorskip("onnxruntime")
    node, _ = narrow
    for target in ("float32", "float16", "bfloat16"):
        assert failing(node / f"test_onnx_cast_25_float8e5m2_{target}", run) == []


def test_a_wrong_answer_of_a_runtime_fails(narrow: tuple[Path, dict[str, Any]]) -> None:
    pytest.importorskip("onnxruntime")
    # A known fault of onnxruntime: -0 is true.
    assert failing(narrow[0] / "test_onnx_cast_25_float8e5m2_bool", by_ort) == [0x80]


def test_open_inputs_are_left_out_and_nans_are_in(narrow: tuple[Path, dict[str, Any]]) -> None:
    node, index = narrow
    name = "test_onnx_cast_25_float8e5m2_int8"
    data = node / name / "test_data_set_0"
    given = set(bits_of(read(data / "input_0.pb")).tolist())
    numbers = {code for code in range(256) if not code & 0x7F >= 0x7C}
    assert given < numbers
    left_out = index["left-out"]["inputs"]["onnx-cast:25/float8e5m2/int8"]
    assert left_out == {"open": 256 - len(given)}
    given = set(bits_of(read(node / name.replace("int8", "float32") / data.name / "input_0.pb")))
    assert given == set(range(256))


def test_packed_formats_and_texts_are_read_back(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    index = export_onnx(tmp_path / "4", CAST, "--source=int4", "--target=float4e2m1")
    data = tmp_path / "4" / only_test(index) / "test_data_set_0"
    assert bits_of(read(data / "input_0.pb")).tolist() == list(range(16))
    assert form_of(read(data / "output_0.pb")).name == "float4e2m1"
    index = export_onnx(tmp_path / "s", CAST, "--source=string", "--target=float32")
    groups = {test["group"]: tmp_path / "s" / test["folder"] for test in index["tests"]}
    asked = bits_of(read(groups["ordinary"] / "test_data_set_0" / "input_0.pb")).tolist()
    assert "3.14" in asked
    assert "Hello World!" not in asked
    # The evaluator parses by way of float64, so a text next to a tie is rounded twice.
    failed = {group: failing(test, by_evaluator) for group, test in groups.items()}
    near_ties = {"digits", "subnormal", "underflow", "overflow"}
    assert {group for group, inputs in failed.items() if inputs} == near_ties


def test_bitcasts_keep_their_shapes(tmp_path: Path) -> None:
    arguments = ("--document=onnx-bitcast", "--source=float16", "--target=bfloat16")
    index = export_onnx(tmp_path / "out", *arguments)
    for test in index["tests"]:
        folder = tmp_path / "out" / test["folder"]
        shape = test["case"].partition("shape:")[2]
        given = read(folder / "test_data_set_0" / "input_0.pb")
        assert "x".join(map(str, given.dims)) == ("" if shape == "scalar" else shape)
        assert failing(folder, by_evaluator) == []
    assert len(index["tests"]) == 4


def test_a_wide_source_has_breakpoints_and_specials_as_inputs() -> None:
    case = case_named("onnx-cast:25/float32/float16")
    inputs = few_inputs(case, ruling(case), MAX_INPUTS)
    assert 8_000 < inputs.size <= MAX_INPUTS
    assert np.isin(inputs, quick_inputs("float32", "float16", 0, 0)).all()
    for special in (0, 1 << 31, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 1, 0x7F7FFFFF):
        assert special in inputs
    # Ties go to even: both kinds are asked.
    ties = inputs[(inputs & 0x1FFF) == 0x1000]
    assert len({int(code) >> 13 & 1 for code in ties}) == 2
    assert decode(format_named("float32"), 0x477FF000) is not None
    assert 0x477FF000 in inputs  # the middle between the largest float16 and infinity


@pytest.mark.parametrize(
    ("case", "why"),
    [
        ("onnx-cast:25/float32/complex64", "to be refused"),
        ("onnx-cast:25/int8/string", "several answers are right"),
        ("onnx-bitcast:26/float32/int8/shape:3", "to be refused"),
        ("onnx-bitcast:26/int8/bool/shape:3", "open"),
    ],
)
def test_a_case_without_a_single_answer_is_left_out(case: str, why: str) -> None:
    exported = exported_case(case_named(case))
    assert (exported.tests, exported.why_no_test) == ((), why)


def test_bad_usage_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for arguments, message in (
        (["--document=pypto-cast"], "document `pypto-cast` is not exported"),
        (["--source=int4"], "is not empty; give a new folder"),
    ):
        code, out, err = castigate("export", "onnx", *arguments, f"--out={tmp_path}")
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert message in err


FEW = (CAST, "--source=int4", "--target=int2", "--target=uint2")
FILES = 2 * 4 + 1
"""Two tests of four files, and the index."""


def failing_at(number: int, error: BaseException) -> Callable[..., None]:
    """Write files, but raise an error at one of them, after a part of its content."""
    opened, calls = Path.open, count(1)

    def write(path: Path, content: bytes | str, *_: Any, **__: Any) -> None:
        fails = next(calls) == number
        with opened(path, "wb") as stream:
            data = content.encode() if isinstance(content, str) else content
            stream.write(data[: len(data) // 2] if fails else data)
        if fails:
            raise error

    return write


@pytest.mark.parametrize("is_there", [False, True])
@pytest.mark.parametrize("number", [1, 2, FILES - 1, FILES])
@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (OSError(errno.ENOSPC, "full"), 2, "cannot write OUT: full; give another --out"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_an_export_that_cannot_be_written_leaves_nothing(
    error: BaseException, code: int, message: str, number: int, is_there: bool, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    if is_there:
        out.mkdir()
    write = failing_at(number, error)
    with patch.object(Path, "write_bytes", write), patch.object(Path, "write_text", write):
        found = castigate("export", "onnx", *FEW, f"--out={out}")
    assert found == (code, "", f"castigate: {message.replace('OUT', str(out))}\n")
    assert [*tmp_path.rglob("*")] == ([out] if is_there else [])


LIMITED = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({0}, {0})); "


@pytest.mark.parametrize("size", [16, 512])
def test_an_export_that_the_system_refuses_to_write_leaves_nothing(
    size: int, tmp_path: Path
) -> None:
    """At 16 bytes the first file is too large, at 512 the index, which is the last."""
    out = tmp_path / "out"
    code, _, err = castigate_process(
        "export", "onnx", *FEW, f"--out={out}", before=LIMITED.format(size)
    )
    assert code == 2
    assert err == f"castigate: cannot write {out}: File too large; give another --out\n"
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("is_there", [False, True])
def test_an_export_is_all_that_is_in_its_folder(is_there: bool, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    if is_there:
        out.mkdir(parents=True)
    index = export_onnx(out, *FEW)
    assert sorted(each.name for each in out.iterdir()) == ["index.json", "onnx-cast"]
    assert len([each for each in out.rglob("*") if each.is_file()]) == FILES
    assert {test["target"] for test in index["tests"]} == {"int2", "uint2"}


class EvaluatorBackend:
    """ONNX's reference evaluator as a backend for ONNX's own runner."""

    def __init__(self, model: Any) -> None:
        from onnx.reference import ReferenceEvaluator

        self.evaluator = ReferenceEvaluator(model)

    @classmethod
    def prepare(cls, model: Any, device: str, **options: Any) -> Any:
        return cls(model)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device == "CPU"

    def run(self, inputs: list[Any]) -> Any:
        with np.errstate(all="ignore"):
            return self.evaluator.run(None, {"x": inputs[0]})


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """An export of all casts from string."""
    folder = tmp_path_factory.mktemp("texts") / "tests"
    return folder, export_onnx(folder, CAST, "--source=string")


def failed_by(backend: Any, folder: Path, chosen: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """The targets and groups of the tests that fail in ONNX's own runner."""
    from onnx.backend.test.loader import load_model_tests
    from onnx.backend.test.runner import Runner

    # The runner would add tests to onnx's own list of tests, which another test reads.
    with patch("onnx.backend.test.runner.load_model_tests", return_value=[]):
        runner = Runner(backend)
    tests = {Path(test["folder"]).name: test for test in chosen}
    for each in load_model_tests(data_dir=str(folder), kind="onnx-cast"):
        if each.name in tests:
            runner._add_model_test(each, "Chosen")
    cases = runner.test_cases["OnnxBackendChosenModelTest"]
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(cases).run(result)
    assert result.testsRun >= len(tests)
    wrong = result.failures + result.errors
    names = [case.id().rpartition(".")[2].removesuffix("_cpu") for case, _ in wrong]
    return sorted((tests[name]["target"], tests[name]["group"]) for name in names)


@pytest.mark.filterwarnings("ignore")  # of onnx's and onnxruntime's own code
def test_in_onnxs_runner_a_group_that_cannot_be_parsed_fails_alone(
    texts: tuple[Path, dict[str, Any]],
) -> None:
    backends = pytest.importorskip("onnxruntime.backend.backend")
    folder, index = texts
    dtypes = {"string", "float32", "float64", "int64", "uint8"}
    chosen = [test for test in index["tests"] if {test["source"], test["target"]} <= dtypes]
    assert len(chosen) == 26
    # It parses with stof and stod, which raise an error for all that is not a normal number. Just
    # below the tie after the largest float32 it answers infinity.
    assert failed_by(backends.OnnxRuntimeBackend, folder, chosen) == [
        ("float32", "digits"),
        ("float32", "overflow"),
        ("float32", "subnormal"),
        ("float32", "underflow"),
        ("float64", "subnormal"),
        ("float64", "underflow"),
    ]
    # It rounds twice, by way of float64.
    near_ties = ("digits", "overflow", "subnormal", "underflow")
    assert failed_by(EvaluatorBackend, folder, chosen) == [("float32", each) for each in near_ties]


def test_the_index_lists_the_folders_of_each_dtype(texts: tuple[Path, dict[str, Any]]) -> None:
    folder, index = texts
    assert set(index["dtypes"]) == {
        test[end] for test in index["tests"] for end in ("source", "target")
    }
    for dtype, folders in index["dtypes"].items():
        assert folders == [
            test["folder"] for test in index["tests"] if dtype in (test["source"], test["target"])
        ]
    [test] = [
        test
        for test in index["tests"]
        if (test["case"], test["group"])
        == ("onnx-cast:25/string/float8e5m2/saturate:1", "underflow")
    ]
    size = test.pop("inputs")
    assert test == {
        "folder": "onnx-cast/test_onnx_cast_25_string_float8e5m2_saturate_1_underflow",
        "case": "onnx-cast:25/string/float8e5m2/saturate:1",
        "document": "onnx-cast",
        "version": "25",
        "operation": "cast",
        "source": "string",
        "target": "float8e5m2",
        "parameters": {"saturate": "1"},
        "group": "underflow",
        "levels": {"recommended": size},
    }
    assert (folder / test["folder"] / "model.onnx").is_file()
