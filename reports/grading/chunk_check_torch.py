"""``chunk_check`` on a device: the answers are a torch tensor there, and stay there.

torch subtracts and compares only signed integers, so patterns are signed here. Sums wrap around as
they do for unsigned ones.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reports.grading.chunk_check import SegmentGroup, segment_groups
from reports.grading.chunk_table import ANYTHING, CODE, NEEDS_GRADING, RANGES, ROW, Table


class DeviceCheck:
    """Checks answers against a table that is copied to their device once.

    The private checks return a boolean tensor on the device, so that only ``all_right`` waits for
    it.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self._signed = np.dtype(f"i{table.bounds.itemsize}")
        self._mask = table.ruling.target.mask
        self._is_narrow = table.ruling.target.bits < 8 * table.bounds.itemsize
        self._like: Any = None

    def all_right(self, first: int, answers: Any) -> bool:
        """Whether the answers to the inputs from ``first`` on are certainly all allowed.

        ``answers`` is a tensor of signed integers; all calls must pass one device and dtype.
        """
        if self._like is None:
            self._like = answers[:0]
        groups = list(segment_groups(self._table, first, answers.numel()))
        if any(self._table.kinds[group.segment] == NEEDS_GRADING for group in groups):
            return False
        wrong = (answers & ~self._mask).any() if self._is_narrow else answers[:0].any()
        for group in groups:
            part, at = answers[group.begin : group.stop], first + group.begin
            match int(self._table.kinds[group.segment]):
                case kind if kind == CODE:
                    wrong = wrong | self._differs_from_codes(group, at, part)
                case kind if kind == RANGES:
                    wrong = wrong | self._outside_ranges(group.segment, part)
                case kind if kind == ANYTHING:
                    pass
                case row:
                    inside = at - int(self._table.firsts[group.segment])
                    wrong = wrong | self._differs_from_row(row, inside, part)
        # The only wait for the device.
        return not bool(wrong)

    def _copied(self, array: NDArray[Any]) -> Any:
        """Return a tensor on the answers' device, of their dtype, with the content of an array."""
        return self._like.new_tensor(array)

    @cached_property
    def _codes(self) -> Any:
        return self._copied(self._table.bounds[0].view(self._signed))

    @cached_property
    def _firsts(self) -> Any:
        return self._like.long().new_tensor(self._table.firsts.astype(np.int64))

    @cached_property
    def _rows(self) -> Any:
        return self._copied(self._table.rows.view(self._signed))

    @cached_property
    def _cares(self) -> Any:
        mask = self._table.cares.dtype.type(self._mask)
        return self._copied((self._table.cares & mask).view(self._signed))

    def _differs_from_codes(self, group: SegmentGroup, first: int, answers: Any) -> Any:
        """Return whether answers, whose first input is ``first``, are not the codes of a group."""
        begin, end = group.segment, group.after
        codes = self._codes[begin:end]
        if end - begin == 1:
            return (answers != codes[0]).any()
        starts = self._firsts[begin + 1 : end] - first
        changes = self._table.code_changes[end - 1] - self._table.code_changes[begin]
        return (
            ((answers[1:] != answers[:-1]).count_nonzero() != int(changes))
            | (answers[starts] != codes[1:]).any()
            | (answers[starts - 1] != codes[:-1]).any()
        )

    def _outside_ranges(self, segment: int, answers: Any) -> Any:
        low, high, other_low, other_high = self._table.bounds[:, segment]
        outside = self._above(answers, low, high) & self._above(answers, other_low, other_high)
        return outside.any()

    def _above(self, answers: Any, low: Any, high: Any) -> Any:
        """Return whether each answer minus ``low`` exceeds ``high - low``, as unsigned integers."""
        # Unsigned integers have the order of the signed ones that differ in the sign bit.
        sign = int(np.iinfo(self._signed).min)
        span = int((high - low).view(self._signed)) ^ sign
        return ((answers - int(low.view(self._signed))) ^ sign) > span

    def _differs_from_row(self, row: int, inside: int, answers: Any) -> Any:
        """Return whether answers, beginning ``inside`` inputs into a segment, differ from its row.

        The row repeats along the segment.
        """
        nth, offset = divmod(inside, ROW)
        codes = self._rows[row, offset : offset + ROW]
        whole, remainder = divmod(answers.numel(), ROW)
        rise = self._table.rises[row]
        numbers = np.arange(nth, nth + whole + 1).astype(rise.dtype)
        lifts = self._copied((numbers * rise).view(self._signed))
        body = answers[: whole * ROW].view(whole, ROW) - lifts[:-1, None]
        tail = answers[whole * ROW :] - lifts[-1]
        if not (~self._table.cares[row]).any() and not self._is_narrow:
            return (body != codes).any() | (tail != codes[:remainder]).any()
        cares = self._cares[row, offset : offset + ROW]
        wrong = ((body - codes) & cares).any()
        return wrong | ((tail - codes[:remainder]) & cares[:remainder]).any()
