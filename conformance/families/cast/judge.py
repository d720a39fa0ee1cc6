"""Casts and calls: whether the values of a case are allowed, whatever tensor they come in.

A case is judged in three steps, so that the cases of a pair can go side by side. ``examine`` asks
all inputs in one row, then those that were answered right again in other shapes. Where an answer to
a source of 17 to 32 bits is wrong, ``follow_all`` asks the inputs around it, one group of equal
cases after another, because that may take much memory.
``conclude`` comes to the verdict, and gets the scripts that show it.

The package ``call`` asks for what calls promise besides values. It is imported only once a case of
calls is judged: most runs have none.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from itertools import repeat
from zlib import crc32

import numpy as np

from conformance.families.cast.baseline import (
    Baseline,
    Followed,
    GradedAnswers,
    NoBaseline,
    as_baseline,
    no_baseline,
    not_followed,
    without_refused,
)
from conformance.families.cast.quick_inputs import inputs_of, telling_inputs
from conformance.families.cast.refusals import (
    answered_again,
    ask_alone,
    ask_and_locate,
    both,
    located,
)
from conformance.families.cast.shapes import (
    FaultyTensor,
    ShortRow,
    WorstAnswers,
    across,
    shape_fault,
)
from conformance.judging.asking import Ask, Subject, ask
from conformance.judging.probe import SHAPES, shape_of_pair
from conformance.judging.values import (
    Departed,
    DepartedError,
    ValueAnswer,
    ask_values,
    value_answer,
    value_request,
    values_of,
)
from conformance.judging.verdicts import refusal, script, without_answer
from oracles.backend.replies import Answered, Raised, Unanswered
from oracles.backend.requests import Road
from oracles.reference.expectations import has_branch
from reports.grading.allowed_answers import ALLOWED, NOT_ALLOWED
from reports.judgement import NEXT_SCRIPT, InputsAndAnswers, Judgement, SharedArrays, Verdict
from reports.problem_words import words
from reports.problems import (
    BrokenPromise,
    BrokenRule,
    Note,
    NotRefused,
    Problem,
    Refused,
    Unoffered,
)
from specs.branches import Ruling
from specs.case_calls import receiver_of
from specs.cases import Case
from specs.formats import EXHAUSTIVE_BITS
from specs.ruling import ruling

FEW_FIRST = 3
WIDEST_FOLLOWED = 32
"""Bits of the widest sources that are followed: no sweep could check the results of wider ones."""
REFUSALS = 4
"""At the tier quick one refused cast in this many, chosen by id, is repeated in other tensors."""


@dataclass(frozen=True)
class Examined:
    """The answers to a case as ``examine`` got them, or the judgement if there are none to grade.

    If nothing is left to grade, such as after a refusal or a crash, ``judgement`` is set.
    ``graded`` has the answers with their inputs. ``inputs`` counts all inputs that were requested,
    ``open_inputs`` those among them that are open.
    """

    case: Case
    rules: Ruling
    inputs: int
    baseline: Baseline | NoBaseline
    judgement: Judgement | None = None
    graded: GradedAnswers | None = None
    faults: tuple[FaultyTensor, ...] = ()
    notes: tuple[Note, ...] = ()
    open_inputs: int = 0
    unjudged: tuple[Unoffered, ...] = ()
    """The promises about a call, besides values, that the backend offers no way to check."""


def examine(subject: Subject, case: Case) -> Ask[Examined]:
    """Request all inputs of a case in one row, and some in other shapes; return what is found."""
    examination = _Examination(subject, case)
    try:
        judgement = yield from examination.run()
    except Unanswered as unanswered:
        judgement = yield from without_answer(
            subject, case, unanswered.answer, examination.inputs.size
        )
    except DepartedError as departed:
        judgement = yield from examination.departed(departed.promise)
    if isinstance(judgement, Judgement):
        return Examined(
            case, examination.rules, examination.inputs.size, examination.baseline, judgement
        )
    return judgement


class _Examination:
    """Examines a case for ``examine``; its attributes are set even if ``run`` raises an error."""

    def __init__(self, subject: Subject, case: Case) -> None:
        settings = subject.settings
        self.subject, self.case, self.rules = subject, case, ruling(case)
        self.inputs = inputs_of(
            case, self.rules, settings.seed, settings.max_examples, subject.few_shapes
        )
        self.baseline: Baseline | NoBaseline = NoBaseline("")
        self.broken_by_all: list[BrokenPromise] = []
        """The promises that the call with all inputs breaks, such as the shape of its answer."""
        self.short_row: ShortRow | None = None
        """The row of a few inputs that was requested before all inputs, and its answer."""

    def run(self) -> Ask[Examined | Judgement]:
        """Examine the case, and return what is found, or the judgement if nothing is left to grade.

        Raises ``Unanswered`` if an answer is missing, and DepartedError if a call returns something
        other than values of the target.
        """
        if self.rules.refuses_some:
            return (yield from self._refused_in_part())
        first = yield from self._first()
        return (yield from (self._rejected if self.rules.is_rejection else self._answered)(first))

    def _first(self) -> Ask[ValueAnswer]:
        """Return the answer to all inputs in one row; set ``short_row`` and ``broken_by_all``.

        For every second case, a row of a few inputs comes before: what a backend prepares for it
        must serve the long one. Worked examples have none, nor have backends for which few shapes
        are used.
        """
        case, inputs = self.case, self.inputs
        is_plain = case.example is None and not self.subject.few_shapes
        asked = [inputs]
        picked = inputs.size * np.arange(1, FEW_FIRST + 1) // (FEW_FIRST + 1)
        if is_plain and crc32(case.id.encode()) % 2:
            asked.insert(0, inputs[picked])
        replies = yield [value_request(case, each) for each in asked]
        *few, every = map(value_answer, repeat(case), asked, replies)
        if few:
            self.short_row = ShortRow(picked, few[0])
        match replies[-1]:
            case Answered(returned) if receiver_of(case.document) and isinstance(every, Answered):
                from conformance.families.call.promises import broken_promises

                self.broken_by_all = [*broken_promises(case, inputs, returned)]
        return every

    def departed(self, promise: BrokenPromise) -> Ask[Judgement]:
        """Return the judgement on a call that returns something other than values of the target."""
        if self.rules.is_open_dtype:
            return self._judgement("open", Note(words(promise)))
        return (yield from self._faulty(FaultyTensor(promise, self.inputs[:1])))

    def _faulty(self, *faults: FaultyTensor) -> Ask[Judgement]:
        examined = Examined(self.case, self.rules, self.inputs.size, self.baseline, faults=faults)
        nothing = Followed((), 0, reaches_ends=False)
        return (yield from conclude(self.subject, examined, nothing, SharedArrays()))

    def _judgement(self, verdict: Verdict, note: Problem) -> Judgement:
        return Judgement(self.case.id, self.subject.name, verdict, (note,), inputs=self.inputs.size)

    def _rejected(self, first: ValueAnswer) -> Ask[Examined | Judgement]:
        """Examine a case that must be refused; ``first`` is the answer to all inputs in one row.

        Raises ``Unanswered`` if that is declined, malformed or a crash, or as ``refusal_faults``
        does.
        """
        rules, inputs = self.rules, self.inputs
        match first:
            case Answered(answer):
                pass
            case Raised(error):
                if faults := (yield from self._faults_of_refusal()):
                    return (yield from self._faulty(*faults))
                return self._judgement("conforms", Note(refusal(rules.error_class, error)))
            case Departed(promise):
                [*_, branch] = rules.branches
                fault = NotRefused(branch.rule, branch.clause, branch.level, words(promise))
                return (yield from self._faulty(FaultyTensor(fault, inputs[:1])))
            case missing:
                raise Unanswered(missing)
        branches, grades = (np.full(inputs.size, each, np.uint8) for each in (0, NOT_ALLOWED))
        graded = GradedAnswers(inputs, answer, grades, branches)
        return Examined(self.case, rules, inputs.size, self.baseline, graded=graded)

    def _faults_of_refusal(self) -> Ask[list[FaultyTensor]]:
        """Request a refused case again in other tensors; return the faults, such as an answer.

        Every refused call is repeated. Of casts a sample is, because older versions of a document
        refuse thousands, and all at the tier full, but none if few shapes are used. If the adapter
        is not believed, all are in any case.
        """
        case, subject = self.case, self.subject
        if receiver_of(case.document) is not None:
            from conformance.families.call.refusals import refusal_faults

            return (yield from refusal_faults(case, self.inputs))
        is_chosen = crc32(case.id.encode()) % REFUSALS == 0 or subject.settings.is_full(case)
        if (is_chosen and not subject.few_shapes) or not subject.is_believed:
            return (yield from answered_again(case, self.inputs))
        return []

    def _refused_in_part(self) -> Ask[Examined | Judgement]:
        """Examine a case that must be answered for some inputs, and refused for others."""
        case, rules = self.case, self.rules
        expected = self.subject.expectations.of(rules, self.inputs)
        self.inputs, refused = without_refused(rules, self.inputs, expected)
        first = yield from ask_values(case, self.inputs)
        examined = yield from self._answered(first)
        if isinstance(examined, Judgement) or examined.graded is None or not refused.inputs.size:
            return examined
        chosen = refused.spread(rules.source)
        answered = yield from ask_alone(case, rules, chosen)
        of_all = f"{chosen.inputs.size:,} of {refused.inputs.size:,} inputs that must be refused"
        return replace(
            examined,
            inputs=examined.inputs + chosen.inputs.size,
            graded=both(examined.graded, answered),
            notes=(*examined.notes, Note(f"{of_all} were asked, each alone")),
        )

    def _answered(self, first: ValueAnswer) -> Ask[Examined | Judgement]:
        """Examine a case of which at least some inputs must be answered.

        ``first`` is the answer to all inputs in one row. Raises as ``run`` does.
        """
        case, rules, inputs, subject = self.case, self.rules, self.inputs, self.subject
        if not isinstance(first, Answered | Raised):
            self.baseline = no_baseline(first)
            values_of(first)
        expected = subject.expectations.of(rules, inputs)
        self.baseline = as_baseline(case, rules, inputs, expected, first)
        is_open = has_branch(expected.branch_indices, rules.open_branches)
        opened, asked, notes = int(is_open.sum()), inputs, []
        match first:
            case Answered(answer):
                pass
            case Raised(error) as raised:
                may_refuse = rules.is_open_dtype and rules.answer_due is None
                if may_refuse or (is_open.all() and not rules.is_open):
                    return self._judgement("open", Note(raised.text))
                if rules.is_open or not is_open.any():
                    raise Unanswered((yield from located(case, inputs, error)))
                # An open input may raise an error, so the others are asked without them.
                notes.append(f"open inputs: {raised.text}")
                asked, expected = inputs[~is_open], expected.at(~is_open)
                again = yield from ask_and_locate(case, asked)
                self.baseline = as_baseline(case, rules, asked, expected, again)
                answer = values_of(again)
        # Free the memory: the other cases of the pair wait as well, each with its own arrays.
        del is_open
        grades = subject.expectations.grades(rules, asked, expected, answer)
        pair = f"{case.source}/{case.target}"
        shapes = (shape_of_pair(pair),) if subject.few_shapes else SHAPES
        before = self.short_row if asked is inputs else None
        unjudged: tuple[Unoffered, ...] = ()
        faults = yield from shape_fault(
            case, rules, asked, expected, answer, grades, shapes, before
        )
        if receiver_of(case.document) is not None and not rules.is_open_dtype:
            from conformance.families.call.promises import promises, subject_of

            told = asked[telling_inputs(rules, asked, expected)]
            broken = yield from promises(case, asked, told, bool((grades == ALLOWED).all()))
            known = {subject_of(each) for each in broken}
            broken += [each for each in self.broken_by_all if subject_of(each) not in known]
            unjudged = tuple(each for each in broken if isinstance(each, Unoffered))
            faults += [FaultyTensor(each, asked[:1]) for each in broken if each not in unjudged]
        worst = WorstAnswers(answer, grades)
        if subject.row_limits and case.example is None:
            worst = yield from across(subject.row_limits, case, rules, asked, expected, worst)
        graded = GradedAnswers(asked, worst.answer, worst.grades, expected.branch_indices)
        return Examined(
            case,
            rules,
            inputs.size,
            self.baseline,
            graded=graded,
            faults=tuple(faults),
            notes=tuple(map(Note, (*notes, *worst.notes))),
            open_inputs=opened,
            unjudged=unjudged,
        )


def follow_all(subject: Subject, cases: Iterable[Examined]) -> Ask[dict[Case, Followed]]:
    """Request every input around failing ones; return the wrong values of each graded case.

    Of cases that share road, rules, inputs and answers, only the first one is followed; the others
    get its result. Cases that cannot be followed have the wrong values of their graded answers.
    """
    found: dict[Case, Followed] = {}
    known: dict[Hashable, Followed] = {}
    for each in cases:
        if (graded := each.graded) is None:
            continue
        case, rules = each.case, each.rules
        if not (_can_follow(subject, case, rules) and graded.fails.any()):
            found[case] = not_followed(rules, graded)
            continue
        road = case.id
        if receiver_of(case.document) is None:
            match (yield from ask(Road(case))):
                case Answered(named) if named:
                    road = named
        key = road, rules, graded.inputs.tobytes(), graded.answers.tobytes()
        if key not in known:
            from conformance.families.cast.follow import follow

            known[key] = yield from follow(case, rules, graded)
        found[case] = known[key]
    return found


def _can_follow(subject: Subject, case: Case, rules: Ruling) -> bool:
    """Return whether to follow failing inputs: in claimed casts of numbers from 17 to 32 bits.

    Cases that are swept, worked examples, open or rejected are left out, and backends whose answers
    depend on the lengths of rows.
    """
    return (
        not subject.settings.is_full(case)
        and subject.claims(case)
        and case.example is None
        and not (rules.is_rejection or rules.is_open or subject.row_limits)
        and rules.source.is_numeric
        and rules.target.is_numeric
        and EXHAUSTIVE_BITS < rules.source.bits <= WIDEST_FOLLOWED
    )


def conclude(
    subject: Subject, examined: Examined, followed: Followed, arrays: SharedArrays
) -> Ask[Judgement]:
    """Return the judgement on a case from its wrong values and other faults, with scripts.

    A ``judgement`` that ``examined`` already has is not looked at. Inputs and answers are kept in
    ``arrays``, which several judgements share.
    """
    case, rules, found = examined.case, examined.rules, followed.values
    faulty = [each.problem for each in examined.faults]
    shown = [each.bits for each in examined.faults if not isinstance(each.problem, Unoffered)]
    scripts = []
    for values, bits in found[:1]:
        scripts.append((yield from script(subject, case, bits, values.answer)))
    for bits in shown[:1]:
        scripts.append((yield from script(subject, case, bits)))
    problems: tuple[Problem, ...]
    verdict: Verdict
    if faulty and not found and _is_no_answer(faulty[0]):
        verdict = subject.failed(case)
        problems = (_without_rule(faulty[0]),)
        if isinstance(faulty[0], Unoffered):
            verdict = "unsupported"
    else:
        problems = (*(values for values, _ in found), *faulty, *examined.unjudged)
        levels = {each.level for each in problems if isinstance(each, BrokenRule)}
        verdict = subject.graded(case, levels, rules.is_open)
    return Judgement(
        case.id,
        subject.name,
        verdict,
        (*examined.notes, *problems),
        inputs=examined.inputs + followed.inputs,
        open_inputs=examined.open_inputs,
        reaches_ends=followed.reaches_ends,
        reproduction=NEXT_SCRIPT.join(filter(None, scripts)),
        answered=_answered(case, examined.graded, arrays) if examined.graded else None,
        further=tuple(more for each in examined.faults for more in each.further),
    )


def _is_no_answer(problem: Problem) -> bool:
    """Return whether a problem is a declined request, or an error instead of an answer."""
    match problem:
        case Unoffered() | Refused(kind="error"):
            return True
    return False


def _without_rule(problem: Problem) -> Problem:
    match problem:
        case Refused():
            return replace(problem, rule="", clause="", level="")
    return problem


def _answered(case: Case, graded: GradedAnswers, arrays: SharedArrays) -> InputsAndAnswers:
    inputs = arrays.of(case.source, graded.inputs)
    return InputsAndAnswers(inputs, arrays.of(case.target, graded.answers))
