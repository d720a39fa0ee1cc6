"""Texts on the screen: a long one is cut and its length said; a refused one is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from reports.counterexample.drawing import allowed_columns, datum_text, quoted
from reports.findings.finding_text import findings_lines, shortened
from reports.findings.read_findings import read_findings
from specs.cases import Case
from specs.formats import format_named
from specs.selection import case_named
from tests.reports.judged_run import RIGHT, judged_run

LONG = "1" * 5000 + "e-4998"


def shown(folder: Path, case: str, cast: Any) -> list[str]:
    store = judged_run(folder, {"faulty": cast}, [case_named(case)])
    return [*findings_lines(read_findings(store), {"faulty": "1"})]


def test_a_text_of_60_characters_is_shown_whole_and_a_longer_one_with_its_ends_and_length() -> None:
    assert quoted("x" * 60) == repr("x" * 60)
    assert quoted("x" * 60 + "y") == f"'{'x' * 39}…{'x' * 19}y' (61 characters)"
    text = format_named("string")
    assert datum_text(text, LONG).endswith("1e-4998' (5,006 characters)")
    assert allowed_columns(text, LONG)[0] == quoted(LONG)
    assert allowed_columns(text, "plain-text")[0] == "plain-text"


def test_a_finding_of_a_long_text_is_a_short_line(tmp_path: Path) -> None:
    def cast(case: Case, bits: Any) -> Any:
        answers = RIGHT.cast(case, bits).copy()
        long = np.array([len(each) > 4_000 and "e-" in each for each in bits.ravel().tolist()])
        answers[long.reshape(bits.shape)] ^= 1
        return answers

    lines = shown(tmp_path / "run", "onnx-cast:25/string/float64", cast)
    assert any(" characters) gives 0x" in line for line in lines)
    assert max(map(len, lines)) < 400


def test_a_finding_names_the_text_that_is_refused(tmp_path: Path) -> None:
    def cast(case: Case, bits: Any) -> Any:
        if "-0" in bits.ravel().tolist():
            raise ValueError("invalid argument")
        return RIGHT.cast(case, bits)

    lines = shown(tmp_path / "run", "onnx-cast:25/string/uint8", cast)
    assert (
        "    raises-ValueError: 1 case, string to uint8; on '-0', the simplest text that raises the"
        " error"
    ) in lines


def test_the_simplest_text_of_a_length_check_has_few_leading_zeros(tmp_path: Path) -> None:
    def cast(case: Case, bits: Any) -> Any:
        if any(len(each) > 20 and each.isdigit() for each in bits.ravel().tolist()):
            raise ValueError("number too long")
        return RIGHT.cast(case, bits)

    lines = shown(tmp_path / "run", "onnx-cast:25/string/int64", cast)
    assert any("on '000000000000000000000001', the simplest" in line for line in lines)


def test_folders_are_left_out_of_messages_and_escapes_are_not() -> None:
    assert shortened("in /usr/lib/x.py") == "in x.py"
    assert shortened(r"in 'C:\lib\x.py'") == "in 'x.py'"
    assert shortened(r"'\x00' gives ''") == r"'\x00' gives ''"
    assert shortened(r"'\ufeffabc'") == r"'\ufeffabc'"
