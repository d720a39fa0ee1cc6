"""An element's answer must not depend on its position: each planted dependence is found."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.driver import BackendJudge
from conformance.families.cast.baseline import Baseline, baseline_of, candidates
from conformance.families.cast.invariances import Invariances
from conformance.families.cast.probes import few_probes, listed
from conformance.families.cast.quick_inputs import MOST, telling_inputs
from conformance.families.reference import Reference
from conformance.judging.asking import Settings
from conformance.judging.probe import LENGTHS, SHAPES, shape_of_pair
from oracles.backend.backend_supervisor import LaunchConfig
from oracles.backend.loading import close, load_isolated
from oracles.backend.requests import Cast, CastBatch
from oracles.memory_layouts import Layout, layout_of, with_layout
from oracles.registry import Backend, load_backend
from reports.drawn_tensors import FEW_SHAPES
from reports.judgement import Judgement
from reports.problem_words import words
from specs.cases import Case
from specs.selection import select
from tests.conformance import feeding
from tests.conformance.data import placed
from tests.conformance.feeding import (
    answering,
    check_invariances,
    compare_variants,
    feed,
    planted,
)
from tests.conformance.test_suite import FAILED, PASSED, suite

PLACED = Path(__file__).parents[2] / "data" / "placed.py"
ONNX = "onnx-cast:25"
RIGHT = Reference()
INT8 = ("float32", "int8")
HALF = ("float32", "float16")


def cases(source: str, target: str) -> list[Case]:
    return [case for case in select([ONNX]) if (case.source, case.target) == (source, target)]


def judge_of(backend: Backend) -> BackendJudge:
    # As a gate asks, which draws more tensors: a fault of one pair alone is rarely met at quick.
    return BackendJudge(backend, {}, Settings(max_examples=20, isolates_sweeps=True))


def loaded(name: str) -> BackendJudge:
    return judge_of(Backend(name, getattr(placed, name)()))


def judged(name: str, pair: tuple[str, str] = INT8) -> Judgement:
    return check_invariances(loaded(name), cases(*pair))


@pytest.fixture
def isolated(request: pytest.FixtureRequest) -> Iterator[Backend]:
    backend = load_isolated(f"{PLACED}:{request.param}", LaunchConfig())
    yield backend
    close(backend)


@pytest.mark.ci_runs_one_of(2)
@pytest.mark.parametrize("every", [210, 7])
def test_the_reference_answers_alike_everywhere(every: int) -> None:
    cases = select([ONNX])[::every]
    for (source, target), group in groupby(cases, lambda case: (case.source, case.target)):
        found = check_invariances(judge_of(load_backend("reference")), [*group])
        assert found.verdict in ("conforms", "unsupported"), (source, target, found)


def test_cases_of_other_families_may_share_the_pair() -> None:
    documents = [ONNX, "onnx-dequantize-linear:25"]
    named = ("uint8", "float32")
    pair = [case for case in select(documents) if (case.source, case.target) == named]
    assert {case.document for case in pair} == {each.partition(":")[0] for each in documents}
    found = check_invariances(judge_of(load_backend("reference")), pair)
    assert found.verdict == "conforms"


FORBIDDEN = [
    ("Tail", "at length 1, position 0"),
    ("Position", "at length 14, position 13"),
    ("Length", "at length 37, position 0"),
    ("Long", "at length 1023, position "),
    ("Large", "at length 65537, position "),
    ("Unaligned", "1 elements past a boundary"),
    ("Reversed", "at length 2, steps (-1,), position 0"),
    ("Scalar", "at shape (), position 0"),
    ("IgnoresStrides", "at shape (2, 1), 1 elements between rows, position 1"),
]


@pytest.mark.ci_runs_one_of(3)
@pytest.mark.parametrize("is_believed", [True, False])
@pytest.mark.parametrize(
    ("spoils", "where"),
    [
        # Which matrix a further road is asked depends on its name, and so does the layout.
        (lambda case, bits: bits.ndim > 1, "shape ("),
        (lambda case, bits: 7 <= bits.size <= 3000, "length 7, "),
    ],
)
@pytest.mark.parametrize("name", ["saturate:0", "13"])
def test_a_fault_of_another_mode_or_of_an_old_version_is_found(
    name: str, spoils: Any, where: str, is_believed: bool
) -> None:
    def cast(case: Case, bits: Any) -> Any:
        answers = RIGHT.cast(case, bits)
        is_other = name in (case.version, *case.id.split("/"))
        return answers ^ 1 if is_other and spoils(case, bits) else answers

    pair = ("float32", "float8e4m3fn") if ":" in name else HALF
    asked = [case for case in select(["onnx-cast"]) if (case.source, case.target) == pair]
    subject = replace(planted(max_examples=20), is_believed=is_believed)
    answer = answering(cast=cast, road=lambda case: case.id)
    found = feed(Invariances(subject, asked).judge(), answer)
    assert found.verdict in ("violates", "deviates"), found
    assert name in (found.case.split("/")[0].partition(":")[2], *found.case.split("/"))


@pytest.mark.parametrize(("is_believed", "roads"), [(True, 2), (False, 9)])
def test_cases_of_one_road_are_asked_once_where_the_adapter_is_believed(
    is_believed: bool, roads: int
) -> None:
    asked: list[Any] = []
    pair = [case for case in select(["onnx-cast"]) if (case.source, case.target) == HALF]
    subject = replace(planted(max_examples=20), is_believed=is_believed)
    answer = answering(cast=RIGHT.cast, road=lambda case: str(int(case.version) > 13))
    assert feed(Invariances(subject, pair).judge(), answer, asked).verdict == "conforms"
    batches = {each.case.id for each in asked if isinstance(each, CastBatch)}
    assert len(batches) == roads


@pytest.mark.ci_runs_one_of(3)
@pytest.mark.parametrize(("name", "smallest"), FORBIDDEN)
def test_a_specified_answer_that_changes_fails_at_the_smallest_place(
    name: str, smallest: str
) -> None:
    found = judged(name)
    assert found.verdict in ("violates", "deviates"), found
    assert smallest in found.message
    assert [words(fault) for fault in found.faults] == [found.message]
    assert found.case == f"{ONNX}/float32/int8"
    assert "in one row" in found.message


@pytest.mark.ci_runs_one_of(3)
@pytest.mark.parametrize(
    "isolated", ["Tail", "Honest", "Reversed", "Unaligned", "IgnoresStrides"], indirect=True
)
def test_layouts_reach_another_process_and_its_verdict_is_the_same(isolated: Backend) -> None:
    here = judged(isolated.name.rpartition(":")[2])
    there = check_invariances(judge_of(isolated), cases(*INT8))
    assert (there.verdict, there.message) == (here.verdict, here.message)


SETS = [
    ("OpenTail", ", 0x1 alone, 0x0 first at length 8, position 0"),
    ("OpenScalar", ", 0x0 in one row, 0x1 at shape ()"),
    ("OpenReversed", ", 0x0 in one row, 0x1 at "),
]


@pytest.mark.parametrize(("name", "where"), SETS)
def test_open_answers_that_change_are_a_set_and_no_failure(name: str, where: str) -> None:
    found = judged(name)
    assert (found.verdict, found.faults) == ("open", ())
    assert where.replace("0x", "0x0") in found.message
    assert "0x00, 0x01}" in found.message or "0x01, 0x00}" in found.message
    assert re.search(" inputs, where the document is open: 0x[7f]f", found.message)


OTHERS = [
    # Which NaN is answered is open, but not whether the answer is a NaN.
    ("OpenTail", HALF, ("open",), "a set of answers to"),
    ("LosesNans", HALF, ("deviates",), "in one row"),
    ("ClaimsNothing", INT8, ("differs",), "in one row"),
    ("Moody", INT8, ("violates", "deviates"), "in one row"),
    ("RaisesOnScalars", INT8, ("error",), "shape (): ValueError: no such rank"),
    ("RaisesOnScalarsUnclaimed", INT8, ("differs",), "shape (): ValueError: no such rank"),
    ("LacksScalars", INT8, ("conforms",), "for instance shape (): "),
    ("Declines", INT8, ("unsupported",), "no such kernel"),
    # A forbidden change outranks a tensor without an answer, which outranks a set of open answers.
    ("RaisesLater", INT8, ("violates", "deviates"), "in one row"),
    ("OpenRaisesLater", INT8, ("error",), "shape (): ValueError: no such rank"),
    ("DiesOfScalars", INT8, ("crashed",), "SIGSEGV"),
]


@pytest.mark.parametrize(("name", "pair", "verdicts", "message"), OTHERS)
def test_other_verdicts(
    name: str, pair: tuple[str, str], verdicts: tuple[str, ...], message: str
) -> None:
    found = judged(name, pair)
    assert found.verdict in verdicts
    assert message in found.message
    assert bool(message) == bool(found.message)


def test_where_shapes_are_costly_a_pair_is_asked_in_one_and_over_all_pairs_in_every_one() -> None:
    assert judged("Compiles").verdict in ("violates", "deviates")
    pairs = {f"{case.source}/{case.target}" for case in select([ONNX])}
    reached = set()
    for pair in pairs:
        [shape] = {probe.shape for probe in few_probes(MOST, pair)}
        assert shape_of_pair(pair) == shape
        reached.add(shape)
    assert reached == {(length,) for length in (*range(1, 71), 1023, 1024, 1025)} | set(SHAPES)


COMPILES = planted(compiles_shapes=True, max_examples=20)


@pytest.mark.parametrize("in_gate", [True, False])
def test_a_gate_says_of_a_pair_that_nothing_is_drawn_for_it(in_gate: bool) -> None:
    subject = planted(compiles_shapes=True, max_examples=20, isolates_sweeps=in_gate)
    found = feed(Invariances(subject, cases(*INT8)).judge(), answering(cast=RIGHT.cast))
    assert found.verdict == "conforms"
    assert found.message == (FEW_SHAPES if in_gate else "")


def test_where_shapes_are_costly_one_more_shape_is_asked_in_two_layouts_at_most() -> None:
    asked: list[Any] = []
    feed(Invariances(COMPILES, cases(*INT8)).judge(), answering(cast=placed.Compiles().cast), asked)
    [row] = [each.bits for each in asked if isinstance(each, Cast)]
    batches = [each.batch for each in asked if isinstance(each, CastBatch)]
    again = {(each.shape, each.strides) for batch in batches for each in batch.tensors()}
    assert {shape for shape, _ in again} == {shape_of_pair("/".join(INT8)), row.shape}
    assert len(again) <= 3


def test_where_shapes_are_costly_a_refusal_is_awaited_in_a_shape_that_is_there() -> None:
    asked: list[Any] = []
    answer = answering(cast=placed.Compiles().cast)
    found = feeding.judged("onnx-cast:25/float32/int4", answer, COMPILES, asked)
    assert found.verdict != "error"
    row = asked[0].bits.shape
    asked.clear()
    assert feeding.judged("onnx-cast:1/float32/int4", answer, COMPILES, asked).inputs == row[0]
    assert [each.bits.shape for each in asked if isinstance(each, Cast)] == [row]


def test_every_length_and_every_input_at_every_position() -> None:
    asked = list(listed(MOST))
    assert {probe.shape[0] for probe in asked if len(probe.shape) == 1} >= set(LENGTHS)
    reached = {
        (int(place), position)
        for probe in asked
        if probe.shape == (67,) and probe.layout is None
        for position, place in enumerate(probe.picks(MOST))
    }
    assert reached == {(place, position) for place in range(MOST) for position in range(67)}


def test_telling_inputs_are_of_every_rule_with_ties_and_nans() -> None:
    subject = planted(max_examples=20)
    case = candidates(subject, cases(*HALF), calls=False)[0]
    row = feed(baseline_of(subject, case), answering(cast=placed.RIGHT.cast))
    assert isinstance(row, Baseline)
    few = row.at(telling_inputs(row.rules, row.inputs, row.expected))
    assert few.inputs.size <= MOST
    assert set(few.expected.branch_indices.tolist()) == set(row.expected.branch_indices.tolist())
    assert {0x7F800001, 0x7FFFFFFF, 0xFF800001, 0xFFFFFFFF} <= set(few.inputs.tolist())
    # Half of float16's smallest subnormal: the tie between it and zero.
    assert 0x33000000 in few.inputs
    zeros_and_subnormals = {0, 0x80000000, 1, 0x80000001, 0x007FFFFF, 0x807FFFFF}
    assert zeros_and_subnormals <= set(few.inputs.tolist())


PLACINGS = [((7,), (2,), 3), ((7,), (-3,), 1), ((2, 3), (1, 2), 0), ((2, 3, 2), (-12, 4, -2), 5)]


@pytest.mark.parametrize(("shape", "strides", "offset"), PLACINGS)
@pytest.mark.parametrize("storage", ["uint8", "uint16", "uint32", "uint64"])
def test_values_lie_as_they_are_told_to(
    storage: str, shape: tuple[int, ...], strides: tuple[int, ...], offset: int
) -> None:
    values = np.arange(np.prod(shape), dtype=storage).reshape(shape)
    layout = Layout(strides, offset)
    array = with_layout(values, layout)
    assert np.array_equal(array, values)
    assert layout_of(array) == layout
    assert layout_of(values) is None


ROADS = [
    ("Scalar", "conforms", ""),
    ("Everywhere", "violates", " inputs answer otherwise than on Honest, the simplest"),
    ("OpenEverywhere", "open", "where the document is open"),
    ("Declines", "unsupported", "no such kernel"),
]


@pytest.mark.parametrize(("name", "verdict", "message"), ROADS)
def test_two_roads_are_compared_on_every_input(name: str, verdict: str, message: str) -> None:
    found = compare_variants(loaded("Honest"), loaded(name), cases(*INT8))
    assert found.verdict == verdict
    assert message in found.message


def placed_backend(name: str) -> str:
    return f"--backend={PLACED}:{name}"


def test_the_suite_has_an_item_per_pair_and_shows_sets() -> None:
    backends = map(placed_backend, ("OpenTail", "Tail", "Declines"))
    code, output = suite(*backends, "-v", "--document", ONNX, "-k", "invariances/float32/int8")
    assert code == FAILED
    assert "1 failed, 1 passed, 1 skipped" in output
    rows = [line.split() for line in output.partition("= verdicts =")[2].splitlines() if line]
    assert rows[1] == ["backend", "pairs", "violates", "open", "unsupported"]
    assert [row[1:] for row in rows[2:5]] == [["invariances", "1"]] * 3
    assert "invariances/float32/int8: a set of answers to" in output
    assert "at length 1, position 0" in output


def test_the_suite_compares_roads_that_are_asked_in_one_run() -> None:
    selected = ("-v", "--document", ONNX, "-k", "variants and float32/int8")
    code, output = suite(placed_backend("Honest"), placed_backend("OpenEverywhere"), *selected)
    assert code == PASSED
    assert "1 passed" in output
    assert "/float32/int8: where the document is open:" in output
