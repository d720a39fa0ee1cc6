"""The judge of one backend: asks it a case, compares its answers, and comes to a verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from conformance.judging import bitcasts, row_limits
from conformance.judging.answers import (
    Answer,
    Answered,
    Crashed,
    Declined,
    Malformed,
    NoAnswer,
    Raised,
    Unanswered,
    attempt,
    checked,
    refusal,
    stored,
    value_of,
)
from conformance.judging.calls import answer_of, call_by, call_faults
from conformance.judging.failing_stretches import WIDEST_BITS, GradedAnswers
from conformance.judging.followed_cases import Follower, not_followed
from conformance.judging.quick_inputs import EXHAUSTIVE_BITS, inputs_of
from conformance.judging.raising_inputs import crash_message, inputs_that_raise
from conformance.judging.reproduction import reproduction, tensor_that_shows
from conformance.judging.shape_choice import shapes_of
from conformance.judging.shapes import FaultyTensor, shape_faults
from oracles.isolation.loading import is_isolated
from oracles.protocol import (
    Bits,
    Returned,
    WithCastBatch,
    WithRoad,
    compiles_per_shape,
    row_limits_of,
)
from oracles.reference.expectations import Expected, has_branch
from oracles.reference.reference_oracle import Reference
from oracles.registry import Backend
from oracles.smoke_check import smoke
from oracles.tensor_batch import TensorBatch
from reports.diff.allowed_answers import Expectations
from reports.diff.answer_arrays import DatumArray
from reports.diff.answer_arrays import InputsAndAnswers as KeptAnswers
from reports.diff.grades import NOT_ALLOWED, Grades
from reports.diff.judgement import NEXT_SCRIPT, Datum, Divergence, Fault, Judgement
from reports.diff.verdicts import Verdict
from reports.run_store.record import Selection
from specs.bitcast_ruling import BitcastRuling, bitcast_ruling
from specs.calls import Call
from specs.case_calls import receiver_of
from specs.cases import Case
from specs.formats import format_named
from specs.operations import is_bitcast
from specs.ruling import Ruling, ruling


@dataclass(frozen=True)
class Settings:
    """Holds the options of a whole run."""

    seed: int = 0
    max_examples: int = 1000
    asked_for: frozenset[str] = frozenset()
    tier: str = "quick"
    isolates_sweeps: bool = False
    """Whether no backend answers in the process that judges it, at the tier ``full`` either."""
    selection: Selection = field(default_factory=Selection)
    hides_unclaimed: bool = False
    """Whether nobody sees scripts for documents that the backend does not claim."""

    def is_full(self, case: Case) -> bool:
        """Whether a case is asked at the tier ``full``."""
        choice = self.selection.choice(case.id)
        return (self.tier if choice is None else choice.tier) == "full"


class BackendJudge:
    """Judges one backend, one case at a time.

    ``broken`` is the smoke check's result; if it is None, the first case that is judged runs it.
    """

    def __init__(self, backend: Backend, broken: dict[str, str] | None, settings: Settings) -> None:
        self.backend = backend
        if broken is not None:
            self.broken = broken
        self._is_isolated = is_isolated(backend)
        self.settings = settings
        self._asked_rows: tuple[object, list[Bits]] = None, []
        self._answers: dict[Case, tuple[Bits, Answer]] = {}
        """The inputs of cases of one pair, and the first answers to them."""
        self._follower = Follower(self.ask)
        self.expectations = Expectations(independent=isinstance(backend.oracle, Reference))

    @cached_property
    def broken(self) -> dict[str, str]:
        """A fault message for each dtype whose bits the adapter changes or loses."""
        return smoke(self.backend)

    @cached_property
    def few_shapes(self) -> bool:
        """Whether the backend compiles for each shape, and the tier has no time for many shapes."""
        return self.settings.tier == "quick" and compiles_per_shape(self.backend.oracle)

    def judge(self, case: Case) -> Judgement:
        """The verdict on a case, whatever the backend does."""
        for dtype in (case.source, case.target):
            if dtype in self.broken:
                return self._verdict(
                    case, "error", f"the adapter, not the framework: {dtype}: {self.broken[dtype]}"
                )
        return self._bitcast(case) if is_bitcast(case) else self._cast(case)

    def _bitcast(self, case: Case) -> Judgement:
        rules, seed, oracle = bitcast_ruling(case), self.settings.seed, self.backend.oracle

        def ask(bits: Bits) -> Answer:
            return attempt(lambda: bitcasts.bitcast_by(oracle, case, rules, bits))

        found = bitcasts.ask_bitcast(rules, seed, ask)
        if not isinstance(found, bitcasts.BitcastOutcome):
            return self._no_bitcast(case, rules, found)
        match attempt(lambda: bitcasts.copy_fault(oracle, case, rules, seed)):
            case Answered(copied):
                pass
            case missing:
                return self._no_bitcast(case, rules, missing)
        faults = tuple(each for each in (found.fault, copied) if each is not None)
        messages = [found.message, copied.message if copied is not None else ""]
        return self._verdict(
            case,
            self.graded(case, {fault.level for fault in faults}, rules.is_open),
            "; ".join(message for message in messages if message),
            inputs=found.inputs,
            open_inputs=found.open_inputs,
            faults=faults,
            reproduction=self._script(case, found.shown) if faults else "",
        )

    def _no_bitcast(self, case: Case, rules: BitcastRuling, missing: NoAnswer) -> Judgement:
        """The verdict on a bitcast that was not answered."""
        if isinstance(missing, Raised) and rules.may_refuse:
            verdict: Verdict = "open" if rules.is_open else "conforms"
            return self._verdict(case, verdict, refusal(rules.error_class, missing.error))
        return self._without_answer(case, missing, 0)

    def _cast(self, case: Case) -> Judgement:
        rules = ruling(case)
        inputs = inputs_of(
            case, rules, self.settings.seed, self.settings.max_examples, self.few_shapes
        )
        try:
            if rules.is_rejection:
                return self._rejected(case, rules, inputs)
            return self._answered(case, rules, inputs)
        except Unanswered as unanswered:
            missing = unanswered.answer
        if isinstance(missing, Malformed) and missing.fault is not None:
            if rules.is_open_dtype:
                return self._verdict(case, "open", missing.text, inputs=inputs.size)
            faulty = FaultyTensor(missing.fault, inputs[:1])
            return self._faulty(case, rules, inputs, [], [faulty])
        return self._without_answer(case, missing, inputs.size)

    def _without_answer(self, case: Case, missing: NoAnswer, inputs: int) -> Judgement:
        """The verdict on a case that was not answered, where an answer is due."""
        match missing:
            case Declined(reason):
                return self._verdict(case, "unsupported", reason)
            case Crashed() as crashed:
                return self.crashed(case, crashed)
            case Raised(smallest=smallest) if smallest is not None:
                script = self._script(case, smallest)
                failed = self.failed(case)
                return self._verdict(case, failed, missing.text, inputs=inputs, reproduction=script)
            case Raised() | Malformed():
                return self._verdict(case, self.failed(case), missing.text, inputs=inputs)

    def crashed(self, case: Case, crashed: Crashed) -> Judgement:
        """The verdict on a case that ends the backend's process."""
        return self._verdict(case, "crashed", crash_message(format_named(case.source), crashed))

    def road(self, case: Case) -> str:
        """Return the key of the kernel that answers a case; empty if it cannot be swept.

        Raises ProcessDied if the backend crashes.
        """
        oracle = self.backend.oracle
        if not isinstance(oracle, WithRoad):
            return case.id
        match attempt(lambda: oracle.road(case)):
            case Answered(road):
                return road
            case Crashed(death):
                raise death
        # The case itself, when it is asked, reports the error.
        return ""

    def _script(self, case: Case, bits: Bits, answer: Datum | None = None) -> str:
        """Return a script that shows a failure; empty if nobody would see it.

        With a wrong ``answer`` to one input, the script's tensor makes the backend repeat it.
        """
        if self.settings.hides_unclaimed and not self.claimed(case):
            return ""
        if answer is not None:
            bits = tensor_that_shows(self.backend.oracle, case, bits, answer)
        return reproduction(self.backend, case, bits)

    def _verdict(self, case: Case, verdict: Verdict, message: str = "", **more: Any) -> Judgement:
        return Judgement(case.id, self.backend.name, verdict, message, **more)

    def ask(self, case: Case, rules: Ruling, inputs: Bits) -> Answer:
        """The backend's answer to one tensor, checked for storage and shape."""

        def checked_answer() -> Bits:
            if self._is_isolated:
                return checked(rules.target, inputs, answer_of(self.backend.oracle, case, inputs))
            # A copy: what a backend does to its inputs must not change what it is judged by.
            answer = answer_of(self.backend.oracle, case, inputs.copy())
            # Another copy: a backend may use one buffer for all its answers.
            return checked(rules.target, inputs, answer).copy()

        return attempt(checked_answer)

    def ask_first(self, case: Case, rules: Ruling, inputs: Bits) -> Answer:
        """The backend's answer to all inputs of a case, remembered until the next pair comes."""
        answer = self.ask(case, rules, inputs)
        some = next(iter(self._answers), case)
        if (some.source, some.target) != (case.source, case.target):
            self._answers.clear()
        self._answers[case] = inputs, answer
        return answer

    def answer_to(self, case: Case, rules: Ruling, inputs: Bits) -> Answer:
        """The backend's first answer to these inputs; it is asked unless that is remembered.

        A crash is not remembered: a new process may answer.
        """
        asked, answer = self._answers.get(case, (None, None))
        if asked is not inputs or answer is None or isinstance(answer, Crashed):
            return self.ask(case, rules, inputs)
        return answer

    def ask_each(self, case: Case, rules: Ruling, batch: TensorBatch) -> Iterator[Answer]:
        """The answers to several tensors, in one message where a message is slow."""
        oracle = self.backend.oracle
        known: list[Bits] = []
        if isinstance(oracle, WithCastBatch) and receiver_of(case.document) is None:
            match attempt(partial(oracle.cast_batch, case, batch)):
                case Answered(answers):
                    known = list(answers.split(batch))
                case missing:
                    yield missing
                    return
            whole = attempt(partial(stored, rules.target, answers.elements))
            if len(known) == len(batch.shapes) and isinstance(whole, Answered):
                yield from map(Answered, known)
                return
        for index, part in enumerate(batch.tensors()):
            if index < len(known):
                yield attempt(partial(checked, rules.target, part, known[index]))
            else:
                # The first tensor that was not answered together: alone it tells why.
                yield self.ask(case, rules, part)

    def _rejected(self, case: Case, rules: Ruling, inputs: Bits) -> Judgement:
        """The verdict on a case that a document wants refused."""
        match self.ask(case, rules, inputs):
            case Answered(answer):
                pass
            case Raised(error):
                message = refusal(rules.error_class, error)
                return self._verdict(case, "conforms", message, inputs=inputs.size)
            case Malformed(text, Fault()):
                [*_, branch] = rules.branches
                message = f"is not refused, but {text}"
                fault = Fault("answer", branch.rule, branch.clause, branch.level, message)
                return self._faulty(case, rules, inputs, [], [FaultyTensor(fault, inputs[:1])])
            case missing:
                raise Unanswered(missing)
        expected = Expected(*(np.zeros(inputs.size, np.uint8) for _ in range(3)))
        grades = np.full(inputs.size, NOT_ALLOWED, np.uint8)
        return self._compared(case, rules, inputs, expected, answer, grades)

    def _answered(self, case: Case, rules: Ruling, inputs: Bits) -> Judgement:
        """The verdict on a case that a document wants answered, at least for some inputs."""
        first = self.ask_first(case, rules, inputs)
        if not isinstance(first, Answered | Raised):
            raise Unanswered(first)
        expected = self.expectations.of(rules, inputs)
        is_open = has_branch(expected.branch_indices, rules.open_branches)
        asked, message = inputs, ""
        match first:
            case Answered(answer):
                pass
            case Raised(error) as raised:
                if rules.is_open_dtype or (is_open.all() and not rules.is_open):
                    return self._verdict(case, "open", raised.text, inputs=inputs.size)
                if rules.is_open or not is_open.any():
                    raise Unanswered(self.located(case, rules, inputs, error))
                # An open input may raise an error, so the others are asked without them.
                message = f"open inputs: {raised.text}"
                asked, expected = inputs[~is_open], expected.at(~is_open)
                answer = value_of(self.ask_and_locate(case, rules, asked))
        grades = self.expectations.grades(rules, asked, expected, answer)
        again = partial(self.ask_each, case, rules)
        shapes = shapes_of(f"{case.source}/{case.target}", self.few_shapes)
        faults = [
            *shape_faults(case, rules, asked, expected, answer, grades, again, shapes),
            *self._call_faults(case, rules, asked),
        ]
        worst = self._across_limits(case, rules, asked, expected, answer, grades)
        compared = self._compared(case, rules, asked, expected, worst.answer, worst.grades, faults)
        messages = (message, *worst.notes, compared.message)
        return replace(
            compared,
            message="; ".join(part for part in messages if part),
            inputs=compared.inputs - asked.size + inputs.size,
            open_inputs=int(is_open.sum()),
        )

    def _can_follow(self, case: Case, rules: Ruling) -> bool:
        """Whether more inputs can be asked: not of a sweep, nor where answers depend on lengths."""
        return (
            not self.settings.is_full(case)
            and self.claimed(case)
            and case.example is None
            and not (rules.is_rejection or rules.is_open or row_limits_of(self.backend.oracle))
            and rules.source.is_numeric
            and rules.target.is_numeric
            and EXHAUSTIVE_BITS < rules.source.bits <= WIDEST_BITS
        )

    def _across_limits(
        self,
        case: Case,
        rules: Ruling,
        inputs: Bits,
        expected: Expected,
        answer: Bits,
        grades: Grades,
    ) -> row_limits.Judged:
        """Each input's worst answer, in rows on both sides of the backend's length limits."""
        in_one_row = row_limits.Judged(answer, grades)
        limits = row_limits_of(self.backend.oracle)
        if not limits or case.example is not None:
            return in_one_row
        ask_each = partial(self._ask_rows, case, rules)
        return row_limits.across(limits, rules, inputs, expected, in_one_row, ask_each)

    def _ask_rows(self, case: Case, rules: Ruling, rows: Sequence[Bits]) -> Sequence[Bits]:
        """The answers to several rows, kept for the next case on the same road.

        Raises ``Unanswered`` where one is missing.
        """
        is_shared = receiver_of(case.document) is None and rules.source.kind != "text"
        road = self.road(case) if is_shared else ""
        key = (road, *(row.tobytes() for row in rows)) if road else None
        if key is None or key != self._asked_rows[0]:
            answers = self.ask_each(case, rules, TensorBatch.of(rows))
            self._asked_rows = key, [value_of(each) for each in answers]
        return self._asked_rows[1]

    def _call_faults(self, case: Case, rules: Ruling, inputs: Bits) -> Iterator[FaultyTensor]:
        """Yield the faults of a call besides its values, where the document promises anything."""
        if not rules.is_open_dtype:

            def make(call: Call, held: Mapping[str, Bits]) -> Answered[Returned] | NoAnswer:
                return attempt(lambda: call_by(self.backend.oracle, case, call, held))

            for fault in call_faults(case, inputs, make):
                yield FaultyTensor(fault, inputs[:1])

    def ask_and_locate(self, case: Case, rules: Ruling, inputs: Bits) -> Answer:
        """The backend's answer; an error names the inputs on which it is raised."""
        match self.ask(case, rules, inputs):
            case Raised(error):
                return self.located(case, rules, inputs, error)
            case answer:
                return answer

    def located(self, case: Case, rules: Ruling, inputs: Bits, error: Exception) -> Raised:
        """The error together with the inputs on which it is raised."""
        words, one = inputs_that_raise(
            rules.source, inputs, lambda part: self.ask(case, rules, part)
        )
        return Raised(error, words, one)

    def _compared(
        self,
        case: Case,
        rules: Ruling,
        inputs: Bits,
        expected: Expected,
        answer: Bits,
        grades: Grades,
        faults: Sequence[FaultyTensor] = (),
    ) -> Judgement:
        graded = GradedAnswers(inputs, answer, grades, expected.branch_indices)
        if self._can_follow(case, rules) and graded.fails.any():
            road = self.road(case) if receiver_of(case.document) is None else ""
            followed = self._follower.follow(case, rules, graded, road)
        else:
            followed = not_followed(rules, graded)
        answered = KeptAnswers(DatumArray(case.source, inputs), DatumArray(case.target, answer))
        judgement = self._faulty(case, rules, inputs, followed.divergences, faults)
        return replace(
            judgement,
            inputs=judgement.inputs + followed.inputs,
            reaches_ends=followed.reaches_ends,
            answered=answered,
        )

    def _faulty(
        self,
        case: Case,
        rules: Ruling,
        inputs: Bits,
        found: Sequence[tuple[Divergence, Bits]],
        faulty: Sequence[FaultyTensor],
    ) -> Judgement:
        """The verdict that follows from wrong values and from other faults."""
        faults = [each.fault for each in faulty]
        counted = tuple(fault for fault in faults if fault.kind != "unsupported")
        scripts = [self._script(case, bits, each.answer) for each, bits in found[:1]]
        shown = [each.bits for each in faulty if each.fault.kind != "unsupported"]
        scripts += [self._script(case, bits) for bits in shown[:1]]
        script = NEXT_SCRIPT.join(filter(None, scripts))
        if faults and not found and faults[0].kind != "answer":
            verdict = "unsupported" if faults[0].kind == "unsupported" else self.failed(case)
            message = faults[0].message
            return self._verdict(case, verdict, message, inputs=inputs.size, reproduction=script)
        levels = {divergence.level for divergence, _ in found} | {fault.level for fault in counted}
        return self._verdict(
            case,
            self.graded(case, levels, rules.is_open),
            "; ".join(fault.message for fault in faults),
            inputs=inputs.size,
            divergences=tuple(divergence for divergence, _ in found),
            faults=counted,
            reproduction=script,
        )

    def graded(self, case: Case, levels: set[str], is_open: bool) -> Verdict:
        """The verdict on a case that breaks rules of these levels, or none."""
        if not levels:
            return "open" if is_open else "conforms"
        if not self.claimed(case):
            return "differs"
        return "violates" if "required" in levels else "deviates"

    def failed(self, case: Case) -> Verdict:
        """The verdict on an error or a malformed answer where an answer is due."""
        return "error" if self.claimed(case) else "differs"

    def claimed(self, case: Case) -> bool:
        """Whether a broken rule counts: the backend claims the edition, or the user named it."""
        is_named = case.document in self.settings.asked_for
        return is_named or self.backend.claims(case.document, case.version)
