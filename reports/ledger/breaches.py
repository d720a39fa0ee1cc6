"""What a failing judgement breaks: one breach per rule, its region told by a digest."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reports.behaviors.closed_forms import are_numbers
from reports.behaviors.explanation import explained
from reports.behaviors.tally import look, question
from reports.counterexample.drawing import pattern
from reports.diff.failure_runs import Runs
from reports.diff.judgement import Divergence, Fault, Judgement
from reports.diff.kept_answers import Answered
from specs.cases import Case
from specs.formats import format_named
from specs.ruling import ruling


def behaviour_of(case: Case, answered: Answered | None, divergence: Divergence) -> str | None:
    """The form that gives every wrong answer, if one does and the answers are kept."""
    rules = ruling(case)
    if answered is None or not are_numbers(rules.source, rules.target):
        return None
    inputs, answers = answered.inputs.values, answered.answers.values
    if inputs.dtype.kind != "u" or divergence.runs.total > divergence.runs.first.size:
        return None
    wrong = _within(divergence.runs, inputs)
    asked = question(rules.source, rules.target, rules.rounding)
    lines = explained(look(asked, inputs[wrong], answers[wrong]))
    return lines[0].form if len(lines) == 1 else None


def _within(runs: Runs, inputs: NDArray[np.unsignedinteger]) -> NDArray[np.bool_]:
    """Which inputs lie in one of the runs."""
    nearest = np.searchsorted(runs.first.astype(np.uint64), inputs.astype(np.uint64), "right") - 1
    inside: NDArray[np.bool_] = inputs <= runs.last.astype(np.uint64)[nearest]
    return (nearest >= 0) & inside


DIGITS = 16
"""Hex digits of a region's digest that are kept."""
LONGEST = 120
"""Characters of an example."""
VERDICTS = {"required": "violates", "recommended": "deviates"}
"""What breaking a rule of a level is called."""
WITHOUT_RULE = ("error", "crashed")
"""Verdicts on answers that did not come: no rule tells of them."""
KIND = re.compile(r"(?:^|: )([A-Za-z_]\w*): ")
"""The class of an error within a message."""
NUMBER = re.compile(r"\b(?:0x[0-9a-f]+|\d+)\b")
FOLDERS = re.compile(r"(?<![\w:/\\])(?:[A-Za-z]:)?(?:[/\\][\w.+-]+)*[/\\](?=[\w.+-]+)")


@dataclass(frozen=True)
class Breach:
    """What a backend does wrong in a case: by which rule, where, and an example.

    ``region`` is a digest of all that is wrong by the rule; ``inputs`` counts wrong values.
    """

    verdict: str
    rule: str
    inputs: int
    region: str
    example: str
    behaviour: str | None = None

    @property
    def told(self) -> str:
        """The rule, or the verdict where no rule tells of it."""
        return self.rule or self.verdict

    @property
    def words(self) -> dict[str, Any]:
        """The breach in plain words, to be sent to another process."""
        return asdict(self)


def breaches(
    case: Case, judgement: Judgement, of_pair: bool = False, explains: bool = False
) -> tuple[Breach, ...]:
    """The breaches of a failing judgement; none of one that does not fail, or is open.

    ``explains`` looks for a behaviour that gives the wrong answers, which takes a while.
    Of a judgement on a pair only its rule tells: where an answer changes varies with the machine.
    """
    if judgement.verdict in WITHOUT_RULE:
        return (_without_answer(case, judgement),)
    if judgement.verdict not in VERDICTS.values():
        return ()
    parts: dict[tuple[str, str], list[Divergence | Fault]] = {}
    found: tuple[Divergence | Fault, ...] = (*judgement.divergences, *judgement.faults)
    for part in found:
        parts.setdefault((VERDICTS[part.level], part.rule), []).append(part)
    made = tuple(_breach(case, *key, same) for key, same in parts.items())
    if of_pair:
        return tuple(replace(each, region=_digest([each.verdict, each.rule])) for each in made)
    return tuple(_explained(case, judgement, each) for each in made) if explains else made


def _explained(case: Case, judgement: Judgement, breach: Breach) -> Breach:
    """The breach with the behaviour of its only divergence, if there is one."""
    of_rule = [
        each
        for each in judgement.divergences
        if (VERDICTS[each.level], each.rule) == (breach.verdict, breach.rule)
    ]
    if len(of_rule) != 1:
        return breach
    return replace(breach, behaviour=behaviour_of(case, judgement.answered, of_rule[0]))


def _without_answer(case: Case, judgement: Judgement) -> Breach:
    said = NUMBER.sub("0", _said(case, judgement.message)) if judgement.verdict == "error" else ""
    region = _digest([[judgement.verdict, said]])
    return Breach(judgement.verdict, "", 0, region, example(judgement.message))


def _breach(case: Case, verdict: str, rule: str, parts: list[Divergence | Fault]) -> Breach:
    words: list[Any] = [[verdict, rule]]
    inputs, first = 0, ""
    for part in parts:
        match part:
            case Divergence():
                words += _region(part)
                inputs += part.count
                said = _example(case, part)
            case Fault():
                words.append([part.kind, _said(case, part.message)])
                said = part.message
        first = first or said
    return Breach(verdict, rule, inputs, _digest(words), example(first))


def _region(divergence: Divergence) -> Iterator[Any]:
    """The runs of wrong answers, column by column."""
    runs = divergence.runs
    yield [divergence.rule, divergence.level, divergence.count, runs.total]
    yield from (_plain(column) for column in runs.columns)


def _plain(column: NDArray[Any]) -> list[Any]:
    plain: list[Any] = np.asarray(column).tolist()
    return plain


def _digest(words: list[Any]) -> str:
    return sha256(json.dumps(words).encode()).hexdigest()[:DIGITS]


def _said(case: Case, message: str) -> str:
    """What stays of a message that may vary: an error's class, or our own words of the pair."""
    kind = KIND.search(message)
    if kind is not None:
        return kind[1]
    named = {case.target: "target", case.source: "source"}
    return re.sub(r"\w+", lambda word: named.get(word[0], word[0]), message)


def _example(case: Case, divergence: Divergence) -> str:
    source, target = format_named(case.source), format_named(case.target)
    given, answer = pattern(source, divergence.smallest), pattern(target, divergence.answer)
    return f"{given} gives {answer}, not {' or '.join(divergence.allowed)}"


def example(text: str) -> str:
    """A text short enough to read, without folders: they are of one machine."""
    plain = " ".join(FOLDERS.sub("", text).encode("utf-8", "backslashreplace").decode().split())
    return plain if len(plain) <= LONGEST else f"{plain[: LONGEST - 1]}…"
