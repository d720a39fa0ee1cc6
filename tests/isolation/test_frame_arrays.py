"""Arrays in frames survive a round trip bit for bit; malformed ones are a ``FrameError``."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from oracles.backend.frames import (
    MAX_ELEMENTS,
    MAX_RANK,
    STORAGES,
    TEXT,
    FrameError,
    encode_frame,
    is_sendable,
    pack_arrays,
    read_frame,
    unpack_arrays,
)
from specs.formats import formats
from tests.search import examples

NUMBERS = sorted(name for name in STORAGES.values() if name != TEXT)
TEXTS = st.text(st.characters())  # lone surrogates too
SHAPES = npst.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=4)
LITTLE_MEMORY = 1 << 20


def round_trip(arrays: dict[str, Any]) -> dict[str, Any]:
    """Encode arrays in a frame, read it in three pieces, and decode them."""
    fields, payload = pack_arrays(arrays)
    content = b"".join(encode_frame({"arrays": fields}, payload))
    pieces: Iterator[bytes] = iter((content[:7], content[7:16], content[16:]))
    rest = bytearray()

    def read(count: int) -> bytes:
        rest.extend(next(pieces, b""))
        piece, rest[:] = bytes(rest[:count]), rest[count:]
        return piece

    frame = read_frame(read)
    assert frame is not None
    return unpack_arrays(frame.header["arrays"], frame.payload)


def assert_same(found: Any, sent: Any) -> None:
    assert type(found) is np.ndarray
    assert (found.shape, found.dtype) == (sent.shape, sent.dtype)
    if sent.dtype == object:
        assert found.reshape(-1).tolist() == sent.reshape(-1).tolist()
    else:
        assert found.tobytes() == sent.tobytes()


@st.composite
def number_arrays(draw: st.DrawFn) -> Any:
    """An array of any numeric storage with any bits."""
    dtype, shape = np.dtype(draw(st.sampled_from(NUMBERS))), draw(SHAPES)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    content = draw(st.binary(min_size=size, max_size=size))
    if dtype.kind == "b":
        content = bytes(byte & 1 for byte in content)
    return np.frombuffer(content, dtype).reshape(shape)


@st.composite
def text_arrays(draw: st.DrawFn) -> Any:
    shape = draw(SHAPES)
    size = int(np.prod(shape, dtype=np.int64))
    array = np.empty(size, object)
    array[:] = draw(st.lists(TEXTS, min_size=size, max_size=size))
    return array.reshape(shape)


@examples(100)
@given(st.dictionaries(TEXTS, number_arrays() | text_arrays(), max_size=4))
def test_arrays_survive_a_round_trip(arrays: dict[str, Any]) -> None:
    found = round_trip(arrays)
    assert list(found) == list(arrays)
    for name, sent in arrays.items():
        assert_same(found[name], sent)


def test_the_storage_of_every_format_can_be_sent() -> None:
    storages = {np.dtype(entry.storage) for entry in formats().values()}
    assert len(storages) > 5
    assert storages <= set(STORAGES)


@pytest.mark.parametrize("name", NUMBERS)
def test_each_storage_survives_a_round_trip_in_each_layout(name: str) -> None:
    dtype = np.dtype(name)
    line = (np.arange(48 * dtype.itemsize) % 255).astype(np.uint8)
    if dtype.kind == "b":
        line &= 1
    block = line.view(dtype).reshape(2, 4, 6)
    read_only = block.copy()
    read_only.flags.writeable = False
    layouts = {
        "contiguous": block,
        "transposed": block.T,
        "Fortran order": np.asfortranarray(block),
        "every second": block[:, ::2, ::3],
        "reversed": block[::-1, :, ::-1],
        "broadcast": np.broadcast_to(block[0, 0, 0], (3, 5)),
        "read-only": read_only,
        "misaligned": np.frombuffer(bytes(1) + block.tobytes(), dtype, offset=1),
        "rank 0": block[1, 2, 3].reshape(()) if name != "V16" else block[1:, 2, 3].reshape(()),
        "empty": block[:, :0],
        "empty with a large dimension": np.empty((0, 1 << 20, 3), dtype),
        "one element": block[:1, :1, :1],
        "highest rank": block[:1, 0, 0].reshape((1,) * MAX_RANK),
    }
    found = round_trip(layouts)
    for layout, sent in layouts.items():
        assert_same(found[layout], sent)
        assert found[layout].flags.writeable


def test_texts_survive_a_round_trip_character_by_character() -> None:
    texts = [
        "",
        "\0",
        "\ud800",
        "\udfff\ud800",
        "\ud83d\ude00",
        "\U0001f600",
        '"\\\n',
        "\ufeff",
        "é",
    ]
    for sent in (
        np.array(texts, object),
        np.array(texts, object)[::-2],
        np.array(texts, object).reshape(3, 3).T,
        np.array("\ud83d\ude00", object),
        np.empty((0, 3), object),
    ):
        assert_same(round_trip({"": sent})[""], sent)
    assert round_trip({"": np.array([None, "a", 3, b"b"], object)})[""].tolist() == [
        None,
        "a",
        None,
        None,
    ]


def test_only_plain_arrays_of_known_storages_can_be_sent() -> None:
    class Subclass(np.ndarray):
        pass

    assert all(is_sendable(np.zeros(3, dtype)) for dtype in STORAGES)
    # Another name of the same dtype.
    assert is_sendable(np.zeros(3, np.longlong))
    for unsendable in (
        np.zeros(3, np.uint16).view(Subclass),
        np.ma.zeros(3, np.uint16),
        np.zeros(3, ">u2"),
        np.zeros(3, "V8"),
        np.zeros(3, "U3"),
        np.zeros(3, "M8[s]"),
        np.zeros(3, [("a", np.float64), ("b", np.float64)]),
        np.uint16(3),
        [1, 2],
        None,
    ):
        assert not is_sendable(unsendable)


def field(**other: Any) -> dict[str, Any]:
    return {"name": "", "storage": "uint16", "shape": [2, 3], "bytes": 12} | other


MALFORMED = {
    "not a list": {"a": 1},
    "null": None,
    "a text": "name",
    "a list of texts": ["name"],
    "a list of lists": [["name", "storage", "shape", "bytes"]],
    "an empty field": [{}],
    "a missing key": [{key: value for key, value in field().items() if key != "bytes"}],
    "a name that is a number": [field(name=3)],
    "a storage that is a list": [field(storage=["uint16"])],
    "an unknown storage": [field(storage="uint3")],
    "a storage that numpy knows": [field(storage="O")],
    "a shape that is a number": [field(shape=6)],
    "a shape that is a text": [field(shape="23")],
    "a negative shape": [field(shape=[-2, -3])],
    "a shape with a -1": [field(shape=[2, -1])],
    "a shape with a fraction": [field(shape=[2.0, 3])],
    "a shape with a boolean": [field(shape=[True, 6])],
    "a nested shape": [field(shape=[[2], 3])],
    "too many dimensions": [field(shape=[1] * MAX_RANK + [6])],
    "too many elements": [field(shape=[MAX_ELEMENTS, 2, 3])],
    "a dimension too large for 64 bits": [field(shape=[10**30])],
    "a product of dimensions that overflows": [field(shape=[MAX_ELEMENTS] * MAX_RANK)],
    "an overflowing shape without elements": [field(shape=[0] + [MAX_ELEMENTS] * 3, bytes=0)],
    "too small a shape": [field(shape=[2, 2])],
    "too large a shape": [field(shape=[2, 4])],
    "another storage": [field(storage="uint32")],
    "too few bytes": [field(bytes=10)],
    "too many bytes": [field(bytes=14)],
    "negative bytes": [field(bytes=-12)],
    "a fraction of bytes": [field(bytes=12.0)],
    "more bytes than any memory has": [field(bytes=1 << 62)],
    "two fields for the bytes of one": [field(), field(name="a")],
    "half an element": [field(shape=[5], storage="uint16", bytes=11)],
    "no fields": [],
}


@pytest.mark.parametrize("fields", MALFORMED.values(), ids=MALFORMED)
def test_malformed_fields_are_a_frame_error(fields: Any) -> None:
    assert unpack_arrays([field()], bytearray(12))[""].shape == (2, 3)
    with pytest.raises(FrameError) as caught:
        unpack_arrays(fields, bytearray(12))
    assert "\n" not in str(caught.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(NUMBERS),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)


@examples(300)
@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "name": st.just("") | JSON,
                "storage": st.sampled_from([*NUMBERS, TEXT]) | JSON,
                "shape": st.lists(st.integers(0, 4) | JSON, max_size=3) | JSON,
                "bytes": st.integers(0, 40) | JSON,
            }
        ),
        max_size=3,
    )
    | JSON,
    st.binary(max_size=40),
)
def test_any_fields_are_arrays_or_a_frame_error(fields: Any, payload: bytes) -> None:
    try:
        found = unpack_arrays(fields, bytearray(payload))
    except FrameError:
        return
    assert all(is_sendable(array) for array in found.values())


MALFORMED_TEXTS = {
    "not JSON": b"[",
    "empty": b"",
    "an object": b'{"a":"b"}',
    "one text": b'"ab"',
    "numbers": b"[1,2]",
    "NaN": b"[NaN,NaN]",
    "lists": b'[["a"],["b"]]',
    "one too few": b'["a"]',
    "one too many": b'["a","b","c"]',
    "not UTF-8": b'["\xff","b"]',
    "deep": b"[" * 100_000,
    "a number of many digits": b"[" + b"9" * 5000 + b"]",
    "UTF-16": json.dumps(["a", "b"]).encode("utf-16"),
    "booleans": b"[true,false]",
}


@pytest.mark.parametrize("content", MALFORMED_TEXTS.values(), ids=MALFORMED_TEXTS)
def test_malformed_texts_are_a_frame_error(content: bytes) -> None:
    right = field(storage=TEXT, shape=[2], bytes=9)
    assert unpack_arrays([right], bytearray(b'["a","b"]'))[""].tolist() == ["a", "b"]
    with pytest.raises(FrameError, match="texts"):
        unpack_arrays([right | {"bytes": len(content)}], bytearray(content))


def test_no_memory_is_allocated_for_announced_sizes() -> None:
    tracemalloc.start()
    try:
        for storage in ("uint8", "V16", TEXT):
            with pytest.raises(FrameError):
                unpack_arrays([field(storage=storage, shape=[1 << 38], bytes=12)], bytearray(12))
            with pytest.raises(FrameError):
                unpack_arrays(
                    [field(storage=storage, shape=[1 << 38], bytes=1 << 38)], bytearray(12)
                )
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < LITTLE_MEMORY
