"""Small tensors of blocks: at a threshold of the scale, at ties between codes, and without a scale.

What they may give comes from the definition in fractions and from the kernels, which must agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import islice

import numpy as np

from conformance.families.blocks import exact
from conformance.families.blocks.grading import GLOBAL, SCALE, X, Y
from conformance.families.blocks.inputs import GLOBALS, below
from conformance.families.blocks.kernels import (
    QUESTIONS,
    Blocks,
    allowed_codes,
    codes,
    decoded,
    products,
    scales,
    scales_of,
    threshold,
    values_of,
)
from conformance.families.blocks.ruling import BLOCK, RULE, BlockRuling, block_ruling, dtypes
from conformance.families.small_tensors import (
    AllowedTensor,
    GivenTensor,
    Records,
    SmallRecord,
    agreed,
    integers,
)
from conformance.families.small_tensors import allowed_codes as alternatives
from oracles.protocol import Bits, Floats
from specs.cases import Case
from specs.formats import Format, format_named

POWER, *_, UNEVEN = GLOBALS
"""Global scales: a power of two, by which the scale of a block may be a tie, and another one."""
SUBNORMAL = 20
"""2 to minus this is a subnormal number of float16."""
FEW_TIES = 10
"""The ties between codes that lie in a block, each with both neighbors."""
BLOCKS = 2
"""The blocks of a record."""
SmallAnswer = tuple[bool, str, frozenset[int]]
"""Whether an element is open, the question that decides it, and the codes that it may be."""


def small_tensors(case: Case) -> Records:
    """Return the records of a case, or why there are none."""
    ruling = block_ruling(case)
    make = _decodings if ruling.is_decoding else _encodings
    records = [each for each in make(case, ruling) if not each.is_open]
    return Records(records) if records else Records((), "left open by the document")


def _value_of(global_code: int | None) -> float:
    """Return the value of a global scale; 1 if there is none."""
    return 1.0 if global_code is None else float(np.array(global_code, np.uint32).view(np.float32))


def _record(
    case: Case,
    ruling: BlockRuling,
    global_code: int | None,
    tensors: Mapping[str, Bits],
    returned: Mapping[str, Sequence[SmallAnswer]],
    shapes: Mapping[str, tuple[int, ...]],
) -> SmallRecord:
    forms = {name: format_named(dtype) for each in dtypes(case) for name, dtype in each.items()}
    if global_code is not None:
        tensors = {**tensors, GLOBAL: np.array(global_code, np.uint32)}
    attributes = {name: case.mode[name] for name in (RULE, BLOCK) if name in case.mode}
    return SmallRecord(
        attributes,
        [
            GivenTensor(name, forms[name], bits.shape, integers(bits))
            for name, bits in tensors.items()
        ],
        [
            AllowedTensor(
                name,
                forms[name],
                shapes[name],
                [
                    () if is_open else alternatives(forms[name], _ranges(ruling, forms[name], each))
                    for is_open, _, each in answers
                ],
                [at for at, each in enumerate(answers) if _is_recommended(ruling, each)],
            )
            for name, answers in returned.items()
        ],
    )


def _ranges(ruling: BlockRuling, form: Format, codes_allowed: frozenset[int]) -> Iterator[range]:
    """Yield the codes that are allowed; of what blocks decode to, one NaN stands for all."""
    for code in codes_allowed:
        if ruling.is_decoding and any(code in nans for nans in form.nan_codes):
            yield from form.nan_codes
        else:
            yield range(code, code + 1)


def _is_recommended(ruling: BlockRuling, answer: SmallAnswer) -> bool:
    is_open, question, _ = answer
    return not is_open and any(
        each == question and level == "recommended" for each, level in ruling.levels.items()
    )


def _answers(found: Blocks, every: Sequence[Bits]) -> list[SmallAnswer]:
    """Return what the kernels allow for each element; ``every`` has arrays of allowed codes."""
    rows = zip(*(each.reshape(-1).tolist() for each in every), strict=True)
    return [
        (is_open, QUESTIONS[asked], frozenset() if is_open else frozenset(row))
        for is_open, asked, row in zip(
            found.is_open.reshape(-1).tolist(), found.asked.reshape(-1).tolist(), rows, strict=True
        )
    ]


def _encodings(case: Case, ruling: BlockRuling) -> Iterator[SmallRecord]:
    """Yield a record for every two blocks; the first two lie in one row.

    These two have two records if there is a global scale.
    """
    global_code = UNEVEN if ruling.has_global else None
    blocks = [*_blocks(ruling, _value_of(global_code))]
    yield _encoding(case, ruling, global_code, np.stack(blocks[:BLOCKS]).reshape(1, -1))
    for at in range(BLOCKS, len(blocks), BLOCKS):
        yield _encoding(case, ruling, global_code, np.stack(blocks[at : at + BLOCKS]))
    if ruling.has_global:
        first = islice(_blocks(ruling, _value_of(POWER)), BLOCKS)
        yield _encoding(case, ruling, POWER, np.stack([*first]))


def _encoding(case: Case, ruling: BlockRuling, global_code: int | None, x: Bits) -> SmallRecord:
    """Return the record of numbers; where the scale is open, so are the codes of its block."""
    whole = _value_of(global_code)
    parts = Fraction(whole)
    rows = x.reshape(-1, ruling.size).tolist()
    found = scales(ruling, x, whole)
    scale: list[SmallAnswer] = [
        (code is None, question, frozenset() if code is None else frozenset({code}))
        for code, question in (exact.scale_of(ruling, row, parts) for row in rows)
    ]
    agreed(case, SCALE, scale, _answers(found, [found.codes]))
    # Where the scale is open, an ordinary one shows whether both ways still agree on the codes.
    chosen = np.where(found.is_open, ruling.scale.one_code, found.codes).astype(found.codes.dtype)
    of_codes = codes(ruling, x, chosen, whole)
    y: list[SmallAnswer] = []
    for row, one in zip(rows, chosen.reshape(-1).tolist(), strict=True):
        for each in exact.codes_of(ruling, row, one, parts):
            y.append((not each.allowed, each.question, frozenset(each.allowed)))
    agreed(case, Y, y, _answers(of_codes, allowed_codes(ruling, of_codes)))
    for at, (is_open, _, _) in enumerate(scale):
        if is_open:
            start = at * ruling.size
            y[start : start + ruling.size] = [(True, "scale", frozenset())] * ruling.size
    shapes = {SCALE: found.codes.shape, Y: x.shape}
    return _record(case, ruling, global_code, {X: x}, {SCALE: scale, Y: y}, shapes)


def _blocks(ruling: BlockRuling, whole: float) -> Iterator[Bits]:
    """Yield blocks: on both sides of the scale's threshold, and those with special numbers."""
    number = ruling.number
    below_it, at_it = _beside_threshold(ruling, whole)
    ordinary = _with_ties(ruling, whole, _smaller(ruling, at_it), ruling.size - 1)
    smallest = int(below(number, np.array([_smallest_largest(ruling, whole)]))[0])
    nan, infinite = ordinary.copy(), ordinary.copy()
    nan[ruling.size // 2] = number.nan_codes[0][-1]
    infinite[-1] = number.infinity_code | number.sign_bit
    zeros = np.zeros_like(ordinary)
    zeros[1::2] = number.sign_bit
    yield _with_ties(ruling, whole, at_it, 0)
    yield _with_ties(ruling, whole, below_it, ruling.size // 2)
    yield ordinary
    yield nan
    yield zeros
    yield _with_ties(ruling, whole, max(smallest, 1), 1)
    yield infinite
    yield _with_ties(ruling, whole, number.max_code, 2)


def _smaller(ruling: BlockRuling, code: int) -> int:
    """Return the code of a number with the same significand that is some powers of two smaller.

    If scales are powers of two and the numbers reach there, it is subnormal in float16.
    """
    number = ruling.number
    field = code >> number.entry.mantissa
    if not _is_power(ruling):
        apart = 3
    elif number.name == "float16":
        apart = 9
    else:
        apart = field - number.entry.bias + SUBNORMAL
    return code - (apart << number.entry.mantissa)


def _beside_threshold(ruling: BlockRuling, whole: float) -> tuple[int, int]:
    """Return two neighboring largest magnitudes of blocks, between which the scale changes."""
    word = ruling.word("scale")
    if ruling.scale.entry.mantissa == 0:
        at = threshold(ruling.element, word).magnitude
    else:
        one, values = ruling.scale.one_code, values_of(ruling.scale)
        bound = values[one] if word in ("round-up", "round-down") else values[one : one + 2].mean()
        at = float(bound * values_of(ruling.element)[ruling.element.max_code] * whole)
    [code] = below(ruling.number, np.array([at])).tolist()
    near = np.array([[code - 1], [code], [code + 1]], ruling.number.storage)
    lowest, middle, _ = scales(ruling, near, whole).codes.reshape(-1).tolist()
    return (code - 1, code) if lowest != middle else (code, code + 1)


def _smallest_largest(ruling: BlockRuling, whole: float) -> float:
    """Return a largest magnitude of which the smallest scale is the scale, or nearly."""
    smallest = float(decoded(ruling.scale, np.array([0 if _is_power(ruling) else 1]))[0])
    return smallest * whole * float(values_of(ruling.element)[ruling.element.max_code])


def _is_power(ruling: BlockRuling) -> bool:
    return ruling.scale.entry.mantissa == 0


def _with_ties(ruling: BlockRuling, whole: float, largest: int, place: int) -> Bits:
    """Return a block of ties between codes and their neighbors, of both signs in turn.

    The number of the pattern ``largest`` is at ``place``, and no other is larger.
    """
    number = ruling.number
    magnitude = decoded(number, np.array([largest]))
    scale = scales_of(ruling, magnitude, whole).codes
    factor = float(decoded(ruling.scale, scale)[0]) * whole
    values = values_of(ruling.element)[: ruling.element.max_code + 1]
    ties: Floats = (values[1:] + values[:-1]) / 2 * factor
    ties = ties[(ties < magnitude[0]) & (ties > 0)]
    picked = np.unique(np.linspace(0, max(ties.size - 1, 0), FEW_TIES).astype(np.intp))
    near = below(number, ties[picked]) if ties.size else np.array([largest])
    beside = np.concatenate([near, near + 1, np.maximum(near - 1, 0)])
    block = np.resize(beside[beside <= largest], ruling.size)
    block[1::2] |= number.sign_bit
    block[place] = largest | (number.sign_bit if place % 2 else 0)
    found: Bits = block.astype(number.storage)
    return found


def _decodings(case: Case, ruling: BlockRuling) -> Iterator[SmallRecord]:
    """Yield a record for every two scales, with all codes of few, or the ends and some between."""
    scale, element = ruling.scale, ruling.element
    one, nan = scale.one_code, scale.max_code + 1
    apart = 9 << scale.entry.mantissa
    small = max(one - apart, 1)
    pairs = ((one, nan), (0, scale.max_code), (small, min(one + apart, scale.max_code - 1)))
    x = np.resize(np.array(_codes(element), element.storage), (BLOCKS, ruling.size))
    global_code = UNEVEN if ruling.has_global else None
    for pair in pairs:
        given = np.array(pair, scale.storage).reshape(BLOCKS, 1)
        yield _decoding(case, ruling, global_code, x, given)


def _codes(element: Format) -> list[int]:
    """Return codes of an element: all of at most six bits, or the ends and some between."""
    if element.bits <= 6:
        return [*range(1 << element.bits)]
    ends = {
        0,
        1,
        2,
        element.max_code - 1,
        element.max_code,
        element.max_code + 1,
        element.mask >> 1,
    }
    some = ends | {element.one_code, element.one_code + 1, *range(3, element.max_code, 13)}
    sign = 1 << (element.bits - 1)
    return sorted({code ^ change for code in some for change in (0, sign)})


def _decoding(
    case: Case, ruling: BlockRuling, global_code: int | None, x: Bits, scale: Bits
) -> SmallRecord:
    whole = _value_of(global_code)
    found = products(ruling, x, scale, whole)
    y: list[SmallAnswer] = []
    for row, [one] in zip(x.tolist(), scale.tolist(), strict=True):
        for code in row:
            due = exact.product_of(ruling, code, one, Fraction(whole))
            y.append((not due.allowed, due.question, frozenset(due.allowed)))
    agreed(case, Y, y, _answers(found, [found.codes]))
    return _record(case, ruling, global_code, {X: x, SCALE: scale}, {Y: y}, {Y: x.shape})
