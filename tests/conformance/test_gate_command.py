"""``castigate gate`` and ``castigate verify`` as real processes."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import patch
from xml.etree import ElementTree as Tree

import pytest

from conformance.extras.certificate.verify import check_command
from specs.errors import CastigateError
from tests.conformance.data.runnable import RANGES
from tests.conformance.processes import RUNNABLE, castigate

POLICY = """\
policy: small
title: A small one
documents: ['pypto-cast:seed']
levels: [required, recommended]
tier: quick
max-examples: 20
cases:
  - match:
    - 'pypto-cast:seed/float32/float16/mode:{CAST_ODD,CAST_RINT}'
    - 'pypto-cast:seed/int64/float32/mode:CAST_RINT'
"""
VENDOR = """\
import numpy as np

from tests.conformance.data.runnable import {base}


class Vendor({base}):
    name = "vendor"
{body}"""
SPOILT = """\
    version = "2"

    def spoil(self, case, bits, answers):
        answers ^= 1
"""
SPOILT_BY_A_FILE = """\
    def spoil(self, case, bits, answers):
        if __import__("os").path.exists(__file__ + ".spoils"):
            answers ^= 1
"""
FILES = {"certificate.json", "junit.xml", "program.json", "report", "run", "summary.md"}


def vendor(folder: Path, base: str = "Right", body: str = "") -> str:
    file = folder / "vendor.py"
    file.write_text(VENDOR.format(base=base, body=body))
    return f"{file}:Vendor"


def gate(folder: Path, backend: str, *arguments: str, policy: str = POLICY) -> tuple[int, str, str]:
    file = folder / "policy.yaml"
    file.write_text(policy)
    out = f"--out={folder / 'gate'}"
    asked = (f"--backend={backend}", f"--policy={file}", "--jobs=1")
    return castigate("gate", *asked, out, *arguments)


def verify(folder: Path, *arguments: str) -> tuple[int, str, str]:
    return castigate("verify", str(folder / "gate" / "certificate.json"), *arguments)


def certificate(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "gate" / "certificate.json").read_text())
    return content


@pytest.fixture(scope="module")
def passed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("passed")
    sarif = f"--sarif={folder / 'found.sarif'}"
    code, out, err = gate(folder, vendor(folder, body=SPOILT_BY_A_FILE), sarif)
    assert (code, "castigate: " in err) == (0, False), err
    assert out.splitlines()[0].startswith("pass: ")
    return folder


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("failed")
    code, out, _ = gate(folder, vendor(folder, "TiesAway"), f"--sarif={folder / 'found.sarif'}")
    assert code == 1
    told = " ".join(out.split())
    found = certificate(folder)["findings"]
    assert found
    assert all(f" {each['finding']} (" in told for each in found)
    assert len(out.splitlines()) <= 40
    # Where, which input, and what comes out instead of what.
    where = r"FAIL: .* \(not one that castigate ships\) (pypto-cast:seed/\S+: 0x\w+ .*?) gives 0x"
    shown = re.match(where, told)
    assert shown
    assert shown[1] in (folder / "gate" / "summary.md").read_text().replace("\\", "")
    return folder


def test_a_correct_backend_passes(passed: Path) -> None:
    assert {path.name for path in (passed / "gate").iterdir()} == FILES
    content = certificate(passed)
    assert (content["result"], content["failures"], content["divergences"]) == ("pass", [], [])
    seed = content["asked"].pop("seed")
    assert 0 < seed < 1 << 53
    [asked] = content["asked"].pop("cases")
    assert asked["match"][1:] == ["pypto-cast:seed/int64/float32/mode:CAST_RINT"]
    assert content["asked"] == {
        "documents": ["pypto-cast:seed"],
        "tier": "quick",
        "max-examples": 20,
    }
    assert next(iter(content)) == "answered"
    assert (passed / "gate" / "report" / "index.html").is_file()
    assert (passed / "gate" / "summary.md").read_text().startswith("# Gate: pass\n")
    root = Tree.parse(passed / "gate" / "junit.xml").getroot()
    assert [suite.get("failures") for suite in root] == ["0", "0"]


def test_a_wrong_backend_fails_and_the_rule_is_named(failed: Path) -> None:
    content = certificate(failed)
    assert content["result"] == "fail"
    [*_, failure] = content["failures"]
    assert failure["kind"] == "divergence"
    assert failure["told"] == "float-to-float-odd (rounding rules, CAST_ODD, required)"
    assert all("/float32/float16/" in f"{case}/" for case in failure["examples"])
    assert "FAIL" in (failed / "gate" / "summary.md").read_text()
    root = Tree.parse(failed / "gate" / "junit.xml").getroot()
    assert root[0].get("failures") == "1"
    assert root[1].get("failures") == str(sum(each["cases"] for each in content["failures"]))


def test_code_scanning_reads_what_fails_and_nothing_of_a_gate_that_passes(
    passed: Path, failed: Path
) -> None:
    found = [
        json.loads((folder / "found.sarif").read_text())["runs"][0]["results"]
        for folder in (passed, failed)
    ]
    assert found[0] == []
    assert len(found[1]) == len(certificate(failed)["findings"])


def test_verify_accepts_both_certificates_and_exits_with_their_result(
    passed: Path, failed: Path
) -> None:
    code, out, _ = verify(passed, f"--policy={passed / 'policy.yaml'}")
    assert code == 0
    assert out.splitlines()[-1] == "result    pass; the certificate holds"
    code, out, _ = verify(failed)
    assert code == 1
    assert out.splitlines()[-1] == "result    fail; the certificate holds"


def appends(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b" ")


TAMPERED: list[tuple[str, Callable[[Path], object], str]] = [
    ("certificate.json",
     lambda file: file.write_bytes(file.read_bytes().replace(b'"conforms ', b'"violates ', 1)),
     "its digest does not match its content"),
    *((name, appends, f"{name} was altered")
      for name in ("summary.md", "junit.xml", "program.json", "report/index.html")),
    *((name, Path.unlink, f"{name} is missing") for name in ("summary.md", "report/index.html")),
    ("report/new.html", lambda file: file.write_text("pass"), "report/new.html is not of the gate"),
    ("run", shutil.rmtree, "is missing: there is no folder `run` beside it"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "tamper", "message"), TAMPERED)
def test_verify_names_what_was_changed(
    name: str, tamper: Callable[[Path], object], message: str, passed: Path, tmp_path: Path
) -> None:
    gate = shutil.copytree(passed / "gate", tmp_path / "gate")
    tamper(gate / name)
    code, out, err = castigate("verify", str(gate))
    assert (code, err.count("\n"), message in err) == (1, 1, True), err
    assert out.endswith("does not hold\n")


def test_verify_requires_the_policy_that_is_named(passed: Path) -> None:
    code, _, err = castigate("verify", str(passed / "gate"), "--policy=strict")
    assert code == 1
    assert "it is not by policy strict" in err


SATURATING = """\
rules: saturating
title: Saturating
text: "https://example.org/casts"
documents: [onnx-cast]
choices:
  to-bytes:
    clause: "2, NaN is zero, everything else is clamped"
    when: {{from: float, to: [int8, uint8]}}
    then: {{nan: {nan}, otherwise: saturate}}
