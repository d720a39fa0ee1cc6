"""Finds the causes of failures, except of wrong values of casts, which ``root_causes`` treats.

Among them are refusals, crashes, shapes, layouts, and wrong elements of other families.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from oracles.backend.remote_errors import SILENT
from reports import case_patterns
from reports.findings.cells import Cell, Divergence
from reports.findings.finding import FindingKind
from reports.findings.finding_text import shortened
from reports.problem_words import error_words, joined_words, words
from reports.problems import (
    BrokenAdapter,
    BrokenPromise,
    ChangesWithShape,
    Died,
    NotRefused,
    Problem,
    Refused,
    WritesToInputs,
    WrongByAnyReading,
    WrongEnd,
    WrongForm,
    WrongShape,
)
from specs.cases import Shape, shape_of
from specs.editions import edition
from specs.loader import document_named
from specs.operations import of_family, operation_of

REJECTED = ("error",)
"""The allowed outcomes of a rule that requires an error."""
ADDRESS = re.compile(r"\b(?:0x[0-9a-fA-F]{6,}|\d{6,})\b")
"""Matches numbers in a framework's error that are likely to differ in the next run."""
WORD, NOT_IN_NAMES = re.compile(r"\w+"), re.compile(r"[^a-z0-9]+")
LONGEST_NAME = 50
"""The most characters of a name that is made from a message."""


class Cause(NamedTuple):
    """The kind and the name of a finding, which together are unique within a backend."""

    kind: FindingKind
    name: str


class Failure(NamedTuple):
    """A cell that fails, the rule that it breaks, and the problem by which it fails.

    ``broken`` is None if no rule is named. Without a problem, the backend gave values where the
    rule requires an error, or only the cell's message says what happened.
    """

    cell: Cell
    broken: Divergence | None
    problem: Problem | None


CHANGES_WITH_LAYOUT = (
    Cause("depends on layout", "changes-with-layout"),
    "changes its answers with position, length or layout",
)


WRITES_TO_INPUTS = (
    Cause("wrong value", "writes-to-its-inputs"),
    "changes the tensor that it is given",
)
NOT_ALL_MEMBERS = (
    Cause("wrong value", "not-all-members"),
    "does not convert all members of a layer",
)
OTHER_VALUES = (
    Cause("wrong value", "members-get-other-values"),
    "gives members of a layer other values",
)


def failures_of(cell: Cell) -> Iterator[Failure]:
    """Yield the failures of a failing cell other than wrong values of casts.

    A cell that breaks no rule gives one failure without a rule.
    """
    problems = iter(cell.problems)
    for broken in cell.broken:
        if broken.smallest is None:
            yield Failure(cell, broken, next(problems, None))
        elif broken.allowed == REJECTED:
            yield Failure(cell, broken, None)
    if not cell.broken:
        yield Failure(cell, None, next(problems, None))


def find_causes(failures: Sequence[Failure]) -> Iterator[tuple[Cause, str]]:
    """Yield, for each failure of one backend, its cause and the sentence of the finding.

    If several mechanisms, or several rules of shapes, explain a failure, its cause is the one that
    explains most failures.
    """
    followed = [_followed(each) for each in failures]
    counts = Counter(name for names in followed for name in names)
    chosen = [max(names, key=lambda name: counts[name], default="") for names in followed]
    shapes: dict[str, set[Shape]] = {}
    for name, (cell, _, problem) in zip(chosen, failures, strict=True):
        if name and isinstance(_by_first_reading(problem), WrongShape | NotRefused):
            shapes.setdefault(name, set()).add(shape_of(cell.as_case))
    raised = {
        cause.name: (cause, says)
        for cell, _, problem in failures
        if not cell.check and isinstance(problem, Refused)
        for cause, says in [_cause_of_error(problem)]
    }
    for each, name in zip(failures, chosen, strict=True):
        if isinstance(each.problem, BrokenPromise):
            yield _cause_of_promise(each, each.problem)
        elif name == CHANGES_WITH_LAYOUT[0].name:
            yield CHANGES_WITH_LAYOUT
        elif name:
            says = of_family(_question(each), "says")(name)
            where = shape_words(shapes[name]) if name in shapes else ""
            yield Cause("wrong value", name), says + where
        elif each.cell.check:
            yield _cause_of_check(each, raised)
        else:
            yield _cause(each)


def _question(failure: Failure) -> str:
    if isinstance(failure.problem, WrongEnd):
        return failure.problem.question
    return operation_of(failure.cell.as_case)


def _followed(failure: Failure) -> Sequence[str]:
    """Return the names of mechanisms or rules of shapes by which a family explains a failure."""
    followed = of_family(_question(failure), "followed")
    case, problem = failure.cell.as_case, _by_first_reading(failure.problem)
    return followed(case, problem) if followed is not None and problem is not None else ()


def _by_first_reading(problem: Problem | None) -> Problem | None:
    return problem.readings[0] if isinstance(problem, WrongByAnyReading) else problem


