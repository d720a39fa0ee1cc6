"""`castigate codec`: planted codecs are found and named, and what cannot be judged is refused."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from ctypes import CDLL, c_size_t, c_void_p
from pathlib import Path
from threading import Event

import numpy as np
import pytest
from typer.testing import CliRunner

from conformance.commands.main import build_app
from conformance.extras.codec.answers import CodecAnswers, ask_all
from conformance.extras.codec.c_program import check_widths
from conformance.extras.codec.judging import JudgedCodec, judge_codec, step_starts
from conformance.extras.codec.kept_test import allowed_pieces
from conformance.extras.codec.process import CodecProcess, ManyRunsError, SweepStoppedError
from conformance.extras.codec.python_worker import WrongTypeError, asker
from conformance.extras.codec.target import (
    Signature,
    codec_case,
    signature_named,
    target_named,
)
from oracles.reference import expect_by_exact
from oracles.reference.staircase import staircase
from reports.grading.allowed_answers import NOT_ALLOWED, grade_pattern
from specs.cases import Case
from specs.errors import CastigateError
from specs.formats import dtype_spelled, format_named
from specs.ruling import ruling
from tests.conformance.extras.codec.planted_codecs import FOLDER, HEADER, PLANTED, Planted

PYTHON = FOLDER / "planted.py"
UNRULY = FOLDER / "unruly.h"
ENCODED = ("--format", "e4m3fn", "--from", "float16")
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


def judged(target: str, case: Case, folder: Path) -> tuple[CodecAnswers, JudgedCodec]:
    """Ask a codec in its own processes, and judge the answers."""
    answers = ask_all(
        target_named(target), ruling(case), None, 10.0, 2, folder, lambda *_: lambda more: None
    )
    return answers, judge_codec(case, answers)


def compiled(text: str, folder: Path) -> Path:
    """A shared library."""
    (folder / "codecs.c").write_text(text)
    command = ["cc", "-shared", "-fPIC", "-o", "codecs.so", "codecs.c"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "codecs.so"


@pytest.fixture(scope="module")
def header(tmp_path_factory: pytest.TempPathFactory) -> CDLL:
    """Functions of the header of planted codecs, each with a loop around it, in this process."""
    loops = "".join(
        f"void all_{name}(const {given} *x, __typeof__({name}(0)) *y, size_t n)"
        f" {{ while (n--) *y++ = {name}(*x++); }}\n"
        for name, given in {
            **{each.function: "uint8_t" if each.decodes else "float" for each in PLANTED},
            **dict.fromkeys(SOUND, "float"),
            **dict.fromkeys((f"from_{name}" for name in SOUND_DECODERS), "uint8_t"),
        }.items()
    )
    text = f'#include <stddef.h>\n#include "{HEADER}"\n{loops}'
    return CDLL(str(compiled(text, tmp_path_factory.mktemp("header"))))


def judged_here(library: CDLL, function: str, case: Case) -> JudgedCodec:
    """Judge the answers of a function of ``header`` to all inputs, of which there are 2^16."""
    source, target = ruling(case).source, ruling(case).target
    inputs = np.arange(1 << source.bits, dtype=source.storage)
    given = inputs.view(np.float16).astype(np.float32) if source.name == "float16" else inputs
    codes = np.zeros(inputs.size, target.storage)
    pointers = (each.ctypes.data_as(c_void_p) for each in (given, codes))
    getattr(library, f"all_{function}")(*pointers, c_size_t(inputs.size))
    return judge_codec(case, CodecAnswers("", inputs, codes, True, inputs.size, 0.0, 0.0))


@pytest.fixture(autouse=True)
def _without_optimizer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler takes longer to optimize a codec than the codec takes for few inputs."""
    monkeypatch.setenv("CFLAGS", "-O0")


def names(found: JudgedCodec) -> tuple[str, ...]:
    return tuple(sorted(each.name for each in found.findings))


def run(*words: str | Path) -> tuple[int, str]:
    """Run the command; return its exit code and its output, or 2 and the error."""
    result = CliRunner().invoke(build_app(["codec"]), ["codec", *map(str, words)])
    if isinstance(result.exception, CastigateError):
        return 2, str(result.exception)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


@needs_compiler
@pytest.mark.parametrize(
    "planted", [each for each in PLANTED if not each.needs_float32], ids=lambda each: each.function
)
def test_each_planted_codec_is_named(planted: Planted, header: CDLL) -> None:
    case = planted.case("float32" if planted.decodes else "float16")
    assert names(judged_here(header, planted.function, case)) == planted.findings


