"""An oracle that is a program in any language, behind the wire protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np

from oracles.backend.backend_supervisor import BackendSupervisor, LaunchConfig, SupervisedOracle
from oracles.backend.crash_bisect import CrashBisector
from oracles.backend.frames import SLOT_BYTES
from oracles.backend.remote_sweep import RemoteSweep
from oracles.protocol import Bits, Swept, Unsupported
from oracles.wire.program_client import ProgramClient
from oracles.wire.schema import ELEMENT_REQUESTS, TENSOR_REQUESTS
from specs.cases import Case
from specs.formats import format_named
from specs.operations import tensor_dtypes


class ProgramOracle(SupervisedOracle):
    """An oracle that is a program; after a crash, the next request starts a new process of it.

    Beside ``cast`` and ``road`` it has the methods for the operations that the program offers.
    ``on_reply`` is called after every exchange, to show progress. The constructor starts a process,
    and raises CastigateError if that fails. Without ``offers_memory`` all answers come in
    payloads, as on a system without shared memory.
    """

    claims: tuple[str, ...]
    sweep: Callable[[Case, int, int], Swept]

    def __init__(
        self,
        backend: str,
        config: LaunchConfig,
        on_reply: Callable[[], None] = lambda: None,
        offers_memory: bool = True,
    ) -> None:
        client = ProgramClient(backend, config, offers_memory)
        self.log = client.log
        self._supervisor = BackendSupervisor(backend, client, on_reply)
        self._seconds = config.seconds
        self._bisector = CrashBisector(self.close, config.seconds)
        self.description = hello = self._supervisor.info
        self.name, self.version, self.dtypes = hello.name, hello.version, tuple(hello.dtypes)
        self._operations, self._depends_on = hello.operations, hello.depends_on
        if hello.claims is not None:
            self.claims = tuple(hello.claims)
        if "sweep" in hello.operations:
            self.sweep = self._sweep
        for operation in hello.operations:
            if operation in TENSOR_REQUESTS:
                setattr(self, operation, partial(self._answer_tensors, operation))
            elif operation in ELEMENT_REQUESTS and operation != "cast":
                setattr(self, operation, partial(self._answer_elements, operation))

    def road(self, case: Case) -> str:
        """Return a text of a case's dtypes, and of the parts that the hello ``depends_on``.

        The parts are document, version and mode. Raises Unsupported if the program offers no casts
        or lacks one of the dtypes.
        """
        self._check_offered("cast", case)
        values = {"document": case.document, "version": case.version, "mode": case.modes}
        parts = [f"{name} {values[name]}" for name in values if name in self._depends_on]
        return ", ".join([f"{case.source}->{case.target}", *parts])

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Return the casts of ``bits``; raise the program's error, or ProcessDied.

        ProcessDied has the fewest inputs found that end the process. Raises Unsupported if the
        program offers no casts, lacks one of the dtypes, or answers `unsupported`.
        """
        self._check_offered("cast", case)
        answer: Bits = self._bisector.ask(partial(self._ask, "cast", case), bits)
        return answer

    def _answer_elements(self, operation: str, case: Case, bits: Bits) -> Bits:
        self._check_offered(operation, case)
        answer: Bits = self._ask(operation, case, bits, self._seconds)
        return answer

    def _sweep(self, case: Case, lo: int, hi: int) -> Swept:
        self._check_offered("sweep", case)
        request = {"ask": "sweep", "case": case}

        def ask_alone(part: Bits, seconds: float) -> Any:
            # Parts are consecutive patterns, so these are sweeps too.
            consecutive = request | {"first": int(part[0]), "count": part.size}
            return self._supervisor.ask(consecutive, {}, seconds)

        return RemoteSweep(
            self._supervisor,
            self._bisector,
            request,
            ask_alone,
            np.dtype(format_named(case.source).storage),
            lo,
            hi,
            SLOT_BYTES // np.dtype(format_named(case.target).storage).itemsize,
        )

    def _answer_tensors(
        self, operation: str, case: Case, tensors: Mapping[str, Bits]
    ) -> Mapping[str, Bits]:
        dtypes = tensor_dtypes(case)
        self._check_dtypes([*map(dtypes.taken.__getitem__, tensors), *dtypes.returned.values()])
        request = {"ask": operation, "case": case}
        results: Mapping[str, Bits] = self._supervisor.ask(request, tensors, self._seconds)
        return results

    def _ask(self, ask: str, case: Case, bits: Bits, seconds: float) -> Any:
        return self._supervisor.ask({"ask": ask, "case": case}, {"": bits}, seconds)

    def _check_offered(self, operation: str, case: Case) -> None:
        if operation not in self._operations:
            raise Unsupported(f"{self.name} does not offer {operation}")
        self._check_dtypes((case.source, case.target))

    def _check_dtypes(self, dtypes: Iterable[str]) -> None:
        for dtype in dtypes:
            if dtype not in self.dtypes:
                raise Unsupported(f"{self.name} has no {dtype}")
