"""Planted faults in bitcasts: each gets the right verdict, which names rule and clause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import pytest
from conformance.driver import BackendJudge
from conformance.kinds.subject import Settings
from conformance.kinds.bitcast import contents

from oracles.protocol import Unsupported
from oracles.reference.reference_oracle import Reference
from oracles.registry import Backend
from reports.judgement import Judgement
from specs.bitcast_ruling import bitcast_ruling
from specs.cases import Case
from specs.formats import format_named
from specs.selection import case_named, select

RIGHT = Reference()
Answer = Callable[[Case, Any], Any]


class Planted:
    """An oracle with one way of answering bitcasts."""

    name = "planted"
    version = "0"

    def __init__(self, answer: Answer, claims: tuple[str, ...]) -> None:
        self.answer = answer
        self.claims = claims

    def cast(self, case: Case, bits: Any) -> Any:
        raise AssertionError("a bitcast is no cast")

    def bitcast(self, case: Case, bits: Any) -> Any:
        return self.answer(case, bits)


def judged(name: str, answer: Answer, claimed: bool = True) -> Judgement:
    case = case_named(name)
    oracle = Planted(answer, (case.document,) if claimed else ())
    return BackendJudge(Backend("planted", oracle), {}, Settings()).judge(case)


def honest(case: Case, bits: Any) -> Any:
    return RIGHT.bitcast(case, bits)


def flattened(case: Case, bits: Any) -> Any:
    return honest(case, bits).reshape(-1)


def swapped(case: Case, bits: Any) -> Any:
    """The parts of each element in the other order, as another machine would have them."""
    return honest(case, bits)[..., ::-1].copy()


def byte_swapped(case: Case, bits: Any) -> Any:
    return honest(case, bits).byteswap()


def canonical(case: Case, bits: Any) -> Any:
    """Signalling NaNs made quiet on the way."""
    answer = honest(case, bits)
    quiet = np.uint32(0x00400000)
    is_nan = (answer & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000)
    return np.where(is_nan, answer | quiet, answer)


def zeros(case: Case, bits: Any) -> Any:
    return np.zeros(bits.shape, format_named(case.target).storage)


def scaled(case: Case, bits: Any) -> Any:
    """The last dimension scaled, as torch has it."""
    storage = format_named(case.target).storage
    return np.ascontiguousarray(bits).view(storage)


def refuses(case: Case, bits: Any) -> Any:
    raise ValueError("not today\nat all")


XLA, VIEW, CINN = "xla-bitcast-convert:2023", "torch-view:2", "cinn-bitcast-convert:1.0"
ONNX, TF = "onnx-bitcast:26", "tensorflow-bitcast:2023"

# What is planted where; the verdict, the rule that is named, words of the message.
FAULTS: dict[str, tuple[str, Answer, str, str, str]] = {
    "wrong shape": (
        f"{XLA}/float32/int32/shape:2x3", flattened, "violates", "same-width",
        "shape (2, 3) gives shape (6,) instead of (2, 3)",
    ),
    "another page's shape": (
        f"{XLA}/float32/float16/shape:3", scaled, "violates", "narrower",
        "shape (3,) gives shape (6,) instead of (3, 2)",
    ),
    "no dimension lost": (
        f"{XLA}/float32/float64/shape:2", scaled, "violates", "wider-by-last",
        "shape (2,) gives shape (1,) instead of ()",
    ),
    "shape of nothing": (
        f"{TF}/float32/float16/shape:0x2", zeros, "violates", "smaller",
        "shape (0, 2) gives shape (0, 2) instead of (0, 2, 2)",
    ),
    "parts swapped": (
        f"{TF}/float32/float16/shape:3", swapped, "violates", "smaller",
        "shape (3,): element 0 is 0x0403 instead of 0x0201",
    ),
    "bytes swapped": (
        f"{XLA}/float32/int32/shape:scalar", byte_swapped, "deviates", "same-width",
        "shape (): element 0 is 0x01020304 instead of 0x04030201",
    ),
    "bytes swapped where bits must stay": (
        f"{CINN}/float32/int32/shape:scalar", byte_swapped, "violates", "same-width",
        "shape (): element 0 is 0x01020304 instead of 0x04030201",
    ),
    "neither of two readings": (
        f"{CINN}/int64/bool/shape:3", lambda case, bits: np.zeros((3, 2), np.uint8), "deviates",
        "to-bools", "gives shape (3, 2) instead of (3, 8); shape (3,) gives shape (3, 2) instead",
    ),
    "neither refused nor right": (
        f"{CINN}/complex64/float32/shape:3", scaled, "deviates", "complex-as-smaller-reals",
        "shape (3,) gives shape (6,) instead of (3, 2); shape (3,) is not refused",
    ),
    "bytes of wide elements swapped": (
        f"{TF}/float64/complex128/shape:2", lambda case, bits: honest(case, bits[::-1].copy()),
        "violates", "larger-by-last", "element 0 is 0x0807060504030201100f0e0d0c0b0a09 instead",
    ),
    "payloads lost": (
        f"{VIEW}/float32/float32/shape:2x1x3x2", canonical, "violates", "same-size",
        "shape (2, 1, 3, 2): element 0 is 0x7fc00001 instead of 0x7f800001",
    ),
    "zeros": (
        f"{XLA}/int4/uint4/shape:3", zeros, "deviates", "same-width-in-part", "element 0 is 0x0",
    ),
    "accepts another width": (
        f"{ONNX}/float32/float16/shape:3", scaled, "violates", "another-width",
        "shape (3,) is not refused, but gives shape (6,)",
    ),
    "accepts what does not fit": (
        f"{TF}/float32/float64/shape:4", scaled, "violates", "larger-otherwise",
        "shape (4,) is not refused with InvalidArgument, but gives shape (2,)",
    ),
    "accepts a scalar": (
        f"{XLA}/float32/float64/shape:scalar", zeros, "violates", "wider-from-scalar",
        "shape () is not refused with InvalidArgument, but gives shape ()",
    ),
    "accepts complex for real": (
        f"{XLA}/complex64/float32/shape:3", scaled, "violates", "from-complex-to-real",
        "is not refused with InvalidArgument",
    ),
    "only recommended": (
        f"{CINN}/float32/float64/shape:4", scaled, "deviates", "wider-otherwise",
        "is not refused with InvalidArgument",
    ),
    "a demanded test": (
        f"{CINN}/float32/int32/shape:1024/example:required-test", byte_swapped, "violates",
        "same-width", "shape (1024,): element 0 is 0x01020304 instead of 0x04030201",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_breaks_the_rule_that_is_named(name: str) -> None:
    case, answer, verdict, rule, says = FAULTS[name]
    found = judged(case, answer)
    assert found.verdict == verdict
    [fault] = found.faults
    ruling = bitcast_ruling(case_named(case))
    level = "recommended" if verdict == "deviates" else "required"
    assert (fault.rule, fault.clause, fault.level) == (rule, ruling.clause, level)
    assert ruling.clause
    assert says in fault.message == found.message
    # Whoever does not claim the document only differs from it.
    assert judged(case, answer, claimed=False).verdict == "differs"


@pytest.mark.parametrize("name", FAULTS)
def test_without_a_fault_nothing_is_found(name: str) -> None:
    found = judged(FAULTS[name][0], honest)
    assert (found.verdict, found.faults) == ("conforms", ())


def test_what_must_be_accepted_may_not_be_refused() -> None:
    found = judged(f"{XLA}/float32/int32/shape:3", refuses)
    assert (found.verdict, found.message) == ("error", "ValueError: not today")


def test_a_refusal_names_the_expected_and_the_given_class() -> None:
    found = judged(f"{XLA}/float32/float64/shape:3", refuses)
    assert found.verdict == "conforms"
    assert found.message == "expected InvalidArgument, got ValueError: not today"
    # torch's page names no class.
    found = judged(f"{VIEW}/float32/float64/shape:3", refuses)
    assert (found.verdict, found.message) == ("conforms", "ValueError: not today")


def other_storage(case: Case, bits: Any) -> Any:
    return honest(case, bits).astype(np.uint64)


def too_wide(case: Case, bits: Any) -> Any:
    return honest(case, bits) | np.uint8(0xF0)


class Subarray(np.ndarray):  # type: ignore[type-arg]
    pass


NO_ANSWERS: dict[str, tuple[str, Answer, str]] = {
    "nothing": (f"{XLA}/float32/int32/shape:3", lambda case, bits: None,
                "the answer is NoneType, not a numpy array"),
    "a list": (f"{XLA}/float32/int32/shape:3", lambda case, bits: bits.tolist(),
               "the answer is list, not a numpy array"),
    "a kind of array": (f"{XLA}/float32/int32/shape:3", lambda case, bits: bits.view(Subarray),
                        "the answer is Subarray, not a numpy array"),
    "other storage": (f"{XLA}/float32/int32/shape:3", other_storage,
                      "the answer's storage is uint64, int32 is held in uint32"),
    "too wide": (f"{XLA}/int4/uint4/shape:3", too_wide, "wider than uint4"),
    "too wide where bits are open": (f"{XLA}/int8/int4/shape:3", too_wide, "wider than int4"),
    "nothing, where all is open": (f"{TF}/bool/int64/shape:3", lambda case, bits: None,
                                   "the answer is NoneType"),
    "nothing, where refused": (f"{XLA}/float32/float64/shape:3", lambda case, bits: None,
                               "the answer is NoneType"),
}  # fmt: skip


@pytest.mark.parametrize("name", NO_ANSWERS)
def test_garbage_is_an_error_not_a_verdict_on_the_framework(name: str) -> None:
    case, answer, says = NO_ANSWERS[name]
    found = judged(case, answer)
    assert found.verdict == "error"
    assert says in found.message
    assert "\n" not in found.message
    unclaimed = judged(case, answer, claimed=False)
    assert (unclaimed.verdict, unclaimed.message) == ("differs", found.message)


def test_what_is_open_is_open_whatever_comes() -> None:
    case = f"{TF}/bool/int64/shape:3"
    answered = judged(case, lambda case, bits: np.arange(7, dtype=np.uint64))
    assert (answered.verdict, answered.faults) == ("open", ())
    assert answered.open_inputs == answered.inputs > 0
    refused = judged(case, refuses)
    assert (refused.verdict, refused.message) == ("open", "ValueError: not today")


def test_either_of_two_readings_conforms() -> None:
    case = f"{CINN}/int64/bool/shape:3"
    for shape in ((3, 8), (3, 64)):
        found = judged(case, lambda case, bits, shape=shape: np.zeros(shape, np.uint8))
        assert found.verdict == "conforms", shape
    # A dimension must be appended by both readings: a refusal is neither.
    assert judged(case, refuses).verdict == "error"
    case = f"{CINN}/complex64/float32/shape:3"
    assert judged(case, refuses).verdict == "conforms"
    assert judged(case, honest).verdict == "conforms"


@pytest.mark.parametrize("document", [VIEW, ONNX, TF])
def test_an_open_bitcast_to_bool_stays_open_whatever_the_bytes_are(document: str) -> None:
    """Frameworks that move bytes and frameworks that normalize them get the same verdict."""
    case = f"{document}/uint8/bool/shape:3"
    as_they_are = judged(case, lambda case, bits: bits)
    normalized = judged(case, lambda case, bits: (bits != 0).astype(np.uint8))
    assert as_they_are.verdict == normalized.verdict == "open"
    assert as_they_are.open_inputs == as_they_are.inputs == normalized.inputs


def test_a_bool_that_is_changed_by_a_bitcast_to_bool_violates() -> None:
    found = judged(f"{VIEW}/bool/bool/shape:3", lambda case, bits: bits * np.uint8(0x80))
    assert (found.verdict, found.faults[0].rule) == ("violates", "bool-to-bool")
    assert "element 0 is 0x80 instead of 0x1" in found.message


def test_where_bits_are_open_the_shape_still_counts() -> None:
    case = f"{XLA}/int8/int4/shape:3"
    any_bits = judged(case, lambda case, bits: np.full((3, 2), 7, np.uint8))
    assert any_bits.verdict == "conforms"
    wrong = judged(case, lambda case, bits: np.full((6,), 7, np.uint8))
    assert (wrong.verdict, wrong.faults[0].rule) == ("violates", "narrower-in-part")


def test_open_bits_in_another_order_are_told_and_counted_as_open() -> None:
    case = f"{XLA}/int16/int4/shape:3"
    in_order, reversed_codes = judged(case, honest), judged(case, swapped)
    assert (in_order.verdict, in_order.message) == ("conforms", "")
    assert (reversed_codes.verdict, reversed_codes.faults) == ("conforms", ())
    assert reversed_codes.message == (
        "open bits are not in the input's order: shape (3,): element 0 is 0x0 instead of 0x1"
    )
    for found in (in_order, reversed_codes):
        assert found.open_inputs == found.inputs > 0


def test_open_bits_that_change_from_one_answer_to_the_next_are_told() -> None:
    asked: list[bytes] = []

    def garbage(case: Case, bits: Any) -> Any:
        answer = honest(case, bits)
        answer[-1, -1] = asked.count(bits.tobytes())
        asked.append(bits.tobytes())
        return answer

    found = judged(f"{XLA}/int16/int4/shape:3", garbage)
    assert (found.verdict, found.faults) == ("conforms", ())
    assert "open bits change: the same tensor, asked twice, gets two answers" in found.message


@pytest.mark.parametrize(("target", "times"), [("int4", 2), ("int8", 1)])
def test_only_open_bits_are_asked_twice(target: str, times: int) -> None:
    asked: Counter[bytes] = Counter()

    def counting(case: Case, bits: Any) -> Any:
        asked[bits.tobytes()] += 1
        return honest(case, bits)

    case = f"{XLA}/int16/{target}/shape:3"
    assert judged(case, counting).verdict == "conforms"
    tensors = [bits.tobytes() for bits in contents(bitcast_ruling(case_named(case)), 0)]
    assert asked == dict.fromkeys(tensors, times)


def folds_no_set_bits(case: Case, bits: Any) -> Any:
    if (bits == 0xFFFFFFFF).any():
        raise Unsupported("XLA did not fold this\nat all")
    return honest(case, bits)


def test_a_tensor_that_cannot_be_asked_is_left_out_and_the_case_is_judged() -> None:
    found = judged(f"{XLA}/float32/int32/shape:3", folds_no_set_bits)
    assert (found.verdict, found.faults) == ("conforms", ())
    assert found.message == "1 of 4 tensors not asked: XLA did not fold this"
    assert found.inputs == judged(f"{XLA}/float32/int32/shape:3", honest).inputs - 3

    def also_wrong(case: Case, bits: Any) -> Any:
        return folds_no_set_bits(case, bits) ^ 1

    found = judged(f"{XLA}/float32/int32/shape:3", also_wrong)
    assert (found.verdict, found.faults[0].rule) == ("deviates", "same-width")


def test_a_backend_without_bitcasts_is_unsupported() -> None:
    class Without:
        name, version = "without", "0"

        def cast(self, case: Case, bits: Any) -> Any:
            raise AssertionError

    def declines(case: Case, bits: Any) -> Any:
        raise Unsupported("no such dtype\nhere")

    case = case_named(f"{XLA}/float32/int32/shape:3")
    found = BackendJudge(Backend("without", Without()), {}, Settings()).judge(case)
    assert (found.verdict, found.message) == ("unsupported", "without has no bitcast")
    found = judged(case.id, declines)
    assert (found.verdict, found.message) == ("unsupported", "no such dtype")


def test_a_way_out_of_the_run_is_an_error() -> None:
    def leaves(case: Case, bits: Any) -> Any:
        raise SystemExit(3)

    found = judged(f"{XLA}/float32/int32/shape:3", leaves)
    assert found.verdict == "error"
    assert "it wanted to end the run" in found.message


def test_a_fault_in_one_of_the_contents_is_enough() -> None:
    """Rising bytes come out right, set bits do not."""

    def wrong_on_set_bits(case: Case, bits: Any) -> Any:
        answer = honest(case, bits)
        return answer ^ 1 if (bits == 0xFFFFFFFF).any() else answer

    found = judged(f"{CINN}/float32/int32/shape:3", wrong_on_set_bits)
    assert found.verdict == "violates"
    assert "element 0 is 0xfffffffe instead of 0xffffffff" in found.message


def test_an_oracle_that_writes_into_its_question_is_judged_by_the_question() -> None:
    def overwrites(case: Case, bits: Any) -> Any:
        bits[...] = 0
        return honest(case, bits)

    assert judged(f"{CINN}/float32/int32/shape:3", overwrites).verdict == "violates"


def test_contents_fit_their_dtype_and_tell_elements_apart() -> None:
    for case in select(["xla-bitcast-convert"])[::20]:
        ruling = bitcast_ruling(case)
        filled = list(contents(ruling, 7))
        kinds = {
            form for form in (ruling.source, ruling.target) if form.kind in ("float", "complex")
        }
        assert len(filled) == (1 if 0 in ruling.shape else 3 + len(kinds))
        for bits in filled:
            assert bits.shape == ruling.shape
            assert bits.dtype == np.dtype(ruling.source.storage)
            if bits.size and bits.dtype.kind != "V":
                assert int(bits.max()) <= ruling.source.mask
    again = [bits.tobytes() for bits in contents(ruling, 7)]
    assert again == [bits.tobytes() for bits in filled]


@pytest.mark.parametrize("document", [XLA, VIEW, CINN, TF])
def test_no_tensor_has_equal_elements_only(document: str) -> None:
    """XLA folds no bitcast of those. Random elements of a few bits are equal now and then."""
    rulings = [bitcast_ruling(case) for case in select([document])]
    wide = [each for each in rulings if each.source.bits >= 8 and prod(each.shape) > 1]
    assert len(wide) > 300
    for ruling in wide:
        for bits in contents(ruling, 0):
            elements = {each.tobytes() for each in bits.reshape(-1)}
            assert len(elements) > 1, (ruling, bits)
