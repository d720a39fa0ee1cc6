"""``castigate export vectors``: files that tell of every input, judged by arithmetic of others."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from conformance.extras.vectors.ieee_flags import raised
from conformance.extras.vectors.index import VectorIndex
from conformance.extras.vectors.intervals import (
    ROW,
    CastIntervals,
    disagreements,
    intervals_of,
)
from conformance.extras.vectors.vector_text import Vectors, as_c_header, as_text
from specs.cases import Case
from specs.editions import edition
from specs.formats import format_named
from specs.loader import document_named
from specs.ruling import ruling
from specs.selection import case_named, select
from tests.conformance.extras.vectors.reading import Read, half, read, single
from tests.conformance.processes import castigate

IEEE = "ieee-casts-2019"
NEAREST = "round-nearest-even"


def export(folder: Path, *arguments: str) -> dict[str, Any]:
    code, _, err = castigate("export", "vectors", *arguments, f"--to={folder}")
    assert (code, err) == (0, "")
    index: dict[str, Any] = json.loads((folder / "index.json").read_text())
    return index


def of_case(exported: tuple[Path, dict[str, Any]], case: str) -> Read:
    """The content of the file that tells of a case."""
    folder, index = exported
    files = [each for each in index["files"] if each["kind"] == "casts"]
    (about,) = [each for each in files if case in each["cases"]]
    return read(folder / about["file"])


def yardstick_case(text: str) -> Case:
    name, _, version = text.partition("/")[0].partition(":")
    return next(each for each in edition(document_named(name), version).cases() if each.id == text)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("vectors") / "out"
    pairs = ["f16/e4m3fn", "f16/i8", "f32/f16", "f16/f32", "f64/f32", "i32/i8"]
    named = ["ieee-casts", "plain-cast:wraps", "onnx-cast:25"]
    asked = [f"--pair={each}" for each in pairs] + [f"--document={each}" for each in named]
    return folder, export(folder, *asked)


def test_the_index_has_every_file_with_its_digest(exported: tuple[Path, dict[str, Any]]) -> None:
    folder, index = exported
    VectorIndex.model_validate(index)
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*.txt")}
    assert {each["file"] for each in index["files"]} == names
    for each in index["files"]:
        content = (folder / each["file"]).read_bytes()
        assert each["sha256"] == sha256(content).hexdigest()
        if each["kind"] in ("casts", "flags") and each["lines"] < 5_000:
            found = read(folder / each["file"])
            assert (len(found.lines), found.covers) == (each["lines"], each["covers"])


def test_every_case_has_a_file_or_a_reason(exported: tuple[Path, dict[str, Any]]) -> None:
    _, index = exported
    told = [case for each in index["files"] if each["kind"] == "casts" for case in each["cases"]]
    left = [case for each in index["left_out"] for case in each["cases"]]
    assert len(told) == len({*told})
    assert not {*told} & {*left}
    asked = {case.id for case in select(["onnx-cast:25"])}
    pairs = ("/float16/float8e4m3fn/", "/float32/float16", "/int32/int8")
    wanted = {case for case in asked if any(pair in case for pair in pairs)}
    assert len(wanted) >= 4
    assert wanted <= {*told, *left}


def test_float16_is_what_python_packs(exported: tuple[Path, dict[str, Any]]) -> None:
    found = of_case(exported, "ieee-casts:2019/float32/float16/round:nearest-even")
    assert (found.covers, len(found.lines)) == ("all", 63_492)
    for value in (0.0, 1.0, 1.0009765625, 2049.0, 2051.0, 6e-8, 2.0**-25, 65519.0, -0.0, 1e-5):
        line = found.line_of(single(value))
        assert (line.first, line.last, line.mask) == (half(value), half(value), 0xFFFF)
    assert found.line_of(single(65520.0)).first == 0x7C00
    nan = found.line_of(0xFFC00001)
    assert all(nan.allows(0xFFC00001, answer) for answer in (0x7C01, 0x7FFF, 0xFC01, 0xFE00))
    assert not any(nan.allows(0xFFC00001, answer) for answer in (0x7C00, 0xFC00, 0x7BFF, 0))


def test_codes_rise_where_nothing_rounds(exported: tuple[Path, dict[str, Any]]) -> None:
    found = of_case(exported, "ieee-casts:2019/float16/float32")
    assert len(found.lines) < 40
    every = np.arange(1 << 16, dtype=np.uint16)
    answers = every.view(np.float16).astype(np.float32).view(np.uint32)
    for line in found.lines:
        for given in {line.lo, (line.lo + line.hi) // 2, line.hi}:
            assert line.allows(given, int(answers[given]))
            is_nan = given & 0x7FFF > 0x7C00
            assert is_nan or not line.allows(given, int(answers[given]) + 1)


def test_low_bits_are_one_line(exported: tuple[Path, dict[str, Any]]) -> None:
    (line,) = of_case(exported, "plain-cast:wraps/int32/int8").lines
    assert (line.lo, line.hi, line.step) == (0, 0xFFFFFFFF, 1)
    assert line.allows(0x1FF, 0xFF)
    assert not line.allows(0x1FF, 0x7F)


@pytest.mark.parametrize(("saturate", "overflow"), [("1", "saturate"), ("0", "nan")])
def test_e4m3fn_of_every_float16_is_that_of_ml_dtypes(
    exported: tuple[Path, dict[str, Any]], saturate: str, overflow: str
) -> None:
    found = of_case(exported, f"onnx-cast:25/float16/float8e4m3fn/saturate:{saturate}")
    every = np.arange(1 << 16, dtype=np.uint16)
    with np.errstate(all="ignore"):
        floats = every.view(np.float16)
        wanted = floats.astype(ml_dtypes.float8_e4m3fn).view(np.uint8)
    if overflow == "saturate":
        beyond = ~np.isnan(floats) & (np.abs(floats) > 448)
        wanted = np.where(beyond, np.where(floats < 0, 0xFE, 0x7E), wanted).astype(np.uint8)
    for line in found.lines:
        codes = {int(code) for code in wanted[line.lo : line.hi + 1]}
        assert all(line.allows(line.lo, code) for code in codes)
        if line.mask == 0xFF and line.first == line.last:
            assert codes == {line.first}


def test_a_cast_with_too_many_answers_is_sampled_within_the_limit(
    exported: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    found = of_case(exported, "ieee-casts:2019/float64/float32/round:nearest-even")
    assert found.covers == "some"
    assert 5_000 < len(found.lines) <= 20_000
    with np.errstate(all="ignore"):
        for line in found.lines:
            for given in {line.lo, line.hi}:
                answer = np.array([given], np.uint64).view(np.float64).astype(np.float32)
                assert line.allows(given, int(answer.view(np.uint32)[0]))
    small = export(tmp_path / "small", "--pair=f64/f32", "--document=ieee-casts", "--limit=500")
    assert all(each["lines"] <= 500 for each in small["files"] if each["kind"] == "casts")


@pytest.mark.parametrize(
    ("target", "rounding", "value", "flags"),
    [
        ("float16", "nearest-even", 1.0, 0),
        ("float16", "nearest-even", 1.0001, 1),
        ("float16", "nearest-even", 65520.0, 5),
        ("float16", "toward-zero", 65520.0, 1),
        ("float16", "toward-zero", 65536.0, 5),
        ("float16", "nearest-even", 65519.0, 1),
        ("float16", "nearest-even", 2.0**-24, 0),
        ("float16", "nearest-even", 2.0**-25, 3),
        ("float16", "nearest-even", math.inf, 0),
        ("int8", "nearest-even", 127.5, 16),
        ("int8", "toward-zero", 127.5, 1),
        ("int8", "nearest-even", 3.0, 0),
        ("int8", "nearest-even", math.inf, 16),
        ("uint8", "floor", -0.5, 16),
        ("uint8", "ceil", -0.5, 1),
    ],
)
def test_flags_by_hand(target: str, rounding: Any, value: float, flags: int) -> None:
    source = format_named("float32")
    found = raised(source, format_named(target), rounding, single(value))
    assert (found.flags, found.mask) == (flags, 0x1F)


def test_tininess_before_and_after_rounding_differ_below_the_smallest_normal() -> None:
    """2**-14 less a quarter of its lower neighbor's unit is tiny before rounding alone."""
    given = single(float(Fraction(2) ** -14 - Fraction(2) ** -27))
    found = raised(format_named("float32"), format_named("float16"), "nearest-even", given)
    assert (found.flags, found.mask) == (1, 0x1F ^ 2)


