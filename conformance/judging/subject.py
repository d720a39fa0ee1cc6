"""The facts about a backend that judges need not request, and the options of the run."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from oracles.claims import Claim
from reports.grading.allowed_answers import Expectations
from reports.judgement import Verdict
from reports.run_store.record import Selection
from specs.cases import Case


@dataclass(frozen=True)
class Settings:
    """Holds the options of a whole run."""

    seed: int = 0
    max_examples: int = 1000
    asked_for: frozenset[str] = frozenset()
    tier: str = "quick"
    isolates_sweeps: bool = False
    """Whether backends are trusted in nothing, as in a gate: none answers in the process that
    judges it, at the tier ``full`` either."""
    selection: Selection = field(default_factory=Selection)
    hides_unclaimed: bool = False
    """Whether scripts are hidden for documents that the backend does not claim."""
    keeps_all_answers: bool = True
    """Whether answers are kept also of cases that do not fail."""
    rules: tuple[tuple[str, str], ...] = ()
    """The texts of the house rules that apply, by name."""

    def is_full(self, case: Case) -> bool:
        """Whether a case is asked at the tier ``full``."""
        choice = self.selection.choice(case.id)
        return (self.tier if choice is None else choice.tier) == "full"


@dataclass(frozen=True)
class Subject:
    """A backend as judges see it.

    ``broken`` has a fault message for each dtype whose bits the adapter changes or loses.
    """

    name: str
    claimed: tuple[Claim, ...]
    broken: Mapping[str, str]
    is_believed: bool
    """Whether judges rely on the adapter's own words: that shapes are costly, and which cases
    share a kernel."""
    compiles_shapes: bool
    row_limits: tuple[int, ...]
    chain_roads: tuple[str, ...]
    """The ways in which the backend runs several casts as one program, the users' own way first."""
    settings: Settings
    expectations: Expectations

    @property
    def few_shapes(self) -> bool:
        """Whether the backend compiles for each shape, and the tier has no time for many shapes."""
        return self.settings.tier == "quick" and self.compiles_shapes and self.is_believed

    def claims(self, case: Case) -> bool:
        """Whether a broken rule counts: the backend claims the edition, or the user named it."""
        is_named = case.document in self.settings.asked_for
        return is_named or any(each.covers(case.document, case.version) for each in self.claimed)

    def graded(self, case: Case, levels: Collection[str], is_open: bool) -> Verdict:
        """The verdict on a case that breaks rules of these levels, or none."""
        if not levels:
            return "open" if is_open else "conforms"
        if not self.claims(case):
            return "differs"
        return "violates" if "required" in levels else "deviates"

    def failed(self, case: Case) -> Verdict:
        """The verdict on an error or a malformed answer where an answer is due."""
        return "error" if self.claims(case) else "differs"
