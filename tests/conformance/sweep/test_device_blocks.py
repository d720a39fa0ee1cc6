"""A sweep that is judged on a device finds what a sweep on the host finds; the CPU stands in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from conformance.driver import BackendJudge
from conformance.judging.asking import Settings
from conformance.running.worker import TimeLimited
from conformance.sweep import engine, road_answers
from conformance.sweep.engine import sweep
from oracles.adapters.torch import Torch
from oracles.protocol import Unsupported
from oracles.reference.sweep_inputs import Dense
from oracles.registry import Backend
from reports.grading.chunk_comparison import chunk_comparison
from reports.judgement import Judgement
from specs.cases import Case
from specs.selection import case_named
from tests.conformance.sweep.swept import (
    RANGES,
    SMALL_BLOCK,
    SMALL_CHUNK,
    Bound,
    Change,
    plain,
    raising_where_open,
    swept,
)
from tests.conformance.sweep.test_engine import CHANGES, at_random, names_of

torch = pytest.importorskip("torch", reason="the check on a device is torch's")


class OnDevice(Bound):
    """Returns the planted answers as a tensor on a device, and counts calls on the host."""

    asked_from_host = 0

    def bind(self, case: Case, bits: Any) -> Callable[[], Any]:
        call = super().bind(case, bits)

        def counted() -> Any:
            self.asked_from_host += 1
            return call()

        return counted

    def device_sweep(self, case: Case, most: int) -> Callable[[int, int], Any]:
        assert most <= SMALL_BLOCK

        def call(first: int, count: int) -> Any:
            assert count <= most
            answers = self.cast(case, np.arange(first, first + count).astype(np.uint32))
            return torch.from_numpy(answers.view(f"i{answers.itemsize}").copy())

        return call


def assert_same(
    on_device: OnDevice, on_host: Bound, names: list[str], lo: int, hi: int
) -> list[Judgement]:
    found = swept(on_device, names, lo, hi)
    assert plain(tuple(found)) == plain(tuple(swept(on_host, names, lo, hi)))
    return found


@pytest.mark.ci_runs_one_of(7)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("pair", RANGES)
def test_both_find_the_same_for_each_of_several_rulings(pair: str, change: str) -> None:
    names = names_of(pair)
    on_device = OnDevice(names[0], CHANGES[change])
    assert_same(on_device, Bound(names[0], CHANGES[change]), names, *RANGES[pair])
    assert on_device.asked_from_host == 0


def test_only_the_block_with_a_wrong_answer_comes_to_the_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name, lo = "onnx-cast:13/float32/float16", 0x3F80_0000
    wrong = lo + SMALL_BLOCK + SMALL_CHUNK + 7

    def change(inputs: Any, answers: Any) -> Any:
        return np.where(inputs == wrong, answers ^ 1, answers)

    fetched = []
    fetch = engine.device_blocks.__globals__["DeviceBlocks"].fetched

    def counted(blocks: Any) -> Any:
        fetched.append(blocks)
        return fetch(blocks)

    monkeypatch.setattr("conformance.sweep.device_blocks.DeviceBlocks.fetched", counted)
    hi = lo + 4 * SMALL_BLOCK
    [found] = assert_same(OnDevice(name, change), Bound(name, change), [name], lo, hi)
    assert (found.wrong, found.divergences[0].smallest, len(fetched)) == (1, wrong, 1)


def raising_on(first: int, error: Exception) -> Change:
    def change(inputs: Any, answers: Any) -> Any:
        if (inputs == first).any():
            raise error
        return answers

    return change


@pytest.mark.parametrize("error", [ValueError("no"), Unsupported("not this"), SystemExit(3)])
@pytest.mark.parametrize("pair", ["float32/float16", "float32/int8"])
def test_an_error_on_the_device_becomes_what_it_is_on_the_host(pair: str, error: Exception) -> None:
    lo, hi = RANGES[pair]
    names = names_of(pair)
    change = raising_on(lo + 2 * SMALL_BLOCK, error)
    assert_same(OnDevice(names[0], change), Bound(names[0], change), names, lo, hi)


def test_an_error_on_open_inputs_is_none() -> None:
    name = "onnx-cast:13/float32/int8"
    change = raising_where_open(name, at_random(50))
    lo, hi = RANGES["float32/int8"]
    [found] = assert_same(OnDevice(name, change), Bound(name, change), [name], lo, hi)
    assert found.message == "open inputs: ValueError: no"


def on_device(change: Callable[[Any], Any]) -> type[OnDevice]:
    """An oracle whose answers on the device are changed."""

    def device_sweep(self: OnDevice, case: Case, most: int) -> Callable[[int, int], Any]:
        call = OnDevice.device_sweep(self, case, most)
        return lambda first, count: change(call(first, count))

    return type("Changed", (OnDevice,), {"device_sweep": device_sweep})


class WithoutDevice(OnDevice):
    def device_sweep(self, case: Case, most: int) -> Callable[[int, int], Any]:
        raise Unsupported("no device")


Malformed = on_device(lambda answers: answers[:-1])
TooWide = on_device(lambda answers: answers.long())


@pytest.mark.parametrize("oracle_class", [WithoutDevice, Malformed, TooWide])
def test_without_answers_on_a_device_the_host_asks(oracle_class: type[OnDevice]) -> None:
    lo, hi = RANGES["float32/float16"]
    names = names_of("float32/float16")
    oracle = oracle_class(names[0], at_random(7))
    assert_same(oracle, Bound(names[0], at_random(7)), names, lo, hi)
    assert oracle.asked_from_host > 0


class TorchOnCpu(Torch):
    """The device road of torch, with the CPU as the device."""

    devices: Mapping[str | None, str] = {"cuda": "cpu"}


PARTS = {
    "the largest positive pattern": (1 << 31) - SMALL_CHUNK,
    "the ends of numbers and NaNs": 0x7F80_0000 - SMALL_CHUNK,
    "negative": 0xC300_0000,
    "the end": (1 << 32) - 3 * SMALL_CHUNK,
}
TORCH_CASES = [
    f"onnx-cast:{case}"
    for case in (
        "13/float32/float16", "13/float32/bfloat16", "13/float32/int8", "13/float32/int32",
        "13/float32/int64", "13/float32/float64", "13/float32/float32", "13/float32/bool",
        "19/float32/float8e4m3fn/saturate:1", "13/int32/float32", "13/int32/int8",
        "13/uint32/float16", "13/uint32/uint64",
    )
]  # fmt: skip


@pytest.mark.ci_runs_one_of(6)
@pytest.mark.parametrize("start", PARTS.values(), ids=PARTS)
@pytest.mark.parametrize("name", TORCH_CASES)
def test_torch_on_a_device_gives_the_same_as_torch(
    name: str, start: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(road_answers, "call_size", lambda source, target: SMALL_CHUNK)
    monkeypatch.setattr(engine, "BLOCK", SMALL_BLOCK)
    found = [
        sweep(
            BackendJudge(Backend("torch", oracle), {}, Settings()),
            [case_named(name)],
            Dense(1 << 32),
            start,
            start + 3 * SMALL_CHUNK,
            chunk_comparison(compiled=False),
            lambda *_: None,
        )
        for oracle in (TimeLimited(TorchOnCpu("cuda"), 60.0), TimeLimited(Torch(), 60.0))
    ]
    # The script of a failure names the device.
    on_device, on_host = ([replace(each, reproduction="") for each in some] for some in found)
    assert plain(tuple(on_device)) == plain(tuple(on_host))


def test_torch_without_the_device_says_what_to_do() -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has a CUDA device")
    with pytest.raises(Unsupported, match=r"^torch \S+ sees no CUDA device; ask `torch`, or inst"):
        Torch("cuda")


def test_a_sweep_of_the_cpu_is_not_one_of_a_device() -> None:
    case = case_named(TORCH_CASES[0])
    with pytest.raises(Unsupported, match="on the CPU"):
        Torch().device_sweep(case, 1)
