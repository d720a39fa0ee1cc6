"""Questions in people's own words mean the same as in Castigate's."""

from __future__ import annotations

import pytest

from conformance.question_words import question_words
from specs.questions import read_question
from tests.conformance.processes import castigate

PLAIN = ["float32", "int8", "300"]


@pytest.mark.parametrize(
    "asked",
    [
        ["float32 to int8 300"],
        ["f32 -> i8 300"],
        ["fp32", "→", "int8", "300"],
        ["cast", "300", "float32", "int8"],
        ["cast", "300", "from", "float32", "to", "int8"],
        ["float32(300) to int8"],
        ["fp32", "to", "int8:", "300"],
        ["what is 300 from float32 to int8"],
        ["jax", "float32", "to", "int8", "300"],
        ["tensorflow", "float32", "int8", "300"],
        ["onnx", "Cast", "float32", "to", "int8", "300"],
        ["float32", "as", "int8", "300"],
        ["float32", "to", "int8", "of", "300"],
        ["float32", "to", "int8", "300", "?"],
        ["np.float32(300).astype(np.int8)"],
        ["float('300') -> int8"],
    ],
)
def test_a_sentence_means_two_dtypes_and_a_value(asked: list[str]) -> None:
    found, plain = read_question(question_words(asked)), read_question(PLAIN)
    assert (found.cases, found.inputs, found.is_open) == (plain.cases, ["300"], True)


@pytest.mark.parametrize(
    "asked",
    [
        PLAIN,
        ["float32", "to", "int8", "300", "nan"],
        ["string", "float32", "what is 300"],
        ["onnx-cast:25/float32/int8", "300"],
        ["torch", "float32", "int8", "300"],
        ["float32", "int32", "bool", "0.5"],
        ["nonsense", "float32", "int8", "1"],
        ["float32"],
    ],
)
def test_what_has_a_meaning_or_none_stays_as_it_is(asked: list[str]) -> None:
    assert question_words(asked) == asked


def test_an_answer_comes_first_and_is_short() -> None:
    """The first line has the answers of frameworks; a named document stands alone below it."""
    for words in (["jax float32 to int8 300"], ["onnx", "float32", "int8", "300"]):
        code, out, err = castigate("explain", *words)
        assert (code, err) == (0, "")
        first, *rest = out.splitlines()
        assert first.startswith("float32 to int8 of 300: ")
        assert " 44 from " in first
        assert " 127 from " in first
        assert len(rest) < 8
        assert rest[-1].startswith("the rule and its clause: castigate explain ")
    assert "left open by onnx-cast\n" in out
