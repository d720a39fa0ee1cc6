"""``castigate judge`` reports each bad line and judges all others."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.families.value_spelling import json_text
from conformance.recorded_lines import LineTally, judge_stream
from tests.conformance.processes import castigate
from tests.conformance.test_judge import judged

CASE = "onnx-cast:25/float32/float16"
GOOD = {"case": CASE, "input": "0x3f800000", "output": "0x3c00"}
GOOD_LINE = json.dumps(GOOD).encode()


def judge(given: bytes, *arguments: str) -> tuple[int, list[dict[str, Any]], str]:
    """Run the command; return exit code, output lines and stderr."""
    code, out, message = castigate("judge", *arguments, stdin=given)
    return code, [json.loads(line) for line in out.splitlines()], message


def line_with(**changes: Any) -> bytes:
    return json.dumps(GOOD | changes).encode()


def line_without(key: str) -> bytes:
    return json.dumps({name: value for name, value in GOOD.items() if name != key}).encode()


LONG = b"x" * (5 << 20)
BAD: dict[str, tuple[bytes, str]] = {
    "not JSON": (b"not json", "not JSON"),
    "cut off": (GOOD_LINE[:-9], "not JSON"),
    "a list": (b"[1, 2]", "a line is an object"),
    "a number": (b"17", "a line is an object"),
    "null": (b"null", "a line is an object"),
    "no case": (line_without("case"), "`case` is missing"),
    "no input": (line_without("input"), "`input` is missing"),
    "no output": (line_without("output"), "`output` is missing"),
    "an unknown key": (line_with(ouput="0x00"), "unknown key `ouput`"),
    "an unknown key that is no text": (b'{"\\ud800": 1}', "half an escape, such as `\\ud800`"),
    "too few digits": (line_with(input="0x3f8"), "has 3 digits, a pattern of float32 has 8"),
    "too many digits": (line_with(output="0x03c00"), "a pattern of float16 has 4"),
    "no 0x": (line_with(input="3f800000"), "`input` `3f800000` is not a value of float32; write a"),
    "not hex": (line_with(input="0x3f80000g"), "`0x3f80000g` is not a value of float32"),
    "a sign": (line_with(input="-0x3f800000"), "`-0x3f800000` is not a value of float32"),
    "a digit that is not ASCII": (line_with(output="0x3c0\uff10"), "is not a value of float16"),
    "a newline inside": (line_with(output="0x3c00\n"), "is not a value of float16"),
    "a decimal beyond the range": (line_with(output=65520), "outside the range of float16, -65504"),
    "a decimal between values": (line_with(output=2049), "0x6800 (2048) or 0x6801 (2050)"),
    "a number of 300,000 digits": (
        b'{"case": "%s", "input": 0.%s, "output": 0}' % (CASE.encode(), b"1" * 300_000),
        "a number has 1200 at most",
    ),
    "a bool for a float": (line_with(input=True), "`input` `true` is not a value of float32"),
    "a list for a cast": (line_with(input=["0x3f800000"]), "a cast takes one value of float32"),
    "a tensor for a cast": (line_with(output={"shape": [], "bits": [1]}), "a list or tensor; a"),
    "a list of other things": (line_with(input=[None]), "`input` is [null]; write \"0x3f\""),
    "wider than the format": (
        line_with(case="onnx-cast:25/int2/int8", input="0x4", output="0x00"),
        "wider than the 2 bits of int2",
    ),
    "a misspelt case": (line_with(case="onnx-cast:25/float32/flaot16"), f"did you mean `{CASE}`"),
    "an unknown version": (line_with(case="onnx-cast:26/float32/float16"), "did you mean `onnx-"),
    "nothing like a case": (line_with(case="qqqqqqqq"), "unknown case `qqqqqqqq`"),
    "an endless case": (line_with(case="q" * 500_000), "unknown case"),
    "a number for a case": (line_with(case=25), "`case` is not a text"),
    "null for an output": (line_with(output=None), "`output` is null"),
    "a text for a number": (line_with(input={"text": "1"}), "`input` of float32 is a number or"),
    "a hex for a text": (line_with(case="onnx-cast:25/string/float16"), 'written {"text": "…"}'),
    "an error for an input": (line_with(input={"error": "no"}), "`input` is {"),
    "an input the example lacks": (
        line_with(
            case="onnx-cast:25/int32/bool/example:integer-36-to-bool",
            input="0x00000001",
            output="0x1",
        ),
        "works out only 0x00000024",
    ),
    "a key twice": (GOOD_LINE[:-1] + b', "output": "0x0"}', "has the key `output` twice"),
    "a key twice, once as an escape": (
        GOOD_LINE[:-1] + b', "\\u0063ase": ""}', "has the key `case` twice"
    ),
    "a key twice inside": (
        b'{"case": "onnx-cast:25/string/int8", "input": {"text": "1", "text": "2"}, "output": 2}',
        "has the key `text` twice",
    ),
    "NaN": (GOOD_LINE[:-1] + b', "output": NaN}', "not JSON: `NaN` is no value of JSON"),
    "infinity": (
        b'{"case": "%s", "input": Infinity, "output": "inf"}' % CASE.encode(), 'write "inf" in'
    ),
    "minus infinity in a list": (line_with(input=[float("-inf")]), 'write "-inf" in quotes'),
    "a huge number": (b'{"case": ' + b"1" * 5000 + b"}", "not JSON"),
    "deep nesting": (b"[" * 100_000 + b"]" * 100_000, "recursion limit exceeded at column"),
    "NUL bytes": (b"\0\0\0", "not JSON"),
    "NUL in a text": (b'{"case": "\0"}', "not JSON"),
    "invalid UTF-8": (b"\xff\xfe\xfd", "not JSON"),
    "invalid UTF-8 in a text": (
        b'{"case": "onnx-cast:25/string/string", "input": {"text": "\xff"},'
        b' "output": {"text": "\xff"}}',
        "not JSON: ",
    ),
    "half a surrogate pair": (
        b'{"case": "onnx-cast:25/string/string", "input": {"text": "\\ud800"},'
        b' "output": {"text": "\\ud800"}}',
        "half an escape, such as `\\ud800`",
    ),
    "a byte order mark": (b"\xef\xbb\xbf" + GOOD_LINE, "not JSON"),
    "5 MB": (LONG, "longer than"),
}  # fmt: skip


@pytest.fixture(scope="module")
def mixed() -> tuple[int, list[dict[str, Any]], str]:
    """Judge each bad line after a good one, with a blank line after each pair."""
    return judge(b"".join(GOOD_LINE + b"\n" + bad + b"\n\n" for bad, _ in BAD.values()))


def test_the_lines_around_bad_ones_are_judged_in_order(mixed: Any) -> None:
    code, results, message = mixed
    assert code == 2
    assert len(results) == 2 * len(BAD)
    assert [line.get("verdict") for line in results] == ["conforms", None] * len(BAD)
    assert message == f"{2 * len(BAD)} lines: {len(BAD)} conforms; {len(BAD)} malformed\n"


@pytest.mark.parametrize("name", BAD)
def test_a_bad_line_says_what_is_wrong_and_where(mixed: Any, name: str) -> None:
    place = list(BAD).index(name)
    result = mixed[1][2 * place + 1]
    assert set(result) == {"error", "line"}
    assert result["line"] == 3 * place + 2
    assert result["error"].startswith(f"line {3 * place + 2}: ")
    assert BAD[name][1] in result["error"]
    assert "\n" not in result["error"]
    assert len(result["error"]) < 500


def test_an_endless_line_at_the_end_is_cut_off() -> None:
    code, results, _ = judge(GOOD_LINE + b"\n" + LONG)
    assert (code, len(results)) == (2, 2)
    assert "line 2: longer than" in results[1]["error"]


def test_nesting_of_any_depth_is_one_bad_line() -> None:
    depths = (3, 100, 190, 199, 200, 250, 900, 980, 990, 995, 2000)
    line = f'{{"case": "{CASE}", "output": "0x3c00", "input": %s}}\n'
    code, results, _ = judge("".join(line % ("[" * n + "]" * n) for n in depths).encode())
    assert (code, len(results)) == (2, len(depths))
    assert [result["line"] for result in results if "error" in result] == [*range(1, 12)]


@pytest.mark.parametrize("given", [b"", b"\n \n\t\n"])
def test_an_empty_stream_is_one_line_of_error(given: bytes) -> None:
    code, results, message = judge(given)
    assert (code, results) == (2, [])
    assert message == "castigate: stdin is empty; give one JSON line per answer\n"


def test_a_missing_file_is_one_line_of_error(tmp_path: Path) -> None:
    for path in (tmp_path / "missing", tmp_path):
        code, results, message = judge(b"", str(path))
        assert (code, results, message.count("\n")) == (2, [], 1)
        assert message.startswith(f"castigate: {path} cannot be read: ")


def test_a_file_a_dash_and_nothing_are_the_same(tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    file.write_bytes(GOOD_LINE)
    expected = judge(GOOD_LINE)
    assert expected[0] == 0
    assert judge(b"", str(file)) == judge(GOOD_LINE, "-") == expected


def test_with_json_nothing_is_said_on_stderr() -> None:
    assert judge(GOOD_LINE, "--json") == (*judge(GOOD_LINE)[:2], "")


def test_a_wrong_answer_is_exit_code_1_and_all_fields_are_there() -> None:
    wrong = {"case": "onnx-cast:25/int32/int8", "input": "0x00000101", "output": "0x7f"}
    code, results, message = judge(GOOD_LINE + b"\r\n" + json.dumps(wrong).encode())
    assert (code, message) == (1, "2 lines: 1 conforms, 1 violates\n")
    assert results == [
        GOOD
        | {
            "verdict": "conforms",
            "rule": "float-to-float",
            "level": "required",
            "clause": "summary, first sentence",
            "allowed": ["0x3c00"],
        },
        wrong
        | {
            "verdict": "violates",
            "rule": "integer-to-integer",
            "level": "required",
            "clause": "details, from fixed point, to fixed point",
            "allowed": ["0x01"],
        },
    ]


ALLOWED: list[tuple[str, str, Any, Any]] = [
    ("onnx-cast:25/float32/float16", "0x7fc00000", "0x7e00", "any-nan"),
    ("onnx-cast:25/float32/float8e4m3fn/saturate:0", "0x7fc00000", "0x7f", "any-nan"),
    ("onnx-cast:25/float32/float8e4m3fn/saturate:0", "0xffc00000", "0xff", "-nan"),
    ("onnx-cast:25/float32/int8", "0x7fc00000", "0x00", "anything"),
    ("onnx-cast:25/float32/complex64", "0x00000000", {"error": ""}, "error"),
    ("onnx-cast:25/float16/int4", "0x4300", "0x3", ["0x4", "0x3"]),
]


@pytest.mark.parametrize(("case", "given", "output", "allowed"), ALLOWED)
def test_allowed_is_a_word_or_a_list(case: str, given: str, output: Any, allowed: Any) -> None:
    [result], tally = judged([{"case": case, "input": given, "output": output}])
    assert (tally.exit_code, result["allowed"]) == (0, allowed)


SPELLED: list[tuple[str, str, str, str | None, str | None]] = [
    ("float32/float16", "65520", '"inf"', "0x477ff000", "0x7c00"),
    ("float32/float16", '"65520"', '"0x7c00"', "0x477ff000", None),
    ("float32/float16", "-0", "-0.0", "0x80000000", "0x8000"),
    ("float32/float16", "1e-3", "1.000E-3", "0x3a83126f", "0x1419"),
    ("float32/float16", "0.1", "0.09998", "0x3dcccccd", "0x2e66"),
    ("float64/float32", "16777217", "16777216", "0x4170000010000000", "0x4b800000"),
    ("float32/float16", '"-nan"', '"nan"', "0xffc00000", "0x7e00"),
    ("float32/float16", '"0x1.8p-126"', '"0x0p0"', "0x00c00000", "0x0000"),
    ("float32/bool", "0.1", "true", "0x3dcccccd", "0x1"),
    ("float32/bool", "0.0", '"0x00"', "0x00000000", "0x0"),
    ("uint64/int8", "18446744073709551615", "-1", "0xffffffffffffffff", "0xff"),
    ("bool/int8", "false", '"0x0"', "0x0", "0x00"),
]


@pytest.mark.parametrize(("pair", "given", "output", "input_pattern", "output_pattern"), SPELLED)
def test_a_spelling_is_written_back_as_it_was_beside_its_pattern(
    pair: str, given: str, output: str, input_pattern: str | None, output_pattern: str | None
) -> None:
    line = f'{{"case": "onnx-cast:25/{pair}", "input": {given}, "output": {output}'
    [result] = judge_stream(io.StringIO(f"{line}}}\n"), LineTally())
    printed = json_text(result)
    assert printed.startswith(f"{line}, ")
    result = json.loads(printed)
    assert result["verdict"] == "conforms"
    assert result.get("input_pattern") == input_pattern
    assert result.get("output_pattern") == output_pattern


@pytest.mark.parametrize(
    ("case", "given", "verdict", "rule"),
    [
        ("numpy-astype:2.4/float32/complex64/casting:unsafe", "1.0", "violates", "any-conversion"),
        ("array-api-astype:2025.12/float32/complex64", "1.0", "open", "to-complex"),
        ("onnx-cast:25/float32/int32", '"nan"', "open", "float-to-integer"),
    ],
)
def test_an_error_breaks_a_rule_that_wants_an_answer_of_any_value(
    case: str, given: str, verdict: str, rule: str
) -> None:
    line = f'{{"case": "{case}", "input": {given}, "output": {{"error": "refused"}}}}\n'
    [result] = judge_stream(io.StringIO(line), LineTally())
    assert (result["verdict"], result["rule"]) == (verdict, rule)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["0x3f800000", "0x01", "nan", "-inf", "1e5", "true", "5"])
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["text", "error", "shape", "bits", "x"]), inner)
    ),
    max_leaves=6,
)
CASES = [CASE, "onnx-cast:25/string/bool", "onnx-cast:25/bool/string"]
CASES += [
    f"xla-bitcast-convert:2023/float32/int8/shape:{shape}" for shape in ("scalar", "3", "0x4")
]


@given(st.sampled_from(CASES), VALUES, VALUES)
def test_whatever_json_comes_gets_a_verdict_or_one_line(case: str, given: Any, output: Any) -> None:
    line = json.dumps({"case": case, "input": given, "output": output})
    [result] = judge_stream(io.StringIO(line), LineTally())
    shown = json.loads(json_text(result))
    assert "verdict" in shown or set(shown) == {"error", "line"}
