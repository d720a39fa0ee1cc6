"""Decides the threads of the docket: who is right by the document, and what is answered today.

The answers that a thread reports are judged as ``castigate judge`` judges recorded answers.
Backends are asked the same inputs, all threads in one round, and their answers are judged alike.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from conformance.driver import drive
from conformance.exchange.docketed_quantization import Element, judge_element
from conformance.exchange.recorded_answers import judge_line
from conformance.families.cast.explanation import input_row, read_input
from conformance.families.chains.ends_words import ends_words
from conformance.judging.asking import Ask, ask, in_step
from conformance.judging.values import ask_values, no_answer
from conformance.value_spelling import TensorDatum, datum, tensor, tensor_words
from oracles.backend.client import Client
from oracles.backend.replies import Answered, Crashed, Declined, Malformed, Raised
from oracles.backend.requests import Bitcast, CastChains
from oracles.protocol import Bits, chain_roads_of
from oracles.reference import expect_by_exact
from oracles.reference.chain_ends import Ends, ends
from oracles.registry import BUILTINS, Backend, framework_of
from reports.grading.divergences import datum_of
from specs.bitcast_ruling import bitcast_ruling
from specs.cases import Case
from specs.chains import Chain, Company
from specs.docket import Question, Thread, docket
from specs.errors import CastigateError
from specs.formats import format_named
from specs.model.quantization_entry import STEPS
from specs.operations import is_bitcast, operation_of
from specs.ruling import ruling

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
COPIES = 67
"""Elements of a row that repeats an input: whole vectors and a rest, of any kernel."""


class Judged(NamedTuple):
    """An answer as it is spelled, and the verdict on it."""

    answer: Any
    verdict: str

    @property
    def is_wrong(self) -> bool:
        """Whether the document does not allow it."""
        return self.verdict in WRONG


@dataclass(frozen=True)
class Missing:
    """Why a backend gave no answer to a question."""

    reason: str


Today = Judged | Missing


@dataclass(frozen=True)
class Decided:
    """A question with what the document says of it; ``reported`` has each system's answer."""

    question: Question
    asked: Case | Chain
    input: Any
    level: str
    clause: str
    allowed: Any
    reported: Mapping[str, Judged]
    wanted: Judged | None

    @property
    def faulty(self) -> list[str]:
        """The systems whose reported answer the document does not allow."""
        return [system for system, each in self.reported.items() if each.is_wrong]

    @property
    def sides(self) -> list[Judged]:
        """All answers that the thread speaks of: those reported, and the one wanted."""
        return [*self.reported.values(), *([self.wanted] if self.wanted is not None else [])]

    @property
    def is_open(self) -> bool:
        """Whether the document allows every answer that the thread speaks of."""
        return not any(each.is_wrong for each in self.sides)

    @property
    def is_settled(self) -> bool:
        """Whether the thread speaks of a single answer, and the document allows no other."""
        given = {str(each.answer) for each in self.sides}
        conforms = all(each.verdict == "conforms" for each in self.sides)
        allows_more = isinstance(self.allowed, list) and len(self.allowed) > 1
        return conforms and len(given) == 1 and not allows_more


@dataclass(frozen=True)
class Verdict:
    """A verdict on a thread, for one backend or, without a name, by the document alone."""

    verdict: str
    why: str = ""
    backend: str = ""


