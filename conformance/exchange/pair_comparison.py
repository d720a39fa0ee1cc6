"""What all documents say of one input of a pair of dtypes, and which backends obey: a line each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from conformance.exchange.recorded_answers import grade_answer
from oracles.reference import expect_by_exact
from oracles.reference.expectations import Allowed
from reports.findings.finding_text import OUTCOME_WORDS, datum_words
from reports.grading.allowed_answers import describe_allowed
from reports.grading.grades import ALLOWED
from specs.cases import Case
from specs.outcomes import Anything, Rejected
from specs.ruling import Ruling, ruling


class Line(NamedTuple):
    """What one document says: its case without the dtypes, the level, and what is allowed."""

    case: str
    level: str
    allowed: str
    backends: str


def pair_lines(cases: Sequence[Case], explained: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A heading, and a line per document; ``explained`` has the same input for each case."""
    pair, given = cases[0], explained[0]["input"]
    yield f"{pair.source} to {pair.target} of {datum_words(pair.source, _shown(given))}"
    lines = [_line(case, each) for case, each in zip(cases, explained, strict=True)]
    widths = [max(len(line[column]) for line in lines) for column in range(3)]
    for *cells, backends in lines:
        aligned = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        yield f"  {aligned}  {backends}".rstrip()


def _line(case: Case, explained: Mapping[str, Any]) -> Line:
    rules = ruling(case)
    given = _read(explained["input"])
    allowed = expect_by_exact.allow(rules, given)
    match allowed.branch.outcome:
        case Anything():
            level, said = "open", "anything"
        case Rejected():
            level, said = allowed.branch.level, "an error"
        case _:
            level = allowed.branch.level
            said = " or ".join(
                OUTCOME_WORDS.get(each) or datum_words(case.target, each)
                for each in describe_allowed(rules, allowed, given, "recommended")
            )
    name = " ".join([f"{case.document}:{case.version}", *case.id.split("/")[3:]])
    doing: dict[str, list[str]] = {}
    for backend, answer in explained["answers"].items():
        if words := _deed(rules, allowed, given, answer, is_open=level == "open"):
            doing.setdefault(words, []).append(backend)
    done = [words.format(", ".join(names)) for words, names in doing.items()]
    if explained["answers"] and not done:
        done = ["no backend offers it"]
    return Line(name, level, said, "; ".join(done))


def _deed(rules: Ruling, allowed: Allowed, given: int | str, answer: Any, *, is_open: bool) -> str:
    """Say what a backend does, with a place for its name; empty if it does not offer the cast."""
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
            read, words = _read(answer), datum_words(rules.target.name, _shown(answer))
    words = words.replace("{", "{{").replace("}", "}}")
    if is_open:
        return f"{words} from {{}}"
    if grade_answer(rules, allowed, given, read) == ALLOWED:
        return "obeyed by {}"
    return f"not by {{}}: {words}"


def _read(value: Any) -> int | str:
    """A pattern or a text as the explanation has it."""
    return str(value["text"]) if isinstance(value, dict) else int(value, 16)


def _shown(value: Any) -> str:
    return str(value["text"] if isinstance(value, dict) else value)
