"""Counts of a checkpoint's elements that a cast changes are those of numpy and ml_dtypes."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.extras.checkpoints import check, pattern_counts, stored_tensors
from conformance.extras.checkpoints.cast_check import effect_flags
from conformance.extras.checkpoints.check import CheckedCheckpoint, check_checkpoint
from conformance.extras.checkpoints.pattern_counts import BitFolding, Histogram, count_into, folding
from oracles.registry import load_backend
from specs.errors import CastigateError
from specs.formats import format_named
from specs.ruling import ruling
from specs.selection import cases_of_pair
from tests.conformance.extras.checkpoints.files import (
    DTYPES,
    brute_force,
    weights,
    write_safetensors,
)
from tests.conformance.extras.checkpoints.planted_backends import WRONG

PLANTED = "tests/conformance/extras/checkpoints/planted_backends.py"
ONE_WRONG = f"{PLANTED}:OneWrong"


@pytest.fixture
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask backends in this process, where that is not the point."""
    monkeypatch.setattr(check, "load_all", lambda stack, configs: [*map(load_backend, configs)])


def effects_of(checked: CheckedCheckpoint, **names: Any) -> dict[str, Any]:
    return {name: getattr(checked.total, name) for name in names}


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("bfloat16", "float8e4m3fn"),
        ("float16", "float8e4m3fn"),
        ("float32", "float8e4m3fn"),
        ("float64", "float8e4m3fn"),
        ("bfloat16", "float8e5m2"),
        ("float16", "float8e5m2"),
        ("float32", "float8e5m2fnuz"),
        ("float16", "float8e4m3fnuz"),
        ("bfloat16", "float16"),
        ("float32", "bfloat16"),
        ("float32", "float16"),
        ("float64", "float16"),
        ("float64", "float32"),
        ("float8e4m3fn", "bfloat16"),
        ("float8e5m2", "float8e4m3fn"),
    ],
)
def test_effects_are_those_of_numpy_and_ml_dtypes(source: str, target: str, tmp_path: Path) -> None:
    x = weights(source)
    checked = check_checkpoint(write_safetensors(tmp_path / "m.safetensors", {"x": x}), target)
    expected = brute_force(x, target)
    assert effects_of(checked, **expected) == expected
    assert expected["changed"] or source == "float8e4m3fn"


def test_a_wider_target_keeps_all(tmp_path: Path) -> None:
    path = write_safetensors(tmp_path / "m.safetensors", {"x": weights("float32")})
    total = check_checkpoint(path, "float64").total
    assert (total.changed, total.out_of_range, total.to_zero, total.to_subnormal) == (0, 0, 0, 0)


def test_the_largest_changes_come_first_and_sum_up(tmp_path: Path) -> None:
    tensors = {
        "few": np.array([1, 1.0625], np.float32),
        "many": weights("float32", seed=1),
        "none": np.ones((2, 0, 3), np.float16),
        "scalar": np.float64(0.1),
    }
    path = write_safetensors(tmp_path / "m.safetensors", tensors)
    checked = check_checkpoint(path, "e4m3fn")
    assert [each.name for each in checked.tensors] == ["many", "few", "scalar", "none"]
    assert (
        checked.tensors[0].effects.changed
        == brute_force(tensors["many"], "float8e4m3fn")["changed"]
    )
    assert [each.effects.changed for each in checked.tensors[1:]] == [1, 1, 0]
    assert checked.total.changed == sum(each.effects.changed for each in checked.tensors)


def test_a_document_decides_what_is_out_of_range(tmp_path: Path) -> None:
    x = np.array([465, -1e9, np.inf, np.nan, 464, 1, 1.1], np.float32)
    path = write_safetensors(tmp_path / "m.safetensors", {"x": x})
    open_, saturating = (
        check_checkpoint(path, "e4m3fn", document=each) for each in (None, "onnx-cast:25")
    )
    assert open_.total.out_of_range == saturating.total.out_of_range == 3
    assert (open_.total.saturated, open_.total.to_nan, open_.total.to_infinity) == (0, 0, 0)
    assert saturating.total.saturated == 3
    to_half = check_checkpoint(path, "fp16", document="onnx-cast:25").total
    assert (to_half.out_of_range, to_half.to_infinity, to_half.saturated) == (1, 1, 0)


