"""A claim is a document or one version of it; what else is claimed is one line of error."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from conformance.families.cast.baseline import candidates
from conformance.running.program_identity import program_identity
from oracles.claims import Claim, claimed_by, parse_claim
from oracles.protocol import Bits
from specs.cases import Case
from specs.editions import editions
from specs.errors import CastigateError
from specs.formats import format_named
from specs.loader import documents
from specs.selection import select
from tests.conformance.feeding import answering, judged, planted
from tests.conformance.processes import RUNNABLE, castigate

OLD, NEW = (f"onnx-cast:{version}/int8/int16" for version in (24, 25))


def zeros(case: Case, bits: Bits) -> Bits:
    """Answer zero to everything, which no document allows."""
    return np.zeros(bits.shape, format_named(case.target).storage)


def raises(case: Case, bits: Bits) -> Bits:
    raise ValueError("no such thing")


@pytest.mark.parametrize(
    ("cast", "claims", "asked_for", "verdicts"),
    [
        (zeros, ["onnx-cast"], [], ["violates", "violates"]),
        (zeros, ["onnx-cast:24"], [], ["violates", "differs"]),
        (zeros, ["onnx-cast:25", "cinn-cast:tvm"], [], ["differs", "violates"]),
        (zeros, ["cinn-cast:tvm"], [], ["differs", "differs"]),
        (zeros, [], [], ["differs", "differs"]),
        (raises, ["onnx-cast:24"], [], ["error", "differs"]),
        # A named document counts in the versions that the backend claims, in all if it claims none.
        (zeros, ["onnx-cast:24"], ["onnx-cast"], ["violates", "differs"]),
        (zeros, ["cinn-cast:tvm"], ["onnx-cast"], ["violates", "violates"]),
        # So does a named version, whatever the backend claims.
        (zeros, ["onnx-cast:24"], ["onnx-cast:25"], ["violates", "violates"]),
        (zeros, [], ["onnx-cast:25"], ["differs", "violates"]),
    ],
)
def test_only_the_version_that_is_claimed_counts(
    cast: Any, claims: list[str], asked_for: list[str], verdicts: list[str]
) -> None:
    subject = planted(claims, asked_for=frozenset(asked_for))
    found = [judged(name, answering(cast=cast), subject).verdict for name in (OLD, NEW)]
    assert found == verdicts


def test_a_pair_is_asked_by_the_version_that_is_claimed() -> None:
    cases = [case for case in select([]) if (case.source, case.target) == ("int32", "float32")]
    first, *_ = candidates(planted(["onnx-cast:13"]), cases, calls=False)
    assert first.id == "onnx-cast:13/int32/float32"


class TestParsing:
    def test_every_document_and_every_version_can_be_claimed(self) -> None:
        for document in documents().values():
            assert parse_claim(document.name) == Claim(document.name)
            for edition in editions(document):
                text = f"{document.name}:{edition.version}"
                assert str(parse_claim(text)) == text
                assert parse_claim(text).covers(document.name, edition.version)
                assert not parse_claim(text).covers(document.name, "another")

    @pytest.mark.parametrize(
        ("text", "output"),
        [
            ("cinn-casts", "`cinn-casts`, which is no document; did you mean `cinn-cast`? "),
            ("cinn-casts:tvm", "which is no document; did you mean `cinn-cast:tvm`? "),
            ("cinn-cast:tvn", "has no version `tvn`; did you mean `cinn-cast:tvm`? "),
            ("cinn-cast:", "cinn-cast has no version ``; did you mean `cinn-cast"),
            ("onnx-cast:25:25", "onnx-cast has no version `25:25`; did you mean `onnx-cast:25`? "),
            ("onnx-casts", "? castigate specs lists all"),
            ("qqq", "`qqq`, which is no document; the documents are "),
            ("", "``, which is no document; the documents are "),
        ],
    )
    def test_a_wrong_name_is_one_line_with_the_nearest(self, text: str, output: str) -> None:
        with pytest.raises(CastigateError) as caught:
            parse_claim(text)
        assert output in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_claims_stand_in_the_order_of_the_documents_and_once(self) -> None:
        words = ["onnx-cast:25", "cinn-cast:tvm", "onnx-cast:6", "onnx-cast:25", "cinn-cast"]
        found = list(map(str, claimed_by(SimpleNamespace(claims=words))))
        names = list(documents())
        assert sorted(found) == ["cinn-cast", "onnx-cast:25", "onnx-cast:6"]
        assert found.index("onnx-cast:6") < found.index("onnx-cast:25")
        order = [names.index(word.partition(":")[0]) for word in found]
        assert order == sorted(order)

    def test_who_claims_nothing_in_particular_claims_everything(self) -> None:
        assert list(map(str, claimed_by(SimpleNamespace()))) == list(documents())


VENDOR = """\
from tests.conformance.data.runnable import Right


