"""Writes the page of the docket: every thread with its verdict, project by project."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from conformance.exchange.docket_words import (
    counts,
    question_words,
    standing,
    verdict_words,
)
from conformance.exchange.docketed import VERDICTS, DecidedThread
from specs.release import VERSION


def page(threads: Sequence[DecidedThread], versions: Mapping[str, str], date: str) -> str:
    """Return the page as Markdown."""
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
        f" is still so from asking: {asked or 'no backend'}. [judging.md](judging.md#the-docket)"
        " says how."
    )
    yield ""
    yield "| verdict | threads | it means |"
    yield "|---|---|---|"
    for verdict, number in counts(threads).items():
        yield f"| {verdict} | {number} | {VERDICTS[verdict]} |"


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
    for place, each in enumerate(decided.questions):
        answers = {name: today[place] for name, today in decided.today.items()}
        yield f"    - {_escaped(question_words(each, answers))}"


def _escaped(text: str) -> str:
    return text.replace("*", "\\*").replace("<", "&lt;").replace("|", "\\|")
