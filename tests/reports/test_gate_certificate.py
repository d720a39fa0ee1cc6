"""Certificates: what they hold, that they can be made again, and that no byte can be altered."""

from __future__ import annotations

import json
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reports.gate.canonical_json import canonical, digest_of, read_canonical
from reports.gate.certificate import (
    NothingRanError,
    baseline_for,
    body_of,
    copied,
    sealed,
    suite_digest,
)
from reports.gate.certificate_check import check_seals, differences, evidence_of
from reports.gate.policy import Policy
from reports.gate.signing import private_key, public_key, signed
from reports.run_store.record import Selection
from specs.errors import CastigateError
from tests.reports.gated import (
    CASE,
    CASES,
    SELECTION,
    Plant,
    evidence,
    gated_run,
    only,
    policy,
    verdict_of,
    wrong,
)

needs_cryptography = pytest.mark.skipif(
    find_spec("cryptography") is None, reason="without the extra `sign` nothing is signed"
)


def ids(selection: Selection) -> list[str]:
    assert selection == SELECTION
    return [case.id for case in CASES]


def certified(folder: Path, plant: Plant = lambda case: None, by: Policy | None = None) -> bytes:
    """The certificate of a run in a folder."""
    made = evidence(gated_run(folder / "run", plant), by)
    return canonical(sealed(body_of(made, made.judged())))


def verify(data: bytes, folder: Path, key: str | None = None) -> dict[str, Any]:
    """What holds of a certificate, or an error."""
    content = read_canonical(data, "certificate.json")
    check_seals(content, "certificate.json", key)
    told = differences(content, evidence_of(content, folder, ids, "certificate.json"))
    if told:
        raise CastigateError("; ".join(told))
    return content


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("gate")


@pytest.fixture(scope="module")
def certificate(folder: Path) -> bytes:
    by = policy(
        accepted=[{"cases": ["**"], "rule": "rounds", "reason": "a", "expires": "2030-01-01"}]
    )
    return certified(folder, only(wrong(CASE, rows=3)), by)


def test_it_holds_what_a_reader_needs(certificate: bytes, folder: Path) -> None:
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
    }


def test_the_same_run_gives_the_same_bytes(certificate: bytes, folder: Path) -> None:
    content = json.loads(certificate)
    again = evidence_of(content, folder, ids, "x")
    assert canonical(sealed(body_of(again, again.judged()))) == certificate


def test_nothing_that_ran_nothing_is_certified(tmp_path: Path) -> None:
    with pytest.raises(NothingRanError, match="nothing ran"):
        certified(
            tmp_path,
            lambda case: verdict_of(case.id, "unsupported"),
            policy(**{"may-be-unsupported": ["**"]}),
        )


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_no_byte_can_be_altered(data: st.DataObject, certificate: bytes, folder: Path) -> None:
    place = data.draw(st.integers(0, len(certificate) - 1))
    other = data.draw(st.integers(1, 255))
    altered = bytearray(certificate)
    altered[place] ^= other
    with pytest.raises(CastigateError):
        verify(bytes(altered), folder)


@pytest.mark.parametrize("change", [b" ", b"\n", b"x", b"\0"])
def test_nothing_can_be_added_or_cut(change: bytes, certificate: bytes, folder: Path) -> None:
    for altered in (certificate + change, change + certificate, certificate[:-1]):
        with pytest.raises(CastigateError):
            verify(altered, folder)


def deeper(content: Any, path: tuple[Any, ...], value: Any) -> Any:
    part = content
    for key in path[:-1]:
        part = part[key]
    if value is None:
        del part[path[-1]]
    else:
        part[path[-1]] = value
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
def test_what_is_altered_and_sealed_again_does_not_fit_the_run(
    path: tuple[Any, ...], value: Any, certificate: bytes, folder: Path
) -> None:
    content = deeper(json.loads(certificate), path, value)
    content.pop("digest")
    with pytest.raises(CastigateError) as told:
        verify(canonical(sealed(content)), folder)
    assert "digest is not" not in str(told.value)


def test_the_digest_must_be_that_of_the_content(certificate: bytes, folder: Path) -> None:
    content = json.loads(certificate)
    for digest in ("0" * 64, None, digest_of(content)):
        with pytest.raises(CastigateError, match="its digest is not that of its content"):
            verify(canonical(content | {"digest": digest}), folder)


def test_a_failing_result_cannot_be_turned(tmp_path: Path) -> None:
    content = json.loads(certified(tmp_path, only(wrong(CASE))))
    assert content.pop("result") == "fail"
    assert content.pop("digest")
    forged = sealed(content | {"result": "pass", "failures": []})
    with pytest.raises(CastigateError, match="result: certified 'pass', the run gives 'fail'"):
        verify(canonical(forged), tmp_path)


