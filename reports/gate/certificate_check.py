"""Checks a certificate again: its bytes, its seals, and that the run beside it gives the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from reports.gate.canonical_json import digest_of
from reports.gate.certificate import (
    BASELINE,
    FORMAT,
    RUN,
    Evidence,
    body_of,
    suite_digest,
    unsealed,
)
from reports.gate.policy import CLAIMED, Policy, policy_of
from reports.gate.signing import signer_of
from reports.run_store.open_run import open_run
from reports.run_store.record import Selection
from reports.run_store.store import RunStore
from specs.errors import CastigateError
from specs.release import VERSION

Expect = Callable[[Selection], list[str]]
"""The ids of the cases of a selection."""
SHOWN = 80
"""Characters of a value that are shown."""
MOST = 20
"""Differences that are told."""


def check_seals(certificate: dict[str, Any], named: str, key: str | None) -> str | None:
    """The public key that has signed it, if any; an error where a seal does not hold."""
    if certificate.get("format") != FORMAT:
        raise CastigateError(
            f"{named} has format {str(certificate.get('format'))[:20]}; "
            f"castigate {VERSION} reads format {FORMAT}"
        )
    if certificate.get("digest") != digest_of(unsealed(certificate)):
        raise CastigateError(f"{named} is altered: its digest is not that of its content")
    if "signature" not in certificate:
        if key is not None:
            raise CastigateError(f"{named} has no signature")
        return None
    signer = signer_of(certificate)
    if key not in (None, signer):
        raise CastigateError(f"{named} is signed by another key: {signer}")
    return signer


def _check_suite(certificate: dict[str, Any], named: str) -> None:
    """Only who judges alike can say whether it was judged so."""
    here = {"name": "castigate", "version": VERSION, "digest": suite_digest()}
    made = certificate.get("suite")
    if made != here:
        raise CastigateError(
            f"{named} was made by {_shown(made)}; verify it with the same, not with "
            f"castigate {VERSION} of digest {suite_digest()}"
        )


def evidence_of(certificate: dict[str, Any], folder: Path, expect: Expect, named: str) -> Evidence:
    """What stands beside a certificate: its run, and the baseline where there is one."""
    _check_suite(certificate, named)
    match certificate.get("policy"):
        case {"content": content}:
            policy = policy_of(content, named)
        case _:
            raise CastigateError(f"{named} has no policy")
    store = open_run(str(folder / RUN))
    if len(store.record.backends) != 1:
        raise CastigateError(f"{store.place.given} is not of one backend")
    baseline = open_run(str(folder / BASELINE)) if policy.entry.only_new else None
    _check_asked(policy, store)
    return Evidence(policy, store, baseline, tuple(expect(store.record.selection)))


def differences(certificate: dict[str, Any], evidence: Evidence) -> list[str]:
    """Where a certificate is not what its own evidence gives; none where all is well."""
    again = body_of(evidence, evidence.judged())
    told = list(_differences(unsealed(certificate), again, ""))
    return told if len(told) <= MOST else [*told[:MOST], f"… and {len(told) - MOST:,} more"]


def _check_asked(policy: Policy, store: RunStore) -> None:
    """The run must have asked what the policy wants, no less and in no other way."""
    record, wanted = store.record, policy.entry
    named = store.place.given
    documents = list(record.selection.documents)
    for what, asked, due in (
        ("tier", record.tier, wanted.tier),
        ("seed", record.seed, wanted.seed),
        ("max-examples", record.max_examples, wanted.max_examples),
        ("documents", documents, documents if wanted.documents == CLAIMED else wanted.documents),
        ("source", record.selection.source, None),
        ("target", record.selection.target, None),
    ):
        if asked != due:
            raise CastigateError(f"{named}: {what} {asked}; the policy wants {due}")
    if not documents:
        raise CastigateError(f"{named} does not say which documents it is about")


def _differences(one: Any, other: Any, where: str) -> Iterator[str]:
    match one, other:
        case dict(), dict():
            for name in sorted(one.keys() | other.keys()):
                here = f"{where}.{name}" if where else name
                if name not in one or name not in other:
                    lacks = "certificate" if name not in one else "run"
                    yield f"{here}: the {lacks} has it not"
                else:
                    yield from _differences(one[name], other[name], here)
        case list(), list() if len(one) == len(other):
            for place, (here, there) in enumerate(zip(one, other, strict=True)):
                yield from _differences(here, there, f"{where}[{place}]")
        case _ if one != other or type(one) is not type(other):
            yield f"{where}: certified {_shown(one)}, the run gives {_shown(other)}"


def _shown(value: Any) -> str:
    text = f"{len(value)} entries" if isinstance(value, list | dict) else repr(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"
