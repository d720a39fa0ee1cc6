"""`castigate judge`: JSON lines with recorded answers in, the same lines with a verdict out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import IO, Annotated, Any

from pydantic import BaseModel, Field, ValidationError
from pydantic_core import ErrorDetails

from conformance.families.bitcast.recorded import judge_bitcast
from conformance.families.cast.recorded import allowed_list, check_example_input, grade_answer
from conformance.lines.listed_inputs import Rules, UnansweredInputs
from conformance.lines.named_tensors import (
    are_full_patterns,
    formats_given,
    formats_returned,
    tensors_given,
    tensors_in_words,
    tensors_returned,
)
from conformance.lines.recorded_tensors import judge_tensors
from conformance.value_spelling import (
    ErrorDatum,
    InputDatum,
    JsonNumber,
    OutputDatum,
    as_pattern,
    datum,
    is_full_pattern,
    json_text,
    tensor,
)
from oracles.reference import expect_by_exact
from oracles.reference.expectations import Allowed
from reports.grading.grades import ALLOWED, NOT_ALLOWED, NOT_RECOMMENDED
from specs.bitcast_ruling import BitcastRuling, bitcast_ruling
from specs.bitcast_shapes import Shape
from specs.branches import Ruling
from specs.cases import Case
from specs.errors import CastigateError
from specs.json_source import JsonError, unique_members
from specs.model.strict_model import StrictModel
from specs.operations import is_bitcast, takes_named_tensors
from specs.outcomes import Anything
from specs.questions import case_of_any_shape
from specs.ruling import ruling

LONGEST_LINE = 1 << 20
"""The most characters of a line; a longer one is reported, and its rest is skipped."""


def _refuse_constant(word: str) -> Any:
    quoted = word.lower().replace("infinity", "inf")
    raise CastigateError(f'not JSON: `{word}` is no value of JSON; write "{quoted}" in quotes')


NUMBERS_AS_TEXT = json.JSONDecoder(
    parse_int=JsonNumber,
    parse_float=JsonNumber,
    parse_constant=_refuse_constant,
    object_pairs_hook=unique_members,
)


class RecordedLine(StrictModel):
    """One line: a case, an input, and the recorded output."""

    case: str
    input: Annotated[InputDatum, Field(union_mode="left_to_right")]
    output: Annotated[OutputDatum, Field(union_mode="left_to_right")]


INPUTS = (
    '"0x3f", 1.5, {"text": "…"}; for a bitcast {"shape": [2], "bits": ["0x3f", 1.5]};'
    ' for a quantization {"x": [1.5], "scale": 0.5}'
)
SPELLINGS = {"input": INPUTS, "output": f'{INPUTS}; or {{"error": "…"}}'}


@dataclass
class Tally:
    """Counts lines by verdict; ``unanswered`` is for callers that want every input answered."""

    lines: int = 0
    malformed: int = 0
    verdicts: dict[str, int] = field(default_factory=dict)
    unanswered: UnansweredInputs | None = None

    @property
    def exit_code(self) -> int:
        """2 for a malformed line, 1 for a broken rule, else 0."""
        if self.malformed:
            return 2
        return 1 if self.verdicts.get("violates") or self.verdicts.get("deviates") else 0


def judge_stream(stream: IO[str], tally: Tally) -> Iterator[dict[str, Any]]:
    """Judge line by line; a malformed line becomes an error, and the rest is still judged."""
    for number, line in _lines(stream):
        tally.lines += 1
        try:
            if line is None:
                raise CastigateError(f"longer than {LONGEST_LINE} characters; the rest is skipped")
            recorded = _parsed(line)
            rules = _rules_of(recorded.case)
            judged = _judged(rules, recorded)
            if tally.unanswered is not None:
                tally.unanswered.remove(recorded.case, rules, recorded.input)
        except CastigateError as error:
            tally.malformed += 1
            yield {"error": f"line {number}: {error}", "line": number}
            continue
        verdict = judged["verdict"]
        tally.verdicts[verdict] = tally.verdicts.get(verdict, 0) + 1
        yield judged


def judge_line(line: str, rules: Rules) -> dict[str, Any]:
    """Judge one line by the ruling of its case; raise CastigateError if it is malformed."""
    return _judged(rules, _parsed(line))


def _lines(stream: IO[str]) -> Iterator[tuple[int, str | None]]:
    """Numbered lines that are not blank; ``None`` for one that is too long."""
    number = 0
    while line := stream.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE and not line.endswith("\n"):
            while (rest := stream.readline(LONGEST_LINE)) and not rest.endswith("\n"):
                pass
            yield number, None
        elif line.strip():
            yield number, line


def _judged(rules: Rules, recorded: RecordedLine) -> dict[str, Any]:
    """The line with its verdict; raises ``CastigateError`` for a malformed one."""
    if isinstance(rules, Case):
        return _judge_tensors(rules, recorded)
    if isinstance(rules, BitcastRuling):
        return _judge_bitcast(rules, recorded)
    given = datum(rules.source, recorded.input, "input")
    check_example_input(rules, given)
    allowed = expect_by_exact.allow(rules, given)
    branch = allowed.branch
    grade = _grade_output(rules, allowed, given, recorded.output)
    rule, clause, level = branch.rule, branch.clause, branch.level
    # An open input may raise an error; of a case that is open as a whole, an answer may be due.
    is_refusal = isinstance(recorded.output, ErrorDatum) and (grade != ALLOWED or rules.is_open)
    if grade == NOT_RECOMMENDED:
        level = "recommended"
    elif is_refusal and rules.answer_due:
        due = rules.answer_due
        rule, clause, level, grade = due.rule, due.clause, due.level, NOT_ALLOWED
    verdict = "conforms"
    if isinstance(branch.outcome, Anything) and grade == ALLOWED:
        verdict = "open"
    elif grade != ALLOWED:
        verdict = "violates" if level == "required" else "deviates"
    return {
        "case": recorded.case,
        "input": _as_json(recorded.input),
        "output": _as_json(recorded.output),
        **_patterns(recorded, rules),
        "verdict": verdict,
        "rule": rule,
        "level": level,
        "clause": clause,
        "allowed": allowed_list(rules, allowed, given, level),
    }


def _judge_bitcast(rules: BitcastRuling, recorded: RecordedLine) -> dict[str, Any]:
    bits = tensor(rules.source, recorded.input, "input", rules.shape)
    output = recorded.output
    answer = (
        None
        if isinstance(output, ErrorDatum)
        else tensor(rules.target, output, "output", any_byte=True)
    )
    return {
        "case": recorded.case,
        "input": _as_json(recorded.input),
        "output": _as_json(output),
        **_patterns(recorded, rules, rules.shape),
        **judge_bitcast(rules, bits, answer),
    }


def _judge_tensors(case: Case, recorded: RecordedLine) -> dict[str, Any]:
    tensors = tensors_given(case, recorded.input)
    output = recorded.output
    patterns: dict[str, Any] = {}
    given, returned = formats_given(case), formats_returned(case)
    if not are_full_patterns(given, recorded.input):
        patterns["input_pattern"] = tensors_in_words(given, tensors)
    answer = None
    if not isinstance(output, ErrorDatum):
        answer = tensors_returned(case, tensors["x"], output)
        if not are_full_patterns(returned, output):
            patterns["output_pattern"] = tensors_in_words(returned, answer)
    return {
        "case": recorded.case,
        "input": _as_json(recorded.input),
        "output": _as_json(output),
        **patterns,
        **judge_tensors(case, tensors, answer),
    }


def _patterns(
    recorded: RecordedLine, rules: Ruling | BitcastRuling, shape: Shape | None = None
) -> dict[str, Any]:
    """The patterns of values that the line does not spell as patterns."""
    found: dict[str, Any] = {}
    given, output = recorded.input, recorded.output
    if not is_full_pattern(rules.source, given):
        found["input_pattern"] = as_pattern(rules.source, given, "input", shape)
    if not is_full_pattern(rules.target, output) and not isinstance(output, ErrorDatum):
        found["output_pattern"] = as_pattern(rules.target, output, "output")
    return found


def _parsed(line: str) -> RecordedLine:
    recorded: RecordedLine | None = None
    try:
        recorded = RecordedLine.model_validate_json(line.encode(errors="surrogateescape"))
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
    if recorded is not None or detail["type"] != "json_invalid":
        try:
            # This decoder rejects some lines that pydantic accepts, and keeps the digits of
            # numbers.
            content = NUMBERS_AS_TEXT.decode(line)
            return recorded or RecordedLine.model_validate(content)
        except JsonError as error:
            raise CastigateError(f"the line {error}; write it once") from None
        except ValidationError as error:
            detail = error.errors(include_url=False)[0]
    where = str(detail["loc"][0]) if detail["loc"] else ""
    raise CastigateError(_advice(where, detail["type"], detail)) from None


def _advice(where: str, kind: str, detail: ErrorDetails) -> str:
    if kind == "json_invalid" and "hex escape" in detail["ctx"]["error"]:
        return "a text has half an escape, such as `\\ud800` alone; write it whole"
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
    shown = json_text(detail["input"])[:60]
    return f"`{where}` is {shown}; write {SPELLINGS[where]}"


def _as_json(given: OutputDatum) -> Any:
    # Strings first: checking for a pydantic model takes far longer.
    if isinstance(given, str) or not isinstance(given, BaseModel):
        return given
    return given.model_dump(by_alias=True, exclude_unset=True)


@cache
def _rules_of(name: str) -> Rules:
    """Return the ruling that judges lines of a case, or the case if it takes named tensors."""
    case = case_of_any_shape(name)
    if takes_named_tensors(case):
        return case
    return bitcast_ruling(case) if is_bitcast(case) else ruling(case)


def _grade_output(rules: Ruling, allowed: Allowed, given: int | str, output: OutputDatum) -> int:
    """The grade of an output, which may be an error."""
    answer = None if isinstance(output, ErrorDatum) else datum(rules.target, output, "output")
    return grade_answer(rules, allowed, given, answer)
