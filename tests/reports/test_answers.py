"""Arrays that are kept come back as they were, under a name of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.diff.answer_arrays import DatumArray, decode_array
from specs.formats import Format, formats

NUMBERS = [form for form in formats().values() if form.kind != "text" and form.bits <= 64]


def values_of(form: Format, data: st.DataObject) -> Any:
    codes = data.draw(st.lists(st.integers(0, form.mask), max_size=40))
    return np.array(codes, form.storage)


@given(st.sampled_from(NUMBERS), st.data())
def test_patterns_come_back(form: Format, data: st.DataObject) -> None:
    values = values_of(form, data)
    back = decode_array(form.name, DatumArray(form.name, values).data)
    assert (back.dtype, back.values.dtype) == (form.name, values.dtype)
    assert back.values.tolist() == values.tolist()


@given(st.sampled_from(NUMBERS), st.data())
def test_two_arrays_of_one_digest_are_the_same(form: Format, data: st.DataObject) -> None:
    one, other = values_of(form, data), values_of(form, data)
    same = DatumArray(form.name, one).digest == DatumArray(form.name, other).digest
    assert same == (one.tolist() == other.tolist())


def test_the_dtype_belongs_to_the_digest() -> None:
    values = np.array([1, 2], np.uint16)
    assert DatumArray("float16", values).digest != DatumArray("bfloat16", values).digest


@pytest.mark.parametrize("texts", [[], ["", "é ∞", "a\ud800\0"]])
def test_texts_come_back(texts: list[str]) -> None:
    values = np.empty(len(texts), object)
    values[:] = texts
    assert decode_array("string", DatumArray("string", values).data).values.tolist() == texts


def test_the_widest_come_back() -> None:
    values = np.frombuffer(bytes(range(48)), "V16")
    back = decode_array("complex128", DatumArray("complex128", values).data)
    assert back.values.tobytes() == values.tobytes()
