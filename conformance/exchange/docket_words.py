"""The docket in words: the lines of the command, and the data of ``--json``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from textwrap import TextWrapper
from typing import Any

from conformance.exchange.docketed import (
    VERDICTS,
    Decided,
    DecidedThread,
    Judged,
    Missing,
    Today,
    Verdict,
)
from reports.findings.finding_text import OUTCOME_WORDS, datum_words
from specs.bitcast_shapes import format_shape
from specs.docket import Question
from specs.loader import yardsticks

LATER_LINES = TextWrapper(
    width=100,
    initial_indent=" " * 4,
    subsequent_indent=" " * 8,
    break_long_words=False,
    break_on_hyphens=False,
)


def counts(threads: Iterable[DecidedThread]) -> dict[str, int]:
    """How many threads have each verdict, in the order of the verdicts."""
    found = Counter(each.verdict.verdict for each in threads)
    return {verdict: found[verdict] for verdict in VERDICTS if found[verdict]}


def thread_lines(decided: DecidedThread, versions: Mapping[str, str]) -> Iterator[str]:
    """A thread with its verdicts, and below each question what the document says."""
    thread = decided.thread
    for verdict in decided.verdicts:
        where = f"  {thread.link}  {thread.entry.opened}".rstrip()
        yield f"{verdict_words(verdict, versions)}, by {standing(decided)}{where}"
    yield f"  {thread.entry.report}" + ("" if thread.entry.read else " (known from an excerpt)")
    for number, each in enumerate(decided.questions):
        answers = {name: today[number] for name, today in decided.today.items()}
        yield from LATER_LINES.wrap(question_words(each, answers))


def verdict_words(verdict: Verdict, versions: Mapping[str, str]) -> str:
    """A verdict, the backend with its version, and the reason if there is one."""
    name = verdict.backend
    of_backend = f" in {name} {versions[name]}" if name and not verdict.why else ""
    return verdict.verdict + of_backend + (f" ({verdict.why})" if verdict.why else "")


def question_words(decided: Decided, answers: Mapping[str, Today]) -> str:
    """Say what the document allows for an input, and what was answered, then and today."""
    asked, target = decided.asked, decided.asked.target
    level = "open" if any(each.verdict == "open" for each in decided.reported.values()) else ""
    given = f"{_words(asked.source, decided.input)}{_scale_words(decided.question)}"
    parts = [f"{asked} of {given}: {level or allowed_words(decided)}"]
    parts += [f"{name} {_words(target, each.answer)}" for name, each in decided.reported.items()]
    if decided.wanted is not None:
        parts.append(f"wanted {_words(target, decided.wanted.answer)}")
    parts += [f"today {name} {_today(target, each)}" for name, each in answers.items()]
    return f"{'; '.join(parts)}. {decided.clause}"


def _scale_words(question: Question) -> str:
    """The scale and the zero point of an element that is quantized."""
    zero = f" and zero point {question.zero}" if question.zero is not None else ""
    return f" by scale {question.scale}{zero}" if question.scale is not None else ""


def allowed_words(decided: Decided) -> str:
    """The level, and all that is allowed."""
    allowed = decided.allowed if isinstance(decided.allowed, list) else [decided.allowed]
    words = " or ".join(_words(decided.asked.target, each) for each in allowed)
    return f"{decided.level} {words}"


def _today(target: str, today: Today) -> str:
    return _words(target, today.answer) if isinstance(today, Judged) else f"none: {today.reason}"


def _words(dtype: str, value: Any) -> str:
    """A value in JSON in words: a pattern with its number, a text, a tensor, an error."""
    match value:
        case {"error": _}:
            return "an error"
        case {"text": text}:
            return datum_words(dtype, text)
        case {"shape": shape}:
            return " ".join([f"shape {format_shape(tuple(shape))}", *value.get("bits", ())])
    return OUTCOME_WORDS.get(value) or datum_words(dtype, value)


def standing(decided: DecidedThread) -> str:
    """Say whose documents decide a thread: the project's own, another project's, or yardsticks."""
    deciding = [each for each in decided.questions if each.faulty] or decided.questions
    names = {each.question.case.partition(":")[0] for each in deciding}
    foreign = names - {*decided.thread.project.claims}
    if not foreign:
        return "own document"
    return "a yardstick" if foreign <= {*yardsticks()} else "another project's document"


def thread_data(decided: DecidedThread) -> dict[str, Any]:
    """A thread as data for JSON."""
    thread = decided.thread
    return {
        "link": thread.link,
        "project": thread.project.project,
        "opened": thread.entry.opened,
        "read": thread.entry.read,
        "report": thread.entry.report,
        "outcome": thread.entry.outcome,
        "findings": thread.entry.findings,
        "decided_by": standing(decided),
        "verdicts": [asdict(each) for each in decided.verdicts],
        "questions": [*_questions(decided.questions, decided.today)],
    }


def _questions(
    questions: Sequence[Decided], today: Mapping[str, Sequence[Today]]
) -> Iterator[dict[str, Any]]:
    for number, each in enumerate(questions):
        yield {
            "case": each.question.case,
            "input": each.input,
            "level": each.level,
            "clause": each.clause,
            "allowed": each.allowed,
            "reported": {name: judged._asdict() for name, judged in each.reported.items()},
            "wanted": each.wanted._asdict() if each.wanted is not None else None,
            "today": {name: _today_data(answers[number]) for name, answers in today.items()},
        }


def _today_data(today: Today) -> dict[str, Any]:
    match today:
        case Missing(reason):
            return {"missing": reason}
        case Judged():
            return today._asdict()
