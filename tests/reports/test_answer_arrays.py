"""Arrays survive encoding and decoding, and have a digest of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.judgement import DatumArray, decode_array
from specs.formats import Format, formats

NUMERIC = [form for form in formats().values() if form.kind != "text" and form.bits <= 64]


def draw_values(form: Format, data: st.DataObject) -> Any:
    codes = data.draw(st.lists(st.integers(0, form.mask), max_size=40))
    return np.array(codes, form.storage)


@given(st.sampled_from(NUMERIC), st.data())
def test_patterns_survive_encoding_and_decoding(form: Format, data: st.DataObject) -> None:
    values = draw_values(form, data)
    decoded = decode_array(form.name, DatumArray(form.name, values).data)
    assert (decoded.dtype, decoded.values.dtype) == (form.name, values.dtype)
    assert decoded.values.tolist() == values.tolist()


@given(st.sampled_from(NUMERIC), st.data())
def test_digests_are_equal_exactly_if_the_values_are(form: Format, data: st.DataObject) -> None:
    one, other = draw_values(form, data), draw_values(form, data)
    same = DatumArray(form.name, one).digest == DatumArray(form.name, other).digest
    assert same == (one.tolist() == other.tolist())


def test_equal_values_of_different_dtypes_have_different_digests() -> None:
    values = np.array([1, 2], np.uint16)
    assert DatumArray("float16", values).digest != DatumArray("bfloat16", values).digest


@pytest.mark.parametrize("texts", [[], ["", "é ∞", "a\ud800\0"]])
def test_texts_survive_encoding_and_decoding(texts: list[str]) -> None:
    values = np.empty(len(texts), object)
    values[:] = texts
    assert decode_array("string", DatumArray("string", values).data).values.tolist() == texts


def test_patterns_of_128_bits_survive_encoding_and_decoding() -> None:
    values = np.frombuffer(bytes(range(48)), "V16")
    decoded = decode_array("complex128", DatumArray("complex128", values).data)
    assert decoded.values.tobytes() == values.tobytes()
