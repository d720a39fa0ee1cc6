"""The data release of vectors: packed alike each time, and a peer that differs is told."""

from __future__ import annotations

import lzma
import tarfile
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from conformance.extras.vectors.command import LIMIT, selected_cases, write_vectors
from conformance.extras.vectors.index import VectorIndex
from lab.truths.questions import Answers, Patterns, Question
from lab.vectors.peers import compare_files, rows_of
from lab.vectors.release import NAME, pack, released_cases, write_release

PAIR = [("float16", "float8e4m3fn")]


class MlDtypesLike:
    """Answers from float16 to e4m3fn by ml_dtypes; one input may be answered otherwise."""

    name = "like ml_dtypes"
    package = "ml_dtypes"
    most_inputs = None

    def __init__(self, wrong: int | None = None) -> None:
        self.wrong = wrong

    def version(self) -> str:
        return "0"

    def can_answer(self, question: Question) -> bool:
        return question.rounding == "nearest-even" and question.overflow == "ieee"

    def answer(self, question: Question, patterns: Patterns) -> Answers:
        floats = patterns.view(np.float16)
        with np.errstate(all="ignore"):
            codes = floats.astype(ml_dtypes.float8_e4m3fn).view(np.uint8)
        if self.wrong is not None:
            codes = np.where(patterns == self.wrong, codes ^ 1, codes).astype(np.uint8)
        return Answers(codes, np.isfinite(floats))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, VectorIndex]:
    folder = tmp_path_factory.mktemp("vectors")
    cases = selected_cases(["onnx-cast"], PAIR)
    return folder, write_vectors(folder, cases, LIMIT, 1, with_headers=False)


def test_a_peer_that_agrees_has_no_failure(written: tuple[Path, VectorIndex]) -> None:
    found = compare_files(*written, MlDtypesLike())
    assert found.files >= 1
    assert found.answers > 300
    assert found.failures == []


def test_a_peer_that_differs_is_told_with_file_and_input(written: tuple[Path, VectorIndex]) -> None:
    found = compare_files(*written, MlDtypesLike(wrong=0x3C00))
    assert len(found.failures) == 0  # 1.0 lies within an interval, and only ends are asked
    rows = rows_of(written[0] / next(each.file for each in written[1].files), 8)
    end = int(rows[40, 1])
    found = compare_files(*written, MlDtypesLike(wrong=end))
    assert found.failures
    assert all(f"{end:#x}: like ml_dtypes 0x" in each for each in found.failures)


def test_a_release_is_the_same_bytes_twice(tmp_path: Path) -> None:
    cases = selected_cases(["onnx-cast"], PAIR)
    packed = [tmp_path / f"{name}.tar.xz" for name in ("one", "two")]
    for each in packed:
        write_release(_folder(tmp_path, each), cases, each)
    assert packed[0].read_bytes() == packed[1].read_bytes()
    with lzma.open(packed[0]) as stream, tarfile.open(fileobj=stream) as archive:
        names = archive.getnames()
        entries = archive.getmembers()
    assert all(name.startswith(f"{NAME}/") for name in names)
    inside = {name.removeprefix(f"{NAME}/") for name in names}
    assert {"README.md", "LICENSE", "MANIFEST.json", "SHA256SUMS", "index.json"} <= inside
    assert {(each.mtime, each.uid, each.uname) for each in entries} == {(0, 0, "")}


def _folder(tmp_path: Path, packed: Path) -> Path:
    parent = tmp_path / packed.name.partition(".")[0]
    parent.mkdir()
    return parent / NAME


def test_small_floats_of_wide_targets_are_left_to_documents() -> None:
    cases = released_cases()
    wide = [case for case in cases if (case.source, case.target) == ("float32", "float16")]
    assert {case.document for case in wide} >= {"ieee-casts", "onnx-cast", "numpy-astype"}
    assert "small-floats" not in {case.document for case in wide}
    assert any(case.document == "small-floats" and case.target == "float8e5m2" for case in cases)


def test_pack_keeps_what_it_packs(tmp_path: Path) -> None:
    folder = tmp_path / "some"
    (folder / "casts/a/float32/float16").mkdir(parents=True)
    (folder / "casts/a/float32/float16/x.txt").write_text("vectors\n")
    pack(folder, tmp_path / "some.tar.xz")
    with lzma.open(tmp_path / "some.tar.xz") as stream, tarfile.open(fileobj=stream) as archive:
        content = archive.extractfile("some/casts/a/float32/float16/x.txt")
        assert content is not None
        assert content.read() == b"vectors\n"
