"""Converts a failing judgement into the breaches that a ledger lists, one per rule.

Ledgers store the digests of regions. Whatever ``_digest`` hashes must stay the same, the texts of
faults included, or every ledger changes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reports.behaviors.closed_forms import has_behaviors
from reports.behaviors.explanation import explain
from reports.behaviors.tally import behavior_search, tally_answers
from reports.counterexample.drawing import datum_text
from reports.diff.answer_arrays import InputsAndAnswers
from reports.diff.failure_runs import Runs
from reports.diff.judgement import Divergence, Fault, Judgement
from reports.diff.verdicts import BREAKS_RULE, NO_ANSWER, VERDICT_OF_LEVEL
from specs.cases import Case
from specs.formats import format_named
from specs.ruling import ruling

DIGITS = 16
"""Hex digits of a region's digest."""
MAX_EXAMPLE = 120
"""Characters of an example."""
ERROR_CLASS = re.compile(r"(?:^|: )([A-Za-z_]\w*): ")
"""The class of an error within a message."""
NUMBER = re.compile(r"\b(?:0x[0-9a-f]+|\d+)\b")
FOLDERS = re.compile(r"(?<![\w:/\\])(?:[A-Za-z]:)?(?:[/\\][\w.+-]+)*[/\\](?=[\w.+-]+)")


@dataclass(frozen=True)
class Breach:
    """A rule that a backend breaks in a case, or an answer that did not come; with an example.

    ``region`` is a digest of everything that is wrong under the rule, ``inputs`` the number of
    wrong values. The field names are serialized between processes.
    """

    verdict: str
    rule: str
    inputs: int
    region: str
    example: str
    behaviour: str | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Verdict and rule: a judgement has at most one breach per key."""
        return self.verdict, self.rule

    @property
    def name(self) -> str:
        """The rule, or the verdict if no answer came and so no rule was broken."""
        return self.rule or self.verdict

    @property
    def words(self) -> dict[str, Any]:
        """The fields as plain data, to be sent to another process."""
        return asdict(self)


def breaches(case: Case, judgement: Judgement, explains: bool = False) -> tuple[Breach, ...]:
    """The breaches of a judgement; none of one that does not fail.

    ``explains`` also searches for a behavior that gives the wrong answers, which takes a while.
    The region of a check on a dtype pair is a digest of the rule alone, because the position at
    which an answer changes varies with the machine.
    """
    if judgement.verdict in NO_ANSWER:
        return (_breach_without_answer(case, judgement),)
    if judgement.verdict not in BREAKS_RULE:
        return ()
    by_key: dict[tuple[str, str], list[Divergence | Fault]] = {}
    for broken in judgement.broken_rules:
        by_key.setdefault((VERDICT_OF_LEVEL[broken.level], broken.rule), []).append(broken)
    found = tuple(_breach(case, *key, parts) for key, parts in by_key.items())
    if judgement.check:
        return tuple(replace(each, region=_digest([each.verdict, each.rule])) for each in found)
    return tuple(_with_behavior(case, judgement, each) for each in found) if explains else found


def _with_behavior(case: Case, judgement: Judgement, breach: Breach) -> Breach:
    """The breach with the behavior that explains it, if it has only one divergence."""
    of_rule = [
        each
        for each in judgement.divergences
        if (VERDICT_OF_LEVEL[each.level], each.rule) == breach.key
    ]
    if len(of_rule) != 1:
        return breach
    return replace(breach, behaviour=find_behavior(case, judgement.answered, of_rule[0]))


def find_behavior(
    case: Case, answered: InputsAndAnswers | None, divergence: Divergence
) -> str | None:
    """The name of the behavior that gives every wrong answer; None if none does, or if unknown.

    It is unknown where the answers are not stored or where not all runs are.
    """
    rules = ruling(case)
    if answered is None or not has_behaviors(rules.source, rules.target):
        return None
    inputs, answers = answered.inputs.values, answered.answers.values
    if inputs.dtype.kind != "u" or divergence.runs.total > divergence.runs.first.size:
        return None
    wrong = _is_within(divergence.runs, inputs)
    search = behavior_search(rules.source, rules.target, rules.rounding)
    explanations = explain(tally_answers(search, inputs[wrong], answers[wrong]))
    return explanations[0].behavior if len(explanations) == 1 else None


def _is_within(runs: Runs, inputs: NDArray[np.unsignedinteger]) -> NDArray[np.bool_]:
    """Which inputs lie in one of the runs."""
    nearest = np.searchsorted(runs.first.astype(np.uint64), inputs.astype(np.uint64), "right") - 1
    inside: NDArray[np.bool_] = inputs <= runs.last.astype(np.uint64)[nearest]
    return (nearest >= 0) & inside


def _breach_without_answer(case: Case, judgement: Judgement) -> Breach:
    # How a process crashed is not reproducible; of an error, its class is.
    constant = ""
    if judgement.verdict == "error":
        constant = NUMBER.sub("0", _constant_text(case, judgement.message))
    region = _digest([[judgement.verdict, constant]])
    return Breach(judgement.verdict, "", 0, region, shorten_example(judgement.message))


def _breach(case: Case, verdict: str, rule: str, parts: list[Divergence | Fault]) -> Breach:
    """The breach of one rule, from all divergences and faults that break it."""
    hashed: list[Any] = [[verdict, rule]]
    for part in parts:
        match part:
            case Divergence():
                hashed += _region(part)
            case Fault():
                hashed.append([part.kind, _constant_text(case, part.message)])
    examples = (_example(case, part) for part in parts)
    first = next(filter(None, examples), "")
    inputs = sum(part.count for part in parts)
    return Breach(verdict, rule, inputs, _digest(hashed), shorten_example(first))


def _region(divergence: Divergence) -> Iterator[Any]:
    """What is wrong, every input with its answer."""
    yield [divergence.rule, divergence.level, divergence.count, divergence.runs.checksum]


def _digest(content: list[Any]) -> str:
    return sha256(json.dumps(content).encode()).hexdigest()[:DIGITS]


def _constant_text(case: Case, message: str) -> str:
    """Reduce a message to its constant part: an error's class, or our text without dtypes."""
    error = ERROR_CLASS.search(message)
    if error is not None:
        return error[1]
    roles = {case.target: "target", case.source: "source"}
    return re.sub(r"\w+", lambda word: roles.get(word[0], word[0]), message)


def _example(case: Case, part: Divergence | Fault) -> str:
    if isinstance(part, Fault):
        return part.message
    source, target = format_named(case.source), format_named(case.target)
    given, answer = datum_text(source, part.smallest), datum_text(target, part.answer)
    return f"{given} gives {answer}, not {' or '.join(part.allowed)}"


def shorten_example(text: str) -> str:
    """A text cut to ``MAX_EXAMPLE`` characters, without the folders of this machine."""
    plain = " ".join(FOLDERS.sub("", text).encode("utf-8", "backslashreplace").decode().split())
    return plain if len(plain) <= MAX_EXAMPLE else f"{plain[: MAX_EXAMPLE - 1]}…"
