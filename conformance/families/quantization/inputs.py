"""Scales, zero points and inputs that tell one way of quantizing from another.

Of a quantization the inputs lie at every tie between two codes, with both neighbors, and where the
codes end; of a dequantization they are codes. Scales and zero points are few, because each request
costs a call. Where scales lie along an axis or in blocks, all of them are in one tensor.

A row of a few hundred elements is quantized by one thread, and by the loop for contiguous memory.
Real weights are other tensors: of many channels, of several dimensions, of long rows of blocks. So
further requests are drawn from the space of tensors (``conformance/judging/space.py``), in which
the number of channels and of blocks is one more axis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from itertools import accumulate
from math import prod
from random import Random

import numpy as np
from numpy.typing import NDArray

from conformance.families.quantization.grading import Elements
from conformance.families.quantization.kernels import codes_of, nearest, values_of
from conformance.families.quantization.ruling import Formula, formula
from conformance.judging.probe import Probe
from conformance.judging.space import drawn_memory, drawn_shape, log_uniform
from oracles.protocol import Bits
from specs.cases import Case
from specs.formats import EXHAUSTIVE_BITS, Format, value_of
from specs.loader import document_named
from specs.model.vocabulary import AXIS, BLOCK_SIZE, FORM

SCALES: tuple[Fraction, ...] = (
    Fraction(1, 3), Fraction(1, 10), Fraction(1, 4), Fraction(1, 255), Fraction(77, 100),
)  # fmt: skip
"""Scales as people write them, rounded to the dtype of the scale; very small and large ones
follow."""
MORE_SCALES: tuple[Fraction, ...] = (
    Fraction(1), Fraction(1, 49), Fraction(7, 5), Fraction(2, 3), Fraction(3), Fraction(1, 127),
)  # fmt: skip
INTEGER_SCALES = (3, 7, 1, 2, 255, 49, 1 << 20, (1 << 31) - 1, 10, 6, 33)
EXPONENT_SCALES = (-2, 0, -7, 3, -126, 127, 1, -1, 5, -24, -8)
"""The exponents of scales that are powers of two by their format."""
TENSORS = 7
"""The number of scales in the form `tensor`, each in a request of its own."""
SHORTEST = 1
"""The length of the last block of a row: so few that blocks of equal length would be shorter."""
MOST_TIES = 40
"""About the most codes beside whose ties inputs lie."""
SEED = 46
DRAWN = 32
"""The number of quotients that are drawn at random for each scale, about evenly among the codes."""
BEYOND_INTEGERS = 2.0 ** np.array([31, 32, 63, 64])
"""Quotients beyond the integers of processors, before they are clamped to codes of fewer bits."""
VECTORS = (8, 4)
"""The numbers of channels that a loop may take at once; the listed request has a rest of both."""
MOST_CODES = 1 << 10
"""The number of random codes of a wide format that are dequantized."""


@dataclass(frozen=True, eq=False)
class Given:
    """The tensors of one request by name, and each element's own scale and zero point.

    ``scales`` and ``zeros`` have the shape of ``x``; ``zeros`` is None without zero points.
    A drawn tensor, which kernels may treat otherwise than a short row, has ``where``, its words,
    and ``drawn``, which says what lies at each of its places, unless one x has several scales.
    """

    tensors: dict[str, Bits]
    scales: Bits
    zeros: Bits | None
    where: str = ""
    drawn: Drawn | None = None


@dataclass(frozen=True, eq=False)
class Drawn:
    """The elements from which a formula's tensors are drawn, and which of them lies at each place.

    So what a formula expects is computed once for ``elements``, not for each of a tensor's places.
    """

    elements: Elements
    picks: NDArray[np.intp]


def telling_requests(case: Case, *, has_whole: bool = True) -> tuple[Given, ...]:
    """Return the listed requests of a case of quantize or dequantize, those that are not drawn.

    If ``has_whole``, and the form is `tensor`, one of them has all patterns of a source of up to 16
    bits, under the conditions of ``telling_inputs``.
    """
    return _requests(formula(case), case.mode[FORM], keeps_ranks(case), has_whole)


def tensors_of_element(case: Case, x: int, scale: int, zero: int | None) -> dict[str, Bits]:
    """Return the tensors of a single element, by name, in the shapes of the case's form.

    There is no tensor of zero points if ``zero`` is None.
    """
    rules, form = formula(case), case.mode[FORM]
    x_shape = {"tensor": (1,), "axis": (1, 1, 1), "block": (1, 1)}[form]
    shape = x_shape
    if not keeps_ranks(case):
        shape = {"tensor": (), "axis": (1,), "block": (1, 1)}[form]
    tensors = {
        "x": np.full(x_shape, x, rules.source.storage),
        "scale": np.full(shape, scale, rules.scale.storage),
    }
    if zero is not None:
        tensors["zero"] = np.full(shape, zero, zero_format(rules).storage)
    return tensors


def keeps_ranks(case: Case) -> bool:
    """Whether the document wants scales of the tensor's rank, and always a zero point."""
    entry = document_named(case.document).entry.quantization
    assert entry is not None
    return entry.ranks == "kept"


