"""The Web Platform Tests of WebNN's cast demand what the reference answers and the document allows.

``WEB_PLATFORM_TESTS`` names a checkout of web-platform-tests/wpt, whose text is not shipped here.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from conformance.families.reference import Reference
from oracles.protocol import Bits
from oracles.reference import exact_rulings
from reports.grading.allowed_answers import NOT_ALLOWED, grade_pattern, is_nan
from specs.cases import Case
from specs.formats import format_named
from specs.ruling import ruling

READER = Path(__file__).parent / "data" / "read_platform_tests.js"
FILES = ("cast.https.any.js", "cast_rounding.https.any.js", "cast-storage.https.any.js")


class Difference(NamedTuple):
    """An element of a test that the reference answers otherwise, or that the document forbids."""

    test: str
    cast: str
    input: str
    demanded: str
    by: str


def demands(files: list[Path]) -> list[dict[str, Any]]:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    command = [node, str(READER), *map(str, files)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in printed.splitlines()]


def codes(dtype: str, values: list[str], is_bits: bool) -> Bits:
    entry = format_named(dtype)
    if is_bits or entry.is_integral:
        mask = (1 << entry.bits) - 1
        return np.array([int(value) & mask for value in values], entry.storage)
    with np.errstate(over="ignore"):
        return np.array([float(value) for value in values]).astype(dtype).view(entry.storage)


def differences(test: dict[str, Any]) -> tuple[int, list[Difference]]:
    """Make a test's casts by the reference; return the number of elements, and the differences."""
    tensors = {
        test["input"]: (test["source"], codes(test["source"], test["values"], test["is_bits"]))
    }
    count, found = 0, []
    for step in test["steps"]:
        source, inputs = tensors[step["from"]]
        case = Case("webnn-cast", "draft", source, step["target"])
        answers = Reference().cast(case, inputs)
        tensors[step["to"]] = (step["target"], answers)
        if step["expected"] is None:
            continue
        demanded = codes(step["target"], step["expected"], test["is_bits"])
        assert demanded.shape == inputs.shape
        count += demanded.size
        target = format_named(step["target"])
        nans = is_nan(target, answers) & is_nan(target, demanded)
        for index, (given, answer, wanted) in enumerate(
            zip(inputs, answers, demanded, strict=True)
        ):
            rules = ruling(case)
            forbidden = grade_pattern(rules, exact_rulings.allow(rules, int(given)), int(wanted))
            for is_different, by in (
                (answer != wanted and not nans[index], "the reference"),
                (forbidden == NOT_ALLOWED, "the document"),
            ):
                if is_different:
                    where = f"{test['file']}: {test['name']}"
                    found.append(Difference(where, case.id, hex(given), hex(wanted), by))
    return count, found


def test_the_platform_tests_demand_what_the_reference_answers_and_the_document_allows() -> None:
    checkout = os.environ.get("WEB_PLATFORM_TESTS")
    if not checkout:
        pytest.skip("WEB_PLATFORM_TESTS names no checkout of web-platform-tests/wpt")
    folder = Path(checkout) / "webnn" / "conformance_tests"
    tests = demands([folder / name for name in FILES])
    assert {test["file"] for test in tests} == set(FILES)
    compared = [differences(test) for test in tests]
    print(f"{len(tests)} tests, {sum(count for count, _ in compared)} elements")
    assert [difference for _, found in compared for difference in found] == []


PLANTED = """
webnn_conformance_test([{name: 'planted', graph: {
  inputs: {x: {data: [1.5, 65519, -0, NaN, 300], descriptor: {shape: [5], dataType: 'float32'}}},
  operators: [
    {name: 'cast', arguments: [{input: 'x'}, {type: 'float16'}], outputs: 'half'},
    {name: 'cast', arguments: [{input: 'half'}, {type: 'int8'}], outputs: 'y'},
  ],
  expectedOutputs: {
    half: {data: [1.5, Infinity, -0, NaN, 301], descriptor: {shape: [5], dataType: 'float16'}},
    y: {data: [2, 0, 0, 0, 44], descriptor: {shape: [5], dataType: 'int8'}},
  },
}}], buildAndExecuteGraph);
"""


def test_what_a_test_demands_beside_the_document_is_found(tmp_path: Path) -> None:
    file = tmp_path / "planted.js"
    file.write_text(PLANTED, encoding="utf-8")
    [test] = demands([file])
    count, found = differences(test)
    assert count == 10
    assert {(one.cast.partition("/")[2], one.input, one.demanded, one.by) for one in found} >= {
        ("float32/float16", "0x477fef00", "0x7c00", "the reference"),
        ("float32/float16", "0x43960000", "0x5cb4", "the reference"),
        ("float32/float16", "0x43960000", "0x5cb4", "the document"),
        ("float16/int8", "0x3e00", "0x2", "the reference"),
        ("float16/int8", "0x3e00", "0x2", "the document"),
    }
    allowed = [one for one in found if one.input == "0x477fef00" and one.by == "the document"]
    assert allowed == []