"""
BY_OURS = """\
policy: by-ours
title: One pair
documents: ['onnx-cast+saturating:25']
levels: [required]
tier: quick
cases:
  - match: ['onnx-cast+saturating:25/float16/int8']
"""


def test_verify_requires_the_house_rules_that_are_given(tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs.yaml", tmp_path / "ours.yaml"
    theirs.write_text(SATURATING.format(nan="lowest"))
    ours.write_text(SATURATING.format(nan="zero"))
    asked = f"--policy={tmp_path / 'policy.yaml'}"
    gate(tmp_path, "reference", f"--rules={theirs}", policy=BY_OURS)
    _, out, err = verify(tmp_path, f"--rules={theirs}", asked)
    assert (out.splitlines()[-1], err) == ("result    fail; the certificate holds", "")
    assert f"rules     saturating {sha256(theirs.read_bytes()).hexdigest()}\n" in out
    # A process knows one text of house rules by each name, and here forgets it.
    with patch.dict("specs.house_rules._own", clear=True):
        code, _, err = verify(tmp_path, f"--rules={ours}", asked)
    assert (code, f"other house rules than those of {ours}" in err) == (1, True), err
    code, _, err = verify(tmp_path, "--rules=java")
    assert (code, "not by the house rules java" in err) == (1, True), err
    code, _, err = verify(tmp_path, f"--baseline={tmp_path / 'gate' / 'run'}")
    assert (code, "policy by-ours compares with no run" in err) == (1, True), err


@pytest.mark.nightly
def test_replay_finds_a_changed_backend(tmp_path: Path, passed: Path) -> None:
    shutil.copytree(passed / "gate", tmp_path / "gate")
    backend = certificate(tmp_path)["backend"]["name"]
    assert backend == vendor(passed, body=SPOILT_BY_A_FILE)
    code, out, _ = verify(tmp_path, "--replay=3", "--seed=5")
    assert code == 0, out
    assert out.startswith("answered  3 of 3 cases answered, ")
    assert "replayed  3 answered cases, 1 of them fresh inputs by seed 5" in out
    mark = passed / "vendor.py.spoils"
    try:
        mark.touch()
        code, _, err = verify(tmp_path, "--replay=9", "--seed=5")
        assert code == 1
        assert "verdict conforms was certified, now it is violates" in err
        assert "conforms was certified, with fresh inputs it is violates" in err
        mark.unlink()
        vendor(passed, body=SPOILT)
        code, _, err = verify(tmp_path, "--replay=9", "--seed=5")
        assert code == 1
        assert "its version was 1, now it is 2" in err
        assert "with fresh inputs" not in err
    finally:
        mark.unlink(missing_ok=True)
        vendor(passed, body=SPOILT_BY_A_FILE)


def test_a_certificate_names_the_policy_and_the_program(passed: Path) -> None:
    content = certificate(passed)
    assert content["policy"]["name"] == "small"
    assert content["program"]["hello"]["name"] == "vendor"
    assert content["program"]["hello"]["version"] == "1"
    digest = sha256((passed / "vendor.py").read_bytes()).hexdigest()
    assert content["program"]["files"] == {"vendor.py": digest}


@pytest.mark.nightly
def test_replay_refuses_another_program_that_answers_alike(tmp_path: Path) -> None:
    backend = vendor(tmp_path)
    assert gate(tmp_path, backend)[0] == 0
    vendor(tmp_path, body="    # another file\n")
    code, _, err = verify(tmp_path, "--replay=1", "--seed=5")
    assert code == 1
    assert "the backend is another: file `vendor.py` was " in err


REWRITES_ITSELF = """\
    def spoil(self, case, bits, answers):
        with open(__file__, "a") as file:
            file.write("#")
