"""Holds what the suite finds against the ledgers of its backends, and rewrites them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from shutil import get_terminal_size
from typing import Any

import pytest

from conformance.selection import select
from oracles.registry import Backend
from reports.counterexample import block
from reports.judgement import Judgement
from reports.ledger.breaches import Breach, breaches
from reports.ledger.files import load_ledger, path_of
from reports.ledger.listing import Asked, Ledger, Standing, Word, standing
from reports.ledger.updating import updated
from reports.ledger.writing import write_ledger
from reports.summary import NARROWEST, ledger_table
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
    """A pytest plugin that knows the ledger of each backend that has one."""

    def __init__(self, config: pytest.Config, backends: list[Backend]) -> None:
        self.backends = {backend.name: backend for backend in backends}
        self.updating = bool(config.getoption("--update-ledger"))
        self.asked = Asked(*map(config.getoption, ASKED))
        self.only_required = config.getoption("--level") == "required"
        self.sums_up = not hasattr(config, "workerinput")
        if config.getoption("--no-ledger"):
            if self.updating:
                raise CastigateError("--no-ledger and --update-ledger exclude each other")
            self.ledgers: dict[str, Ledger] = {}
        else:
            loaded = {name: load_ledger(name) for name in self.backends}
            self.ledgers = {name: ledger for name, ledger in loaded.items() if ledger is not None}
        if self.updating:
            self._refuse_partial(config)
        self.used = {
            name: ledger for name, ledger in self.ledgers.items() if ledger.asked == self.asked
        }
        self.counts: dict[str, Counter[str]] = {}
        self.found: dict[str, dict[str, list[Breach]]] = {name: {} for name in self.backends}
        self.said: list[str] = []

    def _refuse_partial(self, config: pytest.Config) -> None:
        """An update needs every case, asked as the ledger says."""
        left_out = [said for name, said in SELECTING.items() if config.getoption(name, None)]
        left_out += [str(word) for word in config.args if "::" in str(word)]
        if left_out:
            raise CastigateError(
                f"--update-ledger needs a whole run; leave out {', '.join(left_out)}"
            )
        for name in self.backends:
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

    def standing(self, backend: Backend, case: Case, judgement: Judgement) -> Standing | None:
        """How a judgement stands to its backend's ledger, if that has anything to say of it."""
        found = list(breaches(case, judgement))
        if self.updating:
            return Standing("known", "goes into the ledger") if found else None
        ledger = self.used.get(backend.name)
        if ledger is None:
            return None
        listed = ledger.at(case.id, backend.version)
        if self.only_required:
            listed = [each for each in listed if each.breach.verdict != "deviates"]
            found = [each for each in found if each.verdict != "deviates"]
        stands = standing(listed, found, judgement.verdict)
        if stands is not None and stands.word == "unlisted" and not backend.claims(case.document):
            return None
        return stands

    def recorded(self, case: Case, judgement: Judgement, stands: Standing | None) -> dict[str, Any]:
        """What the process that sums up has to know of an item."""
        found = breaches(case, judgement) if self.updating else ()
        return {
            "backend": judgement.backend,
            "case": case.id,
            "standing": stands.word if stands is not None else "",
            "breaches": [breach.words for breach in found],
        }

    def pytest_report_header(self) -> list[str]:
        """Which ledgers are used, and what of them is not."""
        return [f"castigate: ledger of {name}: {line}" for name, line in self._header()]

    def _header(self) -> Iterator[tuple[str, str]]:
        for name, ledger in self.ledgers.items():
            version = self.backends[name].version
            used, others = ledger.counted(version)
            if name not in self.used:
                yield name, f"not used; it speaks of {ledger.asked}"
                continue
            yield name, f"{used} cases listed for {version}"
            if others:
                yield name, f"{others} cases not used, listed for other versions"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what an item recorded."""
        if report.when != "call":
            return
        for name, record in report.user_properties:
            if name == LEDGER and isinstance(record, dict):
                backend, word = record["backend"], record["standing"]
                if word:
                    self.counts.setdefault(backend, Counter())[word] += 1
                made = [Breach(**words) for words in record["breaches"]]
                self.found[backend][record["case"]] = made

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Rewrite the ledgers, if the run was whole."""
        if not self.updating or not self.sums_up:
            return
        try:
            for name in self.backends:
                self.said.append(self._update(name))
        except CastigateError as error:
            self.said.append(f"castigate: {error}")
            session.exitstatus = pytest.ExitCode.USAGE_ERROR

    def _update(self, name: str) -> str:
        found, path = self.found[name], path_of(name)
        whole = [case.id for case in select([])]
        missing = sum(case not in found for case in whole)
        if missing:
            raise CastigateError(
                f"--update-ledger needs a whole run, and {missing} of {len(whole)} cases of {name} "
                "were not judged; the ledger is as it was; run again without what stopped them"
            )
        breached = {case: made for case, made in found.items() if made}
        version = self.backends[name].version
        ledger = updated(self.ledgers.get(name), name, version, self.asked, breached)
        assert path is not None
        if not ledger.listings:
            path.unlink(missing_ok=True)
            return f"{name} {version} has no divergences and needs no ledger"
        entries = write_ledger(path, ledger)
        return f"{path}: {entries} entries, {len(breached)} cases of {name} {version}"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show how the cases stand to the ledgers."""
        if not self.said and not self.counts:
            return
        terminalreporter.section("ledger")
        if self.counts and not self.updating:
            width = max(NARROWEST, get_terminal_size().columns)
            terminalreporter.write_line(ledger_table(self.counts, width))
        for line in self.said:
            terminalreporter.write_line(line)


def met(item: pytest.Item, backend: Backend, case: Case, judgement: Judgement) -> str:
    """Excuse what the backend's ledger knows, and fail where it says otherwise.

    Gives what is to be said beside a failure that it does not know.
    """
    ledgers = item.config.stash[LEDGERS]
    stands = ledgers.standing(backend, case, judgement)
    if stands is None and not ledgers.updating:
        return ""
    item.user_properties.append((LEDGER, ledgers.recorded(case, judgement, stands)))
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
