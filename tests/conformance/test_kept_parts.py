"""The reference's parts are kept between nights, and are not used if the file is damaged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conformance.running.kept_parts import FILE, KeptParts
from reports.judgement import Judgement
from reports.run_store.record import BackendRecord
from reports.run_store.storage import folder_at
from reports.run_store.store import RunStore, create
from tests.reports.common import record

CASE = "onnx-cast:25/bool/int8/saturate:1"
PARTS = {f"reference/quick/bool-{target}": target for target in ("int8", "int16")}
REFERENCE = (BackendRecord(name="reference", version="1"),)


def store(folder: Path, **changes: Any) -> RunStore:
    return create(str(folder), record(**{"backends": REFERENCE} | changes))


@pytest.fixture
def kept(tmp_path: Path) -> KeptParts:
    """The kept parts of a finished night."""
    kept, night = KeptParts(folder_at(str(tmp_path / "kept"))), store(tmp_path / "first")
    for name in PARTS:
        night.write(name, [Judgement(CASE, "reference", "conforms")])
    kept.keep(night)
    return kept


def test_another_night_of_the_same_options_has_the_parts(kept: KeptParts, tmp_path: Path) -> None:
    kept.restore(second := store(tmp_path / "second"))
    assert second.finished() == {*PARTS}


def test_the_same_parts_make_the_same_file_at_any_time(
    kept: KeptParts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "kept" / FILE
    first = file.read_bytes()
    file.unlink()
    monkeypatch.setattr("time.time", lambda: 1e9)
    again = store(tmp_path / "again")
    for name in PARTS:
        again.write(name, [Judgement(CASE, "reference", "conforms")])
    kept.keep(again)
    assert file.read_bytes() == first


@pytest.mark.parametrize(
    "changes", [{"seed": 1}, {"backends": (BackendRecord(name="ort", version="1"),)}], ids=str
)
def test_a_night_of_other_options_has_none(changes: Any, kept: KeptParts, tmp_path: Path) -> None:
    kept.restore(second := store(tmp_path / "second", **changes))
    assert second.finished() == set()


@pytest.mark.parametrize("place", range(10, 100, 9))
def test_a_damaged_file_is_not_used_and_replaced(
    place: int, kept: KeptParts, tmp_path: Path
) -> None:
    file = tmp_path / "kept" / FILE
    whole = file.read_bytes()
    damaged = bytearray(whole)
    damaged[len(whole) * place // 100] ^= 0xFF
    file.write_bytes(damaged)
    kept.restore(second := store(tmp_path / "second"))
    restored = second.finished()
    for name in PARTS:
        second.write(name, [Judgement(CASE, "reference", "conforms")])
    kept.keep(second)
    # Some bytes of a zip file have no meaning, so a change of them is no damage.
    assert (restored, file.read_bytes()) in [(set(), whole), ({*PARTS}, bytes(damaged))]


def test_a_night_without_the_reference_leaves_the_parts(kept: KeptParts, tmp_path: Path) -> None:
    other = store(tmp_path / "other", backends=(BackendRecord(name="ort", version="1"),))
    kept.keep(other)
    kept.restore(second := store(tmp_path / "second"))
    assert second.finished() == {*PARTS}