@lru_cache(64)
def _requests(rules: Formula, form: str, keeps_ranks: bool, has_whole: bool) -> tuple[Given, ...]:
    pairs = _scales_with_zeros(rules)
    match form:
        case "axis":
            return (_along_axis(rules, pairs, keeps_ranks),)
        case "block":
            return (_in_blocks(rules, pairs, keeps_ranks),)
    return tuple(_of_tensors(rules, pairs[:TENSORS], keeps_ranks, has_whole))


def _scales_with_zeros(rules: Formula) -> list[tuple[int, int]]:
    zeros = telling_zeros(zero_format(rules))
    scales = enumerate(telling_scales(rules.scale))
    return [(scale, zeros[number % len(zeros)]) for number, scale in scales]


def zero_format(rules: Formula) -> Format:
    """Return the format of zero points, which is that of the codes."""
    return rules.source if rules.operation == "dequantize" else rules.target


def _of_tensors(
    rules: Formula, pairs: Sequence[tuple[int, int]], keeps_ranks: bool, has_whole: bool
) -> Iterator[Given]:
    """Yield a request for each pair of a scale and a zero point, which all its elements share.

    The first one has no zero point, unless the document always wants one.
    """
    shape = (1,) if keeps_ranks else ()
    for number, (scale, zero) in enumerate(pairs):
        x = telling_inputs(rules, scale, zero, is_whole=has_whole and number == 1)
        tensors = {"x": x, "scale": np.full(shape, scale, rules.scale.storage)}
        scales = np.full(x.shape, scale, rules.scale.storage)
        if number == 0 and not keeps_ranks:
            yield Given(tensors, scales, None)
            continue
        storage = zero_format(rules).storage
        tensors["zero"] = np.full(shape, zero, storage)
        yield Given(tensors, scales, np.full(x.shape, zero, storage))


