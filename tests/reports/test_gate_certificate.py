"""Certificates: their content, that they can be recomputed, and that forgeries are detected."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.extras.certificate.verify import _summary
from reports.findings.read_findings import found_again
from reports.gate.canonical_json import canonical_bytes, digest_of, read_canonical
from reports.gate.certificate import (
    Evidence,
    NothingRanError,
    certificate_body,
    check_program,
    copy_run,
    folder_digests,
    open_baseline,
    with_digest,
)
from reports.gate.certificate_check import (
    SHOWN_CHARACTERS,
    check_seals,
    differences,
    load_evidence,
)
from reports.gate.policy import Policy
from reports.gate.signing import load_private_key, load_public_key, sign_certificate
from reports.run_store.record import RunRecord
from reports.suite_digest import suite_digest
from specs import VERSION as RELEASE
from specs.errors import CastigateError
from specs.plain_text import is_plain
from tests.reports.gated import (
    CASE,
    CASES,
    SELECTION,
    Plant,
    evidence,
    gated_run,
    only,
    policy,
    violated,
    whole_case,
)
from tests.search import examples

needs_cryptography = pytest.mark.skipif(
    find_spec("cryptography") is None, reason="signing needs the extra `sign`"
)


def asked_names(asked: RunRecord) -> Iterator[str]:
    assert asked.selection == SELECTION
    yield from (case.id for case in CASES)


def certificate_bytes(found: Evidence) -> bytes:
    """The unsigned certificate of a run."""
    return canonical_bytes(
        with_digest(certificate_body(found, found.judged(), found_again(found.store)))
    )


def certified(folder: Path, plant: Plant = lambda case: None, by: Policy | None = None) -> bytes:
    """Write a run into a folder and return its certificate."""
    return certificate_bytes(evidence(gated_run(folder / "run", plant), by))


def verify(data: bytes, folder: Path, key: str | None = None) -> dict[str, Any]:
    """Return the content of a certificate that holds, or raise an error."""
    content = read_canonical(data, "certificate.json")
    check_seals(content, "certificate.json", key)
    found = differences(content, load_evidence(content, folder, asked_names, "certificate.json"))
    if found:
        raise CastigateError("; ".join(found))
    return content


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("gate")


@pytest.fixture(scope="module")
def certificate(folder: Path) -> bytes:
    by = policy(
        accepted=[{"cases": ["**"], "rule": "rounds", "reason": "a", "expires": "2030-01-01"}]
    )
    return certified(folder, only(violated(CASE, rows=3)), by)


def test_certificate_has_results_counts_and_digests(certificate: bytes, folder: Path) -> None:
    content = verify(certificate, folder)
    assert content["result"] == "pass"
    assert content["backend"] == {"name": "vendor", "version": "1.2"}
    assert content["suite"]["digest"] == suite_digest()
    assert content["verdicts"] == {"pypto-cast:0.2": {"conforms": 173, "violates": 1}}
    assert content["cases"]["count"] == 174
    assert content["cases"]["digest"] == digest_of(content["cases"]["table"])
    version, _, rest = CASE.partition("/")
    assert content["cases"]["table"][version][rest] == "violates 256 0 3 -"
    [divergence] = content["divergences"]
    assert (divergence["standing"], divergence["reason"]) == ("accepted", "a")
    assert len(divergence["region"]) == 16
    assert set(content["run"]) == {
        "run.json",
        "cases.parquet",
        "divergences.parquet",
        "answers.parquet",
        "pairs.parquet",
        "problems.parquet",
    }


def test_certificate_can_be_recomputed_from_its_run(certificate: bytes, folder: Path) -> None:
    content = json.loads(certificate)
    again = load_evidence(content, folder, asked_names, "x")
    assert certificate_bytes(again) == certificate


def test_a_run_without_answers_is_not_certified(tmp_path: Path) -> None:
    with pytest.raises(NothingRanError, match="answered no case"):
        certified(
            tmp_path,
            lambda case: whole_case(case.id, "unsupported"),
            policy(**{"may-be-unsupported": ["**"]}),
        )


@examples(300)
@given(data=st.data())
def test_any_altered_byte_is_detected(
    data: st.DataObject, certificate: bytes, folder: Path
) -> None:
    index = data.draw(st.integers(0, len(certificate) - 1))
    altered = bytearray(certificate)
    altered[index] ^= data.draw(st.integers(1, 255))
    with pytest.raises(CastigateError):
        verify(bytes(altered), folder)


@pytest.mark.parametrize("change", [b" ", b"\n", b"x", b"\0"])
def test_added_or_missing_bytes_are_detected(
    change: bytes, certificate: bytes, folder: Path
) -> None:
    for altered in (certificate + change, change + certificate, certificate[:-1]):
        with pytest.raises(CastigateError):
            verify(altered, folder)


def with_value(content: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Set the value at a path of keys, or delete it if the value is None."""
    parent = content
    for key in path[:-1]:
        parent = parent[key]
    if value is None:
        del parent[path[-1]]
    else:
        parent[path[-1]] = value
    return content


