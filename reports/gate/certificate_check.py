"""Verifies a certificate: its bytes, digest and signature, and that its run gives the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from reports.findings.read_findings import found_again
from reports.gate.canonical_json import digest_of
from reports.gate.certificate import (
    BASELINE,
    FORMAT,
    RUN,
    Evidence,
    certificate_body,
    folder_digests,
    without_seals,
)
from reports.gate.policy import CLAIMED, Policy, policy_from_certificate
from reports.gate.signing import verify_signature
from reports.run_store.open_run import open_run
from reports.run_store.record import RunRecord
from reports.run_store.store import RunStore
from reports.suite_digest import suite_digest
from specs import VERSION
from specs.errors import CastigateError, require_regular
from specs.json_source import MAX_BYTES

SHOWN_CHARACTERS = 80
"""How much of a value a message quotes."""
SHOWN_DIFFERENCES = 20


def certificate_bytes(certificate: Path) -> bytes:
    """Read a certificate's file; raise CastigateError if it is none, or cannot be read."""
    try:
        require_regular(certificate)
        with certificate.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise CastigateError(
            f"{certificate} cannot be read: {error.strerror}; give the path of the certificate.json"
            " that castigate gate wrote"
        ) from None


def check_seals(certificate: dict[str, Any], named: str, key: str | None) -> str | None:
    """Return the public key of a certificate's signature in hex, or None if it is not signed.

    Raise CastigateError if its format, digest or signature is wrong, or if ``key`` is given and
    another key or none signed it. ``named`` is the certificate's name in messages.
    """
    if certificate.get("format") != FORMAT:
        raise CastigateError(
            f"{named} has format `{str(certificate.get('format'))[:20]}`; "
            f"castigate {VERSION} reads format {FORMAT}"
        )
    if certificate.get("digest") != digest_of(without_seals(certificate)):
        raise CastigateError(f"{named} was altered: its digest does not match its content")
    if "signature" not in certificate:
        if key is not None:
            raise CastigateError(f"{named} has no signature, but --key demands one")
        return None
    signer = verify_signature(certificate, named)
    if key not in (None, signer):
        raise CastigateError(f"{named} is signed with another key than that of --key: {signer}")
    return signer


def load_evidence(
    certificate: dict[str, Any],
    folder: Path,
    asked_names: Callable[[RunRecord], Iterator[str]],
    named: str,
) -> Evidence:
    """Return the evidence of a certificate: its policy, and its run in ``folder``.

    If the policy is ``only_new``, the baseline in ``folder`` belongs to it too. ``asked_names``
    returns the names of all cases and checks that the run must have, and messages name the
    certificate ``named``. Raise CastigateError if a Castigate other than this one wrote it, if it
    has no valid policy, if files are missing, altered or added, or if the run has other than one
    backend, no documents, or other settings than the policy.
    """
    _check_suite(certificate, named)
    match certificate.get("policy"):
        case {"content": content}:
            policy = policy_from_certificate(content, named)
        case _:
            raise CastigateError(f"{named} has no policy")
    if not (folder / RUN).is_dir():
        raise CastigateError(
            f"the run of {named} is missing: there is no folder `{RUN}` beside it; "
            "verify it in the folder of its gate"
        )
    sealed = _check_folder(certificate, folder)
    store = open_run(str(folder / RUN))
    if len(store.record.backends) != 1:
        raise CastigateError(
            f"run {store.folder.display_name} has {len(store.record.backends)} backends; "
            "the run of a certificate has exactly one"
        )
    baseline = open_run(str(folder / BASELINE)) if policy.entry.only_new else None
    _check_settings(policy, store)
    return Evidence(policy, store, baseline, tuple(asked_names(store.record)), folder, sealed)


def differences(certificate: dict[str, Any], evidence: Evidence) -> list[str]:
    """Return a line for each difference between a certificate and one recomputed from evidence.

    After ``SHOWN_DIFFERENCES`` lines, the others are counted.
    """
    # The run's own file of findings proves nothing, so they are searched for again.
    recomputed = certificate_body(evidence, evidence.judged(), found_again(evidence.store))
    found = list(_differences(without_seals(certificate), recomputed, ""))
    if len(found) <= SHOWN_DIFFERENCES:
        return found
    return [*found[:SHOWN_DIFFERENCES], f"… and {len(found) - SHOWN_DIFFERENCES:,} more"]