def test_examples_are_elements_of_the_file(tmp_path: Path) -> None:
    x = np.ones((3, 4), np.float32)
    x[1, 2], x[2, 0], x[2, 3] = 500, 1e-9, 2**-8
    path = write_safetensors(tmp_path / "m.safetensors", {"x": x})
    found = {each.effect: each for each in check_checkpoint(path, "e4m3fn").examples}
    assert found["out_of_range"].index == (1, 2)
    assert found["out_of_range"].pattern == "0x43fa0000"
    assert {*found["out_of_range"].allowed} == {"0x7e", "any-nan"}
    assert (found["to_zero"].index, found["to_zero"].allowed) == ((2, 0), ("0x00",))
    assert (found["to_subnormal"].index, found["to_subnormal"].allowed) == ((2, 3), ("0x02",))


def test_an_example_is_from_the_tensor_with_the_most(tmp_path: Path) -> None:
    tensors = {f"{count}": np.full(count, 500, np.float16) for count in (2, 9, 4)}
    path = write_safetensors(tmp_path / "m.safetensors", tensors)
    found = {each.effect: each.tensor for each in check_checkpoint(path, "e4m3fn").examples}
    assert found == {"changed": "9", "out_of_range": "9"}


@pytest.mark.usefixtures("_in_this_process")
@pytest.mark.parametrize("source", ["bfloat16", "float32", "float64"])
@pytest.mark.parametrize("target", ["e4m3fn", "float32"])
def test_a_wrong_backend_is_found(source: str, target: str, tmp_path: Path) -> None:
    if source == target:
        return
    x = weights(source).reshape(-1, 1)
    width = {"bfloat16": np.uint16, "float32": np.uint32, "float64": np.uint64}[source]
    x.view(width)[[7, 100, 2000]] = WRONG[source]
    path = write_safetensors(tmp_path / "m.safetensors", {"x": x})
    checked = check_checkpoint(path, target, backends=["reference", ONE_WRONG])
    assert checked.total.differing == 3
    assert dict(checked.total.breaking) == {"reference": 0, ONE_WRONG: 3}
    assert not checked.is_safe
    found = {each.effect: each for each in checked.examples}
    for name in ("differing", f"breaking:{ONE_WRONG}"):
        assert (found[name].index, int(found[name].pattern, 16)) == ((7, 0), WRONG[source])
        right, wrong = found[name].answers["reference"], found[name].answers[ONE_WRONG]
        assert int(wrong, 16) == int(right, 16) + 1
        assert found[name].allowed == (right,)


@pytest.mark.usefixtures("_in_this_process")
@pytest.mark.parametrize("source", ["bfloat16", "float32"])
def test_zero_is_no_answer_to_nan(source: str, tmp_path: Path) -> None:
    x = np.full(10, np.nan).astype(DTYPES[source])
    x[3:] = 0
    path = write_safetensors(tmp_path / "m.safetensors", {"x": x})
    name = f"{PLANTED}:NanIsZero"
    checked = check_checkpoint(path, "e4m3fn", backends=["reference", name])
    assert (checked.total.differing, checked.total.breaking[name]) == (3, 3)
    assert checked.total.breaking["reference"] == 0


@pytest.mark.usefixtures("_in_this_process")
def test_right_backends_are_safe(tmp_path: Path) -> None:
    tensors = {"x": weights("bfloat16"), "y": weights("float32")}
    path = write_safetensors(tmp_path / "m.safetensors", tensors)
    assert check_checkpoint(path, "e4m3fn", backends=["reference"]).is_safe
    assert check_checkpoint(path, "e4m3fn", backends=["reference"], document="onnx-cast").is_safe


@pytest.mark.usefixtures("_in_this_process")
def test_a_backend_that_fails_is_named(tmp_path: Path) -> None:
    path = write_safetensors(tmp_path / "m.safetensors", {"x": weights("float32")})
    with pytest.raises(CastigateError, match=r"Dies: .*no memory.*; leave it out"):
        check_checkpoint(path, "e4m3fn", backends=[f"{PLANTED}:Dies"])


@pytest.mark.usefixtures("_in_this_process")
@pytest.mark.parametrize("source", ["bfloat16", "float32", "float64"])
def test_chunks_of_any_size_give_the_same(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.concatenate([weights(source, 100), np.full(1, 1.2).astype(weights(source).dtype)])
    path = write_safetensors(tmp_path / "m.safetensors", {"x": x})

    def checked() -> CheckedCheckpoint:
        return check_checkpoint(path, "float8e5m2", backends=["reference", ONE_WRONG])

    whole = checked()
    monkeypatch.setattr(stored_tensors, "CHUNK_BYTES", 8 * 7)
    assert checked() == whole


def test_counters_do_not_overflow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pattern_counts, "MOST_COUNTED", 10)
    histogram = Histogram(BitFolding(format_named("float8e5m2"), 0), count_into)
    for _ in range(5):
        histogram.add(np.array([3, 3, 3, 200], np.uint8))
    keys, counts = histogram.counts()
    assert (keys.tolist(), counts.tolist()) == ([3, 200], [15, 5])
    assert counts.dtype == np.uint64


