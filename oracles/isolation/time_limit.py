"""An oracle in this very process, which ends with the process where it takes too long."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

from oracles.protocol import Bits, Bound, Oracle
from specs.cases import Case


class Timed:
    """Has the system end this process by SIGALRM when a cast is not answered in time.

    No thread has to run for that, so that a kernel that never returns is no way out.
    """

    def __init__(self, oracle: Oracle, seconds: float) -> None:
        self._oracle = oracle
        self._seconds = seconds
        self.name, self.version = oracle.name, oracle.version
        signal.signal(signal.SIGALRM, signal.SIG_DFL)

    def __getattr__(self, name: str) -> Any:
        given = getattr(self._oracle, name)
        return self._binder(given) if name == "bind" else given

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Answer a case in time."""
        answer: Bits = self._timed(lambda: self._oracle.cast(case, bits))
        return answer

    def _binder(self, bind: Callable[[Case, Bits], Bound]) -> Callable[[Case, Bits], Bound]:
        def timed_bind(case: Case, bits: Bits) -> Bound:
            call: Bound = self._timed(lambda: bind(case, bits))
            return lambda: self._timed(call)

        return timed_bind

    def _timed(self, call: Callable[[], Any]) -> Any:
        signal.setitimer(signal.ITIMER_REAL, self._seconds)
        try:
            return call()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
