"""The reference's answers to casts, by the kernels, behind the same protocol as a framework."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import cache, partial
from importlib.util import find_spec
from threading import RLock
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from oracles.protocol import Bits, Bound, Unsupported
from oracles.reference import kernel_text
from oracles.reference.expect_by_kernels import KernelExpectations
from oracles.reference.expectations import Expected, has_branch
from specs import VERSION
from specs.branches import Ruling
from specs.cases import Case
from specs.formats import Format, format_named
from specs.outcomes import Nan
from specs.ruling import ruling

VARIANTS: tuple[str, ...] = ()

TABLE_BITS = 16
"""The most bits of a source for which the answers to all patterns are cached."""
ROW_SIZES = range(256, 1 << 20)
"""The sizes of input rows whose answers are cached: many cases have the same rows."""
TABLES_KEPT = 256
"""How many tables are cached: enough for all casts from one source, which many chains share."""
ROWS_KEPT = 16
TEXTS_KEPT = 1 << 16


class RejectedError(ValueError):
    """The document requires an error for this case, or for one of its inputs."""


class _Table(NamedTuple):
    """Inputs in strictly rising order, with the answer to each, and whether each is open."""

    inputs: Bits
    answers: Bits
    is_open: NDArray[np.bool_]

    def places(self, bits: Bits) -> NDArray[np.intp] | None:
        """Return the index in the table of each of ``bits``; None unless it has all of them."""
        if bits.size == self.inputs.size and (bits == self.inputs).all():
            return np.arange(bits.size)
        places = np.minimum(np.searchsorted(self.inputs, bits), self.inputs.size - 1)
        return places if (self.inputs[places] == bits).all() else None


class Casts:
    """Answers casts as their documents define.

    Where a document leaves an input open, the answer is arbitrary, mostly 0.
    """

    name = "reference"
    version = VERSION

    def __init__(self, variant: str | None = None) -> None:
        if variant is not None:
            raise Unsupported("the reference has no variants")
        self._tables: dict[Hashable, _Table] = {}
        """By meaning of a ruling with a narrow source: the answers to all its patterns."""
        self._rows: dict[Hashable, _Table] = {}
        """By meaning of a ruling with a wider source: the answers to its last row of inputs."""
        self._texts: dict[Hashable, dict[Any, Any]] = {}
        """By ruling or source: the answers to single inputs of casts from and to texts."""
        self._row: Bits = np.empty(0)
        """The last cached row of inputs, which the tables of several rulings share."""
        self._kernels = KernelExpectations()
        self._turns = RLock()
        """Held while the caches are read and updated: two threads may cast at the same time."""

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Cast by the kernels; raise RejectedError if the document requires an error."""
        with self._turns:
            return self._answered(case, bits)

    def _answered(self, case: Case, bits: Bits) -> Bits:
        rules = ruling(replace(case, example=None))
        if rules.is_rejection:
            raise RejectedError(f"{case.document}:{case.version} does not list this pair")
        flat = bits.reshape(-1)
        if rules.source.kind == "text":
            read = partial(kernel_text.answer_text, rules)
            return self._each(rules.meaning, read, flat, rules.target.storage).reshape(bits.shape)
        if rules.target.kind == "text":
            write = partial(kernel_text.shortest_text, rules.source)
            return self._each(rules.source, write, flat, object).reshape(bits.shape)
        if rules.is_open:
            answers = np.zeros(flat.shape, rules.target.storage)
            is_open = np.ones(flat.shape, np.bool_)
        else:
            if rules.refuses_some:
                _check_refused(rules, flat, KernelExpectations().expect(rules, flat))
            answers, is_open = self._answers(rules, flat)
        # An example of the document may fix an answer that its rules leave open.
        for example_input, answer in ruling(case).worked:
            answers[is_open & (flat == example_input)] = answer
        return answers.reshape(bits.shape)

    def _each(
        self, key: Hashable, answer: Callable[[Any], Any], inputs: Bits, storage: Any
    ) -> Bits:
        """Return the answer to each input in an array of ``storage``; cache it under ``key``."""
        known = _kept(self._texts, TABLES_KEPT, key, dict[Any, Any])
        if len(known) > TEXTS_KEPT:
            known.clear()
        given = inputs.tolist()
        known |= {each: answer(each) for each in dict.fromkeys(given) if each not in known}
        return np.array([known[each] for each in given], storage)

    def _answers(self, rules: Ruling, bits: Bits) -> tuple[Bits, NDArray[np.bool_]]:
        """Return the answers to a row of inputs, and whether each input is open.

        Both are fresh arrays, taken from a cache if that has all inputs.
        """
        if rules.source.bits <= TABLE_BITS:
            make = partial(self._table, rules, _all_patterns(rules.source))
            table = _kept(self._tables, TABLES_KEPT, rules.meaning, make)
            return table.answers[bits], table.is_open[bits]
        known = self._rows.get(rules.meaning)
        if known is not None and (places := known.places(bits)) is not None:
            return known.answers[places], known.is_open[places]
        if bits.size not in ROW_SIZES or not (bits[1:] > bits[:-1]).all():
            return _by_kernels(KernelExpectations(), rules, bits)
        if not np.array_equal(bits, self._row):
            self._row = bits.copy()
        self._rows.pop(rules.meaning, None)
        make = partial(self._table, rules, self._row)
        table = _kept(self._rows, ROWS_KEPT, rules.meaning, make)
        return table.answers.copy(), table.is_open.copy()

    def _table(self, rules: Ruling, inputs: Bits) -> _Table:
        return _Table(inputs, *_by_kernels(self._kernels, rules, inputs))

    def road(self, case: Case) -> str:
        """Return a description of the case's ruling; cases with equal ones get equal answers."""
        rules = ruling(case)
        outcomes = ", ".join(f"{branch.input_class}: {branch.outcome}" for branch in rules.branches)
        return f"{rules.source.name}->{rules.target.name}, {rules.rounding}, {outcomes}"

    def bind(self, case: Case, bits: Bits) -> Bound:
        """Return a function that casts what ``bits`` holds at each call, into memory it reuses.

        The function runs compiled kernels or, without numba, ``cast``, which returns new arrays. It
        raises RejectedError for an input that the document refuses; compiled kernels do not if the
        document refuses every input.
        """
        rules = ruling(case)
        if find_spec("numba") is None:
            return partial(self.cast, case, bits)
        from oracles.reference.compiled_kernels import compiled

        kernels = compiled(rules)
        buffers = kernels.allocate(bits.size)

        def call() -> Bits:
            kernels.scattered(bits, buffers.branch_indices, buffers.codes, buffers.others)
            if rules.refuses_some:
                _check_refused(rules, bits, buffers)
            return with_nans(rules, buffers)

        return call

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Return a copy of the bits: the reference has no tensors to move them through."""
        return bits.copy()

    def reproduce(self, case: Case, bits: Bits) -> str:
        """Return a command that shows the reference's answer beside what is allowed."""
        source = format_named(case.source)
        arguments = (
            shlex.quote(element) if isinstance(element, str) else source.hexadecimal(element)
            for element in bits.tolist()
        )
        return f"castigate explain {case.id} --backend reference -- {' '.join(arguments)}"


