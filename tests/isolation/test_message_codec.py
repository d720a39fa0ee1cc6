"""Cases, calls, their results, errors and descriptions survive a round trip through a header."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.backend.frames import (
    FrameError,
    encode_frame,
    pack_arrays,
    read_frame,
    unpack_arrays,
)
from oracles.backend.message_codec import (
    OracleDescription,
    decode_call,
    decode_case,
    decode_description,
    decode_returned,
    encode_call,
    encode_case,
    encode_description,
    encode_returned,
)
from oracles.backend.remote_errors import (
    RemoteBaseException,
    RemoteException,
    decode_error,
    encode_error,
    unsendable_answer,
)
from oracles.protocol import Bits, Bound, Returned, Tensor, Unsupported
from specs.case_calls import call_of, receiver_of
from specs.cases import Argument, Call, Case, Member
from specs.chains import Company, chain_named
from specs.selection import select
from tests.search import examples

TEXTS = st.text(st.characters())  # lone surrogates too


def sent(header: dict[str, Any]) -> dict[str, Any]:
    """Return a header after a round trip through a frame."""
    content = bytearray(b"".join(encode_frame(header)))

    def read(count: int) -> bytes:
        piece, content[:] = bytes(content[:count]), content[count:]
        return piece

    frame = read_frame(read)
    assert frame is not None
    return frame.header


def test_every_case_survives_a_round_trip_and_is_the_same_object_while_it_is_cached() -> None:
    cases = select([])
    assert len(cases) > 10_000
    for case in cases[::7]:
        found = decode_case(sent({"case": encode_case(case)})["case"])
        assert (found, found.id, found.mode) == (case, case.id, case.mode)
        assert decode_case(encode_case(case)) is found


def test_every_call_of_the_documents_survives_a_round_trip() -> None:
    cases = [case for case in select([]) if receiver_of(case.document) is not None]
    assert len(cases) > 1000
    for case in cases[::3]:
        call = call_of(case)
        assert decode_call(sent({"call": encode_call(call)})["call"]) == call


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


@examples(100)
@given(CALLS)
def test_any_call_survives_a_round_trip(call: Call) -> None:
    assert decode_call(sent({"call": encode_call(call)})["call"]) == call


STORED = st.sampled_from(["uint8", "uint64", "V16", "object"])


@st.composite
def tensors(draw: st.DrawFn) -> Tensor:
    dtype, size = np.dtype(draw(STORED)), draw(st.integers(0, 3))
    bits = np.frombuffer(bytes(range(size * 16)), "u1").view(dtype) if dtype.kind != "O" else None
    if bits is None:
        bits = np.array(draw(st.lists(TEXTS, min_size=size, max_size=size)), object)
    return Tensor(draw(TEXTS), draw(TEXTS), bits)


TENSORS = st.dictionaries(TEXTS, tensors(), max_size=3)
OUTPUTS = st.dictionaries(TEXTS, TEXTS | tensors(), max_size=2)
RETURNED = st.builds(Returned, st.booleans(), st.booleans(), TENSORS, TENSORS, OUTPUTS)


def plain(thing: Any) -> Any:
    """Convert to values that can be compared by ``==``."""
    match thing:
        case Returned():
            mappings = (thing.tensors, thing.receiver, thing.outputs)
            return thing.is_receiver, thing.shares_memory, *map(plain, mappings)
        case Tensor(dtype=dtype, device=device, bits=bits):
            return dtype, device, bits.dtype, bits.shape, bits.tolist()
        case dict():
            return {name: plain(tensor) for name, tensor in thing.items()}
    return thing


@examples(100)
@given(RETURNED)
def test_results_of_calls_survive_a_round_trip(returned: Returned) -> None:
    encoded, arrays = encode_returned(returned)
    fields, payload = pack_arrays(arrays)
    header = sent({"returned": encoded, "arrays": fields})
    found = decode_returned(header["returned"], unpack_arrays(header["arrays"], bytearray(payload)))
    assert plain(found) == plain(returned)


class CustomError(ValueError):
    pass


def received(error: BaseException) -> BaseException:
    """Return an error after a round trip."""
    found = decode_error(sent(encode_error(error)))
    assert found is not None
    return found


def test_errors_keep_their_class_names_and_texts() -> None:
    found = received(CustomError("caf\udce9\nand more"))
    assert isinstance(found, RemoteException)
    assert (type(found).__name__, str(found)) == ("CustomError", "caf\udce9\nand more")
    assert found.kinds == ("CustomError", "ValueError", "Exception", "BaseException")
    assert type(received(Unsupported("no kernel"))) is Unsupported
    assert str(received(Unsupported("no kernel"))) == "no kernel"
    exit_error = received(SystemExit(3))
    assert (type(exit_error).__name__, str(exit_error)) == ("SystemExit", "3")
    assert isinstance(exit_error, RemoteBaseException)
    assert not isinstance(exit_error, Exception)
    assert decode_error({"number": 1}) is None


def test_the_text_of_an_error_is_bounded_and_may_itself_be_an_error() -> None:
    class WithoutText(Exception):
        def __str__(self) -> str:
            raise KeyError("no text")

    assert str(received(WithoutText())) == "its text cannot be had: KeyError"
    assert len(str(received(ValueError("x" * 10**7)))) == 20_000


def test_the_stand_in_for_an_unsendable_answer_has_the_name_of_its_class() -> None:
    assert type(unsendable_answer("MaskedArray")).__name__ == "MaskedArray"


MALFORMED_ERRORS = {
    "null": None,
    "a text": "ValueError",
    "no kinds": {"text": "a"},
    "no text": {"kinds": ["ValueError", "Exception"]},
    "an empty list of kinds": {"kinds": [], "text": "a"},
    "kinds that are a number": {"kinds": 3, "text": "a"},
    "a kind that cannot be a name": {"kinds": ["\ud800", "Exception"], "text": "a"},
}


@pytest.mark.parametrize("raised", MALFORMED_ERRORS.values(), ids=MALFORMED_ERRORS)
def test_malformed_errors_are_a_frame_error(raised: Any) -> None:
    with pytest.raises(FrameError, match="an error without its kinds and text"):
        decode_error({"raised": raised})


class Bindable:
    name = "bindable"
    version = "1.2"

    def cast(self, case: Case, bits: Bits) -> Bits:
        return bits

    def bind(self, case: Case, bits: Bits) -> Bound:
        return lambda: bits


def test_the_description_of_an_oracle_survives_a_round_trip() -> None:
    assert decode_description(sent(encode_description(Bindable()))) == OracleDescription(
        "bindable", "1.2", None, ("bind",), False, (), ()
    )
    more = {
        "claims": ("onnx-cast", "pypto-cast"),
        "compiles_shapes": True,
        "row_limits": (65536, 1 << 20),
    }
    found = decode_description(sent(encode_description(type("Claiming", (Bindable,), more)())))
    assert (found.claims, found.compiles_shapes) == (("onnx-cast", "pypto-cast"), True)
    assert found.row_limits == (65536, 1 << 20)


def test_chains_that_are_made_together_survive_a_round_trip() -> None:
    names = ("float32/float16/float32", "float32/float8e4m3fn/saturate:0/int8")
    chains = tuple(chain_named(f"onnx-cast:25/{name}") for name in names)
    company = Company(chains, "level:all,middle:output")
    assert decode_call(sent(encode_call(company))) == company


VALID_DESCRIPTION: dict[str, Any] = {
    "name": "a",
    "version": "b",
    "claims": None,
    "offers": ["call"],
    "compiles_shapes": False,
    "row_limits": [],
    "chain_roads": [],
}
WRONG_DESCRIPTIONS = [
    VALID_DESCRIPTION | wrong
    for wrong in ({"claims": 3}, {"offers": 3}, {"row_limits": 3}, {"chain_roads": 3})
]
WRONG_DESCRIPTIONS += [
    VALID_DESCRIPTION | {"row_limits": wrong}
    for wrong in (["many"], [0], [-1], [1 << 40], [True], [1.5], "12", [1] * 17)
]


@pytest.mark.parametrize("wrong", [None, 3, [], {}, *WRONG_DESCRIPTIONS])
def test_a_malformed_description_is_a_frame_error(wrong: Any) -> None:
    assert decode_description(VALID_DESCRIPTION).offers == ("call",)
    # Names that would hide the isolated oracle's own methods are ignored.
    hiding = VALID_DESCRIPTION | {"offers": ["cast", "close", "call"]}
    assert decode_description(hiding).offers == ("call",)
    with pytest.raises(FrameError, match="the description of the backend is incomplete"):
        decode_description(wrong)
