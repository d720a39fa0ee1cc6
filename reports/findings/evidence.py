"""How much better a mechanism explains failures than chance does, in bits.

Without a mechanism, the failing inputs of a case are any among those asked, and each gets any wrong
answer. A mechanism predicts both: the less likely its predictions are by chance, the more bits it
is worth. Describing it costs bits: which mechanism, in which cases, on which inputs. A cause must
be worth more than it costs, so that random answers have none.
"""

from __future__ import annotations

from math import lgamma, log, log2

from specs.formats import Format

MOST_BITS_OF_ANSWER = 8.0
"""The most that one predicted answer is worth: some wrong answers, zero or a NaN, are frequent."""


def bits_of_choice(some: float, among: float) -> float:
    """How many bits it takes to say which ``some`` of ``among`` things are meant."""
    if not 0 < some < among:
        return 0.0
    return (lgamma(among + 1) - lgamma(some + 1) - lgamma(among - some + 1)) / log(2)


def bits_of_answer(target: Format) -> float:
    """How many bits it is worth to predict which wrong answer an input gets."""
    if not target.is_numeric:
        return MOST_BITS_OF_ANSWER
    return min(MOST_BITS_OF_ANSWER, log2((1 << target.bits) - 1))


def worth(target: Format, asked: int, failing: int, predicted: int, hits: int) -> float:
    """Return the bits that a mechanism explains in one case: which inputs fail, and how.

    Of the inputs ``asked``, ``failing`` fail. The mechanism rightly predicts that ``predicted`` of
    these fail, and gives the answer to ``hits`` of them.
    """
    where = bits_of_choice(failing, asked)
    where -= bits_of_choice(failing - predicted, asked - predicted)
    return where + hits * bits_of_answer(target) - bits_of_choice(hits, predicted)
