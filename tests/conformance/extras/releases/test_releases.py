"""Releases of a framework: ranges, environments, and the first that answers otherwise."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from math import ceil, log2
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement
from packaging.version import Version

from conformance.extras.releases import bisect, environments
from conformance.extras.releases.bisect import (
    ReleaseAnswer,
    answer_of_release,
    first_change,
    same_result,
)
from conformance.extras.releases.environments import Environments, releases, requirements_of
from conformance.extras.releases.release_changes import (
    change_of_answers,
    change_of_results,
    given_of,
)
from reports.changes.words import screen
from specs.cases import Case
from specs.errors import CastigateError
from specs.questions import read_question
from specs.selection import case_named
from tests.conformance.processes import castigate

FRAME = Requirement("frame>=1.2")
OFFERED = ["2.0", "1.10.1", "1.10.0", "1.9", "1.1", "0.5", "2.1rc1"]


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "_offered", lambda package: list(OFFERED))


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("1.9..1.10", ["1.9", "1.10.0", "1.10.1"]),
        ("..1.9", ["1.9"]),
        ("1.10..", ["1.10.0", "1.10.1", "2.0"]),
        ("..", ["1.9", "1.10.0", "1.10.1", "2.0"]),
        ("0..1.1", ["0.5", "1.1"]),
        ("1.10.0, 0.1", ["0.1", "1.10.0"]),
        ("1.9", ["1.9"]),
    ],
)
def test_a_range_or_a_list_names_releases(offered: None, wanted: str, expected: list[str]) -> None:
    assert releases(FRAME, wanted) == expected


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("3..", "the package index offers no release of frame in 3.."),
        ("1.x..", "`1.x` is not a version; write 1.28..1.32, or 1.28.0,1.29.1"),
        ("", "`` is not a version"),
    ],
)
def test_a_range_without_releases_is_one_line(offered: None, wanted: str, message: str) -> None:
    with pytest.raises(CastigateError) as error:
        releases(FRAME, wanted)
    assert message in str(error.value)


def test_only_backends_of_a_package_index_have_releases() -> None:
    assert requirements_of("ort:folded")[0].name == "onnxruntime"
    assert [each.name for each in requirements_of("onnx")] == ["onnx", "ml_dtypes"]
    for name in ("reference", "pypto", "my.py:Mine"):
        with pytest.raises(CastigateError, match="has no releases in a package index"):
            requirements_of(name)


@given(st.integers(2, 200), st.data())
def test_the_first_change_is_found_in_as_many_questions_as_a_bisection_has(
    count: int, data: st.DataObject
) -> None:
    known = [str(number) for number in range(count)]
    change = data.draw(st.integers(1, count))
    asked: list[str] = []

    def answer(release: str) -> bool:
        asked.append(release)
        return int(release) >= change

    found = first_change(known, answer, answer(known[-1]))
    assert found == ((str(change - 1), str(change)) if change < count else None)
    # The newest one is installed, so that it needs no environment.
    assert len(asked) - 1 <= ceil(log2(count)) + 1


def write_wheel(folder: Path, name: str, version: str, requires: Sequence[str] = ()) -> None:
    """Write a wheel of one empty module."""
    info = f"{name}-{version}.dist-info"
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Dist: {each}" for each in requires]
    with ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{name}.py", "")
        archive.writestr(f"{info}/METADATA", "\n".join([*lines, ""]))
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")


def output_of(python: str, code: str) -> str:
    done = subprocess.run([python, "-P", "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Environments:
    """Environments of a framework whose wheels come from a folder."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for version in ("1.2", "1.3"):
        write_wheel(wheels, "frame", version)
        write_wheel(wheels, "tools", version)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setattr(environments, "OF_THE_SERVER", ())
    monkeypatch.setattr(environments, "_pins_but", lambda framework: ["tools==1.2"])
    monkeypatch.setattr(environments.shutil, "which", lambda name: None)
    monkeypatch.setattr(
        environments, "requirements_of", lambda backend: [FRAME, Requirement('tools; extra == "x"')]
    )
    return Environments("frame", tmp_path / "environments")


VERSIONS = """\
from importlib.metadata import version
import oracles
print(version("frame"), version("tools"), oracles.__file__)
"""


@pytest.mark.nightly
def test_an_environment_has_one_release_and_this_castigate_and_is_kept(
    frames: Environments,
) -> None:
    python = frames.python("1.3")
    frame, tools, where = output_of(python, VERSIONS).split()
    assert (frame, tools) == ("1.3", "1.2")
    assert Path(where).is_relative_to(Path(python).parents[1])
    assert frames.made == ["1.3"]
    marker = Path(python).parents[1] / "marker"
    marker.touch()
    assert frames.python("1.3") == python
    assert marker.exists()
    assert frames.made == ["1.3"]
    # An environment is made anew if making it was interrupted.
    (Path(python).parents[1] / environments.COMPLETE).unlink()
    assert frames.python("1.3") == python
    assert not marker.exists()


