"""A certificate: the result of a gate, bound to the run, the policy and the suite that made it.

It is a function of a complete run and a policy alone, so that anybody can recompute and compare it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Final, get_args

from pydantic import Field, ValidationError

from reports.findings.cells import Cell, StoredArrays
from reports.findings.finding import Finding
from reports.findings.left_open import left_open
from reports.findings.read_findings import read_cells, read_checks
from reports.gate.baseline import EarlierRun
from reports.gate.canonical_json import digest_of, read_canonical
from reports.gate.left_out import left_out
from reports.gate.policy import Policy, PolicyTier
from reports.gate.policy_verdict import (
    EXAMPLES,
    PolicyDivergence,
    PolicyVerdict,
    apply_policy,
    verdict_counts,
)
from reports.run_store.open_run import RunAnswers, open_run
from reports.run_store.record import RunRecord, TierOfCases
from reports.run_store.storage import folder_at
from reports.run_store.store import CAUSES, LOG, RECORD, RunStore
from reports.run_store.tables import DIGESTS_TABLE, SCHEMAS
from reports.suite_digest import suite_digest
from specs.errors import CastigateError
from specs.loader import check_cached_documents
from specs.model.strict_model import StrictModel

FORMAT: Final = 4
FILE = "certificate.json"
PROGRAM = "program.json"
"""The file beside the certificate that has the backend's hello and the digests of its files."""
RUN = "run"
"""The folder of the run, beside the certificate."""
BASELINE = "baseline"
"""The folder of a copy of the baseline run, if the policy compares with one."""
SEALS = ("digest", "signature")
"""The keys of a certificate that are computed from all its other keys."""


class NothingRanError(CastigateError):
    """Every case of a run was declined or not run, so that there is nothing to certify."""


@dataclass(frozen=True)
class Evidence:
    """Everything from which a certificate is computed.

    ``store`` has the run that the gate judges. ``baseline`` is None if the policy needs none.
    """

    policy: Policy
    store: RunStore
    baseline: RunStore | None
    expected: tuple[str, ...]
    """The ids of all cases, and the names of all checks on pairs, that the run must hold."""
    folder: Path
    """The folder of the gate, which may hold what the gate recorded of its backend."""
    sealed: dict[str, str] = field(default_factory=dict)
    """By path in the folder: the sha256 of each file that the gate wrote beside the run."""

    def judged(self) -> PolicyVerdict:
        """Return the policy's verdict on the run, compared with the baseline if there is one.

        Raise CastigateError if a table is damaged, if the baseline has several backends and none of
        the run's name, or if the cached documents differ from their files.
        """
        before = None
        if self.baseline is not None:
            name = _baseline_backend(self.baseline, only_backend(self.store))
            cells = chain(read_cells(self.baseline), read_checks(self.baseline))
            by_name = {cell.name: cell for cell in cells if cell.backend == name}
            before = EarlierRun(by_name, arrays_of(self.baseline), arrays_of(self.store))
        record = self.store.record
        assert record.finished is not None
        check_cached_documents(record.selection.documents)
        return apply_policy(
            self.policy,
            read_cells(self.store),
            read_checks(self.store),
            self.expected,
            before,
            record.finished.date(),
            int((record.finished - record.started).total_seconds()),
        )


