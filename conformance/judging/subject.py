"""The facts about a backend that judges need not request, and the options of the run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from oracles.claims import Claim, is_held_to
from reports.drawn_tensors import TIMES_FULL, TIMES_GATE
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
    """The documents that the user named, as ``name`` or ``name:version``."""
    tier: str = "quick"
    isolates_sweeps: bool = False
    """Whether no backend is trusted, as in a gate: then none runs in the process that judges it,
    not even for the sweeps of the tier ``full``."""
    selection: Selection = field(default_factory=Selection)
    hides_unclaimed: bool = False
    """Whether scripts are hidden for documents that the backend does not claim."""
    keeps_all_answers: bool = True
    """Whether a run stores answers also of cases that do not fail."""
    has_turns: bool = False
    """Whether a case that repeats another is left to some seeds, unless all is asked of it."""
    shows_usual_scales: bool = False
    """Whether the example of a wrong element has an ordinary scale if one is wrong. A run shows the
    simplest bits instead, which ledgers list."""
    documents: tuple[str, ...] = ()
    """The texts of the users' own documents that are selected."""
    rules: tuple[tuple[str, str], ...] = ()
    """The names and texts of the house rules that apply, in pairs."""

    def is_full(self, case: Case) -> bool:
        """Whether a case is judged at the tier ``full``."""
        choice = self.selection.choice(case.id)
        return (self.tier if choice is None else choice.tier) == "full"

    def asks_all(self, case: Case) -> bool:
        """Whether a case is requested in all listed tensors: at the tier ``full``, and in gates."""
        return self.is_full(case) or self.isolates_sweeps

    def draws(self, case: Case, few: int) -> int:
        """Return how many tensors to draw where the tier quick of a run draws a ``few``."""
        if self.is_full(case):
            return few * TIMES_FULL
        return few * TIMES_GATE if self.isolates_sweeps else few


@dataclass(frozen=True)
class Subject:
    """What judges know of a backend without a request.

    ``broken`` has a fault message for each dtype whose bits the adapter changes or loses.
    ``row_limits`` are the numbers of elements above which the backend's code changes.
    """

    name: str
    claimed: tuple[Claim, ...]
    broken: Mapping[str, str]
    is_believed: bool
    """Whether judges rely on the adapter's statements: that each shape is compiled, and which cases
    share a kernel."""
    compiles_shapes: bool
    row_limits: tuple[int, ...]
    chain_roads: tuple[str, ...]
    """The ways in which the backend runs several casts as one program, the users' own way first."""
    settings: Settings
    expectations: Expectations
    offers: Callable[[str], bool] = lambda _: True
    """Whether the backend has a method, by the method's name."""

    @property
    def few_shapes(self) -> bool:
        """Whether to use few shapes: at tier quick, if an adapter compiles each and is believed."""
        return self.settings.tier == "quick" and self.compiles_shapes and self.is_believed

    def claims(self, case: Case) -> bool:
        """Whether a rule that the backend breaks in a case counts against it.

        It does if the backend claims the version, or if the user named the version, or the document
        of which the backend claims none.
        """
        return is_held_to(self.claimed, self.settings.asked_for, case.document, case.version)

    def graded(self, case: Case, levels: Collection[str], is_open: bool) -> Verdict:
        """Return the verdict on a case whose broken rules have these ``levels``, if any.

        ``is_open`` is whether the document leaves the whole case open.
        """
        if not levels:
            return "open" if is_open else "conforms"
        if not self.claims(case):
            return "differs"
        return "violates" if "required" in levels else "deviates"

    def failed(self, case: Case) -> Verdict:
        """Return the verdict on an error or a malformed answer where an answer is due."""
        return "error" if self.claims(case) else "differs"
