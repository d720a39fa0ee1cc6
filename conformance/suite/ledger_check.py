"""Holds what the suite finds against the ledgers of its backends, item by item."""

from __future__ import annotations

from typing import Any

import pytest

from oracles.registry import Backend
from reports.counterexample.failure_text import block
from reports.diff.judgement import Judgement
from reports.ledger.breaches import Breach, breaches
from reports.ledger.case_patterns import is_known
from reports.ledger.ledger_file import load_ledger, path_of
from reports.ledger.listing import Asked, Ledger, Standing, Word, standing
from specs.cases import Case
from specs.errors import CastigateError

LEDGER = "castigate-ledger"
LEDGERS = pytest.StashKey["Ledgers"]()
ASKED = ("--tier", "--seed", "--max-examples")
SELECTING = {
    "document": "--document",
    "keyword": "-k",
    "markexpr": "-m",
    "deselect": "--deselect",
    "lf": "--last-failed",
    "collectonly": "--collect-only",
}
"""Options that leave cases out; each is falsy where it is not given."""


class Ledgers:
    """The ledgers of a run's backends, those that have one, and what the user wants of them."""

    def __init__(self, config: pytest.Config, names: list[str]) -> None:
        self.names = names
        self.updating = bool(config.getoption("--update-ledger"))
        self.asked = Asked(*map(config.getoption, ASKED))
        self.asked_for = {word.partition(":")[0] for word in config.getoption("--document")}
        self.only_required = config.getoption("--level") == "required"
        self.ledgers: dict[str, Ledger] = {}
        if config.getoption("--no-ledger"):
            if self.updating:
                raise CastigateError("--no-ledger and --update-ledger exclude each other")
        else:
            loaded = {name: load_ledger(name) for name in names}
            self.ledgers = {name: ledger for name, ledger in loaded.items() if ledger is not None}
        if self.updating:
            self._refuse_partial(config)
        self.used = {
            name: ledger for name, ledger in self.ledgers.items() if ledger.asked == self.asked
        }

    def _refuse_partial(self, config: pytest.Config) -> None:
        """An update needs every case, asked as the ledger says."""
        left_out = [said for name, said in SELECTING.items() if config.getoption(name, None)]
        left_out += [str(word) for word in config.args if "::" in str(word)]
        if left_out:
            raise CastigateError(
                f"--update-ledger needs a whole run; leave out {', '.join(left_out)}"
            )
        for name in self.names:
            if path_of(name) is None:
                raise CastigateError(
                    f"backend `{name}` can have no ledger: only a plain name has one, "
                    "with or without a variant"
                )
            ledger = self.ledgers.get(name)
            if ledger is not None and ledger.asked != self.asked:
                raise CastigateError(
                    f"--update-ledger needs a run as the ledger of {name} has it "
                    f"({ledger.asked}); or remove {path_of(name)} first"
                )

    def standing(
        self, backend: Backend, name: str, case: Case, found: list[Breach], verdict: str
    ) -> Standing | None:
        """How an item stands to its backend's ledger, if that has anything to say of it."""
        if self.updating:
            return Standing("known", "goes into the ledger") if found else None
        listed = self.used[backend.name].at(name, backend.version)
        if self.only_required:
            listed = [each for each in listed if each.breach.verdict != "deviates"]
            found = [each for each in found if each.verdict != "deviates"]
        is_claimed = backend.claims(case.document, case.version)
        if not listed and case.document in self.asked_for and not is_claimed:
            return None
        return standing(listed, found, verdict)


def met(item: pytest.Item, backend: Backend, case: Case, judgement: Judgement) -> str:
    """Excuse what the backend's ledger knows, and fail where it says otherwise.

    Gives what is to be said beside a failure that it does not know.
    """
    ledgers = item.config.stash[LEDGERS]
    has_none = backend.name not in ledgers.used and not ledgers.updating
    if has_none or not is_known(item.name):
        # What is not known is of two roads of a framework: a ledger speaks of one backend alone.
        return ""
    of_pair = item.name != case.id
    found = list(breaches(case, judgement, of_pair, explains=ledgers.updating))
    stands = ledgers.standing(backend, item.name, case, found, judgement.verdict)
    if stands is None and not ledgers.updating:
        return ""
    record: dict[str, Any] = {
        "backend": backend.name,
        "item": item.name,
        "standing": stands.word if stands is not None else "",
        "breaches": [breach.words for breach in found],
    }
    item.user_properties.append((LEDGER, record))
    if stands is None:
        return ""
    if stands.word == "known":
        pytest.xfail(f"known: {stands.said}")
        # Reached under --runxfail only, where nothing may be excused.
        return ""
    said = f"\n  ledger    {stands.said}; {_advice(backend.name, stands.word)}"
    if stands.word != "unlisted":
        pytest.fail(block(case, judgement) + said, pytrace=False)
    return said


def _advice(backend: str, word: Word) -> str:
    """What to do about a case of which the ledger says something else."""
    update = f"pytest --pyargs conformance --backend={backend} --update-ledger"
    match word:
        case "stale":
            return f"if it is mended, {update} strikes it out"
        case "changed":
            return f"if that is meant, {update} takes it over"
        case _:
            return f"if it is to stay, {update} lists it"
