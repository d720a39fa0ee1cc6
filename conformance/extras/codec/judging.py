"""Judges the answers of a codec as a cast's are judged, and finds what explains the wrong ones.

Neither a codec's answers nor those allowed change often: both are runs of consecutive inputs. So
all 2^32 answers are compared by looking where one of the two changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.extras.codec.answers import CodecAnswers
from conformance.extras.codec.ways import grades_of
from conformance.families.cast.breakpoints import distinct
from conformance.families.cast.quick_inputs import quick_inputs
from oracles.reference.expect_by_staircase import open_inputs
from oracles.reference.staircase import Staircase, staircase
from reports.findings.find import find_findings
from reports.findings.finding import Finding
from reports.findings.judged_cells import cell_of
from reports.grading.allowed_answers import rule_groups
from reports.grading.divergences import Failures, find_failures, wrong_values
from reports.grading.failure_runs import Runs
from reports.grading.staircase_grades import grade_by_staircase
from reports.judgement import Judgement, verdict_of
from reports.problems import WrongValues
from specs.branches import Ruling
from specs.cases import Case
from specs.ruling import ruling

BACKEND = "codec"


@dataclass(frozen=True)
class JudgedCodec:
    """The judgement of a codec, its findings, and the input classes that are open.

    The yardstick ``small-floats`` allows any answer to inputs of these classes.
    """

    judgement: Judgement
    findings: tuple[Finding, ...]
    open_classes: tuple[str, ...]


def judge_codec(case: Case, answers: CodecAnswers) -> JudgedCodec:
    """Judge a codec's answers by its case, and find the causes of the wrong ones."""
    rules = ruling(case)
    if answers.is_whole and rules.target.is_numeric:
        stairs = staircase(rules)
        problems = [*_wrong_runs(stairs, answers)]
        opened = open_inputs(stairs, 0, 1 << rules.source.bits)
    else:
        grades, branches = grades_of(rules, answers.inputs, answers.codes)
        found = find_failures(rules, answers.inputs, branches, answers.codes, grades)
        problems = [wrong_values(rules, each) for each, _ in found]
        opened = int(np.isin(branches, rules.open_branches).sum())
    judgement = Judgement(
        case.id,
        BACKEND,
        verdict_of(problems),
        tuple(problems),
        inputs=answers.asked,
        open_inputs=opened,
        reaches_ends=answers.is_whole,
    )
    asked = _asked(rules, answers, problems)
    stored = {"asked": asked, "answers": answers.of(asked)}
    cell = cell_of(case, judgement, ("asked", "answers"))
    findings = find_findings([cell], stored.__getitem__).get(BACKEND, ())
    return JudgedCodec(judgement, findings, open_classes(rules))


def open_classes(rules: Ruling) -> tuple[str, ...]:
    """Return the names of the input classes for which a ruling allows any answer."""
    return tuple(rules.branches[index].input_class for index in rules.open_branches)


def _asked(rules: Ruling, answers: CodecAnswers, problems: list[WrongValues]) -> NDArray[Any]:
    """Return the inputs on which causes are searched for.

    Of a sample, and where answers are texts, these are all that were asked. Otherwise they are the
    selected ones of the quick tier, the simplest input of each problem, and the ends and the
    simplest input of each listed run of wrong answers.
    """
    source = rules.source
    if not answers.is_whole or not rules.target.is_numeric:
        return answers.inputs
    parts = [quick_inputs(source.name, rules.target.name, 0, 0).astype(np.uint64)]
    for each in problems:
        listed = each.runs.listed
        parts += [listed.first, listed.last, _simplest(rules, listed.first, listed.last)]
        parts.append(np.array([each.smallest], np.uint64))
    return distinct(np.concatenate(parts)).astype(source.storage)


def step_starts(stairs: Staircase) -> NDArray[np.uint64]:
    """Return the inputs at which the allowed answers of a staircase may change."""
    parts = []
    for number, stretch in enumerate(stairs.stretches):
        first, last, shift = (int(stretch[name]) for name in ("first", "last", "shift"))
        steps = stairs.steps_of(number)
        periods = np.arange(((last - first) >> shift) + 1, dtype=np.uint64) << np.uint64(shift)
        if steps.size == 1 and not steps["rise"][0] and not steps["other_rise"][0]:
            periods = periods[:1]
        starts = (np.uint64(first) + periods[:, None] + steps["offset"][None, :]).ravel()
        parts.append(starts[starts <= np.uint64(last)])
    return np.concatenate(parts)


