"""A finding: one root cause of one backend, all that it explains, and where it was reported.

The threads of the docket name the findings that they report. ``intended.yaml`` has the places where
owners document a behavior as intended.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Literal, get_args

import numpy as np
from pydantic import Field, TypeAdapter, ValidationError

import specs
from oracles.adapters.script_text import UNEVEN, bits_statement
from oracles.registry import framework_of
from reports.dtype_order import USUAL, usual_first
from reports.findings.cells import Cell
from reports.judgement import NEXT_SCRIPT
from reports.problem_words import words
from reports.problems import WrongTensor
from specs.cases import SHAPE
from specs.formats import Format, format_named
from specs.loader import documents
from specs.model.strict_model import explain_validation_error
from specs.model.yaml_file import read_yaml

FindingKind = Literal[
    "wrong value",
    "broken promise",
    "lost refusal",
    "wrong refusal",
    "crash",
    "depends on layout",
    "accepts what is not listed",
]
KINDS: tuple[FindingKind, ...] = get_args(FindingKind)
"""The kinds of findings, the most severe first."""
LONGEST = 1 << 16
"""The length that sorts shares without an input behind all others."""
UNEXPLAINED = "unexplained"
"""The name of the finding that collects wrong answers that no mechanism explains."""


@dataclass(frozen=True)
class ExplainedCase:
    """The share of a finding in one case: the rule that is broken, and on which inputs.

    ``inputs`` is a lower bound if ``is_exact`` is False. ``region`` is the failing inputs in words,
    ``smallest`` the simplest of them in hex or as a text, and ``allowed`` what is allowed for it.
    Without failing inputs (a refusal, a crash) ``answer`` says what happened. ``digest`` is that of
    the broken rule. ``segments`` are the failing inputs as parts of the number line.
    """

    cell: Cell
    rule: str
    clause: str
    level: str
    inputs: int
    is_exact: bool
    region: str
    smallest: str
    answer: str
    allowed: tuple[str, ...]
    digest: str = ""
    segments: tuple[int, ...] = ()

    @property
    def script(self) -> str:
        """The adapter's script that shows this share; empty if there is none.

        A case with wrong values has a script that binds the input in one statement. If the share's
        simplest input is another, that statement is replaced.
        """
        if self.wrong_tensor is not None:
            return self.wrong_tensor.script
        script, *others = self.cell.reproduction.split(NEXT_SCRIPT)
        shown = self.cell.broken[0].smallest if self.cell.broken else None
        if not self.smallest:
            return "".join(others[:1]) if shown else script
        if not shown or shown == self.smallest:
            return script
        source = format_named(self.cell.source)
        for count in (1, UNEVEN):
            before, after = (
                _bits_statement(source, text, count) for text in (shown, self.smallest)
            )
            if before in script:
                return script.replace(before, after)
        return ""

    @property
    def wrong_tensor(self) -> WrongTensor | None:
        """The problem with a named result tensor that this share is, or None."""
        found = (each for each in self.cell.problems if isinstance(each, WrongTensor))
        return next((each for each in found if words(each) == self.answer), None)

    @property
    def order(self) -> tuple[bool | int, ...]:
        """The sort key of shares: the most telling for a maintainer first, then the simplest.

        The most telling have a script that does not need castigate, break what a document requires,
        convert numbers of dtypes that people use, and are of the document's newest version. How a
        text is read is a separate question.
        """
        cell, places = self.cell, usual_first()
        shape = cell.as_case.mode.get(SHAPE, "")
        return (
            not self.script,
            self.script.startswith("castigate "),
            self.level != "required",
            format_named(cell.source).kind == "text",
            sum(each not in USUAL for each in (cell.source, cell.target)),
            _newer_versions(cell),
            places[cell.source] + places[cell.target],
            len(self.smallest) or LONGEST,
            "0" in shape.split("x"),
            len(shape),
        )


def _newer_versions(cell: Cell) -> int:
    """Return how many versions of a cell's document are newer; 0 if it is not known any more."""
    known = documents().get(cell.document)
    versions = [*known.entry.versions] if known is not None else []
    return len(versions[versions.index(cell.version) + 1 :]) if cell.version in versions else 0


