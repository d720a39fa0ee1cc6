"""The docket in words: the lines of the command, its data for JSON, and the page in Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from textwrap import TextWrapper
from typing import Any

from conformance.extras.issues.docket import ReportedInput
from conformance.extras.issues.threads import (
    VERDICTS,
    Decided,
    DecidedThread,
    JudgedAnswer,
    ThreadVerdict,
    Today,
)
from reports.findings.finding_text import OUTCOME_WORDS, datum_words
from reports.outputs.table import markdown_table
from specs import VERSION
from specs.cases import format_shape
from specs.loader import yardsticks

LATER_LINES = TextWrapper(
    width=100,
    initial_indent=" " * 4,
    subsequent_indent=" " * 8,
    break_long_words=False,
    break_on_hyphens=False,
)


def counts(threads: Iterable[DecidedThread]) -> dict[str, int]:
    """Return the number of threads with each verdict that occurs, in the order of ``VERDICTS``."""
    found = Counter(each.verdict.verdict for each in threads)
    return {verdict: found[verdict] for verdict in VERDICTS if found[verdict]}


def thread_lines(decided: DecidedThread, versions: Mapping[str, str]) -> Iterator[str]:
    """Yield lines for a thread: its verdicts, the report, then each question.

    ``versions`` has the version of each asked backend.
    """
    thread = decided.thread
    for verdict in decided.verdicts:
        where = f"  {thread.link}  {thread.entry.opened}".rstrip()
        yield f"{verdict_words(verdict, versions)}, by {standing(decided)}{where}"
    yield f"  {thread.entry.report}" + ("" if thread.entry.read else " (known from an excerpt)")
    for each, today in decided.answered:
        yield from LATER_LINES.wrap(question_words(each, today))


def verdict_words(verdict: ThreadVerdict, versions: Mapping[str, str]) -> str:
    """Return a verdict in words.

    Its reason follows if it has one, otherwise its backend with the version from ``versions``.
    """
    name = verdict.backend
    of_backend = f" in {name} {versions[name]}" if name and not verdict.why else ""
    return verdict.verdict + of_backend + (f" ({verdict.why})" if verdict.why else "")


def question_words(decided: Decided, answers: Mapping[str, Today]) -> str:
    """Return in words what the document allows for an input, and all answers to it.

    ``answers`` are those of today by backend; those of the thread come first.
    """
    asked, target = decided.asked, decided.asked.target
    level = "open" if any(each.verdict == "open" for each in decided.reported.values()) else ""
    given = f"{_words(asked.source, decided.input)}{_scale_words(decided.question)}"
    parts = [f"{asked} of {given}: {level or allowed_words(decided)}"]
    parts += [f"{name} {_words(target, each.answer)}" for name, each in decided.reported.items()]
    if decided.wanted is not None:
        parts.append(f"wanted {_words(target, decided.wanted.answer)}")
    for name, each in answers.items():
        now = (
            _words(target, each.answer)
            if isinstance(each, JudgedAnswer)
            else f"none: {each.reason}"
        )
        parts.append(f"today {name} {now}")
    return f"{'; '.join(parts)}. {decided.clause}"


def _scale_words(question: ReportedInput) -> str:
    zero = f" and zero point {question.zero}" if question.zero is not None else ""
    return f" by scale {question.scale}{zero}" if question.scale is not None else ""


def allowed_words(decided: Decided) -> str:
    """Return in words the level of the rule and the answers that it allows."""
    allowed = decided.allowed if isinstance(decided.allowed, list) else [decided.allowed]
    words = " or ".join(_words(decided.asked.target, each) for each in allowed)
    return f"{decided.level} {words}"


def _words(dtype: str, value: Any) -> str:
    """Return an input or answer in words: a pattern with its number, a text, a shape, an error."""
    match value:
        case {"error": _}:
            return "an error"
        case {"text": text}:
            return datum_words(dtype, text)
        case {"shape": shape}:
            return " ".join([f"shape {format_shape(tuple(shape))}", *value.get("bits", ())])
    return OUTCOME_WORDS.get(value) or datum_words(dtype, value)


def standing(decided: DecidedThread) -> str:
    """Return in words whose documents decide a thread: its project's, another's, or yardsticks.

    If some questions have a wrong reported answer, only these count.
    """
    deciding = [each for each in decided.questions if each.faulty] or decided.questions
    names = {each.question.case.partition(":")[0] for each in deciding}
    foreign = names - {*decided.thread.project.claims}
    if not foreign:
        return "own document"
    return "a yardstick" if foreign <= {*yardsticks()} else "another project's document"


def thread_data(decided: DecidedThread) -> dict[str, Any]:
    """Return the object of a JSON line: a thread's entry, its verdicts, and its questions."""
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
        "questions": [_question_data(*each) for each in decided.answered],
    }


