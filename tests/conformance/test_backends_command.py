"""``castigate backends`` lists the installed backends, and says how to install the others."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version

import pytest

from oracles.registry import BUILTINS, third_party
from tests.conformance.processes import RUNNABLE, castigate

HOSTILE = "tests/conformance/data/hostile.py"


def backends_as_json(*arguments: str, exits: int = 0) -> list[dict[str, object]]:
    code, out, err = castigate("backends", "--json", *arguments)
    assert (code, err) == (exits, "")
    return [json.loads(line) for line in out.splitlines()]


def test_a_backend_is_described_with_what_it_supports() -> None:
    [found] = backends_as_json("ml_dtypes")
    assert (found["name"], found["reason"], found["claims"]) == ("ml_dtypes", None, [])
    assert found["operations"] == ["cast", "bitcast"]
    assert {"float32", "float8e8m0", "int4", "string"} <= set(found["dtypes"])  # type: ignore[call-overload]
    assert found["smoke"] == {}


@pytest.mark.parametrize("name", ["reference", "onnx", f"{HOSTILE}:QuantizesOnly"])
def test_a_backend_that_quantizes_is_listed_with_it(name: str) -> None:
    [found] = backends_as_json(name)
    assert "quantize" in found["operations"]  # type: ignore[operator]


@pytest.mark.nightly
def test_variants_are_listed_and_described() -> None:
    [whole, variant] = backends_as_json("torch", "torch:view")
    assert whole["variants"] == list(BUILTINS["torch"].variants)
    assert (variant["name"], variant["variants"]) == ("torch:view", [])


def test_a_backend_that_changes_bits_is_reported_by_dtype() -> None:
    [found] = backends_as_json(f"{HOSTILE}:ChangesOnTheWay")
    assert list(found["smoke"]) == ["float16"]  # type: ignore[call-overload]
    assert set(found["smoke"]) <= set(found["dtypes"])  # type: ignore[call-overload]


@pytest.mark.parametrize("name", ["cinn", "pypto"])
def test_a_backend_outside_pypi_says_how_to_install_it(name: str) -> None:
    [found] = backends_as_json(name, exits=2)
    assert found["version"] is None
    assert str(found["reason"]).startswith("is not installed: ")


def test_a_backend_that_cannot_be_loaded_is_a_line_among_others() -> None:
    code, out, err = castigate("backends", f"{RUNNABLE}:SegfaultsLoading", "reference")
    assert (code, err) == (2, "")
    first, second, *_ = out.splitlines()
    assert first.startswith(f"{RUNNABLE}:SegfaultsLoading: was ended by SIGSEGV")
    assert second.startswith("reference ")


def test_backends_are_listed_by_their_metadata_and_none_is_imported() -> None:
    code = (
        "import sys; from conformance.commands.main import main\n"
        "sys.argv = ['castigate', 'backends']\n"
        "try:\n    main()\nfinally:\n"
        "    print({'onnxruntime', 'torch', 'onnx', 'ml_dtypes'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert lines[-1] == "set()"
    assert f"ml_dtypes      {version('ml_dtypes')}" in lines
    assert "castigate backends NAME shows what a backend claims and supports" in lines


def test_the_list_in_json_has_what_is_not_installed_too() -> None:
    found = {str(each["name"]): each for each in backends_as_json()}
    assert [*found] == [*BUILTINS, *third_party()]
    assert found["ml_dtypes"]["version"] == version("ml_dtypes")
    assert found["pypto"] == {"name": "pypto", "version": None, "extra": None}
