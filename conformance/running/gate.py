"""A gate: runs a backend as a policy demands, judges it, and certifies it in a folder."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import randbelow
from typing import Any

from conformance.running.program_identity import (
    file_digests,
    identity_differences,
    program_identity,
)
from conformance.running.progress import ProgressReporter
from conformance.running.run import RunRequest, asked_names, finish_run, run
from reports.findings.read_findings import read_findings
from reports.gate.canonical_json import canonical_bytes
from reports.gate.certificate import (
    BASELINE,
    FILE,
    PROGRAM,
    RUN,
    Evidence,
    NothingRanError,
    certificate_body,
    copy_run,
    folder_digests,
    open_baseline,
    with_digest,
)
from reports.gate.outputs import gate_junit, gate_summary
from reports.gate.policy import CLAIMED, Policy
from reports.gate.policy_verdict import PolicyVerdict
from reports.gate.signing import sign_certificate
from reports.html.site import write_site
from reports.run_store.open_run import open_run
from reports.run_store.record import Selection
from reports.run_store.storage import folder_at
from reports.run_store.store import RunStore
from specs.errors import CastigateError

SEEDS = 1 << 53
"""The bound of drawn seeds: every reader of JSON keeps smaller integers exactly."""


@dataclass(frozen=True)
class Gate:
    """A backend, the policy that it must pass, and the folder for the certificate.

    ``pythons`` are texts ``NAME=PATH``, and ``seconds`` is the time limit of an answer.
    """

    backend: str
    policy: Policy
    folder: Path
    pythons: tuple[str, ...]
    seconds: float

    def request(self, baseline: RunStore | None, claims: tuple[str, ...]) -> RunRequest:
        """Return the run that the policy demands of the backend.

        If the policy names no seed, one is drawn that the ``baseline`` run does not have, so that
        no backend can know the inputs. Raises CastigateError if the policy is about the documents
        that the backend claims, and ``claims`` is empty.
        """
        entry = self.policy.entry
        names = claims if entry.documents == CLAIMED else tuple(entry.documents)
        if not names:
            raise CastigateError(
                f"backend `{self.backend}` claims no document; name documents in the policy"
            )
        seed = entry.seed
        while seed is None or (baseline is not None and seed == baseline.record.seed):
            seed = randbelow(SEEDS)
        return RunRequest(
            (self.backend,),
            Selection(documents=names, choices=self.policy.choices),
            self.policy.tier,
            seed,
            entry.max_examples,
            pythons=self.pythons,
            seconds=self.seconds,
            limit=math.inf if entry.time_limit is None else entry.time_limit,
            isolates_sweeps=True,
        )

    def run(
        self, baseline: RunStore | None, key: Any, jobs: int, reporter: ProgressReporter
    ) -> tuple[PolicyVerdict, dict[str, Any] | None]:
        """Run and judge the backend, and write all files; return the verdict and the certificate.

        The certificate is JSON data, or None if every case was declined or not run. ``baseline`` is
        the earlier run to compare with, and ``key`` the private key to sign with, if any. Raises
        CastigateError if the backend changed meanwhile.
        """
        where = str(self.folder / RUN)
        program = program_identity(self.backend, self.pythons, self.seconds)
        request = self.request(baseline, tuple(program["hello"]["claims"]))
        finish_run(run(request, where, jobs, False, sys.argv, reporter))
        store = open_run(where)
        self._check_unchanged(program, store)
        self._write(PROGRAM, canonical_bytes(program))
        if baseline is not None:
            baseline = copy_run(baseline, str(self.folder / BASELINE))
        expected = tuple(asked_names(store.record))
        evidence = Evidence(self.policy, store, baseline, expected, self.folder)
        found = evidence.judged()
        self._write_reports(found, [str(self.folder / BASELINE)] if baseline is not None else [])
        try:
            evidence = replace(evidence, sealed=folder_digests(self.folder))
            certificate = with_digest(certificate_body(evidence, found, read_findings(store)))
        except NothingRanError:
            return found, None
        if key is not None:
            certificate = sign_certificate(certificate, key)
        self._write(FILE, canonical_bytes(certificate))
        return found, certificate

    def _check_unchanged(self, program: dict[str, Any], store: RunStore) -> None:
        """Raise CastigateError if the backend's version or files are not those in ``program``."""
        now = {
            "hello": {**program["hello"], "version": store.record.backends[0].version},
            "files": file_digests(self.backend) if program["files"] else {},
        }
        for line in identity_differences(program, now):
            raise CastigateError(f"{line}; nothing is certified, run the gate again")

    def _write_reports(self, found: PolicyVerdict, earlier: Sequence[str]) -> None:
        report = write_site([*earlier, str(self.folder / RUN)], self.folder / "report")
        self._write("junit.xml", gate_junit(report, self.policy, found).encode())
        self._write("summary.md", gate_summary(report, self.policy, found).encode())

    def _write(self, name: str, data: bytes) -> None:
        folder_at(str(self.folder)).write(name, data, "give another --out")


def load_baseline(policy: Policy, location: str | None) -> RunStore | None:
    """Return the earlier run that a policy compares with; None if the policy compares with none.

    Raises CastigateError if the policy needs a ``location`` that is None, or needs none and one is
    given.
    """
    if location is None:
        if policy.entry.only_new:
            raise CastigateError(f"policy {policy.name} needs an earlier run; add --baseline RUN")
        return None
    if not policy.entry.only_new:
        raise CastigateError(f"policy {policy.name} uses no --baseline; leave it out")
    return open_baseline(location, policy)
