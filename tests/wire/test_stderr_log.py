"""A run stores a program's stderr, and a certificate is bound to it."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest

from oracles.backend.supervised_process import MAX_BYTES
from tests.conformance.processes import castigate
from tests.wire.test_hostile_program import backend_name

POLICY = """\
policy: log
title: Casts of one document
documents: ['onnx-cast:6']
levels: [required]
tier: quick
max-examples: 0
"""


@pytest.fixture(scope="module")
def gated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gated")
    (folder / "policy.yaml").write_text(POLICY)
    options = (f"--backend={backend_name('much-stderr')}", f"--policy={folder / 'policy.yaml'}")
    code, _, err = castigate("gate", *options, "--jobs=1", f"--out={folder / 'gate'}")
    assert code == 1, err
    return folder / "gate"


def verify(folder: Path) -> tuple[str, str]:
    """Return the last line of stdout, and stderr."""
    _, out, err = castigate("verify", str(folder / "certificate.json"))
    return out.splitlines()[-1], err


@pytest.mark.nightly
def test_a_run_keeps_both_ends_of_stderr(gated: Path) -> None:
    log = (gated / "run" / "log.txt").read_bytes()
    assert log.startswith(b"\x80 \x1b[31mnoise\n")
    assert b"bytes are left out]" in log
    assert len(log) < 2 * MAX_BYTES + 100


@pytest.mark.nightly
def test_a_certificate_is_bound_to_the_log(gated: Path) -> None:
    certificate = json.loads((gated / "certificate.json").read_text())
    file = gated / "run" / "log.txt"
    log = file.read_bytes()
    assert certificate["run"]["log.txt"] == sha256(log).hexdigest()
    assert verify(gated)[0].endswith("; the certificate holds")
    for changed in (log.replace(b"noise", b"quiet", 1), None):
        file.unlink()
        if changed is not None:
            file.write_bytes(changed)
        result, reasons = verify(gated)
        assert result.endswith("certificate.json does not hold")
        assert "run.log.txt" in reasons
    file.write_bytes(log)
