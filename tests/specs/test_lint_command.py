"""The command `castigate specs lint`: exit codes, one line on stderr, no traceback."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from specs.loader import documents
from tests.conformance.processes import castigate

SMALL = Path(__file__).parent / "data" / "small.yaml"


def lint(*files: Path) -> tuple[int, str, str]:
    return castigate("specs", "lint", *map(str, files))


def test_the_shipped_documents_are_proved() -> None:
    code, out, err = lint()
    assert (code, err) == (0, "")
    assert out.count(" total and unambiguous") == len(documents())
    named = [line.partition(": ")[0] for line in out.splitlines()]
    assert named == list(documents())


def test_a_valid_file_is_reported_with_its_counts() -> None:
    code, out, err = lint(SMALL)
    assert (code, err) == (0, "")
    assert out.startswith("small: 8 cases of 2 versions are total and unambiguous")


@pytest.mark.parametrize(
    ("old", "new", "line_start", "expected"),
    [
        ("      otherwise: toward-zero\n", "", "  to-integer:", "rule to-integer: gap: "),
        ("      nan:       unspecified", "      nann: max", "      nann", "rule to-integer: unk"),
        ("default: 1", "default: 0.2", "  saturate:", "`0.2` is a YAML float"),
        ("operation: cast", "operation: [cast", "seed:", "not YAML: "),
        ("rank: 5-or-more", "rank: [4, 5-or-more]", "  of-more-axes:", "overlap: "),
    ],
    ids=["gap", "unknown class", "float", "not YAML", "tensor overlap"],
)
def test_an_invalid_file_is_one_line_on_stderr(
    tmp_path: Path, old: str, new: str, line_start: str, expected: str
) -> None:
    text = SMALL.read_text(encoding="utf-8").replace(old, new)
    lines = text.splitlines()
    line = next(at for at, text in enumerate(lines, 1) if text.startswith(line_start))
    path = tmp_path / "broken.yaml"
    path.write_text(text, encoding="utf-8")
    code, out, err = lint(SMALL, path)
    assert (code, out) == (2, "")
    assert err.startswith(f"castigate: {path}:{line}: {expected}")
    assert err.endswith("\n")
    assert err.count("\n") == 1


def test_an_error_in_another_file_of_the_page_says_why_that_file_is_read(tmp_path: Path) -> None:
    ours, other = tmp_path / "ours.yaml", tmp_path / "theirs.yaml"
    text = SMALL.read_text(encoding="utf-8")
    ours.write_text(text, encoding="utf-8")
    other.write_text(text.replace("operation: cast", "operation: toast"), encoding="utf-8")
    code, out, err = lint(ours)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"castigate: {other}:")
    assert "(this file is read because it encodes the same page; correct or move it)" in err


@pytest.mark.parametrize("kind", ["FIFO", "device", "link to nothing", "folder"])
def test_what_is_no_file_beside_a_document_is_passed_over(kind: str, tmp_path: Path) -> None:
    ours, other = tmp_path / "ours.yaml", tmp_path / "other.yaml"
    ours.write_text(SMALL.read_text(encoding="utf-8"), encoding="utf-8")
    match kind:
        case "FIFO":
            os.mkfifo(other)
        case "device":
            other.symlink_to("/dev/zero")
        case "link to nothing":
            other.symlink_to(tmp_path / "nothing")
        case _:
            other.mkdir()
    code, out, err = lint(SMALL)
    assert lint(ours) == (code, out.replace(str(SMALL), str(ours)), err)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", None], ids=["empty", "bytes", "absent"])
def test_an_unreadable_file_is_one_line_on_stderr(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "broken.yaml"
    if content is not None:
        path.write_bytes(content)
    code, out, err = lint(path)
    assert (code, out) == (2, "")
    assert err.startswith(f"castigate: {path}:")
    assert err.count("\n") == 1