def _along_axis(rules: Formula, pairs: Sequence[tuple[int, int]], keeps_ranks: bool) -> Given:
    """Return a request of three dimensions whose scales lie along the middle one.

    The first dimension has the same length, so that a backend that takes one for the other gives
    answers instead of an error.
    """
    count = len(pairs)
    rows = [telling_inputs(rules, *pair, is_whole=False) for pair in pairs]
    inner = max(-(-row.size // count) for row in rows)
    x = np.stack([np.resize(row, (count, inner)) for row in rows], axis=AXIS)
    scale, zero = _columns(rules, pairs)
    shape = (1, count, 1)
    along = shape if keeps_ranks else (count,)
    tensors = {"x": x, "scale": scale.reshape(along), "zero": zero.reshape(along)}
    scales, zeros = (np.broadcast_to(each.reshape(shape), x.shape) for each in (scale, zero))
    return Given(tensors, scales, zeros)


def _in_blocks(rules: Formula, pairs: Sequence[tuple[int, int]], keeps_ranks: bool) -> Given:
    """Return a request of rows of blocks, each row with its scales in another order.

    The last block of a row is shorter, unless the document wants blocks to divide the row.
    """
    rows = [telling_inputs(rules, *pair, is_whole=False) for pair in pairs]
    height = max(-(-row.size // BLOCK_SIZE) for row in rows)
    values = np.stack([np.resize(row, (height, BLOCK_SIZE)) for row in rows])
    place = np.arange(height)[:, None]
    # The last block of a row repeats the scale of the first, for it is cut.
    of_block = (np.arange(len(pairs) + 1) + place) % len(pairs)
    x = values[of_block, place].reshape(height, -1)
    length = x.shape[AXIS] - (0 if keeps_ranks else BLOCK_SIZE - SHORTEST)
    x = np.ascontiguousarray(x[:, :length])
    scale, zero = (each[of_block] for each in _columns(rules, pairs))
    scales, zeros = (np.repeat(each, BLOCK_SIZE, axis=AXIS)[:, :length] for each in (scale, zero))
    return Given({"x": x, "scale": scale, "zero": zero}, scales, zeros)


def _columns(rules: Formula, pairs: Sequence[tuple[int, int]]) -> tuple[Bits, Bits]:
    scale, zero = zip(*pairs, strict=True)
    return np.array(scale, rules.scale.storage), np.array(zero, zero_format(rules).storage)


@lru_cache
def telling_scales(fmt: Format) -> tuple[int, ...]:
    """Return patterns of positive scales: common ones, a very small one, the largest, and more."""
    if fmt.is_integral:
        return INTEGER_SCALES
    if not fmt.entry.mantissa:
        return tuple(fmt.entry.bias + exponent for exponent in EXPONENT_SCALES)
    ends = (5, fmt.max_code, (1 << fmt.entry.mantissa) + 1)
    common, more = (_patterns(fmt, values) for values in (SCALES, MORE_SCALES))
    return (*common, *ends, *more)


def _patterns(fmt: Format, values: Sequence[Fraction]) -> list[int]:
    rounded = nearest(fmt, np.array([float(value) for value in values]))
    return [int(code) for code in codes_of(fmt, rounded, rounded < 0)]


@lru_cache
def telling_zeros(fmt: Format) -> tuple[int, ...]:
    """Return patterns of zero points: 0, odd ones, both ends; for floats and wide integers 0."""
    if not fmt.is_integral or fmt.bits > EXHAUSTIVE_BITS:
        return (0,)
    middle = 1 << (fmt.bits - 1)
    return tuple(dict.fromkeys((0, 1, fmt.max_code, fmt.lowest_code, fmt.mask & (middle | 1), 3)))


@lru_cache(256)
def telling_inputs(rules: Formula, scale: int, zero: int, *, is_whole: bool) -> Bits:
    """Return the patterns of inputs for one scale and zero point.

    If ``is_whole``, and scale and precision have the dtype of the numbers, these are all patterns
    of a source of up to 16 bits. A dequantization of codes of up to 8 bits always has all of these.
    """
    source = rules.source
    if rules.operation == "dequantize":
        return _telling_codes(source, is_whole and rules.scale == rules.target)
    is_plain = rules.scale == source == rules.precision
    if is_whole and is_plain and source.bits <= EXHAUSTIVE_BITS:
        return np.arange(1 << source.bits, dtype=source.storage)
    factor = values_of(rules.scale, np.array([scale]))[0]
    offset = values_of(rules.target, np.array([zero]))[0] if rules.target.is_integral else 0.0
    wanted = (_steps(rules.target) - offset) * factor
    # Each scale gets other quotients, so that all scales together meet most codes of eight bits.
    chance = np.random.default_rng((SEED, scale, zero))
    drawn = chance.uniform(wanted.min(), wanted.max(), DRAWN)
    near = _beside(source, np.concatenate([wanted, drawn]))
    if rules.target.is_integral:
        beyond = np.concatenate([BEYOND_INTEGERS, -BEYOND_INTEGERS]) * factor
        near = np.concatenate([near, _beside(source, beyond)])
    return np.unique(np.concatenate([near, _specials(source)])).astype(source.storage)


def _telling_codes(source: Format, is_whole: bool) -> Bits:
    if source.bits <= EXHAUSTIVE_BITS // 2 or (is_whole and source.bits <= EXHAUSTIVE_BITS):
        return np.arange(1 << source.bits, dtype=source.storage)
    drawn = np.random.default_rng(SEED).integers(0, source.mask, MOST_CODES, endpoint=True)
    powers = [1 << exponent for exponent in range(source.bits)]
    ends = [0, source.max_code, source.lowest_code, source.mask]
    beside = [(each + step) & source.mask for each in (*powers, *ends) for step in (-1, 0, 1)]
    return np.unique(np.concatenate([drawn, beside])).astype(source.storage)


@lru_cache
def _steps(target: Format) -> Bits:
    """Return quotients that equal a code of a target or lie halfway between two.

    Some lie beyond both ends. If there are many codes, only some of them are taken.
    """
    if target.is_integral:
        low, high = (int(value_of(target, code)) for code in (target.lowest_code, target.max_code))
        codes = np.unique([*range(low - 2, low + 3), *range(high - 2, high + 3)])
        if high - low > MOST_TIES:
            few = np.random.default_rng(SEED).integers(low, high, MOST_TIES - 16)
            codes = np.unique([*codes, *few, *(each for each in range(-4, 4) if each >= low)])
        else:
            codes = np.arange(low - 2, high + 3)
        return np.concatenate([codes, codes + 0.5])
    magnitudes = [float(value_of(target, code)) for code in range(target.max_code + 1)]
    largest, step = magnitudes[-1], magnitudes[-1] - magnitudes[-2]
    codes = np.array([*magnitudes, largest + step, largest + 2 * step])
    if codes.size > MOST_TIES:
        few = np.random.default_rng(SEED).choice(codes.size - 1, MOST_TIES - 8, replace=False)
        kept = np.unique([*few, 0, 1, *range(codes.size - 6, codes.size - 1)])
    else:
        kept = np.arange(codes.size - 1)
    points = np.concatenate([codes[kept], (codes[kept] + codes[kept + 1]) / 2])
    return np.concatenate([points, -points])


def _beside(source: Format, values: Bits) -> Bits:
    """Return the source's patterns nearest to some values, and those next to each on both sides."""
    low, high = (float(value_of(source, code)) for code in (source.lowest_code, source.max_code))
    limited = np.clip(values, low, high)
    codes = codes_of(source, nearest(source, limited), limited < 0)
    return np.unique([(codes + step) & source.mask for step in (0, -1, 1)])


@lru_cache
def _specials(source: Format) -> Bits:
    """Return the patterns of zeros, of the smallest and largest numbers, infinities and NaNs.

    Instead of infinities and NaNs, an integer source has numbers beside 2^24 and the pattern of all
    ones.
    """
    sign = source.sign_bit
    codes = [0, 1, source.max_code, source.lowest_code]
    if source.is_integral:
        odd = (1 << 24) + 1
        return np.array([*codes, source.mask, odd, -odd & source.mask])
    codes += [1 << source.entry.mantissa, source.infinity_code, source.nan_codes[0][-1]]
    return np.array([*codes, *(code | sign for code in codes)])


Spread = Callable[[Bits], Bits]
"""Gives each element of a tensor its scale or zero point, from the tensor of these."""


def layouts(case: Case, given: Given) -> dict[str, Elements]:
    """Return a request's elements in a row, with the scales that each layout would give them.

    The keys name wrong layouts, such as ``takes-one-scale``; the right one has the key "" here. A
    drawn tensor has only this one, because the scales of others need not fit its shape.
    """
    found = {"": _elements(given, given.scales, given.zeros)}
    if given.where:
        return found
    for name, spread in _others(case, given):
        scales = spread(given.tensors["scale"])
        zeros = spread(given.tensors["zero"]) if "zero" in given.tensors else None
        found[name] = _elements(given, scales, zeros)
    if given.zeros is not None and case.mode[FORM] == "axis":
        # Zero points of 4 bits that share a byte, taken in the other order.
        zeros = given.tensors["zero"].reshape(-1).copy()
        pairs = zeros[: zeros.size // 2 * 2].reshape(-1, 2)
        pairs[:] = pairs[:, ::-1].copy()
        along = np.broadcast_to(_along(given.tensors["x"].shape, zeros), given.scales.shape)
        found["exchanges-pairs-of-zero-points"] = _elements(given, given.scales, along)
    return found


def _elements(given: Given, scales: Bits, zeros: Bits | None) -> Elements:
    zero = None if zeros is None else zeros.reshape(-1)
    return Elements(given.tensors["x"].reshape(-1), scales.reshape(-1), zero)


def _along(shape: Sequence[int], values: Bits) -> Bits:
    """Return values along the axis, in as many dimensions as a shape has."""
    return values.reshape(1, -1, *[1] * (len(shape) - 2))


def _others(case: Case, given: Given) -> Iterator[tuple[str, Spread]]:
    shape, count = given.tensors["x"].shape, given.tensors["scale"].size
    if case.mode[FORM] == "axis":
        yield "takes-one-scale", lambda values: np.broadcast_to(values.reshape(-1)[0], shape)
        first = (count, *[1] * (len(shape) - 1))
        yield "takes-another-axis", lambda values: np.broadcast_to(values.reshape(first), shape)
        for size in VECTORS:
            if size < count and count % size:
                channels = np.minimum(np.arange(count), count // size * size - 1)
                yield f"repeats-scales-after-vectors-of-{size}", partial(_picked, shape, channels)
    if case.mode[FORM] == "block":
        columns = given.tensors["scale"].shape[AXIS]
        length = shape[AXIS]
        size = -(-length // columns)
        place = np.arange(length)
        if size != BLOCK_SIZE:
            yield "takes-blocks-of-another-size", lambda values: values[:, place // size]
        yield "repeats-scales-in-turn", lambda values: values[:, place % columns]
        if length % BLOCK_SIZE:
            kept = np.minimum(place // BLOCK_SIZE, columns - 2)
            yield "takes-the-scale-before-in-short-blocks", lambda values: values[:, kept]
            flat = np.minimum(np.arange(prod(shape)) // BLOCK_SIZE, count - 1).reshape(shape)
            yield "runs-blocks-across-rows", lambda values: values.reshape(-1)[flat]


def _picked(shape: Sequence[int], channels: NDArray[np.intp], values: Bits) -> Bits:
    return np.broadcast_to(_along(shape, values.reshape(-1)[channels]), shape)


DRAWS = 3
"""Drawn tensors of a case, at the tier quick."""
MORE_BLOCKS = 16
"""The largest factor by which the axis of a drawn shape is lengthened, in blocks."""
SHORT = 0.5
"""The share of drawn tensors of blocks whose last block is shorter."""


def drawn_requests(case: Case, seed: int, number: int) -> Iterator[Given]:
    """Draw a ``number`` of tensors that are not empty, of any shape and layout the form allows.

    An axis has a scale for each of its indices. Blocks are whole, or the last one of a row is
    shorter, unless the document wants blocks to divide the row.
    """
    rules, form, ranks_kept = formula(case), case.mode[FORM], keeps_ranks(case)
    # Scales are those of the listed requests, in whose rows each element has an answer, too.
    pairs = _scales_with_zeros(rules)[: TENSORS if form == "tensor" else None]
    chance = Random(f"{case.id}/{seed}")
    least_rank, unit = {"tensor": (0, 1), "axis": (AXIS + 1, 1), "block": (AXIS + 1, BLOCK_SIZE)}[
        form
    ]
    for _ in range(number):
        shape = [*drawn_shape(chance, least_rank, unit=unit, may_be_empty=False)]
        if form == "block":
            is_short = not ranks_kept and chance.random() < SHORT
            shape[AXIS] *= log_uniform(chance, 1, MORE_BLOCKS) * unit
            shape[AXIS] -= chance.randrange(1, unit) if is_short else 0
        probe = drawn_memory(chance, tuple(shape))
        yield _in_tensor(rules, form, pairs, ranks_kept, probe, chance)


def _in_tensor(
    rules: Formula,
    form: str,
    pairs: Sequence[tuple[int, int]],
    ranks_kept: bool,
    probe: Probe,
    chance: Random,
) -> Given:
    """Return a drawn request: a tensor in the memory layout ``probe``, its scales and zero points.

    ``pairs`` has patterns of a scale and its zero point; the request takes them in turn, from a
    random one on. ``form`` says whether there is one scale, one for each index of the axis, or one
    for each block. If ``ranks_kept``, scales and zero points have the tensor's rank. ``chance``
    draws each element from the inputs that tell about its scale.
    """
    shape, rank = probe.shape, len(probe.shape)
    lengths = [1] * rank
    if form != "tensor":
        lengths[AXIS] = shape[AXIS]
    if form == "block":
        lengths = [*shape]
        lengths[AXIS] = -(-shape[AXIS] // BLOCK_SIZE)
    # By scale: the number of its pair.
    first = chance.randrange(len(pairs))
    scaled = (first + np.arange(prod(lengths)).reshape(lengths)) % len(pairs)
    wide = np.repeat(scaled, BLOCK_SIZE, AXIS)[:, : shape[AXIS]] if form == "block" else scaled
    of_element = np.broadcast_to(wide, shape)
    elements, starts = _elements_to_draw(rules, tuple(pairs))
    picks = np.zeros(shape, np.intp)
    draw = np.random.default_rng(chance.randrange(1 << 32))
    for number in np.unique(scaled).tolist():
        mask = of_element == number
        start, end = starts[number : number + 2]
        picks[mask] = start + draw.choice(end - start, mask.sum())
    picks = probe.repeated(picks)
    own = {"tensor": (), "axis": (-1,), "block": lengths}[form]
    scale, zero = (values[scaled] for values in _columns(rules, pairs))
    # Where there is more than one scale, their tensor lies apart in half of the draws.
    tensors = {"x": probe.laid(elements.x[picks])}
    step = 1 + chance.randrange(2)
    for name, values in (("scale", scale), ("zero", zero)):
        due = values.reshape(lengths if ranks_kept else own)
        tensors[name] = Probe(due.shape, steps=(step,) * due.ndim).laid(due)
    scales, zeros = (values[of_element] for values in _columns(rules, pairs))
    has_own_scales = form == "tensor" or 0 not in probe.effective_steps
    drawn = Drawn(elements, picks.reshape(-1)) if has_own_scales else None
    return Given(tensors, scales, zeros, str(probe), drawn)


@lru_cache(64)
def _elements_to_draw(
    rules: Formula, pairs: tuple[tuple[int, int], ...]
) -> tuple[Elements, tuple[int, ...]]:
    """Return all inputs that tell about pairs of a scale and a zero point, one pair after another.

    Also return where the inputs of each pair begin, and at last how many there are.
    """
    rows = [telling_inputs(rules, *pair, is_whole=False) for pair in pairs]
    sizes = [row.size for row in rows]
    scales, zeros = (np.repeat(values, sizes) for values in _columns(rules, pairs))
    return Elements(np.concatenate(rows), scales, zeros), (0, *accumulate(sizes))
