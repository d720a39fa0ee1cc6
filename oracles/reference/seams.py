"""Right answers in words of 64 bits: several narrow ones are compared as one."""

from __future__ import annotations

import ctypes
import sys
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

WORD = np.dtype(np.uint64)
LINE = 8
"""Words of a line of the cache: memory is compared fastest with itself so much further on."""
FEW = 24
"""Stretches that are compared one by one sooner than all words with the one before."""
_compare = ctypes.CDLL("msvcrt" if sys.platform == "win32" else None).memcmp
_compare.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


@dataclass(frozen=True)
class Seams:
    """Where words of right answers change: stretches of equal words, by the number of their first.

    ``places`` and ``codes`` are two for each stretch: the word before it, and its first.
    ``unfixed`` counts, before each stretch, those for which no certain codes are asked.
    """

    per_word: int
    firsts: list[int]
    unfixed: list[int]
    places: NDArray[np.intp]
    codes: NDArray[np.uint64]

    def hold(self, first: int, answers: NDArray[Any]) -> bool | None:
        """Whether consecutive inputs are answered right; None if words do not tell."""
        number, odd = divmod(first, self.per_word)
        if odd or answers.size % self.per_word or not answers.flags.c_contiguous:
            return None
        words = answers.view(WORD)
        begin = bisect_right(self.firsts, number) - 1
        end = bisect_right(self.firsts, number + words.size - 1)
        if self.unfixed[begin] != self.unfixed[end]:
            return None
        if end == begin + 1:
            return _are_all(words, self.codes[2 * begin + 1])
        # Both sides of each seam are right, and between two seams all words are the same.
        near = slice(2 * begin + 2, 2 * end)
        seen = words.take(self.places[near] - number)
        if seen.tobytes() != self.codes[near].tobytes():
            return False
        if end - begin > FEW:
            return int(np.count_nonzero(words[1:] != words[:-1])) == end - begin - 1
        at, start = _address(words), 0
        for first_of_next in (*self.firsts[begin + 1 : end], number + words.size):
            stop = first_of_next - number
            size = WORD.itemsize * (stop - start)
            # Where codes change within a word, that word is a stretch of its own.
            if stop - start > 1 and not _goes_on(at + WORD.itemsize * start, size, WORD.itemsize):
                return False
            start = stop
        return True


def _are_all(words: NDArray[np.uint64], code: np.uint64) -> bool:
    """Whether all words are one, told in one pass that writes nothing: numpy's has to."""
    line = words[:LINE].tobytes()
    if line != code.tobytes() * (len(line) // WORD.itemsize):
        return False
    return _goes_on(_address(words), words.nbytes, len(line))


def _goes_on(at: int, size: int, period: int) -> bool:
    """Whether so many bytes go on as their first few do."""
    return not _compare(at, at + period, size - period)


def _address(words: NDArray[np.uint64]) -> int:
    """Where words lie: numpy's own way to tell takes as long as half the comparison."""
    if words.flags.writeable:
        return ctypes.addressof(ctypes.c_char.from_buffer(words.data))
    return words.ctypes.data


def seams(
    firsts: NDArray[np.uint64], fixed: NDArray[np.bool_], codes: NDArray[Any], inputs: int
) -> Seams:
    """The seams of segments of so many inputs: those that are ``fixed`` have one code."""
    per_word = WORD.itemsize // codes.itemsize
    number, odd = np.divmod(firsts, np.uint64(per_word))
    begins = np.unique(np.concatenate([number, number + (odd > 0)]))
    begins = begins[begins < max(1, inputs // per_word)]
    inside = begins[:, np.newaxis] * np.uint64(per_word) + np.arange(per_word, dtype=np.uint64)
    segments = np.searchsorted(firsts, inside, "right") - 1
    unfixed = np.logical_not(fixed[segments].all(axis=1))
    words = codes[segments].view(WORD)[:, 0]
    new = np.append(True, (words[1:] != words[:-1]) | unfixed[1:] | unfixed[:-1])
    begins, unfixed, words = begins[new].astype(np.intp), unfixed[new], words[new]
    return Seams(
        per_word,
        begins.tolist(),
        [0, *np.cumsum(unfixed).tolist()],
        np.repeat(begins, 2) - np.tile([1, 0], begins.size),
        np.append(words[0], np.repeat(words, 2)[:-1]),
    )
