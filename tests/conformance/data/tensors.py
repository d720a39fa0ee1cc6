"""Adapters that end or tell more where a cast is asked again in tensors of other shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from oracles.backend.remote_errors import ProcessDied
from specs.cases import Case
from tests.conformance.data.placed import RIGHT, Compiles, Honest, OpenTail, Tail


class RaisesLater(Tail):
    """Wrong in the tail of a row; a tensor without dimensions comes after it."""

    def cast(self, case: Case, bits: Any) -> Any:
        if bits.ndim == 0:
            raise ValueError("no such rank")
        return super().cast(case, bits)


class OpenRaisesLater(OpenTail):
    def cast(self, case: Case, bits: Any) -> Any:
        if bits.ndim == 0:
            raise ValueError("no such rank")
        return super().cast(case, bits)


class DiesOfScalars(Honest):
    def cast(self, case: Case, bits: Any) -> Any:
        if bits.ndim == 0:
            raise ProcessDied("killed by signal 11 (SIGSEGV)")
        return super().cast(case, bits)


class Remembers(Compiles):
    """Knows the tensors it was asked for after the row of all inputs."""

    def __init__(self) -> None:
        self.asked: list[tuple[tuple[int, ...], tuple[int, ...]]] = []

    def cast(self, case: Case, bits: Any) -> Any:
        self.asked.append((bits.shape, bits.strides))
        return super().cast(case, bits)


class WrongInRankFive(Honest):
    """Says that it compiles per shape, and errs in one that most pairs are then not asked in."""

    compiles_shapes = True

    def cast(self, case: Case, bits: Any) -> Any:
        return np.asarray(RIGHT.cast(case, bits) ^ np.uint8(bits.ndim == 5))
