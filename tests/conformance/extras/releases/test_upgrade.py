"""``castigate upgrade``: exit codes, what it says and writes, and what it refuses in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance.extras.releases.environments import Environments
from conformance.extras.releases.upgrade import _earlier_run
from conformance.running.run import RunRequest
from reports.ledger.version_spans import public_version
from reports.run_store.open_run import open_run
from specs.errors import CastigateError
from tests.conformance.processes import castigate

NARROW = ("--document=onnx-cast:25", "--source=uint8", "--target=bool")


def faulty(folder: Path, base: str) -> str:
    """Write a backend of one name, whose answers are those of a class in ``runnable``."""
    (folder / "a.py").write_text(
        f"from tests.conformance.data import runnable\nclass A(runnable.{base}): pass\n"
    )
    return f"--backend={folder}/a.py:A"


@pytest.fixture
def before(tmp_path: Path) -> str:
    """A run of a right backend, on one pair of dtypes."""
    out = str(tmp_path / "before")
    castigate("run", faulty(tmp_path, "Right"), *NARROW, f"--out={out}")
    return out


def test_a_worse_release_exits_with_one_and_every_output_says_so(
    before: str, tmp_path: Path
) -> None:
    backend, out = faulty(tmp_path, "WrongByte"), tmp_path / "out"
    code, printed, _ = castigate(
        "upgrade", backend, f"--baseline={before}", f"--out={out}", env={"GITHUB_ACTIONS": "true"}
    )
    assert code == 1, printed
    assert ": 1 worse, " in " ".join(printed.split())
    [worse] = [line for line in printed.splitlines() if line.startswith("  worse: ")]
    [command] = [line for line in printed.splitlines() if line.startswith("::error ")]
    [result] = json.loads((out / "changes.sarif").read_text())["runs"][0]["results"]
    summary = (out / "summary.md").read_text().replace("\\", "")
    front = (out / "report" / "index.html").read_text()
    said = worse.removeprefix("  worse: ")
    assert "; before: right" in said
    for text in (command, result["message"]["text"], summary, front):
        assert said in text
        assert "0x03 (3): 0x1 (1) → 0x0 (0)" in text
    assert result["level"] == "error"
    assert len(printed.splitlines()) <= 30
    assert {each.name for each in out.iterdir()} == {
        "now", "report", "summary.md", "cases.csv", "junit.xml", "changes.sarif"
    }  # fmt: skip


def test_a_better_release_exits_with_zero(tmp_path: Path) -> None:
    wrong = str(tmp_path / "wrong")
    castigate("run", faulty(tmp_path, "WrongByte"), *NARROW, f"--out={wrong}")
    code, printed, _ = castigate("upgrade", faulty(tmp_path, "Right"), f"--baseline={wrong}")
    assert (code, ": 1 better, " in " ".join(printed.split())) == (0, True)
    assert "0x03 (3): 0x0 (0) → 0x1 (1)" in printed
    assert "::" not in printed.replace("a.py:A", "")


def test_a_release_that_answers_alike_exits_with_zero(before: str, tmp_path: Path) -> None:
    code, printed, _ = castigate("upgrade", faulty(tmp_path, "Right"), f"--baseline={before}")
    assert (code, "nothing changed" in printed) == (0, True)


def test_a_run_without_common_cases_exits_with_three(before: str, tmp_path: Path) -> None:
    code, printed, _ = castigate(
        "upgrade", faulty(tmp_path, "Right"), f"--baseline={before}", "--document=pypto-cast:0.2"
    )
    assert code == 3, printed


def test_the_run_of_an_earlier_release_is_kept(before: str, tmp_path: Path) -> None:
    """No other Python is asked for; a run of another release is not taken for it."""
    store = open_run(before)
    [backend] = store.record.backends
    request = RunRequest((backend.name,), store.record.selection)
    nowhere = Environments("reference", tmp_path / "environments")
    kept = _earlier_run(request, nowhere, public_version(backend.version), before, 1)
    assert kept.record == store.record
    with pytest.raises(CastigateError, match="has no releases in a package index"):
        _earlier_run(request, nowhere, "0.0.1", before, 1)


def test_what_cannot_be_loaded_is_told_before_anything_runs(before: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (tmp_path / "a.py").write_text("class A:\n    def __init__(self): raise ValueError('no')\n")
    backend = f"--backend={tmp_path}/a.py:A"
    code, printed, err = castigate("upgrade", backend, f"--baseline={before}", f"--out={out}")
    assert (code, printed) == (2, "")
    assert "ValueError: no" in err
    assert not out.exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--from=1", "--baseline=x"], "--from and --baseline exclude each other; leave one out"),
        (["--from=1.x.."], "--from `1.x..` is not a version; write one, such as 1.31.1"),
        (["--baseline={before}", "--backend=reference"], "has no backend `reference`; it has "),
        (["--baseline=nowhere"], "nowhere"),
        (
            ["--backend=reference", "--document=cinn-bitcast-calls"],
            "backend `reference` has no ledger to compare with; add --from VERSION or --baseline",
        ),
        (["--from=1.0"], "has no releases in a package index that Castigate knows"),
    ],
)
def test_bad_input_is_one_line(
    before: str, tmp_path: Path, options: list[str], message: str
) -> None:
    named = [each.format(before=before) for each in options]
    backend = [faulty(tmp_path, "Right")] * ("--backend=reference" not in named)
    code, printed, err = castigate("upgrade", *backend, *named)
    assert (code, printed) == (2, "")
    assert message in err
    assert "Traceback" not in err