def _cause(failure: Failure) -> tuple[Cause, str]:
    cell, broken, problem = failure
    problem = _by_first_reading(problem)
    match problem:
        case None | NotRefused() if broken is not None:
            return _lost_refusal(cell, broken)
        case Died(how=how):
            name, does = ("hangs", "it hangs") if SILENT in how else ("dies", "its process dies")
            return Cause("crash", name), f"{does}{f': {shortened(how)}' if how else ''}"
        case Refused():
            return _cause_of_error(problem)
        case BrokenAdapter(dtype=dtype):
            return Cause("wrong refusal", f"adapter-breaks-{dtype}"), shortened(words(problem))
        case WritesToInputs():
            return WRITES_TO_INPUTS
        case WrongForm() if broken is None:
            says = f"returns what cannot be compared: {shortened(cell.message)}"
            return Cause("wrong value", "malformed"), says
        case ChangesWithShape():
            return CHANGES_WITH_LAYOUT
        case WrongShape() if of_family(_question(failure), "tensor") is not None:
            name = "other-shape"
            return Cause("wrong value", name), of_family(_question(failure), "says")(name)
    if broken is None:
        return Cause("wrong refusal", "no-answer"), shortened(cell.message)
    says = shortened(_without_dtypes(cell, problem))
    return Cause("wrong value", _named_by(says)), says


def _named_by(says: str) -> str:
    return NOT_IN_NAMES.sub("-", says.lower()).strip("-")[:LONGEST_NAME]


def _cause_of_promise(failure: Failure, broken: BrokenPromise) -> tuple[Cause, str]:
    """Return the cause and the sentence for a ``BrokenPromise``; they do not name the tensor."""
    match broken.promise:
        case "other member":
            return NOT_ALL_MEMBERS
        case "member's value" if broken.facts[:1] == ("tensor",):
            return CHANGES_WITH_LAYOUT
        case "member's value":
            return OTHER_VALUES
    says = _without_dtypes(failure.cell, replace(broken, where=""))
    return Cause("broken promise", _named_by(says)), shortened(says)


def _lost_refusal(cell: Cell, broken: Divergence) -> tuple[Cause, str]:
    """Return the cause and the sentence for an answer where a document wants an error."""
    document, operation = cell.document, document_named(cell.document).entry.operation
    listed = edition(document_named(document), cell.version).listed
    if (cell.source, cell.target) not in listed:
        cause = Cause("accepts what is not listed", f"accepts-unlisted-{document}")
        return cause, f"{operation}s pairs that the version of {document} does not list"
    says = f"answers where {document} wants an error ({broken.clause})"
    return Cause("lost refusal", f"accepts-what-{document}-refuses"), says


def _cause_of_error(problem: Refused) -> tuple[Cause, str]:
    """Return the cause and the sentence for an error where an answer is due."""
    line = shortened(ADDRESS.sub("…", problem.line))
    says = f"raises {error_words(problem.error, line, bool(problem.place))}"
    says += f" ({problem.place})" if problem.place else ""
    return Cause("wrong refusal", f"raises-{problem.error}"), says


def _cause_of_check(failure: Failure, raised: Mapping[str, tuple[Cause, str]]) -> tuple[Cause, str]:
    """Return the cause and the sentence for a check on a dtype pair or a chain that fails.

    ``raised`` has, by the cause's name, the causes and sentences of errors in cases. A check on a
    pair, but not on a chain, that raises such an error shares its cause.
    """
    cell, _, problem = failure
    kind, _, pair = cell.check.partition("/")
    match cell.verdict, kind:
        case "crashed", case_patterns.CHAINS:
            return Cause("crash", "dies-in-chains"), "its process dies for casts in one program"
        case "error", case_patterns.CHAINS if isinstance(problem, Refused):
            says = f"{_cause_of_error(problem)[1]}, for casts in one program"
            return Cause("wrong refusal", "raises-in-chains"), says
        case "crashed", _:
            return Cause("crash", "dies-in-some-layouts"), "its process dies for some layouts"
        case "error", _ if isinstance(problem, WritesToInputs):
            return WRITES_TO_INPUTS
        case "error", _:
            if isinstance(problem, Refused):
                cause, _ = _cause_of_error(problem)
                if cause.name in raised:
                    return raised[cause.name]
            cause = Cause("depends on layout", "raises-in-some-layouts")
            return cause, "raises an error for some lengths, shapes or layouts"
        case _, case_patterns.VARIANTS:
            road, _, _ = pair.rsplit("/", 2)
            cause = Cause("depends on layout", f"differs-from-{road}")
            return cause, f"answers otherwise than {road}"
        case _:
            return CHANGES_WITH_LAYOUT


def _without_dtypes(cell: Cell, problem: Problem | None) -> str:
    """Return the words of a problem, or else the cell's message, without the dtypes of the cell.

    `the source dtype` and `the target dtype` take their place.
    """
    roles = {cell.target: "the target dtype", cell.source: "the source dtype"}
    message = cell.message.removesuffix(joined_words(cell.limits)).removesuffix("; ")
    if problem is not None:
        message = words(problem)  # without the notes of the case
    return WORD.sub(lambda word: roles.get(word[0], word[0]), message)


def shape_words(shapes: Collection[Shape]) -> str:
    """Return `, for scalars` or `, for tensors without elements` if each of them is; else ''."""
    if all(0 in shape for shape in shapes):
        return ", for tensors without elements"
    return ", for scalars" if all(shape == () for shape in shapes) else ""
