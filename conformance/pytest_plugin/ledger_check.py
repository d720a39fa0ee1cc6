"""Compares each item with the ledger of its backend: excuses what is known, fails what is not."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from conformance.pytest_plugin.judging import JudgedBackend, documents_asked_for
from reports.case_patterns import VARIANTS, document_of, is_chain_check
from reports.judgement import Judgement
from reports.known_failures import KnownFailure, failures
from reports.ledger.ledger_file import (
    ledger_of,
    load_ledger,
    parts_of,
    path_of,
    update_command,
)
from reports.ledger.listing import (
    AppliedLedger,
    InputOptions,
    Ledger,
    LedgerComparison,
    compare_with_listings,
)
from specs.cases import JOINT, Case
from specs.errors import CastigateError
from specs.loader import own_documents
from specs.selection import house_rules_for

LEDGER = "castigate-ledger"
"""The property of a report that holds an item's record for the ledger."""
LEDGERS = pytest.StashKey["Ledgers"]()
MET_BY_DRAWN = "shown by tensors that the ledger's seed does not draw"
"""The reason for which an item is excused that fails in drawn tensors alone."""
INPUT_OPTIONS = ("--tier", "--seed", "--max-examples")
SELECTING_OPTIONS = {
    "keyword": "-k",
    "markexpr": "-m",
    "deselect": "--deselect",
    "lf": "--last-failed",
    "collectonly": "--collect-only",
}
"""Options that leave cases out, by their name in the configuration; unused ones are falsy."""


def selecting_options(config: pytest.Config) -> list[str]:
    """Return the options and arguments of pytest that leave cases out."""
    used = [option for name, option in SELECTING_OPTIONS.items() if config.getoption(name, None)]
    return [*used, *(str(argument) for argument in config.args if "::" in str(argument))]


class Ledgers:
    """The ledgers of a run's backends, and whether they are used, ignored or rewritten.

    A backend has one for the documents, and one for each set of house rules. The constructor raises
    CastigateError if a ledger's file is invalid, or if the options do not fit each other or a
    ledger that is to be rewritten.
    """

    def __init__(self, config: pytest.Config, backends: list[str]) -> None:
        words = config.getoption("--rules")
        rules = [f"{JOINT}{house_rules_for(word).name}" for word in words]
        # Without --document, only the house rules judge, so only their ledgers are used.
        kinds = [*(() if rules and not config.getoption("--document") else ("",)), *rules]
        self.names = [f"{backend}{kind}" for backend in backends for kind in kinds]
        self.updating = bool(config.getoption("--update-ledger"))
        self.input_options = InputOptions(*map(config.getoption, INPUT_OPTIONS))
        self._editions = frozenset(documents_asked_for(config))
        self.documents = {word.partition(":")[0] for word in self._editions}
        self.is_partial = bool(config.getoption("--document"))
        """Whether the run judges only documents that are named, so that others keep entries."""
        self.only_required = config.getoption("--level") == "required"
        self.exactly = config.getoption("--ledger") == "exact"
        self.ledgers: dict[str, Ledger] = {}
        if config.getoption("--no-ledger"):
            if self.updating:
                raise CastigateError(
                    "--no-ledger and --update-ledger exclude each other; leave one out"
                )
        else:
            for name in self.names:
                if (ledger := load_ledger(name)) is not None:
                    self.ledgers[name] = ledger
        if self.updating:
            self._require_whole_run(config)
        self.used = {
            name: ledger
            for name, ledger in self.ledgers.items()
            if ledger.is_about(self.input_options)
        }
        """The ledgers that were written with the same options, but for the seed."""

    def _require_whole_run(self, config: pytest.Config) -> None:
        """Raise CastigateError unless --update-ledger may rewrite all ledgers.

        It may not if options leave out cases of the documents or differ from a ledger's, or a
        backend can have no ledger. With --document, it may only change ledgers that exist. Without
        --document, chains are run if a ledger lists any, because they would seem mended otherwise.
        """
        if own := own_documents(self._editions):
            raise CastigateError(
                f"no ledger lists cases of a document of your own; leave out {min(own)} or "
                "--update-ledger"
            )
        if selecting := selecting_options(config):
            raise CastigateError(
                f"--update-ledger needs a whole run; leave out {', '.join(selecting)}"
            )
        for name in self.names:
            if path_of(name) is None:
                raise CastigateError(
                    f"backend `{parts_of(name)[0]}` can have no ledger: only a plain name "
                    "has one, with or without a variant"
                )
            ledger = self.ledgers.get(name)
            if ledger is None and self.is_partial:
                raise CastigateError(
                    f"{name} has no ledger in which --update-ledger could change the entries of a "
                    "document; leave out --document"
                )
            if ledger is not None and any(map(is_chain_check, ledger.listings)):
                config.option.chains |= not self.is_partial
            if ledger is not None and ledger.options != self.input_options:
                raise CastigateError(
                    f"the ledger of {name} was written with {ledger.options}; use these options "
                    f"with --update-ledger too, or remove {path_of(name)} first"
                )

    def applied(self, name: str, version: str) -> AppliedLedger | None:
        """Return the ledger ``name`` as used for a version of its backend; None if it is unused."""
        ledger = self.used.get(name)
        if ledger is None:
            return None
        return ledger.applied_to(version, self.input_options, exactly=self.exactly)

    def asks(self, name: str) -> bool:
        """Return whether --update-ledger needs a case or a check of this name to be judged.

        With --document, it needs the cases of the documents or versions named, and no checks.
        """
        edition = name.partition("/")[0]
        return not self.is_partial or bool({edition, document_of(name)} & self._editions)

    def rewrites(self, backend: JudgedBackend, name: str, case: Case) -> bool:
        """Return whether --update-ledger rewrites the entries of an item, or else keeps them.

        With --document it keeps those of checks, which concern other documents too, and of cases
        that the backend does not claim, which fail only because --document names them.
        """
        if not self.updating or not self.is_partial:
            return self.updating
        return name == case.id and backend.claims(case)

    def draws_anew(self, ledger: str) -> bool:
        """Return whether the run has another seed than a ledger in use, and so other tensors."""
        used = self.used.get(ledger)
        return used is not None and used.options != self.input_options

    def concerns(self, backend: JudgedBackend, case: Case) -> bool:
        """Return whether a backend's ledger can list a case.

        A document counts as claimed where --document names it, but ledgers are written without it.
        """
        return case.document not in self.documents or backend.claims(case)

    def drawn(
        self, backend: JudgedBackend, ledger: str, case: Case, judgement: Judgement
    ) -> list[KnownFailure]:
        """Return all failures of an item if tensors that the ledger's seed does not draw show some.

        Return none if the run has the ledger's seed. With --level=required, deviations are left
        out.
        """
        if not self.draws_anew(ledger) or not self.concerns(backend, case):
            return []
        everything = failures(case, judgement)
        if everything == failures(case, judgement, with_drawn=False):
            return []
        return [each for each in everything if not (self.only_required and each.what == "deviates")]

    def compare(
        self, backend: JudgedBackend, name: str, case: Case, found: list[KnownFailure], verdict: str
    ) -> LedgerComparison | None:
        """Compare the failures ``found`` of an item with the ledger; None if neither has any.

        ``name`` is that of the item, a case or check. A failure that --update-ledger lists counts
        as known. With --level=required, deviations are left out. An item of a document that only
        --document counts as claimed is not compared unless it is listed.
        """
        if self.rewrites(backend, name, case):
            return LedgerComparison("known", "goes into the ledger") if found else None
        applied = self.applied(ledger_of(backend.name, name), backend.version)
        listed = applied.at(name, found) if applied is not None else []
        if self.only_required:
            listed = [each for each in listed if each.failure.what != "deviates"]
            found = [each for each in found if each.what != "deviates"]
        if not listed and not self.concerns(backend, case):
            return None
        return compare_with_listings(listed, found, verdict)