VERSION, _, REST = CASE.partition("/")
TABLE = ("cases", "table", VERSION)
FORGED: list[tuple[tuple[Any, ...], Any]] = [
    (("suite", "digest"), "0" * 64),
    (("suite", "version"), "9.9.9"),
    (("documents", "pypto-cast"), "0" * 64),
    (("policy", "content", "levels"), ["recommended"]),
    (("policy", "content", "max-examples"), 1),
    (("policy", "content", "documents"), ["pypto-cast:seed"]),
    (("policy", "content", "accepted"), []),
    (("policy", "digest"), "0" * 64),
    (("policy", "name"), "strict"),
    (("program",), {"hello": {}, "files": {}}),
    (("folder",), {"summary.md": "0" * 64}),
    (("backend", "name"), "other"),
    (("backend", "version"), "2"),
    (("environments",), []),
    (("asked", "seed"), 1),
    (("finished",), "2026-01-03T00:00:00+00:00"),
    (("run", "cases.parquet"), "0" * 64),
    ((*TABLE, REST), "conforms 256 0 0 -"),
    ((*TABLE, REST), None),
    (("verdicts", VERSION, "violates"), 0),
    (("verdicts", VERSION, "conforms"), True),
    (("divergences",), []),
    (("divergences", 0, "region"), "0" * 16),
    (("divergences", 0, "standing"), "known"),
    (("result",), None),
    (("failures",), [{"kind": "none"}]),
]


@pytest.mark.parametrize(("path", "value"), FORGED)
def test_a_forgery_with_a_new_digest_does_not_match_the_run(
    path: tuple[Any, ...], value: Any, certificate: bytes, folder: Path
) -> None:
    content = with_value(json.loads(certificate), path, value)
    content.pop("digest")
    with pytest.raises(CastigateError) as caught:
        verify(canonical_bytes(with_digest(content)), folder)
    assert "digest does not match" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "maker"),
    [
        ({"version": "9.9.9"}, f"castigate 9.9.9 of digest {suite_digest()}"),
        ({"digest": "0" * 64}, f"castigate {RELEASE} of digest {'0' * 64}"),
        ({"version": "9" * 500}, f"castigate {'9' * (SHOWN_CHARACTERS - 1)}… of digest "),
        ({"version": 9}, "an unknown suite"),
        ({"digest": None}, "an unknown suite"),
    ],
    ids=["version", "digest", "long-version", "number", "without-digest"],
)
def test_a_certificate_of_another_suite_names_the_one_that_made_it(
    changes: dict[str, Any], maker: str, certificate: bytes, folder: Path
) -> None:
    content = json.loads(certificate)
    content.pop("digest")
    for key, value in changes.items():
        with_value(content, ("suite", key), value)
    with pytest.raises(CastigateError) as caught:
        verify(canonical_bytes(with_digest(content)), folder)
    assert str(caught.value).startswith(f"certificate.json was made by {maker}")
    assert str(caught.value).endswith(
        f", but this is castigate {RELEASE} of digest {suite_digest()}; "
        "verify it with the version that made it"
    )


def test_what_a_backend_calls_itself_looks_like_no_line_of_verify(
    certificate: bytes, folder: Path
) -> None:
    content = json.loads(certificate)
    found = load_evidence(content, folder, asked_names, "certificate.json")
    hello = {"name": "vendor\nresult    pass; the certificate holds\n", "version": "1\x1b[2J"}
    content["program"] = {"hello": hello, "files": {}}
    lines = [*_summary(content, found, None, 0, 0)]
    assert all(is_plain(line) for line in lines)
    assert sum(line.startswith("result") for line in lines) == 1


