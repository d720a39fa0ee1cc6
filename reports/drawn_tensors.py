"""How likely the tensors that a run draws meet a fault that depends on the tensor.

A fault that depends on the tensor shows where its condition is met: the innermost step is 2, say,
and there are more than 64 elements. The conditions here are those of faults that frameworks have
had, or may well have. The draws of any pair that a kernel serves can meet a fault of the kernel;
only the draws of one pair can meet a fault of that pair alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

DRAWS = 8
"""How many tensors are drawn for the casts of a pair at the tier ``quick``."""
TIMES_GATE, TIMES_FULL = 20, 400
"""How many times as many tensors a gate draws, and the tier ``full``."""
FEW_SHAPES = "asked in one length or shape, because each new shape is compiled"
"""The reason for which a pair is declined for which no tensors are drawn."""
PAIRS_OF_A_KERNEL = 300
SHARES: Mapping[str, float] = {
    "the last dimension is that of an attention head, rank 3 or more": 0.040802,
    "a matrix of whole blocks of 8, by columns": 0.003235,
    "rank 4, channels last, a multiple of 4 of them": 0.002716,
    "the innermost step is 2, more than 64 elements": 0.043671,
    "an inner dimension is flipped, rank 4": 0.012146,
    "an odd beginning, and a rest behind the last vector": 0.154236,
    "the outermost dimension is expanded": 0.021332,
    "more than 65,536 elements, and a rest": 0.007172,
    "a square matrix by columns": 0.010345,
    "rank 8": 0.029358,
    "no elements": 0.030243,
}
"""By condition, the share of all draws that meet it, from 0 to 1: ``python -m lab.chances``."""


def chance_to_meet(words: str, draws: int) -> float:
    """Return the chance that at least one of ``draws`` tensors meets the condition ``words``."""
    return 1 - (1 - SHARES[words]) ** draws


def rows(*draws: int) -> Iterator[tuple[str, ...]]:
    """Yield the words of each condition, its share, and its chance in each number of ``draws``."""
    for words, share in SHARES.items():
        yield words, f"{share:.2%}", *(f"{chance_to_meet(words, each):.0%}" for each in draws)


def not_asked_words(draws: int) -> str:
    """Say in one line how likely ``draws`` tensors of a pair meet a fault of that pair alone."""
    rarest = min(SHARES, key=SHARES.__getitem__)
    chance = int(100 * chance_to_meet(rarest, draws))
    return (
        f"not asked: most tensors; the {draws:,} drawn for a pair meet a fault of it with a chance"
        f" of {chance}% or more"
    )
