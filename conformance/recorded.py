"""Verdicts on recorded answers: JSON lines in, the same lines with a verdict out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import IO, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from conformance.selection import case_named
from oracles.reference import by_exact
from oracles.reference.allowed import Allowed
from reports.accept import WORDS, allowed_words, grade_code, grade_text
from specs.cases import Case
from specs.errors import CastigateError
from specs.formats import Format
from specs.outcomes import Anything, Rejected, Same
from specs.ruling import Ruling, ruling

HEX = re.compile(r"0[xX][0-9a-fA-F]+")
LONGEST_LINE = 1 << 20
"""Characters of a line; an endless one is cut off here and reported."""


class TextDatum(BaseModel):
    """A value of the string dtype."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: str


class ErrorDatum(BaseModel):
    """The error that came instead of an answer."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    error: str


HexDatum = Annotated[str, Field(pattern=f"^{HEX.pattern}$")]


class RecordedLine(BaseModel):
    """One line: a case, an input, and what came out."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    case: str
    input: HexDatum | TextDatum
    output: HexDatum | TextDatum | ErrorDatum


@dataclass
class Tally:
    """What a stream of lines came to."""

    lines: int = 0
    malformed: int = 0
    verdicts: dict[str, int] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """2 bad input, 1 a violation, 0 otherwise."""
        if self.malformed:
            return 2
        return 1 if self.verdicts.get("violates") or self.verdicts.get("deviates") else 0


def judge_stream(stream: IO[str], tally: Tally) -> Iterator[dict[str, Any]]:
    """Judge line after line; a malformed one becomes an error and nothing else is lost."""
    for number, line in _lines(stream):
        tally.lines += 1
        try:
            if line is None:
                raise CastigateError(f"longer than {LONGEST_LINE} characters; the rest is skipped")
            judged = judge_line(line)
        except CastigateError as error:
            tally.malformed += 1
            yield {"error": f"line {number}: {error}", "line": number}
            continue
        verdict = judged["verdict"]
        tally.verdicts[verdict] = tally.verdicts.get(verdict, 0) + 1
        yield judged


def _lines(stream: IO[str]) -> Iterator[tuple[int, str | None]]:
    """Numbered lines that are not blank; ``None`` for one too long to be read."""
    number = 0
    while line := stream.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE and not line.endswith("\n"):
            while (rest := stream.readline(LONGEST_LINE)) and not rest.endswith("\n"):
                pass
            yield number, None
        elif line.strip():
            yield number, line


def judge_line(line: str) -> dict[str, Any]:
    """The line with its verdict, or an error that says what is wrong with it."""
    recorded = _parsed(line)
    _, rules = known_case(recorded.case)
    given = datum(rules.source, recorded.input, "input")
    check_worked(rules, given)
    allowed = by_exact.allow(rules, given)
    branch = allowed.branch
    grade = _grade(rules, allowed, given, recorded.output)
    rule, clause, level = branch.rule, branch.clause, branch.level
    if grade == 1:
        level = "recommended"
    elif grade and rules.answer_due and isinstance(recorded.output, ErrorDatum):
        due = rules.answer_due
        rule, clause, level = due.rule, due.clause, due.level
    verdict = "conforms"
    if isinstance(branch.outcome, Anything):
        verdict = "open"
    elif grade:
        verdict = "violates" if level == "required" else "deviates"
    return {
        "case": recorded.case,
        "input": _shown(recorded.input),
        "output": _shown(recorded.output),
        "verdict": verdict,
        "rule": rule,
        "level": level,
        "clause": clause,
        "allowed": listed(rules, allowed, given, level),
    }


def _parsed(line: str) -> RecordedLine:
    try:
        return RecordedLine.model_validate_json(line.encode(errors="surrogateescape"))
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        where = str(detail["loc"][0]) if detail["loc"] else ""
        raise CastigateError(_advice(where, detail["type"], detail)) from None


def _advice(where: str, kind: str, detail: ErrorDetails) -> str:
    if kind == "json_invalid":
        return f"not JSON: {detail['ctx']['error']}".replace(" at line 1 column ", " at column ")
    if not where:
        return 'a line is an object: {"case": "…", "input": "0x…", "output": "0x…"}'
    if kind == "missing":
        return f"`{where}` is missing"
    if kind == "extra_forbidden":
        return f"unknown key `{where[:40]}`; the keys are case, input, output"
    if where == "case":
        return "`case` is not a text"
    shown = json.dumps(detail["input"], ensure_ascii=False)[:60]
    return f'`{where}` is {shown}; it must be a hex pattern such as "0x3f" or {{"text": "…"}}'


def _shown(given: str | TextDatum | ErrorDatum) -> str | dict[str, str]:
    return given if isinstance(given, str) else given.model_dump()


@cache
def known_case(name: str) -> tuple[Case, Ruling]:
    """The case of an id and its ruling."""
    case = case_named(name)
    return case, ruling(case)


def datum(form: Format, given: str | TextDatum, what: str) -> int | str:
    """A value as the format has it: a pattern of all its digits, or a text."""
    if form.kind == "text":
        if isinstance(given, str):
            raise CastigateError(f'`{what}` of a string case is written {{"text": "…"}}')
        return given.text
    if not isinstance(given, str):
        raise CastigateError(f"`{what}` of {form.name} is a hex pattern, not a text")
    digits = -(-form.bits // 4)
    if not HEX.fullmatch(given):
        raise CastigateError(
            f"`{what}` `{given[:40]}` is no hex; write {form.name} as 0x and {digits} digits"
        )
    if len(given) != digits + 2:
        raise CastigateError(
            f"`{what}` {given[:40]} has {len(given) - 2} digits,"
            f" a pattern of {form.name} has {digits}"
        )
    code = int(given, 16)
    if code > form.mask:
        raise CastigateError(f"`{what}` {given} is wider than the {form.bits} bits of {form.name}")
    return code


def check_worked(rules: Ruling, given: int | str) -> None:
    """An example says something of the inputs it works out, and of no others."""
    worked = [rules.source.hexadecimal(code) for code, _ in rules.worked]
    if worked and rules.source.hexadecimal(int(given)) not in worked:
        raise CastigateError(f"the example works out only {', '.join(worked)}")


def listed(
    rules: Ruling, allowed: Allowed, given: int | str, level: str = "required"
) -> list[Any] | str:
    """Allowed patterns as a list, allowed texts as objects, anything else as one word."""
    words = allowed_words(rules, allowed, given, level)
    if words[0] in WORDS and not isinstance(allowed.branch.outcome, Same):
        return words[0]
    return [{"text": word} for word in words] if rules.target.kind == "text" else list(words)


def _grade(
    rules: Ruling, allowed: Allowed, given: int | str, output: str | TextDatum | ErrorDatum
) -> int:
    """0 allowed, 1 not recommended, 2 not allowed."""
    outcome = allowed.branch.outcome
    if isinstance(output, ErrorDatum):
        return 0 if isinstance(outcome, Rejected | Anything) else 2
    answer = datum(rules.target, output, "output")
    match outcome:
        case Rejected():
            return 2
        case Anything():
            return 0
    if isinstance(answer, str):
        return grade_text(rules, allowed.place, given, answer)
    return grade_code(rules, allowed, answer)