def _question_data(decided: Decided, answers: Mapping[str, Today]) -> dict[str, Any]:
    return {
        "case": decided.question.case,
        "input": decided.input,
        "level": decided.level,
        "clause": decided.clause,
        "allowed": decided.allowed,
        "reported": {name: judged._asdict() for name, judged in decided.reported.items()},
        "wanted": decided.wanted._asdict() if decided.wanted is not None else None,
        "today": {
            name: each._asdict() if isinstance(each, JudgedAnswer) else {"missing": each.reason}
            for name, each in answers.items()
        },
    }


def page(threads: Sequence[DecidedThread], versions: Mapping[str, str], date: str) -> str:
    """Return a Markdown page of decided threads; ``versions`` has that of each asked backend."""
    return "\n".join([*_head(threads, versions, date), *_projects(threads, versions), ""])


def _head(
    threads: Sequence[DecidedThread], versions: Mapping[str, str], date: str
) -> Iterator[str]:
    projects = {each.thread.project.project for each in threads}
    asked = ", ".join(f"{name} {version}" for name, version in versions.items())
    yield f"# The docket: {len(threads)} threads, decided"
    yield ""
    yield (
        f"Made by `castigate docket {' '.join(versions)} --page FILE` (castigate {VERSION},"
        f" {date}). {len(threads)} public threads of {len(projects)} projects are about what a"
        " conversion gives. `specs/docket/` has the facts of each: the input, what was answered,"
        " what was wanted. Who is right follows from the document that decides it, and whether it"
        f" is still so from asking: {asked or 'no backend'}. [judging.md](../judging.md#the-docket)"
        " says how."
    )
    yield ""
    rows = [
        [verdict, str(number), VERDICTS[verdict]] for verdict, number in counts(threads).items()
    ]
    yield from markdown_table(("verdict", "threads", "it means"), rows)


def _projects(threads: Sequence[DecidedThread], versions: Mapping[str, str]) -> Iterator[str]:
    by_project = sorted(threads, key=_project)
    for project, of_project in groupby(by_project, _project):
        yield ""
        yield f"## {project}"
        yield ""
        for each in of_project:
            yield from _thread(each, versions)


def _project(decided: DecidedThread) -> str:
    return decided.thread.project.project


def _thread(decided: DecidedThread, versions: Mapping[str, str]) -> Iterator[str]:
    thread = decided.thread
    entry = thread.entry
    verdicts = "; ".join(verdict_words(each, versions) for each in decided.verdicts)
    known = "" if entry.read else " Known from an excerpt."
    outcome = f" {entry.outcome[0].upper()}{entry.outcome[1:]}." if entry.outcome else ""
    findings = f" Findings: {', '.join(f'`{each}`' for each in entry.findings)}."
    number = thread.name.partition("#")[2]
    opened = f", {entry.opened}" if entry.opened else ""
    yield (
        f"- [#{number}]({thread.link}){opened}: {entry.report}."
        f" **{verdicts[0].upper()}{verdicts[1:]}**, by {standing(decided)}.{outcome}{known}"
        f"{findings if entry.findings else ''}"
    )
    for each, today in decided.answered:
        yield f"    - {_escaped(question_words(each, today))}"


def _escaped(text: str) -> str:
    return text.replace("*", "\\*").replace("<", "&lt;").replace("|", "\\|")
