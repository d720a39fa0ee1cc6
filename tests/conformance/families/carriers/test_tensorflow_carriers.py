"""TensorFlow's carriers: the table and its document agree, modes are reset, answers by hand."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from oracles.adapters.tensorflow_carriers import CARRIERS, MODES
from oracles.protocol import Unsupported
from specs.formats import format_named
from specs.ruling import ruling
from specs.selection import select
from tests.adapters.common import bits_of, run_script_here
from tests.adapters.contract import built
from tests.conformance.families.carriers.checks import (
    allowed_by_document,
    assert_carries,
    assert_same_carriers,
    carrier_case,
)

DOCUMENT = "tensorflow-carriers"
EDITION = f"{DOCUMENT}:2.21"


@pytest.fixture(scope="module", params=[None, "function", "xla"], ids=lambda road: road or "eager")
def oracle(request: pytest.FixtureRequest) -> Iterator[Any]:
    with built("tensorflow", request.param) as built_oracle:
        yield built_oracle


def modes() -> tuple[Any, ...]:
    """Return whatever a carrier may set and leave behind, but for NumPy's methods of tensors."""
    ops, config = (
        importlib.import_module(f"tensorflow.python.framework.{name}") for name in ("ops", "config")
    )
    policy = importlib.import_module("keras").config.dtype_policy()
    return (
        ops.get_dtype_conversion_mode(),
        config.tensor_float_32_execution_enabled(),
        config.is_op_determinism_enabled(),
        policy.name,
        threading.active_count(),
    )


def test_the_document_and_the_table_have_the_same_carriers() -> None:
    assert_same_carriers(DOCUMENT, CARRIERS)


@pytest.mark.parametrize(
    ("words", "code", "level", "expected"),
    [
        # -0: a product keeps it, a sum may be either
        ("float32/float32/multiply-by-one", 0x80000000, "recommended", {0x80000000}),
        ("float32/float32/add-zero", 0x80000000, "recommended", {0, 0x80000000}),
        # subnormal numbers: open in a product, not where they are chosen or moved
        ("float32/float32/multiply-by-one", 1, "unspecified", "open"),
        ("float32/float32/maximum-with-itself", 1, "recommended", {1}),
        ("float32/float32/where", 1, "required", {1}),
        # a segment with -infinity is not empty
        ("float32/float32/maximum-of-segment", 0xFF800000, "recommended", {0xFF800000}),
        ("float16/float16/cumulative-log-sum-of-one", 0xFC00, "required", {0xFC00}),
        ("float16/float16/maximum-of-window", 0x7C01, "recommended", "nan"),
        # 100000 overflows; 2^31 does, too, but float32 lacks 2^31 - 1
        ("float32/float16/saturate-cast", 0x47C35000, "recommended", {0x7BFF}),
        ("int64/int32/saturate-cast", 1 << 40, "required", {0x7FFFFFFF}),
        ("float32/int32/saturate-cast", 0x4F000000, "unspecified", "open"),
        # 300.0 in bfloat16
        ("bfloat16/uint8/saturate-cast", 0x4396, "required", {255}),
        ("uint8/int32/numpy-multiply-by-one-of-target", 255, "required", {255}),
        ("float32/bfloat16/mixed-bfloat16", 0x3F808000, "unspecified", "open"),
        ("float32/bfloat16/mixed-bfloat16", 0x3F810000, "recommended", {0x3F81}),
        # a policy holds in other threads, but how a layer rounds is open
        ("float32/bfloat16/layer-in-thread-under-mixed-bfloat16", 0x3F810000, "recommended",
         {0x3F81}),
        ("float32/bfloat16/layer-under-mixed-bfloat16", 0x3F808000, "unspecified", "open"),
        # float32 lacks 2^24 + 1
        ("int32/float64/promote-under-numpy-behavior", 0x1000001, "required", {0x4170000010000000}),
        ("int32/float32/promote-under-all-promotion", 0x1000001, "unspecified", "open"),
        ("uint8/float16/promote-under-safe-promotion", 255, "required", {0x5BF8}),
        ("int32/int32/negate-twice", 0x80000000, "required", {0x80000000}),
    ],
)  # fmt: skip
def test_a_tricky_input_has_the_answers_worked_out_by_hand(
    words: str, code: int, level: str, expected: Any
) -> None:
    assert allowed_by_document(carrier_case(EDITION, words), code) == (expected, level)