@pytest.mark.nightly
def test_a_release_that_cannot_be_installed_is_one_line(frames: Environments) -> None:
    with pytest.raises(CastigateError) as error:
        frames.python("9")
    assert str(error.value).startswith("no environment of frame==9: ")
    assert "\n" not in str(error.value)
    assert not [*frames.folder.glob(f"*/{environments.COMPLETE}")]


@pytest.mark.parametrize("has_uv", [False, True])
def test_an_environment_that_cannot_be_created_is_one_line(
    frames: Environments, monkeypatch: pytest.MonkeyPatch, has_uv: bool
) -> None:
    def fails(*words: object, **options: object) -> None:
        raise subprocess.CalledProcessError(1, ["ensurepip"])

    monkeypatch.setattr(environments.shutil, "which", lambda name: name if has_uv else None)
    monkeypatch.setattr(environments.subprocess, "run", fails)
    monkeypatch.setattr(environments.venv, "create", fails)
    with pytest.raises(CastigateError, match=r"^no environment in .*ensurepip.* exit status 1\.$"):
        frames.python("1.3")


def test_everything_that_is_installed_here_is_pinned_but_the_framework() -> None:
    names = {each.partition("==")[0] for each in environments._pins_but("ONNX")}
    assert {"numpy", "pydantic"} <= names
    assert not {"onnx", "castigate"} & names


KNOWN = [f"1.{minor}.0" for minor in range(20, 33)]


@pytest.mark.parametrize(
    ("change", "shown", "last"),
    [
        ("1.29.0", ["1.28.0", "1.29.0"], "the first release with the change: onnxruntime 1.29.0"),
        ("2.0", ["1.20.0", "1.32.0"], "nothing changed from onnxruntime 1.20.0 to 1.32.0"),
    ],
)
def test_bisect_shows_both_answers_and_the_script(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, change: str, shown: list[str], last: str
) -> None:
    monkeypatch.setattr(environments, "_offered", lambda package: KNOWN)
    monkeypatch.setattr(bisect, "_installed", lambda package: "1.32.0")
    # The version stands in for the path of a Python.
    monkeypatch.setattr(Environments, "python", lambda self, version: version)

    def answered(
        case: Case, inputs: list[str], backend: str, python: str | None, seconds: float
    ) -> ReleaseAnswer:
        gives = "0x1" if Version(python or "1.32.0") >= Version(change) else "0x0"
        return ReleaseAnswer([gives], (f"{inputs[0]} gives {gives}",), f"print({python!r})")

    monkeypatch.setattr(bisect, "answer_of_release", answered)
    question = ("onnx-cast:25/float8e5m2/bool", "0x80", "--backend=ort")
    code, out, err = castigate("bisect", *question, f"--environments={tmp_path}")
    lines = out.splitlines()
    assert code == 0
    assert lines[0] == "onnx-cast:25/float8e5m2/bool on ort, 13 releases from 1.20.0 to 1.32.0"
    assert [line.split()[0] for line in lines[1:3]] == shown
    assert lines[-1].startswith(last)
    assert ("reproduce" in out) == (change == "1.29.0")
    assert ("\n  worse: now wrong; before: right\n" in out) == (change == "1.29.0")
    assert err.count("castigate: asking onnxruntime") <= ceil(log2(len(KNOWN))) + 2


def test_without_inputs_releases_that_answer_otherwise_differ_though_neither_claims_the_document(
    tmp_path: Path,
) -> None:
    wrong = """\
from conformance.families.reference import Reference


class Even(Reference):
    claims = ("pypto-cast",)

    def cast(self, case, bits):
        return super().cast(case, bits) & 0xFE


class Zero(Even):
    def cast(self, case, bits):
        return super().cast(case, bits) * 0
"""
    (tmp_path / "wrong.py").write_text(wrong)
    [case] = read_question(["onnx-cast", "float16", "int8"]).cases
    even, again, zero = (
        answer_of_release(case, [], f"{tmp_path / 'wrong.py'}:{name}", None, 60.0)
        for name in ("Even", "Even", "Zero")
    )
    assert even.compared == again.compared
    assert even.compared[0] == zero.compared[0] == "differs"
    assert even.compared != zero.compared


def test_bisect_wants_a_document_and_a_backend_with_releases() -> None:
    code, out, err = castigate("bisect", "float32", "int8", "1", "--backend=ort")
    assert (code, out) == (2, "")
    assert "name the document too, as in " in err
    code, _, err = castigate("bisect", "onnx-cast/fp32/s8", "1", "--backend=reference")
    assert code == 2
    assert "has no releases in a package index" in err


