"""Arrays come back bit for bit in shape and storage, and malformed ones are a ``FrameError``."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from oracles.isolation.frames import (
    MOST_ELEMENTS,
    MOST_RANK,
    STORAGES,
    TEXT,
    FrameError,
    is_carried,
    packed,
    read_frame,
    unpacked,
    written,
)
from specs.formats import formats

NUMBERS = sorted(name for name in STORAGES.values() if name != TEXT)
TEXTS = st.text(st.characters())  # lone surrogates too
SHAPES = npst.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=4)
LITTLE = 1 << 20


def there_and_back(arrays: dict[str, Any]) -> dict[str, Any]:
    """Arrays after their way through a frame."""
    fields, payload = packed(arrays)
    content = b"".join(written({"arrays": fields}, payload))
    read: Iterator[bytes] = iter((content[:7], content[7:16], content[16:]))
    rest = bytearray()

    def reading(count: int) -> bytes:
        rest.extend(next(read, b""))
        piece, rest[:] = bytes(rest[:count]), rest[count:]
        return piece

    frame = read_frame(reading)
    assert frame is not None
    return unpacked(frame.header["arrays"], frame.payload)


def assert_same(found: Any, sent: Any) -> None:
    assert type(found) is np.ndarray
    assert (found.shape, found.dtype) == (sent.shape, sent.dtype)
    if sent.dtype == object:
        assert found.reshape(-1).tolist() == sent.reshape(-1).tolist()
    else:
        assert found.tobytes() == sent.tobytes()


@st.composite
def raw(draw: st.DrawFn) -> Any:
    """An array of any number's storage and any bits."""
    dtype, shape = np.dtype(draw(st.sampled_from(NUMBERS))), draw(SHAPES)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    content = draw(st.binary(min_size=size, max_size=size))
    if dtype.kind == "b":
        content = bytes(byte & 1 for byte in content)
    return np.frombuffer(content, dtype).reshape(shape)


@st.composite
def texts(draw: st.DrawFn) -> Any:
    shape = draw(SHAPES)
    size = int(np.prod(shape, dtype=np.int64))
    made = np.empty(size, object)
    made[:] = draw(st.lists(TEXTS, min_size=size, max_size=size))
    return made.reshape(shape)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(TEXTS, raw() | texts(), max_size=4))
def test_arrays_come_back(arrays: dict[str, Any]) -> None:
    found = there_and_back(arrays)
    assert list(found) == list(arrays)
    for name, sent in arrays.items():
        assert_same(found[name], sent)


def test_the_storage_of_every_format_is_carried() -> None:
    stored = {np.dtype(form.storage) for form in formats().values()}
    assert len(stored) > 5
    assert stored <= set(STORAGES)


@pytest.mark.parametrize("name", NUMBERS)
def test_each_storage_in_each_layout(name: str) -> None:
    dtype = np.dtype(name)
    line = (np.arange(48 * dtype.itemsize) % 255).astype(np.uint8)
    if dtype.kind == "b":
        line &= 1
    block = line.view(dtype).reshape(2, 4, 6)
    fixed = block.copy()
    fixed.flags.writeable = False
    layouts = {
        "block": block,
        "turned": block.T,
        "in Fortran's order": np.asfortranarray(block),
        "every second": block[:, ::2, ::3],
        "backwards": block[::-1, :, ::-1],
        "one for all": np.broadcast_to(block[0, 0, 0], (3, 5)),
        "fixed": fixed,
        "misaligned": np.frombuffer(bytes(1) + block.tobytes(), dtype, offset=1),
        "rank 0": block[1, 2, 3].reshape(()) if name != "V16" else block[1:, 2, 3].reshape(()),
        "nothing": block[:, :0],
        "nothing of much": np.empty((0, 1 << 20, 3), dtype),
        "of one": block[:1, :1, :1],
        "of the highest rank": block[:1, 0, 0].reshape((1,) * MOST_RANK),
    }
    found = there_and_back(layouts)
    for layout, sent in layouts.items():
        assert_same(found[layout], sent)
        assert found[layout].flags.writeable


def test_texts_come_back_letter_by_letter() -> None:
    hard = [
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
        np.array(hard, object),
        np.array(hard, object)[::-2],
        np.array(hard, object).reshape(3, 3).T,
        np.array("\ud83d\ude00", object),
        np.empty((0, 3), object),
    ):
        assert_same(there_and_back({"": sent})[""], sent)
    assert there_and_back({"": np.array([None, "a", 3, b"b"], object)})[""].tolist() == [
        None,
        "a",
        None,
        None,
    ]


