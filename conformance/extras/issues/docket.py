"""The docket: public threads about conversions, as facts, read from ``specs/docket/*.yaml``.

An entry says which system was reported to answer what, and which answer was wanted instead, for an
input of the case that decides it. It does not say who is right: that follows from the document.
Asking a backend shows whether it still gives the answer (``castigate docket``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, model_validator

from reports.findings.finding import DOCKET
from specs.cases import Case
from specs.chains import Chain, chain_named, is_chain
from specs.errors import CastigateError, Location
from specs.loader import document_and_version, documents, yardsticks
from specs.model.strict_model import StrictModel, validated
from specs.model.yaml_file import YamlFile, read_yaml
from specs.questions import case_of_any_shape
from specs.selection import case_named, cases_of_pair

PROJECT = r"[\w-][\w.-]*/[\w.-]+"
LINK = re.compile(rf"https://github\.com/({PROJECT})/(issues|pull)/([1-9][0-9]*)", re.ASCII)
PlainValue = str | int | bool
ThreadValue = PlainValue | list[PlainValue] | dict[str, Any]
"""A value as ``castigate judge`` reads it: a number or pattern, a tensor, a text, an error."""
NonEmpty = Annotated[str, Field(min_length=1)]


class ReportedInput(StrictModel):
    """One input of a case or a chain: each system's reported answer, and the answer wanted.

    ``answers`` are by system. ``wanted`` is None if the thread wanted no other answer. ``road`` is
    that on which a system ran a chain.
    """

    case: str
    input: ThreadValue
    scale: str | None = None
    """The scale of an element that has one, and its zero point."""
    zero: int | None = None
    answers: Annotated[dict[str, ThreadValue], Field(min_length=1)]
    wanted: ThreadValue | None = None
    road: str = ""

    @property
    def asked(self) -> Case | Chain:
        """The case or the chain of the question.

        Raises CastigateError if its id names none, or lacks a version or a mode.
        """
        edition, *parts = self.case.split("/")
        name = edition.partition(":")[0]
        found: Case | Chain
        if is_chain(parts):
            found = chain_named(self.case)
        elif name in yardsticks() and len(parts) > 1:
            known, named = document_and_version(edition, takes_yardsticks=True)
            version = named or [*known.entry.versions][-1]
            cases = cases_of_pair(known.name, version, *parts[:2]) or [case_named(self.case)]
            found = next((case for case in cases if case.id == self.case), cases[0])
        else:
            found = case_of_any_shape(self.case)
        if found.id != self.case:
            raise CastigateError(f"`{self.case}` lacks its version or a mode; write {found.id}")
        return found


class ThreadEntry(StrictModel):
    """A thread of the docket as its file has it.

    ``opened`` is its date as far as it is known; empty if it is not. ``report`` and ``outcome``
    tell in our words what was reported and how it ended. If ``read`` is false, we know the thread
    from an excerpt only. ``findings`` names findings of Castigate that the thread reports.
    """

    opened: Annotated[str, Field(pattern=r"^20[0-9]{2}(-[01][0-9](-[0-3][0-9])?)?$")] = ""
    report: NonEmpty
    outcome: NonEmpty = ""
    read: bool = True
    questions: Annotated[list[ReportedInput], Field(min_length=1)]
    findings: list[Annotated[str, Field(pattern=r"^[\w.:-]+/[\w.:-]+$")]] = Field([])


class DocketEntry(StrictModel):
    """A file of the docket: the threads of one project by their links.

    ``claims`` are the documents that the project means to implement. ``systems`` has the systems
    that Castigate cannot ask, each with the reason.
    """

    project: Annotated[str, Field(pattern=rf"^{PROJECT}$")]
    claims: list[str] = Field([])
    systems: dict[str, NonEmpty] = Field({})
    threads: Annotated[dict[str, ThreadEntry], Field(min_length=1)]

    @model_validator(mode="after")
    def _check_systems(self) -> DocketEntry:
        named = {
            system
            for thread in self.threads.values()
            for question in thread.questions
            for system in question.answers
        }
        if unused := set(self.systems) - named:
            raise ValueError(f"no thread names the system `{min(unused)}`; delete it")
        return self


@dataclass(frozen=True)
class Thread:
    """A thread of the docket, with the entry of its project and the file of both."""

    link: str
    entry: ThreadEntry
    project: DocketEntry
    source: YamlFile

    @property
    def name(self) -> str:
        """The link as people write it: ``onnx/onnx#6220``."""
        found = LINK.fullmatch(self.link)
        assert found is not None
        return f"{found[1]}#{found[3]}"

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems of which the thread reports answers."""
        return tuple(dict.fromkeys(each for one in self.entry.questions for each in one.answers))

    def location(self, question: int) -> Location:
        """Return the location of a question in the file, by the question's number from 0."""
        return ("threads", self.link, "questions", question)


@cache
def docket() -> tuple[Thread, ...]:
    """Return all shipped threads, ordered by file; raise DocumentError for a mistake in a file."""
    return tuple(each for path in sorted(DOCKET.glob("*.yaml")) for each in load_docket(path))


def load_docket(path: Path) -> Iterator[Thread]:
    """Yield the threads of one project's file.

    Raise DocumentError with file and line for a missing case, an unknown document, a link to
    another project, and whatever breaks the file's format.
    """
    for thread in _threads(path):
        file = thread.source
        for number, name in enumerate(thread.project.claims):
            if name not in documents():
                known = ", ".join(documents())
                raise file.error(("claims", number), f"`{name}` is no document; they are {known}")
        for number, question in enumerate(thread.entry.questions):
            try:
                _ = question.asked
            except CastigateError as error:
                raise file.error((*thread.location(number), "case"), str(error)) from None
        yield thread


def _threads(path: Path) -> Iterator[Thread]:
    """Yield the threads of one project's file, without checking cases and documents.

    Raise DocumentError for a wrong format, and for a link to another project.
    """
    file = read_yaml(path)
    project = validated(DocketEntry, file)
    for link, entry in project.threads.items():
        found = LINK.fullmatch(link)
        if found is None or found[1] != project.project:
            form = f"https://github.com/{project.project}/issues/N or …/pull/N"
            raise file.error(
                ("threads", link), f"`{link}` is no thread of the project; write {form}"
            )
        yield Thread(link, entry, project, file)