def test_a_wrong_digest_is_detected(certificate: bytes, folder: Path) -> None:
    content = json.loads(certificate)
    for digest in ("0" * 64, None, digest_of(content)):
        with pytest.raises(CastigateError, match="its digest does not match its content"):
            verify(canonical_bytes(content | {"digest": digest}), folder)


def test_a_failing_result_cannot_be_forged_into_a_pass(tmp_path: Path) -> None:
    content = json.loads(certified(tmp_path, only(violated(CASE))))
    assert content.pop("result") == "fail"
    assert content.pop("digest")
    forged = with_digest(content | {"result": "pass", "failures": []})
    with pytest.raises(CastigateError, match="result: certified 'pass', but the run gives 'fail'"):
        verify(canonical_bytes(forged), tmp_path)


@pytest.mark.parametrize("name", ["cases", "divergences", "answers"])
def test_tables_of_another_run_are_detected(
    name: str, certificate: bytes, folder: Path, tmp_path: Path
) -> None:
    shutil.copytree(folder / "run", tmp_path / "run")
    verify(certificate, tmp_path)
    gated_run(tmp_path / "other", only(violated(CASE, rule="other")))
    (tmp_path / "run" / f"{name}.parquet").unlink()
    with pytest.raises(CastigateError, match="is missing"):
        verify(certificate, tmp_path)
    shutil.copy(tmp_path / "other" / f"{name}.parquet", tmp_path / "run")
    same = (tmp_path / "other" / f"{name}.parquet").read_bytes() == (
        folder / "run" / f"{name}.parquet"
    ).read_bytes()
    assert same == (name == "answers")
    if not same:
        with pytest.raises(CastigateError):
            verify(certificate, tmp_path)


@pytest.mark.parametrize("kind", ["link", "empty folder"])
def test_what_is_no_file_of_a_sealed_folder_is_detected(kind: str, tmp_path: Path) -> None:
    folder, outside = tmp_path / "gate", tmp_path / "page.html"
    store = gated_run(folder / "run")
    page = folder / "report" / "page.html"
    page.parent.mkdir()
    page.write_text("a page")
    sealed = replace(evidence(store), folder=folder, sealed=folder_digests(folder))
    data = certificate_bytes(sealed)
    assert verify(data, folder)["result"] == "pass"
    if kind == "link":
        page.rename(outside)
        page.symlink_to(outside)
    else:
        page = page.with_name("empty")
        page.mkdir()
    with pytest.raises(CastigateError, match=re.escape(f"{page} is not of the gate; copy the ")):
        verify(data, folder)


def test_a_mistake_in_what_is_recorded_of_a_program_is_named_by_its_key() -> None:
    hello = {"name": "vendor", "version": "1", "claims": []}
    good = {"hello": hello, "files": {"casts.py": "0" * 64}}
    assert check_program(good, "program.json") == good
    message = r"^program\.json: `files\.casts\.py`: .*; get the original folder of the gate$"
    with pytest.raises(CastigateError, match=message):
        check_program({"hello": hello, "files": {"casts.py": "0"}}, "program.json")


def test_a_certificate_needs_its_run(certificate: bytes, tmp_path: Path) -> None:
    with pytest.raises(
        CastigateError, match="is missing: there is no folder `run` beside it; verify it in the"
    ):
        verify(certificate, tmp_path)


def test_a_run_that_lacks_a_case_fails(tmp_path: Path) -> None:
    store = gated_run(tmp_path / "run", cases=CASES[1:])
    content = json.loads(certificate_bytes(evidence(store)))
    assert (content["result"], content["failures"][0]["kind"]) == ("fail", "missing")


def test_a_baseline_is_verified_with_the_certificate(tmp_path: Path) -> None:
    by = policy(**{"only-new": True})
    old = copy_run(gated_run(tmp_path / "old", only(violated(CASE))), str(tmp_path / "baseline"))
    new = gated_run(tmp_path / "run", only(violated(CASE)))
    data = certificate_bytes(evidence(new, by, old))
    assert verify(data, tmp_path)["result"] == "pass"
    shutil.rmtree(tmp_path / "baseline")
    gated_run(tmp_path / "baseline")
    with pytest.raises(CastigateError, match="baseline"):
        verify(data, tmp_path)
    with pytest.raises(CastigateError, match="was run with seed 0 of policy mine, so that its inp"):
        open_baseline(str(tmp_path / "old"), policy(seed=0))
    assert open_baseline(str(tmp_path / "old"), policy(seed=1)).record.seed == 0


