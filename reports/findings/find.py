"""Finds the root causes behind the failures of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from oracles.protocol import Mask
from oracles.reference import expect_by_exact
from reports.case_patterns import INVARIANCES
from reports.findings.causes import REJECTED, Cause, Failure, failures_of, find_causes
from reports.findings.cells import (
    Cell,
    StoredArrays,
    StoredSamples,
    WrongAnswers,
    is_exhaustive,
)
from reports.findings.finding import KINDS, UNEXPLAINED, ExplainedCase, Finding
from reports.findings.intervals import region_words, segments
from reports.findings.mechanism_search import MechanismSearch
from reports.findings.root_causes import Undecided, explain_wrong_answers, sampled_kinds
from reports.findings.wrong import Wrong, answered_ruling, is_negative, known_ruling, negated
from reports.findings.wrong import allowed as allowed_by_case
from reports.grading.allowed_answers import describe_allowed, is_nan
from reports.grading.divergences import datum_of, index_of_simplest
from reports.judgement import FAILING, NO_ANSWER
from reports.problem_words import words
from reports.problems import ChangesWithLayout, WrongTensor
from specs.formats import Format, format_named


@dataclass
class _Draft:
    """A finding while its cases are collected.

    For wrong values it also has the mechanisms and the regions of inputs to which they are limited.
    ``signs`` has the signs of the failing inputs (True is negative). ``requires_one`` is whether
    each case requires one answer of all its failing inputs, but for the sign.
    """

    says: str
    mechanisms: list[Wrong | Undecided] = field(default_factory=list)
    regions: set[str] = field(default_factory=set)
    signs: set[bool] = field(default_factory=set)
    requires_one: bool = True
    explained: list[ExplainedCase] = field(default_factory=list)


MOST_MISTAKEN = 3
"""The most mistaken dtypes that a sentence names; of more, the others are counted."""
MOST_REGIONS = 2
"""The most regions that a sentence names; if there are more, only the cases name them."""
Drafts = dict[Cause, _Draft]


def find_findings(cells: Iterable[Cell], stored: StoredArrays) -> dict[str, tuple[Finding, ...]]:
    """Return the findings of each backend that fails, by severity and then by number of cases.

    The most severe come first, unexplained answers last. ``cells`` that do not fail are ignored.
    ``stored`` reads the inputs and answers to which cells refer.
    """
    return FindingsSearch(stored).find(cells)


class FindingsSearch:
    """Finds the causes of failures; ``prepare`` takes single cells while others are judged."""

    def __init__(self, stored: StoredArrays) -> None:
        self._stored = stored
        self._samples = StoredSamples(stored)
        self._mechanisms = MechanismSearch(stored)

    def prepare(self, cell: Cell) -> None:
        """Evaluate mechanisms on the wrong answers of a cell, and cache what they explain.

        This takes most of a search's time, and may be left out.
        """
        for wrong in self._wrong_answers(cell):
            for _ in self._mechanisms.claims(wrong):
                pass

    def _wrong_answers(self, cell: Cell) -> Iterator[WrongAnswers]:
        """Yield the wrong answers of a cell, by rule, except those where an error is required."""
        for broken in cell.broken:
            if broken.failing is not None and broken.allowed != REJECTED:
                yield WrongAnswers(cell, broken, broken.failing, self._samples)

    def find(self, cells: Iterable[Cell]) -> dict[str, tuple[Finding, ...]]:
        """Return the findings of each backend that fails, sorted as by ``find_findings``."""
        by_backend: dict[str, list[Cell]] = {}
        for cell in cells:
            if cell.verdict in FAILING:
                by_backend.setdefault(cell.backend, []).append(cell)
        return {
            backend: tuple(_sorted_findings(backend, self._drafts(failing)))
            for backend, failing in by_backend.items()
        }

    def _drafts(self, cells: Sequence[Cell]) -> Drafts:
        drafts: Drafts = {}
        # If answers depend on the tensor, other tensors have further wrong answers.
        unsteady = {(cell.source, cell.target) for cell in cells if _changes_with_tensor(cell)}
        wrong = [each for cell in cells for each in self._wrong_answers(cell)]
        others = [each for cell in cells for each in failures_of(cell)]
        for each, (cause, says) in zip(others, find_causes(others), strict=True):
            draft = drafts.setdefault(cause, _Draft(says))
            # Of several messages the shortest, so that the order of cases does not matter.
            draft.says = min(draft.says, says, key=lambda text: (len(text), text))
            draft.explained.append(_share_of(each))
        kinds, tried = {each.kind for each in wrong}, len(sampled_kinds(wrong))
        of_sample = (
            f"; looked for in {tried:,} of {len(kinds):,} ways to fail"
            if tried < len(kinds)
            else ""
        )
        for explanation in explain_wrong_answers(wrong, self._mechanisms):
            answers = explanation.wrong
            is_steady = (answers.cell.source, answers.cell.target) not in unsteady
            for mechanism, share in explanation.shares.items():
                origin = answers.cell.origin
                name = mechanism.name + (origin.name_end if origin is not None else "")
                cause = Cause("wrong value", name)
                draft = drafts.setdefault(cause, _Draft(mechanism.says))
                draft.mechanisms.append(mechanism)
                draft.regions.add(share.region)
                draft.signs |= _signs(answers, share.runs)
                explained = _explained_case(answers, share.runs, self._stored, is_steady)
                draft.explained.append(explained)
                if draft.requires_one:
                    draft.requires_one = _requires_one(answers, share.runs, explained.allowed)
            if answers.left.any():
                says = f"gives wrong values that no closed form explains{of_sample}"
                draft = drafts.setdefault(Cause("wrong value", UNEXPLAINED), _Draft(says))
                draft.explained.append(
                    _explained_case(answers, answers.left, self._stored, is_steady)
                )
        return drafts


def _sorted_findings(backend: str, drafts: Drafts) -> list[Finding]:
    found = [
        Finding(cause.name, backend, cause.kind, _says(cause, draft), tuple(draft.explained))
        for cause, draft in drafts.items()
    ]
    return sorted(
        found,
        key=lambda each: (
            each.name == UNEXPLAINED,
            KINDS.index(each.kind),
            -len(each.cases),
            each.name,
        ),
    )


def _changes_with_tensor(cell: Cell) -> bool:
    """Whether a check on a pair shows another answer elsewhere, not only that one is missing."""
    return cell.check.startswith(f"{INVARIANCES}/") and (
        cell.verdict not in NO_ANSWER
        or any(isinstance(each, ChangesWithLayout) for each in cell.problems)
    )


def _signs(wrong: WrongAnswers, runs: Mask) -> set[bool]:
    """Return the signs of failing inputs (True is negative), of NaNs those of their answers.

    The sign of a NaN says nothing about that of a number that comes out instead.
    """
    source, target = format_named(wrong.cell.source), format_named(wrong.cell.target)
    inputs, answers = wrong.samples.of_runs(runs).stored_as(source, target)
    signs = is_negative(source, inputs)
    if target.kind == "float":
        signs = np.where(is_nan(source, inputs), is_negative(target, answers), signs)
    return set(signs.tolist())


def _requires_one(wrong: WrongAnswers, runs: Mask, required: Sequence[str]) -> bool:
    """Return whether all failing inputs in the marked runs require one answer, but for its sign.

    ``required`` is what one of them requires, and only what ``_required_words`` has a word for is
    looked at.
    """
    source, target = format_named(wrong.cell.source), format_named(wrong.cell.target)
    if not _required_words(target, tuple(required), ()) or answered_ruling(wrong.case) is None:
        return True
    inputs, _ = wrong.samples.of_runs(runs).stored_as(source, target)
    if required[0].startswith("0x"):
        code = np.array([int(required[0], 16)], target.storage)
        codes = {int(code[0]), int(negated(target, code)[0] if target.kind == "float" else code[0])}
    else:
        codes = {each.start for each in target.nan_codes}
    found = np.zeros(inputs.shape, bool)
    for each in codes:
        answers = np.full(inputs.shape, each, target.storage)
        found |= allowed_by_case(wrong.case, inputs, answers, wrong.broken.level)
    return bool(found.all())


def _share_of(failure: Failure) -> ExplainedCase:
    """Return the share of a finding for a failure other than a wrong value of a cast.

    For wrong elements of a named result, the share counts them; for any other failure, such as a
    refusal, its count is 0.
    """
    cell, broken, problem = failure
    if broken is None:
        return ExplainedCase(cell, "", "", "", 0, True, "", "", cell.message, ())
    if isinstance(problem, WrongTensor):
        return ExplainedCase(cell, *broken.key, problem.wrong, False, "", "", words(problem), ())
    # Of a case that must be refused, the inputs that were asked say nothing about the others.
    shown = broken.smallest or "", broken.answer or cell.message, broken.allowed
    return ExplainedCase(cell, *broken.key, 0, True, "", *shown)


def _explained_case(
    wrong: WrongAnswers, runs: Mask, stored: StoredArrays, is_steady: bool
) -> ExplainedCase:
    """Return the share of a finding for the marked runs of a case, with their simplest input.

    Without ``is_steady``, answers depend on the tensor, so that other tensors may have more wrong
    inputs: the count is not exact.
    """
    cell, failing, samples = wrong.cell, wrong.failing.at(runs), wrong.samples.of_runs(runs)
    source, target = format_named(cell.source), format_named(cell.target)
    knows_ends = cell.reaches_ends or is_exhaustive(source)
    asked = None if knows_ends or cell.asked is None else stored(cell.asked)
    at = index_of_simplest(source, samples.inputs, np.ones(samples.inputs.shape, bool))
    given, answer = (datum_of(column[at]) for column in (samples.inputs, samples.answers))
    if isinstance(given, str) and source.kind != "text":
        given = int(given, 16)  # A pattern of more than 64 bits.
    return ExplainedCase(
        cell,
        *wrong.broken.key,
        int(failing.count.sum()),
        failing.is_complete and knows_ends and is_steady,
        region_words(source, failing, asked),
        given if isinstance(given, str) else source.hexadecimal(given),
        answer if isinstance(answer, str) else target.hexadecimal(answer),
        _allowed(wrong, given),
        wrong.broken.digest,
        segments(source, failing.runs.first, failing.runs.last)
        if failing.are_words and source.kind != "text"
        else (),
    )


def _allowed(wrong: WrongAnswers, given: int | str) -> tuple[str, ...]:
    """Describe what a case allows for an input.

    If the document no longer has the case, return what the run stored for the smallest input of the
    broken rule.
    """
    rules = known_ruling(wrong.case)
    if rules is None:
        return wrong.broken.allowed
    allowed = expect_by_exact.allow(rules, given)
    return describe_allowed(rules, allowed, given, wrong.broken.level)


def _says(cause: Cause, draft: _Draft) -> str:
    """Return the sentence of a finding, which ends with the origin of wrong values if known."""
    says, cells = _sentence(draft), [each.cell for each in draft.explained]
    found = [(each.as_case, each.origin) for each in cells if each.origin is not None]
    if cause.kind != "wrong value" or not found:
        return says
    return says + found[0][1].sentence_end(found)


def _sentence(draft: _Draft) -> str:
    """Return the sentence of a finding.

    It is that of the mechanism that explains most cases. It names the region of inputs unless cases
    differ too much in it. If the mechanism says only what comes out, it also names the answer that
    all cases require of all inputs.
    """
    if not draft.mechanisms:
        return draft.says
    counts = Counter(draft.mechanisms)
    mechanism = max(counts, key=lambda each: (isinstance(each, Wrong), counts[each]))
    regions = sorted(draft.regions)
    where = f", {' or '.join(regions)}" if len(regions) <= MOST_REGIONS and regions[0] else ""
    says = mechanism.says
    if isinstance(mechanism, Undecided):
        return f"{says}{where}"
    if mechanism.mistaken:
        says = _mistaken_words(draft)
    elif where:
        says = mechanism.says_in_part or says
    if draft.signs == {True}:
        says = mechanism.says_of_negative or says
    if mechanism.tells == "where":
        return f"{says}{where}"
    exact = _common_region(
        {each.region for each in draft.explained if each.is_exact and each.region}
    )
    required = {
        _required_words(format_named(each.cell.target), each.allowed, draft.signs)
        for each in draft.explained
        if draft.requires_one
    }
    wants = (
        f", where {words} is required" if len(required) == 1 and (words := required.pop()) else ""
    )
    where = f", for {exact}" if exact else where
    return f"{says}{where}{wants}"


def _mistaken_words(draft: _Draft) -> str:
    rows = (each for each in draft.mechanisms if isinstance(each, Wrong))
    mistaken = sorted({words for each in rows for words in each.mistaken})
    shown, others = mistaken[:MOST_MISTAKEN], len(mistaken) - MOST_MISTAKEN
    more = f" and {others} more" if others > 0 else ""
    return f"takes dtypes for others of the same width: {', '.join(shown)}{more}"


def _common_region(regions: Collection[str]) -> str:
    """Return the one region to which the regions of all cases amount; empty if they differ.

    Regions may differ in how far their sources reach: `x ≥ 61440` of uint16 is `61440 ≤ |x| <
    65536` of another source.
    """
    words = {each.replace("|x|", "x"): each for each in sorted(regions)}  # `|` sorts last.
    for unsigned in list(words):
        low = unsigned.removeprefix("x ≥ ")
        if any(other.startswith(f"{low} ≤ x ") for other in words):
            del words[unsigned]
    return words.popitem()[1] if len(words) == 1 else ""


def _required_words(target: Format, allowed: tuple[str, ...], signs: Collection[bool]) -> str:
    """Return a word for the required answer that fits several dtypes, as `infinity`; else empty.

    ``allowed`` is what is allowed for one input, and ``signs`` has the signs of all inputs. The
    word has no sign if there are both.
    """
    match allowed:
        case ["any-nan" | "+nan" | "-nan"]:
            return "NaN"
        case [code] if code.startswith("0x") and target.kind in ("float", "integer"):
            pattern = int(code, 16)
            is_float = target.kind == "float"
            magnitude = pattern & ~(target.sign_bit if is_float else 0)
            minus = "-" if magnitude != pattern and len(signs) == 1 else ""
            if is_float and target.entry.infinity and magnitude == target.infinity_code:
                return f"{minus}infinity"
            if minus and pattern == target.lowest_code:
                return "the lowest value"
            if magnitude == target.max_code:
                return "the largest value"
            if magnitude == 0 and target.has_zero:
                return "-0" if minus else "zero"
    return ""
