"""A backend with faults named by the environment, one small document, and ledgers elsewhere.

It is a plugin of pytest too, so that every process of a run sees the same.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np

import conformance.pair
import reports.ledger
import specs.loader
from conformance.families.reference import Reference
from specs.cases import Case

FOLDER = Path(os.environ["LEDGERED"])
specs.loader.DOCUMENTS = FOLDER / "documents"
reports.ledger.FOLDER = FOLDER / "ledger"
# The document's second version has the first one's rules, and each run is to ask both.
conformance.pair.TURNS = 1
RIGHT = Reference()


class Planted:
    """Answers as the reference does, but for the faults that ``LEDGERED_FAULTS`` names."""

    name = "planted"
    version = os.environ.get("LEDGERED_VERSION", "1.0")

    def cast(self, case: Case, bits: Any) -> Any:
        answers = RIGHT.cast(case, bits)
        for fault in os.environ.get("LEDGERED_FAULTS", "").split():
            answers = getattr(self, fault)(case, bits, answers)
        return answers

    def four(self, case: Case, bits: Any, answers: Any) -> Any:
        """Answer four consecutive inputs of float16 to int8 wrongly."""
        return self._wrong(case, "float16", bits, answers, 4)

    def five(self, case: Case, bits: Any, answers: Any) -> Any:
        """Answer five consecutive inputs wrongly: those of ``four`` and one more."""
        return self._wrong(case, "float16", bits, answers, 5)

    def otherwise(self, case: Case, bits: Any, answers: Any) -> Any:
        """Answer the inputs of ``four`` wrongly, one of them otherwise than ``four`` does."""
        where = (case.source, case.target) == ("float16", "int8")
        return np.where(where & (bits == 0x4402), answers ^ 1, self.four(case, bits, answers))

    def single(self, case: Case, bits: Any, answers: Any) -> Any:
        """Answer one input of float32 to int8 wrongly."""
        if (case.source, case.target) == ("float32", "int8"):
            answers[bits == 0x40000000] = 5
        return answers

    def saturated(self, case: Case, bits: Any, answers: Any) -> Any:
        """Change the answer to one input of float16 to float8."""
        if (case.source, case.target) == ("float16", "float8e4m3fn"):
            answers[bits == 0x3C00] = 0
        return answers

    def opened(self, case: Case, bits: Any, answers: Any) -> Any:
        """Change the answers to NaNs of float16 to int8, which are open."""
        if (case.source, case.target) == ("float16", "int8"):
            answers[(bits & 0x7FFF) > 0x7C00] = 77
        return answers

    def matrices(self, case: Case, bits: Any, answers: Any) -> Any:
        """Answer every matrix of float16 to int8 by zeros."""
        is_wrong = (case.source, case.target) == ("float16", "int8") and bits.ndim == 2
        return np.zeros_like(answers) if is_wrong else answers

    def matrices_of_others(self, case: Case, bits: Any, answers: Any) -> Any:
        """Answer every matrix of float32 to int8 by zeros."""
        is_wrong = (case.source, case.target) == ("float32", "int8") and bits.ndim == 2
        return np.zeros_like(answers) if is_wrong else answers

    def raises(self, case: Case, bits: Any, answers: Any) -> Any:
        if (case.source, case.target) == ("float32", "int8"):
            raise ValueError(f"nothing at {id(answers)} in {FOLDER}/kernel.cc")
        return answers

    def ends(self, case: Case, bits: Any, answers: Any) -> Any:
        if (case.source, case.target) == ("float32", "float8e4m3fn"):
            os._exit(3)
        return answers

    def kills(self, case: Case, bits: Any, answers: Any) -> Any:
        """Kill the worker of xdist whose pool of processes asks for one case."""
        if case.id == "small:1/float16/int8":
            os.kill(_worker_of_xdist(), signal.SIGKILL)
        return answers

    def _wrong(self, case: Case, source: str, bits: Any, answers: Any, count: int) -> Any:
        where = (case.source, case.target) == (source, "int8")
        return np.where(where & (bits >= 0x4400) & (bits < 0x4400 + count), 9, answers).astype(
            answers.dtype
        )


class Newest(Planted):
    """Claims the newest version of the document alone."""

    claims = ("small:2",)


def _worker_of_xdist() -> int:
    """The nearest worker of xdist, which this process is forked off; outer ones run tests."""
    found, each = 0, os.getppid()
    while each > 1:
        is_worker = b"exec(eval(" in Path(f"/proc/{each}/cmdline").read_bytes()
        if found and not is_worker:
            break
        found = each if is_worker else 0
        each = int(Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()[1])
    return found