def compared_with_ledger(
    item: pytest.Item, backend: JudgedBackend, case: Case, judgement: Judgement
) -> LedgerComparison | None:
    """Compare an item's failures with its ledger, and record the result in its ``user_properties``.

    Returns None, and records nothing, if the item has no ledger in use, cannot be listed, or has
    nothing to compare. With --update-ledger, an item that has nothing to compare is recorded. The
    ``failures`` of a record are None if the ledger keeps its entries of the item.

    With another seed than the ledger's, failures that drawn tensors alone show are excused here:
    ``LedgerUpdate`` fails the run if the ledger does not list their causes.
    """
    ledgers = item.config.stash[LEDGERS]
    ledger = ledger_of(backend.name, item.name)
    known = ledgers.names if ledgers.updating else ledgers.used
    # A ledger lists no comparisons of two variants.
    if ledger not in known or document_of(item.name) == VARIANTS:
        return None
    found = list(failures(case, judgement, with_drawn=not ledgers.draws_anew(ledger)))
    drawn = ledgers.drawn(backend, ledger, case, judgement)
    is_kept = not ledgers.rewrites(backend, item.name, case)
    compared = ledgers.compare(backend, item.name, case, found, judgement.verdict)
    if compared is None and not drawn and not ledgers.updating:
        return None
    record: dict[str, Any] = {
        "ledger": ledger,
        "item": item.name,
        "failures": None if is_kept else [*map(str, found)],
        "drawn": [*map(str, drawn)],
        "compared": asdict(compared) if compared is not None else None,
    }
    item.user_properties.append((LEDGER, record))
    if compared is None and drawn:
        return LedgerComparison("known", MET_BY_DRAWN)
    return compared


def comparison_of(record: dict[str, Any]) -> LedgerComparison | None:
    """Return the comparison in an item's record, which may have come from a worker of xdist."""
    compared = record["compared"]
    if compared is None:
        return None
    return LedgerComparison(**compared | {"findings": tuple(compared["findings"])})


def differs_from_ledger(report: pytest.TestReport) -> bool:
    """Return whether an item failed because its failures are not those that its ledger lists."""
    compared = (
        comparison_of(record)
        for name, record in report.user_properties
        if name == LEDGER and isinstance(record, dict)
    )
    return any(each is not None and each.status != "known" for each in compared)


def excuse(item: pytest.Item, backend: JudgedBackend, compared: LedgerComparison) -> str:
    """Say under which findings the ledger lists an item's failures, with links."""
    ledgers = item.config.stash[LEDGERS]
    applied = ledgers.applied(ledger_of(backend.name, item.name), backend.version)
    links = applied.links(compared.findings) if applied is not None else []
    return f"known: {', '.join([compared.message, *links])}"


def complaint(backend: JudgedBackend, name: str, compared: LedgerComparison) -> str:
    """Say how an item's failures differ from what its backend's ledger lists, and what to do."""
    update = update_command(ledger_of(backend.name, name))
    match compared.status:
        case "stale":
            advice = f"if the backend is mended, {update} removes the entry"
        case "changed":
            advice = f"if the change is intended, {update} records it"
        case _:
            advice = f"if it is to stay, {update} lists it"
    return f"\n  ledger    {compared.message}; {advice}"
