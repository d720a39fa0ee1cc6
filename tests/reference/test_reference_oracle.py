"""The reference remembers answers; what it remembers must not change any answer."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from sys import getswitchinterval, setswitchinterval
from threading import Barrier

import numpy as np
import pytest
from numpy.typing import NDArray

from conformance.families.reference import Reference
from oracles.protocol import Bits
from oracles.reference import expect_by_exact
from oracles.reference.reference_oracle import ROW_SIZES, ROWS_KEPT, with_nans
from specs.ruling import ruling
from specs.selection import case_named

NARROW = "onnx-cast:25/float16/float8e4m3fn/saturate:1"
WIDE = "onnx-cast:25/float32/float16"
OTHER_ROUNDING = "onnx-cast:25/float32/float8e8m0/saturate:1/round_mode:up"


def by_definition(case_id: str, inputs: Bits) -> NDArray[np.uint64]:
    """The answers of the exact definition, with the reference's choice among NaNs."""
    rules = ruling(case_named(case_id))
    return with_nans(rules, expect_by_exact.expect(rules, inputs))


def row_of(case_id: str, seed: int, size: int = ROW_SIZES[0]) -> Bits:
    """Random inputs of a case in rising order."""
    source = ruling(case_named(case_id)).source
    inputs = np.random.default_rng(seed).integers(0, source.mask, 2 * size, source.storage)
    row: Bits = np.unique(inputs)[:size]
    return row


@pytest.mark.parametrize("case_id", [NARROW, WIDE, OTHER_ROUNDING])
def test_every_way_to_ask_gives_the_answers_of_the_definition(case_id: str) -> None:
    oracle, case = Reference(), case_named(case_id)
    row, other = row_of(case_id, 1), row_of(case_id, 2)
    asked = [row, row[5:8], row[::-1], row.reshape(2, -1), np.repeat(row[:2], 300), other]
    asked += [np.append(row[:3], other[:3]), row[:0], row]
    for inputs in asked:
        answers = oracle.cast(case, inputs)
        assert answers.shape == inputs.shape
        assert (answers.reshape(-1) == by_definition(case_id, inputs.reshape(-1))).all()


def test_an_answer_that_is_changed_changes_no_later_one() -> None:
    oracle, case = Reference(), case_named(WIDE)
    row = row_of(WIDE, 1)
    for inputs in (row, row, row[3:6]):
        oracle.cast(case, inputs)[:] = 0x7777
        assert (oracle.cast(case, inputs) == by_definition(WIDE, inputs)).all()


def test_inputs_that_the_caller_changes_are_not_taken_for_the_old_ones() -> None:
    oracle, case = Reference(), case_named(WIDE)
    row = row_of(WIDE, 1)
    oracle.cast(case, row)
    row += 0x0123_4567
    row.sort()
    assert (oracle.cast(case, row) == by_definition(WIDE, row)).all()


def test_texts_are_kept_apart_by_what_they_are_cast_to() -> None:
    oracle = Reference()
    texts = np.array(["1.5", "-0", "1e400", "1.5"], object)
    for target in ("float16", "float32", "float16"):
        case_id = f"onnx-cast:25/string/{target}"
        answers = oracle.cast(case_named(case_id), texts)
        assert (answers == by_definition(case_id, texts)).all()
    for source, text in (("float16", "1.5"), ("float32", "2.2241e-41"), ("float16", "1.5")):
        case = case_named(f"onnx-cast:25/{source}/string")
        pattern = np.array([0x3E00], ruling(case).source.storage)
        assert [float(each) for each in oracle.cast(case, pattern)] == [float(text)]


def test_only_the_last_rows_are_kept() -> None:
    oracle = Reference()
    targets = ("float16", "bfloat16", "float64", "int8", "int16", "int32", "int64", "uint8")
    for round_trip in range(2):
        for source in ("float32", "int32", "uint32"):
            for target in targets:
                case_id = f"onnx-cast:25/{source}/{target}"
                row = row_of(case_id, round_trip)
                if not ruling(case_named(case_id)).open_branches:
                    answers = oracle.cast(case_named(case_id), row)
                    assert (answers == by_definition(case_id, row)).all()
                oracle.cast(case_named(case_id), row)
    assert len(oracle._rows) == ROWS_KEPT


@pytest.mark.parametrize("case_id", [NARROW, WIDE, OTHER_ROUNDING, "onnx-cast:25/float32/string"])
def test_six_threads_that_ask_a_new_reference_at_once_get_its_answers(case_id: str) -> None:
    """Each thread decodes the same row, unless it sees that another one does."""
    oracle, case, row = Reference(), case_named(case_id), row_of(case_id, 1)
    together = Barrier(6)

    def ask(place: int) -> Bits:
        together.wait()
        return oracle.cast(case, row)

    before = getswitchinterval()
    setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(6) as threads:
            answers = list(threads.map(ask, range(6)))
    finally:
        setswitchinterval(before)
    alone = Reference().cast(case, row)
    assert all((each == alone).all() for each in answers)
