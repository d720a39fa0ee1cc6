"""``castigate portable`` on planted backends: one clamps, the other clamps all but -infinity."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest

from conformance.extras.portable.questions import PairQuestion
from oracles.registry import load_backend
from tests.conformance.processes import castigate

DATA = "tests/conformance/data/saturating.py"
ONE, OTHER = f"{DATA}:Saturating", f"{DATA}:AllButMinusInfinity"
BOTH = ("portable", ONE, OTHER)
PAIR = "--pair=float32/int32"
SAMPLED = r"[\d,]+ inputs asked, by a sample"


@pytest.fixture
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask backends in this process, where that is not the point."""
    load = "conformance.extras.portable.command.load_all"
    monkeypatch.setattr(load, lambda stack, configs: [*map(load_backend, configs)])


def test_the_ranges_and_what_each_does_elsewhere() -> None:
    code, out, err = castigate(*BOTH, PAIR)
    first, agree, differ, *does, advice = out.splitlines()
    assert (code, err) == (0, "")
    assert first.startswith("float32 to int32: asked ")
    assert first.endswith(" inputs; ranges are sampled, their ends are exact neighbors")
    assert agree == "  agree   every finite value, infinity, NaN"
    assert differ == "  differ  -infinity"
    assert [each.strip() for each in does] == [f"{ONE}: -2147483648", f"{OTHER}: 0"]
    assert advice.startswith("to be portable, ")


@pytest.mark.usefixtures("_in_this_process")
def test_a_narrow_source_is_asked_whole() -> None:
    _, out, _ = castigate(*BOTH, "--pair=e4m3fn/int8")
    assert out.splitlines() == [
        "float8e4m3fn to int8: every input asked, 256 of 256 agree",
        "  agree   every input",
    ]


def test_only_a_source_that_is_asked_whole_has_a_total() -> None:
    assert PairQuestion("float32", "int8", whole=True).inputs == 1 << 32
    assert PairQuestion("float64", "int8", whole=True).inputs is None


@pytest.mark.usefixtures("_in_this_process")
@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        ("[-1e9, 1e9]", 0),
        ("[-0x1.8p3, 0X1p30]", 0),
        ("[-3.5e38, inf]", 0),
        ("[-inf, 0]", 1),
        ("[-INF, -inf]", 1),
    ],
)
def test_a_required_interval_is_safe_or_not(interval: str, expected: int) -> None:
    code, out, err = castigate(*BOTH, f"--require=float32/int32: {interval}")
    assert (code, err) == (expected, "")
    last = out.splitlines()[-1]
    if not expected:
        assert re.fullmatch(re.escape(f"float32/int32: {interval} is safe: ") + SAMPLED, last)
    else:
        assert last == (
            f"float32/int32: {interval} is not safe: 0xff800000 (-INF) gives "
            f"{ONE} 0x80000000 (-2147483648), {OTHER} 0x00000000 (0)"
        )


@pytest.mark.usefixtures("_in_this_process")
def test_documents_and_house_rules_are_parties() -> None:
    named = ("--document=onnx-cast", "--document=onnx-cast+java:25")
    required = "--require=float32/int32: [-inf, 0]"
    code, out, _ = castigate("portable", OTHER, *named, PAIR, required)
    assert code == 1
    assert out.endswith(f"gives {OTHER} 0x00000000 (0); onnx-cast+java:25 does not allow {OTHER}\n")
    assert "  agree   every finite value, infinity, NaN\n  differ  -infinity\n" in out
    joined = " ".join(out.split())
    assert "onnx-cast:25: allows all these answers" in joined
    assert f"onnx-cast+java:25: does not allow {OTHER}" in joined
    assert castigate("portable", ONE, *named, required)[0] == 0


def test_a_backend_that_is_absent_is_not_safe() -> None:
    pytest.importorskip("ml_dtypes")
    required = "--require=float32/float8e4m3fn: [0, 1]"
    code, out, _ = castigate("portable", "reference", "numpy", required)
    assert code == 1
    assert "  absent  numpy: numpy has no dtype float8e4m3fn" in out
    assert out.endswith("is not checked: numpy: numpy has no dtype float8e4m3fn\n")


