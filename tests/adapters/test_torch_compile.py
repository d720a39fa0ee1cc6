"""torch.compile: one kernel per pair and rank, whatever the length; nothing left at home."""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from oracles.adapters.torch_tensors import DTYPES
from oracles.protocol import NotInstalled, Unsupported
from oracles.registry import Backend
from oracles.smoke_check import smoke
from specs.cases import Case
from tests.adapters.checks import (
    assert_casts_any_layout,
    assert_follows_its_buffer,
    assert_known,
    assert_repeats,
    assert_shares_no_memory,
    built,
    known,
)
from tests.adapters.common import ADAPTERS, bits_of, onnx_case, patterns_of


@pytest.fixture(scope="module")
def oracle() -> Iterator[Any]:
    with built("torch", lambda: ADAPTERS["torch"].make("compile")) as made:
        yield made


def graphs() -> int:
    """How many graphs torch has compiled."""
    counters = importlib.import_module("torch._dynamo.utils").counters
    return int(counters["stats"]["unique_graphs"])


def test_bits_come_out_as_they_went_in(oracle: Any) -> None:
    assert smoke(Backend("torch:compile", oracle)) == {}


@pytest.mark.parametrize(("source", "target", "pairs"), known(DTYPES))
def test_known_values(oracle: Any, source: str, target: str, pairs: dict[Any, Any]) -> None:
    assert_known(oracle, source, target, pairs)


def test_any_shape_in_any_layout(oracle: Any) -> None:
    assert_casts_any_layout(oracle, "float32", "float16", {0x3FC00000: 0x3E00, 0xC0000000: 0xC000})


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


def test_answers_share_no_memory_with_questions(oracle: Any) -> None:
    for dtype in ("float32", "uint8"):
        assert_shares_no_memory(oracle, dtype)


@pytest.mark.parametrize(
    "pair", [("float32", "float16"), ("float32", "float32"), ("int16", "int8")]
)
def test_bound_calls(oracle: Any, pair: tuple[str, str]) -> None:
    assert_follows_its_buffer(oracle, onnx_case(*pair))


def test_a_reproduction_prints_the_same_answers(oracle: Any) -> None:
    case = onnx_case("float32", "int8")
    assert "torch.compile" in oracle.reproduce(case, bits_of("float32", [0]))
    assert_repeats(oracle, case, [0x3FC00000, 0xC0000000, 0x7F800000, 0x43960000] * 5)


def test_what_torch_does_not_cast(oracle: Any) -> None:
    for case in (onnx_case("float32", "int4"), onnx_case("float32", "float16", mode="CAST_FLOOR")):
        for ask in (oracle.cast, oracle.bind):
            with pytest.raises(Unsupported):
                ask(case, bits_of("float32", [0]))


def test_a_refusal_is_not_told_on_the_terminal(
    oracle: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(Exception, match="must be divisible by 4"):
        oracle.bitcast(Case("any", "1", "uint8", "float32"), bits_of("uint8", [1, 2, 3]))
    assert capfd.readouterr() == ("", "")


def test_without_a_compiler_the_variant_is_not_installed(
    oracle: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder: Any = importlib.import_module("torch._inductor.cpp_builder")
    missing: Any = importlib.import_module("torch._inductor.exc").InvalidCxxCompiler
    monkeypatch.setattr(builder, "get_cpp_compiler", Mock(side_effect=missing))
    with pytest.raises(NotInstalled, match=r"needs a C\+\+ compiler"):
        ADAPTERS["torch"].make("compile")


def test_kernels_lie_in_the_temporary_folder_or_where_the_user_says(
    oracle: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    places: Any = importlib.import_module("torch._inductor.runtime.cache_dir_utils")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    assert Path(places.cache_dir()) == tmp_path
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR")
    assert Path(places.cache_dir()).is_relative_to(tempfile.gettempdir())


def test_a_bitcast_is_compiled_once_for_the_lengths_of_a_rank(oracle: Any) -> None:
    case, before = Case("any", "1", "float32", "int16"), graphs()
    for shape in ((2, 3), (4, 7), (11, 11), (100, 2)):
        bits = np.full(shape, 0x00020001, np.uint32)
        answer = oracle.bitcast(case, bits)
        assert answer.shape == (shape[0], 2 * shape[1])
        assert patterns_of(answer.ravel()) == [1, 2] * bits.size
    assert graphs() == before + 1
