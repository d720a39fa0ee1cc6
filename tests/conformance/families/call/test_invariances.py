"""Calls keep their answers: in other tensors, after other calls, and after refused ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.driver import BackendJudge, drive
from conformance.families.cast.invariances import Invariances
from conformance.families.reference import Reference
from conformance.judging.asking import Settings
from conformance.pair import judge_pair
from oracles.backend.backend_supervisor import LaunchConfig
from oracles.backend.loading import close, load_isolated
from oracles.protocol import Returned, Unsupported
from reports.judgement import Judgement
from specs.cases import Call, Case
from specs.selection import select
from tests.conformance.feeding import answering, feed, judged, planted

RIGHT = Reference()
REUSING = Path(__file__).parents[2] / "data" / "reusing_calls.py"
TO, ASTYPE, CASTS = "torch-sharded-tensor-to", "paddle-layer-astype", "onnx-cast:25"
Spoil = Callable[[np.ndarray, np.ndarray], Any]
"""Takes the bits of a receiver and of the result; returns other bits of the result."""


def cases(source: str, target: str, *documents: str) -> list[Case]:
    found = select(documents or [TO])
    return [case for case in found if (case.source, case.target) == (source, target)]


def spoiled(change: Spoil, only: str = "") -> Callable[..., Returned]:
    """Calls whose results are changed, if their form begins with ``only``."""

    def call(case: Case, made: Call, bits: Mapping[str, Any]) -> Returned:
        gave = RIGHT.call(case, made, bits)
        if not case.mode["form"].startswith(only):
            return gave
        tensors = {
            name: replace(one, bits=np.asarray(change(bits[name], one.bits)))
            for name, one in gave.tensors.items()
        }
        return replace(gave, tensors=tensors)

    return call


def check(asked: list[Case], claims: list[str], **methods: Any) -> Judgement:
    # As a gate asks, which draws more tensors: a fault of one pair alone is rarely met at quick.
    subject = planted(claims, max_examples=20, isolates_sweeps=True)
    return feed(Invariances(subject, asked).judge(), answering(**methods))


def from_sixteen_on(given: np.ndarray, result: np.ndarray) -> Any:
    return result ^ 1 if result.ndim == 1 and result.size >= 16 else result


def where_long(given: np.ndarray, result: np.ndarray) -> Any:
    return result ^ 1 if result.size > 1024 else result


def in_the_order_of_memory(given: np.ndarray, result: np.ndarray) -> Any:
    if given.ndim != 2 or not given.flags.f_contiguous or given.flags.c_contiguous:
        return result
    return result.T.reshape(result.shape)


def where_apart(given: np.ndarray, result: np.ndarray) -> Any:
    return result if given.flags.c_contiguous else result ^ 1


def remembered_by_shape() -> Spoil:
    known: dict[Any, np.ndarray] = {}
    return lambda given, result: known.setdefault(result.shape, result)


SPOILS: dict[str, Callable[[], Spoil]] = {
    "rows": lambda: from_sixteen_on,
    "long tensors": lambda: where_long,
    "columns first": lambda: in_the_order_of_memory,
    "remembered by shape": remembered_by_shape,
}


@pytest.mark.parametrize(
    ("name", "source", "target", "document"),
    [
        ("rows", "bool", "int32", TO),
        ("remembered by shape", "float32", "float16", TO),
        ("columns first", "float32", "float16", "paddle-tensor-to"),
        ("long tensors", "float32", "float16", "torch-module-type"),
        ("rows", "float32", "float16", ASTYPE),
    ],
)
def test_calls_alone_are_the_baseline_of_their_pair(
    name: str, source: str, target: str, document: str
) -> None:
    asked = cases(source, target, document)[:1]
    found = check(asked, [document], call=spoiled(SPOILS[name]()))
    assert found.verdict in ("violates", "deviates"), found
    assert found.case.startswith(document)
    assert check(asked, [document], call=RIGHT.call).verdict == "conforms"


def test_a_fault_of_an_unclaimed_call_differs() -> None:
    found = check(cases("bool", "int32")[:1], [], call=spoiled(from_sixteen_on))
    assert found.verdict == "differs"


def test_a_pair_whose_calls_are_all_declined_says_why() -> None:
    def declines(case: Case, call: Call, bits: Any) -> Any:
        raise Unsupported("no tensors here")

    found = check(cases("float32", "float16"), [TO], call=declines)
    assert (found.verdict, found.message) == ("unsupported", "no tensors here")


@pytest.mark.parametrize("form", ["non-blocking", "memory-format", "listed-other"])
def test_each_form_of_a_call_is_asked_in_tensors_of_chance(form: str) -> None:
    forms = {"dtype", "non-blocking", "memory-format", "listed-other"}
    asked = [each for each in cases("float32", "float16") if each.mode["form"] in forms]
    found = check(
        asked,
        [TO],
        call=spoiled(lambda given, result: result ^ 1 if given.ndim == 3 else result, only=form),
    )
    assert found.verdict == "violates"
    assert f"form:{form}" in found.case


def overwrites_whole_vectors(case: Case, made: Call, bits: Mapping[str, Any]) -> Returned:
    """Leaves other bits in a receiver of whole vectors."""
    gave = RIGHT.call(case, made, bits)
    if not all(each.size and each.nbytes % 64 == 0 for each in bits.values()):
        return gave
    receiver = {name: replace(one, bits=one.bits ^ 1) for name, one in gave.receiver.items()}
    return replace(gave, receiver=receiver)


def gives_a_view_of_one_row(case: Case, made: Call, bits: Mapping[str, Any]) -> Returned:
    gave = RIGHT.call(case, made, bits)
    [given] = bits.values()
    is_one_row = given.ndim > 1 and given.shape[0] == 1 and given.size > 0
    return replace(gave, shares_memory=True) if is_one_row else gave


def test_a_call_that_gives_no_tensor_back_in_some_shape_breaks_a_promise() -> None:
    def call(case: Case, made: Call, bits: Mapping[str, Any]) -> Returned:
        gave = RIGHT.call(case, made, bits)
        return replace(gave, tensors={}) if bits[""].ndim == 3 else gave

    found = check(cases("float32", "float16")[:1], [TO], call=call)
    assert (found.verdict, "gives no tensor back" in found.message) == ("violates", True), found


@pytest.mark.parametrize(
    ("call", "document", "source", "target", "says"),
    [
        (overwrites_whole_vectors, TO, "float32", "float16", ": the receiver holds other"),
        (gives_a_view_of_one_row, "array-api-astype-calls", "float32", "float32", "no copy"),
    ],
)
def test_a_promise_besides_values_holds_in_every_tensor(
    call: Any, document: str, source: str, target: str, says: str
) -> None:
    asked = cases(source, target, document)[:3]
    found = check(asked, [document], call=call)
    assert found.verdict in ("violates", "deviates"), found
    assert says in found.message
    assert check(asked, [document], call=RIGHT.call).verdict == "conforms"


@pytest.mark.parametrize(
    ("cast", "call", "claims", "verdict", "document"),
    [
        # A claimed call counts even if the cast beside it is right, or is wrong but not claimed.
        (RIGHT.cast, spoiled(where_apart), [TO], "violates", TO),
        ("spoiled", spoiled(where_apart), [TO], "violates", TO),
        ("spoiled", RIGHT.call, [TO], "differs", CASTS),
        ("spoiled", spoiled(where_apart), [CASTS], "violates", CASTS),
        (RIGHT.cast, spoiled(where_apart), [CASTS], "differs", TO),
    ],
)
def test_a_call_is_judged_by_the_claim_of_its_own_document(
    cast: Any, call: Any, claims: list[str], verdict: str, document: str
) -> None:
    def wrong(case: Case, bits: Any) -> Any:
        return np.asarray(from_sixteen_on(bits, RIGHT.cast(case, bits)))

    asked = [*cases("float32", "float16")[:1], *cases("float32", "float16", CASTS)]
    found = check(asked, claims, cast=wrong if cast == "spoiled" else cast, call=call)
    assert (found.verdict, found.case.startswith(document)) == (verdict, True), found


@pytest.mark.parametrize("is_claimed", [True, False])
def test_an_error_of_a_claimed_call_comes_before_one_of_an_unclaimed_cast(is_claimed: bool) -> None:
    def raises(answer: Any, *given: Any) -> Any:
        bits = given[-1] if isinstance(given[-1], np.ndarray) else given[-1][""]
        if bits.ndim == 2:
            raise RuntimeError("no matrices")
        return answer(*given)

    asked = [*cases("float32", "float16")[:1], *cases("float32", "float16", CASTS)]
    methods = {"cast": partial(raises, RIGHT.cast), "call": partial(raises, RIGHT.call)}
    found = check(asked, [TO] if is_claimed else [], **methods)
    assert (found.verdict, "no matrices" in found.message) == (
        "error" if is_claimed else "differs",
        True,
    )
    assert found.case.startswith(TO if is_claimed else CASTS)


class Unfinished:
    """A layer whose first ``astype`` after a refused one converts nothing, or raises an error."""

    def __init__(self, raises: bool = False) -> None:
        self.is_busy = False
        self.raises = raises

    def call(self, case: Case, call: Call, bits: Mapping[str, Any]) -> Returned:
        was_busy, self.is_busy = self.is_busy, True
        gave = RIGHT.call(case, call, bits)
        self.is_busy = False
        if not was_busy:
            return gave
        if self.raises:
            raise RuntimeError("busy")
        tensors = {
            each.name: replace(gave.tensors[each.name], dtype=each.dtype, bits=bits[each.name])
            for each in call.members
        }
        return replace(gave, tensors=tensors, receiver=tensors)


@pytest.mark.parametrize(
    ("raises", "verdict", "message"),
    [
        (False, "violates", "gives float32 instead of bfloat16 (nothing was converted)"),
        (True, "error", "RuntimeError: busy"),
    ],
)
def test_what_a_refused_call_leaves_behind_is_found(
    raises: bool, verdict: str, message: str
) -> None:
    name = f"{ASTYPE}:1.0/float32/float32/form:no-such-name/member:weight"
    found = judged(name, answering(call=Unfinished(raises).call), planted([ASTYPE]))
    assert (found.verdict, found.message) == (
        verdict,
        f"right after this call is refused: {message}",
    )
    assert judged(name, answering(call=RIGHT.call), planted([ASTYPE])).verdict == "conforms"


class Changed:
    """Calls of which the first after each refused one has a changed result."""

    def __init__(self, change: Callable[[Call, Returned], Returned]) -> None:
        self.change = change
        self.is_due = False

    def call(self, case: Case, call: Call, bits: Mapping[str, Any]) -> Returned:
        was_due, self.is_due = self.is_due, True
        gave = RIGHT.call(case, call, bits)
        self.is_due = False
        return self.change(call, gave) if was_due else gave


def on_another_device(call: Call, gave: Returned) -> Returned:
    tensors = {name: replace(each, device="meta") for name, each in gave.tensors.items()}
    return gave if gave.is_receiver else replace(gave, tensors=tensors)


def with_a_spoiled_receiver(call: Call, gave: Returned) -> Returned:
    spoiled = {name: replace(each, bits=~each.bits) for name, each in gave.receiver.items()}
    return gave if gave.is_receiver else replace(gave, receiver=spoiled)


def as_something_new(call: Call, gave: Returned) -> Returned:
    return replace(gave, is_receiver=False, shares_memory=False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (on_another_device, "gives a tensor on meta instead of cpu"),
        (with_a_spoiled_receiver, "the receiver holds other bits"),
        (as_something_new, "gives something new back"),
    ],
)
def test_a_refused_call_changes_nothing_else_of_the_next_either(
    change: Callable[[Call, Returned], Returned], message: str
) -> None:
    """The next call keeps the device and the receiver's bits; it returns the receiver if it may."""
    name = f"{TO}:2023/float32/float32/form:a-number"
    found = judged(name, answering(call=Changed(change).call), planted([TO]))
    assert found.verdict == "violates"
    assert found.message.startswith("right after this call is refused: "), found.message
    assert message in found.message


@pytest.mark.parametrize(
    ("adapter", "verdict"),
    [("OneBuffer", "violates"), ("TwoBuffers", "violates"), ("OwnMemory", "conforms")],
)
def test_results_are_kept_while_the_next_calls_are_made(adapter: str, verdict: str) -> None:
    backend = load_isolated(f"{REUSING}:{adapter}", LaunchConfig(seconds=60.0))
    judge = BackendJudge(backend, {}, Settings(max_examples=20))
    asked = cases("float32", "float16")[:3]
    check = "invariances/float32/float16"
    plain = [case for case in asked if case.mode["form"] == "dtype"]
    [*_, found] = drive(judge_pair(judge.subject, plain, [check], asked), judge.client)
    close(backend)
    assert (found.check, found.verdict) == (check, verdict)
