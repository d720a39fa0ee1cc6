"""The proof of quantization and blocks: which statements there are, and what they add up to.

Of quantization it is proved that the quotient is rounded to odd (by exhaustion), that a number
rounded to odd can be rounded to nearest as if it were exact (by the solver), that the format of the
precision gets the nearest pattern, and that the steps after it give the code (both by the solver,
for every float64). Together this covers the arithmetic of every case whose numbers and scales are
float16 or bfloat16. Of dequantization it is proved that differences and products are exact, and
that the nearest pattern follows: for codes of at most 8 bits and every scale. Of blocks, the solver
proves every scale rule, and every code by every scale, for float32 numbers. The kernels convert all
numbers to float64 first, which is proved to be exact, so the same holds for float16 and bfloat16
numbers, whose values float32 has.

Not proved, as neither method ends: that the quotient is rounded to odd where the number or the
scale is a float32; products of codes of 16 and 32 bits; scales of a dynamic quantization; scales,
codes and products by a global scale. There, models that were written independently are compared
with the kernels, on random and on selected elements (``lab/page_model/``, ``lab/block_model.py``).
Nor is it proved that kernels take the right situation of a formula, or apply each scale to its
elements.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from functools import cache
from time import perf_counter
from typing import NamedTuple

from conformance.families.blocks.ruling import BlockRuling, block_ruling
from lab.proof.obligations import TIME_LIMIT, Obligation, prove_in_parallel
from lab.proof.quantization_pairs import (
    wrong_block_product,
    wrong_dequantized,
    wrong_difference,
    wrong_product,
    wrong_quotient,
)
from lab.proof.smt_blocks import prove_codes, prove_decoded, prove_scale
from lab.proof.smt_quantization import (
    endings,
    prove_ending,
    prove_odd_then_nearest,
    prove_rounded_once,
)
from specs.editions import editions
from specs.formats import format_named
from specs.loader import documents

FLOATS = ("float16", "bfloat16", "float32")
WIDEST = "float32"
"""The float that has the values of all others: a proof for its blocks holds for theirs."""
QUOTIENTS = (
    ("float16", "float16"), ("float16", "bfloat16"), ("bfloat16", "float16"),
    ("bfloat16", "bfloat16"),
)  # fmt: skip
"""Numbers and scales whose quotients are proved."""
CODES = ("int8", "uint8", "int4", "uint4", "int2", "uint2")
SMALL_FLOATS = (
    "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "float4e2m1"
)  # fmt: skip
DEQUANTIZED = tuple(
    (code, number) for code in (*CODES, *SMALL_FLOATS) for number in ("float16", "bfloat16")
)
"""Codes, and the numbers and scales that they are dequantized by."""


class Exhaustion(NamedTuple):
    """A statement that is checked on every pair, and what it is about.

    ``find(*arguments)`` describes a pair for which the statement does not hold, or returns nothing.
    """

    find: Callable[..., str]
    arguments: tuple[str, ...]
    source: str
    target: str
    mode: str
    pairs: int
    rulings: str = "every case of these dtypes"

    def prove(self, time_limit: float) -> Obligation:
        """Check every pair, however long it takes."""
        start = perf_counter()
        found = self.find(*self.arguments)
        return Obligation(
            half="quantization",
            source=self.source,
            target=self.target,
            mode=self.mode,
            rulings=self.rulings,
            statement="integers, every pair",
            verdict="counterexample" if found else "proved",
            inputs=f"{self.pairs:,}",
            seconds=perf_counter() - start,
            found=found,
        )


class Question(NamedTuple):
    """A statement for the solver: ``ask`` proves it of ``subject``, a name or an index."""

    ask: Callable[..., Obligation]
    subject: str | int

    def prove(self, time_limit: float) -> Obligation:
        """Ask the solver for a counterexample, for at most ``time_limit`` seconds."""
        return self.ask(self.subject, time_limit)


@cache
def statements() -> tuple[Exhaustion | Question, ...]:
    """All statements about quantization and blocks."""
    return (*_of_quantization(), *_of_dequantization(), *_of_blocks())


def _of_quantization() -> Iterator[Exhaustion | Question]:
    for number, scale in QUOTIENTS:
        pairs = _finite(number) << format_named(scale).entry.mantissa
        yield Exhaustion(
            wrong_quotient, (number, scale), f"{number} by {scale}", "float64", "rounded to odd",
            pairs,
        )  # fmt: skip
    for target in (*FLOATS, "int32"):
        yield Question(prove_odd_then_nearest, target)
    for target in FLOATS:
        yield Question(prove_rounded_once, target)
    for index in range(len(endings())):
        yield Question(prove_ending, index)


def _of_dequantization() -> Iterator[Exhaustion]:
    for code in CODES:
        pairs = (format_named(code).mask + 1) ** 2
        yield Exhaustion(
            wrong_difference, (code,), code, "float64", "code less zero point", pairs
        )  # fmt: skip
    for scale in FLOATS:
        pairs = 128 << format_named(scale).entry.mantissa
        yield Exhaustion(
            wrong_product, (scale,), "differences of 8 bits", "float64", f"times {scale}, exact",
            pairs,
        )  # fmt: skip
    for code, number in DEQUANTIZED:
        pairs = _finite(code) * (format_named(number).max_code)
        yield Exhaustion(
            wrong_dequantized, (code, number), code, number, f"times {number}, rounded once",
            pairs,
        )  # fmt: skip


def _of_blocks() -> Iterator[Exhaustion | Question]:
    scales: dict[Hashable, str] = {}
    codes: dict[Hashable, str] = {}
    for name, ruling in _block_rulings():
        formats = ruling.number, ruling.element, ruling.scale
        if ruling.is_decoding:
            pairs = (ruling.element.mask + 1) * (ruling.scale.mask + 1)
            yield Exhaustion(
                wrong_block_product, (name,), f"{ruling.element.name} by {ruling.scale.name}",
                ruling.number.name, "block products", pairs, name,
            )  # fmt: skip
        elif ruling.number.name == WIDEST:
            scales.setdefault((*formats, ruling.word("scale")), name)
            codes.setdefault(formats, name)
    for number in FLOATS:
        yield Question(prove_decoded, number)
    for name in scales.values():
        yield Question(prove_scale, name)
    for name in codes.values():
        yield Question(prove_codes, name)


def _block_rulings() -> Iterator[tuple[str, BlockRuling]]:
    """Yield the rulings of blocks without a global scale, each with the id of its case."""
    for document in documents().values():
        if document.entry.blocks is not None:
            for edition in editions(document):
                for case in edition.cases():
                    ruling = block_ruling(case)
                    if not ruling.has_global:
                        yield case.id, ruling


def _finite(name: str) -> int:
    """How many patterns of a format are finite numbers."""
    fmt = format_named(name)
    specials = sum(len(codes) for codes in fmt.nan_codes) + 2 * fmt.entry.infinity
    return fmt.mask + 1 - specials


def prove_quantization(
    jobs: int = 1,
    time_limit: float = TIME_LIMIT,
    report: Callable[[Obligation], None] = lambda obligation: None,
) -> list[Obligation]:
    """Prove every statement about quantization and blocks."""
    tasks = [(index, time_limit) for index in range(len(statements()))]
    return prove_in_parallel(_prove, tasks, jobs, report)


def _prove(task: tuple[int, float]) -> Obligation:
    index, time_limit = task
    return statements()[index].prove(time_limit)
