"""Attempts to pass a gate by cheating, each of which the gate or ``castigate verify`` detects."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Tree

import pytest

from conformance.running.program_identity import file_digests
from reports.gate.canonical_json import canonical_bytes
from reports.gate.certificate import folder_digests, with_digest, without_seals
from reports.gate.outputs import REQUIREMENTS
from tests.conformance.processes import castigate

CHEATS = "tests/conformance/data/cheats.py"
SETTINGS = """\
policy: few
title: Few casts
documents: ['pypto-cast:seed']
levels: [required, recommended]
tier: quick
max-examples: 20
may-be-unsupported: ['**']
"""
CASES = """\
cases:
  - match:
    - 'pypto-cast:seed/float16/float32'
    - 'pypto-cast:seed/float16/int8/mode:CAST_RINT'
"""
"""Casts that the cheats offer."""
POLICY = SETTINGS + CASES
SEED = "77"
ACCEPTED = """\
accepted:
  - cases: ['**']
    rule: clamp
    reason: known
    expires: '2020-01-31'
"""


def gate(folder: Path, backend: str) -> tuple[int, str, str]:
    asked = (f"--backend={CHEATS}:{backend}", f"--policy={written(folder)}", "--jobs=1")
    return castigate("gate", *asked, f"--out={folder / 'gate'}")


def written(folder: Path, policy: str = POLICY) -> Path:
    file = folder / "policy.yaml"
    file.write_text(policy)
    return file


def resealed(folder: Path, /, **changes: Any) -> None:
    """Change a certificate, and give it the digest of its new content."""
    file = folder / "certificate.json"
    content = without_seals(json.loads(file.read_bytes())) | changes
    file.write_bytes(canonical_bytes(with_digest(content)))


def refusal(folder: Path) -> str:
    """The one line with which `verify` refuses a certificate."""
    code, out, err = castigate("verify", str(folder))
    assert (code, err.count("\n")) == (1, 1), err
    assert out.endswith("does not hold\n")
    return err


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a gate that passed."""
    folder = tmp_path_factory.mktemp("certified")
    code, out, err = gate(folder, "WrongInRowsLater")
    assert code == 0, out + err
    return folder / "gate"


@pytest.fixture
def copied(certified: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(certified, tmp_path / "gate"))


def test_rows_that_are_wrong_only_after_the_gate_are_found_by_a_replay(certified: Path) -> None:
    asked = ("verify", str(certified), "--replay=4", "--seed=3", "--jobs=1")
    code, out, _ = castigate(*asked)
    assert code == 0, out
    code, _, err = castigate(*asked, env={"CHEATS_SWITCH": "1"})
    assert code == 1
    assert "invariances/float16/" in err
    assert "conforms was certified, with fresh inputs it is violates" in err


def test_a_backend_that_asks_for_few_shapes_is_asked_all_of_them(tmp_path: Path) -> None:
    code, out, _ = gate(tmp_path, "SaysThatItCompiles")
    assert (code, "depends on layout" in out) == (1, True)
    certificate = json.loads((tmp_path / "gate" / "certificate.json").read_bytes())
    assert certificate["program"]["hello"]["compiles_shapes"]


@pytest.mark.ci_runs_one_of(2)
@pytest.mark.parametrize("backend", ["WrongInRows", "OverwritesItsInputs"])
def test_a_backend_that_is_wrong_in_some_requests_fails(backend: str, tmp_path: Path) -> None:
    code, out, err = gate(tmp_path, backend)
    assert code == 1, err
    assert out.splitlines()[0].startswith("FAIL: ")


@pytest.mark.parametrize("name", ["run/log.txt", "run/more", "baseline/run.json"])
def test_a_file_that_was_added_to_the_run_is_named(name: str, copied: Path) -> None:
    (copied / name).parent.mkdir(exist_ok=True)
    (copied / name).write_text("x")
    assert f"{copied / name} is not of the gate" in refusal(copied)


ADDED: dict[str, Callable[[Path], object]] = {
    "a link to a folder": lambda path: path.symlink_to(path.parent.parent / "run"),
    "a link to a file": lambda path: path.symlink_to(path.parent / "index.html"),
    "an empty folder": lambda path: path.mkdir(),
    "a FIFO": os.mkfifo,
}


