"""The format of docket files: links, cases, dates and systems, and the error for each mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.extras.issues.docket import LINK, docket, load_docket
from specs.errors import CastigateError

LINKED = "https://github.com/some/where/issues/7"
QUESTION = "{case: onnx-cast:25/float32/int8, input: 300, answers: {ort: 44}}"
FILE = f"""\
project: some/where
threads:
  {LINKED}:
    opened: '2026-01-02'
    report: something
    questions:
      - {QUESTION}
"""


def load(tmp_path: Path, text: str) -> None:
    file = tmp_path / "where.yaml"
    file.write_text(text)
    list(load_docket(file))


def test_every_thread_has_a_link_of_its_project_and_cases_in_full() -> None:
    threads = docket()
    assert len({each.link for each in threads}) == len(threads) >= 140
    assert len({each.project.project for each in threads}) >= 15
    for thread in threads:
        assert LINK.fullmatch(thread.link)
        assert thread.link.startswith(f"https://github.com/{thread.project.project}/")
        assert all(each.asked.id == each.case for each in thread.entry.questions)


def test_every_report_is_one_plain_clause() -> None:
    for thread in docket():
        for text in (thread.entry.report, thread.entry.outcome):
            assert "http" not in text
            assert not text.endswith(".")
            assert len(text) <= 120


def test_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "where.yaml").write_text(FILE)
    [thread] = load_docket(tmp_path / "where.yaml")
    assert thread.name == "some/where#7"
    assert thread.systems == ("ort",)


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        (LINKED, "https://github.com/some/other/issues/7", 3, "is no thread of the project"),
        (LINKED, "https://github.com/some/where/wiki/7", 3, "is no thread of the project"),
        (LINKED, "http://github.com/some/where/issues/7", 3, "is no thread of the project"),
        ("some/where\n", "some\n", 1, "should match pattern"),
        ("2026-01-02", "January", 4, "should match pattern"),
        ("onnx-cast:25/float32/int8", "onnx-cast:25/float32/int9", 7, "unknown case"),
        ("onnx-cast:25/float32/int8", "onnx-cast/float32/int8/bool", 7, "lacks its version"),
        ("onnx-cast:25/float32/int8", "plain-cast:open/float32/int4", 7, "unknown case"),
        (
            "onnx-cast:25/float32/int8",
            "plain-cast/float32/int8",
            7,
            "lacks its version or a mode; write plain-cast:saturates/float32/int8",
        ),
        (
            "onnx-cast:25/float32/int8",
            "ieee-casts:2019/float32/int8",
            7,
            "lacks its version or a mode; write ieee-casts:2019/float32/int8/",
        ),
        ("onnx-cast:25/float32/int8", "plain-cast:other/float32/int8", 7, "no version `other`"),
        ("{ort: 44}", "{}", 7, "at least 1"),
        ("    report: something\n", "", 3, "`report` is missing"),
        ("report:", "says: x\n    report:", 5, "unknown key `says`"),
        ("threads:", "claims: [onnx]\nthreads:", 2, "`onnx` is no document"),
        ("threads:", "systems: {gpu: a GPU}\nthreads:", 1, "no thread names the system `gpu`"),
    ],
)
def test_a_mistake_is_one_line_with_its_place(
    tmp_path: Path, old: str, new: str, line: int, said: str
) -> None:
    assert old in FILE
    with pytest.raises(CastigateError) as error:
        load(tmp_path, FILE.replace(old, new))
    message = str(error.value)
    assert message.startswith(f"{tmp_path / 'where.yaml'}:{line}: ")
    assert said in message
    assert "\n" not in message
