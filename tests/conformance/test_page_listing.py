"""`castigate specs --coverage`: the rules for each line of a page, and the effect of a new page."""

from __future__ import annotations

from pathlib import Path

import pytest

from specs.loader import documents
from tests.conformance.test_command import castigate
from tests.specs.paged import DOCUMENT, PAGE, write_paged

SMALL = Path(__file__).parents[1] / "specs" / "data" / "small.yaml"

COVERAGE = """\
paged encodes page.txt, 11 lines

    lines  encoded by
        1  (not encoded: headings)

version 2, lines 3-6
    lines  encoded by
        3  (not encoded: headings)
      4-5  cut, infinity-clamped
        6  nan-open

version 1, lines 7-10
    lines  encoded by
        7  (not encoded: headings)
        8  cut
        9  infinity-open; conflict note infinity-clamped
       10  nan-open

    lines  encoded by
       11  (not encoded: an acknowledgment)

10 lines with text: 6 encoded, 4 not encoded for a reason, 0 not covered
"""

CHANGED = """\
{copy} is not the page.txt that the rules encode.

Gone or changed: lines 6
New in the copy:
        6 | NaN is zero.
        7 | By the way.

Check these, whose text changed:
  paged.yaml:14: section: 3-6
  paged.yaml:44: rule nan-open: 6

The text of these is the same, on other lines:
  paged.yaml:9: section: 7-10 -> 8-11
  paged.yaml:30: rule infinity-open: 9 -> 10
  paged.yaml:41: conflict note infinity-clamped: 9 -> 10
  paged.yaml:57: not-encoded: 7 -> 8
  paged.yaml:58: not-encoded: 11 -> 12

Then renew the digests: castigate specs page {copy} > page.txt.sha256
"""


def write_copy(folder: Path, page: str = PAGE) -> str:
    path = folder / "copy.txt"
    path.write_text(page, encoding="utf-8")
    return str(path)


def coverage(folder: Path, *options: str, document: str = DOCUMENT) -> tuple[int, str, str]:
    made = write_paged(folder, document)
    return castigate("specs", "--coverage", str(made.source.path), *options)


def test_each_range_of_lines_has_its_rules_or_a_reason(tmp_path: Path) -> None:
    assert coverage(tmp_path) == (0, COVERAGE, "")


def test_a_gap_is_shown_and_is_exit_code_1(tmp_path: Path) -> None:
    code, out, err = coverage(tmp_path, document=DOCUMENT.replace("lines: 6\n", "lines: none\n"))
    assert (code, err) == (1, "")
    assert "        6  NOT COVERED: no rule points at it\n" in out
    assert out.endswith("4 encoded, 4 not encoded for a reason, 2 not covered\n")


def test_the_text_of_the_users_copy_is_below_its_rules(tmp_path: Path) -> None:
    code, out, _ = coverage(tmp_path, f"--page={write_copy(tmp_path)}")
    assert code == 0
    shown = [line.partition(" | ")[2] for line in out.splitlines() if " | " in line]
    assert shown == [line for line in PAGE.splitlines() if line]
    assert "       10  nan-open\n       10 | NaN is open.\n" in out


def test_a_changed_copy_names_the_rules_to_check(tmp_path: Path) -> None:
    page = PAGE.replace("NaN is open.\nVersion 1", "NaN is zero.\nBy the way.\nVersion 1")
    copy = write_copy(tmp_path, page)
    assert coverage(tmp_path, "--page", copy) == (1, CHANGED.format(copy=copy), "")


def test_the_digests_that_specs_page_prints_are_those_beside_a_document(tmp_path: Path) -> None:
    write_paged(tmp_path)
    code, out, _ = castigate("specs", "page", write_copy(tmp_path))
    assert (code, out) == (0, (tmp_path / "page.txt.sha256").read_text())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--coverage"], "--coverage needs a document; write castigate specs --coverage DOCUMENT"),
        (["--coverage", str(SMALL)], "small cites no lines of `small.txt`"),
        (["--coverage", "no-such"], "unknown document `no-such`"),
        (["--coverage", "none.yaml"], "none.yaml: there is no such file"),
        (["onnx-cast", "--page", "x"], "--page needs --coverage"),
        (["page"], "`castigate specs page` takes one page; add its FILE"),
        (["page", "no-such.md"], "no-such.md cannot be read as UTF-8 text"),
        (["schema", "x"], "only `castigate specs lint` and `castigate specs page` take files"),
    ],
)
def test_bad_usage_is_one_line(arguments: list[str], says: str) -> None:
    code, out, err = castigate("specs", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"castigate: {says}")
    assert err.count("\n") == 1


@pytest.mark.parametrize("name", documents())
def test_no_line_of_names_is_wider_than_a_terminal(name: str) -> None:
    _, out, _ = castigate("specs", "--coverage", name)
    assert [line for line in out.splitlines()[:-1] if len(line) > 80] == []
