"""The earlier run with which a gate compares, to tell known divergences from new ones.

A gate draws other inputs than its baseline was asked, so that no backend can know them. On the
inputs of both runs the wrong answers must be the same. On further inputs a wrong answer is known if
it continues what the baseline shows: it is beside an input that failed there, or a mechanism gives
it that predicts where the baseline fails.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracles.protocol import Mask
from reports.findings.causes import REJECTED
from reports.findings.cells import (
    Cell,
    Divergence,
    FailingInputs,
    StoredArrays,
    StoredSamples,
    WrongAnswers,
)
from reports.findings.mechanism_search import MechanismSearch, Reach
from reports.findings.wrong import GivenAnswers
from reports.gate.fault_comparison import fails_alike
from specs.formats import format_named

AnswerByInput = Mapping[int | str, int | str]
"""Wrong answers, by their inputs."""


@dataclass(frozen=True)
class EarlierRun:
    """The cells of an earlier run, with which a gate compares those of a new run.

    ``cells`` has them by name. ``before`` reads an array that the earlier run stores under a
    digest, and ``now`` one of the new run.
    """

    cells: Mapping[str, Cell]
    before: StoredArrays
    now: StoredArrays

    def has(self, cell: Cell, broken: Divergence | None) -> bool:
        """Return whether the earlier run already has a failure of ``cell``, a cell of the new run.

        ``broken`` is a rule that the cell breaks; the earlier run must break it by the same faults
        or wrong answers, or, if it was asked other inputs, by wrong answers that the new ones
        continue. If the rule requires errors, any answers to further inputs continue the earlier
        ones. If ``broken`` is None, an answer is missing from the cell, and must be missing from
        the earlier one for the same reason.
        """
        before = self.cells.get(cell.name)
        if before is None:
            return False
        if broken is None or broken.smallest is None:
            return fails_alike(before, cell, broken)
        old = next((each for each in before.broken if each.key == broken.key), None)
        if old is None:
            return False
        if before.failure_by(old).covers(cell.failure_by(broken)):
            return True
        if old.failing is None or broken.failing is None:
            return False
        # Equal inputs with other wrong answers: the backend has changed.
        if before.asked is None or cell.asked is None or before.asked == cell.asked:
            return False
        both = (old.failing, broken.failing)
        ends = [int(each.runs.last[-1]) for each in both if not each.is_complete]
        wrong_before = _wrong_answers(before, old.failing, self.before, ends)
        wrong_now = _wrong_answers(cell, broken.failing, self.now, ends)
        asked_before = set(self.before(before.asked).tolist())
        asked_now = set(self.now(cell.asked).tolist())
        if not (
            _agree(wrong_now, wrong_before, asked_before)
            and _agree(wrong_before, wrong_now, asked_now)
        ):
            return False
        if broken.allowed == old.allowed == REJECTED:
            return True
        further = {each: wrong_now[each] for each in wrong_now.keys() - wrong_before.keys()}
        return not further or self._continues(before, old, old.failing, wrong_before, further)

    @cached_property
    def _search(self) -> MechanismSearch:
        return MechanismSearch(self.before)

    def _continues(
        self,
        before: Cell,
        old: Divergence,
        failing: FailingInputs,
        wrong_before: AnswerByInput,
        further: AnswerByInput,
    ) -> bool:
        """Return whether the wrong answers in ``further`` continue those of an earlier cell.

        Each must equal the wrong answer to an input next to it, or come from a mechanism that
        explains wrong answers of the earlier run. For an input that is next to none that failed
        there, the mechanism must hold everywhere, or, for texts, tell ``where``. ``old`` is the
        broken rule of the cell ``before``, ``failing`` its failing inputs, and ``wrong_before`` its
        wrong answers.
        """
        source = format_named(before.source)
        is_text = "text" in (source.kind, format_named(before.target).kind)
        inputs = _column(further, source.storage)
        answers = _column(further.values(), format_named(before.target).storage)
        assert before.asked is not None
        if source.kind == "text":
            is_beside = is_same = np.zeros(inputs.shape, bool)
        else:
            is_beside, is_same = _beside(self.before(before.asked), wrong_before, further)
        if is_same.all():
            return True
        known = is_same
        wrong = WrongAnswers(before, old, failing, StoredSamples(self.before))
        given = GivenAnswers(before.as_case, inputs, answers)
        for mechanism, claim in self._search.claims(wrong):
            placed = claim.placed
            is_everywhere = placed is not None and placed.forecast.reach is Reach.EVERYWHERE
            # A mechanism does not predict where a conversion from or to texts fails.
            predicts = is_everywhere or (is_text and mechanism.tells == "where")
            where = np.ones_like(is_beside) if predicts else is_beside
            known = known | (where & mechanism.explains(given, old.level))
        return bool(known.all())


def _wrong_answers(
    cell: Cell, failing: FailingInputs, stored: StoredArrays, ends: Sequence[int]
) -> AnswerByInput:
    """Return the wrong answers of a cell that its run holds, by input.

    These are the stored answers to failing inputs. Of a run of inputs without stored answers, they
    are those at its two ends. Inputs above one of ``ends`` are left out: one of the two runs does
    not list failures there.
    """
    asked, answers = (stored(each) if each else None for each in (cell.asked, cell.answers))
    samples = failing.samples(asked, answers)
    return {
        given: answer
        for given, answer in zip(samples.inputs.tolist(), samples.answers.tolist(), strict=True)
        if all(given <= end for end in ends)
    }


def _agree(some: AnswerByInput, others: AnswerByInput, asked: set[int | str]) -> bool:
    """Return whether ``others`` repeats each wrong answer of ``some`` to an input of both runs.

    ``asked`` has the inputs of the run of ``others``.
    """
    shared = some.keys() & (asked | others.keys())
    return all(others.get(each) == some[each] for each in shared)


def _column(data: Any, storage: Any) -> NDArray[Any]:
    column = np.empty(len(data), storage)
    column[:] = list(data)
    return column


def _beside(asked: NDArray[Any], wrong: AnswerByInput, further: AnswerByInput) -> tuple[Mask, Mask]:
    """Return two masks of the inputs in ``further``: next to a failed input, and with its answer.

    ``asked`` and ``wrong`` are the inputs and the wrong answers of the earlier run. Two inputs are
    next to each other if that run has none between them.
    """
    known = np.union1d(asked.astype(np.uint64), _column(wrong, np.uint64))
    inputs, answers = _column(further, np.uint64), _column(further.values(), object)
    places = np.searchsorted(known, inputs)
    is_beside, is_same = np.zeros(inputs.shape, bool), np.zeros(inputs.shape, bool)
    for at in (places - 1, places):
        nearest = known[np.clip(at, 0, known.size - 1)].tolist()
        inside = (at >= 0) & (at < known.size)
        is_beside |= inside & np.array([each in wrong for each in nearest])
        there = _column([wrong.get(each) for each in nearest], object)
        is_same |= inside & (there == answers)
    return is_beside, is_same
