"""Compares a backend in two runs, case by case: verdicts, failures, and the answers kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from reports.changes.change import (
    RIGHT,
    SEVERITY,
    UNCLAIMED,
    BackendChanges,
    CaseChange,
    ChangeKind,
    Example,
    causes_only_in,
    grouped,
    kind_of,
    more_causes,
    only_in,
)
from reports.findings.cells import Cell, CellKey
from reports.findings.finding import ExplainedCase, Finding, Findings
from reports.findings.finding_text import counted, datum_words, share_words, shortened
from reports.findings.read_findings import read_cells, read_checks, read_findings
from reports.grading.allowed_answers import Expectations
from reports.judgement import FAILING, AnswerDigest
from reports.known_failures import problems_region
from reports.outputs.backend_comparison import Difference, WhoIsRight, compare_answers
from reports.run_store.open_run import RunAnswers, read_digests
from reports.run_store.record import RunRecord
from reports.run_store.store import RunStore

SHOWN_BY: Mapping[ChangeKind, tuple[WhoIsRight, ...]] = {
    "worse": ("one", "neither"),
    "better": ("other", "neither"),
    "otherwise": ("both", "open", "neither", "one", "other"),
}
"""Which differences of answers show a change of each kind; the first that occurs is shown."""
OUTCOMES = {"error": "an error", "crashed": "a crash", "unsupported": "unsupported"}
"""The words for what came of a case that has no answers."""
LONGEST_OUTCOME = 60
"""The most characters of a message that says what came of a case."""
OTHER_INPUTS = "other inputs were asked"
NOT_KEPT = "one of the runs has no digest of them"
ALLOWED = "an allowed answer"
OTHER_ALLOWED = "another allowed answer"


def changes_of_runs(
    before: RunStore, now: RunStore, backends: Iterable[str]
) -> list[BackendChanges]:
    """Compare backends in two complete runs, on the cases and checks that both were asked.

    Raise CastigateError if a table or the stored findings of a run are damaged.
    """
    cells = {(each.backend, each.name): each for each in _cells(now)}
    earlier = ChangedCells(cells, have_same_inputs(before.record, now.record))
    for each in _cells(before):
        earlier.add(each)
    findings = read_findings(before), read_findings(now)
    return [*describe_changes((before, now), earlier, findings, backends)]


def _cells(store: RunStore) -> Iterator[Cell]:
    yield from read_cells(store, has_inputs=False)
    yield from read_checks(store)


def have_same_inputs(before: RunRecord, now: RunRecord) -> bool:
    """Return whether two runs asked the same inputs of every case."""
    asked = [(each.tier, each.seed, each.max_examples) for each in (before, now)]
    return asked[0] == asked[1]


@dataclass
class ChangedCells:
    """The results that a run before had otherwise than ``now``, and how many it had alike.

    No result that is the same is kept: those of two runs together take twice the memory.
    """

    now: Mapping[CellKey, Cell]
    has_same_inputs: bool
    pairs: dict[CellKey, tuple[Cell, Cell]] = field(default_factory=dict)
    same: Counter[str] = field(default_factory=Counter)
    """By backend."""
    uncompared: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By backend and reason, those among ``same`` whose digested answers are not compared."""
    reclaimed: Counter[str] = field(default_factory=Counter)
    """By backend, those among ``same`` that only a claim of another version judges otherwise."""
    have_cases: set[str] = field(default_factory=set)
    """The backends of which a case, not only a check on a pair, is in both runs."""

    def add(self, before: Cell) -> None:
        """Compare a result with that of now, unless one of the runs did not ask the case."""
        key = before.backend, before.name
        now = self.now.get(key)
        if now is None or "not-run" in (before.verdict, now.verdict):
            return
        if not before.check:
            self.have_cases.add(before.backend)
        if has_changed(before, now, has_same_inputs=self.has_same_inputs):
            answers = _answers(before)
            if answers is None or answers != _answers(now):
                self.pairs[key] = before, now
                return
            self.reclaimed[before.backend] += 1
        self.same[before.backend] += 1
        digests = before.answer_digest, now.answer_digest
        _, reason = compare_digests(*digests, has_same_inputs=self.has_same_inputs)
        if reason:
            self.uncompared[before.backend, reason] += 1


def has_changed(before: Cell, now: Cell, *, has_same_inputs: bool) -> bool:
    """Return whether a case has another verdict, fails otherwise, or has other answers.

    With other inputs, other ones are wrong, and only verdicts and rules can be compared.
    """
    if before.verdict != now.verdict:
        return True
    if not has_same_inputs:
        return {each.key for each in before.broken} != {each.key for each in now.broken}
    if (before.asked, before.answers) != (now.asked, now.answers):
        return True
    is_same, _ = compare_digests(before.answer_digest, now.answer_digest, has_same_inputs=True)
    return is_same is False or failure_state(before) != failure_state(now)