"""
OTHER_VERSION = """\
    @property
    def version(self):
        return str(__import__("os").getpid())
"""


@pytest.mark.ci_runs_one_of(2)
@pytest.mark.parametrize(
    ("body", "message"), [(REWRITES_ITSELF, "file `vendor.py` was "), (OTHER_VERSION, "version")]
)
def test_a_program_that_changes_is_not_certified(body: str, message: str, tmp_path: Path) -> None:
    code, _, err = gate(tmp_path, vendor(tmp_path, body=body))
    assert code == 2
    assert message in err
    assert "nothing is certified" in err
    assert not (tmp_path / "gate" / "certificate.json").exists()


KNOWS_THE_QUICK_TIER = """\
    known = {}

    def spoil(self, case, bits, answers):
        from conformance.families.cast.quick_inputs import quick_inputs

        if case.source == "int64":
            known = self.known.setdefault(case.target, set())
            known.update(known or quick_inputs("int64", case.target, 0, 20).tolist())
            answers[np.array([each not in known for each in bits.flat]).reshape(bits.shape)] ^= 1
"""


@pytest.mark.nightly
def test_a_backend_that_knows_the_inputs_of_seed_0_fails_a_gate(tmp_path: Path) -> None:
    backend = vendor(tmp_path, body=KNOWS_THE_QUICK_TIER)
    policy = POLICY.replace("float32/float16/mode:{CAST_ODD,CAST_RINT}", "int64/float16")
    assert gate(tmp_path, backend, policy=f"{policy}seed: 0\n")[0] == 0
    code, _, err = verify(tmp_path, "--replay=2", "--seed=1")
    assert code == 1
    assert "conforms was certified, with fresh inputs it is violates" in err
    shutil.rmtree(tmp_path / "gate")
    assert gate(tmp_path, backend, policy=policy)[0] == 1


def test_a_command_that_only_the_certificate_names_is_not_run(passed: Path, tmp_path: Path) -> None:
    with pytest.raises(CastigateError, match=r"--replay would run `exec:sh x`, which the cert"):
        check_command("exec:sh x", None)
    check_command("exec:sh x", "exec:sh x")
    check_command("ort", None)
    code, _, err = verify(passed, "--replay=1", "--backend=ort")
    assert (code, err.count("\n")) == (2, 1)
    assert "the certificate is about backend" in err


@pytest.mark.nightly
def test_divergences_of_the_baseline_are_not_new(failed: Path, tmp_path: Path) -> None:
    policy = f"{POLICY}only-new: true\n"
    backend, before = vendor(failed, "TiesAway"), f"--baseline={failed / 'gate' / 'run'}"
    code, out, err = gate(tmp_path, backend, before, policy=policy)
    assert code == 0, out + err
    assert {each["standing"] for each in certificate(tmp_path)["divergences"]} == {"known"}
    assert verify(tmp_path)[0] == 0
    shutil.rmtree(tmp_path / "gate" / "baseline")
    code, _, err = verify(tmp_path)
    assert code == 1
    assert "baseline is no run" in err


@pytest.mark.nightly
def test_a_gate_that_ran_nothing_certifies_nothing(tmp_path: Path) -> None:
    policy = f"{POLICY}may-be-unsupported: ['**']\n"
    code, _, err = gate(tmp_path, f"{RUNNABLE}:Declines", policy=policy)
    assert code == 3
    assert "the backend answered no case, so there is no certificate; " in err
    assert {path.name for path in (tmp_path / "gate").iterdir()} == FILES - {"certificate.json"}


@pytest.fixture
def keys(tmp_path: Path) -> list[str]:
    """The options that sign and check a certificate; none if cryptography is not installed."""
    if find_spec("cryptography") is None:
        return []
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
    public = key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "key.pem").write_bytes(private)
    (tmp_path / "public.pem").write_bytes(public)
    return [f"--sign={tmp_path / 'key.pem'}", f"--key={tmp_path / 'public.pem'}"]


@pytest.mark.nightly
def test_the_time_limit_ends_a_run_and_its_certificate_is_signed(
    tmp_path: Path, keys: list[str]
) -> None:
    # One answer takes 15 s: the tasks before it are done within the limit, and no others.
    slow = """
    def spoil(self, case, bits, answers):
        import time
        if case.source == "int64":
            time.sleep(15)
