"""`castigate codec`: float64, integers and texts, in C, in Python, and by programs."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from conformance.extras.codec.answers import CodecAnswers
from conformance.extras.codec.asked_texts import asked_texts
from conformance.extras.codec.judging import judge_codec
from conformance.extras.codec.program_codec import hex_lines
from conformance.extras.codec.target import TextSignature, codec_case, signature_for, target_named
from oracles.reference import expect_by_exact
from specs.errors import CastigateError
from specs.formats import format_named
from specs.ruling import ruling
from tests.conformance.extras.codec.planted_codecs import FOLDER
from tests.conformance.extras.codec.test_codec import compiled, needs_compiler, run

WIDE, SCRIPT = FOLDER / "wide.h", FOLDER / "wide.py"
PROGRAM = f"exec:{sys.executable} {SCRIPT}"
FEW_SECONDS = 0.05


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler takes longer to optimize a codec than a few inputs take."""
    monkeypatch.setenv("CFLAGS", "-O0")
    monkeypatch.setattr("conformance.extras.codec.answers.SAMPLE_SECONDS", FEW_SECONDS)
    monkeypatch.setattr("conformance.extras.codec.answers.LONGEST_SWEEP", 0.0)
    monkeypatch.setattr("conformance.extras.codec.answers.MANY", 1 << 12)
    # Each form takes a process of its own, and these functions take numbers.
    for forms in ("NUMERIC_FORMS", "WRITING_FORMS"):
        monkeypatch.setattr(f"conformance.extras.codec.ways.{forms}", ("number",))


def found(target: str, *options: str) -> tuple[str, ...]:
    """The names of the findings about a codec."""
    code, output = run(target, *options, "--json")
    assert code in (0, 1), output
    record = json.loads(output.splitlines()[-1])
    names = tuple(each["name"] for each in record["findings"])
    assert (code, record["verdict"] == "conforms") == (1 if names else 0, not names)
    return names


E4M3 = ("--format", "e4m3fn")
OF_DOUBLE, OF_TEXT = (*E4M3, "--from", "float64"), (*E4M3, "--from", "text")
TO_TEXT = (*OF_TEXT, "--direction", "decode")
FLOAT = ("--format", "float32", "--overflow", "inf")
BF16 = ("--format", "bf16", "--overflow", "inf", "--from", "int32")
HALF = ("--format", "float16", "--overflow", "inf", "--from", "float64")


@needs_compiler
@pytest.mark.parametrize(
    ("function", "options", "findings"),
    [
        ("of_double", OF_DOUBLE, ()),
        ("of_doubles", OF_DOUBLE, ()),
        ("through_float", OF_DOUBLE, ("rounds-twice-through-float32",)),
        ("truncates", (*OF_DOUBLE, "--round", "RTZ"), ()),
        ("truncates", OF_DOUBLE, ("as-round-toward-zero",)),
        ("of_double", (*OF_DOUBLE, "--round", "rtz"), ("as-round-nearest-even",)),
        ("flushed", OF_DOUBLE, ("subnormals-become-zero",)),
        ("minus_zero_lost", OF_DOUBLE, ("minus-zero-lost",)),
        ("half_of_double", HALF, ()),
        ("half_through_float", HALF, ("rounds-twice-through-float32",)),
        ("float_of_double", (*FLOAT, "--from", "float64"), ()),
        ("of_int8", (*E4M3, "--from", "int8"), ()),
        ("of_int32", (*E4M3, "--from", "int32"), ()),
        ("drops_sign", (*E4M3, "--from", "int8"), ("magnitude-nearest-clamp",)),
        ("bf16_of_int32", BF16, ()),
        ("bf16_of_int32_through_float", BF16, ("rounds-twice-through-float32",)),
        ("float_of_int64", (*FLOAT, "--from", "int64"), ()),
        (
            "float_of_int64_through_double",
            (*FLOAT, "--from", "int64"),
            ("rounds-twice-through-float64",),
        ),
        ("float_of_text", (*FLOAT, "--from", "text"), ()),
        ("float_of_text_and_end", (*FLOAT, "--from", "text"), ()),
        (
            "float_of_text_through_double",
            (*FLOAT, "--from", "text"),
            ("rounds-twice-through-float64",),
        ),
        ("to_double", (*OF_DOUBLE, "--direction", "decode"), ()),
        ("to_text", TO_TEXT, ()),
        ("into_buffer", TO_TEXT, ()),
        ("into_sized", TO_TEXT, ()),
        ("one_place", TO_TEXT, ("printf-1f",)),
    ],
)
def test_codecs_in_c(function: str, options: tuple[str, ...], findings: tuple[str, ...]) -> None:
    assert found(f"c:{WIDE}:{function}", *options) == findings


