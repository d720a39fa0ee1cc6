"""Questions in people's own words mean the same as in Castigate's."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from conformance.question_words import names_in, question_words
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


@pytest.mark.parametrize(
    ("asked", "frameworks", "documents"),
    [
        (["jax float32 to int8 300"], ("jax",), False),
        (["torch.float32", "torch.int8", "300"], ("torch",), False),
        (["jnp.float32", "np.int8", "300"], ("jax", "numpy"), False),
        (["wasm", "f32", "i32", "nan"], ("wasmtime",), True),
        (["onnx-cast", "float32", "int8", "300"], (), True),
        (PLAIN, (), False),
    ],
)
def test_a_question_names_frameworks_and_documents(
    asked: list[str], frameworks: tuple[str, ...], documents: bool
) -> None:
    assert names_in(asked)[:2] == (frameworks, documents)


def test_a_framework_that_nobody_named_is_asked_but_not_graded() -> None:
    with patch("conformance.commands.explain.outdated", lambda: ["reference"]):
        _, out, _ = castigate("explain", "fp32", "e4m3fn", "465")
    first, *rest = out.splitlines()
    assert "448 from reference" in first
    assert "reference" not in "".join(rest)
    _, out, _ = castigate("explain", "fp32", "e4m3fn", "465", "--backend", "reference")
    assert "obeyed by reference" in " ".join(out.split())


def test_the_last_line_asks_the_first_input_that_is_a_value() -> None:
    code, out, err = castigate("explain", "fp16", "fp32", "70000", "1")
    assert (code, err.count("\n")) == (2, 1)
    assert out.splitlines()[-1].endswith("onnx-cast:25/float16/float32 1")
