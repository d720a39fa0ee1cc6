"""The C harness finds public faults of casts from the files alone, and passes right casts."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from pydantic import BaseModel, ConfigDict, Field
from ruamel.yaml import YAML

from conformance.extras.vectors.command import LIMIT, selected_cases, write_vectors
from conformance.extras.vectors.index import VectorIndex

ROOT = Path(__file__).parents[4]
FOLDER = Path(__file__).parent / "public_faults"
HARNESS = ROOT / "examples" / "vectors" / "check.c"
TO_NARROW = 16
"""How much narrower the sources of the narrow files are."""

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no C compiler")


class Fault(BaseModel):
    """A planted fault, and the case whose file shows it; see the head of faults.yaml."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    codec: str
    thread: str
    also: tuple[str, ...] = ()
    wrong: str
    vectors: str
    narrow: str | None = None
    flags: bool = False
    late: bool = False
    inputs: int | None = None
    all_inputs: int | None = Field(None, alias="all-inputs")


class Explained(BaseModel):
    """A fault that no file shows, and why."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    thread: str
    wrong: str
    why: str


class Faults(BaseModel):
    """The content of faults.yaml."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    caught: list[Fault]
    explained: list[Explained]


FAULTS = Faults.model_validate(YAML(typ="safe").load(FOLDER / "faults.yaml"))
NAMES = dict.fromkeys(
    name for each in FAULTS.caught for name in (each.vectors, each.narrow) if name is not None
)


class WordArray(NamedTuple):
    """The parts of a case's name."""

    document: str
    source: str
    target: str
    modes: dict[str, str]

    @property
    def is_sweep(self) -> bool:
        """Whether the harness asks most of 2^32 inputs."""
        return self.source in ("float32", "int32", "uint32")


def words_of(name: str) -> WordArray:
    document, source, target, *modes = name.split("/")
    return WordArray(document, source, target, dict(each.split(":") for each in modes))


class Vectors:
    """Exported files by case, and the harness compiled with the planted codecs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "vectors"
        self.folder.mkdir()
        documents = dict.fromkeys(words_of(name).document for name in NAMES)
        cases = [case for case in selected_cases(documents, ()) if case.id in NAMES]
        self.index: VectorIndex = write_vectors(self.folder, cases, LIMIT, 1, with_headers=False)
        self.harness = folder / "check"
        flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-Wno-unused", f"-I{FOLDER}"]
        sources = [HARNESS, FOLDER / "codec.c"]
        subprocess.run(["gcc", *flags, "-o", self.harness, *sources], check=True)

    def file_of(self, case: str, kind: str = "casts") -> Path:
        return next(
            self.folder / each.file
            for each in self.index.files
            if each.kind == kind and case in each.cases
        )

    def wrong(self, file: Path, codec: str, shift: int = 0) -> int:
        """How many inputs the harness says are wrong, after all of the file."""
        variables = {**os.environ, "CODEC": codec, "SHIFT": str(shift)}
        asked = [self.harness, file]
        done = subprocess.run(asked, capture_output=True, text=True, env=variables)
        found = re.search(r"(\d+) wrong\n\Z", done.stdout)
        assert found is not None, done.stderr
        assert done.returncode == (found[1] != "0")
        return int(found[1])

    def finds_one(self, file: Path, codec: str) -> bool:
        """Whether the harness prints a wrong input; it is stopped at the first."""
        variables = {**os.environ, "CODEC": codec}
        asked = [self.harness, file]
        with subprocess.Popen(asked, stdout=subprocess.PIPE, text=True, env=variables) as process:
            assert process.stdout is not None
            line = process.stdout.readline()
            process.kill()
        return ": input " in line


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Vectors:
    return Vectors(tmp_path_factory.mktemp("vectors"))


def test_there_are_enough_faults_each_of_a_thread_of_its_own() -> None:
    caught, explained = FAULTS.caught, FAULTS.explained
    assert len(caught) >= 22
    assert len(caught) + len(explained) >= 25
    threads = [each.thread for each in (*caught, *explained)]
    assert len(threads) == len({*threads})
    planted = re.findall(r"FAULT\((\w+)\)", (FOLDER / "codec.c").read_text())
    assert sorted(planted) == sorted(["name", *(each.codec for each in caught)])


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(each, id=each.codec, marks=pytest.mark.nightly if each.late else ())
        for each in FAULTS.caught
    ],
)
def test_the_harness_finds_the_fault(vectors: Vectors, fault: Fault) -> None:
    name = fault.narrow or fault.vectors
    file = vectors.file_of(name, "flags" if fault.flags else "casts")
    if words_of(name).is_sweep:
        assert vectors.finds_one(file, fault.codec)
    else:
        shift = TO_NARROW if fault.narrow else 0
        wrong = vectors.wrong(file, fault.codec, shift)
        assert wrong == fault.inputs if fault.inputs else wrong


SWEPT = {
    each: count
    for each in FAULTS.caught
    if words_of(each.vectors).is_sweep
    and (count := each.all_inputs if each.narrow else each.inputs) is not None
}


@pytest.mark.nightly
@pytest.mark.parametrize("fault", [pytest.param(each, id=each.codec) for each in SWEPT])
def test_so_many_of_all_inputs_are_wrong(vectors: Vectors, fault: Fault) -> None:
    assert vectors.wrong(vectors.file_of(fault.vectors), fault.codec) == SWEPT[fault]


def right_codec(words: WordArray) -> str:
    is_plain = words.document.startswith("plain-cast")
    rounding = words.modes.get("round", "toward-zero" if is_plain else "nearest-even")
    overflow = words.modes.get("overflow", "saturate" if is_plain else "inf")
    return f"right {words.source} {words.target} {rounding} {overflow}"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.nightly if words_of(name).is_sweep else ())
        for name in NAMES
    ],
)
def test_the_harness_passes_a_right_cast(vectors: Vectors, name: str) -> None:
    assert vectors.wrong(vectors.file_of(name), right_codec(words_of(name))) == 0


FLAGGED = [name for name in NAMES if name.startswith("ieee-casts") and words_of(name).modes]


@pytest.mark.parametrize("name", FLAGGED)
def test_the_harness_passes_right_flags(vectors: Vectors, name: str) -> None:
    words = words_of(name)
    codec = f"flags {words.source} {words.target} {words.modes['round']}"
    assert vectors.wrong(vectors.file_of(name, "flags"), codec) == 0