@pytest.mark.parametrize(
    ("words", "given", "answers"),
    [
        ("float32/float32/multiply-by-one", [0x3FC00000, 0x80000000], [0x3FC00000, 0x80000000]),
        ("float16/float32/numpy-multiply-by-one-of-target", [0x3E00], [0x3FC00000]),
        ("bool/bool/take", [1, 0], [1, 0]),
        ("bfloat16/bfloat16/maximum-of-window", [0x3FC0, 0xBFC0], [0x3FC0, 0xBFC0]),
        ("int64/int32/saturate-cast", [1 << 40, 7], [0x7FFFFFFF, 7]),
    ],
)
def test_an_answer(oracle: Any, words: str, given: list[int], answers: list[int]) -> None:
    assert_carries(oracle, carrier_case(EDITION, words), given, answers)


def test_operands_of_two_dtypes_are_an_error(oracle: Any) -> None:
    case = carrier_case(EDITION, "float32/float64/multiply-by-one-of-target")
    assert ruling(case).is_rejection
    with pytest.raises(Exception, match=r"double|float64") as refused:
        oracle.carry(case, bits_of("float32", [0x3F800000]))
    assert not isinstance(refused.value, Unsupported)


def test_a_policy_of_layers_is_taken_back() -> None:
    with built("tensorflow") as oracle:
        one = bits_of("float32", [0x3F808000])
        layer = oracle.carry(carrier_case(EDITION, "float32/bfloat16/mixed-bfloat16"), one)
        assert layer.tolist() in ([0x3F80], [0x3F81])
        assert oracle.carry(
            carrier_case(EDITION, "float32/float32/under-mixed-precision"), one
        ).tolist() == [0x3F808000]
        policy = oracle.names["tf"].keras.mixed_precision.global_policy()
        assert policy.name == "float32"


@pytest.mark.parametrize(
    ("words", "given", "answer"),
    [
        ("float32/bfloat16/layer-under-mixed-bfloat16", 0x3F810000, 0x3F81),
        ("float32/float32/layer-after-mixed-bfloat16", 0x3F800001, 0x3F800001),
        ("float32/float32/matmul-beside-no-tensor-float-32", 0x3F800001, 0x3F800001),
        ("uint8/uint8/scatter-under-determinism", 7, 7),
        ("float32/float64/promote-beside-numpy-behavior", 0x3FC00000, 0x3FF8000000000000),
        ("int32/float64/promote-under-numpy-behavior", 0x1000001, 0x4170000010000000),
        ("uint8/float16/promote-under-safe-promotion", 255, 0x5BF8),
    ],
)
def test_an_answer_under_or_after_a_mode(words: str, given: int, answer: int) -> None:
    with built("tensorflow") as oracle:
        assert_carries(oracle, carrier_case(EDITION, words), [given], [answer])


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("float32/float64/promote-after-numpy-behavior", "was expected to be a float tensor"),
        ("int32/float32/promote-under-safe-promotion", "promotion mode PromoMode.SAFE"),
    ],
)
def test_a_promotion_is_an_error(words: str, reason: str) -> None:
    assert ruling(carrier_case(EDITION, words)).is_rejection
    with built("tensorflow") as oracle, pytest.raises(Exception, match=reason):
        oracle.carry(carrier_case(EDITION, words), bits_of(words.split("/")[0], [0]))


def test_no_carrier_leaves_a_mode_behind() -> None:
    ones = {case.mode["carrier"]: case for case in select([DOCUMENT])}
    with built("tensorflow") as oracle:
        before = modes()
        for name in MODES:
            case = ones[name]
            with suppress(Exception):  # some are errors, as the document wants
                oracle.carry(case, np.zeros(3, format_named(case.source).storage))
            assert modes() == before, name
            with suppress(AttributeError, TypeError, ValueError):
                texts = {"source": "tf.float32", "target": "tf.float64"}
                exec(MODES[name].format(**texts), {**oracle.names, "x": object()})
                pytest.fail(f"{name} carries no array")
            assert modes() == before, name


def test_what_xla_lacks_is_no_refusal() -> None:
    with built("tensorflow", "xla") as oracle, pytest.raises(Unsupported, match="no kernel"):
        oracle.carry(
            carrier_case(EDITION, "float32/float32/serialize"), bits_of("float32", [0x3F800000])
        )


def test_statements_are_not_traced() -> None:
    with (
        built("tensorflow", "function") as oracle,
        pytest.raises(Unsupported, match="compiles no statements"),
    ):
        oracle.carry(carrier_case(EDITION, "float32/float32/variable"), bits_of("float32", [0]))


def test_constants_carry_nothing() -> None:
    with (
        built("tensorflow", "folded") as oracle,
        pytest.raises(Unsupported, match="carries nothing"),
    ):
        oracle.carry(carrier_case(EDITION, "float32/float32/where"), bits_of("float32", [0]))


def test_a_script_prints_the_answers(oracle: Any) -> None:
    case, given = (
        carrier_case(EDITION, "float16/float32/numpy-concatenate-with-target"),
        bits_of("float16", [1]),
    )
    assert run_script_here(oracle.reproduce_carry(case, given)) == ["0x1 -> 0x33800000"]