def _wrong_runs(stairs: Staircase, answers: CodecAnswers) -> Iterator[WrongValues]:
    """Yield the wrong values of each broken rule; ``answers`` must be those to all inputs."""
    rules = stairs.ruling
    firsts = distinct(np.concatenate([step_starts(stairs), answers.inputs.astype(np.uint64)]))
    codes = answers.of(firsts)
    lasts = np.append(firsts[1:] - np.uint64(1), np.uint64(rules.source.mask))
    grades, branches = grade_by_staircase(stairs, firsts, codes)
    groups = rule_groups(rules)
    broken = groups.of(grades, branches)
    for group in np.unique(broken[broken != 0]).tolist():
        here = np.flatnonzero(broken == group)
        count = int((lasts[here] - firsts[here]).sum()) + here.size
        runs = _joined(firsts[here], lasts[here], codes[here], branches[here])
        every = _simplest(rules, firsts[here], lasts[here])
        smallest = _simplest_of(rules, every)
        answer = int(answers.of(np.array([smallest], np.uint64))[0])
        yield wrong_values(rules, Failures(groups.keys[group - 1], count, runs, smallest, answer))


def _joined(
    first: NDArray[np.uint64],
    last: NDArray[np.uint64],
    answer: NDArray[Any],
    branch: NDArray[np.uint8],
) -> Runs:
    """Join neighboring ranges of inputs of one branch into runs; return their ``Runs.listed``.

    Range i is from ``first[i]`` to ``last[i]``, and all its inputs have the answer ``answer[i]``.
    """
    codes = answer.astype(np.uint64)
    begins = np.append(True, (first[1:] != last[:-1] + np.uint64(1)) | (branch[1:] != branch[:-1]))
    start = np.flatnonzero(begins)
    end = np.append(start[1:], first.size) - 1
    is_long = first[start] < last[start]
    # The second answer is that of the first piece, if it has two inputs, or of the next one.
    second = np.where(is_long, codes[start], codes[np.minimum(start + 1, end)])
    slope = (second - codes[start]).view(np.int64)
    rises = np.append((codes[1:] - codes[:-1]).view(np.int64), 0)
    is_single = first == last
    turns = np.zeros(first.size + 1, np.intp)
    owner = np.cumsum(begins) - 1
    turns[1:] = np.cumsum(~is_single | (rises != slope[owner]))
    straight = (start == end) | (turns[end] == turns[start])
    # This checksum tells runs of one codec apart; that of a stored run hashes each input.
    digest = blake2b(first.tobytes() + last.tobytes() + codes.tobytes(), digest_size=8).digest()
    checksum = int.from_bytes(digest, "little")
    columns = first[start], last[end], codes[start], codes[end], slope, straight
    return Runs(start.size, *columns, checksum=checksum).listed


def _simplest(
    rules: Ruling, first: NDArray[np.uint64], last: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    """Return the simplest pattern of each range from ``first[i]`` to ``last[i]``.

    It has the fewest bits set, and of several such the smallest magnitude.
    """
    best = first.copy()
    for bit in range(rules.source.bits):
        rounded = ((first >> np.uint64(bit)) + np.uint64(1)) << np.uint64(bit)
        better = (rounded <= last) & (_keys(rules, rounded) < _keys(rules, best))
        best[better] = rounded[better]
    return best


def _simplest_of(rules: Ruling, codes: NDArray[np.uint64]) -> int:
    return int(codes[np.argmin(_keys(rules, codes))])


def _keys(rules: Ruling, codes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return keys that sort patterns of at most 32 bits by simplicity; see ``simplicity``."""
    sign = np.uint64(rules.source.sign_bit)
    negative = np.where(codes & sign, np.uint64(1), np.uint64(0)) if sign else np.uint64(0)
    bits = np.bitwise_count(codes).astype(np.uint64)
    keys: NDArray[np.uint64] = (
        (bits << np.uint64(33)) | ((codes & ~sign) << np.uint64(1)) | negative
    )
    return keys
