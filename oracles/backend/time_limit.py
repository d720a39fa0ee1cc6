"""Puts a time limit on an oracle in this process: when it is exceeded, the process ends."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import TypeVar

from oracles.protocol import (
    CAPABILITIES,
    Bits,
    Bound,
    DeviceSwept,
    Oracle,
    WithBind,
    WithDeviceSweep,
)
from specs.cases import Case

Result = TypeVar("Result")


class TimeLimited:
    """Has the system end this process by SIGALRM when a cast takes too long.

    No Python code has to run for that, so a kernel that never returns is ended too. ``cast``,
    ``bind`` and ``device_sweep`` are limited; the oracle's other capabilities are forwarded.
    """

    def __init__(self, oracle: Oracle, seconds: float) -> None:
        self._oracle = oracle
        self._seconds = seconds
        self.name, self.version = oracle.name, oracle.version
        for member, capability in CAPABILITIES.items():
            if isinstance(oracle, capability):
                setattr(self, member, getattr(oracle, member))
        if isinstance(oracle, WithBind):
            self.bind = self._limited_bind(oracle)
        if isinstance(oracle, WithDeviceSweep):
            self.device_sweep = self._limited_device_sweep(oracle)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Answer a case within the time limit."""
        return self._limited(lambda: self._oracle.cast(case, bits))

    def _limited_bind(self, oracle: WithBind) -> Callable[[Case, Bits], Bound]:
        def bind(case: Case, bits: Bits) -> Bound:
            call = self._limited(lambda: oracle.bind(case, bits))
            return lambda: self._limited(call)

        return bind

    def _limited_device_sweep(self, oracle: WithDeviceSweep) -> Callable[[Case, int], DeviceSwept]:
        def device_sweep(case: Case, most: int) -> DeviceSwept:
            call = self._limited(lambda: oracle.device_sweep(case, most))
            return lambda first, count: self._limited(lambda: call(first, count))

        return device_sweep

    def _limited(self, call: Callable[[], Result]) -> Result:
        signal.setitimer(signal.ITIMER_REAL, self._seconds)
        try:
            return call()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
