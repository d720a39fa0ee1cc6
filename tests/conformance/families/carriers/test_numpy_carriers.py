"""The carriers of numpy, of the array API standard and of mlx: tables, documents and answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from oracles.adapters import array_api_carriers, numpy_carriers
from oracles.adapters.array_api_strict import ArrayApiStrict
from oracles.adapters.mlx import carriers as mlx_carriers
from oracles.adapters.numpy import Numpy
from specs.selection import select
from tests.adapters.common import bits_of, run_script
from tests.conformance.families.carriers.checks import (
    allowed_by_document,
    assert_carries,
    assert_same_carriers,
    carrier_case,
)

TABLES: Mapping[str, Mapping[str, str]] = {
    "numpy-carriers": numpy_carriers.CARRIERS,
    "array-api-carriers": array_api_carriers.CARRIERS,
    "mlx-carriers": mlx_carriers.CARRIERS,
}
NUMPY, STANDARD = "numpy-carriers:2.4", "array-api-carriers:2025.12"
VERSIONS = {"numpy": NUMPY, "api": STANDARD, "mlx": "mlx-carriers:0.32"}


@pytest.mark.parametrize("document", TABLES)
def test_the_document_and_the_table_have_the_same_carriers(document: str) -> None:
    assert_same_carriers(document, TABLES[document])


@pytest.mark.parametrize(
    ("name", "code", "level", "expected"),
    [
        # -0: kept by a product, lost by a sum with 0, open where a sum may begin with either
        ("numpy/float32/float32/multiply-by-one", 0x80000000, "recommended", {0x80000000}),
        ("numpy/float32/float32/subtract-zero", 0x80000000, "recommended", {0x80000000}),
        ("numpy/float32/float32/add-python-zero", 0x80000000, "recommended", {0}),
        ("numpy/float32/float32/mean-of-one", 0x80000000, "recommended", {0, 0x80000000}),
        ("numpy/float32/float32/maximum-with-itself", 0x80000000, "required", {0x80000000}),
        # -2^-149 rounds to -0; added to 0 that is 0, cast after the addition it is -0
        ("numpy/float32/float16/sum-as-target", 0x80000001, "recommended", {0, 0x8000}),
        ("numpy/float32/float16/add-out", 0x80000001, "recommended", {0x8000}),
        # a tie, 2049 = 2048 + 1, goes to the even neighbor of float16
        ("numpy/float32/float16/multiply-into", 0x45001000, "recommended", {0x6800}),
        # 300 wraps to 44; 1.5 is cut
        ("numpy/int64/int8/sum-as-target", 300, "recommended", {44}),
        ("numpy/float64/int32/set-items", 0x3FF8000000000000, "recommended", {1}),
        # 2^53 + 1 becomes the double below
        ("numpy/int64/float64/mean-of-one", 2**53 + 1, "recommended", {0x4340000000000000}),
        # a NaN: itself where it is moved, zero where nansum skips it, 1 where bool stores it
        ("numpy/float16/float16/take", 0x7C01, "recommended", {0x7C01}),
        ("numpy/float16/float16/sum-of-one-but-nan", 0x7C01, "required", {0}),
        ("numpy/float16/float16/fmax-with-nan", 0x7C01, "required", "nan"),
        ("numpy/float16/bool/copy-into", 0x7C01, "recommended", {1}),
        # the lowest integer and its negative
        ("numpy/int8/int8/negate-twice", 0x80, "recommended", {0x80}),
        # the array API: signs are required, subnormals open, and so is pow but for special cases
        ("api/float32/float32/add-zero", 0x80000000, "required", {0}),
        ("api/float32/float32/add-minus-zero", 0x80000000, "required", {0x80000000}),
        ("api/float32/float32/hypot-with-sign", 0x80000000, "required", {0x80000000}),
        ("api/float32/float32/clip-to-nothing", 0x80000000, "required", {0, 0x80000000}),
        ("api/float32/float32/multiply-by-one", 0x00000001, "unspecified", "open"),
        ("api/float32/float32/concatenate", 0x00000001, "unspecified", "open"),
        ("api/float32/float32/power-of-one", 0x3F800000, "unspecified", "open"),
        ("api/float32/float32/power-of-one", 0xFF800000, "required", {0xFF800000}),
        ("api/uint32/int64/set-items", 0xFFFFFFFF, "required", {0xFFFFFFFF}),
        ("api/int8/int16/multiply-by-unsigned-one", 0xFF, "required", {0xFFFF}),
        # mlx: its pages mention no zeros with signs
        ("mlx/float32/float32/add-zero", 0x80000000, "recommended", {0, 0x80000000}),
        ("mlx/float32/float32/matmul-by-one", 0x3F800000, "unspecified", "open"),
    ],
)  # fmt: skip
def test_a_tricky_input_has_the_answers_worked_out_by_hand(
    name: str, code: int, level: str, expected: set[int] | str
) -> None:
    version, _, words = name.partition("/")
    assert allowed_by_document(carrier_case(VERSIONS[version], words), code) == (expected, level)


def test_an_assignment_is_promoted_from_2025_12_on() -> None:
    pair = "array-api-carriers:2024.12/uint32/int64"
    assert "carrier:set-items" not in {
        case.id.rpartition("/")[2] for case in select(["array-api-carriers:2024.12"])
        if case.id.startswith(pair)
    }  # fmt: skip


@pytest.fixture(params=[Numpy, ArrayApiStrict], ids=lambda adapter: adapter.name)
def standard(request: pytest.FixtureRequest) -> Any:
    if request.param is ArrayApiStrict:
        pytest.importorskip("array_api_strict")
    return request.param()


@pytest.mark.parametrize(
    ("pair", "carrier", "given", "expected"),
    [
        ("float32/float32", "add-zero", 0x80000000, 0),
        ("float32/float32", "hypot-with-sign", 0xC0400000, 0xC0400000),
        ("int8/int64", "sum-as-target", 0x80, -(1 << 7) & ((1 << 64) - 1)),
        ("bool/bool", "where", 1, 1),
    ],
)
def test_the_table_of_the_standard_runs_in_a_namespace(
    standard: Any, pair: str, carrier: str, given: int, expected: int
) -> None:
    case = carrier_case(STANDARD, f"{pair}/{carrier}")
    bits = bits_of(case.source, [given])
    assert_carries(standard, case, [given], [expected])
    [line] = run_script(standard.reproduce_carry(case, bits))
    assert int(line.split()[-1], 16) == expected


def test_numpy_answers_a_carrier_by_the_table_of_the_case() -> None:
    bits = bits_of("float32", [0x3FC00000])
    own, other = (
        Numpy().reproduce_carry(carrier_case(document, "float32/float32/take"), bits)
        for document in (NUMPY, STANDARD)
    )
    assert "np.arange(x.size)" in own
    assert "np.arange(x.shape[0])" in other


def test_a_result_of_another_dtype_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    case = carrier_case(NUMPY, "float32/float64/multiply-by-one-of-target")
    bits = bits_of("float32", [0x3F800000])
    assert Numpy().carry(case, bits).tolist() == [0x3FF0000000000000]
    monkeypatch.setattr(Numpy, "carriers", {"multiply-by-one-of-target": "x * np.float32(1)"})
    with pytest.raises(TypeError, match="the result has dtype float32"):
        Numpy().carry(case, bits)


def test_carriers_of_numpy_leave_their_input_alone() -> None:
    bits = np.array([0x80000000, 0x3F800000, 0x7FC00001], np.uint32)
    for case in select(["numpy-carriers"]):
        if (case.source, case.target) == ("float32", "float32"):
            given = bits.copy()
            Numpy().carry(case, given)
            assert given.tolist() == bits.tolist(), case.id