@pytest.mark.parametrize(("code", "flags"), [(0x7FC00000, 0), (0x7F800001, 16), (0xFFBFFFFF, 16)])
def test_a_signaling_nan_is_invalid(code: int, flags: int) -> None:
    found = raised(format_named("float32"), format_named("float16"), "nearest-even", code)
    assert found == (flags, 0x1F)


def test_exports_are_the_same_bytes_twice(tmp_path: Path) -> None:
    asked = ["--pair=f16/e5m2", "--c-headers"]
    for name in ("one", "two"):
        export(tmp_path / name, *asked)
    files = [
        {
            path.relative_to(tmp_path / name): path.read_bytes()
            for path in (tmp_path / name).rglob("*.*")
            if path.is_file()
        }
        for name in ("one", "two")
    ]
    assert files[0] == files[1]
    assert len([path for path in files[0] if path.suffix == ".h"]) == len(
        [path for path in files[0] if path.suffix == ".txt" and path.parts[0] in ("casts", "flags")]
    )


def test_values_are_exact_decimals(tmp_path: Path) -> None:
    export(tmp_path / "out", "--pair=f16/e4m3fn", "--document=small-floats")
    lines = (tmp_path / "out/values/float8e4m3fn.txt").read_text().splitlines()
    assert lines[0] == "vectors 1 values float8e4m3fn 8 256"
    found = dict(line.split() for line in lines[1:])
    assert [found[code] for code in ("00", "80", "01", "7e", "7f", "ff", "38")] == [
        "0", "-0", "0.001953125", "448", "nan", "nan", "1",
    ]  # fmt: skip


