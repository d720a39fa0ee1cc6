"""Decides the threads of the docket: who is right by the document.

The answers that a thread reports are judged as ``castigate judge`` judges recorded answers, and so
are those of backends and of runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

from conformance.extras.issues.docket import ReportedInput, Thread
from conformance.families.cast.explanation import read_input
from conformance.families.chains.ends_words import ends_words
from conformance.families.value_spelling import datum
from conformance.recorded_lines import judge_line
from oracles.protocol import Bits
from oracles.reference import expect_by_exact
from oracles.reference.chain_ends import Ends, ends
from oracles.registry import BUILTINS, framework_of
from reports.grading.divergences import datum_of
from specs.cases import Case
from specs.chains import Chain
from specs.errors import CastigateError
from specs.formats import format_named
from specs.operations import SCALE, ZERO, X, Y, takes_named_tensors

VERDICTS = {
    "present": "the answer is still given, or another that the document does not allow",
    "mended": "the answer was not allowed, and what is answered today is",
    "absent": "the answer was not allowed; this backend, which no thread is about, gives another",
    "not reproducible here": "the answer was not allowed, and what gave it cannot be asked here",
    "open by the document": "the document allows every answer that the thread speaks of",
    "the reporter was wrong": "the document wants what was answered, and not what was wanted",
}
"""The verdicts on a thread, from the most urgent."""
PRESENT, MENDED, ABSENT, NOT_HERE, OPEN, REPORTER_WRONG = VERDICTS
WRONG = ("violates", "deviates")


class JudgedAnswer(NamedTuple):
    """An answer in JSON, such as a hex pattern, with its verdict by the document."""

    answer: Any
    verdict: str

    @property
    def is_wrong(self) -> bool:
        """Whether the document does not allow the answer."""
        return self.verdict in WRONG


@dataclass(frozen=True)
class Missing:
    """A backend's missing answer to a question, with the reason."""

    reason: str


Today = JudgedAnswer | Missing


@dataclass(frozen=True)
class Decided:
    """A question, and what the document allows for its input.

    ``reported`` has each system's answer from the thread, and ``wanted`` the answer that the thread
    wanted, or None. ``input`` and ``allowed`` are spelled as in JSON. ``level`` and ``clause`` are
    those of the rule that takes the input.
    """

    question: ReportedInput
    asked: Case | Chain
    input: Any
    level: str
    clause: str
    allowed: Any
    reported: Mapping[str, JudgedAnswer]
    wanted: JudgedAnswer | None

    @property
    def faulty(self) -> list[str]:
        """The systems whose reported answer the document does not allow."""
        return [system for system, each in self.reported.items() if each.is_wrong]

    @property
    def sides(self) -> list[JudgedAnswer]:
        """All answers that the thread speaks of: those reported, and the one wanted."""
        return [*self.reported.values(), *([self.wanted] if self.wanted is not None else [])]

    @property
    def is_open(self) -> bool:
        """Whether the document allows every answer that the thread speaks of."""
        return not any(each.is_wrong for each in self.sides)

    @property
    def is_settled(self) -> bool:
        """Whether the thread's answers are equal and conform, and ``allowed`` lists no other."""
        given = {str(each.answer) for each in self.sides}
        conforms = all(each.verdict == "conforms" for each in self.sides)
        allows_more = isinstance(self.allowed, list) and len(self.allowed) > 1
        return conforms and len(given) == 1 and not allows_more


@dataclass(frozen=True)
class ThreadVerdict:
    """A verdict on a thread, with the reason ``why`` if it needs one.

    ``backend`` is the backend from whose answers it follows; it is empty if it follows from the
    document alone.
    """

    verdict: str
    why: str = ""
    backend: str = ""


