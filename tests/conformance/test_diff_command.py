"""``castigate diff`` on runs of real processes."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from tests.conformance.processes import ONNX, RUNNABLE, backend, castigate

NARROW = (ONNX, "--source=uint8", "--target=bool")
RIGHT, WRONG = f"{RUNNABLE}:Right", f"{RUNNABLE}:WrongByte"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A run of two backends, of which one is wrong on the input 3."""
    out = str(tmp_path_factory.mktemp("runs") / "run")
    castigate("run", backend("Right"), backend("WrongByte"), *NARROW, f"--out={out}")
    return out


def lines(*arguments: str, expected: int) -> list[dict[str, Any]]:
    code, out, err = castigate("diff", "--json", *arguments)
    assert (code, err) == (expected, "")
    return [json.loads(line) for line in out.splitlines()]


def test_two_backends_of_one_run(run: str) -> None:
    found, changed = lines(run, f"--backend={RIGHT}", f"--backend={WRONG}", expected=1)
    assert (found["case"], found["inputs"], found["asked"]) == ("onnx-cast:25/uint8/bool", 1, 256)
    assert (found["right"], found["smallest"], found["answers"]) == ("one", "0x03", ["0x1", "0x0"])
    assert changed["verdicts"] == ["conforms", "violates"]
    assert changed["cases"] == ["onnx-cast:25/uint8/bool"]


def test_of_two_runs_of_one_backend_one_is_better(tmp_path: Path) -> None:
    runs = []
    for base in ("WrongByte", "Right"):
        (tmp_path / "a.py").write_text(
            f"from tests.conformance.data import runnable\nclass A(runnable.{base}): pass\n"
        )
        runs.append(str(tmp_path / base))
        castigate("run", f"--backend={tmp_path}/a.py:A", *NARROW, f"--out={runs[-1]}")
    *_, change = lines(*runs, expected=1)
    assert (change["change"], change["cases"]) == ("better", ["onnx-cast:25/uint8/bool"])
    assert change["example"]["given"] == "0x03 (3)"
    code, out, _ = castigate("diff", *runs)
    # The heading has the path of the backend's file, and may be broken into lines anywhere.
    assert (code, ": 1 better, " in " ".join(out.split())) == (1, True)
    assert lines(runs[0], runs[0], expected=0) == []


def test_two_runs_of_two_backends(run: str, tmp_path: Path) -> None:
    other = str(tmp_path / "other")
    castigate("run", backend("Other"), *NARROW, f"--out={other}")
    names = (f"--backend={WRONG}", f"--backend={RUNNABLE}:Other")
    found, _ = lines(run, other, *names, expected=1)
    assert (found["right"], found["smallest"]) == ("other", "0x03")


def test_a_run_does_not_differ_from_itself(run: str) -> None:
    assert lines(run, run, expected=0) == []


def test_the_table_shows_counts_and_an_example(run: str) -> None:
    code, out, err = castigate("diff", run, f"--backend={RIGHT}", f"--backend={WRONG}")
    assert (code, err) == (1, "")
    assert "onnx-cast:25/uint8/bool" in out
    assert out.splitlines()[-1].endswith(
        "1 case asked of both, 1 with answers kept, 1 difference of answers, 1 of verdicts"
    )


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        ((), "Missing argument '"),
        (("RUN",), "name two with --backend"),
        (("RUN", "--backend=torch", f"--backend={RIGHT}"), "has no backend `torch`; it has"),
        (("RUN", "RUN", "RUN"), "3 runs cannot be compared; give one run and two backends"),
        (("RUN/nothing", "RUN"), "RUN/nothing"),
    ],
)
def test_bad_usage_is_one_line(run: str, arguments: tuple[str, ...], wrong: str) -> None:
    given = [argument.replace("RUN", run) for argument in arguments]
    code, out, err = castigate("diff", *given)
    assert (code, out) == (2, "")
    assert wrong.replace("RUN", run) in err


@pytest.mark.nightly
def test_nothing_is_printed_before_all_arguments_are_checked(run: str, tmp_path: Path) -> None:
    other = str(tmp_path / "other")
    castigate("run", backend("Right"), *NARROW, f"--out={other}")
    code, out, err = castigate("diff", run, other, f"--backend={RIGHT}", f"--backend={WRONG}")
    assert (code, out) == (2, "")
    assert f"{other} has no backend `{WRONG}`" in err


@pytest.mark.nightly
def test_runs_without_a_common_case_exit_with_3(run: str, tmp_path: Path) -> None:
    other = str(tmp_path / "other")
    castigate("run", backend("Right"), ONNX, "--source=uint8", "--target=int8", f"--out={other}")
    code, out, err = castigate("diff", run, other)
    assert (code, err) == (3, "")
    assert "0 cases asked of both" in out


def test_brackets_are_not_markup(run: str, tmp_path: Path) -> None:
    named = tmp_path / "[b]" / "[" / "red]"
    copytree(run, named)
    code, out, err = castigate("diff", str(named), f"--backend={RIGHT}", f"--backend={WRONG}")
    assert (code, err) == (1, "")
    code, out, err = castigate("diff", str(named), str(named))
    assert (code, err) == (0, "")
    assert f"{RIGHT} of {named} and" in out


@pytest.mark.nightly
def test_runs_without_a_common_backend_are_one_line(run: str, tmp_path: Path) -> None:
    other = str(tmp_path / "other")
    castigate("run", "--backend=reference", *NARROW, f"--out={other}")
    code, out, err = castigate("diff", run, other)
    assert (code, out) == (2, "")
    assert "no backend in common" in err