@dataclass(frozen=True)
class DecidedThread:
    """A thread, its questions, and the answers of backends to each of them by name."""

    thread: Thread
    questions: Sequence[Decided]
    today: Mapping[str, Sequence[Today]] = field(default_factory=dict)

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """A verdict for each backend that was asked, and one for what they leave undecided."""
        found = [self._of_backend(name, answers) for name, answers in self.today.items()]
        if not any(each.verdict in (PRESENT, MENDED, ABSENT) for each in found):
            found.append(self._by_document())
        return list(dict.fromkeys(each for each in found if each.verdict))

    @property
    def verdict(self) -> Verdict:
        """The most urgent verdict."""
        return min(self.verdicts, key=lambda each: [*VERDICTS].index(each.verdict))

    @property
    def faulty(self) -> list[str]:
        """The systems that the document says were wrong."""
        return list(dict.fromkeys(system for each in self.questions for system in each.faulty))

    def _of_backend(self, name: str, answers: Sequence[Today]) -> Verdict:
        """The verdict by a backend's answers; empty if no wrong reported answer concerns it."""
        given = [each for each in answers if isinstance(each, Judged)]
        if any(each.is_wrong for each in given):
            return Verdict(PRESENT, backend=name)
        own = name in self.thread.systems
        concerned = [
            today
            for each, today in zip(self.questions, answers, strict=True)
            if (name in each.faulty if own else each.faulty)
        ]
        for each in concerned:
            if isinstance(each, Missing):
                return Verdict(NOT_HERE, each.reason, name)
        if not concerned:
            return Verdict("")
        return Verdict(MENDED if own else ABSENT, backend=name)

    def _by_document(self) -> Verdict:
        """The verdict by the document alone; empty if every system that was wrong was asked."""
        if self.faulty:
            systems = self.thread.project.systems
            reasons = [
                f"{name}: {systems[name]}" if name in systems else f"{name} was not asked"
                for name in self.faulty
                if name not in self.today
            ]
            return Verdict(NOT_HERE, "; ".join(reasons)) if reasons else Verdict("")
        at_issue = [each for each in self.questions if not each.is_settled] or self.questions
        if any(each.is_open for each in at_issue):
            return Verdict(OPEN)
        return Verdict(REPORTER_WRONG)


def decide(thread: Thread) -> DecidedThread:
    """Decide a thread by its documents; raise DocumentError with file and line for a mistake."""
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
    """Whether two questions give the same input of a pair different answers."""
    pairs = [(each.asked.source, each.asked.target, each.input) for each in (one, other)]
    answers = [{str(side.answer) for side in each.sides} for each in (one, other)]
    return pairs[0] == pairs[1] and answers[0] != answers[1]


def _check_systems(thread: Thread, question: Question) -> None:
    for system in question.answers:
        if system not in thread.project.systems and framework_of(system) not in BUILTINS:
            raise CastigateError(
                f"`{system}` is no backend; name it under `systems`, with the reason why it cannot"
                " be asked here"
            )


def _decided(question: Question) -> Decided:
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
        {system: Judged(each["output"], each["verdict"]) for system, each in reported.items()},
        Judged(wanted["output"], wanted["verdict"]) if wanted is not None else None,
    )


def _judge(question: Question, asked: Case | Chain) -> Callable[[Any], dict[str, Any]]:
    """Return a function that judges an answer: verdict, level, clause, and what is allowed."""
    if isinstance(asked, Chain):
        return lambda answer: _judge_chain(asked, str(question.input), answer)

    if operation_of(asked) in STEPS:
        return judge_element(Element.of(question, asked))
    if question.scale is not None or question.zero is not None:
        raise CastigateError(f"{asked.document} has no scales; leave out `scale` and `zero`")
    rules = bitcast_ruling(asked) if is_bitcast(asked) else ruling(asked)

    def judge(answer: Any) -> dict[str, Any]:
        line = {"case": question.case, "input": question.input, "output": answer}
        judged = judge_line(json.dumps(line), rules)
        for side in ("input", "output"):
            judged[side] = judged.get(f"{side}_pattern", judged[side])
        return judged

    return judge


def _judge_chain(chain: Chain, word: str, answer: Any) -> dict[str, Any]:
    given = read_input(chain.rulings[0], word)
    assert isinstance(given, int)
    target = format_named(chain.target)
    allowed = ends(chain.rulings, given)
    code = None if isinstance(answer, dict) else int(datum(target, _spelled(answer), "answer"))
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