@dataclass(frozen=True)
class DecidedThread:
    """A thread with its decided questions, and the answers of backends to them.

    ``today`` has by backend an answer for each question, in the order of the questions.
    """

    thread: Thread
    questions: Sequence[Decided]
    today: Mapping[str, Sequence[Today]] = field(default_factory=dict)

    @cached_property
    def verdicts(self) -> list[ThreadVerdict]:
        """The verdicts by each asked backend's answers, as far as the thread concerns the backend.

        Unless one of them is present, mended or absent, the verdict by the document alone follows.
        """
        found = [self._of_backend(name, answers) for name, answers in self.today.items()]
        if not any(each.verdict in (PRESENT, MENDED, ABSENT) for each in found):
            found.append(self._by_document())
        return list(dict.fromkeys(each for each in found if each.verdict))

    @property
    def verdict(self) -> ThreadVerdict:
        """The most urgent verdict, in the order of ``VERDICTS``."""
        return min(self.verdicts, key=lambda each: [*VERDICTS].index(each.verdict))

    @property
    def answered(self) -> Iterator[tuple[Decided, dict[str, Today]]]:
        """Each question, with the backends' answers to it by backend."""
        for number, each in enumerate(self.questions):
            yield each, {name: answers[number] for name, answers in self.today.items()}

    @property
    def faulty(self) -> list[str]:
        """The systems of which the document does not allow a reported answer."""
        return list(dict.fromkeys(system for each in self.questions for system in each.faulty))

    def _of_backend(self, name: str, answers: Sequence[Today]) -> ThreadVerdict:
        """Return the verdict by a backend's answers.

        Its word is empty if the backend gives no wrong answer, and none was reported that concerns
        it. A backend that the thread is about is judged only by questions that report its answer:
        that another system saturates says nothing about a backend that has no such mode.
        """
        own = name in self.thread.systems
        asked = [
            (each, today)
            for each, today in zip(self.questions, answers, strict=True)
            if not own or name in each.reported
        ]
        if any(isinstance(today, JudgedAnswer) and today.is_wrong for _, today in asked):
            return ThreadVerdict(PRESENT, backend=name)
        concerned = [
            today for each, today in asked if (name in each.faulty if own else each.faulty)
        ]
        for each in concerned:
            if isinstance(each, Missing):
                return ThreadVerdict(NOT_HERE, each.reason, name)
        if not concerned:
            return ThreadVerdict("")
        return ThreadVerdict(MENDED if own else ABSENT, backend=name)

    def _by_document(self) -> ThreadVerdict:
        """Return the verdict by the document alone.

        Its word is empty if answers were wrong, and every system that gave one is among the
        backends.
        """
        if self.faulty:
            systems = self.thread.project.systems
            reasons = [
                f"{name}: {systems[name]}" if name in systems else f"{name} was not asked"
                for name in self.faulty
                if name not in self.today
            ]
            return ThreadVerdict(NOT_HERE, "; ".join(reasons)) if reasons else ThreadVerdict("")
        at_issue = [each for each in self.questions if not each.is_settled] or self.questions
        if any(each.is_open for each in at_issue):
            return ThreadVerdict(OPEN)
        return ThreadVerdict(REPORTER_WRONG)


def decide(thread: Thread) -> DecidedThread:
    """Decide a thread by its documents.

    Raise DocumentError with file and line for an unknown system, for an answer that cannot be
    judged, and for a question that leaves nothing to decide.
    """
    decided = []
    for number, question in enumerate(thread.entry.questions):
        place = thread.location(number)
        try:
            _check_systems(thread, question)
            decided.append(_decided(question))
        except CastigateError as error:
            raise thread.source.error(place, str(error)) from None
    for number, each in enumerate(decided):
        if each.is_settled and not any(_differ(each, other) for other in decided):
            raise thread.source.error(
                thread.location(number),
                "the document wants this very answer; say what was `wanted`, or add a question in"
                " which the same input has another answer",
            )
    return DecidedThread(thread, decided)


def _differ(one: Decided, other: Decided) -> bool:
    pairs = [(each.asked.source, each.asked.target, each.input) for each in (one, other)]
    answers = [{str(side.answer) for side in each.sides} for each in (one, other)]
    return pairs[0] == pairs[1] and answers[0] != answers[1]


def _check_systems(thread: Thread, question: ReportedInput) -> None:
    for system in question.answers:
        if system not in thread.project.systems and framework_of(system) not in BUILTINS:
            raise CastigateError(
                f"`{system}` is no backend; name it under `systems`, with the reason why it cannot"
                " be asked here"
            )


def _decided(question: ReportedInput) -> Decided:
    asked = question.asked
    judge = _judge(question, asked)
    reported = {system: judge(answer) for system, answer in question.answers.items()}
    wanted = judge(question.wanted) if question.wanted is not None else None
    sides = [*reported.values(), *([wanted] if wanted is not None else [])]
    telling = max(sides, key=lambda each: each["verdict"] in WRONG)
    return Decided(
        question,
        asked,
        telling["input"],
        telling["level"],
        telling["clause"],
        telling["allowed"],
        {
            system: JudgedAnswer(each["output"], each["verdict"])
            for system, each in reported.items()
        },
        JudgedAnswer(wanted["output"], wanted["verdict"]) if wanted is not None else None,
    )


