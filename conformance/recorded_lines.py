"""`castigate judge`: JSON lines with recorded answers in, the same lines with a verdict out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import IO, Annotated, Any

from pydantic import BaseModel, Field, ValidationError
from pydantic_core import ErrorDetails

from conformance.families import lines_of
from conformance.families.family import CaseLines
from conformance.families.recorded_tensors import element_words
from conformance.families.value_spelling import (
    INPUTS,
    InputDatum,
    JsonNumber,
    NamedTensors,
    OutputDatum,
    json_text,
)
from reports.case_patterns import ids_of
from specs.cases import Case
from specs.errors import CastigateError
from specs.json_source import JsonError, unique_members
from specs.model.strict_model import StrictModel
from specs.questions import case_of_any_shape

QUICK_SEED, QUICK_EXAMPLES = 0, 1000
"""The seed and the number of random inputs of the quick tier, where no option changes them."""
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


SPELLINGS = {"input": INPUTS, "output": f'{INPUTS}; or {{"error": "…"}}'}


class UnansweredInputs:
    """The quick tier's inputs that have no line yet, of every case that has at least one line."""

    def __init__(self) -> None:
        self._left: dict[str, dict[str, None]] = {}

    def remove(self, case_id: str, lines: CaseLines, given: InputDatum) -> None:
        """Remove the input ``given`` from the inputs of a case that have no line yet, if it is one.

        The first call for a case adds all its inputs of the quick tier; a case of a shape that no
        document lists has none. ``lines`` spells inputs of the case.
        """
        if case_id not in self._left:
            is_listed = case_id in ids_of(case_id.partition(":")[0])
            inputs = lines.listed(QUICK_SEED, QUICK_EXAMPLES) if is_listed else ()
            self._left[case_id] = dict.fromkeys(map(json_text, inputs))
        self._left[case_id].pop(json_text(lines.spelled(given)), None)

    def check(self) -> None:
        """Raise CastigateError if inputs have no line, with their number and the first of them."""
        left = [(case, given) for case, inputs in self._left.items() for given in inputs]
        if left:
            (case, given), cases = left[0], len({case for case, _ in left})
            inputs = f"{len(left)} input{'s' if len(left) > 1 else ''}"
            raise CastigateError(
                f"{inputs} of {cases} case{'s' if cases > 1 else ''} without a line, first"
                f" {case} {given[:100]}; castigate inputs --json CASE lists all inputs of a case"
            )


@dataclass
class LineTally:
    """Counts lines by verdict, and malformed ones.

    ``wrong_elements`` counts those of tensors with names, and ``first_wrong`` has the simplest of
    the first such tensors in words, with the number of its line.
    ``unanswered`` keeps the inputs that have no line; None if nobody needs them.
    """

    lines: int = 0
    malformed: int = 0
    verdicts: dict[str, int] = field(default_factory=dict)
    wrong_elements: int = 0
    first_wrong: str = ""
    unanswered: UnansweredInputs | None = None

    @property
    def exit_code(self) -> int:
        """The exit code of the command: 2 for a malformed line, 1 for a broken rule, else 0."""
        if self.malformed:
            return 2
        return 1 if self.verdicts.get("violates") or self.verdicts.get("deviates") else 0


def judge_stream(
    stream: IO[str], tally: LineTally, *, keeps_tensors: bool = True
) -> Iterator[dict[str, Any]]:
    """Yield each line as a dict with its ``verdict``; of a malformed line, ``error`` and ``line``.

    Without ``keeps_tensors``, a line about tensors with names lacks them, and those allowed.
    ``line`` is its number. Blank lines are skipped. ``tally`` counts the lines and their verdicts.
    If it has ``unanswered``, the input of each judged line is removed from there.
    """
    for number, line in _numbered(stream):
        tally.lines += 1
        try:
            if line is None:
                raise CastigateError(
                    f"longer than {LONGEST_LINE:,} characters; the rest is skipped; record large"
                    " tensors in a file of arrays: castigate judge FILE.npz --case CASE"
                )
            recorded = _parsed(line)
            lines = _lines_named(recorded.case)
            judged = _judged(lines, recorded)
            if tally.unanswered is not None:
                tally.unanswered.remove(recorded.case, lines, recorded.input)
        except CastigateError as error:
            tally.malformed += 1
            yield {"error": f"line {number}: {error}", "line": number}
            continue
        verdict = judged["verdict"]
        tally.verdicts[verdict] = tally.verdicts.get(verdict, 0) + 1
        if isinstance(recorded.input, NamedTensors):
            _count_elements(tally, number, recorded.case, judged)
            if not keeps_tensors:
                judged = {name: each for name, each in judged.items() if name not in TENSOR_KEYS}
        yield judged


TENSOR_KEYS = ("input", "output", "input_pattern", "output_pattern", "allowed")
"""The keys of a line that hold whole tensors, if these have names."""


def _count_elements(tally: LineTally, number: int, case: str, judged: Mapping[str, Any]) -> None:
    """Count a line's wrong elements, and put the first wrong one into words."""
    tally.wrong_elements += judged.get("wrong", 0)
    if "element" in judged and not tally.first_wrong:
        shown = element_words(case_of_any_shape(case), judged["element"])
        tally.first_wrong = f"line {number}: {shown}"


def judge_line(line: str, case: Case) -> dict[str, Any]:
    """Return a line with its verdict for ``case``; raise CastigateError if it is malformed.

    The case that the line itself names is not looked at.
    """
    return _judged(lines_of(case), _parsed(line))


def _numbered(stream: IO[str]) -> Iterator[tuple[int, str | None]]:
    """Yield the number and text of each line that is not blank; the text is None if too long."""
    number = 0
    while line := stream.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE and not line.endswith("\n"):
            while (rest := stream.readline(LONGEST_LINE)) and not rest.endswith("\n"):
                pass
            yield number, None
        elif line.strip():
            yield number, line


def _judged(lines: CaseLines, recorded: RecordedLine) -> dict[str, Any]:
    """Return a line as a dict, with the keys of its verdict; raise CastigateError if malformed."""
    return {
        "case": recorded.case,
        "input": _as_json(recorded.input),
        "output": _as_json(recorded.output),
        **lines.judge(recorded.input, recorded.output),
    }


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
def _lines_named(name: str) -> CaseLines:
    return lines_of(case_of_any_shape(name))
