"""The table of what frameworks answer: how it describes answers, and whether it is true."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from oracles.registry import load_backend
from reports.behaviors import known_answers as module
from reports.behaviors.known_answers import (
    FILE,
    KnownAnswers,
    KnownFramework,
    describe_pair,
    known_answers,
    outdated,
)
from specs.formats import format_named
from specs.selection import case_named

FLOAT32, INT8, BOOL = (format_named(name) for name in ("float32", "int8", "bool"))
MOST_BYTES = 3_000_000


def floats(*values: float) -> NDArray[np.uint32]:
    return np.array(values, np.float32).view(np.uint32)


def test_answers_are_described_by_the_behavior_that_gives_them_all() -> None:
    inputs = floats(0.5, 1.5, -3.7, 127, 128, 300, -129, 3e9, -3e9, np.inf, -np.inf, np.nan)
    # By hand: through int32, whose minimum stands for what does not fit, then the low byte.
    wraps = np.array([0, 1, -3, 127, -128, 44, 127, 0, 0, 0, 0, 0], np.int8).view(np.uint8)
    clamps = np.array([0, 1, -3, 127, 127, 127, -128, 127, -128, 127, -128, 0], np.int8)
    pair = describe_pair(FLOAT32, INT8, inputs, wraps)
    assert [*pair.does] == ["via-int32"]
    assert pair.answer(FLOAT32, INT8, int(floats(555)[0])) == 555 % 256
    pair = describe_pair(FLOAT32, INT8, inputs, clamps.view(np.uint8))
    assert pair.answer(FLOAT32, INT8, int(floats(555)[0])) == 127
    assert pair.answer(FLOAT32, INT8, int(floats(-1e9)[0])) == 0x80


def test_what_no_behavior_gives_is_listed_if_it_is_little_and_else_unknown() -> None:
    inputs = np.arange(2, dtype=np.uint8)
    pair = describe_pair(BOOL, INT8, inputs, np.array([5, 9], np.uint8))
    assert [pair.answer(BOOL, INT8, each) for each in (0, 1)] == [5, 9]
    many = np.arange(1000, dtype=np.uint32) + np.uint32(0x3F800000)
    odd = np.where(many % 3 == 0, 7, 9).astype(np.uint8)
    pair = describe_pair(FLOAT32, INT8, many, odd)
    assert pair.answer(FLOAT32, INT8, int(many[3])) is None


def test_the_shipped_table_is_small_and_of_whole_pairs() -> None:
    assert FILE.stat().st_size < MOST_BYTES
    table = known_answers().frameworks
    assert {"numpy", "ort", "torch", "onnx", "ml_dtypes", "jax", "tensorflow"} <= set(table)
    for name, framework in table.items():
        assert len(framework.pairs) > 100, name


@pytest.mark.parametrize("name", ["numpy", "ml_dtypes", "ort", "torch", "onnx"])
def test_the_shipped_table_gives_what_an_installed_framework_answers(name: str) -> None:
    known = known_answers().frameworks[name]
    if name in outdated():
        pytest.skip(f"{known.version} is recorded")
    backend, chance = load_backend(name), np.random.default_rng(7)
    compared = 0
    for target in ("float16", "int8", "uint8", "int32", "int64", "bool"):
        case = case_named(f"onnx-cast:25/float32/{target}")
        form = format_named(target)
        # No vectors of whole registers: a kernel's code for the rest of a row may answer otherwise.
        inputs = np.concatenate(
            [
                chance.integers(0, 1 << 32, 448, np.uint32),
                floats(*chance.normal(0, 200, 63), np.nan),
            ]
        )
        answers = backend.oracle.cast(case, inputs)
        for given, got in zip(inputs.tolist(), answers.tolist(), strict=True):
            told = known.answer(FLOAT32, form, given)
            if told is not None and not _both_nan(form, told, got):
                compared += 1
                assert told == got, (target, hex(given))
    assert compared > 2500


def _both_nan(form: Any, one: int, other: int) -> bool:
    codes = [code for codes in (*form.nan_codes, *form.nans("-")) for code in codes]
    return form.kind == "float" and one in codes and other in codes


def test_a_framework_of_another_version_or_machine_is_outdated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = version("numpy")
    same = KnownFramework(version=own, date="2026-01-02", machine="here", pairs={})

    def table(framework: KnownFramework) -> KnownAnswers:
        return KnownAnswers(frameworks={"numpy": framework, "tvm": framework})

    monkeypatch.setattr("platform.machine", lambda: "here")
    for framework, found in (
        (same, []),
        (same.model_copy(update={"version": f"{own}+built"}), []),
        (same.model_copy(update={"version": "1.0"}), ["numpy"]),
        (same.model_copy(update={"machine": "there"}), ["numpy"]),
    ):
        given = table(framework)
        monkeypatch.setattr(module, "known_answers", lambda given=given: given)
        assert outdated() == found