@pytest.mark.usefixtures("_in_this_process")
def test_one_party_is_nothing_to_compare(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    for asked in ([PAIR, f"--page={page}"], ["--require=int8/int8: [0, 1]"]):
        code, out, err = castigate("portable", ONE, *asked)
        assert (code, out) == (2, "")
        assert "has nothing to agree with; name a second backend, or a --document" in err
    assert not page.exists()


@pytest.mark.usefixtures("_in_this_process")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--require=float32/int32"], "--require `float32/int32` is not"),
        (["--require=float32/int32: [1, -1]"], "1 is above -1"),
        (["--require=float32/int32: [1, x]"], "`x` is no number"),
        (["--require=float32/int32: [1, nan]"], "`nan` is no number"),
        (["--require=float32/int32: [1, 1e99999]"], "`1e99999` is no number"),
        (["--require=int8/int32: [0.2, 0.7]"], "no value of int8 lies in the interval"),
        (["--require=int8/int32: [inf, inf]"], "no value of int8 lies in the interval"),
        (["--require=float32/string: [0, 1]"], "the values of string have no order"),
        (["--pair=float32"], "pair `float32` is not SOURCE/TARGET"),
        (["--pair=float32/int33"], "int33"),
        (["--pair=complex64/int8"], "the values of complex64 have no order"),
        ([], "no pair is named"),
        ([PAIR, "--document=onnx-cost"], "onnx-cost"),
    ],
)
def test_bad_input_is_one_line(words: list[str], said: str) -> None:
    code, out, err = castigate("portable", "reference", ONE, *words)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.usefixtures("_in_this_process")
def test_the_file_is_as_the_schema_says(tmp_path: Path) -> None:
    file, page = tmp_path / "portable.json", tmp_path / "portable.md"
    written = (f"--json={file}", f"--page={page}")
    assert castigate(*BOTH, PAIR, "--pair=bool/int8", *written)[0] == 0
    schema = json.loads(castigate("portable", "schema")[1])
    found = json.loads(file.read_text("utf-8"))
    jsonschema.validate(found, schema)
    pair, boolean = found["pairs"]
    assert (pair["every_input"], boolean["every_input"]) == (False, True)
    assert pair["ranges"] == [
        {"low": "0xff7fffff", "high": "0x7f7fffff", "words": "every finite value"}
    ]
    assert pair["differ"] == [
        {"where": ["-infinity"], "does": {ONE: "-2147483648", OTHER: "0"}, "documents": {}}
    ]
    text = page.read_text("utf-8")
    assert "| float32 → int32 | " in text
    assert "- differ: -infinity\n    - " in text


def test_a_run_is_surveyed_by_its_answers(tmp_path: Path) -> None:
    folder = str(tmp_path / "run")
    asked = ("--document=onnx-cast:25", "--source=float32", "--target=int32")
    castigate(
        "run", f"--backend={ONE}", f"--backend={OTHER}", *asked, "--jobs=1", f"--out={folder}"
    )
    code, out, err = castigate("portable", folder)
    assert (code, err) == (0, "")
    assert "ranges are sampled, their ends too" in out
    assert "  agree   every finite value, infinity, NaN\n  differ  -infinity\n" in out
    required = "--require=float32/int32: [-inf, 0]"
    assert castigate("portable", folder, required)[0] == 1
    required = "--require=float32/int32: [1.2345678e-3, 1.2345685e-3]"
    code, out, _ = castigate("portable", folder, required)
    assert code == 1
    assert "is not checked: the run asked no input of it" in out
    code, _, err = castigate("portable", folder, "ort")
    assert (code, err.count("\n")) == (2, 1)
    assert "has no backend `ort`" in err
    code, _, err = castigate("portable", folder, PAIR, "--tier=full")
    assert code == 2
