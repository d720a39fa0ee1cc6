"""Cached results are used; a damaged or unusable cache is not an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from specs.errors import DocumentError
from specs.loader import DOCUMENTS
from specs.model import yaml_file
from specs.model.cache import cache_entry
from specs.model.yaml_file import check_cached, parse_yaml, read_yaml

SHIPPED = DOCUMENTS / "pypto_cast.yaml"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "castigate" / "yaml"


def test_a_cached_file_reads_as_the_parsed_one(folder: Path) -> None:
    parsed = read_yaml(SHIPPED)
    [entry] = folder.iterdir()
    before = entry.stat().st_mtime_ns
    assert read_yaml(SHIPPED) == parsed
    assert [entry.stat().st_mtime_ns] == [before]
    assert parsed.line(("versions",)) > 1


def test_a_cached_file_is_not_parsed_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = read_yaml(SHIPPED)
    monkeypatch.setattr(yaml_file, "parse_yaml", None)
    assert read_yaml(SHIPPED) == parsed


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"data": 1}', b"\xff"])
def test_a_damaged_entry_is_replaced(folder: Path, damage: bytes) -> None:
    parsed = read_yaml(SHIPPED)
    [entry] = folder.iterdir()
    whole = entry.read_bytes()
    entry.write_bytes(damage)
    assert read_yaml(SHIPPED) == parsed
    assert entry.read_bytes() == whole


def test_an_entry_with_other_rules_is_found(folder: Path) -> None:
    read_yaml(SHIPPED)
    check_cached(SHIPPED)
    [entry] = folder.iterdir()
    entry.write_text(entry.read_text().replace('"required"', '"recommended"', 1))
    assert read_yaml(SHIPPED) != parse_yaml(SHIPPED, SHIPPED.read_text())
    with pytest.raises(DocumentError, match=r"json: it is not what pypto_cast\.yaml says; remove"):
        check_cached(SHIPPED)


def test_a_folder_that_cannot_be_written_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert read_yaml(SHIPPED).data["document"] == "pypto-cast"


def test_an_entry_that_cannot_be_written_whole_leaves_no_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError("no space left")

    entry = cache_entry("yaml", b"a")
    with pytest.raises(TypeError):
        entry.write([1, object()])
    monkeypatch.setattr("specs.model.cache.os.replace", fails)
    entry.write([1])
    assert [*folder.iterdir()] == []


def test_other_inputs_have_another_entry(folder: Path) -> None:
    entries = {cache_entry("yaml", *inputs).path for inputs in ([b"ab"], [b"a", b"b"], [b"ba"])}
    assert len(entries) == 3


def test_a_file_of_the_user_is_not_kept(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.yaml"
    copy.write_bytes(SHIPPED.read_bytes())
    assert read_yaml(copy).data == read_yaml(SHIPPED).data
    assert len([*folder.iterdir()]) == 1
