"""jax's carriers: the table and its document agree, modes are reset, some answers by hand."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from oracles.adapters.jax_carriers import CARRIERS, MODES
from oracles.protocol import Unsupported
from specs.formats import format_named
from specs.ruling import ruling
from specs.selection import select
from tests.adapters.common import bits_of, patterns_of, run_script_here
from tests.adapters.contract import built
from tests.conformance.families.carriers.checks import (
    allowed_by_document,
    assert_carries,
    assert_same_carriers,
    carrier_case,
)

DOCUMENT = "jax-carriers"
EDITION = f"{DOCUMENT}:0.10"
ROADS = (None, "jit")
OPTIONS = (
    *("jax_enable_x64", "jax_explicit_x64_dtypes", "jax_default_matmul_precision"),
    *("jax_numpy_dtype_promotion", "jax_debug_nans", "jax_disable_jit"),
)


@pytest.fixture(scope="module", params=ROADS, ids=lambda road: road or "eager")
def oracle(request: pytest.FixtureRequest) -> Iterator[Any]:
    with built("jax", request.param) as built_oracle:
        yield built_oracle


def modes() -> tuple[Any, ...]:
    """Return whatever a carrier may set and leave behind."""
    jax = pytest.importorskip("jax")
    options = (getattr(jax.config, name) for name in OPTIONS)
    return (*options, ctypes.CDLL(None).fegetround(), threading.active_count())


def test_the_document_and_the_table_have_the_same_carriers() -> None:
    assert_same_carriers(DOCUMENT, CARRIERS)


@pytest.mark.parametrize(
    ("words", "code", "level", "expected"),
    [
        # -0: a product keeps it, a sum with 0 is 0, a reduction may begin with either
        ("float32/float32/multiply-by-one", 0x80000000, "required", {0x80000000}),
        ("float32/float32/add-zero", 0x80000000, "required", {0}),
        ("float16/float32/add-zero-of-target", 0x8000, "required", {0}),
        ("bfloat16/bfloat16/sum-of-one", 0x8000, "recommended", {0, 0x8000}),
        # subnormal numbers: open where something is computed, not where it is moved
        ("float32/float32/multiply-by-one", 1, "unspecified", "open"),
        ("float32/float32/concatenate", 1, "required", {1}),
        # the lattice: int32 joins bfloat16, where 2^24 + 2^16 + 1 lies beyond a tie
        ("int32/bfloat16/multiply-by-one-of-target", 0x01010001, "recommended", {0x4B81}),
        ("float16/float32/multiply-by-one-of-bfloat16", 0x3E00, "required", {0x3FC00000}),
        # 1 + 2^-8 is a tie of bfloat16, and 65520 one of float16 and infinity
        ("float32/float32/multiply-in-bfloat16", 0x3F808000, "recommended", {0x3F800000}),
        ("float32/float32/multiply-in-float16", 0x477FF000, "recommended", {0x7F800000}),
        ("float64/bfloat16/set-items", 0x4000100000000001, "recommended", {0x4001}),
        # without the X64 flag: what float32 has, and nothing of what it lacks
        ("float64/float32/x64-off", 0x3FF8000000000000, "recommended", {0x3FC00000}),
        ("float64/float32/x64-off", 0x3FF8000000000001, "unspecified", "open"),
        # the lowest integer is its own negative
        ("int32/int32/negate-twice", 0x80000000, "required", {0x80000000}),
        # of a context in another thread, or one that was left, nothing is left
        ("int64/int64/multiply-beside-x64-off", 1 << 63, "recommended", {1 << 63}),
        ("float16/float32/promote-after-strict-promotion", 0x3C00, "required", {0x3F800000}),
        ("float32/float32/matmul-under-bfloat16-precision", 0x3F800000, "unspecified", "open"),
        ("float64/bfloat16/set-items-after-rounding-toward-zero", 0x3FEFFFFFFFFFFFFF,
         "recommended", {0x3F80}),
        ("float64/bfloat16/set-items-under-rounding-toward-zero", 0x3FEFFFFFFFFFFFFF,
         "unspecified", "open"),
        ("float16/float16/sort-of-one", 0x7C01, "recommended", {0x7C01}),
        ("float16/float16/median-of-one", 0x7BFF, "recommended", {0x7BFF}),
        ("float16/float16/median-of-one", 0x7C01, "recommended", "nan"),
    ],
)  # fmt: skip
def test_a_tricky_input_has_the_answers_worked_out_by_hand(
    words: str, code: int, level: str, expected: Any
) -> None:
    assert allowed_by_document(carrier_case(EDITION, words), code) == (expected, level)


def test_strict_promotion_is_an_error() -> None:
    case = carrier_case(EDITION, "float32/float64/strict-promotion")
    assert ruling(case).is_rejection
    with built("jax") as oracle, pytest.raises(Exception, match="promotion path"):
        oracle.carry(case, bits_of("float32", [0x3F800000]))


@pytest.mark.parametrize(
    ("words", "given", "answers"),
    [
        ("float32/float32/multiply-by-one", [0x3FC00000, 0x80000000], [0x3FC00000, 0x80000000]),
        ("int32/int64/add-zero-of-target", [0xFFFFFFFF], [0xFFFFFFFFFFFFFFFF]),
        ("bfloat16/float32/multiply-by-one-of-float16", [0x3FC0], [0x3FC00000]),
        ("float64/float32/multiply-out", [0x3FF8000000000000], [0x3FC00000]),
        ("bool/bool/where", [1, 0], [1, 0]),
        ("float8e4m3fn/float8e4m3fn/maximum-with-itself", [0x80, 0x01], [0x80, 0x01]),
    ],
)
def test_an_answer(oracle: Any, words: str, given: list[int], answers: list[int]) -> None:
    assert_carries(oracle, carrier_case(EDITION, words), given, answers)


def test_eager_and_compiled_sums_with_zero_differ() -> None:
    case, minus_zero = (
        carrier_case(EDITION, "float32/float32/add-zero"),
        bits_of("float32", [0x80000000]),
    )
    found = []
    for road in ROADS:
        with built("jax", road) as oracle:
            found.append(patterns_of(oracle.carry(case, minus_zero)))
    assert found == [[0], [0x80000000]]


def test_the_flag_holds_for_one_carrier_alone() -> None:
    with built("jax") as oracle:
        one = bits_of("float64", [0x3FF0000000000001])
        narrowed = oracle.carry(carrier_case(EDITION, "float64/float32/x64-off"), one)
        assert narrowed.tolist() == [0x3F800000]
        assert (
            oracle.carry(carrier_case(EDITION, "float64/float64/after-x64-off"), one).tolist()
            == one.tolist()
        )


@pytest.mark.parametrize(
    ("words", "given", "answer"),
    [
        ("float64/float64/multiply-after-x64-off", 0x3FF0000000000001, 0x3FF0000000000001),
        ("float64/float64/multiply-in-thread-of-x64-off", 0x3FF0000000000001, 0x3FF0000000000001),
        ("int64/int64/explicit-dtype-with-x64-off", 1 << 40, 1 << 40),
        ("float32/float32/matmul-after-bfloat16-precision", 0x3F800001, 0x3F800001),
        ("float32/float64/promote-beside-strict-promotion", 0x3FC00000, 0x3FF8000000000000),
        ("float64/float32/set-items-after-rounding-toward-zero", 0x3FEFFFFFFFFFFFFF, 0x3F800000),
        ("bfloat16/bfloat16/scan-without-jit", 0x3FC0, 0x3FC0),
    ],
)
def test_an_answer_under_or_after_a_mode(words: str, given: int, answer: int) -> None:
    source, *_ = words.split("/")
    with built("jax") as oracle:
        assert patterns_of(
            oracle.carry(carrier_case(EDITION, words), bits_of(source, [given]))
        ) == [answer]


def test_a_nan_is_an_error_within_the_context_alone() -> None:
    case, nan = (
        carrier_case(EDITION, "float32/float32/multiply-beside-debug-nans"),
        bits_of("float32", [0x7FC00000]),
    )
    with built("jax") as oracle:
        assert patterns_of(oracle.carry(case, nan)) == [0x7FC00000]
        assert patterns_of(
            oracle.carry(carrier_case(EDITION, "float32/float32/multiply-after-debug-nans"), nan)
        ) == [0x7FC00000]


def test_no_carrier_leaves_a_mode_behind() -> None:
    ones = {case.mode["carrier"]: case for case in select([DOCUMENT])}
    with built("jax") as oracle:
        before = modes()
        for name in MODES:
            case = ones[name]
            oracle.carry(case, np.zeros(3, format_named(case.source).storage))
            assert modes() == before, name
            with suppress(AttributeError, TypeError):
                texts = {"source": "jnp.float32", "target": "jnp.float64"}
                exec(MODES[name].format(**texts), {**oracle.names, "x": object()})
                pytest.fail(f"{name} carries no array")
            assert modes() == before, name


def test_statements_are_not_compiled() -> None:
    with built("jax", "jit") as oracle, pytest.raises(Unsupported, match="compiles no statements"):
        oracle.carry(carrier_case(EDITION, "float64/float32/x64-off"), bits_of("float64", [0]))


@pytest.mark.parametrize("road", ["folded", "stablehlo"])
def test_a_constant_and_a_program_carry_nothing(road: str) -> None:
    with built("jax", road) as oracle, pytest.raises(Unsupported, match="carries nothing"):
        oracle.carry(
            carrier_case(EDITION, "float32/float32/multiply-by-one"), bits_of("float32", [0])
        )


def test_a_script_prints_the_answers(oracle: Any) -> None:
    case, given = (
        carrier_case(EDITION, "bfloat16/float32/add-zero-of-target"),
        bits_of("bfloat16", [0x3FC0]),
    )
    assert run_script_here(oracle.reproduce_carry(case, given)) == ["0x3fc0 -> 0x3fc00000"]