@pytest.mark.parametrize("kind", ADDED)
def test_what_is_no_file_and_was_added_to_the_report_is_named(kind: str, copied: Path) -> None:
    ADDED[kind](path := copied / "report" / "more.html")
    assert f"{path} is not of the gate" in refusal(copied)


FROM_INT64 = """\
cases:
  - match: [pypto-cast:seed/int64/float32/mode:CAST_RINT]
"""
ONE_CASE = f"seed: {SEED}\n{FROM_INT64}"


KNOWS = f"--backend={CHEATS}:KnowsTheBaseline"


@pytest.fixture(scope="module")
def of_one_case(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A gate of a backend that is right only on the inputs of its seed, so it looks right."""
    folder = tmp_path_factory.mktemp("baseline")
    asked = (KNOWS, f"--policy={written(folder, SETTINGS + ONE_CASE)}", "--jobs=1")
    out = folder / "gate"
    code, text, err = castigate("gate", *asked, f"--out={out}", env={"CHEATS_SEED": SEED})
    assert code == 0, text + err
    return out


def test_a_replay_of_the_only_case_asks_fresh_inputs(of_one_case: Path) -> None:
    replay = ("verify", str(of_one_case), "--replay=1", "--seed=5", "--jobs=1")
    code, _, err = castigate(*replay, env={"CHEATS_SEED": SEED})
    assert code == 1
    assert "conforms was certified, with fresh inputs it is violates" in err


def test_a_known_divergence_passes_and_a_replay_holds_it_to_what_it_was(tmp_path: Path) -> None:
    asked = (f"--backend={CHEATS}:OneUnitLower", "--jobs=1")
    policy, before = written(tmp_path, SETTINGS + ONE_CASE), tmp_path / "before"
    assert castigate("gate", *asked, f"--policy={policy}", f"--out={before}")[0] == 1
    policy, out = written(tmp_path, f"{SETTINGS}{FROM_INT64}only-new: true\n"), tmp_path / "gate"
    compared = (f"--policy={policy}", f"--baseline={before / 'run'}", f"--out={out}")
    code, text, err = castigate("gate", *asked, *compared)
    assert (code, text.startswith("pass: ")) == (0, True), text + err
    replay = ("verify", str(out), "--replay=2", "--seed=5", "--jobs=1")
    code, text, err = castigate(*replay)
    assert code == 0, text + err
    code, _, err = castigate(*replay, env={"CHEATS_SWITCH": "1"})
    assert code == 1
    assert "otherwise than certified" in err


@pytest.mark.nightly
def test_a_process_that_dies_now_and_then_only_after_the_gate_is_found(tmp_path: Path) -> None:
    """Starts dozens of processes, each of which dies at its 400th cast."""
    code, text, err = gate(tmp_path, "DiesLater")
    assert code == 0, text + err
    replay = ("verify", str(tmp_path / "gate"), "--replay=9", "--seed=5", "--jobs=1")
    assert castigate(*replay)[0] == 0
    code, _, err = castigate(*replay, env={"CHEATS_SWITCH": "1"})
    assert (code, "and answered when asked again" in err) == (1, True), err


TRUNCATES = """\
policy: tails
title: Tails that truncate
documents: ['pypto-cast:0.2']
levels: [required, recommended]
tier: quick
cases:
  - match: ['pypto-cast:0.2/float16/int8/mode:CAST_RINT/satmode:on']
accepted:
  - cases: [invariances/float16/int8]
    rule: float-to-integer-by-mode
    reason: a tail truncates
    expires: '2999-12-31'
"""


@pytest.mark.parametrize(("backend", "code"), [("WrongTails", 0), ("WrapsInTails", 1)])
def test_an_accepted_rule_of_a_check_excuses_no_other_rule(
    backend: str, code: int, tmp_path: Path
) -> None:
    policy, out = written(tmp_path, TRUNCATES), tmp_path / "gate"
    asked = (f"--backend={CHEATS}:{backend}", f"--policy={policy}", "--jobs=1")
    found, text, err = castigate("gate", *asked, f"--out={out}")
    assert found == code, text + err
    assert ("; clamp" in " ".join(text.split())) == bool(code)
    content = json.loads((out / "certificate.json").read_bytes())
    rules = {each["rule"]: each["standing"] for each in content["divergences"]}
    expected = {"float-to-integer-by-mode": "accepted"}
    assert rules == expected | ({"clamp": "fails"} if code else {})
    assert castigate("verify", str(out))[0] == code


CRASHES = """\
accepted:
  - cases: ['invariances/**']
    verdict: crashed
    reason: it leaks
    expires: '2999-12-31'
"""


@pytest.mark.parametrize(("more", "code"), [("", 1), (CRASHES, 0)])
def test_a_crash_fails_although_the_request_is_answered_when_it_is_repeated(
    more: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHEATS_MARK", str(tmp_path / "mark"))
    policy, out = written(tmp_path, POLICY + more), tmp_path / "gate"
    asked = (f"--backend={CHEATS}:DiesOnce", f"--policy={policy}", "--jobs=1")
    found, text, err = castigate("gate", *asked, f"--out={out}")
    assert found == code, text + err
    said = "died once, and answered when asked again: the process was ended by SIGABRT"
    assert (f"crashed: invariances: crashed: {said}" in " ".join(text.split())) == bool(code)
    [divergence] = json.loads((out / "certificate.json").read_bytes())["divergences"]
    assert (divergence["verdict"], divergence["message"]) == ("crashed", said)
    junit = Tree.fromstring((out / "junit.xml").read_text())
    [test] = [
        each for each in junit.iter("testcase") if each.get("name") == REQUIREMENTS["crashed"]
    ]
    assert (test.find("failure") is not None) == bool(code)
    assert castigate("verify", str(out))[0] == code


@pytest.fixture
def baseline(of_one_case: Path) -> Path:
    return of_one_case / "run"


def test_a_backend_that_knows_the_inputs_of_the_baseline_fails(
    baseline: Path, tmp_path: Path
) -> None:
    policy = written(tmp_path, f"{SETTINGS}{FROM_INT64}only-new: true\n")
    asked = (KNOWS, f"--policy={policy}", "--jobs=1")
    folder = tmp_path / "gate"
    run = (f"--baseline={baseline}", f"--out={folder}")
    code, out, err = castigate("gate", *asked, *run, env={"CHEATS_SEED": SEED})
    certificate = json.loads((folder / "certificate.json").read_bytes())
    kinds = {each["kind"] for each in certificate["failures"]}
    assert (code, out[:6], "divergence" in kinds) == (1, "FAIL: ", True), err
    assert certificate["asked"]["seed"] != int(SEED)
    code, out, err = castigate("verify", str(folder), f"--baseline={baseline}")
    assert (err, "\nbaseline  " in out) == ("", True)
    (baseline / "log.txt").write_text("what its backend wrote to stderr, which no gate copies")
    assert castigate("verify", str(folder), f"--baseline={baseline}")[1:] == (out, "")
    (baseline / "log.txt").unlink()
    code, _, err = castigate("verify", str(folder), f"--baseline={folder / 'run'}")
    assert (code, "it was compared with another run than" in err) == (1, True), err


def test_a_policy_with_the_seed_of_its_baseline_is_refused(baseline: Path, tmp_path: Path) -> None:
    policy = written(tmp_path, f"{SETTINGS}{ONE_CASE}only-new: true\n")
    asked = (f"--backend={CHEATS}:Few", f"--policy={policy}", f"--baseline={baseline}")
    code, _, err = castigate("gate", *asked, f"--out={tmp_path / 'gate'}")
    assert (code, err.count("\n")) == (2, 1)
    assert f"was run with seed {SEED} of policy few, so that its inputs are known; remove" in err


HELLO = {"name": "few", "version": "1", "claims": []}
MALFORMED: list[tuple[Any, str]] = [
    ({"hello": HELLO}, "`files`: Field required"),
    ({"files": {}}, "`hello`: Field required"),
    ({"hello": HELLO, "files": []}, "`files`: Input should be a valid dict"),
    ({"hello": HELLO, "files": {"a": "1"}}, "`files.a`: String should match pattern"),
    ({"hello": HELLO | {"version": 1}, "files": {}}, "`hello.version`: Input should be a valid st"),
    ({"hello": HELLO | {"claims": "x"}, "files": {}}, "`hello.claims`: Input should be a valid li"),
    ({"hello": HELLO | {"more": "x"}, "files": {}}, "`hello.more`: Extra inputs are not permitted"),
]


@pytest.mark.parametrize(("program", "message"), MALFORMED)
def test_a_malformed_program_is_one_line(program: Any, message: str, copied: Path) -> None:
    (copied / "program.json").write_bytes(canonical_bytes(program))
    resealed(copied, program=program, folder=folder_digests(copied))
    code, _, err = castigate("verify", str(copied), "--replay=1")
    assert (code, err.count("\n")) == (1, 1)
    assert f"{copied / 'program.json'}: {message}" in err


def test_a_certificate_with_the_name_of_another_backend_does_not_match(copied: Path) -> None:
    content = json.loads((copied / "certificate.json").read_bytes())
    resealed(copied, backend=content["backend"] | {"name": "torch"})
    assert "backend.name: certified 'torch', but the run gives" in refusal(copied)


def test_a_pass_that_was_edited_into_a_certificate_does_not_match(copied: Path) -> None:
    resealed(copied, answered={"cases": 1, "answered": 1})
    assert castigate("verify", str(copied))[0] == 1


def test_a_linked_folder_is_verified_like_the_folder_itself(copied: Path) -> None:
    (copied.parent / "link").symlink_to(copied)
    assert castigate("verify", str(copied.parent / "link"))[0] == 0
    (copied / "summary.md").unlink()
    (copied / "summary.md").symlink_to(copied / "junit.xml")
    assert "summary.md was altered" in refusal(copied)


@pytest.mark.parametrize("name", ["run", "run/cases.parquet"])
def test_a_run_that_lies_elsewhere_is_refused(name: str, copied: Path) -> None:
    elsewhere = copied.parent / "elsewhere"
    (copied / name).rename(elsewhere)
    (copied / name).symlink_to(elsewhere)
    assert f"{copied / name} is a link; copy the whole folder" in refusal(copied)


LOOK_ALIKE = [
    "Strict",
    "STRICT",
    "strict-",
    "required_only",
    "strict ",
    "\u017ftrict",
    "str\u0456ct",
    "strict\u200b",
]


@pytest.mark.parametrize("name", LOOK_ALIKE)
def test_a_policy_has_no_name_that_looks_like_a_shipped_one(name: str, tmp_path: Path) -> None:
    file = written(tmp_path, POLICY.replace("policy: few", f'policy: "{name}"'))
    code, _, err = castigate(
        "gate", f"--backend={CHEATS}:Few", f"--policy={file}", f"--out={tmp_path / 'gate'}"
    )
    assert (code, err.count("\n")) == (2, 1)
    assert "policy.yaml:1: " in err


def test_a_gate_writes_only_to_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "gate" / "report").mkdir(parents=True)
    (tmp_path / "gate" / "report" / "mine.html").write_text("pass")
    code, _, err = castigate(
        "gate",
        f"--backend={CHEATS}:Few",
        f"--policy={written(tmp_path)}",
        f"--out={tmp_path / 'gate'}",
    )
    assert (code, err.count("\n")) == (2, 1)
    assert f"{tmp_path / 'gate'} is not empty" in err


def test_acceptances_do_not_expire_by_a_replaced_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1")
    file = written(tmp_path, POLICY + ACCEPTED)
    code, _, err = castigate(
        "gate", f"--backend={CHEATS}:Few", f"--policy={file}", f"--out={tmp_path / 'gate'}"
    )
    assert (code, err.count("\n")) == (2, 1)
    assert "SOURCE_DATE_EPOCH replaces the clock; unset it" in err


def test_no_package_of_a_backend_is_executed_beside_the_judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "patches_the_judge"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('executed')")
    (package / "adapter.py").write_text("class Adapter: pass")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert file_digests("patches_the_judge.adapter:Adapter").keys() == {"patches_the_judge.adapter"}
    assert "patches_the_judge" not in sys.modules
