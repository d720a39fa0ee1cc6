"""Pointers from a document to the lines of its page: what they cover, and mistakes in them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from specs.coverage import PageChange, changes, coverage
from specs.errors import DocumentError
from specs.lint import prove
from specs.loader import Document, document_named, documents, load_document
from specs.model.page_lines import Page, Span, digests_of
from tests.specs.broken import lines_of
from tests.specs.paged import DOCUMENT, PAGE, write_paged

SMALL = Path(__file__).parent / "data" / "small.yaml"


def labels(folder: Path, document: str = DOCUMENT, page: str = PAGE) -> dict[int, set[str]]:
    found = coverage(write_paged(folder, document, page))
    assert found is not None
    return {line: {each.label for each in some} for line, some in found.encoders.items()}


def error_of(folder: Path, document: str = DOCUMENT, page: str = PAGE) -> str:
    made = write_paged(folder, document, page)
    with pytest.raises(DocumentError) as caught:
        prove(made)
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(f"{folder / 'paged.yaml'}:")


def test_the_paged_document_holds(tmp_path: Path) -> None:
    assert prove(write_paged(tmp_path)).lines == 10


def test_a_line_repeated_in_another_versions_section_counts(tmp_path: Path) -> None:
    assert labels(tmp_path) == {
        4: {"rule cut", "rule infinity-clamped"},
        5: {"rule cut", "rule infinity-clamped"},
        6: {"rule nan-open"},
        # Version 1 has the rule `cut` and repeats its line; it does not have `infinity-clamped`.
        8: {"rule cut"},
        9: {"rule infinity-open", "conflict note infinity-clamped"},
        10: {"rule nan-open"},
    }


def test_an_excuse_counts_for_repeated_lines(tmp_path: Path) -> None:
    page = PAGE.replace("Version 1", "Version 2")
    document = DOCUMENT.replace("[1, 3, 7]", "[1, 3]")
    prove(write_paged(tmp_path, document, page))


@pytest.mark.parametrize(
    ("old", "new", "at", "says"),
    [
        ("lines: [4-5]", "lines: [4-5, 12-13]", "lines:", "lines 12-13 are outside of page.txt"),
        ("lines: [4-5]", "lines: [2-5]", "lines:", "line 2 of page.txt is blank; begin and end"),
        ("lines: [4-5]", "lines: [5-4]", "lines:", "`5-4` is not a range of lines; write 57"),
        ("lines: [4-5]", "lines: [4-x]", "lines:", "`4-x` is not a range of lines; write 57"),
        ("lines: [4-5]", "lines: true", "lines:", "`True` is not a range of lines; write 57"),
        ("lines: [4-5]", "lines: [5, 9]", "lines:", "section of version 1, which has no such rule"),
        (", lines: 5}", "}", "overflow:", "rule cut: its clause has no `lines`; point at lines"),
        (
            'clause: "version 2, clamped", ',
            "",
            "overflow:",
            "`lines` of an outcome go with a `clause`",
        ),
        ("    lines: none\n", "", "any-tensor:", "tensor rule any-tensor: its clause has no"),
        ("    lines: 6\n", "    lines: none\n", "seed:", "line 6 of page.txt (and 1 more) is not"),
        (
            "lines: 11, reason",
            "lines: 9, reason",
            "- {lines: 9",
            "infinity-open encodes it; remove",
        ),
        (', reason: "headings"', "", "- {lines: [1, 3, 7]", "`reason` is missing"),
        ("[1, 3, 7]", "[]", "- {lines: []", "at least 1 item"),
        ("[1, 3, 7]", "[1, 3, 7, 99]", "- {lines: [1", "lines 99 are outside of page.txt"),
        ("section: 3-6", "section: 3-7", "section: 7-10", "the section 7-10 overlaps another"),
        ("section: 7-10", "section: 7-12", "section:", "lines 7-12 are outside of page.txt, which"),
        ("    section: 3-6\n", "", "2:", "version 2 has no `section`, but other versions do"),
    ],
)
def test_a_mistake_is_one_line_that_says_where(
    tmp_path: Path, old: str, new: str, at: str, says: str
) -> None:
    assert DOCUMENT.count(old) == 1
    text = DOCUMENT.replace(old, new)
    path = tmp_path / "paged.yaml"
    with pytest.raises(DocumentError) as caught:
        prove(write_paged(tmp_path, text))
    line, _, message = str(caught.value).removeprefix(f"{path}:").partition(":")
    assert int(line) in lines_of(text, at), message
    assert says in message
    assert "\n" not in message


def test_a_line_that_nothing_encodes_is_an_error(tmp_path: Path) -> None:
    said = error_of(tmp_path, page=f"{PAGE}A new sentence.\n")
    assert said.startswith("4: line 12 of page.txt is not encoded: no rule points at it; point at")
    assert said.endswith(f"castigate specs --coverage {tmp_path / 'paged.yaml'} shows the page")


def test_an_inherited_rule_whose_line_changed_is_named(tmp_path: Path) -> None:
    head, _, tail = PAGE.rpartition("NaN is open.")
    said = error_of(tmp_path, page=f"{head}NaN is zero.{tail}")
    assert "line 10 of page.txt is not encoded: it replaces line 6, which rule nan-open" in said


def test_lines_without_digests_are_an_error(tmp_path: Path) -> None:
    made = write_paged(tmp_path)
    (tmp_path / "page.txt.sha256").unlink()
    with pytest.raises(DocumentError, match=r"write it by castigate specs page page\.txt > page"):
        prove(made)


def test_a_broken_digest_is_an_error(tmp_path: Path) -> None:
    made = write_paged(tmp_path)
    path = tmp_path / "page.txt.sha256"
    path.write_text(path.read_text().replace("\n\n", "\nx\n"))
    with pytest.raises(
        DocumentError, match=r"page\.txt\.sha256:2: `x` is not the digest of a line"
    ):
        prove(made)


def test_a_document_without_lines_need_not_cover_its_page(tmp_path: Path) -> None:
    shutil.copy(SMALL, tmp_path)
    (tmp_path / "small.txt.sha256").write_text("\n".join(digests_of(PAGE)))
    prove(load_document(tmp_path / SMALL.name))


WITHOUT_THANKS = DOCUMENT.replace('  - {lines: 11, reason: "an acknowledgment"}\n', "")


def write_sister(folder: Path, text: str) -> Document:
    path = folder / "sister.yaml"
    path.write_text(text.replace("document: paged", "document: sister"), encoding="utf-8")
    return load_document(path)


def test_documents_of_one_page_cover_it_together(tmp_path: Path) -> None:
    assert "line 11 of page.txt is not encoded" in error_of(tmp_path, WITHOUT_THANKS)
    write_sister(tmp_path, DOCUMENT)
    prove(write_paged(tmp_path, WITHOUT_THANKS))


def test_a_document_of_another_page_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "other.txt.sha256").write_text("\n".join(digests_of(PAGE)))
    write_sister(tmp_path, DOCUMENT.replace("seed: page.txt", "seed: other.txt"))
    assert "line 11 of page.txt is not encoded" in error_of(tmp_path, WITHOUT_THANKS)


def test_a_document_without_lines_beside_one_with_lines_is_an_error(tmp_path: Path) -> None:
    write_paged(tmp_path)
    sister = write_sister(tmp_path, SMALL.read_text().replace("seed: small.txt", "seed: page.txt"))
    with pytest.raises(DocumentError, match="rule to-integer: its clause has no `lines`"):
        prove(sister)


def test_what_one_document_excuses_another_may_not_encode(tmp_path: Path) -> None:
    pointed = DOCUMENT.replace("lines: [4-5]\n", "lines: [1, 4-5]\n")
    write_paged(tmp_path, pointed.replace("[1, 3, 7]", "[3, 7]"))
    with pytest.raises(DocumentError, match="rule infinity-clamped of paged encodes it; remove it"):
        prove(write_sister(tmp_path, DOCUMENT))


def changed(folder: Path, page: str) -> PageChange | None:
    found = coverage(write_paged(folder))
    assert found is not None
    return changes(found, page)


def test_the_same_page_has_no_changes(tmp_path: Path) -> None:
    assert changed(tmp_path, PAGE) is None
    assert changed(tmp_path, PAGE.replace("\n", "  \r\n")) is None


def test_a_change_of_a_page_names_what_to_check_and_what_moved(tmp_path: Path) -> None:
    page = PAGE.replace("NaN is open.\nVersion 1", "NaN is zero.\nBy the way.\nVersion 1")
    found = changed(tmp_path, page)
    assert found is not None
    assert (found.gone, found.new) == ([Span(6, 6)], [Span(6, 7)])
    assert {(each.label, each.before, each.now) for each in found.moved} == {
        ("section", Span(3, 6), None),
        ("section", Span(7, 10), Span(8, 11)),
        ("rule infinity-open", Span(9, 9), Span(10, 10)),
        ("conflict note infinity-clamped", Span(9, 9), Span(10, 10)),
        ("rule nan-open", Span(6, 6), None),
        ("not-encoded", Span(7, 7), Span(8, 8)),
        ("not-encoded", Span(11, 11), Span(12, 12)),
    }


def test_a_line_put_into_a_range_is_to_be_checked(tmp_path: Path) -> None:
    found = changed(tmp_path, PAGE.replace("cut.\nInf", "cut.\nOr not.\nInf", 1))
    assert found is not None
    now = {each.label: each.now for each in found.moved}
    assert now["rule infinity-clamped"] is None
    assert now["rule nan-open"] == Span(7, 7)
    assert now["section"] == Span(3, 7)


def test_blank_lines_do_not_end_a_range() -> None:
    page = Page("page", digests_of("one\n\ntwo\nthree\nfour\n"))
    assert page.spans([1, 3, 5]) == [Span(1, 3), Span(5, 5)]


def test_digests_are_those_of_lines_without_their_end() -> None:
    assert digests_of("a\r\n \n b \n") == ("ca978112ca1b", "", "cb6f0a6c7a32")


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
def test_everything_with_a_clause_is_an_encoder(name: str, line: int, label: str) -> None:
    found = coverage(document_named(name))
    assert found is not None
    assert label in {each.label for each in found.encoders[line]}