def _check_folder(certificate: dict[str, Any], folder: Path) -> dict[str, str]:
    """Return the sealed digests by file; raise CastigateError if a file differs or is missing.

    A link, an empty folder and a file that is not sealed are errors in a folder of sealed files,
    but not beside the certificate. In the folders of the run and of the baseline, only links and
    added files are looked for.
    """
    match certificate.get("folder"), certificate.get("run"), certificate.get("baseline"):
        case dict() as sealed, dict() as run, (None | dict()) as baseline:
            now = folder_digests(folder)
        case _:
            raise CastigateError("the certificate seals no folder; get the original file")
    for name, files in ((RUN, run), (BASELINE, baseline or {})):
        if (folder / name).is_symlink():
            raise CastigateError(_damage(folder / name, "is a link"))
        for path in sorted((folder / name).glob("*")):
            if path.name not in files:
                raise CastigateError(_damage(path, "is not of the gate"))
            if path.is_symlink():
                raise CastigateError(_damage(path, "is a link"))
    folders = {name.partition("/")[0] for name in sealed if "/" in name}
    for name in sorted(sealed.keys() | now.keys()):
        if name not in sealed and name.partition("/")[0] not in folders:
            continue
        if sealed.get(name) == now.get(name):
            continue
        if name not in now:
            what = "is missing"
        else:
            what = "was altered" if name in sealed else "is not of the gate"
        raise CastigateError(_damage(folder / name, what))
    for name in sorted(folders):
        _check_kinds(folder, name, sealed)
    return sealed


def _check_kinds(folder: Path, name: str, sealed: Iterable[str]) -> None:
    """Raise CastigateError for a link, an empty folder or a special file in the folder ``name``.

    ``sealed`` are the paths of the sealed files.
    """
    parents = {parent for each in sealed for parent in map(str, PurePosixPath(each).parents)}
    for path in sorted((folder / name).rglob("*")):
        relative = path.relative_to(folder).as_posix()
        is_known = relative in parents if path.is_dir() else path.is_file()
        if path.is_symlink() or not is_known:
            raise CastigateError(_damage(path, "is not of the gate"))


def _damage(path: Path, what: str) -> str:
    return f"{path} {what}; copy the whole folder of the gate again"


def _check_suite(certificate: dict[str, Any], named: str) -> None:
    """Raise CastigateError unless this suite made the certificate."""
    here = {"name": "castigate", "version": VERSION, "digest": suite_digest()}
    suite = certificate.get("suite")
    if suite == here:
        return
    match suite:
        case {"version": str(version), "digest": str(digest)}:
            maker = f"castigate {_shorten(version)} of digest {_shorten(digest)}"
        case _:
            maker = "an unknown suite"
    raise CastigateError(
        f"{named} was made by {maker}, but this is castigate {VERSION} "
        f"of digest {suite_digest()}; verify it with the version that made it"
    )


def _check_settings(policy: Policy, store: RunStore) -> None:
    """Raise CastigateError unless the run has the selection and settings of the policy."""
    record, entry = store.record, policy.entry
    documents = list(record.selection.documents)
    for setting, actual, expected in (
        ("tier", record.tier, policy.tier),
        ("cases", record.selection.choices, policy.choices),
        ("seed", record.seed, record.seed if entry.seed is None else entry.seed),
        ("max-examples", record.max_examples, entry.max_examples),
        ("documents", documents, documents if entry.documents == CLAIMED else entry.documents),
        ("source", record.selection.source, ()),
        ("target", record.selection.target, ()),
    ):
        if actual != expected:
            path = store.folder.display_name
            raise CastigateError(
                f"run {path} has {setting} {actual}, but its policy has {expected}"
            )
    if not documents:
        raise CastigateError(
            f"run {store.folder.display_name} does not record which documents it is about"
        )


def _differences(certified: Any, recomputed: Any, path: str) -> Iterator[str]:
    match certified, recomputed:
        case dict(), dict():
            for name in sorted(certified.keys() | recomputed.keys()):
                here = f"{path}.{name}" if path else name
                if name not in certified or name not in recomputed:
                    lacking = "certificate" if name not in certified else "run"
                    yield f"{here}: missing in the {lacking}"
                else:
                    yield from _differences(certified[name], recomputed[name], here)
        case list(), list() if len(certified) == len(recomputed):
            for index, (one, other) in enumerate(zip(certified, recomputed, strict=True)):
                yield from _differences(one, other, f"{path}[{index}]")
        case _ if certified != recomputed or type(certified) is not type(recomputed):
            yield f"{path}: certified {_quote(certified)}, but the run gives {_quote(recomputed)}"


def _quote(value: Any) -> str:
    return _shorten(f"{len(value)} entries" if isinstance(value, list | dict) else repr(value))


def _shorten(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 1]}…"