@pytest.mark.skipif(find_spec("numba") is None, reason="needs numba")
@pytest.mark.parametrize(
    ("dtype", "low_bits"),
    [("uint8", 0), ("uint16", 0), ("uint32", 19), ("uint32", 12), ("uint64", 48), ("uint64", 41)],
)
def test_the_compiled_count_equals_numpys(dtype: str, low_bits: int) -> None:
    from conformance.extras.checkpoints import pattern_counts_numba

    chance = np.random.default_rng(0)
    x = chance.integers(0, np.iinfo(dtype).max, 5000, dtype, endpoint=True)
    # Low bits that are all zero, or have only the lowest or the highest set.
    x[::3] &= x.dtype.type(np.iinfo(dtype).max ^ ((1 << low_bits) - 1))
    x[::6] |= x.dtype.type(1)
    bits = 8 * x.itemsize - low_bits + bool(low_bits)
    for part in (x, x[:3]):
        twins = [np.zeros(1 << bits, np.uint32) for _ in range(2)]
        count_into(part, low_bits, twins[0])
        pattern_counts_numba.count_into(part, low_bits, twins[1])
        assert np.array_equal(*twins)
        assert twins[0].sum() == part.size


@pytest.mark.parametrize(
    ("source", "target", "bits"),
    [
        ("bfloat16", "float8e4m3fn", 16),
        ("float32", "float8e4m3fn", 14),
        ("float32", "float16", 21),
        ("float64", "float8e5m2", 16),
        ("float64", "float16", 24),
        ("float64", "float32", None),
    ],
)
def test_keys_tell_apart_what_a_cast_does(source: str, target: str, bits: int | None) -> None:
    fold = folding(format_named(source), format_named(target), can_fold=True)
    assert (fold and fold.bits) == bits
    if fold is None or fold.bits > 21:
        return
    rules = [ruling(cases_of_pair("small-floats", "1", source, target)[0])]
    x = weights(source)
    patterns = x.view(f"uint{8 * x.itemsize}")
    table = effect_flags(rules, fold.patterns())
    assert np.array_equal(table[fold.keys(patterns)], effect_flags(rules, patterns))


def test_only_tensors_of_one_dtype(tmp_path: Path) -> None:
    tensors = {
        "x": weights("bfloat16"),
        "y": weights("float32"),
        "z": weights("float8e4m3fn"),
        "i": np.arange(3),
    }
    path = write_safetensors(tmp_path / "m.safetensors", tensors)
    checked = check_checkpoint(path, "e4m3fn", source="bf16")
    assert [each.name for each in checked.tensors] == ["x"]
    assert sorted(each.name for each in checked.others) == ["i", "y", "z"]
    every = check_checkpoint(path, "torch.float8_e4m3fn")
    assert sorted(each.name for each in every.tensors) == ["x", "y"]
    with pytest.raises(
        CastigateError, match=r"no tensor of float16; it has 1 of bfloat16, .*1 of int64"
    ):
        check_checkpoint(path, "e4m3fn", source="half")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"target": "e4m3fm"}, "unknown dtype `e4m3fm`; did you mean"),
        ({"target": "int8"}, "--to `int8` is no float"),
        ({"target": "e4m3fn", "source": "int8"}, "--from `int8` is no float"),
        ({"target": "fp32", "source": "float"}, "are both float32"),
        ({"target": "e4m3fn", "document": "onyx-cast"}, "unknown document `onyx-cast`"),
        ({"target": "float8e3m4", "document": "onnx-cast:25"}, "lists no cast from float32 to"),
        ({"target": "e3m4", "backends": ["reference"]}, None),
    ],
)
def test_options_that_cannot_be_used(
    options: dict[str, Any], says: str | None, tmp_path: Path
) -> None:
    path = write_safetensors(tmp_path / "m.safetensors", {"x": weights("float32")})
    if says is None:
        assert check_checkpoint(path, **options).is_safe
        return
    with pytest.raises(CastigateError, match=says):
        check_checkpoint(path, **options)