def compare_digests(
    before: AnswerDigest | None, now: AnswerDigest | None, *, has_same_inputs: bool
) -> tuple[bool | None, str]:
    """Return whether two digests are of the same answers, or None with the reason why not known.

    The reason is empty if neither side has answers that are digested.
    """
    if before is None and now is None:
        return None, ""
    if before is None or now is None:
        return None, NOT_KEPT
    if not has_same_inputs or before.asked != now.asked:
        return None, OTHER_INPUTS
    return before.answers == now.answers, ""


def changed_example(
    name: str, before: AnswerDigest | None, now: AnswerDigest | None
) -> Example | None:
    """Return an input of a case whose kept answer is another now; None if none is kept."""
    if before is None or now is None:
        return None
    answers = {each.given: each.got for each in now.examples}
    for each in before.examples:
        got = answers.get(each.given, each.got)
        if got != each.got:
            return Example(name, each.given, each.got, got)
    return None


def failure_state(cell: Cell) -> tuple[object, ...]:
    """Return the data by which two failures of a case are the same; no sentence is part of it."""
    broken = [(*each.key, each.wrong, each.digest) for each in cell.broken]
    if cell.check or cell.verdict not in FAILING:
        return ([each[:3] for each in broken] if cell.check else broken, "")
    return broken, problems_region(cell.as_case, cell.problems)


def describe_changes(
    stores: tuple[RunStore, RunStore],
    changed: ChangedCells,
    findings: tuple[Findings, Findings],
    backends: Iterable[str],
) -> Iterator[BackendChanges]:
    """Yield for each backend what changed between two runs.

    ``findings`` are those of the run before and of the run now.
    """
    digests = {
        digest
        for pair in changed.pairs.values()
        for cell in pair
        for digest in (cell.asked, cell.answers)
        if digest is not None
    }
    answers = [RunAnswers(store, digests) for store in stores]
    digested = [
        {key: each for key, each in read_digests(store) if key in changed.pairs} for store in stores
    ]
    versions = [store.record.versions for store in stores]
    expectations = Expectations(independent=False)
    for backend in backends:
        old, new = (
            _Side(recorded, digests_of_run, _by_case(found.get(backend, ())))
            for recorded, digests_of_run, found in zip(answers, digested, findings, strict=True)
        )
        changes = [
            _CellPair(*pair, old, new, expectations).change()
            for (name, _), pair in changed.pairs.items()
            if name == backend
        ]
        before, now = (each[backend] for each in versions)
        since = f"since {before if before != now else 'the previous run'}"
        notes = [
            f"  answers of {counted(count, 'case')} are not compared: {reason}"
            for (name, reason), count in changed.uncompared.items()
            if name == backend
        ]
        if count := changed.reclaimed[backend]:
            notes.append(
                f"  {counted(count, 'case')} as before: only the claimed version of the document "
                "is another"
            )
        yield BackendChanges(
            backend,
            now,
            since,
            grouped(changes),
            changed.same[backend],
            tuple(notes),
            has_cases=backend in changed.have_cases,
        )


Shares = Mapping[str, Sequence[tuple[Finding, ExplainedCase]]]
"""By case or check, the findings that explain it, each with its share."""


def _by_case(findings: Sequence[Finding]) -> Shares:
    shares: dict[str, list[tuple[Finding, ExplainedCase]]] = {}
    for finding in findings:
        for share in finding.explained:
            shares.setdefault(share.cell.name, []).append((finding, share))
    return shares


@dataclass(frozen=True)
class _Side:
    """One of two runs: its kept answers and digests, and the causes of what failed."""

    answers: RunAnswers
    digests: Mapping[CellKey, AnswerDigest]
    shares: Shares

    def causes(self, cell: Cell) -> dict[str, str]:
        """Return the sentence of each finding that explains a cell, by its name."""
        return {each.name: each.says for each, _ in self.shares.get(cell.name, ())}

    def share(self, cell: Cell, other: Mapping[str, str]) -> ExplainedCase | None:
        """Return a share of a cell's failure, by a cause that is not in ``other`` if there is one.

        It is None if the cell does not fail.
        """
        shares = self.shares.get(cell.name, ())
        own = [share for finding, share in shares if finding.name not in other]
        return next(iter([*own, *(share for _, share in shares)]), None)


def _outcome(cell: Cell, share: ExplainedCase | None) -> str:
    """Describe a case's result: a wrong element, a finding, the verdict or the message."""
    if share is not None and (tensor := share.wrong_tensor) is not None:
        return f"{tensor.given} gives {tensor.got}, not {' or '.join(tensor.allowed)}"
    if share is not None and (words := share_words(share)):
        return shortened(words, LONGEST_OUTCOME)
    if cell.broken and cell.broken[0].smallest is not None:
        first = cell.broken[0]
        given = datum_words(cell.source, first.smallest or "")
        return f"{given} gives {datum_words(cell.target, first.answer or '')}"
    if cell.verdict in OUTCOMES:
        return OUTCOMES[cell.verdict]
    return shortened(cell.message, LONGEST_OUTCOME) if cell.message else RIGHT


