"""The calls of the array API standard on numpy and array-api-strict, and numpy's casting modes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oracles.adapters.array_api import standard_claims
from oracles.adapters.array_api_strict import ArrayApiStrict
from oracles.adapters.numpy import Numpy
from oracles.protocol import Returned, Unsupported
from specs.case_calls import call_of
from specs.selection import case_named
from tests.adapters.common import bits_of, numpy_case, run_script

CALLS = "array-api-astype-calls:2025.12"


@pytest.fixture(params=[Numpy, ArrayApiStrict], ids=lambda adapter: adapter.name)
def oracle(request: pytest.FixtureRequest) -> Any:
    if request.param is ArrayApiStrict:
        pytest.importorskip("array_api_strict")
    return request.param()


def make(oracle: Any, name: str, document: str = CALLS) -> Returned:
    case = case_named(f"{document}/{name}")
    returned: Returned = oracle.call(case, call_of(case), {"": bits_of("float32", [0x3F800000])})
    return returned


@pytest.mark.parametrize(
    ("name", "is_receiver", "dtype"),
    [
        ("float32/float32/form:dtype", False, "float32"),
        ("float32/float32/form:copies", False, "float32"),
        ("float32/float32/form:does-not-copy-same", True, "float32"),
        ("float32/int32/form:does-not-copy", False, "int32"),
        ("float32/bool/form:device-none", False, "bool"),
    ],
)
def test_an_array_comes_back_itself_only_if_it_is_not_copied(
    oracle: Any, name: str, is_receiver: bool, dtype: str
) -> None:
    returned = make(oracle, name)
    assert (returned.is_receiver, returned.shares_memory) == (is_receiver, is_receiver)
    assert returned.tensors[""].dtype == dtype
    assert returned.receiver[""].bits.tolist() == [0x3F800000]


def test_a_call_of_another_document_is_unsupported(oracle: Any) -> None:
    with pytest.raises(Unsupported, match="has no tensor with a method to"):
        make(oracle, "float32/int32/form:dtype", "paddle-tensor-to:1.0")


def test_a_call_has_a_script(oracle: Any) -> None:
    case = case_named(f"{CALLS}/float32/float32/form:does-not-copy-same")
    script = oracle.reproduce_call(case, call_of(case), {"": bits_of("float32", [0x3F800000])})
    printed = run_script(script)
    assert printed[:2] == ["the array itself: True", "its memory: True"]


def test_strict_is_a_namespace_of_the_version_that_the_case_is_about() -> None:
    pytest.importorskip("array_api_strict")
    with pytest.raises(TypeError, match=r"at least version 2023\.12"):
        make(ArrayApiStrict(), "float32/int32/form:device-none", "array-api-astype-calls:2022.12")


@pytest.mark.parametrize(("casting", "refused"), [("safe", True), ("same_kind", False)])
def test_numpy_casts_in_the_mode_of_the_case(casting: str, refused: bool) -> None:
    case, bits = numpy_case("float64", "float32", casting), np.zeros(1, np.uint64)
    if refused:
        with pytest.raises(TypeError, match="according to the rule 'safe'"):
            Numpy().cast(case, bits)
        with pytest.raises(TypeError, match="according to the rule 'safe'"):
            Numpy().bind(case, bits)()
    else:
        assert Numpy().cast(case, bits).tolist() == [0]


def test_a_library_claims_the_version_that_it_declares() -> None:
    claimed = ("array-api-astype:2024.12", "array-api-astype-calls:2024.12")
    assert standard_claims("2024.12") == claimed
    assert standard_claims("2099.12") == ()