BOOL = "onnx-cast:25/float8e5m2/bool"
NAN = "onnx-cast:25/float32/int8"
BITS = "wasm-reinterpret:3.0/float64/int64/shape:scalar"


@pytest.mark.parametrize(
    ("name", "given", "before", "now", "is_claimed", "kind", "says"),
    [
        (BOOL, "0x80", "0x0", "0x1", True, "worse", "now wrong; before: right"),
        (BOOL, "0x80", "0x1", "0x0", True, "better", "no longer wrong; now: right"),
        (BOOL, "0x80", {"error": "no"}, "0x0", True, "better", "no longer wrong; now: right"),
        (BOOL, "0x80", "0x0", {"crashed": "SIGSEGV"}, True, "worse", "now wrong; before: right"),
        (BOOL, "0x80", "0x0", {"unsupported": "no"}, True, "unsupported", "before: right"),
        (BOOL, "0x80", {"unsupported": "no"}, "0x0", True, "supported", "now: right"),
        (BOOL, "0x80", {"unsupported": "no"}, "0x1", True, "worse",
            "now wrong; before: unsupported"),
        (BOOL, "0x80", "0x0", "0x1", False, "otherwise",
            "other answers to documents that it does not claim"),
        (NAN, "0x7fc00000", "0x00", "0x80", True, "otherwise",
            "before: an allowed answer; now: another allowed answer"),
        (BITS, "0x0000000000000001", {"shape": [], "bits": ["0x0000000000000001"]},
            {"shape": [], "bits": ["0x0000000000000002"]}, True, "worse",
            "now wrong; before: right"),
    ],
)  # fmt: skip
def test_bisect_judges_a_changed_answer_in_the_words_of_an_upgrade(
    name: str, given: str, before: Any, now: Any, is_claimed: bool, kind: str, says: str
) -> None:
    case = case_named(name)
    inputs = given_of(case, [given])
    found = change_of_answers(
        case, "ort", ("1.0", "1.1"), inputs, ([before], [now]), is_claimed=is_claimed
    )
    [change] = found.changes
    assert (change.kind, change.says, found.same) == (kind, says, 0)
    assert change.example is not None
    assert change.example.given.startswith(("0x", "shape []: 0x"))
    alike = change_of_answers(
        case, "ort", ("1.0", "1.1"), inputs, ([now], [now]), is_claimed=is_claimed
    )
    assert (alike.changes, alike.same) == ((), 1)


def test_of_several_changed_inputs_one_that_is_worse_decides() -> None:
    inputs = ["0x3c", "0x80"]
    answers = ["0x0", "0x0"], ["0x1", "0x1"]
    found = change_of_answers(
        case_named(BOOL), "ort", ("1.0", "1.1"), inputs, answers, is_claimed=True
    )
    [change] = found.changes
    assert (change.kind, change.inputs) == ("worse", 2)
    assert str(change.example) == "0x80 (-0): 0x0 (0) → 0x1 (1)"


FREE = """\
import numpy as np
from conformance.families.reference import Reference


class Old(Reference):
    pass


class New(Old):
    def quantize(self, case, tensors):
        found = dict(super().quantize(case, tensors))
        nan = np.isnan(tensors["x"].view(np.float32))
        found["y"] = np.where(nan, found["y"] ^ np.uint8(1), found["y"])
        return found


class Reworded(Old):
    def quantize(self, case, tensors):
        raise ValueError(type(self).__name__)


class Otherwise(Reworded):
    pass
"""
QUANTIZE = "onnx-quantize-linear:25/float32/int8/scale:float32/form:tensor"


def test_without_inputs_bisect_judges_and_says_a_change_as_runs_are_compared(
    tmp_path: Path,
) -> None:
    (tmp_path / "free.py").write_text(FREE)
    case = case_named(QUANTIZE)
    old, new, error, other_error = (
        answer_of_release(case, [], f"{tmp_path / 'free.py'}:{name}", None, 60.0)
        for name in ("Old", "New", "Reworded", "Otherwise")
    )
    assert old.compared[0] == new.compared[0] == "conforms"
    assert not same_result(old, new)
    assert same_result(old, old)
    assert error.compared != other_error.compared
    assert same_result(error, other_error)  # No sentence of an error is part of a comparison.
    assert old.judgement is not None
    assert new.judgement is not None
    found = change_of_results(case, "ort", ("1.0", "1.1"), (old.judgement, new.judgement))
    heading, change, example, *_ = screen([found], None)
    assert heading == "ort 1.1, since 1.0: 1 otherwise, 0 cases as before"
    assert change == "  otherwise: before: an allowed answer; now: another allowed answer"
    assert "NaN" in example