def _spelled(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _allows(allowed: Ends, chain: Chain, code: int | None) -> bool:
    if code is None or allowed.is_rejected:
        return allowed.is_rejected and code is None
    target = format_named(chain.target)
    in_nans = (code in nans for sign in allowed.nans for nans in target.nans(sign))
    return code in allowed.codes or any(in_nans)


def _clauses(chain: Chain, given: int) -> Iterator[str]:
    """Yield the clauses of the steps, up to the first that does not allow exactly one result."""
    codes: Sequence[int] = [given]
    for rules in chain.rulings:
        allowed = expect_by_exact.allow(rules, codes[0])
        yield allowed.branch.clause
        codes = allowed.codes
        if len(codes) != 1:
            return


def threads_about(backend: str, threads: Iterable[DecidedThread]) -> list[DecidedThread]:
    """The threads that a backend is asked: those about it, or all if the docket has none."""
    known = {system for each in docket() for system in each.systems}
    return [each for each in threads if backend in each.thread.systems or backend not in known]


def ask_backends(
    threads: Sequence[DecidedThread], backends: Sequence[Backend]
) -> list[DecidedThread]:
    """Ask each backend its threads, in one round, and add the judged answers."""
    found: dict[str, dict[str, list[Today]]] = {each.thread.link: {} for each in threads}
    for backend in backends:
        judges = {
            (each.thread.link, number): _ask(backend, decided)
            for each in threads_about(backend.name, threads)
            for number, decided in enumerate(each.questions)
        }
        for (link, _), today in drive(in_step(judges), Client(backend)).items():
            found[link].setdefault(backend.name, []).append(today)
    return [DecidedThread(each.thread, each.questions, found[each.thread.link]) for each in threads]


def _ask(backend: Backend, decided: Decided) -> Ask[Today]:
    """Ask a question of a backend; of several answers to the same input, the worst."""
    if isinstance(decided.asked, Chain):
        found = yield from _ask_chain(backend, decided.asked, decided)
    elif operation_of(decided.asked) in STEPS:
        found = yield from _ask_element(decided.question, decided.asked)
    elif is_bitcast(decided.asked):
        found = yield from _ask_bitcast(decided.asked, decided.input)
    else:
        found = yield from _ask_cast(decided.asked, decided.input)
    return found if isinstance(found, Missing) else judged_today(decided, found)


def judged_today(decided: Decided, answers: Sequence[Any]) -> Judged:
    """The worst of different answers to the input of a question, as it is spelled."""
    judge = _judge(decided.question, decided.asked)
    judged = [Judged(each, judge(each)["verdict"]) for each in answers]
    return max(judged, key=lambda each: each.is_wrong)


Answers = list[Any] | Missing
"""The different answers to one input as they are spelled, or one error in their place."""


def _ask_cast(case: Case, given: Any) -> Ask[Answers]:
    rules = ruling(case)
    bits = np.repeat(input_row(case, [_word(given)]), COPIES)
    match (yield from ask_values(case, bits)):
        case Answered(answers):
            return different(answers, rules.target.name)
        case Declined(text):
            return Missing(text)
        case missing:
            return [_error(no_answer(missing))]


def _ask_element(question: Question, case: Case) -> Ask[Answers]:
    match (yield from ask(Element.of(question, case).asked(case))):
        case Answered(results):
            return different(results["y"], case.target)
        case Declined(text):
            return Missing(text)
        case missing:
            return [_error(no_answer(missing))]


def _ask_chain(backend: Backend, chain: Chain, decided: Decided) -> Ask[Answers]:
    roads = chain_roads_of(backend.oracle)
    road = decided.question.road if backend.name in decided.reported else ""
    road = road or (roads[0] if roads else "")
    if road not in roads:
        return Missing(f"{backend.name} makes no chains" + (f" on {road}" if road else ""))
    row = np.repeat(input_row(chain.steps[0], [decided.input]), COPIES)
    match (yield from ask(CastChains(chain.steps[0], Company((chain,), road), [row]))):
        case Answered([answers]):
            return different(answers, chain.target)
        case Declined(text):
            return Missing(text)
        case Raised() | Malformed() | Crashed() as missing:
            return [_error(no_answer(missing))]
    raise AssertionError("a program of one chain has one answer")


def _ask_bitcast(case: Case, given: Any) -> Ask[Answers]:
    rules = bitcast_ruling(case)
    given = TensorDatum(**given) if isinstance(given, dict) else given
    bits = tensor(rules.source, given, "input", rules.shape)
    match (yield from ask(Bitcast(case, bits))):
        case Answered(answer):
            return [tensor_words(rules.target, answer)]
        case Declined(text):
            return Missing(text)
        case missing:
            return [_error(no_answer(missing))]


def different(answers: Bits, target: str) -> list[Any]:
    """The different elements of an array, as they are spelled."""
    form = format_named(target)
    words: list[Any] = []
    for each in dict.fromkeys(map(datum_of, answers.reshape(-1))):
        words.append({"text": each} if isinstance(each, str) else form.hexadecimal(each))
    return words


def _error(words: Mapping[str, str]) -> dict[str, str]:
    return {"error": ": ".join(next(iter(words.items())))}


def _word(given: Any) -> str:
    """An input as the command line spells it."""
    return str(given["text"] if isinstance(given, dict) else given)
