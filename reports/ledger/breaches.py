"""Digests a failing judgement, so that a ledger can compare all that is wrong.

Whatever ``_hashed`` returns must stay the same, the texts of faults included, or every ledger
changes (``frozen_text.py``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from reports.judgement import Judgement
from reports.problem_words import joined_words, words
from reports.problems import BrokenRule, Died, Refused, WrongTensor, WrongValues
from reports.verdicts import BREAKS_RULE, NO_ANSWER, VERDICT_OF_LEVEL
from specs.cases import Case

DIGITS = 16
"""Hex digits of a region's digest."""
DECIMAL = re.compile(r"(?<=[0-9a-f]) \([^()]*\)")
"""The value behind a pattern, which is not hashed: its notation may change."""
VARIES = "varies"
"""Stands for any number of inputs and any digest, where answers differ from run to run."""


@dataclass(frozen=True)
class Breach:
    """How a case fails: by required rules, by recommended ones, or because no answer came.

    ``region`` is a digest of everything that is wrong; ``inputs`` counts the wrong values of casts.
    A breach that varies is never found by a run: a person lists it, for answers that always differ.
    """

    verdict: str
    inputs: int
    region: str

    def __str__(self) -> str:
        if self.region == VARIES:
            return f"{self.verdict} {VARIES}"
        return f"{self.verdict} {self.inputs} {self.region}"


def parse_breach(text: str) -> Breach:
    """Parse the text that ``str`` gives for a breach."""
    verdict, *inputs, region = text.split()
    return Breach(verdict, int(inputs[0]) if inputs else 0, region)


def breaches(case: Case, judgement: Judgement) -> tuple[Breach, ...]:
    """The breaches of a judgement, at most one per level of rules; empty if it does not fail.

    The region of a check on a dtype pair is a digest of the rule alone, because the position at
    which an answer changes varies with the machine.
    """
    if judgement.verdict in NO_ANSWER:
        return (_breach_without_answer(case, judgement),)
    if judgement.verdict not in BREAKS_RULE:
        return ()
    by_verdict: dict[str, list[BrokenRule]] = {}
    for broken in judgement.broken_rules:
        by_verdict.setdefault(VERDICT_OF_LEVEL[broken.level], []).append(broken)
    return tuple(
        Breach(
            verdict,
            sum(each.count for each in parts if isinstance(each, WrongValues)),
            _digest([verdict, *_hashed(case, parts, bool(judgement.check))]),
        )
        for verdict, parts in by_verdict.items()
    )


def _hashed(case: Case, parts: list[BrokenRule], is_check: bool) -> Iterator[Any]:
    for part in parts:
        match part:
            case WrongValues():
                yield [part.rule, part.count, part.runs.checksum]
            case _ if is_check:
                yield part.rule
            case WrongTensor():
                yield [part.rule, "answer", DECIMAL.sub("", frozen_text(case, words(part)))]
            case Refused(kind=kind):
                yield [part.rule, kind, frozen_text(case, words(part))]
            case _:
                yield [part.rule, "answer", frozen_text(case, words(part))]


def _breach_without_answer(case: Case, judgement: Judgement) -> Breach:
    # How a process crashed is not reproducible; of an error, its class is.
    constant = ""
    if judgement.verdict == "error":
        # Nor is it reproducible that a process died first and then answered.
        said = joined_words(each for each in judgement.problems if not isinstance(each, Died))
        constant = frozen_text(case, said, without_numbers=True)
    return Breach(judgement.verdict, 0, _digest([judgement.verdict, constant]))


def _digest(content: list[Any]) -> str:
    return sha256(json.dumps(content).encode()).hexdigest()[:DIGITS]


ERROR_CLASS = re.compile(r"(?:^|: )([A-Za-z_]\w*): ")
"""The class of an error within a sentence."""
NUMBER = re.compile(r"\b(?:0x[0-9a-f]+|\d+)\b")


def frozen_text(case: Case, sentence: str, *, without_numbers: bool = False) -> str:
    """Reduce a sentence to its constant part: an error's class, or our words without dtypes."""
    error = ERROR_CLASS.search(sentence)
    roles = {case.target: "target", case.source: "source"}
    if error is not None:
        text = error[1]
    else:
        text = re.sub(r"\w+", lambda word: roles.get(word[0], word[0]), sentence)
    return NUMBER.sub("0", text) if without_numbers else text