"""
    policy = f"{POLICY}time-limit: 12\n"
    code, out, err = gate(tmp_path, vendor(tmp_path, body=slow), *keys[:1], policy=policy)
    assert code == 1, err
    assert "not-run: pypto-cast: was not run: " in out
    content = certificate(tmp_path)
    rows = content["cases"]["table"]["pypto-cast:seed"]
    assert any(row.startswith("not-run 0 ") for row in rows.values())
    code, out, _ = verify(tmp_path, *keys[1:])
    assert code == 1
    assert out.splitlines()[-1] == "result    fail; the certificate holds"
    assert ("signed    by nobody" in out) == (keys == [])


RIGHT = f"--backend={RUNNABLE}:Right"
USAGE: list[tuple[list[str], str]] = [
    (["gate", RIGHT, "--policy=strickt"], "did you mean `strict`?"),
    (["gate", RIGHT, "--policy=/no/such.yaml"], "/no/such.yaml: there is no such file"),
    (["gate", RIGHT, "--policy=regression-only"], "add --baseline RUN"),
    (["gate", RIGHT, "--policy=strict", "--baseline=x"], "uses no --baseline"),
    (["gate", "--backend=nobody", "--policy=strict"], "unknown backend `nobody`"),
    (["gate", RIGHT, "--policy=strict", "--sign=/no/such"], "/no/such cannot be read"),
    (["gate", "--policy=strict"], "Missing option '--backend'"),
    (["gate", RIGHT, "--backend=ort", "--policy=strict"],
     "castigate: a gate tests one backend; run it 2 times\n"),
    (["verify", "/no/such.json"], "/no/such.json cannot be read"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), USAGE)
def test_bad_usage_is_one_line(arguments: list[str], message: str, tmp_path: Path) -> None:
    if "--sign=/no/such" in arguments:
        pytest.importorskip("cryptography")
    out = [f"--out={tmp_path / 'gate'}"] if arguments[0] == "gate" else []
    code, content, err = castigate(*arguments, *out)
    assert (code, content, err.count("\n")) == (2, "", 1)
    assert message in err
    assert not (tmp_path / "gate").exists()


def test_a_certificate_is_not_overwritten(passed: Path) -> None:
    before = (passed / "gate" / "certificate.json").read_bytes()
    code, _, err = gate(passed, vendor(passed))
    assert (code, err.count("\n")) == (2, 1)
    assert "holds a certificate already; give another --out" in err
    assert (passed / "gate" / "certificate.json").read_bytes() == before


CHOSEN = """\
policy: chosen
title: One pair in full
documents: ['onnx-cast:25']
levels: [required]
tier: quick
max-examples: 20
cases:
  - match: ['**/uint32/bool']
    tier: full
    levels: [required, recommended]
    minimum-coverage: 100
  - match: ['**/int4/{int2,int8}']
