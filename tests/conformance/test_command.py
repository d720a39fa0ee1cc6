"""The command ``castigate``: what it prints and its exit codes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conformance.commands.main import COMMANDS
from conformance.families.cast.quick_inputs import inputs_of
from specs import VERSION
from specs.formats import format_named
from specs.loader import documents
from specs.model.page_lines import cite_lines
from specs.ruling import ruling
from specs.selection import case_named, select
from tests.conformance.processes import castigate

DATA = Path(__file__).with_name("data")
HALF = "onnx-cast:25/float16/float32"
TO_E5M2 = "onnx-cast:25/float16/float8e5m2/saturate:0"


def explain_as_json(*arguments: str) -> Any:
    code, out, _ = castigate("explain", "--json", *arguments)
    assert code == 0
    [line] = out.splitlines()
    return json.loads(line)


def test_specs_lists_documents_versions_and_cases() -> None:
    code, out, _ = castigate("specs")
    assert code == 0
    for (name, document), line in zip(documents().items(), out.splitlines(), strict=True):
        assert line.split()[:3] == [name, str(len(select([name]))), "cases"]
        assert f"versions {', '.join(document.entry.versions)} " in line


def test_specs_of_a_document_has_every_rule_with_level_and_clause() -> None:
    code, out, _ = castigate("specs", "pypto-cast")
    document = documents()["pypto-cast"]
    assert code == 0
    assert document.digest in out.splitlines()[0]
    for name, rule in document.entry.rules.items():
        lines = f" ({cite_lines(rule.lines)})" if rule.lines else ""
        clause = re.escape(f"{rule.clause}{lines}")
        assert re.search(rf"^  {name} +{rule.level} +{clause}$", out, re.M), name


def test_specs_of_a_version_has_every_case_with_its_rules() -> None:
    code, out, _ = castigate("specs", "onnx-cast:25")
    assert code == 0
    listed = dict(line.split("  ")[1:] for line in out.splitlines() if line.startswith("  onnx-"))
    assert set(listed) == {case.id for case in select(["onnx-cast:25"])}
    assert listed["onnx-cast:25/float32/complex64"] == "not-listed"


def test_explain_shows_the_fields_of_the_input_and_every_answer() -> None:
    code, out, err = castigate("explain", HALF, "0xc200", "0x7c01", "--backend", "reference")
    assert (code, err) == (0, "")
    rows = [" ".join(line.split()) for line in out.splitlines()]
    assert rows[:6] == [
        f"{HALF} of -3: -3 is required",
        "rule kept-value, required",
        f"clause {ruling(case_named(HALF)).branches[-1].clause}",
        "input 0xc200 1 | 10000 | 1000000000 -3",
        "allowed 0xc0400000 1 | 10000000 | 10000000000000000000000 -3",
        "reference 0xc0400000 1 | 10000000 | 10000000000000000000000 -3",
    ]
    assert rows[7] == "rule kept-value, recommended"
    assert rows[9] == "input 0x7c01 0 | 11111 | 0000000001 +NaN, payload 0x1"
    assert rows[10] == "allowed any-nan"


def test_explain_takes_a_quantization_in_words() -> None:
    words = "quantize 0.25 by 0.1 as float16 to int8 zero 3"
    code, out, err = castigate("explain", *words.split())
    assert (code, err) == (0, "")
    first, *_, last = out.splitlines()
    # By hand: 0.25 divided by the scale is 2.5006 or, in float16, the tie 2.5; then 3 is added.
    assert first.startswith("quantize float16 to int8 of 0.25 by 0.0999755859375 zero 3: 5 is ")
    assert "(6 is allowed) by onnx-quantize-linear:25" in " ".join(out.split())
    assert last.startswith("the steps: castigate explain onnx-quantize-linear:25/")
    code, steps, err = castigate(*last.partition("castigate ")[2].split())
    assert (code, err) == (0, "")
    assert [line.split()[-1] for line in steps.splitlines()[-5:]] == [
        "0.25", "0.0999755859375", "3", "5", "6",
    ]  # fmt: skip


def test_explain_takes_a_scale_as_a_hexadecimal_float() -> None:
    case = ("onnx-quantize-linear", "float32", "int8", "0x1.8p0", "--backend=reference")
    assert explain_as_json(*case, "--scale", "0x1p-3") == explain_as_json(*case, "--scale", "0.125")


def test_explain_takes_a_scale_once() -> None:
    words = "quantize 1 by 2 as half --scale 3"
    code, _, err = castigate("explain", *words.split())
    assert code == 2
    assert "takes the scale and the zero point as words" in err


def test_explain_as_json_has_the_fields_of_judge() -> None:
    assert explain_as_json(HALF, "0xC200", "--backend=reference") == {
        "case": HALF,
        "input": "0xc200",
        "rule": "kept-value",
        "level": "required",
        "clause": "summary, first sentence",
        "allowed": ["0xc0400000"],
        "answers": {"reference": "0xc0400000"},
    }


def test_explain_answers_first_and_then_says_who_obeys_which_documents() -> None:
    hostile = DATA / "hostile.py"
    backends = ("reference", f"{hostile}:LosesMinusZero", f"{hostile}:Declines")
    named = [f"--backend={name}" for name in backends]
    code, out, err = castigate("explain", "fp16", "torch.bfloat16", "-0.0", "65504", *named)
    assert (code, err) == (0, "")
    minus_zero, largest = " ".join(out.split()).split("float16 to bfloat16 of ")[1:]
    assert minus_zero.startswith(f"-0: -0 from reference; 0 from {backends[1]} ")
    assert largest.startswith(f"65504: 65536 from reference, {backends[1]} ")
    allowed = "required, 0x0000 (0) or 0x8000 (-0); recommended 0x8000 (-0): onnx-cast:25"
    said = minus_zero.partition(allowed)[2].partition(" required, ")[0]
    assert "; obeyed by reference; not as recommended by" in said
    assert "Declines" not in out.partition("the rule")[0]
    assert out.splitlines()[-1].startswith("the rule and its clause: castigate explain ")


def test_explain_asks_a_chain_of_every_document_in_a_line_each() -> None:
    asked = ("fp32", "to", "bf16", "int8", "106.75", "--backend", "reference")
    code, out, err = castigate("explain", *asked)
    *lines, last = out.splitlines()
    assert (code, err) == (0, "")
    asked_of, _, said = " ".join(" ".join(lines[:2]).split()).partition(": ")
    assert asked_of == "float32 to bfloat16 to int8 of 106.75"
    assert said == "107 is required by llvm-casts:22 range:poison; without bfloat16 106"
    undecided, decided = (" ".join(part).split() for part in (lines[2:4], lines[4:7]))
    assert " ".join(undecided).startswith(
        "required, 0x6b (107), without bfloat16 anything: cuda-convert:13.5 "
    )
    assert decided[:3] == ["required,", "0x6b", "(107),"]
    assert " ".join(decided[3:7]) == "without bfloat16 0x6a (106):"
    assert "onnx-cast:25," in decided
    assert " ".join(decided).endswith("; 0x6b (107) from reference")
    assert last == (
        "the steps: castigate explain llvm-casts:22/float32/bfloat16/int8/range:poison 106.75"
        " --backend=reference"
    )


def test_json_has_the_recorded_answers() -> None:
    """They say that they are recorded: they have a key of their own, with version and date."""
    code, out, _ = castigate("explain", "fp32", "int8", "300", "--json")
    first, *_ = map(json.loads, out.splitlines())
    assert code == 0
    assert first["recorded"]["jax"].keys() == {"answer", "version", "date"}
    assert first["recorded"]["jax"]["answer"] == "0x7f"
    assert "recorded" not in castigate("explain", "fp32", "int8", "300", "--json",
                                       "--backend=reference")[1]  # fmt: skip


def test_explain_as_json_has_a_line_for_each_document_of_a_chain() -> None:
    code, out, _ = castigate("explain", "--json", "fp32", "bf16", "int8", "106.75", "1")
    found = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    chains = [each["chain"] for each in found]
    assert len(chains) == 2 * len({*chains}) > 2
    assert {each["input"] for each in found} == {"0x42d58000", "0x3f800000"}


def test_explain_lists_documents_of_complex_dtypes_beside_one_that_refuses_them() -> None:
    code, out, err = castigate("explain", "float32", "complex64", "1")
    assert (code, err) == (0, "")
    assert out.splitlines()[:4] == [
        "float32 to complex64 of 1: an error is required by onnx-cast:25",
        "  required, an error: onnx-cast:25",
        "  open, any value: numpy-astype:2.4 casting:unsafe",
        "  left open by array-api-astype, array-api-astype-calls, paddle-layer-astype,"
        " paddle-tensor-to",
    ]
    assert "note: array-api-astype, to-complex: " in out


@pytest.mark.parametrize(
    ("asked", "allowed", "value"),
    [
        (("bool", "complex64", "true"), "0x000000003f800000 (1 + 0j)", ""),
        (("bool", "complex64", "false"), "0x0000000000000000 (0 + 0j)", ""),
        (("complex64", "bool", "0x3f80000000000000"), "0x1 (1)", "true"),
    ],
)
def test_explain_answers_by_the_example_of_a_page_what_its_rules_leave_open(
    asked: tuple[str, ...], allowed: str, value: str
) -> None:
    code, out, err = castigate("explain", *asked)
    heading, line, *_, last = out.splitlines()
    assert (code, err) == (0, "")
    assert heading.endswith(f"{value or allowed} is required by array-api-astype:2025.12")
    assert line == f"  required, {allowed}: array-api-astype:2025.12"
    assert "castigate explain array-api-astype:2025.12/" in last
    found = explain_as_json("array-api-astype", *asked)
    assert (found["level"], found["case"].split("/")[-1][:8]) == ("required", "example:")


def test_explain_says_that_an_error_breaks_a_rule_where_any_value_is_allowed() -> None:
    backend = f"{DATA / 'hostile.py'}:Raises"
    found = explain_as_json("numpy", "float32", "complex64", "1", "--backend", backend)
    assert found["allowed"] == "anything"
    assert found["answer_due"]["rule"] == "any-conversion"
    assert found["answer_due"]["level"] == "required"
    assert "answer_due" not in explain_as_json("array-api-astype", "float32", "complex64", "1")
    assert "answer_due" not in explain_as_json("numpy", "float32", "int32", "nan")
    _, out, _ = castigate("explain", "float32", "complex64", "1", "--backend", backend)
    said = " ".join(out.split())
    assert f"open, any value: numpy-astype:2.4 casting:unsafe; not by {backend}: an error" in said


def test_explain_says_where_a_text_contradicts_another_and_which_reading_was_taken() -> None:
    code, out, err = castigate("explain", "onnx-cast:25/float32/float8e4m3fnuz/saturate:1", "inf")
    assert (code, err) == (0, "")
    conflicts = [line for line in out.splitlines() if line.startswith("conflict: taken: ")]
    assert len(conflicts) == 3
    assert conflicts[0].startswith("conflict: taken: each version follows its own table; with ")
    assert max(map(len, out.splitlines())) <= 100


def test_explain_says_why_a_backend_gave_no_answer_but_not_to_foreign_calls() -> None:
    raises = f"{DATA / 'hostile.py'}:Raises"
    code, out, err = castigate("explain", "float32", "float16", "1", "--backend", raises)
    assert (code, err) == (0, "")
    said = " ".join(out.split())
    # The backend claims no document of calls, so `explain` does not repeat its error for those.
    assert f" of 1: 1 is required by onnx-cast:25; an error from {raises}" in said
    of_casts, of_calls = said.partition(f"; not by {raises}: an error ")[::2]
    assert "onnx-cast:25" in of_casts
    assert of_calls.startswith("required, 0x3c00 (1): torch-tensor-to:2.13, ")
    assert "torch-sharded-tensor-to:2023; no backend offers it " in of_calls
    assert f"  error of {raises}: ValueError: boom" in out.splitlines()
    case = "onnx-cast:25/float32/float16"
    assert said.endswith(f"castigate explain {case} 1 --backend={raises}")


def test_explain_shows_a_backends_error() -> None:
    hostile = DATA / "hostile.py"
    for name, answer in {
        "Raises": {"error": "ValueError: boom"},
        "Declines": {"unsupported": "no such kernel"},
        "Silent": {"error": "the answer is NoneType, not a numpy array"},
    }.items():
        backend = f"{hostile}:{name}"
        assert explain_as_json(HALF, "0x3c00", "--backend", backend)["answers"] == {backend: answer}


@pytest.mark.parametrize("given", ["3.14", "-1.5", "", "0x10", "é ∞", "error"])
def test_explain_accepts_texts(given: str) -> None:
    found = explain_as_json("--backend=reference", "onnx-cast:25/string/string", "--", given)
    assert found["input"] == {"text": given}
    assert found["allowed"] == [{"text": given}]
    assert found["answers"] == {"reference": {"text": given}}


def test_explain_takes_what_begins_with_one_hyphen_for_an_input() -> None:
    inputs = ["--json", "-inf", "-5", "-.5e-1"]
    code, out, err = castigate("explain", "onnx-cast:25/float32/float16", *inputs)
    assert (code, err) == (0, "")
    patterns = ["0xff800000", "0xc0a00000", "0xbd4ccccd"]
    assert [json.loads(line)["input"] for line in out.splitlines()] == patterns


FLOAT32 = "onnx-cast:25/float32/float16"
SPELLED = [
    (FLOAT32, "65520", "0x477ff000"),
    (FLOAT32, "6.552e4", "0x477ff000"),
    (FLOAT32, "0.1", "0x3dcccccd"),
    (FLOAT32, "nan", "0x7fc00000"),
    (FLOAT32, "-inf", "0xff800000"),
    (FLOAT32, "-0", "0x80000000"),
    (FLOAT32, "0x1p-24", "0x33800000"),
    (FLOAT32, "-0x1.8p3", "0xc1400000"),
    ("onnx-cast:25/int8/float16", "-5", "0xfb"),
    ("onnx-cast:25/bool/float16", "true", "0x1"),
    ("onnx-cast:25/bool/float16", "0x01", "0x1"),
    ("onnx-cast:25/bool/float16", "1", "0x1"),
]


@pytest.mark.parametrize(("case", "spelled", "pattern"), SPELLED)
def test_explain_accepts_every_spelling(case: str, spelled: str, pattern: str) -> None:
    found = explain_as_json("--backend=reference", case, "--", spelled)
    assert found == explain_as_json("--backend=reference", case, pattern)
    assert found["input"] == pattern


BAD_USAGE = [
    (["explain", FLOAT32, "16777217"], "write 0x4b800000 (16777216) or 0x4b800001 (1677"),
    (["explain", HALF, "65520"], "`65520` is outside the range of float16, -65504 to 65504"),
    (["explain", "onnx-cast:25/int8/float16", "300"], "outside the range of int8, -128 to 127"),
    (["explain", HALF, "3c00"], "`3c00` is not a value of float16; write a number such as"),
    (["explain", HALF, "0x3c0g"], "or nan, or 0x and 4 hex digits"),
    (["explain", HALF, "0x"], "`0x` is not a value of float16"),
    (["explain", HALF, "0x3_c0"], "`0x3_c0` is not a value"),
    (["explain", HALF, "0x3c00 "], "is not a value"),
    (["explain", HALF, "0x3c0"], "has 3 digits, a pattern of float16 has 4"),
    (["explain", HALF, "0x03c00"], "has 5 digits"),
    (["explain", "onnx-cast:25/int2/int8", "0x7"], "wider than the 2 bits of int2"),
    (["explain", "onnx-cast:25/float16/flaot32", "0x3c00"], f"did you mean `{HALF}`?"),
    (["explain", HALF, "0x3c00", "--backend=rot"], "unknown backend `rot`; did you mean `ort`?"),
    (["explain", "onnx-cast:25/int32/bool/example:integer-36-to-bool", "0x00000001"],
        "the example works out only 0x00000024"),
    (["inputs", "nonsense"], "unknown case `nonsense`; castigate specs DOCUMENT:VERSION lists"),
    (["inputs", HALF, "nonsense"], "unknown case `nonsense`"),
    (["specs", "onyx-cast"], "`onyx-cast`; did you mean `onnx-cast`, "),
    (["specs", "onnx-cast:"], "unknown document `onnx-cast:`; did you mean `onnx-cast`, "),
    (["specs", "--coverage", "onnx-cast:"], "unknown document `onnx-cast:`; did you mean `onnx-"),
    (
        ["run", "--backend=reference", "--document=onnx-cast:", "--out=/no/where"],
        "unknown document `onnx-cast:`; did you mean `onnx-cast`, ",
    ),
    (
        ["run", "--backend=ort:", "--document=onnx-cast:25", "--out=/no/where"],
        "unknown backend `ort:`; did you mean `ort`?",
    ),
    (["inputs", "onnx-cast:/int4/int2"], "did you mean `onnx-cast:25/int4/int2`?"),
    (["inputs", "onnx-cast:25//int2"], "unknown case `onnx-cast:25//int2`"),
    (["specs", "onnx-cast:26"], "onnx-cast has no version `26`; it has 1, 6,"),
    (["specs", "onnx-cast", "a.yaml"], "only `castigate specs lint` and"),
    (["specs", "lint", "/no/such.yaml"], "/no/such.yaml: there is no such file"),
]  # fmt: skip


@pytest.mark.parametrize("form", ["--json", "--backend=reference"])
@pytest.mark.parametrize("question", [HALF, "fp16 fp32"])
def test_explain_answers_the_inputs_beside_one_that_the_source_lacks(
    question: str, form: str
) -> None:
    code, out, err = castigate("explain", *question.split(), "0x3c00", "0x3c", "70000", form)
    alone = castigate("explain", *question.split(), "0x3c00", form)
    assert (code, out, err.count("\n")) == (2, alone[1], 1)
    assert "has 2 digits" in err
    assert "`70000` is outside the range of float16" in err


@pytest.mark.parametrize(("arguments", "message"), BAD_USAGE)
def test_bad_usage_is_one_line_on_stderr(arguments: list[str], message: str) -> None:
    code, out, err = castigate(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("castigate: ")
    assert message in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["frobnicate"], "No such command 'frobnicate'; see castigate --help"),
        (["explain"], "see castigate explain --help"),
        (["judge", "--frob"], "No such option: --frob; see"),
        (["run", "--jobs", "0"], "Invalid value for '--jobs': "),
        (["report", "RUN"], "Missing option '--out'; write castigate report RUN --out"),
    ],
)
def test_an_unknown_command_or_option_is_one_line(arguments: list[str], message: str) -> None:
    code, out, err = castigate(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err


def test_no_arguments_show_the_help() -> None:
    code, out, err = castigate()
    assert code == 2
    assert "Usage: castigate" in out + err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("arguments", [["specs"], ["inputs", HALF]])
def test_a_full_disk_is_one_line(arguments: list[str]) -> None:
    code = "from conformance.commands.main import main; main()"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "cannot write the output" in done.stderr


def test_a_name_that_is_too_long_is_named_in_one_short_line() -> None:
    code, out, err = castigate("verify", "x" * 100_000)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("castigate: cannot use xxx")
    assert "too long" in err
    assert len(err) < 200


def test_help_and_version() -> None:
    assert castigate("--version") == (0, f"castigate {VERSION}\n", "")
    shown = castigate("--help")[1]
    headings = re.findall(r"^([A-Z][a-z]+):$", shown, re.M)
    assert headings == ["Options", "Ask", "Judge", "Releases", "Read", "Extend"]
    commands = re.findall(r"^  ([a-z]+) +[A-Z]", shown.partition("\nAsk:")[2], re.M)
    assert sorted(commands) == sorted(COMMANDS)
    assert "…" not in shown
    for command in commands:
        code, out, _ = castigate(command, "--help")
        assert (code, f"Usage: castigate {command} " in out) == (0, True)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("list", "No such command 'list'; did you mean castigate specs?"),
        ("expain fp32 int8 1", "did you mean castigate explain?"),
        ("version", "did you mean castigate --version?"),
        ("fp32 int8 300", "`fp32` is a dtype; write castigate explain fp32 int8 300"),
        ("run --backend onnxruntime", "did you mean `ort`?"),
        ("run --backend pytorch:compile", "did you mean `torch:compile`?"),
        ("run --backend examples/vendor_python/adapter.py", "adapter.py:NumpyCast"),
        ("run --backend missing.py", "there is no such file; give path/to/file.py:CLASS"),
        ("run --backend examples/vendor_c/vendor.c", "write exec:examples/vendor_c/vendor.c"),
        (r"run --backend C:\stack.py:Own", r"backend file C:\stack.py does not exist"),
        ("run --backend ort --document onnx-cst", "did you mean `onnx-cast`, "),
        ("run ort", "(ort); did you mean --backend ort? see castigate run --help"),
        (
            "run --backend ort --tier slow",
            "'slow' is not one of 'quick', 'full'; see castigate run",
        ),
        (
            "explain fp32 int8 1 --backends ort",
            "No such option: --backends; did you mean `--backend`",
        ),
        ("run --backend examples/vendor_python/adapter.py:NumpyCats", "did you mean `NumpyCast`?"),
    ],
)
def test_a_wrong_word_is_answered_by_the_right_one(words: str, says: str) -> None:
    code, out, err = castigate(*words.split())
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert says in err


@pytest.mark.parametrize("case", [TO_E5M2, "onnx-cast:25/int2/int8", "onnx-cast:25/float32/bool"])
def test_inputs_are_those_of_the_suite(case: str) -> None:
    code, out, _ = castigate("inputs", case)
    chosen = case_named(case)
    rules = ruling(chosen)
    expected = [rules.source.hexadecimal(one) for one in inputs_of(chosen, rules, 0, 1000).tolist()]
    assert (code, out.splitlines()) == (0, expected)


def test_inputs_of_texts_and_of_rejected_pairs() -> None:
    _, out, _ = castigate("inputs", "onnx-cast:25/string/int8", "--max-examples=0", "--seed=3")
    texts = [json.loads(line)["text"] for line in out.splitlines()]
    assert {"", "-8", "100.5", "Hello World!"} <= set(texts)
    assert castigate("inputs", "onnx-cast:25/complex64/int8")[1] == f"0x{0:016x}\n" * 2
    assert castigate("inputs", "onnx-cast:25/float32/int8", "--seed=-1")[0] == 2


def test_inputs_are_full_patterns_in_ascending_order() -> None:
    for case in ("onnx-cast:25/float64/float4e2m1", "onnx-cast:25/uint64/float16"):
        form = format_named(case_named(case).source)
        lines = castigate("inputs", case, "--max-examples=5")[1].splitlines()
        assert len(lines) > 200
        assert all(re.fullmatch(rf"0x[0-9a-f]{{{form.bits // 4}}}", line) for line in lines)
        assert lines == sorted(set(lines))


BITCAST = "xla-bitcast-convert:2023/float32/int8/shape:2x4"
WIDER = "xla-bitcast-convert:2023/int8/float32/shape:scalar"


def test_explain_shows_a_bitcasts_shape_and_bits() -> None:
    given = [f"0x{place:08x}" for place in range(8)]
    found = explain_as_json(BITCAST, *given, "--backend=reference")
    bits = [part for place in range(8) for part in (f"0x{place:02x}", "0x00", "0x00", "0x00")]
    assert found["input"] == {"shape": [2, 4], "bits": given}
    assert found["allowed"] == found["answers"]["reference"] == {"shape": [2, 4, 4], "bits": bits}


def test_explain_accepts_every_spelling_of_a_bitcasts_elements() -> None:
    spelled = ["1", "-0", "inf", "-inf", "nan", "0.1", "0x00000001", "1e-45"]
    patterns = ["0x3f800000", "0x80000000", "0x7f800000", "0xff800000", "0x7fc00000", "0x3dcccccd"]
    patterns += ["0x00000001"] * 2
    found = explain_as_json("--backend=reference", BITCAST, "--", *spelled)
    assert found == explain_as_json("--backend=reference", BITCAST, *patterns)
    code, out, _ = castigate("explain", BITCAST, "--", *spelled)
    assert (code, out.splitlines()[3].split()[:4]) == (0, ["input", "shape", "2x4", "0x3f800000"])


def test_explain_shows_that_a_bitcast_is_rejected() -> None:
    code, out, err = castigate("explain", WIDER, "--backend=reference")
    assert (code, err) == (0, "")
    allowed, answer = out.splitlines()[-2:]
    assert allowed.split()[:2] == ["allowed", "error"]
    assert answer.split()[:2] == ["reference", "error:"]


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        ((BITCAST, "0x00000000"), "takes 8 elements as its input, not 1"),
        ((BITCAST, *"0000000", "16777217"), "`input[7]` `16777217` is not a value of float32"),
        ((HALF,), "needs inputs of float16"),
        ((HALF, "-inf", "--jsn"), "No such option: --jsn"),
        ((HALF, "-i5"), "`input` `-i5` is not a value of float16"),
    ],
)
def test_wrong_inputs_of_explain_are_one_line(arguments: tuple[str, ...], wrong: str) -> None:
    code, out, err = castigate("explain", *arguments)
    assert (code, out) == (2, "")
    assert wrong in err
    assert err.count("\n") == 1


def test_a_bitcast_has_no_inputs_to_list() -> None:
    code, out, err = castigate("inputs", BITCAST)
    assert (code, out) == (2, "")
    assert "are tensors; add --json" in err


def test_a_shell_completes_commands_and_their_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_CASTIGATE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_CWORD", "1")
    monkeypatch.setenv("COMP_WORDS", "castigate ga")
    assert castigate()[1].split() == ["gate"]
    monkeypatch.setenv("COMP_CWORD", "2")
    monkeypatch.setenv("COMP_WORDS", "castigate gate --ba")
    assert castigate()[1].split() == ["--backend", "--baseline"]
