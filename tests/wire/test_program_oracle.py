"""``exec:COMMAND`` is a backend wherever one may be named; no shell sees the command."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from conformance.driver import BackendJudge
from conformance.judging.asking import Settings
from oracles.backend.backend_supervisor import LaunchConfig
from oracles.backend.client import Client
from oracles.backend.loading import close, launch_configs, load_isolated
from oracles.protocol import Unsupported
from oracles.registry import Backend, first_variant
from specs.errors import CastigateError
from specs.selection import case_named
from tests.conformance.processes import ROOT, castigate, run, verdicts

PROGRAM = ROOT / "examples" / "vendor_python" / "program.py"
NAME = f"exec:{shlex.quote(sys.executable)} {shlex.quote(str(PROGRAM))}"
CASE = "onnx-cast:25/float16/int8"
PROTOCOL_LINES = 65


@pytest.fixture
def program() -> Iterator[Backend]:
    backend = load_isolated(NAME, LaunchConfig())
    yield backend
    close(backend)


def test_the_example_program_is_short_and_imports_nothing_of_castigate() -> None:
    text = PROGRAM.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= PROTOCOL_LINES
    assert "oracles" not in text
    assert "specs" not in text


def test_the_example_answers_in_every_shape(program: Backend) -> None:
    backend_judge = BackendJudge(program, {}, Settings())
    for case in (CASE, "onnx-cast:25/int64/float32", "onnx-cast:25/uint8/bool"):
        assert backend_judge.judge(case_named(case)).verdict == "conforms"
    oracle = program.oracle
    for shape in ((), (0,), (2, 0, 3), (2, 3)):
        bits = np.full(shape, 0x3C00, np.uint16)
        answers = oracle.cast(case_named(CASE), bits)
        assert (answers.shape, answers.dtype) == (shape, np.uint8)
        assert (answers == 1).all()


def test_what_the_example_lacks_is_unsupported(program: Backend) -> None:
    with pytest.raises(Unsupported, match="numpy has no bfloat16"):
        program.oracle.cast(case_named("onnx-cast:25/bfloat16/int8"), np.zeros(1, np.uint16))
    with pytest.raises(Unsupported, match="astype takes no "):
        program.oracle.cast(
            case_named("pypto-cast:seed/float32/int32/mode:CAST_FLOOR"), np.zeros(1, np.uint32)
        )
    assert not hasattr(program.oracle, "bitcast")


def test_a_road_names_what_the_answers_depend_on(program: Backend) -> None:
    client = Client(program)
    early, late, other = (
        client.road(case_named(case))
        for case in (
            "onnx-cast:13/float32/float16",
            "onnx-cast:25/float32/float16",
            "pypto-cast:seed/float32/float16/mode:CAST_RINT",
        )
    )
    assert early == late != other
    assert not client.road(case_named("onnx-cast:25/float32/bfloat16"))


def test_two_programs_are_not_variants_of_each_other() -> None:
    assert not first_variant([NAME, "exec:./other"], "exec:./other")


def test_explain_and_backends_accept_a_program() -> None:
    code, out, err = castigate("explain", CASE, "0x3c00", f"--backend={NAME}", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["answers"] == {NAME: "0x01"}
    code, out, err = castigate("backends", NAME, "--json")
    assert (code, err) == (0, "")
    backend = json.loads(out)
    assert backend["version"] == np.__version__
    assert backend["operations"] == ["cast", "quantize", "sweep"]
    assert backend["claims"] == ["onnx-cast", "onnx-quantize-linear"]
    assert "float16" in backend["dtypes"]


@pytest.mark.nightly
def test_run_at_full_tier_and_pytest_accept_a_program(tmp_path: Path) -> None:
    options = (f"--backend={NAME}", "--document=onnx-cast:25", "--source=uint16", "--target=uint8")
    assert run(tmp_path / "run", *options, "--tier=full") == 0
    assert verdicts(tmp_path / "run") == {"onnx-cast:25/uint16/uint8": "conforms"}
    command = [sys.executable, "-m", "pytest", "conformance", f"--backend={NAME}", "-q"]
    done = subprocess.run(
        [*command, "-k", f"{CASE} or invariances/float16/int8", "-p", "no:cacheprovider"],
        cwd=ROOT,
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


REFUSALS = {
    "exec:": "write exec:COMMAND, for instance exec:./vendor",
    "exec: ": "write exec:COMMAND, for instance exec:./vendor",
    "exec:'./vendor": "No closing quotation; quote it as for a shell",
    "exec:./no-such-vendor --fast": "./no-such-vendor does not exist; give a program's path",
    "exec:/etc/passwd": "/etc/passwd is not an executable file; give a program's path",
    "exec:true": " ended by itself with code 0 before its first task",
    "exec:cat": (
        ": its hello is not an answer of the protocol (header: the member `answer` is missing)"
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_an_unusable_command_is_one_line(name: str) -> None:
    with pytest.raises(CastigateError) as caught:
        load_isolated(name, LaunchConfig(seconds=20))
    message = str(caught.value)
    assert message.startswith(f"backend `{name}`")
    assert message.endswith(REFUSALS[name])
    assert message.isprintable()


def test_no_shell_sees_the_command(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with pytest.raises(CastigateError):
        load_isolated(f"exec:true; touch {mark}", LaunchConfig(seconds=20))
    with pytest.raises(CastigateError):
        load_isolated(f"exec:true $(touch {mark}) > {mark}", LaunchConfig(seconds=20))
    assert not mark.exists()


def test_a_program_whose_interpreter_does_not_exist_is_refused(tmp_path: Path) -> None:
    broken = tmp_path / "broken vendor"
    broken.write_text("#!/no/such/python\n")
    broken.chmod(0o755)
    with pytest.raises(CastigateError, match=r"ended by itself with code 1 .*No such file"):
        load_isolated(f"exec:{shlex.quote(str(broken))}", LaunchConfig(seconds=20))


def test_the_option_python_is_refused_for_a_program() -> None:
    with pytest.raises(CastigateError, match="a program has no Python; name its interpreter"):
        launch_configs([NAME], [f"{NAME}=/bin/sh"])