@pytest.mark.ci_runs_one_of(2)
@pytest.mark.parametrize(
    ("function", "options", "findings"),
    [
        ("of_number", (*E4M3, "--from", "uint16"), ()),
        ("of_number", (*E4M3, "--from", "int64"), ()),
        ("of_number_to_odd", (*OF_DOUBLE, "--round", "RTO"), ()),
        ("of_number_to_odd", OF_DOUBLE, ("as-round-odd",)),
        ("through_single", OF_DOUBLE, ("rounds-twice-through-float32",)),
        ("of_names_too", OF_TEXT, ()),
        ("of_seven_digits", OF_TEXT, ("reads-7-digits",)),
        ("of_text_through_double", OF_TEXT, ("rounds-twice-through-float64",)),
        ("to_number", (*OF_DOUBLE, "--direction", "decode"), ()),
        ("to_text", TO_TEXT, ()),
    ],
)
def test_codecs_in_python(
    function: str, options: tuple[str, ...], findings: tuple[str, ...]
) -> None:
    assert found(f"{SCRIPT}:{function}", *options) == findings


@pytest.mark.ci_runs_one_of(2)
@pytest.mark.parametrize(
    ("words", "options", "findings"),
    [
        ("of_number", OF_DOUBLE, ()),
        ("through_single", OF_DOUBLE, ("rounds-twice-through-float32",)),
        ("truncates", OF_DOUBLE, ("as-round-toward-zero",)),
        ("of_text", OF_TEXT, ()),
        ("of_seven_digits", OF_TEXT, ("reads-7-digits",)),
        ("to_text", TO_TEXT, ()),
    ],
)
def test_programs(words: str, options: tuple[str, ...], findings: tuple[str, ...]) -> None:
    assert found(f"{PROGRAM} {words}", *options) == findings


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("crash", "ended its process by SIGABRT for 0x4008000000000000 (3)"),
        ("exit", "ended its process with exit code 7 for 0x4008000000000000 (3)"),
        ("quit", " lines; it fails for 0x4008000000000000 (3)"),
        ("hang", "did not return within 0.5 s for 0x4008000000000000 (3)"),
        ("junk", "`three`, which is no code of float8e4m3fn in hex, for 0x4008000000000000 (3)"),
    ],
)
def test_an_unruly_program_is_named_with_its_input(
    fault: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    three = np.array([0, 0x4008000000000000, 0x4010000000000000], np.uint64)
    monkeypatch.setattr("conformance.extras.codec.answers.quick_inputs", lambda *_: three)
    timeout = "0.5" if fault == "hang" else "20"
    code, output = run(f"{PROGRAM} of_number {fault}", *OF_DOUBLE, "--timeout", timeout)
    assert (code, says in output) == (2, True), output
    assert len(output.splitlines()) == 1


# What is asked, and what the report says of it


def test_of_64_bits_the_report_says_what_was_asked() -> None:
    code, output = run(f"{SCRIPT}:of_number", *OF_DOUBLE)
    lines = output.splitlines()
    assert code == 0
    assert " of 2^64 inputs asked in " in output
    assert lines[-2].startswith("  those around each value of float8e4m3fn and each tie, or some")
    assert lines[-1] == "no finding"


def test_texts_that_are_asked_are_read_in_one_way() -> None:
    texts = asked_texts(ruling(codec_case("float8e4m3fn", "string", True, None, None))).tolist()
    assert {"1e-8", "0.1", "448", "-INF"} & {*texts} == {"0.1", "448", "-INF"}
    assert not {".5", "1.", "0x10", "", "Infinity"} & {*texts}
    # The tie after 448, and its neighbors.
    assert {"464.0", "464.01", "463.99999999999999999999"} & {*texts} >= {"464.0", "464.01"}
    assert not any("\n" in text for text in texts)


def test_a_reader_that_knows_no_names_is_judged_without_them() -> None:
    code, output = run(f"{SCRIPT}:of_text", *OF_TEXT)
    assert code == 0
    assert "left out: the names of infinities and NaN: it raised ValueError: " in output


def test_the_answers_to_texts_are_judged_by_the_definition() -> None:
    case = codec_case("float8e5m2", "string", True, "RTP", "inf")
    rules = ruling(case)
    texts = asked_texts(rules)
    codes = np.array([expect_by_exact.allow(rules, text).codes[:1] or (0x7F,) for text in texts])
    answers = codes.ravel().astype(np.uint8)
    judged = judge_codec(case, CodecAnswers("text", texts, answers, False, texts.size, 0, 0, "-"))
    assert judged.findings == ()
    answers[[*texts].index("0.1")] ^= 1
    judged = judge_codec(case, CodecAnswers("text", texts, answers, False, texts.size, 0, 0, "-"))
    [finding] = judged.findings
    assert finding.simplest.smallest == "0.1"


@needs_compiler
def test_a_library_of_texts_is_tried_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CFLAGS", "-O2")
    text = f'#include "{WIDE}"\nfloat reads(const char *x, char **e) {{ return strtof(x, e); }}\n'
    code, output = run(f"c:{compiled(text, tmp_path)}:reads", *FLOAT, "--from", "text")
    assert (code, "called float(const char *" in output) == (0, True), output


@needs_compiler
@pytest.mark.parametrize(
    ("function", "options", "says"),
    [
        ("crashes_on_text", (*FLOAT, "--from", "text"), "by SIGABRT for '3.14'"),
        ("gives_double", (*FLOAT, "--from", "float64"), "fits none of float(double), "),
        ("of_double", (*E4M3, "--from", "int64"), "fits none of uint8_t(int64_t)"),
    ],
)
def test_codecs_in_c_that_cannot_be_judged(
    function: str, options: tuple[str, ...], says: str
) -> None:
    code, output = run(f"c:{WIDE}:{function}", *options)
    assert (code, says in output) == (2, True), output


@needs_compiler
def test_no_text_at_all_is_a_finding() -> None:
    assert found(f"c:{WIDE}:no_text", *TO_TEXT) == ("unexplained",)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("exec:",), "names no program"),
        (("exec:no-such-program",), "there is no program no-such-program; give its path"),
        ((f"exec:{WIDE}",), "cannot be executed; name its interpreter, or use chmod +x"),
        (('exec:"a',), "is no command line: No closing quotation"),
        (("exec:true", "--signature", "uint8_t(float)"), "a program has lines of text"),
        (("exec:true", "--keep", "test_x.py"), "a test asks a function of C or Python"),
        (("py:m:f", "--from", "text", "--keep", "test_x.py"), "a test asks numbers and codes"),
        (("py:m:f", "--from", "float64", "--keep", "test_x.py"), "no room for all steps"),
        (("py:m:f", "--from", "int8", "--direction", "decode"), "has no decoder for"),
        (("py:m:f", "--round", "rmm!"), "--round `rmm!` is unknown"),
        (("c:wide.h:f", "--from", "text", "--signature", "int(int)"), "is no type of a codec of"),
        (("c:wide.h:f", "--from", "int32", "--signature", "uint8_t(float)"), "takes integers"),
    ],
)
def test_options_that_cannot_be_used(
    words: tuple[str, ...], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wide.h").write_text(WIDE.read_text())
    code, output = run(*E4M3, *words)
    assert (code, says in output) == (2, True), output


@pytest.mark.parametrize("word", ["RTP", "rup", "ceil", "RU"])
def test_roundings_have_their_usual_spellings(word: str) -> None:
    case = codec_case("float8e4m3fn", "float64", True, word, None)
    assert case.mode["round"] == "ceil"


def test_signatures_of_texts_are_read_as_c_writes_them() -> None:
    ends = format_named("string"), format_named("float32")
    found = signature_for("float( const char*,char **)", *ends)
    assert isinstance(found, TextSignature)
    assert (found.text, found.pointer) == (
        "float(const char *, char **)",
        "float (*NAME)(const char *, char **)",
    )
    with pytest.raises(CastigateError, match="no type of a codec of texts"):
        signature_for("float(int)", *ends)


def test_a_program_gets_two_hex_digits_a_byte() -> None:
    assert hex_lines(np.array([0, 0xAB], np.uint8)) == b"00\nab\n"
    assert hex_lines(np.array([0x3FF8 << 48], np.uint64)) == b"3ff8000000000000\n"


def test_a_command_line_is_split_as_a_shell_does() -> None:
    assert target_named(f"exec:{sys.executable} 'a b'").where == f"{sys.executable} 'a b'"
    assert os.access(sys.executable, os.X_OK)