def test_a_baseline_that_lacks_a_file_is_not_copied(tmp_path: Path) -> None:
    old = gated_run(tmp_path / "old")
    (tmp_path / "old" / "answers.parquet").unlink()
    with pytest.raises(CastigateError, match=r"old/answers\.parquet is missing; copy the"):
        copy_run(old, str(tmp_path / "baseline"))


@pytest.mark.parametrize("content", [{"a": 0.5}, {"a": [{"b": 1.0}]}])
def test_floats_are_rejected(content: Any) -> None:
    with pytest.raises(CastigateError, match="is a float"):
        canonical_bytes(content)


@pytest.mark.parametrize(
    "data",
    [
        b"", b"[]\n", b"{}", b'{"a": 1}\n', b'{\n "a": 1,\n "a": 1\n}\n', b'{\n "a": 1.0\n}\n',
        b'{\n "a": NaN\n}\n', b"[" * 100_000, b'{\n "\xc3\xa4": 1\n}\n',
        b'{\n "a": ' + b"1" * 10_000 + b"\n}\n",
    ],
)  # fmt: skip
def test_bytes_that_are_not_canonical_are_rejected(data: bytes) -> None:
    with pytest.raises(CastigateError):
        read_canonical(data, "x")
    assert read_canonical(b'{\n "a": 1\n}\n', "x") == {"a": 1}


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """Files with a private key, its public key, and another public key."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    folder = tmp_path_factory.mktemp("keys")
    private = folder / "key.pem"
    public = []
    for name in ("mine", "other"):
        key = Ed25519PrivateKey.generate()
        if name == "mine":
            private.write_bytes(
                key.private_bytes(
                    serialization.Encoding.PEM,
                    serialization.PrivateFormat.PKCS8,
                    serialization.NoEncryption(),
                )
            )
        path = folder / f"{name}.pem"
        path.write_bytes(
            key.public_key().public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
        )
        public.append(path)
    return private, public[0], public[1]


@needs_cryptography
def test_a_signature_verifies_with_its_own_key_only(
    keys: tuple[Path, Path, Path], certificate: bytes, folder: Path
) -> None:
    private, mine, other = keys
    data = canonical_bytes(sign_certificate(json.loads(certificate), load_private_key(private)))
    verify(data, folder)
    verify(data, folder, load_public_key(mine))
    with pytest.raises(CastigateError, match="is signed with another key"):
        verify(data, folder, load_public_key(other))
    with pytest.raises(CastigateError, match="has no signature"):
        verify(certificate, folder, load_public_key(mine))
    with pytest.raises(CastigateError, match="no private key in PEM"):
        load_private_key(mine)
    with pytest.raises(CastigateError, match="no public key in PEM"):
        load_public_key(private)


@needs_cryptography
@examples(200)
@given(data=st.data())
def test_any_altered_byte_of_a_signed_certificate_is_detected(
    data: st.DataObject, keys: tuple[Path, Path, Path], certificate: bytes, folder: Path
) -> None:
    signed = canonical_bytes(sign_certificate(json.loads(certificate), load_private_key(keys[0])))
    first = signed.index(b'"signature"')
    index = data.draw(st.integers(first, len(signed) - 1) | st.integers(0, len(signed) - 1))
    altered = bytearray(signed)
    altered[index] ^= data.draw(st.sampled_from([1, 2, 4, 8, 16, 32, 64, 128]))
    with pytest.raises(CastigateError):
        verify(bytes(altered), folder)


@needs_cryptography
def test_a_signature_does_not_match_an_altered_certificate(
    keys: tuple[Path, Path, Path], certificate: bytes, folder: Path
) -> None:
    content = sign_certificate(json.loads(certificate), load_private_key(keys[0]))
    signature = content.pop("signature")
    content["finished"] = "2026-01-03T00:00:00+00:00"
    content.pop("digest")
    forged = {**with_digest(content), "signature": signature}
    with pytest.raises(CastigateError, match="its signature does not match its content"):
        verify(canonical_bytes(forged), folder)