Cached = TypeVar("Cached")


def _kept(
    kept: dict[Hashable, Cached], most: int, key: Hashable, make: Callable[[], Cached]
) -> Cached:
    """Return the cached value of a key, or make it and cache it.

    If ``most`` values are kept already, evict the least recently used one.
    """
    found = kept.pop(key, None)
    if found is None:
        if len(kept) >= most:
            del kept[next(iter(kept))]
        found = make()
    kept[key] = found
    return found


@cache
def _all_patterns(source: Format) -> Bits:
    """Return every pattern of a narrow source, always as the same array: it is decoded once."""
    return np.arange(1 << source.bits, dtype=source.storage)


def _by_kernels(
    kernels: KernelExpectations, rules: Ruling, inputs: Bits
) -> tuple[Bits, NDArray[np.bool_]]:
    expected = kernels.expect(rules, inputs)
    is_open = has_branch(expected.branch_indices, rules.open_branches)
    return with_nans(rules, expected), is_open


def _check_refused(rules: Ruling, inputs: Bits, expected: Expected) -> None:
    refused = np.flatnonzero(has_branch(expected.branch_indices, rules.refused_branches))
    if refused.size:
        first = int(refused[0])
        rule = rules.branches[int(expected.branch_indices[first])].rule
        shown = rules.source.hexadecimal(int(inputs[first]))
        raise RejectedError(f"{rule} refuses {shown}")


def with_nans(rules: Ruling, expected: Expected) -> Bits:
    """Return the expected patterns, with a NaN written in where any NaN is allowed.

    Changes ``expected.codes`` in place.
    """
    answers = expected.codes
    for branch_index, branch in enumerate(rules.branches):
        if isinstance(branch.outcome, Nan):
            codes = rules.target.nan_codes[-1 if branch.outcome.sign == "-" else 0]
            answers[expected.branch_indices == branch_index] = codes[-1]
    return answers