"""
SWEPT = "onnx-cast:25/uint32/bool"


@pytest.fixture(scope="module")
def chosen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("chosen")
    backend = f"{RUNNABLE}:ReplacesTheJudge"
    assert gate(folder, backend, policy=CHOSEN)[0] == 1
    return folder


@pytest.mark.nightly
def test_a_policy_chooses_cases_and_the_tier_of_each(chosen: Path) -> None:
    rows = certificate(chosen)["cases"]["table"]["onnx-cast:25"]
    assert set(rows) == {"uint32/bool", "int4/int2", "int4/int8"}
    inputs = {name: int(row.split()[1]) for name, row in rows.items()}
    assert inputs == {"uint32/bool": 1 << 32, "int4/int2": 16, "int4/int8": 16}
    asked = certificate(chosen)["asked"]
    assert (asked["tier"], [each["tier"] for each in asked["cases"]]) == (
        "quick and full",
        ["full", "quick"],
    )


@pytest.mark.nightly
def test_no_adapter_reaches_the_judge_of_a_gate(chosen: Path) -> None:
    wrong = int(certificate(chosen)["cases"]["table"]["onnx-cast:25"]["uint32/bool"].split()[3])
    first, last = RANGES["uint32"]
    assert wrong == last - first + 1
    [failure] = [each for each in certificate(chosen)["failures"] if SWEPT in each["examples"]]
    assert failure["kind"] == "divergence"


@pytest.mark.nightly
def test_a_certificate_of_chosen_cases_is_verified_and_replayed(chosen: Path) -> None:
    code, out, err = verify(chosen, "--replay=1")
    assert (code, "the certificate holds" in out) == (1, True), out + err
    shutil.copytree(chosen / "gate", chosen / "other" / "gate")
    file = chosen / "other" / "gate" / "run" / "run.json"
    file.write_text(file.read_text().replace("{int2,int8}", "{int2,int4}"))
    assert verify(chosen / "other")[0] == 1
