"""A folder's documents are loaded on first access, by the names of their files."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from specs.errors import CastigateError, DocumentError
from specs.loader import Documents, document_and_version, document_named

SMALL = (Path(__file__).parent / "data" / "small.yaml").read_text(encoding="utf-8")


def folder_with(tmp_path: Path, **texts: str) -> Documents:
    for name, text in texts.items():
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    return Documents(tmp_path)


def test_a_document_is_loaded_once_and_only_on_access(tmp_path: Path) -> None:
    documents = folder_with(tmp_path, small=SMALL, broken="- no document")
    assert list(documents) == ["broken", "small"]
    assert "broken" in documents
    assert documents["small"] is documents["small"]
    assert documents["small"].name == "small"
    with pytest.raises(DocumentError, match=r"broken\.yaml:1: a document is a mapping"):
        documents["broken"]


def test_digests_are_those_of_the_files_bytes(tmp_path: Path) -> None:
    documents = folder_with(tmp_path, small=SMALL, broken="- no document\n\n")
    assert documents.digests == {
        "broken": sha256(b"- no document\n\n").hexdigest(),
        "small": documents["small"].digest,
    }


def test_a_file_must_have_the_name_of_its_document(tmp_path: Path) -> None:
    documents = folder_with(tmp_path, two_words=SMALL)
    line = 1 + [text.partition(":")[0] for text in SMALL.splitlines()].index("document")
    with pytest.raises(DocumentError) as caught:
        documents["two-words"]
    assert str(caught.value) == (
        f"{tmp_path / 'two_words.yaml'}:{line}: document `small` is in a file named for"
        " `two-words`; rename the file or the document"
    )


@pytest.mark.parametrize("name", ["onnx-cast", "plain-cast"])
def test_a_document_and_a_yardstick_are_known_by_name(name: str) -> None:
    assert document_named(name).name == name


def test_a_version_may_stand_behind_the_name_of_a_document() -> None:
    document = document_named("onnx-cast")
    assert document_and_version("onnx-cast") == (document, None)
    assert document_and_version("onnx-cast:19") == (document, "19")
    with pytest.raises(CastigateError, match="onnx-cast has no version `20`; it has 1, 6, 9"):
        document_and_version("onnx-cast:20")