def _bits_statement(source: Format, text: str, count: int) -> str:
    """Return the statement of a script that binds ``count`` copies of an input in hex or text."""
    if source.kind == "text":
        return bits_statement(source.name, np.array([text] * count, object))
    pattern = int(text, 16).to_bytes(np.dtype(source.storage).itemsize, sys.byteorder)
    return bits_statement(source.name, np.frombuffer(pattern * count, source.storage))


@dataclass(frozen=True, repr=False)
class Finding:
    """One root cause: its name, a sentence, and the cases that it explains, in the run's order.

    The name does not depend on pairs, versions or counts, so that it is the same in other runs.
    """

    name: str
    backend: str
    kind: FindingKind
    says: str
    explained: tuple[ExplainedCase, ...]

    def __repr__(self) -> str:
        inputs = f"{'' if self.is_exact else 'at least '}{self.inputs:,} inputs"
        return f"<Finding {self.id}: {self.says} ({inputs}, {len(self.cases)} cases)>"

    @property
    def id(self) -> str:
        """The backend and the name, joined by a slash."""
        return f"{self.backend}/{self.name}"

    @property
    def upstream(self) -> str | None:
        """The first thread of the docket that reports the finding, or None."""
        return upstream_of(self.backend, self.name)

    @property
    def intended(self) -> str | None:
        """The place where the owners document the behavior as intended, or None."""
        return intended_of(self.backend, self.name)

    @cached_property
    def cases(self) -> tuple[str, ...]:
        """The ids of the cases, and the names of the checks on dtype pairs, each once."""
        return tuple(dict.fromkeys(each.cell.name for each in self.explained))

    @cached_property
    def inputs(self) -> int:
        """How many wrong answers the finding explains, in all cases together."""
        return sum(each.inputs for each in self.explained)

    @property
    def is_exact(self) -> bool:
        """Whether the number of inputs is exact."""
        return all(each.is_exact for each in self.explained)

    @property
    def simplest(self) -> ExplainedCase:
        """The share that shows the finding best, by ``ExplainedCase.order``; of equals the last."""
        return min(reversed(self.explained), key=lambda each: each.order)


Findings = Mapping[str, Sequence[Finding]]
"""The findings of each backend that has any."""


DOCKET = Path(specs.__file__).with_name("docket")
"""The folder with the files of public threads."""
INTENDED_FILE = Path(__file__).with_name("intended.yaml")
FindingId = Annotated[str, Field(pattern=r"^[\w.:-]+/[\w.:-]+$")]
Places = dict[FindingId, Annotated[str, Field(min_length=1)]]


@cache
def upstream_links() -> Mapping[str, str]:
    """Map each reported finding, as `framework/name`, to the first thread that reports it.

    Of a thread, only its findings are read: ``castigate docket`` checks the rest.
    """
    links: dict[str, str] = {}
    for path in sorted(DOCKET.glob("*.yaml")):
        for link, thread in read_yaml(path).data["threads"].items():
            for finding in thread.get("findings", ()):
                links.setdefault(finding, link)
    return links


@cache
def intended_places() -> Mapping[str, str]:
    """Map findings, as `framework/name`, to where owners document them as intended.

    Raise DocumentError if ``intended.yaml`` is malformed.
    """
    source = read_yaml(INTENDED_FILE)
    try:
        return TypeAdapter(Places).validate_python(source.data)
    except ValidationError as error:
        raise source.error(*explain_validation_error(source, error)) from None


def upstream_of(backend: str, name: str) -> str | None:
    """Return the thread that reports a finding, or None; the variants of a framework share it."""
    return upstream_links().get(f"{framework_of(backend)}/{name}")


def intended_of(backend: str, name: str) -> str | None:
    """Return where a finding is documented as intended, or None; all variants share it."""
    return intended_places().get(f"{framework_of(backend)}/{name}")
