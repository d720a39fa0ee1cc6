"""The lines of a page that a document points at: what they cover, and mistakes in them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from specs.coverage import PageChange, compare_page, coverage
from specs.errors import DocumentError
from specs.lint import prove
from specs.loader import Document, document_named, documents, load_document
from specs.model.page_lines import LineSpan, PageDigests, line_digests
from tests.specs.lint_checks import lines_starting
from tests.specs.paged import DOCUMENT, PAGE, write_paged

SMALL = Path(__file__).parent / "data" / "small.yaml"


def lint_error(folder: Path, text: str = DOCUMENT, page: str = PAGE) -> str:
    document = write_paged(folder, text, page)
    with pytest.raises(DocumentError) as caught:
        prove(document)
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(f"{folder / 'paged.yaml'}:")


def test_the_document_without_mistakes_is_valid(tmp_path: Path) -> None:
    assert prove(write_paged(tmp_path)).lines == 10


def test_a_line_repeated_in_another_versions_section_is_encoded(tmp_path: Path) -> None:
    found = coverage(write_paged(tmp_path))
    assert found is not None
    labels = {line: {each.label for each in some} for line, some in found.encoders.items()}
    assert labels == {
        4: {"rule cut", "rule infinity-clamped"},
        5: {"rule cut", "rule infinity-clamped"},
        6: {"rule nan-open"},
        # Version 1 has the rule `cut` and repeats its line; it does not have `infinity-clamped`.
        8: {"rule cut"},
        9: {"rule infinity-open", "conflict note infinity-clamped"},
        10: {"rule nan-open"},
    }


def test_not_encoded_lines_include_their_repetitions(tmp_path: Path) -> None:
    page = PAGE.replace("Version 1", "Version 2")
    document = DOCUMENT.replace("[1, 3, 7]", "[1, 3]")
    prove(write_paged(tmp_path, document, page))


@pytest.mark.parametrize(
    ("old", "new", "line_start", "expected"),
    [
        ("lines: [4-5]", "lines: [4-5, 12-13]", "lines:", "lines 12-13 are outside of page.txt"),
        ("lines: [4-5]", "lines: [2-5]", "lines:", "line 2 of page.txt is blank; begin and end"),
        ("lines: [4-5]", "lines: [5-4]", "lines:", "`5-4` is not a range of lines; write 57"),
        ("lines: [4-5]", "lines: [4-x]", "lines:", "`4-x` is not a range of lines; write 57"),
        ("lines: [4-5]", "lines: true", "lines:", "`True` is not a range of lines; write 57"),
        ("lines: [4-5]", "lines: [5, 9]", "lines:", "section of version 1, which has no such rule"),
        (", lines: 5}", "}", "overflow:", "rule cut: its clause has no `lines`; point at lines"),
        ('clause: "version 2, clamped", ', "", "overflow:",
            "`lines` of an outcome go with a `clause`"),
        ("    lines: none\n", "", "any-tensor:", "tensor rule any-tensor: its clause has no"),
        ("    lines: 6\n", "    lines: none\n", "seed:", "line 6 of page.txt (and 1 more) is not"),
        ("lines: 11, reason", "lines: 9, reason", "- {lines: 9",
            "infinity-open encodes it; remove"),
        (', reason: "headings"', "", "- {lines: [1, 3, 7]", "`reason` is missing"),
        ("[1, 3, 7]", "[]", "- {lines: []", "at least 1 item"),
        ("[1, 3, 7]", "[1, 3, 7, 99]", "- {lines: [1", "lines 99 are outside of page.txt"),
        ("section: 3-6", "section: 3-7", "section: 7-10", "the section 7-10 overlaps another"),
        ("section: 7-10", "section: 7-12", "section:", "lines 7-12 are outside of page.txt, which"),
        ("    section: 3-6\n", "", "2:", "version 2 has no `section`, but other versions do"),
    ],
)  # fmt: skip
def test_each_mistake_is_reported_with_its_line(
    tmp_path: Path, old: str, new: str, line_start: str, expected: str
) -> None:
    assert DOCUMENT.count(old) == 1
    text = DOCUMENT.replace(old, new)
    # The document may be invalid already when it is loaded.
    with pytest.raises(DocumentError) as caught:
        prove(write_paged(tmp_path, text))
    message = str(caught.value).removeprefix(f"{tmp_path / 'paged.yaml'}:")
    line, _, message = message.partition(":")
    assert int(line) in lines_starting(text, line_start), message
    assert expected in message
    assert "\n" not in message


def test_a_line_that_nothing_encodes_is_an_error(tmp_path: Path) -> None:
    error = lint_error(tmp_path, page=f"{PAGE}A new sentence.\n")
    assert error.startswith("4: line 12 of page.txt is not encoded: no rule points at it; point at")
    assert error.endswith(f"castigate specs --coverage {tmp_path / 'paged.yaml'} shows the page")


def test_the_error_names_an_inherited_rule_whose_line_changed(tmp_path: Path) -> None:
    head, _, tail = PAGE.rpartition("NaN is open.")
    error = lint_error(tmp_path, page=f"{head}NaN is zero.{tail}")
    assert "line 10 of page.txt is not encoded: it replaces line 6, which rule nan-open" in error


def test_missing_digests_of_the_page_are_an_error(tmp_path: Path) -> None:
    document = write_paged(tmp_path)
    (tmp_path / "page.txt.sha256").unlink()
    with pytest.raises(DocumentError, match=r"write it by castigate specs page page\.txt > page"):
        prove(document)


def test_a_broken_digest_is_an_error(tmp_path: Path) -> None:
    document = write_paged(tmp_path)
    path = tmp_path / "page.txt.sha256"
    path.write_text(path.read_text().replace("\n\n", "\nx\n"))
    with pytest.raises(
        DocumentError, match=r"page\.txt\.sha256:2: `x` is not the digest of a line"
    ):
        prove(document)


def test_a_document_that_points_at_no_lines_need_not_cover_its_page(tmp_path: Path) -> None:
    shutil.copy(SMALL, tmp_path)
    (tmp_path / "small.txt.sha256").write_text("\n".join(line_digests(PAGE)))
    prove(load_document(tmp_path / SMALL.name))


WITHOUT_THANKS = DOCUMENT.replace('  - {lines: 11, reason: "an acknowledgment"}\n', "")


def write_second_document(folder: Path, text: str) -> Document:
    path = folder / "second.yaml"
    path.write_text(text.replace("document: paged", "document: second"), encoding="utf-8")
    return load_document(path)


def test_documents_of_one_page_cover_it_together(tmp_path: Path) -> None:
    assert "line 11 of page.txt is not encoded" in lint_error(tmp_path, WITHOUT_THANKS)
    write_second_document(tmp_path, DOCUMENT)
    prove(write_paged(tmp_path, WITHOUT_THANKS))


def test_a_document_of_another_page_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "other.txt.sha256").write_text("\n".join(line_digests(PAGE)))
    write_second_document(tmp_path, DOCUMENT.replace("seed: page.txt", "seed: other.txt"))
    assert "line 11 of page.txt is not encoded" in lint_error(tmp_path, WITHOUT_THANKS)


def test_all_documents_of_a_page_must_point_at_lines_if_one_does(tmp_path: Path) -> None:
    write_paged(tmp_path)
    second = write_second_document(
        tmp_path, SMALL.read_text().replace("seed: small.txt", "seed: page.txt")
    )
    with pytest.raises(DocumentError, match="rule to-integer: its clause has no `lines`"):
        prove(second)


def test_lines_not_encoded_in_one_document_must_not_be_encoded_in_another(tmp_path: Path) -> None:
    pointed = DOCUMENT.replace("lines: [4-5]\n", "lines: [1, 4-5]\n")
    write_paged(tmp_path, pointed.replace("[1, 3, 7]", "[3, 7]"))
    with pytest.raises(DocumentError, match="rule infinity-clamped of paged encodes it; remove it"):
        prove(write_second_document(tmp_path, DOCUMENT))


def page_change(folder: Path, page: str) -> PageChange | None:
    found = coverage(write_paged(folder))
    assert found is not None
    return compare_page(found, page)


def test_the_same_page_has_no_changes(tmp_path: Path) -> None:
    assert page_change(tmp_path, PAGE) is None
    assert page_change(tmp_path, PAGE.replace("\n", "  \r\n")) is None


def test_a_page_change_has_lines_that_changed_and_ranges_that_moved(tmp_path: Path) -> None:
    page = PAGE.replace("NaN is open.\nVersion 1", "NaN is zero.\nBy the way.\nVersion 1")
    change = page_change(tmp_path, page)
    assert change is not None
    assert (change.gone, change.new) == ([LineSpan(6, 6)], [LineSpan(6, 7)])
    assert {(each.label, each.before, each.now) for each in change.moved} == {
        ("section", LineSpan(3, 6), None),
        ("section", LineSpan(7, 10), LineSpan(8, 11)),
        ("rule infinity-open", LineSpan(9, 9), LineSpan(10, 10)),
        ("conflict note infinity-clamped", LineSpan(9, 9), LineSpan(10, 10)),
        ("rule nan-open", LineSpan(6, 6), None),
        ("not-encoded", LineSpan(7, 7), LineSpan(8, 8)),
        ("not-encoded", LineSpan(11, 11), LineSpan(12, 12)),
    }


def test_a_range_with_an_inserted_line_counts_as_changed(tmp_path: Path) -> None:
    change = page_change(tmp_path, PAGE.replace("cut.\nInf", "cut.\nOr not.\nInf", 1))
    assert change is not None
    now = {each.label: each.now for each in change.moved}
    assert now["rule infinity-clamped"] is None
    assert now["rule nan-open"] == LineSpan(7, 7)
    assert now["section"] == LineSpan(3, 7)


def test_blank_lines_do_not_end_a_range() -> None:
    page = PageDigests("page", line_digests("one\n\ntwo\nthree\nfour\n"))
    assert page.spans([1, 3, 5]) == [LineSpan(1, 3), LineSpan(5, 5)]


def test_digests_ignore_trailing_white_space() -> None:
    assert line_digests("a\r\n \n b \n") == ("ca978112ca1b", "", "cb6f0a6c7a32")


@pytest.mark.parametrize("name", documents())
def test_a_shipped_document_covers_its_page(name: str) -> None:
    found = coverage(document_named(name))
    assert found is None or found.uncovered() == []


@pytest.mark.parametrize(
    ("name", "line", "label"),
    [
        ("paddle-layer-astype", 17, "promise layer-runs"),
        ("paddle-layer-astype", 208, "conflict note layer-runs"),
        ("paddle-tensor-to", 69, "conflict note form:device-name-keyword-dtype"),
        ("cinn-bitcast-convert", 189, "demanded test required-test"),
        ("cinn-cast", 128, "tensor rule node-keeps-shape"),
        ("onnx-cast", 639, "parameter saturate"),
        ("onnx-cast", 1711, "conflict note version 1"),
    ],
)
def test_every_kind_of_part_with_a_clause_is_an_encoder(name: str, line: int, label: str) -> None:
    found = coverage(document_named(name))
    assert found is not None
    assert label in {each.label for each in found.encoders[line]}