def test_what_is_usual_is_left_out_of_a_line() -> None:
    rows = np.array(
        [
            (0, 1, 5, 5, 0xFF, 0, 0, 0),
            (2, 2, 5, 6, 0xFF, 0, 0, 0),
            (3, 3, 0x7F, 0x7F, 0x7F, 0, 0, 0),
            (4, 254, 0, 0, 0xFF, 1, 0, 0),
            (255, 255, 1, 1, 0xFF, 0, 0, 1),
        ],
        ROW,
    )
    vectors = Vectors(format_named("uint8"), ("int8", 8), rows, True, ["by nobody"])
    assert as_text(vectors).decode().splitlines() == [
        "vectors 1 uint8 8 int8 8 all 5",
        "# by nobody",
        "00 01 05",
        "02 02 05 06",
        "03 03 7f 7f 7f",
        "04 fe 00 00 ff 1",
        "ff ff 01 01 ff 0 00",
    ]
    assert "castigate_u8[5] = {" in as_c_header(vectors, "u8").decode()


def test_two_answers_may_lie_apart(tmp_path: Path) -> None:
    index = export(tmp_path / "out", "--pair=f16/i8", "--document=openvino-convert")
    (about,) = [each for each in index["files"] if each["kind"] == "casts"]
    found = read(tmp_path / "out" / about["file"])
    line = found.line_of(half(-0.75))
    allowed = [code for code in range(256) if line.allows(half(-0.75), code)]
    assert allowed == [0, 0xFF]


def test_a_wrong_row_disagrees_with_the_kernels() -> None:
    case = yardstick_case("small-floats:1/float32/float8e4m3fn/round:nearest-even/overflow:nan")
    told = intervals_of(case, ruling(case), 1000)
    assert [*disagreements(told)] == []
    rows = told.rows.copy()
    rows["first"][7] += np.uint64(1)
    rows["last"][7] += np.uint64(1)
    assert {*disagreements(CastIntervals(told.ruling, rows, True))} == {
        int(rows["lo"][7]),
        int(rows["hi"][7]),
    }


def test_what_must_be_refused_stands_as_open(tmp_path: Path) -> None:
    index = export(tmp_path / "out", "--pair=f16/i8", "--document=checked-cast")
    (about,) = [each for each in index["files"] if each["kind"] == "casts"]
    assert about["refuses"]
    found = read(tmp_path / "out" / about["file"])
    for value, answers in ((2.5, 256), (128.0, 256), (2.0, 1)):
        line = found.line_of(half(value))
        assert sum(line.allows(half(value), answer) for answer in range(256)) == answers


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--pair=f32"], "pair `f32` is not SOURCE/TARGET; write one such as float32/int8"),
        (["--pair=f32/string"], "pair `f32/string`: the values of string have no order; name"),
        (["--document=onnx-casts"], "unknown document `onnx-casts`; did you mean `onnx-cast`"),
        (["--document=wasm-convert", "--pair=i8/f16"], "no document that was named has int8/fl"),
        (["--document=ieee-casts:2008"], "ieee-casts has no version `2008`; it has 2019"),
    ],
)  # fmt: skip
def test_bad_arguments_are_told_in_a_line(arguments: list[str], said: str, tmp_path: Path) -> None:
    code, out, err = castigate("export", "vectors", *arguments, f"--to={tmp_path / 'out'}")
    assert (code, out) == (2, "")
    assert err.startswith(f"castigate: {said}")
    assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("document", ["onnx-cast:25", "numpy-astype:2.4"])
@pytest.mark.parametrize("target", ["float16", "int16"])
def test_a_cast_to_sixteen_bits_is_told_whole(document: str, target: str) -> None:
    """Also where a document allows to round either way, so that each value is a line of its own."""
    mode = "/casting:unsafe" if document.startswith("numpy") else ""
    case = case_named(f"{document}/float32/{target}{mode}")
    assert intervals_of(case, ruling(case), 20_000).is_whole
