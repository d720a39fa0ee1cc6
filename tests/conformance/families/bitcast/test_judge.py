"""The judge of bitcasts finds each planted fault, and names the rule and the clause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import pytest

from conformance.families.bitcast.bits import Bitcast, SharesMemory
from conformance.families.bitcast.ruling import bitcast_ruling
from conformance.families.bitcast.tensors import contents
from conformance.families.reference import Reference
from oracles.backend.replies import malformed
from oracles.protocol import Unsupported
from reports.judgement import Judgement
from reports.problem_words import words
from specs.cases import Case
from specs.formats import format_named, formats
from specs.loader import document_named
from specs.selection import case_named, select
from tests.conformance import feeding
from tests.conformance.feeding import answering, planted, without_place

RIGHT = Reference()
Answer = Callable[[Case, Any], Any]


def judged(name: str, answer: Answer, claimed: bool = True) -> Judgement:
    subject = planted([case_named(name).document] if claimed else [])
    return feeding.judged(name, answering(bitcast=answer), subject)


def honest(case: Case, bits: Any) -> Any:
    return RIGHT.bitcast(case, bits)


def flattened(case: Case, bits: Any) -> Any:
    return honest(case, bits).reshape(-1)


def swapped(case: Case, bits: Any) -> Any:
    """Reverse the parts of each element, as on a machine of the other byte order."""
    return honest(case, bits)[..., ::-1].copy()


def byte_swapped(case: Case, bits: Any) -> Any:
    return honest(case, bits).byteswap()


def reversed_elements(case: Case, bits: Any) -> Any:
    return honest(case, bits[::-1].copy())


def quieted(case: Case, bits: Any) -> Any:
    """Make signaling NaNs quiet."""
    answer = honest(case, bits)
    is_nan = (answer & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000)
    return np.where(is_nan, answer | np.uint32(0x00400000), answer)


def zeros(case: Case, bits: Any) -> Any:
    return np.zeros(bits.shape, format_named(case.target).storage)


def scaled(case: Case, bits: Any) -> Any:
    """Scale the last dimension, as torch does."""
    return np.ascontiguousarray(bits).view(format_named(case.target).storage)


def shaped(*shape: int) -> Answer:
    """Answer a row of three with zeros of this shape, and other tensors rightly."""
    zeros = np.zeros(shape, np.uint8)
    return lambda case, bits: zeros if bits.shape == (3,) else honest(case, bits)


def refuses(case: Case, bits: Any) -> Any:
    raise ValueError("not today\nat all")


XLA, VIEW, CINN = "xla-bitcast-convert:2023", "torch-view:2", "cinn-bitcast-convert:1.0"
ONNX, TF = "onnx-bitcast:26", "tensorflow-bitcast:2023"

FAULTS: dict[str, tuple[str, Answer, str, str, str]] = {
    "wrong shape": (f"{XLA}/float32/int32/shape:2x3", flattened, "violates", "same-width",
                    "shape (2, 3) gives shape (6,) instead of (2, 3)"),
    "another page's shape": (f"{XLA}/float32/float16/shape:3", scaled, "violates", "narrower",
                             "shape (3,) gives shape (6,) instead of (3, 2)"),
    "no dimension lost": (f"{XLA}/float32/float64/shape:2", scaled, "violates", "wider-by-last",
                          "shape (2,) gives shape (1,) instead of ()"),
    "shape without elements": (f"{TF}/float32/float16/shape:0x2", zeros, "violates", "smaller",
                               "shape (0, 2) gives shape (0, 2) instead of (0, 2, 2)"),
    "parts swapped": (f"{TF}/float32/float16/shape:3", swapped, "violates", "smaller",
                      "shape (3,): element 0 is 0x0403 instead of 0x0201"),
    "bytes swapped": (f"{XLA}/float32/int32/shape:scalar", byte_swapped, "deviates", "same-width",
                      "shape (): element 0 is 0x01020304 instead of 0x04030201"),
    "bytes swapped where bits must stay": (
        f"{CINN}/float32/int32/shape:scalar", byte_swapped, "violates", "same-width",
        "shape (): element 0 is 0x01020304 instead of 0x04030201"),
    "neither of two readings": (
        f"{CINN}/int64/bool/shape:3", shaped(3, 2), "deviates", "to-bools",
        "gives shape (3, 2) instead of (3, 8); shape (3,) gives shape (3, 2) instead"),
    "neither refused nor right": (
        f"{CINN}/complex64/float32/shape:3", scaled, "deviates", "complex-as-smaller-reals",
        "shape (3,) gives shape (6,) instead of (3, 2); shape (3,) is not refused"),
    "bytes of wide elements swapped": (
        f"{TF}/float64/complex128/shape:2", reversed_elements, "violates", "larger-by-last",
        "element 0 is 0x0807060504030201100f0e0d0c0b0a09 instead"),
    "payloads lost": (f"{VIEW}/float32/float32/shape:2x1x3x2", quieted, "violates", "same-size",
                      "shape (2, 1, 3, 2): element 0 is 0x7fc00001 instead of 0x7f800001"),
    "zeros": (f"{XLA}/int4/uint4/shape:3", zeros, "deviates", "same-width-in-part",
              "element 0 is 0x0"),
    "accepts another width": (f"{ONNX}/float32/float16/shape:3", scaled, "violates",
                              "another-width", "shape (3,) is not refused, but gives shape (6,)"),
    "accepts what does not fit": (
        f"{TF}/float32/float64/shape:4", scaled, "violates", "larger-otherwise",
        "shape (4,) is not refused with InvalidArgument, but gives shape (2,)"),
    "accepts a scalar": (f"{XLA}/float32/float64/shape:scalar", zeros, "violates",
                         "wider-from-scalar",
                         "shape () is not refused with InvalidArgument, but gives shape ()"),
    "accepts complex for real": (f"{XLA}/complex64/float32/shape:3", scaled, "violates",
                                 "from-complex-to-real", "is not refused with InvalidArgument"),
    "only recommended": (f"{CINN}/float32/float64/shape:4", scaled, "deviates", "wider-otherwise",
                         "is not refused with InvalidArgument"),
    "a demanded test": (f"{CINN}/float32/int32/shape:1024/example:required-test", byte_swapped,
                        "violates", "same-width",
                        "shape (1024,): element 0 is 0x01020304 instead of 0x04030201"),
    "a bool is not normalized": (
        f"{VIEW}/bool/bool/shape:3", lambda case, bits: bits * np.uint8(0x80), "violates",
        "bool-to-bool", "element 0 is 0x80 instead of 0x1"),
    "a wrong shape where bits are open": (f"{XLA}/int8/int4/shape:3", shaped(6), "violates",
                                          "narrower-in-part", "gives shape (6,)"),
    "one of the contents": (
        f"{CINN}/float32/int32/shape:3",
        lambda case, bits: honest(case, bits) ^ np.uint32((bits == 0xFFFFFFFF).any()),
        "violates", "same-width", "element 0 is 0xfffffffe instead of 0xffffffff"),
}  # fmt: skip


UNTOLD = "not-copied is not judged: planted has no bitcast_shares_memory"


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_breaks_the_rule_that_is_named(name: str) -> None:
    case, answer, verdict, rule, message = FAULTS[name]
    found = judged(case, answer)
    assert found.verdict == verdict
    [fault] = found.faults
    ruling = bitcast_ruling(case_named(case))
    level = "recommended" if verdict == "deviates" else "required"
    assert (fault.rule, fault.clause, fault.level) == (rule, ruling.clause, level)
    assert ruling.clause
    assert message in words(fault) == found.message.removesuffix(f"; {UNTOLD}")
    assert judged(case, answer, claimed=False).verdict == "differs"


@pytest.mark.parametrize("name", FAULTS)
def test_without_a_fault_nothing_is_found(name: str) -> None:
    found = judged(FAULTS[name][0], honest)
    assert (found.verdict, found.faults) == ("conforms", ())


def declines(case: Case, bits: Any) -> Any:
    raise Unsupported("no such dtype\nhere")


def malforms(case: Case, bits: Any) -> Any:
    raise malformed("no array\nat all")


OTHER_ORDER = "open bits are not in the input's order: shape (3,): element 0 is 0x0 instead of 0x1"
OTHERS: list[tuple[str, Answer, str, str]] = [
    (f"{XLA}/float32/int32/shape:3", refuses, "error", "ValueError: not today"),
    # An error is due; the document names its class, or names none.
    (f"{XLA}/float32/float64/shape:3", refuses, "conforms",
     "expected InvalidArgument, got ValueError: not today"),
    (f"{VIEW}/float32/float64/shape:3", refuses, "conforms", "ValueError: not today"),
    (f"{TF}/bool/int64/shape:3", refuses, "open", "ValueError: not today"),
    # By both readings a dimension must be appended; by one of two, an error is raised.
    (f"{CINN}/int64/bool/shape:3", refuses, "error", "ValueError: not today"),
    (f"{CINN}/complex64/float32/shape:3", refuses, "conforms", "ValueError: not today"),
    (f"{XLA}/float32/int32/shape:3", declines, "unsupported", "no such dtype"),
    # A malformed answer is an error, also where bits or everything is open, or an error is due.
    *((case, malforms, "error", "no array at all")
      for case in (f"{XLA}/float32/int32/shape:3", f"{XLA}/int8/int4/shape:3",
                   f"{TF}/bool/int64/shape:3", f"{XLA}/float32/float64/shape:3")),
    # Where bits are open, any bits conform, in the shape of any reading.
    (f"{XLA}/int8/int4/shape:3", shaped(3, 2), "conforms", OTHER_ORDER),
    *((f"{CINN}/int64/bool/shape:3", shaped(3, bits), "conforms", f"{OTHER_ORDER}; {UNTOLD}")
      for bits in (8, 64)),
    (f"{TF}/bool/int64/shape:3", lambda case, bits: np.arange(7, dtype=np.uint64), "open", ""),
    # Bytes stay as they are, or are normalized.
    (f"{ONNX}/uint8/bool/shape:3", lambda case, bits: bits, "conforms", ""),
    (f"{ONNX}/uint8/bool/shape:3", lambda case, bits: (bits != 0).astype(np.uint8), "conforms",
     "open bits are not in the input's order: shape (3,): element 1 is 0x1 instead of 0x2"),
    *((f"{document}/uint8/bool/shape:3", answer, "open", "") for document in (VIEW, TF)
      for answer in (lambda case, bits: bits, lambda case, bits: (bits != 0).astype(np.uint8))),
]  # fmt: skip


@pytest.mark.parametrize(("case", "answer", "verdict", "message"), OTHERS)
def test_other_verdicts(case: str, answer: Answer, verdict: str, message: str) -> None:
    found = judged(case, answer)
    said = without_place(found.message)
    assert (found.verdict, said, found.faults) == (verdict, message, ())
    if verdict == "open":
        assert found.open_inputs == found.inputs
        assert bool(found.inputs) == (answer is not refuses)
    if verdict == "error":
        unclaimed = judged(case, answer, claimed=False)
        assert (unclaimed.verdict, without_place(unclaimed.message)) == ("differs", message)


def test_open_bits_in_another_order_are_noted_and_counted_as_open() -> None:
    case = f"{XLA}/int16/int4/shape:3"
    in_order, reversed_codes = judged(case, honest), judged(case, swapped)
    assert (in_order.verdict, in_order.message) == ("conforms", "")
    assert (reversed_codes.verdict, reversed_codes.faults) == ("conforms", ())
    assert reversed_codes.message == OTHER_ORDER
    for found in (in_order, reversed_codes):
        assert found.open_inputs == found.inputs > 0


def test_open_bits_that_change_from_one_answer_to_the_next_are_noted() -> None:
    asked: Counter[bytes] = Counter()

    def changes(case: Case, bits: Any) -> Any:
        answer = honest(case, bits)
        answer[-1, -1] = asked[bits.tobytes()]
        asked[bits.tobytes()] += 1
        return answer

    found = judged(f"{XLA}/int16/int4/shape:3", changes)
    assert (found.verdict, found.faults) == ("conforms", ())
    assert "open bits change: the same tensor, asked twice, gets two answers" in found.message


@pytest.mark.parametrize(("target", "times"), [("int4", 2), ("int8", 1)])
def test_each_tensor_is_requested_once_or_twice_if_bits_are_open(target: str, times: int) -> None:
    case = case_named(f"{XLA}/int16/{target}/shape:3")
    asked: list[Bitcast] = []
    found = feeding.judged(case.id, answering(bitcast=honest), asked=asked)
    assert found.verdict == "conforms"
    tensors = [bits.tobytes() for bits in contents(bitcast_ruling(case), 0)]
    own = [each.bits.tobytes() for each in asked if each.case == case]
    assert Counter(own) == dict.fromkeys(tensors, times)


def test_a_declined_tensor_is_left_out_and_the_others_are_judged() -> None:
    case = f"{XLA}/float32/int32/shape:3"

    def folds_no_set_bits(case: Case, bits: Any) -> Any:
        if (bits == 0xFFFFFFFF).any():
            raise Unsupported("XLA did not fold this\nat all")
        return honest(case, bits)

    found = judged(case, folds_no_set_bits)
    assert (found.verdict, found.faults) == ("conforms", ())
    assert found.message == "1 of 4 tensors not asked: XLA did not fold this"
    assert found.inputs == 3 * 3
    found = judged(case, lambda case, bits: folds_no_set_bits(case, bits) ^ 1)
    assert (found.verdict, found.faults[0].rule) == ("deviates", "same-width")


LARGER_FAULTS: dict[str, Callable[[Any], bool]] = {
    "from 31 elements on": lambda bits: bits.size >= 31,
    "from a thousand elements on": lambda bits: bits.size > 1000,
    "steps": lambda bits: bits.ndim == 1 and bits.strides[0] > bits.itemsize,
    "backwards": lambda bits: bits.ndim == 1 and bits.strides[0] < 0,
    "columns first": lambda bits: bits.ndim == 2 and not bits.flags.c_contiguous,
    "a tall matrix": lambda bits: bits.ndim == 2 and bits.shape[0] > 1000,
}


@pytest.mark.parametrize("name", LARGER_FAULTS)
@pytest.mark.parametrize("tier", ["quick", "full"])
def test_a_fault_in_larger_tensors_or_another_layout_is_found(name: str, tier: str) -> None:
    def bitcast(case: Case, bits: Any) -> Any:
        return honest(case, bits) ^ LARGER_FAULTS[name](bits)

    # The tier quick asks a part of the tensors for each pair, so take all pairs; at full take one.
    targets = ("uint8", "int16") if tier == "full" else tuple(formats())
    asked = [case for case in select([XLA]) if case.source == "int8" and case.target in targets]
    subject, answer = planted(tier=tier), answering(bitcast=bitcast)
    assert any(feeding.judged(case.id, answer, subject).faults for case in asked)


MEMORY: dict[str, tuple[bool, str]] = {
    f"{VIEW}/float32/int32/shape:2x1": (False, "violates"),
    f"{CINN}/float32/float16/shape:3": (False, "deviates"),
    f"{CINN}/float32/float16/shape:10/example:worked-example": (False, "deviates"),
    f"{TF}/float32/int32/shape:scalar": (False, "deviates"),
    # XLA's code promises no such thing, and a tensor without elements has no memory.
    f"{XLA}/float32/int32/shape:3": (False, "conforms"),
    f"{TF}/float32/int32/shape:0x1": (False, "conforms"),
    f"{VIEW}/int32/float32/shape:3": (True, "conforms"),
}


@pytest.mark.parametrize("name", MEMORY)
def test_a_bitcast_that_copies_breaks_what_the_page_promises(name: str) -> None:
    is_shared, verdict = MEMORY[name]
    answer = answering(bitcast=honest, bitcast_shares_memory=lambda case, bits: is_shared)
    found = feeding.judged(name, answer)
    assert found.verdict == verdict
    if verdict != "conforms":
        [fault] = found.faults
        assert (fault.rule, found.message) == ("not-copied", "the result is a copy")
        promises = document_named(case_named(name).document).entry.promises()
        assert fault.clause == promises["not-copied"].clause
        assert feeding.judged(name, answer, planted([])).verdict == "differs"


def test_a_backend_that_cannot_say_where_bits_lie_is_not_judged_by_it() -> None:
    # A backend without the method counts as declining too.
    asked: list[Bitcast | SharesMemory] = []
    found = feeding.judged(f"{VIEW}/float32/int32/shape:3", answering(bitcast=honest), asked=asked)
    assert any(isinstance(each, SharesMemory) for each in asked)
    assert (found.verdict, found.faults) == ("conforms", ())
    assert found.message == UNTOLD


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
    """XLA does not fold bitcasts of equal elements. Narrow elements may be equal by chance."""
    rulings = [bitcast_ruling(case) for case in select([document])]
    wide = [each for each in rulings if each.source.bits >= 8 and prod(each.shape) > 1]
    assert len(wide) > 300
    for ruling in wide:
        for bits in contents(ruling, 0):
            elements = {each.tobytes() for each in bits.reshape(-1)}
            assert len(elements) > 1, (ruling, bits)
