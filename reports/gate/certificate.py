"""A certificate: all that a gate has found, bound to what was judged, by what, and how.

It is made from a complete run and a policy alone, so that it can be made again and compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from reports.findings.cells import Cell
from reports.findings.read_cells import cells
from reports.gate.canonical_json import digest_of
from reports.gate.policy import Policy
from reports.gate.policy_verdict import EXAMPLES, Judged, Standing, judged, verdict_counts
from reports.run_store.open_run import open_run
from reports.run_store.record import RunRecord
from reports.run_store.storage import place_of
from reports.run_store.store import LOG, RECORD, RunStore
from reports.run_store.tables import SCHEMAS
from specs.errors import CastigateError

FLOORS = ("specs", "oracles", "reports", "conformance")
KINDS = (".py", ".yaml")
"""Programs, documents, formats; how pages look does not judge."""
LEDGERS = "reports/ledger/"
"""What frameworks are known to get wrong has no say in a gate, and changes by a command."""


@cache
def suite_digest() -> str:
    """The sha256 of all paths and contents, whether from a checkout or from a wheel."""
    digest = sha256()
    for floor in FLOORS:
        folder = _folder(floor)
        named = {
            f"{floor}/{path.relative_to(folder).as_posix()}": path for path in folder.rglob("*")
        }
        for name, path in sorted(named.items()):
            is_ledger = name.startswith(LEDGERS) and path.suffix == ".yaml"
            if path.suffix in KINDS and not is_ledger:
                digest.update(f"{name} {sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def _folder(floor: str) -> Path:
    spec = find_spec(floor)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


FORMAT: Final = 1
FILE = "certificate.json"
RUN = "run"
"""The folder of the run store beside a certificate."""
BASELINE = "baseline"
"""The folder of a copy of the baseline, where the policy asks for one."""
SEALS = ("digest", "signature")
"""What a certificate says of itself."""


class NothingRanError(CastigateError):
    """A run in which nothing was answered; there is no certificate of it."""


@dataclass(frozen=True)
class Evidence:
    """What a certificate is made from; without a baseline where the policy wants none."""

    policy: Policy
    store: RunStore
    baseline: RunStore | None
    expected: tuple[str, ...]
    """The ids of all cases that the run must hold."""

    def judged(self) -> Judged:
        """The run judged by the policy."""
        before = None
        if self.baseline is not None:
            before = dict(_of_backend(self.baseline, backend_of(self.store)))
        record = self.store.record
        assert record.finished is not None
        return judged(
            self.policy,
            cells(self.store),
            self.expected,
            before,
            record.finished.date(),
            int((record.finished - record.started).total_seconds()),
        )


def body_of(evidence: Evidence, found: Judged) -> dict[str, Any]:
    """Everything in a certificate but its seals; of a run that answered nothing there is none."""
    if not found.ran:
        raise NothingRanError(
            f"{evidence.store.place.given}: nothing ran; there is no certificate of that"
        )
    record, policy = evidence.store.record, evidence.policy
    assert record.finished is not None
    return {
        "format": FORMAT,
        "suite": {"name": "castigate", "version": record.suite, "digest": suite_digest()},
        "documents": record.documents,
        "policy": {"digest": policy.digest, "content": policy.content},
        "backend": record.backends[0].model_dump(),
        "environments": [each.model_dump() for each in record.environments],
        "asked": _asked(record),
        "started": record.started.isoformat(),
        "finished": record.finished.isoformat(),
        "run": digests_of(evidence.store),
        "baseline": evidence.baseline and digests_of(evidence.baseline),
        "cases": _cases(found.cells),
        "verdicts": verdict_counts(found.cells),
        "divergences": [_divergence(each) for each in found.standings],
        "failures": [
            {
                "kind": failure.kind,
                "document": failure.document,
                "told": failure.told,
                "cases": len(failure.cases),
                "examples": failure.cases[:EXAMPLES],
            }
            for failure in found.failures
        ],
        "result": "pass" if found.passes else "fail",
    }


def sealed(body: dict[str, Any]) -> dict[str, Any]:
    """A certificate with its digest."""
    return {**body, "digest": digest_of(body)}


def unsealed(certificate: dict[str, Any]) -> dict[str, Any]:
    """A certificate without what it says of itself."""
    return {name: value for name, value in certificate.items() if name not in SEALS}


def backend_of(store: RunStore) -> str:
    """The only backend of a run."""
    [backend] = store.record.backends
    return backend.name


def baseline_for(out: str, policy: Policy) -> RunStore:
    """An earlier run that was asked as a policy wants, or an error that says what differs."""
    store = open_run(out)
    before, wanted = store.record, policy.entry
    for what, old, new in (
        ("tier", before.tier, wanted.tier),
        ("seed", before.seed, wanted.seed),
        ("max-examples", before.max_examples, wanted.max_examples),
    ):
        if old != new:
            raise CastigateError(
                f"{out} was run with {what} {old}; policy {policy.name} wants {new}: "
                "run a baseline with the same"
            )
    return store


def copied(store: RunStore, out: str) -> RunStore:
    """A copy of a complete run in a new folder, which can be handed over with a certificate."""
    place = place_of(out)
    for name in (*SCHEMAS, RECORD):
        place.write(name, store.place.read(name) or b"", "give another --out")
    return open_run(out)


def digests_of(store: RunStore) -> dict[str, str]:
    """The sha256 of each file of a run, a program's log included."""
    logs = [name for name in store.place.names() if name == LOG]
    return {name: _digest(store, name) for name in (RECORD, *SCHEMAS, *logs)}


def _digest(store: RunStore, name: str) -> str:
    data = store.place.read(name)
    if data is None:
        raise CastigateError(f"{store.place.named(name)} is missing")
    return sha256(data).hexdigest()


def _of_backend(store: RunStore, name: str) -> Iterable[tuple[str, Cell]]:
    backend = _name_in(store, name)
    return ((cell.case, cell) for cell in cells(store) if cell.backend == backend)


def _name_in(store: RunStore, name: str) -> str:
    """The backend of a baseline: the one of the same name, or the only one."""
    names = [backend.name for backend in store.record.backends]
    if name in names:
        return name
    if len(names) == 1:
        return names[0]
    raise CastigateError(f"{store.place.given} holds no backend `{name}`, but {', '.join(names)}")


def _asked(record: RunRecord) -> dict[str, Any]:
    return {
        "documents": list(record.selection.documents),
        "tier": record.tier,
        "seed": record.seed,
        "max-examples": record.max_examples,
    }


def _cases(found: Sequence[Cell]) -> dict[str, Any]:
    """The table of cases: verdict, inputs, open ones, wrong ones, the digest of what was asked."""
    table: dict[str, dict[str, str]] = {}
    for cell in found:
        row = f"{cell.verdict} {cell.inputs} {cell.open} {cell.wrong} {cell.asked or '-'}"
        version, _, rest = cell.case.partition("/")
        table.setdefault(version, {})[rest] = row
    return {"count": len(found), "digest": digest_of(table), "table": table}


def _divergence(standing: Standing) -> dict[str, Any]:
    cell, broken, by = standing.cell, standing.broken, standing.by
    told: dict[str, Any] = {"case": cell.case, "verdict": cell.verdict}
    told["standing"] = standing.standing
    if broken is not None:
        told |= {
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
        told["message"] = cell.message
    if by is not None:
        told |= {"reason": by.reason, "expires": by.expires}
    return told