def certificate_body(
    evidence: Evidence, verdict: PolicyVerdict, findings: Mapping[str, Sequence[Finding]]
) -> dict[str, Any]:
    """Return a certificate without its seals, which are its digest and signature.

    ``findings`` are those of the run, by backend; the certificate holds them all, also those that
    the policy accepts. Raise NothingRanError if every case was declined or not run. Raise
    CastigateError if a file of the run or the baseline is missing, or the record of the backend's
    program is invalid.
    """
    if not verdict.ran:
        raise NothingRanError(
            f"run {evidence.store.folder.display_name}: the backend answered no case, "
            "so there is nothing to certify"
        )
    record, policy = evidence.store.record, evidence.policy
    assert record.finished is not None
    opened = left_open(evidence.store, verdict.cells)
    # Certificates of runs in which all was judged lack the key, as those of earlier versions do.
    unjudged = {"unjudged": verdict.unjudged} if verdict.unjudged else {}
    return {
        "format": FORMAT,
        # Sorts before all other keys, so that a reader sees first how much the result covers.
        "answered": verdict.answered,
        "suite": {"name": "castigate", "version": record.suite, "digest": suite_digest()},
        "documents": record.documents,
        "policy": {"name": policy.name, "digest": policy.digest, "content": policy.content},
        "backend": record.backends[0].model_dump(),
        "program": read_program(evidence.folder),
        "environments": [each.model_dump() for each in record.environments],
        "asked": _asked(record),
        "started": record.started.isoformat(),
        "finished": record.finished.isoformat(),
        "run": file_digests(evidence.store),
        "baseline": evidence.baseline and file_digests(evidence.baseline),
        "folder": evidence.sealed,
        "cases": _cases(verdict.cells),
        "checks": _cases(verdict.checks),
        "verdicts": verdict_counts(verdict.cells),
        "findings": [_finding(each) for found in findings.values() for each in found],
        "divergences": [_divergence(each) for each in verdict.divergences],
        "failures": [
            {
                "kind": failure.kind,
                "document": failure.document,
                "told": failure.reason,
                "cases": len(failure.cases),
                "examples": failure.cases[:EXAMPLES],
            }
            for failure in verdict.failures
        ],
        **unjudged,
        "left-out": [*left_out(policy, verdict, opened.get(record.backends[0].name, ""))],
        "unused": [each.model_dump(mode="json") for each in verdict.unused],
        "result": "pass" if verdict.passes else "fail",
    }


def with_digest(body: dict[str, Any]) -> dict[str, Any]:
    """Return a certificate's body with its own digest added under the key ``digest``."""
    return {**body, "digest": digest_of(body)}


def without_seals(certificate: dict[str, Any]) -> dict[str, Any]:
    """Return the body of a certificate, without digest and signature."""
    return {name: value for name, value in certificate.items() if name not in SEALS}


def only_backend(store: RunStore) -> str:
    """Return the name of a run's only backend; raise ValueError if the run has several."""
    [backend] = store.record.backends
    return backend.name


def open_baseline(out: str, policy: Policy) -> RunStore:
    """Open an earlier run with which a gate is to compare.

    Raise CastigateError if it is no complete run, if its tier, cases or number of examples are not
    those of the policy, or if its seed is the one that the policy names.
    """
    store = open_run(out)
    record, entry = store.record, policy.entry
    for setting, actual, expected in (
        ("tier", record.tier, policy.tier),
        ("cases", *map(_shown_choices, (record.selection.choices, policy.choices))),
        ("max-examples", record.max_examples, entry.max_examples),
    ):
        if actual != expected:
            raise CastigateError(
                f"baseline {out} was run with {setting} {actual}, but policy {policy.name} has "
                f"{setting} {expected}; give a baseline that was run with the policy's settings"
            )
    if entry.seed == record.seed:
        raise CastigateError(
            f"baseline {out} was run with seed {entry.seed} of policy {policy.name}, so that its "
            "inputs are known; remove `seed` from the policy, or give another one"
        )
    return store


def _shown_choices(choices: Sequence[TierOfCases]) -> str:
    return ", ".join(map(str, choices)) or "all"


def copy_run(store: RunStore, out: str) -> RunStore:
    """Copy a complete run without its log to the folder ``out``, and open the copy.

    Raise CastigateError if a file is missing, or cannot be read or written.
    """
    place = folder_at(out)
    others = [name for name in store.folder.names() if name in (CAUSES, DIGESTS_TABLE)]
    for name in (*SCHEMAS, *others, RECORD):
        place.write(name, _content(store, name), "give another --out")
    return open_run(out)


def file_digests(store: RunStore) -> dict[str, str]:
    """Map the name of each file of a run to its sha256; raise CastigateError if one is missing.

    The log of a vendor's program is included, if there is one.
    """
    others = [name for name in store.folder.names() if name in (LOG, CAUSES, DIGESTS_TABLE)]
    names = (RECORD, *SCHEMAS, *others)
    return {name: sha256(_content(store, name)).hexdigest() for name in names}


def folder_digests(folder: Path) -> dict[str, str]:
    """Map the path of each file in a gate's folder to its sha256.

    The certificate itself is left out. So are the folders of the run and of the baseline, whose
    digests ``file_digests`` gives.
    """
    paths = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*")}
    return {
        name: sha256(path.read_bytes()).hexdigest()
        for name, path in sorted(paths.items())
        if path.is_file() and name != FILE and name.partition("/")[0] not in (RUN, BASELINE)
    }