def test_what_is_carried() -> None:
    class Own(np.ndarray):
        pass

    assert all(is_carried(np.zeros(3, dtype)) for dtype in STORAGES)
    # Another name of a storage is the same storage.
    assert is_carried(np.zeros(3, np.longlong))
    for odd in (
        np.zeros(3, np.uint16).view(Own),
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
        assert not is_carried(odd)


def field(**other: Any) -> dict[str, Any]:
    return {"name": "", "storage": "uint16", "shape": [2, 3], "bytes": 12} | other


MALFORMED = {
    "no list": {"a": 1},
    "nothing": None,
    "a text": "name",
    "a list of texts": ["name"],
    "a list of lists": [["name", "storage", "shape", "bytes"]],
    "an empty field": [{}],
    "a missing key": [{key: value for key, value in field().items() if key != "bytes"}],
    "a name of another kind": [field(name=3)],
    "a storage of another kind": [field(storage=["uint16"])],
    "an unknown storage": [field(storage="uint3")],
    "a storage that numpy knows": [field(storage="O")],
    "a shape that is a number": [field(shape=6)],
    "a shape that is a text": [field(shape="23")],
    "a negative shape": [field(shape=[-2, -3])],
    "a shape to be guessed": [field(shape=[2, -1])],
    "a broken shape": [field(shape=[2.0, 3])],
    "a shape of truth": [field(shape=[True, 6])],
    "a nested shape": [field(shape=[[2], 3])],
    "a shape of too many": [field(shape=[1] * MOST_RANK + [6])],
    "too many elements": [field(shape=[MOST_ELEMENTS, 2, 3])],
    "elements beyond number": [field(shape=[10**30])],
    "a product beyond number": [field(shape=[MOST_ELEMENTS] * MOST_RANK)],
    "a size beyond number, of nothing": [field(shape=[0] + [MOST_ELEMENTS] * 3, bytes=0)],
    "a shape of less": [field(shape=[2, 2])],
    "a shape of more": [field(shape=[2, 4])],
    "another storage": [field(storage="uint32")],
    "bytes of less": [field(bytes=10)],
    "bytes of more": [field(bytes=14)],
    "negative bytes": [field(bytes=-12)],
    "broken bytes": [field(bytes=12.0)],
    "bytes without end": [field(bytes=1 << 62)],
    "two of one": [field(), field(name="a")],
    "half an element": [field(shape=[5], storage="uint16", bytes=11)],
    "none": [],
}


@pytest.mark.parametrize("fields", MALFORMED.values(), ids=MALFORMED)
def test_malformed_fields_are_a_frame_error(fields: Any) -> None:
    assert unpacked([field()], bytearray(12))[""].shape == (2, 3)
    with pytest.raises(FrameError) as caught:
        unpacked(fields, bytearray(12))
    assert "\n" not in str(caught.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(NUMBERS),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)


@settings(max_examples=300, deadline=None)
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
def test_no_fields_end_in_anything_but_arrays_or_a_frame_error(fields: Any, payload: bytes) -> None:
    try:
        found = unpacked(fields, bytearray(payload))
    except FrameError:
        return
    assert all(is_carried(array) for array in found.values())


NO_TEXTS = {
    "no JSON": b"[",
    "nothing": b"",
    "an object": b'{"a":"b"}',
    "one text": b'"ab"',
    "numbers": b"[1,2]",
    "NaN": b"[NaN,NaN]",
    "lists": b'[["a"],["b"]]',
    "one too few": b'["a"]',
    "one too many": b'["a","b","c"]',
    "no UTF-8": b'["\xff","b"]',
    "deep": b"[" * 100_000,
    "a number of many digits": b"[" + b"9" * 5000 + b"]",
    "UTF-16": json.dumps(["a", "b"]).encode("utf-16"),
    "truths": b"[true,false]",
}


@pytest.mark.parametrize("content", NO_TEXTS.values(), ids=NO_TEXTS)
def test_malformed_texts_are_a_frame_error(content: bytes) -> None:
    right = field(storage=TEXT, shape=[2], bytes=9)
    assert unpacked([right], bytearray(b'["a","b"]'))[""].tolist() == ["a", "b"]
    with pytest.raises(FrameError, match="texts"):
        unpacked([right | {"bytes": len(content)}], bytearray(content))


def test_no_memory_is_taken_for_what_is_only_announced() -> None:
    tracemalloc.start()
    try:
        for storage in ("uint8", "V16", TEXT):
            with pytest.raises(FrameError):
                unpacked([field(storage=storage, shape=[1 << 38], bytes=12)], bytearray(12))
            with pytest.raises(FrameError):
                unpacked([field(storage=storage, shape=[1 << 38], bytes=1 << 38)], bytearray(12))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < LITTLE