@pytest.mark.nightly
@needs_compiler
@pytest.mark.parametrize(
    "planted", [each for each in PLANTED if not each.decodes], ids=lambda each: each.function
)
def test_each_planted_codec_is_named_on_all_inputs(
    planted: Planted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CFLAGS")
    answers, found = judged(planted.target, planted.case("float32"), tmp_path)
    assert {*names(found)} == {*planted.findings, planted.most} - {""}
    assert (answers.is_whole, answers.asked) == (True, 1 << 32)
    # This takes 10 seconds on two idle cores.
    assert answers.processor_seconds < 20


SOUND = {
    "e4m3fn": "saturate", "e4m3fnuz": "saturate", "e4m3b11": "saturate", "e4m3": "inf",
    "e3m4": "inf", "e5m2": "inf", "e5m2fnuz": "nan", "e2m3": "saturate", "e3m2": "saturate",
    "e2m1": "saturate", "ue5m3": "saturate", "ue4m3": "saturate",
}  # fmt: skip
SOUND_DECODERS = ("e4m3fn", "e4m3fnuz", "e5m2", "ue5m3", "e2m1")


@needs_compiler
@pytest.mark.parametrize("name", SOUND)
def test_sound_encoders_conform(name: str, header: CDLL) -> None:
    form = "float8e4m3" if name == "e4m3" else dtype_spelled(name)
    found = judged_here(header, name, codec_case(form, "float16", True, None, SOUND[name]))
    assert (found.judgement.verdict, names(found)) == ("conforms", ())


@needs_compiler
@pytest.mark.parametrize(
    ("name", "form", "overflow"),
    [("e8m0", "e8m0", "saturate"), ("f16", "float16", "inf"), ("bf16", "bfloat16", "inf")],
)
def test_sound_encoders_of_wide_ranges_conform_on_a_sample(
    name: str, form: str, overflow: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("conformance.extras.codec.answers.LONGEST_SWEEP", 0.0)
    monkeypatch.setattr("conformance.extras.codec.answers.SAMPLE_SECONDS", 1e-2)
    code, output = run(f"c:{HEADER}:{name}", "--format", form, "--overflow", overflow)
    assert code == 0, output


@needs_compiler
@pytest.mark.parametrize("name", SOUND_DECODERS)
def test_sound_decoders_conform(name: str, header: CDLL) -> None:
    case = codec_case(dtype_spelled(name), "float32", False, None, None)
    found = judged_here(header, f"from_{name}", case)
    assert (found.judgement.verdict, names(found)) == ("conforms", ())


@needs_compiler
def test_a_decoder_of_16_bits_is_asked_all_of_them() -> None:
    code, output = run(f"c:{HEADER}:from_f16", "--format", "f16", "--direction", "decode")
    assert (code, output.splitlines()[-1]) == (0, "conforms")
    assert "all 65,536 inputs asked" in output


@needs_compiler
@pytest.mark.parametrize(
    ("name", "rounding"), [("e4m3fn_away", "nearest-away"), ("e4m3fn_truncated", "toward-zero")]
)
def test_a_codec_is_judged_by_the_rounding_that_is_asked_for(name: str, rounding: str) -> None:
    assert run(f"c:{HEADER}:{name}", *ENCODED)[0] == 1
    assert run(f"c:{HEADER}:{name}", *ENCODED, "--round", rounding)[0] == 0


@needs_compiler
def test_the_report_says_what_was_asked_and_what_is_wrong() -> None:
    code, output = run(f"c:{HEADER}:subnormals_flushed", *ENCODED)
    first, second, *rest = output.splitlines()
    assert code == 1
    assert first.endswith(
        "called uint8_t(_Float16): float16 to float8e4m3fn, round nearest-even, overflow saturate"
    )
    assert second.startswith("all 65,536 inputs asked in ")
    assert rest == [
        "1 finding:",
        "  wrong value: makes subnormal results zero",
        "    subnormals-become-zero: 7,934 inputs; 0x2000 (0.0078125) gives 0x00 (0),"
        " not 0x04 (0.0078125)",
    ]


@needs_compiler
def test_json_has_the_same() -> None:
    code, output = run(f"c:{HEADER}:nan_sign_lost", *ENCODED, "--json")
    record = json.loads(output)
    assert code == 1
    assert (
        record["case"] == "small-floats:1/float16/float8e4m3fn/round:nearest-even/overflow:saturate"
    )
    assert (record["verdict"], record["inputs"], record["is_whole"]) == ("deviates", 65536, True)
    [finding] = record["findings"]
    assert (finding["name"], finding["level"], finding["inputs"]) == (
        "nan-sign",
        "recommended",
        1023,
    )


@needs_compiler
def test_what_a_format_cannot_say_is_left_open() -> None:
    code, output = run(f"c:{HEADER}:e2m1", "--format", "e2m1", "--from", "float16")
    assert code == 0
    assert "left open: 2,046 inputs (nan)" in output


# How functions are called


@needs_compiler
@pytest.mark.parametrize(
    ("name", "signature"),
    [
        ("gives_int", "uint8_t(_Float16)"),
        ("takes_double", "uint8_t(_Float16)"),
        ("A_MACRO", "uint8_t(_Float16)"),
    ],
)
def test_the_compiler_tells_the_type_of_a_header(name: str, signature: str) -> None:
    code, output = run(f"c:{UNRULY}:{name}", *ENCODED)
    assert (code, f"called {signature}:" in output) == (0, True)


@needs_compiler
@pytest.mark.parametrize(
    ("name", "signature"),
    [
        ("e4m3fn", Signature("float", "uint8_t")),
        ("takes_pattern", Signature("uint32_t", "uint8_t")),
        ("takes_array", Signature("float", "uint8_t", "size_t")),
    ],
)
def test_the_type_in_a_library_is_found_by_trying(
    name: str,
    signature: Signature,
    library: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Without the optimizer, an argument is by chance in the registers of two types.
    monkeypatch.delenv("CFLAGS")
    monkeypatch.setattr("conformance.extras.codec.answers.LONGEST_SWEEP", 0.0)
    monkeypatch.setattr("conformance.extras.codec.answers.SAMPLE_SECONDS", 1e-3)
    case = PLANTED[0].case("float32")
    answers, found = judged(f"c:{library}:{name}_of_library", case, tmp_path)
    assert (answers.called, names(found)) == (signature, ())


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shared library of some codecs."""
    text = f"""#include "{UNRULY}"
uint8_t e4m3fn_of_library(float x) {{ return e4m3fn(x); }}
uint8_t takes_pattern_of_library(uint32_t bits) {{ return takes_pattern(bits); }}
void takes_array_of_library(const float *x, uint8_t *y, size_t n) {{ takes_array(x, y, n); }}
"""
    return compiled(text, tmp_path_factory.mktemp("library"))


@pytest.mark.ci_runs_one_of(2)
@pytest.mark.parametrize(
    ("name", "options", "form", "findings"),
    [
        ("e4m3fn", ENCODED, "number", ()),
        ("e5m2", ("--format", "e5m2", "--from", "float16", "--overflow", "inf"), "numpy", ()),
        ("from_e5m2", ("--format", "e5m2", "--direction", "decode"), "numpy", ()),
        (
            "from_e2m1_without_subnormals",
            ("--format", "e2m1", "--direction", "decode"),
            "number",
            ("subnormals-become-zero",),
        ),
    ],
)
def test_python_functions_are_asked_as_they_take_it(
    name: str, options: tuple[str, ...], form: str, findings: tuple[str, ...]
) -> None:
    code, output = run(f"{PYTHON}:{name}", *options, "--json")
    record = json.loads(output)
    words = {"number": "on Python numbers", "numpy": "on numpy arrays"}
    assert (code, record["called"]) == (1 if findings else 0, words[form])
    assert tuple(each["name"] for each in record["findings"]) == findings


@pytest.mark.nightly
def test_torch_functions_take_tensors(tmp_path: Path) -> None:
    """Imports torch in each process, and calls it 65,536 times, forty seconds of a core."""
    pytest.importorskip("torch")
    module = tmp_path / "tensors.py"
    module.write_text("import torch\ndef f(x): return x.to(torch.float8_e5m2)\n")
    options = ("--format", "e5m2", "--from", "float16", "--overflow", "inf")
    code, output = run(f"{module}:f", *options)
    assert "called on torch tensors" in output
    assert code == 0, output


def test_a_part_that_was_stopped_does_not_hide_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def sweep(self: object, first: int, count: int, most: int, stop: Event, more: object) -> None:
        if first:
            raise ManyRunsError
        stop.wait()
        raise SweepStoppedError

    monkeypatch.setattr(CodecProcess, "_sweep", sweep)
    with pytest.raises(ManyRunsError):
        CodecProcess((), 1, 1.0).sweep(2, 2, 9, 2, lambda more: None)


def test_float32_answers_are_taken_as_bfloat16_only_if_it_has_them() -> None:
    e4m3, bfloat16 = format_named("float8e4m3fn"), format_named("bfloat16")

    def divided(by: int) -> object:
        codec = lambda codes: np.float32(codes / np.float32(by))  # noqa: E731
        return asker("numpy-bits", codec, e4m3, bfloat16)(np.arange(9, dtype=np.uint8)).tolist()

    eighths = [int(np.float32(code / 8).view(np.uint32)) >> 16 for code in range(9)]
    assert divided(8) == eighths
    with pytest.raises(WrongTypeError, match="returns numbers of float32 that bfloat16 lacks"):
        divided(3)


def test_a_slow_function_is_sampled_with_the_odds_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.extras.codec.answers.SAMPLE_SECONDS", 0.05)
    monkeypatch.setattr("conformance.extras.codec.ways.NUMERIC_FORMS", ("number",))
    code, output = run(f"{PYTHON}:e4m3fn", "--format", "e4m3fn")
    assert code == 0
    assert "and all 4,294,967,296 inputs would take" in output
    assert "is found with a probability of 99%" in output
    assert re.search(r"^asking [\d,]+ inputs, about [\w.]+ \w+ at [\d,]+ a second$", output, re.M)
    assert output.splitlines()[-1] == "no finding"


# Codecs that cannot be judged


@needs_compiler
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("crashes", "ended its process by SIGSEGV for 0x4200 (3)"),
        ("hangs", "did not return within 1 s for 0x4200 (3)"),
        ("ends", "ended its process with exit code 7 for 0x4200 (3)"),
        ("ends_as_if_done", "ended its process with exit code 0 for 0x4200 (3)"),
        ("changes", "a codec's answer depends on its input alone"),
        ("crashes_on_a_jump", "ended its process by SIGSEGV for 0x4200 (3)"),
        ("missing", f"{UNRULY} has no function `missing`"),
    ],
)
def test_an_unruly_codec_is_named_with_its_input(name: str, says: str) -> None:
    code, output = run(f"c:{UNRULY}:{name}", *ENCODED, "--timeout", "1")
    assert (code, says in output) == (2, True), output


@needs_compiler
def test_a_crash_is_found_in_a_sweep(tmp_path: Path) -> None:
    with pytest.raises(CastigateError, match=r"by SIGSEGV for 0x40400000 \(3\)"):
        judged(f"c:{UNRULY}:crashes", PLANTED[0].case("float32"), tmp_path)


@pytest.mark.ci_runs_one_of(3)
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("text_of", "returns a str where a code of float8e4m3fn is wanted"),
        ("always_zero", "answers 0x00 to every input, however it is called; look at its type"),
        (
            "raises_on_infinity",
            "raised for 0x7c00 (INF) OverflowError: cannot convert float infinity",
        ),
        ("ends_its_process", "raised for 0x4200 (3) SystemExit: 9"),
        ("missing", "cannot be loaded: AttributeError: there is no `missing` in it"),
    ],
)
def test_python_functions_that_are_no_codecs(name: str, says: str) -> None:
    code, output = run(f"{PYTHON}:{name}", *ENCODED)
    assert (code, says in output) == (2, True), output


def test_a_module_that_ends_the_process_is_reported_without_an_input(tmp_path: Path) -> None:
    module = tmp_path / "ends.py"
    module.write_text("import os\nos._exit(7)\n")
    code, output = run(f"{module}:f", *ENCODED)
    assert (code, output.strip().endswith("while it was loaded, with exit code 7")) == (2, True)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("x",), "target `x` is no function; write py:module:function"),
        (("c:absent.h:f",), "there is no file absent.h"),
        (("py:absent_module:f",), "No module named 'absent_module'"),
        ((), "TARGET is missing"),
        (("py:m:f", "--format", "int8"), "--format `int8` is no small float"),
        (("py:m:f", "--format", "float64"), "--format `float64` is no small float"),
        (("py:m:f", "--from", "bool"), "--from `bool` has no codec"),
        (("py:m:f", "--round", "up"), "--round `up` is unknown; use nearest-even"),
        (("py:m:f", "--overflow", "inf"), "float8e4m3fn has no infinity; use saturate or nan"),
        (("py:m:f", "--direction", "decode", "--round", "floor"), "nothing is rounded"),
        (("py:m:f", "--timeout", "0"), "give a number of seconds above 0"),
        (("py:m:f", "--table"), "leave the target out"),
        (("py:m:f", "--signature", "int"), "--signature is for C"),
    ],
)
def test_options_that_cannot_be_used(words: tuple[str, ...], says: str) -> None:
    code, output = run("--format", "e4m3fn", *words)
    assert (code, says in output) == (2, True), output


@pytest.mark.parametrize(
    "text", ["", "uint8_t", "uint8_t(float, int)", "uint8_t(struct s)", "void(float *, int, int)"]
)
def test_signatures_that_are_no_codecs(text: str) -> None:
    with pytest.raises(CastigateError, match="--signature"):
        signature_named(text)


def test_a_float_is_taken_as_bfloat16_but_not_returned_as_one() -> None:
    bfloat16, code = format_named("bfloat16"), format_named("float8e4m3fn")
    check_widths(signature_named("uint8_t(float)"), bfloat16, code)
    with pytest.raises(CastigateError, match="`float` has 32 bits, and bfloat16 has 16"):
        check_widths(signature_named("float(uint8_t)"), code, bfloat16)


def test_signatures_are_read_as_c_writes_them() -> None:
    assert signature_named("uint8_t(const float x)") == Signature("float", "uint8_t")
    array = signature_named("void (const float *in, uint8_t* out, int n)")
    assert array == Signature("float", "uint8_t", "int")
    assert array.pointer == "void (*NAME)(const float *, uint8_t *, int)"


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    code, output = run(f"c:{HEADER}:e4m3fn", *ENCODED)
    assert (code, "CC=no-such-compiler is not there" in output) == (2, True), output


# The table, and the test that the command writes


def test_the_table_lists_every_code() -> None:
    code, output = run("--format", "e2m1", "--table")
    lines = output.splitlines()
    assert (code, len(lines), lines[1], lines[15]) == (
        0,
        16,
        "0x1  0 | 00 | 1  0.5",
        "0xf  1 | 11 | 1  -6",
    )


@pytest.mark.parametrize(
    ("name", "wide", "overflow"),
    [("float8e4m3fn", "float32", None), ("float16", "bfloat16", "inf")],
)
def test_pieces_allow_what_the_definition_allows(
    name: str, wide: str, overflow: str | None
) -> None:
    rules = ruling(codec_case(name, wide, True, None, overflow))
    pieces = allowed_pieces(rules)
    firsts = pieces[:, 0]
    chance = np.random.default_rng(1)
    starts = step_starts(staircase(rules))
    inputs = [*chance.choice(starts, 100), *chance.integers(0, 1 << rules.source.bits, 100)]
    for given in map(int, inputs):
        _, a, b, c, d = map(int, pieces[np.searchsorted(firsts, given, "right") - 1])
        allowed = expect_by_exact.allow(rules, given)
        for answer in {a, b, c, d, *map(int, chance.integers(0, rules.target.mask, 20))}:
            is_allowed = grade_pattern(rules, allowed, answer) != NOT_ALLOWED
            assert is_allowed == (a <= answer <= b or c <= answer <= d), (hex(given), answer)


@pytest.mark.ci_runs_one_of(4)
@needs_compiler
@pytest.mark.parametrize(
    ("target", "options", "passes"),
    [
        (f"c:{HEADER}:e4m3fn", ENCODED, True),
        (f"c:{HEADER}:nan_sign_lost", ENCODED, True),
        (f"c:{HEADER}:ties_away", ENCODED, False),
        (f"c:{HEADER}:from_e5m2", ("--format", "e5m2", "--direction", "decode"), True),
        (f"c:{HEADER}:from_nan_as_480", ("--format", "e4m3fn", "--direction", "decode"), False),
        (f"{PYTHON}:e4m3fn", ENCODED, True),
        (f"{PYTHON}:from_e5m2", ("--format", "e5m2", "--direction", "decode"), True),
        (
            f"{PYTHON}:from_e2m1_without_subnormals",
            ("--format", "e2m1", "--direction", "decode"),
            False,
        ),
    ],
)
def test_a_kept_test_asks_again_without_castigate(
    target: str, options: tuple[str, ...], passes: bool, tmp_path: Path
) -> None:
    kept = tmp_path / "test_kept.py"
    run(target, *options, "--keep", kept)
    text = kept.read_text()
    assert len(text.splitlines()) <= 30
    assert "import castigate" not in text
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(kept)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == (0 if passes else 1), done.stdout
    told = re.search(r"0x\w+ gives 0x\w+, allowed are 0x\w+ to 0x\w+ and 0x", done.stdout)
    assert (told is None) == passes


def test_a_test_is_kept_where_pytest_finds_it() -> None:
    code, output = run(f"{PYTHON}:e4m3fn", *ENCODED, "--keep", "codec.py")
    assert (code, "pytest looks for files named test_" in output) == (2, True)