def read_program(folder: Path) -> dict[str, Any] | None:
    """Read what a gate recorded of its backend: its hello, and the sha256 of its files.

    Return None if the folder has no such file; raise CastigateError if it is invalid.
    """
    path = folder / PROGRAM
    if not path.is_file():
        return None
    return check_program(read_canonical(path.read_bytes(), str(path)), str(path))


def _content(store: RunStore, name: str) -> bytes:
    data = store.folder.read(name)
    if data is None:
        raise CastigateError(
            f"{store.folder.display_path(name)} is missing; copy the whole folder again"
        )
    return data


def arrays_of(store: RunStore) -> StoredArrays:
    """Return a function from digests to a run's arrays; its first call loads all of them."""
    answers = cache(lambda: RunAnswers(store))
    return lambda digest: answers().values(digest)


def _baseline_backend(baseline: RunStore, name: str) -> str:
    """Return ``name`` if the baseline has a backend of this name, else that of its only backend.

    Raise CastigateError if it has several, all with other names.
    """
    names = [backend.name for backend in baseline.record.backends]
    if name in names:
        return name
    if len(names) == 1:
        return names[0]
    path, others = baseline.folder.display_name, ", ".join(names)
    raise CastigateError(f"baseline {path} has no backend `{name}`; it has {others}")


def _asked(record: RunRecord) -> dict[str, Any]:
    tiers = {each.tier for each in record.selection.choices} or {record.tier}
    return {
        "documents": list(record.selection.documents),
        "tier": " and ".join(tier for tier in get_args(PolicyTier) if tier in tiers),
        "cases": [each.model_dump(mode="json") for each in record.selection.choices],
        "seed": record.seed,
        "max-examples": record.max_examples,
    }


def _cases(cells: Sequence[Cell]) -> dict[str, Any]:
    """Return the `count` of cells, a `table` of them by the first part of a name, and its `digest`.

    A cell's row has its verdict, its numbers of all, of open and of wrong inputs, and the digest of
    its inputs.
    """
    table: dict[str, dict[str, str]] = {}
    for cell in cells:
        row = f"{cell.verdict} {cell.inputs} {cell.open} {cell.wrong} {cell.asked or '-'}"
        version, _, rest = cell.name.partition("/")
        table.setdefault(version, {})[rest] = row
    return {"count": len(cells), "digest": digest_of(table), "table": table}


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "id": finding.name,
        "kind": finding.kind,
        "finding": finding.says,
        "cases": len(finding.cases),
        "inputs": finding.inputs,
        "exact": finding.is_exact,
    }


def _divergence(divergence: PolicyDivergence) -> dict[str, Any]:
    cell, broken, entry = divergence.cell, divergence.broken, divergence.accepted_by
    content: dict[str, Any] = {
        "case": cell.name,
        "verdict": cell.verdict,
        "standing": divergence.status,
    }
    if broken is not None:
        content |= {
            "rule": broken.rule,
            "clause": broken.clause,
            "level": broken.level,
            "wrong": broken.wrong,
            "runs": broken.runs,
            "smallest": broken.smallest,
            "answer": broken.answer,
            "allowed": list(broken.allowed),
            "region": broken.digest,
        }
    else:
        content["message"] = cell.message
    if entry is not None:
        content |= {"reason": entry.reason, "expires": entry.expires}
    return content


Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class ProgramHello(StrictModel):
    """The hello of a backend: what it reports of itself when it starts.

    Earlier versions of Castigate recorded only its name, version and claims.
    """

    name: str
    version: str
    claims: list[str]
    compiles_shapes: bool = False
    row_limits: list[int] = Field(default_factory=list)


class Program(StrictModel):
    """The content of ``program.json``: the backend's hello, and the sha256 of each of its files."""

    hello: ProgramHello
    files: dict[str, Digest]


def check_program(content: dict[str, Any], named: str) -> dict[str, Any]:
    """Return ``content`` if it is valid as a ``Program``; otherwise raise CastigateError.

    The error names the file ``named`` and the invalid key.
    """
    try:
        Program.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise CastigateError(
            f"{named}: `{where}`: {first['msg']}; get the original folder of the gate"
        ) from None
    return content
