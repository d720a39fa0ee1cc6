"""Asks `castigate explain` as a new user does: why do frameworks differ, and what can one do?"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from unittest.mock import patch

import pytest

from conformance.commands import backends
from conformance.commands.options import pair_named
from conformance.question_words import separate_values
from oracles.registry import BUILTINS, installed
from reports.behaviors.known_answers import known_answers
from specs.errors import CastigateError
from tests.conformance.processes import castigate

NOBODY_IS_WRONG = "  no document decides it: nobody is wrong, and the result is not portable"


@pytest.fixture(autouse=True)
def _asks_the_table() -> Iterator[None]:
    """Have frameworks answer by the table, whatever is installed here."""
    with patch("conformance.commands.explain.outdated", list):
        yield


def explained(question: str) -> list[str]:
    code, out, err = castigate("explain", *shlex.split(question))
    assert (code, err) == (0, "")
    return out.splitlines()


def test_where_no_document_decides_a_sentence_says_what_follows() -> None:
    assert NOBODY_IS_WRONG in explained("fp32 int8 300")
    # What documents decide, and what is asked of one document, has no such sentence.
    for question in ("fp32 int8 12", "numpy fp32 int8 300"):
        assert [line for line in explained(question) if "no document decides" in line] == []


def test_documents_that_allow_the_same_in_another_order_share_a_line() -> None:
    lines = explained("fp32 int8 -1.5")
    [shared] = [
        line for line in lines if line.startswith("  recommended, 0xfe (-2) or 0xff (-1): ")
    ]
    assert "array-api-astype" in shared
    assert "openvino-convert" in shared
    assert [line for line in lines if "0xff (-1) or 0xfe (-2)" in line] == []


def test_agreement_by_chance_is_not_called_portable() -> None:
    lines = explained("fp32 int8 300 --backend numpy --backend ml_dtypes")
    assert lines[1] == "  no document decides it: these agree, but others need not"


def test_versions_of_all_frameworks_stand_below_answers_that_differ() -> None:
    said = " ".join(" ".join(explained("fp32 int8 300")).split())
    for name, each in known_answers().frameworks.items():
        if "float32/int8" in each.pairs:
            assert re.search(rf"\b{name} {re.escape(each.public_version)}\b", said), name


def test_an_error_to_a_call_is_left_out_of_an_answer_about_a_value() -> None:
    pytest.importorskip("torch")
    lines = explained("fp32 int8 300 --backend torch")
    assert lines[0] == "float32 to int8 of 300: 44 from torch"
    assert [line for line in lines if "error" in line] == []


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            "wasm fp32 int8 300",
            "  wasm: no document of it lists float32 to int8, no answer is recorded;"
            " --backend wasmtime asks it",
        ),
        ("tvm fp32 int8 300", "  tvm: no answer is recorded; --backend tvm asks it"),
    ],
)
def test_a_framework_that_is_named_in_vain_is_told_of(asked: str, said: str) -> None:
    assert said in explained(asked)


@pytest.mark.parametrize(
    ("asked", "command"),
    [
        ("fp32 int8 300", "castigate explain onnx-cast:25/float32/int8 300"),
        (
            "torch ort fp32 int8 300",
            "castigate explain torch-tensor-to:2.13/float32/int8/form:dtype 300",
        ),
        ("fp32 int8 300 nan", "castigate explain onnx-cast:25/float32/int8 300 nan"),
    ],
)
def test_the_clause_is_that_of_the_named_framework_for_all_values(asked: str, command: str) -> None:
    last = explained(asked)[-1]
    assert last == f"the rule and its clause: {command}"
    assert explained(command.removeprefix("castigate explain "))


@pytest.mark.parametrize("asked", ["float32 to int8 300 in torch", "fp32 int8 300 torch"])
def test_a_framework_may_stand_at_the_end(asked: str) -> None:
    assert explained(asked)[0].startswith("float32 to int8 of 300: 44 from torch, ")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["300,nan,-1.5"], ["300", "nan", "-1.5"]),
        (["300,", "nan"], ["300", "nan"]),
        (["1.5,2"], ["1.5", "2"]),
        (["1,5"], ["1,5"]),
        (["1 "], ["1 "]),
        (["1,x"], ["1,x"]),
    ],
)
def test_values_may_have_commas_between(words: list[str], expected: list[str]) -> None:
    assert separate_values(words) == expected


@pytest.mark.parametrize("text", ["fp32/int8", "fp32 int8", "fp32 to int8", " float32 / i8 "])
def test_a_pair_of_portable_is_spelled_as_in_a_question(text: str) -> None:
    assert pair_named(text) == ("float32", "int8")


@pytest.mark.parametrize("text", ["fp32//int8", "/int8", "fp32/", "fp32", "fp32 int8 bool", ""])
def test_what_is_no_pair_is_refused(text: str) -> None:
    with pytest.raises(CastigateError, match="is not SOURCE/TARGET"):
        pair_named(text)


def test_portable_names_all_that_is_not_installed_and_where_answers_are_recorded() -> None:
    missing = [name for name in known_answers().frameworks if name not in {*installed()}]
    if len(missing) < 2:
        pytest.skip("needs two known frameworks that are not installed")
    code, out, err = castigate("portable", *missing[:2], "--pair", "fp32 int8")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert all(f"backend `{name}` is not installed" in err for name in missing[:2])
    assert err.endswith("are shown by castigate explain float32 int8 VALUE\n")


def test_portable_says_how_to_write_a_portable_cast() -> None:
    said = "to be portable, keep inputs where all agree: replace NaN and clip before the cast"
    _, out, _ = castigate("portable", "reference", "ml_dtypes", "--pair=e5m2/e4m3fn")
    assert out.splitlines()[-1] == said
    _, out, _ = castigate("portable", "reference", "ml_dtypes", "--pair=int8/int16")
    assert said not in out


def test_a_command_to_paste_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "installed", lambda: iter(["reference"]))
    [command] = [line for line in backends.known_backends() if "pip install" in line]
    wanted = {each.extra for each in BUILTINS.values() if each.extra}
    [extras] = re.findall(r"'castigate\[(.+)\]'$", command)
    assert {*extras.split(",")} == wanted