@pytest.mark.parametrize("name", ["cases", "divergences", "answers"])
def test_the_tables_beside_it_must_be_those(
    name: str, certificate: bytes, folder: Path, tmp_path: Path
) -> None:
    shutil.copytree(folder / "run", tmp_path / "run")
    verify(certificate, tmp_path)
    gated_run(tmp_path / "other", only(wrong(CASE, rule="other")))
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


def test_without_its_run_it_does_not_hold(certificate: bytes, tmp_path: Path) -> None:
    with pytest.raises(CastigateError, match=r"holds no run\.json"):
        verify(certificate, tmp_path)


def test_a_run_of_fewer_cases_fails(tmp_path: Path) -> None:
    store = gated_run(tmp_path / "run", cases=CASES[1:])
    content = json.loads(canonical(sealed(body_of(evidence(store), evidence(store).judged()))))
    assert (content["result"], content["failures"][0]["kind"]) == ("fail", "missing")


def test_a_baseline_is_handed_over_with_it(tmp_path: Path) -> None:
    by = policy(**{"only-new": True})
    old = copied(gated_run(tmp_path / "old", only(wrong(CASE))), str(tmp_path / "baseline"))
    new = gated_run(tmp_path / "run", only(wrong(CASE)))
    made = evidence(new, by, old)
    data = canonical(sealed(body_of(made, made.judged())))
    assert verify(data, tmp_path)["result"] == "pass"
    shutil.rmtree(tmp_path / "baseline")
    gated_run(tmp_path / "baseline")
    with pytest.raises(CastigateError, match="baseline"):
        verify(data, tmp_path)
    with pytest.raises(CastigateError, match="was run with seed 0; policy mine wants 1"):
        baseline_for(str(tmp_path / "old"), policy(seed=1))


@pytest.mark.parametrize("content", [{"a": 0.5}, {"a": [{"b": 1.0}]}])
def test_floats_have_no_place(content: Any) -> None:
    with pytest.raises(CastigateError, match="is a float"):
        canonical(content)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]\n",
        b"{}",
        b'{"a": 1}\n',
        b'{\n "a": 1,\n "a": 1\n}\n',
        b'{\n "a": 1.0\n}\n',
        b'{\n "a": NaN\n}\n',
        b"[" * 100_000,
        b'{\n "\xc3\xa4": 1\n}\n',
        b'{\n "a": ' + b"1" * 10_000 + b"\n}\n",
    ],
)
def test_another_spelling_is_refused(data: bytes) -> None:
    with pytest.raises(CastigateError):
        read_canonical(data, "x")
    assert read_canonical(b'{\n "a": 1\n}\n', "x") == {"a": 1}


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """A private key, its public one, and the public one of another."""
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
def test_a_signature_holds_for_its_key_and_for_no_other(
    keys: tuple[Path, Path, Path], certificate: bytes, folder: Path
) -> None:
    private, mine, other = keys
    data = canonical(signed(json.loads(certificate), private_key(private)))
    verify(data, folder)
    verify(data, folder, public_key(mine))
    with pytest.raises(CastigateError, match="is signed by another key"):
        verify(data, folder, public_key(other))
    with pytest.raises(CastigateError, match="has no signature"):
        verify(certificate, folder, public_key(mine))
    with pytest.raises(CastigateError, match="no private key in PEM"):
        private_key(mine)
    with pytest.raises(CastigateError, match="no public key in PEM"):
        public_key(private)


@needs_cryptography
@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_no_byte_of_what_is_signed_can_be_altered(
    data: st.DataObject, keys: tuple[Path, Path, Path], certificate: bytes, folder: Path
) -> None:
    made = canonical(signed(json.loads(certificate), private_key(keys[0])))
    first = made.index(b'"signature"')
    place = data.draw(st.integers(first, len(made) - 1) | st.integers(0, len(made) - 1))
    altered = bytearray(made)
    altered[place] ^= data.draw(st.sampled_from([1, 2, 4, 8, 16, 32, 64, 128]))
    with pytest.raises(CastigateError):
        verify(bytes(altered), folder)


@needs_cryptography
def test_a_certificate_sealed_again_loses_its_signature(
    keys: tuple[Path, Path, Path], certificate: bytes, folder: Path
) -> None:
    content = signed(json.loads(certificate), private_key(keys[0]))
    signature = content.pop("signature")
    content["finished"] = "2026-01-03T00:00:00+00:00"
    content.pop("digest")
    forged = {**sealed(content), "signature": signature}
    with pytest.raises(CastigateError, match="the signature does not hold"):
        verify(canonical(forged), folder)
