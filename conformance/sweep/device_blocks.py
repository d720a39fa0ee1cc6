"""Blocks of a sweep whose inputs are made, and whose answers are checked, on a backend's device."""

from __future__ import annotations

from typing import Any

import numpy as np

from oracles.backend.replies import Answered, attempt
from oracles.protocol import Bits, DeviceSwept, Oracle, Swept, WithDeviceSweep
from oracles.reference.sweep_inputs import Dense, InputSequence
from reports.grading.chunk_check_torch import DeviceCheck
from reports.grading.chunk_table import table
from specs.branches import Ruling
from specs.cases import Case
from specs.formats import format_named

BLOCK = 1 << 26
"""Inputs of a block, enough for the host's work per block to take no share of the time."""


class DeviceBlocks:
    """Requests one block of inputs after another, and keeps its answers on the device."""

    def __init__(self, call: DeviceSwept, case: Case) -> None:
        self._call = call
        self._storage = np.dtype(format_named(case.target).storage)
        self._checks: dict[Ruling, DeviceCheck] = {}
        self._first = 0
        self._answers: Any = None

    def ask(self, first: int, count: int) -> bool:
        """Request ``count`` inputs from ``first`` on; return whether all answers have come."""

        def checked() -> Any:
            answers = self._call(first, count)
            if tuple(answers.shape) != (count,) or answers.itemsize != self._storage.itemsize:
                raise ValueError("the answers on the device have another shape or storage")
            return answers

        match attempt(checked):
            case Answered(answers):
                self._first, self._answers = first, answers
                return True
            case _:
                return False

    def all_right(self, rules: Ruling) -> bool:
        """Whether a ruling certainly allows all of the last answers; False if the check fails."""
        if rules not in self._checks:
            self._checks[rules] = DeviceCheck(table(rules))
        match attempt(lambda: self._checks[rules].all_right(self._first, self._answers)):
            case Answered(result):
                return result
            case _:
                return False

    def fetched(self) -> Swept:
        """Copy the last answers to the host; return a function that returns parts of this copy."""
        first, answers = self._first, self._answers.cpu().numpy().view(self._storage)

        def part(start: int, count: int) -> Bits:
            copied: Bits = answers[start - first :][:count]
            return copied

        return part


def device_blocks(
    oracle: Oracle, case: Case, visit: InputSequence, most: int
) -> DeviceBlocks | None:
    """Prepare a backend's device sweep in blocks of at most ``most`` inputs.

    Returns None if the backend has no device sweep, if it fails, or if the inputs are not
    consecutive patterns: they must be requested from the host then.
    """
    if not (isinstance(visit, Dense) and isinstance(oracle, WithDeviceSweep)):
        return None
    match attempt(lambda: oracle.device_sweep(case, most)):
        case Answered(call):
            return DeviceBlocks(call, case)
        case _:
            return None
