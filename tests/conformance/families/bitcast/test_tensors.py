"""Bitcasts are asked in further tensors than those of cases: each planted fault shows in some."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.driver import BackendJudge
from conformance.families.bitcast.ruling import bitcast_ruling
from conformance.families.bitcast.tensors import FurtherTensor, further_tensors
from conformance.judging.asking import Settings
from conformance.pair import judge_pair
from lab.mutants.fault import REFERENCE
from oracles.backend.backend_supervisor import LaunchConfig
from oracles.backend.loading import close, load_isolated
from oracles.memory_layouts import storage_offset
from oracles.protocol import Unsupported
from oracles.reference.reference_oracle import RejectedError
from reports.judgement import FAILING, Judgement
from specs.cases import Case
from specs.formats import format_named
from specs.selection import select
from tests.adapters.contract import make
from tests.conformance.feeding import answering, feed, planted

ADAPTER = Path(__file__).parents[2] / "data" / "reusing.py"
XLA, ONNX, TF, VIEW = "xla-bitcast-convert", "onnx-bitcast", "tensorflow-bitcast", "torch-view"
CINN = "cinn-bitcast-convert"
Bitcast = Callable[[Case, Any], Any]


def honest(case: Case, bits: Any) -> Any:
    return REFERENCE.bitcast(case, bits)


def cases_of(document: str, source: str, target: str) -> list[Case]:
    every = select([document])
    return [each for each in every if (each.source, each.target) == (source, target)]


def failing(pair: tuple[str, str, str], bitcast: Bitcast) -> list[Judgement]:
    """Judge a pair as a gate does, which draws more tensors; return the judgements that fail."""
    judge = judge_pair(planted(isolates_sweeps=True), cases_of(*pair))
    return [each for each in feed(judge, answering(bitcast=bitcast)) if each.verdict in FAILING]


def spoils(is_wrong: Callable[[Any], bool]) -> Callable[[], Bitcast]:
    """A backend that answers zeros to the tensors for which ``is_wrong`` holds."""

    def bitcast(case: Case, bits: Any) -> Any:
        answer = honest(case, bits)
        return np.zeros_like(answer) if is_wrong(bits) else answer

    return lambda: bitcast


def refuses_rank_5() -> Bitcast:
    def bitcast(case: Case, bits: Any) -> Any:
        if bits.ndim >= 5:
            raise RuntimeError("at most four dimensions")
        return honest(case, bits)

    return bitcast


def remembers_equal_numbers() -> Bitcast:
    """A backend that caches answers by constants, which it compares as numbers instead of bits."""
    known: list[tuple[Any, Any]] = []

    def bitcast(case: Case, bits: Any) -> Any:
        numbers = np.ascontiguousarray(bits).view(f"f{bits.itemsize}")
        for constant, answer in known:
            if constant.shape == numbers.shape and (constant == numbers).all():
                return answer
        known.append((numbers, honest(case, bits)))
        return honest(case, bits)

    return bitcast


def remembers_shapes_by_size() -> Bitcast:
    known: dict[int, tuple[int, ...]] = {}

    def bitcast(case: Case, bits: Any) -> Any:
        answer = honest(case, bits)
        return answer.reshape(known.setdefault(bits.size, answer.shape))

    return bitcast


def accepts(is_accepted: Callable[[Any], bool]) -> Callable[[], Bitcast]:
    """A backend that answers zeros to some tensors whose shapes it must reject."""

    def bitcast(case: Case, bits: Any) -> Any:
        try:
            return honest(case, bits)
        except RejectedError:
            if not is_accepted(bits):
                raise
            return np.zeros(bits.shape[:-1], format_named(case.target).storage)

    return lambda: bitcast


def address(bits: Any) -> int:
    return int(bits.ctypes.data)


def is_turned(bits: Any) -> bool:
    return bits.ndim > 1 and bits.size > 1 and bits.strides[0] < bits.strides[-1]


def step(bits: Any) -> int:
    return int(bits.strides[-1]) // bits.itemsize if bits.ndim and bits.size else 1


def has_both_zeros(bits: Any) -> bool:
    return bits.size > 1 and {*np.unique(bits).tolist()} == {0, 0x8000_0000}


def broadcasts_a_subnormal(bits: Any) -> bool:
    is_subnormal = (bits & 0x7FFF_FFFF > 0) & (bits & 0x7F80_0000 == 0)
    return bits.size > 0 and 0 in bits.strides and bool(is_subnormal.any())


Pair = tuple[str, str, str]
FAULTS: dict[str, tuple[Callable[[], Bitcast], list[Pair]]] = {
    "rank 5 is refused": (refuses_rank_5, [
        (XLA, "float32", "float16"), (XLA, "int8", "float32"), (ONNX, "int16", "bfloat16"),
        (TF, "uint16", "uint64"), (CINN, "int32", "float32")]),
    "ranks above 7 are wrong": (spoils(lambda bits: bits.ndim > 7), [
        (XLA, "float32", "float16"), (XLA, "int8", "float32"), (ONNX, "int4", "uint4"),
        (VIEW, "uint32", "int32")]),
    "-0 is answered as 0": (remembers_equal_numbers, [
        (ONNX, "float32", "uint32"), (XLA, "float32", "int32"), (VIEW, "float64", "uint16"),
        (TF, "float16", "float64")]),
    "constants are wrong": (spoils(lambda bits: bits.size > 1 and len(set(bits.tobytes())) == 4), [
        (ONNX, "float32", "uint32"), (XLA, "int32", "int8")]),
    "addresses are rounded down to 4": (spoils(lambda bits: bool(address(bits) % 4)), [
        (XLA, "int8", "float32"), (ONNX, "uint8", "int8"), (XLA, "float8e5m2", "int64")]),
    "addresses are rounded down to 8": (spoils(lambda bits: bool(address(bits) % 8)), [
        (VIEW, "int32", "float32"), (TF, "float16", "int8"), (CINN, "uint16", "float32")]),
    "the result's shape is remembered by the size": (remembers_shapes_by_size, [
        (XLA, "float64", "int8"), (ONNX, "float64", "int64"), (TF, "int8", "int32"),
        (VIEW, "int16", "int64"), (CINN, "uint64", "uint16")]),
    "without elements no shape is refused": (accepts(lambda bits: bits.ndim and not bits.size), [
        (TF, "int8", "int64"), (XLA, "uint16", "float32"), (ONNX, "int64", "int8")]),
    "rank 5 is not refused": (accepts(lambda bits: bits.ndim == 5), [
        (TF, "int8", "int64"), (XLA, "uint16", "float32"), (ONNX, "float32", "float64"),
        (XLA, "complex64", "int16")]),
    "columns first": (spoils(is_turned), [
        (ONNX, "float16", "int16"), (XLA, "float32", "int16"), (XLA, "int16", "float32"),
        (ONNX, "complex128", "complex128"), (XLA, "uint4", "int4")]),
    "steps of 2": (spoils(lambda bits: step(bits) == 2), [
        (ONNX, "float32", "int32"), (XLA, "int8", "float16"), (XLA, "float64", "uint8")]),
    "backwards": (spoils(lambda bits: step(bits) == -1), [
        (ONNX, "bfloat16", "uint16"), (XLA, "int8", "float16")]),
    "a broadcast row": (spoils(lambda bits: bool(bits.size) and 0 in bits.strides), [
        (ONNX, "int64", "float64"), (XLA, "float32", "uint8")]),
    "both zeros in one tensor": (spoils(has_both_zeros), [(XLA, "float32", "int32")]),
    "a subnormal in a broadcast tensor": (spoils(broadcasts_a_subnormal), [
        (XLA, "float32", "uint32"), (ONNX, "float32", "int32")]),
    "columns that fill whole bytes": (
        spoils(lambda bits: is_turned(bits) and bits.shape[0] % 2 == 0), [
            (ONNX, "int4", "uint4"), (XLA, "uint4", "int4")]),
    "channels last": (
        spoils(lambda bits: bits.ndim == 4 and bits.strides[1] < bits.strides[3]), [
            (XLA, "float32", "int32"), (ONNX, "int64", "float64")]),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_tensors_that_are_no_cases_is_found(name: str) -> None:
    backend, pairs = FAULTS[name]
    for pair in pairs:
        assert failing(pair, backend()), pair


@pytest.mark.parametrize("document", [XLA, ONNX, TF, VIEW, CINN])
def test_without_a_fault_no_tensor_fails(document: str) -> None:
    pairs = {(document, case.source, case.target) for case in select([document])}
    for pair in sorted(pairs)[::27]:
        assert not failing(pair, honest), pair


def test_a_wrong_element_names_the_layout_and_an_error_the_shape() -> None:
    turned, *_ = failing((ONNX, "float16", "int16"), spoils(is_turned)())
    assert re.match(r"shape \(.*\), .*dimensions in memory \(.*: element 0 is ", turned.message)
    refused = failing((XLA, "float32", "float16"), refuses_rank_5())
    assert all("RuntimeError: at most four dimensions" in each.message for each in refused)


def further(document: str, source: str, target: str) -> list[FurtherTensor]:
    return [
        each
        for case in cases_of(document, source, target)
        for each in further_tensors(case, bitcast_ruling(case), Settings())
    ]


def test_a_document_that_promises_a_view_is_asked_no_layout_that_a_view_may_refuse() -> None:
    for document, source, target in [(VIEW, "int8", "float32"), (TF, "int16", "int64")]:
        tensors = further(document, source, target)
        size = np.dtype(format_named(target).storage).itemsize
        assert all(each.bits.flags.c_contiguous and not address(each.bits) % size
                   for each in tensors if each.layout and not each.in_storage)  # fmt: skip
        assert any(each.layout for each in tensors)


def test_a_copy_of_a_tensor_past_a_boundary_breaks_the_promise_of_a_view() -> None:
    def is_shared(case: Case, bits: Any) -> bool:
        return address(bits) % 16 == 0

    answer = answering(bitcast=honest, bitcast_shares_memory=is_shared)
    found = feed(judge_pair(planted(), cases_of(VIEW, "int32", "float32")), answer)
    [wrong] = [each for each in found if each.verdict in FAILING]
    assert wrong.message == "shape (7, 11), 1 elements past a boundary: the result is a copy"


@pytest.mark.parametrize("document", [XLA, VIEW])
def test_narrower_elements_are_asked_in_all_ranks(document: str) -> None:
    ranks = {each.bits.ndim for each in further(document, "float32", "float16")}
    assert ranks >= {*range(1, 9)}


def test_a_document_of_storage_offsets_is_asked_those_that_divide_and_those_that_do_not() -> None:
    def offsets(source: str, target: str) -> dict[int, bool]:
        return {
            storage_offset(each.bits): each.ruling.is_rejection
            for each in further(VIEW, source, target)
            if each.in_storage
        }

    assert offsets("int16", "float64") == {1: True, 4: False, 5: True}
    # Of elements that do not widen nothing must divide.
    assert offsets("float64", "int16") == {1: False}
    assert offsets("float32", "int32") == {1: False, 2: False}
    assert not any(each.in_storage for each in further(TF, "int16", "float64"))


def view_in_storage(case: Case, bits: Any) -> Any:
    ratio = format_named(case.target).bits // format_named(case.source).bits
    if ratio > 1 and storage_offset(bits) % ratio:
        raise RuntimeError("the storage offset must be divisible")
    return honest(case, bits)


IN_STORAGE: dict[str, tuple[Bitcast, str]] = {
    "accepts all": (honest, "shape (2, 2), storage offset 1 is not refused, but gives shape"),
    "reads from the start": (
        lambda case, bits: np.zeros_like(view_in_storage(case, bits)),
        "shape (2, 2), storage offset 2: element 0 is 0x0000000000000000 instead of "),
}  # fmt: skip


@pytest.mark.parametrize("name", IN_STORAGE)
def test_a_fault_of_tensors_with_storage_offsets_is_found(name: str) -> None:
    in_storage, message = IN_STORAGE[name]
    cases = cases_of(VIEW, "float32", "float64")
    answer = answering(bitcast=honest, bitcast_in_storage=in_storage)
    [found] = [
        each for each in feed(judge_pair(planted(), cases), answer) if each.verdict in FAILING
    ]
    assert found.verdict == "violates"
    assert found.message.startswith(message)
    right = answering(bitcast=honest, bitcast_in_storage=view_in_storage)
    assert not [
        each for each in feed(judge_pair(planted(), cases), right) if each.verdict in FAILING
    ]


def test_torch_refuses_storage_offsets_that_do_not_divide() -> None:
    torch = make("torch")
    asked = [each for each in further(VIEW, "int16", "float64") if each.in_storage]
    refused = [each for each in asked if storage_offset(each.bits) % 4]
    assert 0 < len(refused) < len(asked)
    for each in asked:
        if each in refused:
            with pytest.raises(RuntimeError, match="storage_offset"):
                torch.bitcast_in_storage(each.case, each.bits)
        else:
            answer = torch.bitcast_in_storage(each.case, each.bits)
            assert (answer == honest(each.case, each.bits)).all()


def test_a_tensor_that_the_backend_declines_is_no_failure() -> None:
    def takes_contiguous(case: Case, bits: Any) -> Any:
        if not bits.flags.c_contiguous or bits.ndim > 5:
            raise Unsupported("no such tensors")
        return honest(case, bits)

    assert not failing((XLA, "float32", "int32"), takes_contiguous)
    # A backend that compiles per shape is asked in the shapes of the cases only.
    asked: list[Any] = []
    cases = cases_of(XLA, "float32", "int32")
    feed(judge_pair(planted(compiles_shapes=True), cases), answering(bitcast=honest), asked)
    assert {each.bits.shape for each in asked} == {bitcast_ruling(each).shape for each in cases}


@pytest.mark.parametrize(("name", "is_found"), [("Reuses", True), ("Copies", False)])
def test_an_answer_is_kept_while_the_next_call_is_made(name: str, is_found: bool) -> None:
    backend = load_isolated(f"{ADAPTER}:{name}", LaunchConfig(seconds=60.0))
    try:
        found = BackendJudge(backend, {}, Settings()).judge_pair(cases_of(ONNX, "float16", "int16"))
    finally:
        close(backend)
    assert any(each.verdict == "violates" for each in found) == is_found
