"""The table of what frameworks answer: it is small and true."""

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
    known_answers,
    outdated,
)
from specs.formats import format_named
from specs.selection import case_named

FLOAT32 = format_named("float32")
MOST_BYTES = 3_000_000


def floats(*values: float) -> NDArray[np.uint32]:
    return np.array(values, np.float32).view(np.uint32)


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
