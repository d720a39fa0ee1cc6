"""Answers that a run digests: what a digest depends on, and that other answers count as changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.families.chains.judge import judge_chains
from conformance.families.reference import Reference
from conformance.judging.answer_digests import (
    MOST_EXAMPLES,
    MOST_OF_A_TENSOR,
    AnswerDigester,
    spread,
)
from oracles.backend.replies import Answered, Declined, Raised, Reply
from reports.changes.of_runs import NOT_KEPT, OTHER_INPUTS, changes_of_runs
from reports.changes.words import screen
from reports.judgement import AnswerDigest, AnswerExample, Judgement
from reports.run_store.open_run import open_run, read_digests
from reports.run_store.record import BackendRecord
from reports.run_store.store import create
from reports.run_store.tables import DIGESTS_TABLE
from specs.cases import Case
from specs.chains import chain_named
from specs.selection import case_named
from tests.conformance.families.chains.test_judge import ROADS, Optimizer, along
from tests.conformance.feeding import answering, feed, judged, planted
from tests.conformance.processes import castigate
from tests.reports.common import record

RIGHT = Reference()
QUANTIZE = "onnx-quantize-linear:25/float32/int8/scale:float32/form:tensor"
DEQUANTIZE = "onnx-dequantize-linear:25/int32/float16/scale:float16/form:tensor"
DYNAMIC = "onnx-dynamic-quantize-linear:11/float32/uint8"
BLOCKS = "mx-blocks:1/float32/float4e2m1/rule:floor/block:32"
BITCAST = "wasm-reinterpret:2.0/float64/float64/shape:scalar"
CALL = "torch-tensor-to:2.13/float32/int8/form:dtype"
CHAIN = "onnx-cast:25/float32/int32/int64"
ROW = np.arange(4, dtype=np.uint8)


def digest(*added: tuple[Mapping[str, Any], Reply]) -> AnswerDigest | None:
    digester = AnswerDigester()
    for tensors, reply in added:
        digester.add(tensors, reply)
    return digester.added_to(Judgement("case", "planted", "conforms")).answer_digest


def test_a_digest_is_of_names_dtypes_shapes_elements_and_kinds_of_replies() -> None:
    first = digest(({"x": ROW}, Answered({"y": ROW})))
    assert first is not None
    assert first == digest(({"x": ROW.copy()}, Answered({"y": ROW[::-1][::-1]})))
    for tensors in ({"z": ROW}, {"x": ROW + 1}, {"x": ROW.reshape(2, 2)}, {"x": ROW.view("i1")}):
        other = digest((tensors, Answered({"y": ROW})))
        assert other is not None
        assert (other.asked == first.asked, other.answers == first.answers) == (False, True)
    for results in ({"y": ROW[::-1]}, {"y": ROW.reshape(4, 1)}, {"z": ROW}):
        other = digest(({"x": ROW}, Answered(results)))
        assert other is not None
        assert (other.asked == first.asked, other.answers == first.answers) == (True, False)


def test_a_reply_without_an_answer_counts_by_its_kind_and_not_by_its_words() -> None:
    def after(reply: Reply) -> AnswerDigest | None:
        return digest(({"x": ROW}, Answered({"y": ROW})), ({"x": ROW}, reply))

    assert after(Declined("not on this CPU")) == after(Declined("unsupported"))
    assert after(Raised(ValueError("a"))) == after(Raised(TypeError("b")))
    assert after(Declined("a")) != after(Raised(ValueError("a")))


def test_without_answers_or_if_they_vary_there_is_no_digest() -> None:
    assert digest(({"x": ROW}, Declined("no"))) is None
    digester = AnswerDigester()
    digester.add({"": ROW}, Answered(ROW))
    digester.varies = True
    assert digester.added_to(Judgement("case", "planted", "open")).answer_digest is None


def test_examples_are_few_and_each_input_has_one() -> None:
    digester = AnswerDigester()
    digester.add({"": ROW}, Answered(ROW))
    for tensor in range(MOST_EXAMPLES):
        given = (AnswerExample(f"{tensor} {at}", "0") for at in range(MOST_OF_A_TENSOR + 1))
        digester.show(given)
        digester.show([AnswerExample("0 0", "1")])
    found = digester.added_to(Judgement("case", "planted", "open")).answer_digest
    assert found is not None
    assert len(found.examples) == MOST_EXAMPLES
    assert len({each.given for each in found.examples}) == MOST_EXAMPLES
    assert found.examples[0] == AnswerExample("0 0", "0")
    assert digester.has_all_examples


def test_elements_are_spread_over_those_that_are_marked() -> None:
    mask = np.zeros(100, bool)
    assert spread(mask) == []
    mask[[3, 50]] = True
    assert spread(mask) == [3, 50]
    mask[10:90] = True
    found = spread(mask)
    assert len(found) == MOST_OF_A_TENSOR
    assert (found[0], found[-1]) == (3, 89)


def free_codes(case: Case, tensors: Mapping[str, Any]) -> Mapping[str, Any]:
    """Right, but the codes of NaNs, which ONNX leaves open for integers, are others."""
    found = dict(RIGHT.quantize(case, tensors))
    nan = np.isnan(tensors["x"].view(np.float32))
    found["y"] = np.where(nan, found["y"] ^ np.uint8(1), found["y"])
    return found


def free_products(case: Case, tensors: Mapping[str, Any]) -> Mapping[str, Any]:
    """Right, but zeros of the other sign where a zero is due, whose sign ONNX leaves open."""
    found = dict(RIGHT.quantize(case, tensors))
    zero = tensors["x"] == tensors.get("zero", np.zeros((), tensors["x"].dtype))
    zero = np.broadcast_to(zero, found["y"].shape)
    found["y"] = np.where(zero, found["y"] ^ np.uint16(0x8000), found["y"])
    return found


def free_scale(case: Case, tensors: Mapping[str, Any]) -> Mapping[str, Any]:
    """Right, but another scale for tensors with a NaN, for which none is due."""
    found = dict(RIGHT.quantize(case, tensors))
    if np.isnan(tensors["x"].view(np.float32)).any():
        found["scale"] = found["scale"] ^ np.uint32(1)
    return found


def free_blocks(case: Case, tensors: Mapping[str, Any]) -> Mapping[str, Any]:
    """Right, but another scale for blocks of zeros, for which the document demands none."""
    found = dict(RIGHT.quantize(case, tensors))
    x = tensors["x"].reshape(-1, tensors["x"].shape[-1])
    scale = found["scale"].copy()
    rows = scale.reshape(x.shape[0], -1)
    for row in range(rows.shape[0]):
        for at in range(rows.shape[1]):
            if not (x[row, at * 32 : at * 32 + 32] << np.uint32(1)).any():
                rows[row, at] ^= 1
    return found | {"scale": scale}


def free_bits(case: Case, bits: Any) -> Any:
    return RIGHT.bitcast(case, bits) ^ np.uint64(1)


def free_call(case: Case, call: Any, bits: Mapping[str, Any]) -> Any:
    """Right, but NaNs, which the document leaves open for integers, give other codes."""
    found = RIGHT.call(case, call, bits)
    [(name, tensor)] = found.tensors.items()
    nan = np.isnan(np.asarray(bits[name]).view(np.float32))
    changed = np.where(nan, tensor.bits ^ np.uint8(1), tensor.bits)
    return replace(found, tensors={name: replace(tensor, bits=changed)})


PLANTED: dict[str, tuple[str, dict[str, Callable[..., Any]], dict[str, Callable[..., Any]]]] = {
    "quantize": (QUANTIZE, {"quantize": RIGHT.quantize}, {"quantize": free_codes}),
    "dequantize": (DEQUANTIZE, {"quantize": RIGHT.quantize}, {"quantize": free_products}),
    "dynamic-quantize": (DYNAMIC, {"quantize": RIGHT.quantize}, {"quantize": free_scale}),
    "block-quantize": (BLOCKS, {"quantize": RIGHT.quantize}, {"quantize": free_blocks}),
    "bitcast": (BITCAST, {"bitcast": RIGHT.bitcast}, {"bitcast": free_bits}),
    "call": (CALL, {"call": RIGHT.call}, {"call": free_call}),
}
"""By operation, a case, and backends whose answers differ only where the document allows both."""


def stored(folder: Path, name: str, found: Judgement, seed: int = 0) -> str:
    """Write a complete run of one judgement; return its folder."""
    run = record(backends=(BackendRecord(name="planted", version=folder.name),), seed=seed)
    create(str(folder), run).finish([("planted", case_named(name), found)], lambda: 0)
    return str(folder)


def both_runs(folder: Path, operation: str) -> tuple[str, str]:
    name, *methods = PLANTED[operation]
    found = [judged(name, answering(**each), planted(max_examples=20)) for each in methods]
    assert found[0].verdict == found[1].verdict in ("conforms", "open")
    assert found[0].problems == found[1].problems or operation == "block-quantize"
    before, now = (stored(folder / v, name, each) for v, each in zip("12", found, strict=True))
    return before, now


@pytest.mark.parametrize("operation", PLANTED)
def test_other_allowed_answers_are_a_change_in_the_same_words(
    operation: str, tmp_path: Path
) -> None:
    before, now = both_runs(tmp_path, operation)
    [found] = changes_of_runs(open_run(before), open_run(now), ["planted"])
    assert (found.counts, found.same, found.notes) == ({"otherwise": 1}, 0, ())
    [change] = found.changes
    assert change.says == "before: an allowed answer; now: another allowed answer"
    assert change.example is not None
    assert change.example.given
    assert change.example.before != change.example.now
    [unchanged] = changes_of_runs(open_run(before), open_run(before), ["planted"])
    assert (unchanged.counts, unchanged.same) == ({}, 1)


@pytest.mark.parametrize("operation", PLANTED)
def test_diff_counts_them_and_shows_one(operation: str, tmp_path: Path) -> None:
    before, now = both_runs(tmp_path, operation)
    code, out, err = castigate("diff", before, now)
    assert (code, err) == (1, "")
    if operation != "call":  # Of calls all answers are kept.
        assert f"{operation}: other answers in 1 of 1 case; " in out
    assert " 1 otherwise, " in out
    assert out.splitlines()[-1].endswith(
        "1 case asked of both, 1 with answers kept, 1 difference of answers, 0 of verdicts"
    )
    code, out, err = castigate("diff", before, before)
    assert (code, err) == (0, "")
    assert "0 differences of answers" in out


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("seed", OTHER_INPUTS),
        ("asked", OTHER_INPUTS),
        ("table", NOT_KEPT),
    ],
)
def test_answers_that_cannot_be_compared_are_no_change(
    change: str, reason: str, tmp_path: Path
) -> None:
    name, right, other = PLANTED["quantize"]
    first, second = (judged(name, answering(**each)) for each in (right, other))
    if change == "asked":
        assert second.answer_digest is not None
        second = replace(second, answer_digest=replace(second.answer_digest, asked="0"))
    before = stored(tmp_path / "1", name, first)
    now = stored(tmp_path / "2", name, second, seed=int(change == "seed"))
    if change == "table":
        Path(before, DIGESTS_TABLE).unlink()
    [found] = changes_of_runs(open_run(before), open_run(now), ["planted"])
    assert (found.counts, found.same) == ({}, 1)
    assert screen([found])[-1] == f"  answers of 1 case are not compared: {reason}"
    code, out, _ = castigate("diff", before, now)
    assert code == 0
    assert f"quantize: answers of 1 case are not compared: {reason}\n" in out
    assert "0 with answers kept, 0 differences of answers" in out


def test_two_backends_of_one_run_are_compared_too(tmp_path: Path) -> None:
    name, *methods = PLANTED["bitcast"]
    run = create(
        str(tmp_path / "run"),
        record(backends=tuple(BackendRecord(name=each, version="1") for each in "ab")),
    )
    found = [judged(name, answering(**each)) for each in methods]
    rows = [(each, case_named(name), one) for each, one in zip("ab", found, strict=True)]
    run.finish(rows, lambda: 0)
    code, out, _ = castigate("diff", str(tmp_path / "run"), "--backend=a", "--backend=b")
    assert code == 1
    assert "bitcast: other answers in 1 of 1 case; shape scalar: 0x" in out


def chain_digest(below: int) -> Judgement:
    """Judge a chain that an optimizer shortens, for inputs below a pattern only."""
    optimizer = Optimizer(
        lambda chain, _: along(chain), lambda bits: (bits >= 0x4F000000) & (bits < below)
    )
    answer = answering(cast=optimizer.cast, chains=optimizer.chains)
    direct = chain_named(CHAIN).direct
    [found] = feed(judge_chains(planted(chain_roads=ROADS), [f"chains/{CHAIN}"], [direct]), answer)
    return found


def test_chains_have_digests_of_all_roads_that_are_asked_all_inputs(tmp_path: Path) -> None:
    few, more = chain_digest(0x50000000), chain_digest(0x5E000000)
    assert few.verdict == more.verdict == "open"
    for version, found in (("1", few), ("2", more)):
        folder = tmp_path / version
        run = record(backends=(BackendRecord(name="planted", version=version),))
        direct = chain_named(CHAIN).direct
        create(str(folder), run).finish([("planted", direct, found)], lambda: 0)
    stores = [open_run(str(tmp_path / version)) for version in "12"]
    assert [key for key, _ in read_digests(stores[0])] == [("planted", f"chains/{CHAIN}")]
    [found_changes] = changes_of_runs(stores[0], stores[1], ["planted"])
    assert found_changes.counts == {"otherwise": 1}
    code, out, _ = castigate("diff", str(tmp_path / "1"), str(tmp_path / "2"))
    assert (code, "chain: other answers in 1 of 1 case" in out) == (1, True)
