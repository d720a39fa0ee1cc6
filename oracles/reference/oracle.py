"""The backend ``reference``: the kernels' answers behind the same protocol as any framework."""

from __future__ import annotations

import shlex
from dataclasses import replace
from functools import partial
from importlib.util import find_spec

import numpy as np

from oracles.protocol import Bits, Bound, Unsupported
from oracles.reference import by_kernels, written
from oracles.reference.compiled import compiled
from oracles.reference.expected import Expected
from specs.cases import Case
from specs.formats import format_named
from specs.outcomes import Nan
from specs.release import VERSION
from specs.ruling import Ruling, ruling

VARIANTS: tuple[str, ...] = ()


class RejectedError(ValueError):
    """The document wants the case refused."""


class Reference:
    """Answers every case as its document says; where the document is open, with all bits zero."""

    name = "reference"
    version = VERSION

    def __init__(self, variant: str | None = None) -> None:
        if variant is not None:
            raise Unsupported("the reference has no variants")

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Answer a case by the kernels."""
        rules = ruling(replace(case, example=None))
        if rules.is_rejection:
            raise RejectedError(f"{case.document}:{case.version} does not list this pair")
        flat = bits.reshape(-1)
        if rules.source.kind == "text":
            answers = [written.answer_text(rules, text) for text in flat.tolist()]
            return np.array(answers, rules.target.storage).reshape(bits.shape)
        if rules.target.kind == "text":
            texts = [written.write(rules.source, code) for code in flat.tolist()]
            return np.array(texts, object).reshape(bits.shape)
        if rules.is_open:
            return np.zeros(bits.shape, rules.target.storage)
        return _numbers(rules, flat).reshape(bits.shape)

    def road(self, case: Case) -> str:
        """What a ruling comes to: cases that come to the same are answered the same."""
        rules = ruling(case)
        outcomes = ", ".join(f"{branch.input_class}: {branch.outcome}" for branch in rules.branches)
        return f"{rules.source.name}->{rules.target.name}, {rules.rounding}, {outcomes}"

    def bind(self, case: Case, bits: Bits) -> Bound:
        """The compiled kernels, where numba is installed."""
        rules = ruling(case)
        if find_spec("numba") is None:
            return partial(self.cast, case, bits)
        kernels = compiled(rules)
        room = kernels.room(bits.size)

        def call() -> Bits:
            kernels.scattered(bits, room.places, room.codes, room.others)
            return _with_nans(rules, room)

        return call

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """The reference has no tensors of its own: bits are bits."""
        return bits.copy()

    def reproduce(self, case: Case, bits: Bits) -> str:
        """A command that shows the reference's answer beside what is allowed."""
        source = format_named(case.source)
        shown = (
            shlex.quote(given) if isinstance(given, str) else source.hexadecimal(given)
            for given in bits.tolist()
        )
        return f"castigate explain {case.id} --backend reference -- {' '.join(shown)}"


def _numbers(rules: Ruling, inputs: Bits) -> Bits:
    return _with_nans(rules, by_kernels.expect(rules, inputs))


def _with_nans(rules: Ruling, expected: Expected) -> Bits:
    """The patterns expected, and a NaN where any is."""
    answer = expected.codes
    for place, branch in enumerate(rules.branches):
        if isinstance(branch.outcome, Nan):
            codes = rules.target.nan_codes[-1 if branch.outcome.sign == "-" else 0]
            answer[expected.places == place] = codes[-1]
    return answer
