"""Cases, calls, what they gave back and errors come through a frame's words as they were."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.running.selection import select
from oracles.isolation.frames import FrameError, packed, read_frame, unpacked, written
from oracles.isolation.message_codec import (
    Hello,
    call_of,
    call_words,
    case_of,
    case_words,
    hello_of,
    hello_words,
    returned_of,
    returned_words,
)
from oracles.isolation.remote_errors import Quits, Raised, error_of, foreign, kinds_of, told
from oracles.protocol import Returned, Tensor, Unsupported
from specs.calls import Argument, Call, Member
from specs.case_calls import call_of as call_of_case
from specs.case_calls import receiver_of

TEXTS = st.text(st.characters())  # lone surrogates too


def sent(header: dict[str, Any]) -> dict[str, Any]:
    """A header after its way through a frame."""
    content = bytearray(b"".join(written(header)))

    def read(count: int) -> bytes:
        piece, content[:] = bytes(content[:count]), content[count:]
        return piece

    frame = read_frame(read)
    assert frame is not None
    return frame.header


def test_every_case_comes_back_and_is_the_same_object_while_it_is_asked() -> None:
    cases = select([])
    assert len(cases) > 10_000
    for case in cases[::7]:
        found = case_of(sent({"case": case_words(case)})["case"])
        assert (found, found.id, found.mode) == (case, case.id, case.mode)
        assert case_of(case_words(case)) is found


def test_every_call_of_the_documents_comes_back() -> None:
    cases = [case for case in select([]) if receiver_of(case.document) is not None]
    assert len(cases) > 1000
    for case in cases[::3]:
        call = call_of_case(case)
        assert call_of(sent({"call": call_words(call)})["call"]) == call


ARGUMENTS = st.builds(Argument, st.sampled_from(["dtype-name", "device", "word"]), TEXTS)
CALLS = st.builds(
    Call,
    st.sampled_from(["tensor", "layer"]),
    st.lists(st.builds(Member, TEXTS, st.just("buffer"), TEXTS), max_size=3).map(tuple),
    TEXTS | st.none(),
    st.lists(ARGUMENTS, max_size=3).map(tuple),
    st.lists(st.tuples(TEXTS, ARGUMENTS), max_size=3).map(tuple),
    TEXTS,
    st.lists(TEXTS, max_size=2).map(tuple),
)


@settings(max_examples=100, deadline=None)
@given(CALLS)
def test_calls_come_back(call: Call) -> None:
    assert call_of(sent({"call": call_words(call)})["call"]) == call


STORED = st.sampled_from(["uint8", "uint64", "V16", "object"])


@st.composite
def tensors(draw: st.DrawFn) -> Tensor:
    dtype, size = np.dtype(draw(STORED)), draw(st.integers(0, 3))
    bits = np.frombuffer(bytes(range(size * 16)), "u1").view(dtype) if dtype.kind != "O" else None
    if bits is None:
        bits = np.array(draw(st.lists(TEXTS, min_size=size, max_size=size)), object)
    return Tensor(draw(TEXTS), draw(TEXTS), bits)


NAMED = st.dictionaries(TEXTS, tensors(), max_size=3)
OUTPUTS = st.dictionaries(TEXTS, TEXTS | tensors(), max_size=2)
RETURNED = st.builds(Returned, st.booleans(), st.booleans(), NAMED, NAMED, OUTPUTS)


def plain(thing: Any) -> Any:
    """The same, so that it can be compared."""
    match thing:
        case Returned():
            given = (thing.tensors, thing.receiver, thing.outputs)
            return thing.is_receiver, thing.shares_memory, *map(plain, given)
        case Tensor(dtype=dtype, device=device, bits=bits):
            return dtype, device, bits.dtype, bits.shape, bits.tolist()
        case dict():
            return {name: plain(tensor) for name, tensor in thing.items()}
    return thing


@settings(max_examples=100, deadline=None)
@given(RETURNED)
def test_what_calls_gave_back_comes_back(returned: Returned) -> None:
    words, arrays = returned_words(returned)
    fields, payload = packed(arrays)
    header = sent({"returned": words, "arrays": fields})
    found = returned_of(header["returned"], unpacked(header["arrays"], bytearray(payload)))
    assert plain(found) == plain(returned)


class Odd(ValueError):
    pass


def raised(error: BaseException) -> BaseException:
    found = error_of(sent(told(error)))
    assert found is not None
    return found


def test_errors_come_back_with_their_names_and_texts() -> None:
    found = raised(Odd("caf\udce9\nand more"))
    assert isinstance(found, Raised)
    assert (type(found).__name__, str(found)) == ("Odd", "caf\udce9\nand more")
    assert kinds_of(found) == kinds_of(Odd()) == ("Odd", "ValueError", "Exception", "BaseException")
    assert type(raised(Unsupported("no kernel"))) is Unsupported
    assert str(raised(Unsupported("no kernel"))) == "no kernel"
    left = raised(SystemExit(3))
    assert (type(left).__name__, str(left), isinstance(left, Quits)) == ("SystemExit", "3", True)
    assert not isinstance(left, Exception)
    assert error_of({"number": 1}) is None


def test_the_text_of_an_error_is_bounded_and_may_itself_be_an_error() -> None:
    class Silent(Exception):
        def __str__(self) -> str:
            raise KeyError("no text")

    assert str(raised(Silent())) == "its text cannot be had: KeyError"
    assert len(str(raised(ValueError("x" * 10**7)))) == 20_000


def test_a_foreign_thing_has_the_name_of_its_class() -> None:
    assert type(foreign("MaskedArray")).__name__ == "MaskedArray"


NO_ERRORS = {
    "nothing": None,
    "a text": "ValueError",
    "no kinds": {"text": "a"},
    "no text": {"kinds": ["ValueError", "Exception"]},
    "kinds that are none": {"kinds": [], "text": "a"},
    "a number of kinds": {"kinds": 3, "text": "a"},
    "a kind that is no name": {"kinds": ["\ud800", "Exception"], "text": "a"},
}


@pytest.mark.parametrize("words", NO_ERRORS.values(), ids=NO_ERRORS)
def test_malformed_errors_are_a_frame_error(words: Any) -> None:
    with pytest.raises(FrameError, match="an error without its kinds and text"):
        error_of({"raised": words})


class Asked:
    name = "asked"
    version = "1.2"

    def bind(self) -> None:
        pass


def test_what_a_process_serves_comes_back() -> None:
    assert hello_of(sent(hello_words(Asked()))) == Hello("asked", "1.2", None, ("bind",), False, ())
    more = {
        "claims": ("onnx-cast", "pypto-cast"),
        "compiles_shapes": True,
        "row_limits": (65536, 1 << 20),
    }
    found = hello_of(sent(hello_words(type("Claiming", (Asked,), more)())))
    assert (found.claims, found.compiles_shapes) == (("onnx-cast", "pypto-cast"), True)
    assert found.row_limits == (65536, 1 << 20)


RIGHT: dict[str, Any] = {
    "name": "a",
    "version": "b",
    "claims": None,
    "offers": ["call"],
    "compiles_shapes": False,
    "row_limits": [],
}
WRONG = [{"claims": 3}, {"offers": 3}, {"row_limits": 3}, {"row_limits": ["many"]}]


@pytest.mark.parametrize("wrong", [None, 3, [], {}, *(RIGHT | each for each in WRONG)])
def test_a_malformed_hello_is_a_frame_error(wrong: Any) -> None:
    assert hello_of(RIGHT).offers == ("call",)
    # What would hide the asking itself is not taken.
    assert hello_of(RIGHT | {"offers": ["cast", "close", "call"]}).offers == ("call",)
    with pytest.raises(FrameError, match="what a process serves is not told in full"):
        hello_of(wrong)