def _judge(question: ReportedInput, asked: Case | Chain) -> Callable[[Any], dict[str, Any]]:
    """Return a function that judges an answer to a question.

    It returns a mapping with ``verdict``, ``level``, ``clause`` and ``allowed``, and with ``input``
    and ``output`` as patterns, texts or tensors in JSON. It raises CastigateError for an answer
    that it cannot read.
    """
    if isinstance(asked, Chain):
        return lambda answer: _judge_chain(asked, str(question.input), answer)

    if takes_named_tensors(asked):
        return partial(_judge_element, question, asked)
    if question.scale is not None or question.zero is not None:
        raise CastigateError(f"{asked.document} has no scales; leave out `scale` and `zero`")

    def judge(answer: Any) -> dict[str, Any]:
        line = {"case": question.case, "input": question.input, "output": answer}
        judged = judge_line(json.dumps(line), asked)
        for side in ("input", "output"):
            judged[side] = judged.get(f"{side}_pattern", judged[side])
        return judged

    return judge


def _judge_element(question: ReportedInput, case: Case, answer: Any) -> dict[str, Any]:
    """Judge an answer to one element that has a scale, and maybe a zero point.

    Return a mapping as ``_judge`` describes it.
    """
    if question.scale is None:
        raise CastigateError(f"{case.document} needs a `scale` beside the input")
    # One element in the least tensor in which scales may lie in any form.
    given = {X: [[question.input]], SCALE: [question.scale], ZERO: [question.zero]}
    line = {
        "case": question.case,
        "input": {name: each for name, each in given.items() if each != [None]},
        "output": answer if isinstance(answer, dict) else {Y: [answer]},
    }
    judged = judge_line(json.dumps(line), case)
    for side, name in (("input", X), ("output", Y)):
        spelled = judged.get(f"{side}_pattern", judged[side])
        judged[side] = _only(spelled[name]) if name in spelled else spelled
    [allowed] = judged["allowed"][Y]["bits"]
    return judged | {"allowed": allowed if isinstance(allowed, list) else [allowed]}


def _only(tensor: Any) -> Any:
    """Return the one element of a tensor in JSON."""
    element = tensor["bits"] if isinstance(tensor, dict) else tensor
    while isinstance(element, list):
        [element] = element
    return element


def _judge_chain(chain: Chain, word: str, answer: Any) -> dict[str, Any]:
    given = read_input(chain.rulings[0], word)
    assert isinstance(given, int)
    target = format_named(chain.target)
    allowed = ends(chain.rulings, given)
    spelled = str(answer).lower() if isinstance(answer, bool) else str(answer)
    code = None if isinstance(answer, dict) else int(datum(target, spelled, "answer"))
    verdict = "open" if allowed.is_open else "conforms"
    if not allowed.is_open and not _allows(allowed, chain, code):
        verdict = "violates" if allowed.level == "required" else "deviates"
    clauses = dict.fromkeys(_clauses(chain, given))
    return {
        "input": format_named(chain.source).hexadecimal(given),
        "output": answer if code is None else target.hexadecimal(code),
        "verdict": verdict,
        "level": allowed.level,
        "clause": "; then ".join(clauses),
        "allowed": [*ends_words(target, allowed)],
    }


def _allows(allowed: Ends, chain: Chain, code: int | None) -> bool:
    if code is None or allowed.is_rejected:
        return allowed.is_rejected and code is None
    target = format_named(chain.target)
    in_nans = (code in nans for sign in allowed.nans for nans in target.nans(sign))
    return code in allowed.codes or any(in_nans)


def _clauses(chain: Chain, given: int) -> Iterator[str]:
    """Yield the clauses of a chain's steps, up to the first without exactly one allowed result."""
    codes: Sequence[int] = [given]
    for rules in chain.rulings:
        allowed = expect_by_exact.allow(rules, codes[0])
        yield allowed.branch.clause
        codes = allowed.codes
        if len(codes) != 1:
            return


def judged_today(decided: Decided, answers: Sequence[Any]) -> JudgedAnswer:
    """Judge one or more answers to a question; return the first wrong one, else the first."""
    judge = _judge(decided.question, decided.asked)
    judged = [JudgedAnswer(each, judge(each)["verdict"]) for each in answers]
    return max(judged, key=lambda each: each.is_wrong)


def different(answers: Bits, target: str) -> list[Any]:
    """Return the distinct elements of ``answers``: hex patterns, or ``{"text": ...}`` for texts."""
    form = format_named(target)
    words: list[Any] = []
    for each in dict.fromkeys(map(datum_of, answers.reshape(-1))):
        words.append({"text": each} if isinstance(each, str) else form.hexadecimal(each))
    return words
