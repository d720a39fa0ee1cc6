"""Compares documents on one input of a pair: what each allows, and which backends obey."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import TextWrapper, shorten
from typing import Any, NamedTuple

from conformance.families.cast.recorded import grade_answer
from oracles.reference import expect_by_exact
from oracles.reference.expectations import Allowed
from oracles.registry import Backend
from reports.counterexample.drawing import complex_text
from reports.findings.finding_text import OUTCOME_WORDS, datum_words
from reports.grading.allowed_answers import ALLOWED, NOT_RECOMMENDED, describe_allowed
from specs.branches import Ruling
from specs.calls import FORM, MEMBER
from specs.cases import Case
from specs.formats import format_named
from specs.outcomes import Anything, Rejected
from specs.ruling import ruling

WIDTH = 100
"""Columns of a terminal; of a longer line, the part about backends moves below it."""
LATER_LINES = TextWrapper(
    width=WIDTH,
    initial_indent=" " * 6,
    subsequent_indent=" " * 6,
    break_long_words=False,
    break_on_hyphens=False,
)
ANY_VALUE = "any value"
"""Stands for an outcome of which a document leaves the value open, but requires an answer."""
LEVELS = ("required", "recommended", "open")
"""How firmly a document decides one input, from the strictest."""


class Line(NamedTuple):
    """A document's name and modes, the level, what it allows, and which backends obey, in words."""

    name: str
    level: str
    allowed: str
    backends: str


def pair_lines(
    cases: Sequence[Case], explained: Sequence[Mapping[str, Any]], backends: Sequence[Backend]
) -> Iterator[str]:
    """Yield a heading, a line or more per case, and the errors of backends.

    ``explained`` has ``Explained.told`` of each case, for one and the same input, with ``answers``
    by names of backends.
    """
    pair, given = cases[0], explained[0]["input"]
    yield f"{pair.source} to {pair.target} of {_in_words(pair.source, _shown(given))}"
    lines = [_line(case, each, backends) for case, each in zip(cases, explained, strict=True)]
    widths = [max(len(line[column]) for line in lines) for column in range(3)]
    for *cells, doing in lines:
        aligned = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        if len(aligned) + len(doing) + 4 <= WIDTH:
            yield f"  {aligned}  {doing}".rstrip()
        else:
            yield f"  {aligned}".rstrip()
            yield from LATER_LINES.wrap(doing)
    for message, names in _errors(cases, explained, backends).items():
        said = shorten(f"error of {', '.join(names)}: {message}", WIDTH - 2, placeholder=" …")
        yield f"  {said}"


def most_telling(cases: Sequence[Case], explained: Sequence[Mapping[str, Any]]) -> Case:
    """Return the case whose document decides the input most strictly; of several the first.

    ``explained`` has ``Explained.told`` of each case, for one and the same input.
    """
    levels = (_level(_allowed(case, each)) for case, each in zip(cases, explained, strict=True))
    ranks = [LEVELS.index(level) for level in levels]
    return cases[ranks.index(min(ranks))]


def _line(case: Case, explained: Mapping[str, Any], backends: Sequence[Backend]) -> Line:
    rules = ruling(case)
    given = _read(explained["input"])
    allowed = _allowed(case, explained)
    # All forms of a call give the same values, so the form is not shown.
    modes = [f"{name}:{value}" for name, value in case.modes if name not in (FORM, MEMBER)]
    doing: dict[str, list[str]] = {}
    for backend, answer in _answers(case, explained, backends):
        if words := _deed(rules, allowed, given, answer):
            doing.setdefault(words, []).append(backend)
    done = [words.format(", ".join(names)) for words, names in doing.items()]
    if backends and not done:
        done = ["no backend offers it"]
    name = " ".join([f"{case.document}:{case.version}", *modes])
    return Line(name, _level(allowed), _said(rules, allowed, given), "; ".join(done))


def _answers(
    case: Case, explained: Mapping[str, Any], backends: Sequence[Backend]
) -> Iterator[tuple[str, Any]]:
    """Yield each backend's name and answer, except errors to calls that it does not claim."""
    for backend in backends:
        answer = explained["answers"][backend.name]
        is_error = isinstance(answer, dict) and "error" in answer
        is_foreign = not backend.claims(case.document, case.version)
        if not (is_error and is_foreign and FORM in dict(case.modes)):
            yield backend.name, answer


def _allowed(case: Case, explained: Mapping[str, Any]) -> Allowed:
    return expect_by_exact.allow(ruling(case), _read(explained["input"]))


def _level(allowed: Allowed) -> str:
    return "open" if isinstance(allowed.branch.outcome, Anything) else allowed.branch.level


def _said(rules: Ruling, allowed: Allowed, given: int | str) -> str:
    """Return the allowed answers in words, and which of them are recommended."""
    match allowed.branch.outcome:
        case Anything():
            return ANY_VALUE if rules.is_open and rules.answer_due else "anything"
        case Rejected():
            return "an error"
    every, best = (
        " or ".join(
            OUTCOME_WORDS.get(each) or _in_words(rules.target.name, each)
            for each in describe_allowed(rules, allowed, given, level)
        )
        for level in ("required", "recommended")
    )
    return every if every == best else f"{every}; recommended {best}"


def _deed(rules: Ruling, allowed: Allowed, given: int | str, answer: Any) -> str:
    """Say that a backend obeys, or what it answers instead, with ``{}`` for its name.

    The text is empty if the backend does not offer the cast.
    """
    match answer:
        case {"unsupported": _}:
            return ""
        case {"crashed": _}:
            return "crash of {}"
        case {"departed": _}:
            return "broken promise of {}"
        case {"error": _}:
            read, words = None, "an error"
        case _:
            read, words = _read(answer), _in_words(rules.target.name, _shown(answer))
    words = words.replace("{", "{{").replace("}", "}}")
    if read is None and rules.is_open and rules.answer_due is not None:
        return f"not by {{}}: {words}"
    if _level(allowed) == "open":
        return f"{words} from {{}}"
    grade = grade_answer(rules, allowed, given, read)
    if grade == ALLOWED:
        return "obeyed by {}"
    return f"not {'as recommended ' if grade == NOT_RECOMMENDED else ''}by {{}}: {words}"


def _errors(
    cases: Sequence[Case], explained: Sequence[Mapping[str, Any]], backends: Sequence[Backend]
) -> dict[str, list[str]]:
    """Return each error message with the names of the backends that gave it."""
    found: dict[str, list[str]] = {}
    for case, each in zip(cases, explained, strict=True):
        for backend, answer in _answers(case, each, backends):
            match answer:
                case {"error": message}:
                    found.setdefault(message, []).append(backend)
    return {message: list(dict.fromkeys(names)) for message, names in found.items()}


def _in_words(dtype: str, text: str) -> str:
    """Return a pattern with its value, also a complex one; a text or an outcome in words."""
    form = format_named(dtype)
    value = complex_text(form, int(text, 16)) if form.kind == "complex" else ""
    return f"{text} ({value})" if value else datum_words(dtype, text)


def _read(value: Any) -> int | str:
    """Return the code of a pattern, or the text, that an explanation in JSON has."""
    return str(value["text"]) if isinstance(value, dict) else int(value, 16)


def _shown(value: Any) -> str:
    return str(value["text"] if isinstance(value, dict) else value)
