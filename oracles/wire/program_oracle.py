"""An oracle that is a program of its own, in whatever language."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from oracles.isolation.backend_supervisor import Served
from oracles.isolation.crash_bisect import Survival
from oracles.isolation.launch_config import Home
from oracles.protocol import Bits, Swept, Unsupported
from oracles.wire.program_client import WireTongue
from oracles.wire.program_sweep import Sweeping
from specs.cases import Case


class Program:
    """Asks a program, and a fresh process of it where one has died.

    Beside ``cast`` and ``road`` it has those methods whose operations the program names.
    """

    claims: tuple[str, ...]
    bitcast: Callable[[Case, Bits], Bits]
    sweep: Callable[[Case, int, int], Swept]

    def __init__(self, backend: str, home: Home, beat: Callable[[], None] = lambda: None) -> None:
        tongue = WireTongue(backend, home)
        self.log = tongue.log
        self._served = Served(backend, tongue, beat)
        self._seconds = home.seconds
        self._survived = Survival(self.close, home.seconds)
        hello = self._served.hello
        self.name, self.version, self.dtypes = hello.name, hello.version, tuple(hello.dtypes)
        self._operations, self._depends_on = hello.operations, hello.depends_on
        if hello.claims is not None:
            self.claims = tuple(hello.claims)
        for method in ("bitcast", "sweep"):
            if method in hello.operations:
                setattr(self, method, getattr(self, f"_{method}"))

    def close(self) -> None:
        """End the process; asked again, there is another."""
        self._served.close()

    def road(self, case: Case) -> str:
        """What the program says that its answers depend on."""
        self._check_offered("cast", case)
        told = {"document": case.document, "version": case.version, "mode": case.modes}
        parts = [f"{name} {told[name]}" for name in told if name in self._depends_on]
        return ", ".join([f"{case.source}->{case.target}", *parts])

    def cast(self, case: Case, bits: Bits) -> Bits:
        """The program's answer, its error, or ``Crashed`` with the inputs that end its process."""
        self._check_offered("cast", case)
        answer: Bits = self._survived.of(partial(self._ask, "cast", case), bits)
        return answer

    def _bitcast(self, case: Case, bits: Bits) -> Bits:
        self._check_offered("bitcast", case)
        answer: Bits = self._ask("bitcast", case, bits, self._seconds)
        return answer

    def _sweep(self, case: Case, lo: int, hi: int) -> Swept:
        """Answers to consecutive patterns, which the program makes itself."""
        self._check_offered("sweep", case)
        return Sweeping(self._served, self._survived, case, lo, hi, self._seconds)

    def _ask(self, ask: str, case: Case, bits: Bits, seconds: float) -> Any:
        return self._served.ask({"ask": ask, "case": case}, {"": bits}, seconds)

    def _check_offered(self, operation: str, case: Case) -> None:
        if operation not in self._operations:
            raise Unsupported(f"{self.name} does not offer {operation}")
        for dtype in (case.source, case.target):
            if dtype not in self.dtypes:
                raise Unsupported(f"{self.name} has no {dtype}")