@dataclass(frozen=True)
class _CellPair:
    """A case that changed: its result before and now."""

    before: Cell
    now: Cell
    old: _Side
    new: _Side
    expectations: Expectations

    def change(self) -> CaseChange:
        """Return how the case changed."""
        before, now = self.before, self.now
        differences = self._differences()
        kind = self._kind({each.right for each in differences})
        was, will = self.old.causes(before), self.new.causes(now)
        return CaseChange(
            now.name,
            kind,
            _side_words(before, was, will, ALLOWED if kind == "otherwise" else RIGHT),
            _side_words(now, will, was, OTHER_ALLOWED if kind == "otherwise" else RIGHT),
            tuple(dict.fromkeys([*only_in(was, will), *only_in(will, was)])),
            causes_only_in(will, was) if kind == "worse" else causes_only_in(was, will),
            self._example(kind, differences, was, will),
            sum(each.count for each in differences),
        )

    def _differences(self) -> tuple[Difference, ...]:
        """Compare the answers of both sides; there are none to compare unless both are kept."""
        first = self.old.answers.answered(self.before.asked, self.before.answers)
        second = self.new.answers.answered(self.now.asked, self.now.answers)
        if first is None or second is None:
            return ()
        return compare_answers(self.now.as_case, first, second, self.expectations).differences

    def _kind(self, right: set[WhoIsRight]) -> ChangeKind:
        before, now = self.before, self.now
        rise = SEVERITY.get(now.verdict, 0) - SEVERITY.get(before.verdict, 0)
        if _gives_nothing(before) and _gives_nothing(now):
            return "otherwise" if now.verdict == "unsupported" else kind_of(rise, 0)
        if now.verdict == "unsupported" or (_gives_nothing(now) and rise <= 0):
            return "unsupported"
        if _gives_nothing(before) and before.verdict not in FAILING:
            return "worse" if rise > 0 else "supported"
        if rise > 0 or ("one" in right and now.verdict in FAILING):
            return "worse"
        if "other" in right and before.verdict in FAILING:
            return "better"
        if right or now.verdict not in FAILING:
            return kind_of(rise, 0)
        causes = more_causes(self.new.causes(now), self.old.causes(before))
        return kind_of(rise, causes or now.wrong - before.wrong)

    def _example(
        self,
        kind: ChangeKind,
        differences: Sequence[Difference],
        was: Mapping[str, str],
        will: Mapping[str, str],
    ) -> Example | None:
        case = self.now.name
        for right in SHOWN_BY.get(kind, ()):
            for each in differences:
                if each.right == right:
                    answers = (each.answer, each.other_answer)
                    before, now = (datum_words(self.now.target, answer) for answer in answers)
                    return Example(case, datum_words(self.now.source, each.smallest), before, now)
        if kind == "otherwise" and (shown := self._free_example()) is not None:
            return shown
        old, new = self.old.share(self.before, will), self.new.share(self.now, was)
        first, second = (each.wrong_tensor if each is not None else None for each in (old, new))
        # What conforms gives every input an allowed answer, so this one too.
        if first is not None and self.now.verdict == "conforms":
            return Example(case, first.given, first.got, " or ".join(first.allowed))
        if second is not None and self.before.verdict == "conforms":
            return Example(case, second.given, " or ".join(second.allowed), second.got)
        if (
            first is not None
            and second is not None
            and first.given == second.given
            and first.got != second.got
        ):
            return Example(case, first.given, first.got, second.got)
        outcomes = _outcome(self.before, old), _outcome(self.now, new)
        if outcomes[0] == outcomes[1] and self.before.wrong != self.now.wrong:
            counts = (each.wrong for each in (self.before, self.now))
            before, now = (counted(count, "wrong input") for count in counts)
            return Example(case, "", before, now)
        return Example(case, "", *outcomes) if outcomes[0] != outcomes[1] else None

    def _free_example(self) -> Example | None:
        """Return an example of digested answers that changed; None if none is kept."""
        key = self.now.backend, self.now.name
        before, now = self.old.digests.get(key), self.new.digests.get(key)
        return changed_example(self.now.name, before, now)


def _gives_nothing(cell: Cell) -> bool:
    """Return whether a case is unsupported, or ended in an error, be it right or wrong."""
    if cell.verdict == "unsupported":
        return True
    has_answers = cell.answers is not None or cell.answer_digest is not None
    return bool(cell.message) and not (cell.broken or has_answers)


def _answers(cell: Cell) -> tuple[object, ...] | None:
    """Return what does not depend on claims if a case has answers that break a rule, else None."""
    if not cell.broken or not cell.is_answered:
        return None
    return cell.name, failure_state(cell)[0], cell.asked, cell.answers


def _side_words(
    cell: Cell, causes: Mapping[str, str], others: Mapping[str, str], right: str
) -> tuple[str, ...]:
    if cell.verdict == "differs":
        return (UNCLAIMED,)
    if cell.verdict == "unsupported":
        return ("unsupported",)
    return tuple(causes[name] for name in only_in(causes, others)) or (right,)
