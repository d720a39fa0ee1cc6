"""torch.compile: one kernel per pair and rank, whatever the length, and no output."""

from __future__ import annotations

import importlib
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from oracles.protocol import NotInstalled
from tests.adapters.common import bits_of, onnx_case, patterns_of, view_case
from tests.adapters.contract import make


@pytest.fixture(scope="module")
def oracle() -> Any:
    return make("torch", "compile")


def graphs() -> int:
    """Return how many graphs torch has compiled."""
    counters = importlib.import_module("torch._dynamo.utils").counters
    return int(counters["stats"]["unique_graphs"])


def test_one_compilation_serves_all_lengths(oracle: Any) -> None:
    case, before = onnx_case("float16", "int16"), graphs()
    for length in (3, 0, 1, 2, 17, 1000, 100_001):
        bits = np.full(length, 0x4200, np.uint16)
        assert oracle.cast(case, bits).tolist() == [3] * length
    assert graphs() == before + 1


def test_one_compilation_serves_all_steps(oracle: Any) -> None:
    case, memory = onnx_case("float16", "int32"), bits_of("float16", [0x4200, 0x4400] * 30)
    oracle.cast(case, memory[::2])
    before = graphs()
    for step in (2, 3, 5, 7, 11):
        assert oracle.cast(case, memory[::step]).tolist() == ([3, 4] * 30)[::step]
    assert graphs() == before


def test_torch_allows_one_pair_as_many_compilations_as_another(oracle: Any) -> None:
    config: Any = importlib.import_module("torch._dynamo.config")
    with config.patch(recompile_limit=1):
        for target in ("int8", "int16", "int32", "int64"):
            assert oracle.cast(onnx_case("uint8", target), bits_of("uint8", [5])).tolist() == [5]


def test_a_script_compiles(oracle: Any) -> None:
    script = oracle.reproduce(onnx_case("float32", "int8"), bits_of("float32", [0]))
    assert "torch.compile" in script


def test_a_refusal_prints_nothing(oracle: Any, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Exception, match="must be divisible by 4"):
        oracle.bitcast(view_case("uint8", "float32"), bits_of("uint8", [1, 2, 3]))
    assert capfd.readouterr() == ("", "")


def test_without_a_compiler_the_variant_is_not_installed(
    oracle: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder: Any = importlib.import_module("torch._inductor.cpp_builder")
    missing: Any = importlib.import_module("torch._inductor.exc").InvalidCxxCompiler
    monkeypatch.setattr(builder, "get_cpp_compiler", Mock(side_effect=missing))
    with pytest.raises(NotInstalled, match=r"needs a C\+\+ compiler"):
        make("torch", "compile")


def test_kernels_are_cached_in_temp_or_in_the_users_folder(
    oracle: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cache_dirs: Any = importlib.import_module("torch._inductor.runtime.cache_dir_utils")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    assert Path(cache_dirs.cache_dir()) == tmp_path
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR")
    assert Path(cache_dirs.cache_dir()).is_relative_to(tempfile.gettempdir())


def test_a_bitcast_is_compiled_once_for_the_lengths_of_a_rank(oracle: Any) -> None:
    case, before = view_case("float32", "int16"), graphs()
    for shape in ((2, 3), (4, 7), (11, 11), (100, 2)):
        bits = np.full(shape, 0x00020001, np.uint32)
        answer = oracle.bitcast(case, bits)
        assert answer.shape == (shape[0], 2 * shape[1])
        assert patterns_of(answer.ravel()) == [1, 2] * bits.size
    assert graphs() == before + 1