class Vendor(Right):
    claims = {claims!r}
"""


def vendor(folder: Path, *claims: str) -> str:
    file = folder / "vendor.py"
    file.write_text(VENDOR.format(claims=claims))
    return f"{file}:Vendor"


@pytest.mark.nightly
class TestCommands:
    def test_backends_lists_versions(self, tmp_path: Path) -> None:
        name = vendor(tmp_path, "pypto-cast", "cinn-cast:tvm")
        code, out, err = castigate("backends", name, "--json")
        assert (code, err) == (0, "")
        assert sorted(json.loads(out)["claims"]) == ["cinn-cast:tvm", "pypto-cast"]
        _, out, _ = castigate("backends", name)
        assert "cinn-cast:tvm" in out

    def test_a_gate_asks_for_the_versions_that_are_claimed(self, tmp_path: Path) -> None:
        name = vendor(tmp_path, "cinn-cast:torch-xla", "cinn-cast:tvm")
        claimed = program_identity(name, (), 60)["hello"]["claims"]
        assert claimed == ["cinn-cast:tvm", "cinn-cast:torch-xla"]

    def test_a_wrong_claim_is_one_line(self, tmp_path: Path) -> None:
        name = vendor(tmp_path, "cinn-cast:tvn")
        code, out, err = castigate("run", f"--backend={name}", f"--out={tmp_path / 'run'}")
        assert (code, out) == (2, "")
        assert "cinn-cast has no version `tvn`; did you mean `cinn-cast:tvm`?" in err
        assert err.count("\n") == 1

    def test_a_backend_without_claims_lists_every_document(self) -> None:
        _, out, _ = castigate("backends", f"{RUNNABLE}:Right", "--json")
        assert json.loads(out)["claims"] == list(documents())


PROGRAM = """\
import json
import struct
import sys

HELLO = {{"answer": "hello", "protocol": 1, "name": "vendor", "version": "1", "claims": {claims},
          "dtypes": ["int8", "bool"], "operations": ["cast"], "depends_on": []}}

while start := sys.stdin.buffer.read(16):
    _, words, size = struct.unpack("<4sIQ", start)
    request = json.loads(sys.stdin.buffer.read(words))
    elements = sys.stdin.buffer.read(size)
    if request["ask"] == "cast":
        answer = {{"answer": "values", "shape": request["shape"]}}
        content = bytes(map(bool, elements))
    else:
        answer = HELLO if request["ask"] == "hello" else {{"answer": "bye"}}
        content = b""
    header = json.dumps(answer | {{"number": request["number"]}}).encode()
    sys.stdout.buffer.write(struct.pack("<4sIQ", b"CST1", len(header), len(content)))
    sys.stdout.buffer.write(header + content)
    sys.stdout.buffer.flush()
    if request["ask"] == "bye":
        break
"""
"""Casts int8 to bool."""
POLICY = """\
policy: small
title: A small one
documents: claimed
tier: quick
max-examples: 20
levels: [required]
cases:
  - match: ['**/int8/bool']
"""


@pytest.mark.parametrize(
    ("claim", "versions"),
    [
        ("onnx-cast:25", {"25"}),
        ("onnx-cast", {each.version for each in editions(documents()["onnx-cast"])}),
    ],
)
def test_a_gate_judges_a_program_on_the_versions_that_its_hello_claims(
    claim: str, versions: set[str], tmp_path: Path
) -> None:
    program, policy = tmp_path / "program.py", tmp_path / "policy.yaml"
    program.write_text(PROGRAM.format(claims=json.dumps([claim])))
    policy.write_text(POLICY)
    name = f"exec:{shlex.quote(sys.executable)} {shlex.quote(str(program))}"
    code, _, err = castigate(
        "gate", f"--backend={name}", f"--policy={policy}", f"--out={tmp_path / 'gate'}", "--jobs=1"
    )
    assert (code, "castigate: " in err) == (0, False), err
    content = json.loads((tmp_path / "gate" / "certificate.json").read_text())
    assert content["asked"]["documents"] == content["program"]["hello"]["claims"] == [claim]
    assert set(content["cases"]["table"]) == {f"onnx-cast:{version}" for version in versions}
    assert len(versions) in (1, 9)
