"""Errors in a sweep: a note on open inputs; on any other input an error that names it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from oracles.protocol import Unsupported
from specs.cases import Case
from tests.conformance.feeding import without_place
from tests.conformance.sweep.swept import (
    RANGES,
    SMALL_CHUNK,
    Bound,
    BoundTo,
    Change,
    Planted,
    plain,
    raising_where_open,
    swept,
)

INT8 = "onnx-cast:13/float32/int8"
HALF = "onnx-cast:13/float32/float16"
LO, HI = RANGES["float32/int8"]
BOTH = pytest.mark.parametrize("oracle_class", [Planted, Bound])


@BOTH
def test_an_error_on_open_inputs_is_no_error(oracle_class: type[Planted]) -> None:
    def wrong_first(inputs: Any, answers: Any) -> Any:
        return np.where(inputs == LO, answers ^ 1, answers)

    oracle = oracle_class(INT8, raising_where_open(INT8, wrong_first))
    [found] = swept(oracle, [INT8], LO, HI)
    right = swept(Planted(INT8, wrong_first), [INT8], LO, HI)[0]
    assert right.open_inputs > 0
    assert found.message == "open inputs: ValueError: no"
    assert plain(replace(found, problems=found.divergences)) == plain(right)
    assert found.wrong == 1


@BOTH
def test_an_error_on_nothing_but_open_inputs_is_no_error(oracle_class: type[Planted]) -> None:
    def never(inputs: Any, answers: Any) -> Any:
        raise ValueError("not even for none")

    [found] = swept(oracle_class(INT8, never), [INT8], 0x4400_0000, 0x4400_2000)
    assert (found.verdict, found.message) == (
        "conforms",
        "open inputs: ValueError: not even for none",
    )
    assert found.open_inputs == found.inputs == 0x2000


@BOTH
def test_an_error_on_an_input_that_has_an_answer_names_it(oracle_class: type[Planted]) -> None:
    def raising(inputs: Any, answers: Any) -> Any:
        if (inputs == 0x4780_1234).any():
            raise OverflowError("too large\nor so")
        return answers

    names = [HALF, "pypto-cast:seed/float32/float16/mode:CAST_RINT"]
    lo, hi = RANGES["float32/float16"]
    for found in swept(oracle_class(HALF, raising), names, lo, hi):
        assert found.verdict == "error"
        assert "0x47801234" in found.message
        assert without_place(found.message).endswith("OverflowError: too large")
        assert (found.inputs, found.divergences) == (0, ())


@BOTH
def test_after_an_error_nothing_is_counted(oracle_class: type[Planted]) -> None:
    def raising(inputs: Any, answers: Any) -> Any:
        if (inputs == 0x4780_1234).any():
            raise OverflowError("too large")
        return answers ^ 1

    lo, _ = RANGES["float32/float16"]
    [found] = swept(oracle_class(HALF, raising), [HALF], lo, 0x4780_9000)
    assert found.verdict == "error"
    assert without_place(found.message).endswith(": OverflowError: too large")
    assert (found.inputs, found.wrong, found.divergences) == (0, 0, ())


@BOTH
def test_an_error_stays_when_a_later_answer_is_missing(oracle_class: type[Planted]) -> None:
    saturating = "pypto-cast:0.2/float32/int32/mode:CAST_NONE"
    first_open = 0x4F00_0000

    def raising(inputs: Any, answers: Any) -> Any:
        if (inputs >= first_open + SMALL_CHUNK).any():
            raise Unsupported("no such kernel")
        if (inputs >= first_open).any():
            raise OverflowError("too large")
        return answers

    oracle = oracle_class(saturating, raising)
    lo, hi = RANGES["float32/int32"]
    found = swept(oracle, [saturating, "onnx-cast:13/float32/int32"], lo, hi + SMALL_CHUNK)
    assert [each.verdict for each in found] == ["error", "unsupported"]
    assert without_place(found[0].message).endswith("OverflowError: too large")


@BOTH
def test_an_error_on_inputs_beyond_the_part_is_not_the_parts(oracle_class: type[Planted]) -> None:
    lo, hi = RANGES["float32/float16"]

    def raising(inputs: Any, answers: Any) -> Any:
        if (inputs >= hi).any():
            raise ValueError("beyond")
        return answers

    [found] = swept(oracle_class(HALF, raising), [HALF], lo, hi)
    assert (found.verdict, found.message, found.inputs) == ("conforms", "", hi - lo)


def raises(error: BaseException) -> Change:
    def raising(inputs: Any, answers: Any) -> Any:
        raise error

    return raising


def overwriting(inputs: Any, answers: Any) -> Any:
    inputs[5] = 0
    return answers


@pytest.mark.parametrize(
    ("change", "verdict", "message"),
    [
        (raises(Unsupported("no such kernel\nat all")), "unsupported", "no such kernel"),
        (lambda x, y: y.astype(np.uint32), "error", "the answer's storage is uint32"),
        (lambda x, y: y[:-1], "error", f"the answer has shape ({SMALL_CHUNK - 1},)"),
        (lambda x, y: y.tolist(), "error", "the answer is list, not a numpy array"),
        (raises(SystemExit(3)), "error", "RuntimeError: it wanted to end the run: SystemExit: 3"),
        (raises(GeneratorExit()), "error", "it wanted to end the run: GeneratorExit"),
        (raises(MemoryError("full")), "error", "MemoryError: full"),
    ],
    ids=["unsupported", "dtype", "shape", "list", "exit", "signal", "memory"],
)
@pytest.mark.parametrize("oracle_class", [Planted, BoundTo])
def test_what_is_no_answer(
    oracle_class: type[Planted], change: Change, verdict: str, message: str
) -> None:
    lo, hi = RANGES["float32/float16"]
    names = [HALF, "pypto-cast:seed/float32/float16/mode:CAST_RINT"]
    found = swept(oracle_class(HALF, change), names, lo, hi)
    assert [each.verdict for each in found] == [verdict] * 2
    assert all(message in each.message for each in found)
    assert all((each.inputs, each.divergences) == (0, ()) for each in found)


def test_an_answer_wider_than_its_format_is_no_answer() -> None:
    name = "onnx-cast:21/float32/int4"
    oracle = BoundTo(name, lambda x, y: y | np.uint8(0x10))
    [found] = swept(oracle, [name], 0, 100)
    assert found.verdict == "error"
    assert found.message == "the answer holds 0x10, wider than int4"


@pytest.mark.parametrize("fast", [True, False], ids=["fastest", "numpy"])
def test_an_array_that_was_right_before_may_hold_an_answer_that_is_too_wide(fast: bool) -> None:
    name, last = "onnx-cast:21/float32/int4", 2 * SMALL_CHUNK + 7

    def too_wide(inputs: Any, answers: Any) -> Any:
        return np.where(inputs == last, answers | np.uint8(0x10), answers)

    [found] = swept(Bound(name, too_wide), [name], 0, 3 * SMALL_CHUNK, fast=fast)
    assert (found.verdict, found.inputs) == ("error", 0)
    assert found.message == "the answer holds 0x10, wider than int4"


@pytest.mark.parametrize("error", [ValueError("bad"), SystemExit(3)])
def test_what_goes_wrong_while_binding_is_an_error(error: BaseException) -> None:
    class Unbinding(Planted):
        def bind(self, case: Case, bits: Any) -> Any:
            raise error

    [found] = swept(Unbinding(HALF), [HALF], 0, 100)
    assert found.verdict == "error"
    assert type(error).__name__ in found.message


def test_binding_may_be_unsupported() -> None:
    class Unbinding(Planted):
        def bind(self, case: Case, bits: Any) -> Any:
            raise Unsupported("not here")

    [found] = swept(Unbinding(HALF), [HALF], 0, 100)
    assert (found.verdict, found.message) == ("unsupported", "not here")


WRITES = "the backend writes to the inputs it is given"


@pytest.mark.parametrize("size", [100, 3 * SMALL_CHUNK + 5])
def test_writing_to_bound_inputs_is_an_error(size: int) -> None:
    [found] = swept(BoundTo(HALF, overwriting), [HALF], 1 << 20, (1 << 20) + size)
    assert (found.verdict, found.message) == ("error", WRITES)


class Unclaiming(BoundTo):
    claims = ()


def too_large(inputs: Any, answers: Any) -> Any:
    raise OverflowError("too large")


@pytest.mark.parametrize(
    ("change", "message"), [(overwriting, WRITES), (too_large, "OverflowError: too large")]
)
def test_an_error_on_a_document_that_is_not_claimed_differs(change: Change, message: str) -> None:
    [found] = swept(Unclaiming(HALF, change), [HALF], 0x3C00_0000, 0x3C00_0100)
    assert (found.verdict, found.inputs) == ("differs", 0)
    assert without_place(found.message).endswith(message)


def test_writing_to_bound_inputs_once_is_an_error_too() -> None:
    calls: list[int] = []

    def once(inputs: Any, answers: Any) -> Any:
        calls.append(inputs.size)
        if len(calls) == 2:
            inputs[5] ^= 1
        return answers

    [found] = swept(BoundTo(HALF, once), [HALF], 0, 3 * SMALL_CHUNK)
    assert (found.verdict, found.message) == ("error", WRITES)


def test_writing_to_a_copy_harms_nobody() -> None:
    [found] = swept(Planted(HALF, overwriting), [HALF], 1 << 20, (1 << 20) + 9_000)
    assert found.verdict == "conforms"
