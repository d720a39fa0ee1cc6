"""Small tensors of quantizations: ties near zero and at both ends, zeros, infinities and NaNs.

What they may give comes from the definition in fractions and from the kernels, which must agree. An
answer is allowed also if it only breaks a recommendation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from fractions import Fraction

import numpy as np

from conformance.families.quantization.dynamic import FIXED
from conformance.families.quantization.exact import AllowedResult, dynamic_scale, dynamic_zero_point
from conformance.families.quantization.grading import (
    SIGN_OF_NANS,
    Elements,
    allowed,
    as_code,
    expect_exactly,
)
from conformance.families.quantization.inputs import keeps_ranks, telling_zeros, zero_format
from conformance.families.quantization.kernels import (
    NO_CODE,
    ExpectedCodes,
    codes_of,
    expect,
    nearest,
    quantize,
    spread,
    values_of,
)
from conformance.families.quantization.ruling import Formula, dtypes, formula
from conformance.families.small_tensors import (
    AllowedTensor,
    Alternatives,
    GivenTensor,
    Records,
    SmallRecord,
    agreed,
    allowed_codes,
    integers,
)
from oracles.protocol import Bits
from specs.cases import Case
from specs.formats import Format, format_named, value_of
from specs.model.vocabulary import AXIS, BLOCK, FORM, PRECISION, SATURATE
from specs.operations import SCALE, ZERO, X, Y, operation_of

FloatArray = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

PAGE_NAMES: Mapping[str, Mapping[str, str]] = {
    "onnx-quantize-linear": {SCALE: "y_scale", ZERO: "y_zero_point"},
    "onnx-dequantize-linear": {SCALE: "x_scale", ZERO: "x_zero_point"},
    "onnx-dynamic-quantize-linear": {SCALE: "y_scale", ZERO: "y_zero_point"},
    "webnn-quantize-linear": {X: "input", ZERO: "zeroPoint", Y: "output"},
    "webnn-dequantize-linear": {X: "input", ZERO: "zeroPoint", Y: "output"},
}
"""The names of tensors on a document's page, where they differ from ours."""
SCALES = (Fraction(1, 4), Fraction(1, 3))
"""Scales of floats: a power of two, by which ties are exact, and one that rounds."""
SCALES_OF_INTEGERS = (Fraction(2), Fraction(3))
"""The same for integers that are divided, whose ties are those of an even scale."""
INTEGER_SCALES = (2, 3, 255, (1 << 31) - 1)
EXPONENTS = (-2, 3, -126, 127)
EXPONENTS_OF_INTEGERS = (1, 3, -126, 127)
"""The exponents of scales that are powers of two by their format."""
TIES = (0.5, 1.5, 2.5, -0.5, -1.5, -2.5)
AT_ENDS = (-0.5, 0.0, 0.5, 1.0, 1.5)
"""Steps beyond the largest code, and as many below the lowest, at which quotients lie."""
BEYOND = (2.0**31, -(2.0**31), 2.0**33)
"""Quotients beyond the integers of processors."""
TENSORS = 3
"""How many of the scales have a tensor of their own."""
CHANNEL = 8
"""Elements that share a scale of an axis."""
MOST_CODES = 32
"""The most codes of a dequantized tensor."""
BATCH = 2
"""The length of the first dimension where scales lie along the second."""


def small_tensors(case: Case) -> Records:
    """Return the records of a case, or why there are none."""
    made = _dynamic if operation_of(case) == "dynamic-quantize" else _records
    records = [each for each in made(case) if not each.is_open]
    return Records(records) if records else Records((), "left open by the document")


def _records(case: Case) -> Iterator[SmallRecord]:
    rules = formula(case)
    for tensors in _tensors(case, rules):
        x = tensors[X]
        scale = spread(case, x.shape, tensors[SCALE]).reshape(-1)
        zero = spread(case, x.shape, tensors[ZERO]).reshape(-1) if ZERO in tensors else None
        elements = Elements(x.reshape(-1), scale, zero)
        found, is_recommended = _agreed(case, rules, elements)
        recommended = np.flatnonzero(is_recommended).tolist()
        returned = AllowedTensor(_name(case, Y), rules.target, x.shape, found, recommended)
        yield SmallRecord(_attributes(case), _given(case, tensors), [returned])


def _name(case: Case, name: str) -> str:
    return PAGE_NAMES.get(case.document, {}).get(name, name)


def _attributes(case: Case) -> dict[str, str]:
    found = {
        name: case.mode[name] for name in (FORM, BLOCK, SATURATE, PRECISION) if name in case.mode
    }
    return found | ({"axis": str(AXIS)} if found.get(FORM) in ("axis", "block") else {})


def _given(case: Case, tensors: Mapping[str, Bits]) -> list[GivenTensor]:
    taken = dtypes(case).taken
    return [
        GivenTensor(_name(case, name), format_named(taken[name]), bits.shape, integers(bits))
        for name, bits in tensors.items()
    ]


def _agreed(
    case: Case, rules: Formula, elements: Elements
) -> tuple[list[Alternatives], np.ndarray]:
    """Return what is allowed for elements, and where it is only recommended.

    Raise CastigateError unless the definition and the kernels agree.
    """
    exactly = expect_exactly(rules, elements)
    by_kernels = expect(rules, elements.x, elements.scale, elements.zero)
    agreed(case, Y, _sets(exactly), _sets(by_kernels))
    words = [
        () if is_open else allowed_codes(rules.target, _ranges(rules.target, strong | weaker))
        for is_open, _, strong, weaker in _sets(exactly)
    ]
    return words, exactly.is_recommended & ~exactly.is_open


OfElement = tuple[bool, bool, frozenset[int], frozenset[int]]
"""Whether an element is open, whether it is only recommended, its codes, and its weaker codes."""


def _sets(expected: ExpectedCodes) -> list[OfElement]:
    def at(codes: Sequence[np.ndarray], place: int) -> frozenset[int]:
        return frozenset(int(each[place]) for each in codes) - {NO_CODE}

    found: list[OfElement] = []
    for place, is_open in enumerate(expected.is_open.tolist()):
        if is_open:
            found.append((True, False, frozenset(), frozenset()))
            continue
        strong = at(expected.strong, place)
        weaker = at(expected.weaker, place) - strong
        found.append((False, bool(expected.is_recommended[place]), strong, weaker))
    return found


def _ranges(form: Format, codes: Set[int]) -> Iterator[range]:
    for code in codes:
        if code in SIGN_OF_NANS:
            yield from form.nans(SIGN_OF_NANS[code])
        else:
            yield range(code, code + 1)


def _tensors(case: Case, rules: Formula) -> Iterator[dict[str, Bits]]:
    """Yield the tensors of a case by name."""
    pairs, ranks_kept = _scales_with_zeros(rules), keeps_ranks(case)
    rows = [_telling(rules, *pair) for pair in pairs]
    match case.mode[FORM]:
        case "axis":
            x = np.stack([_few(row, CHANNEL).reshape(BATCH, -1) for row in rows], axis=AXIS)
            along = (1, len(pairs), 1) if ranks_kept else (len(pairs),)
            yield {X: x} | _shaped(rules, pairs, along)
        case "block":
            size = int(case.mode[BLOCK])
            length = 2 * size if ranks_kept else size + 1
            x = np.stack([_few(row, size) for row in rows]).reshape(2, -1)[:, :length]
            yield {X: np.ascontiguousarray(x)} | _shaped(rules, pairs, (2, 2))
        case _:
            for number, (row, pair) in enumerate(zip(rows[:TENSORS], pairs, strict=False)):
                tensors = {X: row} | _shaped(rules, [pair], (1,) if ranks_kept else ())
                if number == 0 and not ranks_kept:
                    del tensors[ZERO]
                yield tensors


def _shaped(
    rules: Formula, pairs: Sequence[tuple[int, int]], shape: tuple[int, ...]
) -> dict[str, Bits]:
    scales, zeros = zip(*pairs, strict=True)
    return {
        SCALE: np.array(scales, rules.scale.storage).reshape(shape),
        ZERO: np.array(zeros, zero_format(rules).storage).reshape(shape),
    }


def _few(row: Bits, number: int) -> Bits:
    """Return this number of elements, evenly from a row, which is repeated if it has fewer."""
    if row.size < number:
        return np.resize(row, number)
    return row[np.arange(number) * row.size // number]


def _scales_with_zeros(rules: Formula) -> list[tuple[int, int]]:
    """Return four scales, each with a zero point: 0, the largest, an odd one far from both, and 3.

    Where the codes are floats or have many bits, it is always 0.
    """
    fmt, codes = rules.scale, zero_format(rules)
    offsets = (0,) * 4
    if len(telling_zeros(codes)) > 1:
        offsets = (0, codes.max_code, 1 << (codes.bits - 1) | 1, 3)
    has_floats = rules.operation == "dequantize" or not rules.source.is_integral
    scales: Sequence[int] = INTEGER_SCALES
    if not fmt.is_integral and not fmt.entry.mantissa:
        exponents = EXPONENTS if has_floats else EXPONENTS_OF_INTEGERS
        scales = [fmt.entry.bias + exponent for exponent in exponents]
    elif not fmt.is_integral:
        both = SCALES if has_floats else SCALES_OF_INTEGERS
        rounded = nearest(fmt, np.array([float(each) for each in both]))
        common = codes_of(fmt, rounded, rounded < 0).tolist()
        scales = [*common, 5, fmt.max_code]
    return [*zip(scales, offsets, strict=True)]


def _telling(rules: Formula, scale: int, zero: int) -> Bits:
    """Return, each once, inputs near the quotients to test with one scale and zero point."""
    source = rules.source
    if rules.operation == "dequantize":
        return np.array(_codes(source), source.storage)
    factor = values_of(rules.scale, np.array([scale]))[0]
    quotients = _quotients(rules.target, zero)
    low, high = (float(value_of(source, code)) for code in (source.lowest_code, source.max_code))
    wanted = np.clip(quotients * factor, low, high)
    near = codes_of(source, nearest(source, wanted), wanted < 0)
    beside = [(near[:1] + step) & source.mask for step in (-1, 1)]
    every = np.concatenate([near, *beside, _specials(source)]).astype(np.uint64)
    return np.array([*dict.fromkeys(every.tolist())], source.storage)


def _quotients(target: Format, zero: int) -> FloatArray:
    """Return quotients at ties near zero and about both ends, and some far beyond these."""
    if target.is_integral:
        offset = float(value_of(target, zero))
        high, low = (
            float(value_of(target, code)) for code in (target.max_code, target.lowest_code)
        )
        steps = np.array(AT_ENDS)
        return np.concatenate([TIES, high - offset + steps, low - offset - steps, BEYOND])
    values = [float(value_of(target, code)) for code in range(target.max_code + 1)]
    smallest, step, largest = values[1], values[-1] - values[-2], values[-1]
    normal, one = 1 << target.entry.mantissa, target.one_code
    inside = [
        *(smallest / 2, -1.5 * smallest, (values[normal - 1] + values[normal]) / 2),
        *(-(values[one] + values[one + 1]) / 2, (values[one + 1] + values[one + 2]) / 2),
    ]
    ends = [largest, largest + step / 4, largest + step / 2, largest + step, 2 * largest + step]
    return np.array([*inside, *ends, *(-each for each in ends)])


def _specials(source: Format) -> Bits:
    """Return the codes of zeros, of the smallest and largest numbers, infinities and NaNs."""
    codes = [0, 1, source.max_code, source.lowest_code]
    if source.is_integral:
        return np.array([*codes, source.mask, (1 << 24) + 1])
    codes += [source.infinity_code, source.nan_codes[0][-1]]
    return np.array([*codes, *(code | source.sign_bit for code in codes)])


def _codes(source: Format) -> list[int]:
    """Return all codes if there are at most ``MOST_CODES``, else the ends and some between."""
    if 1 << source.bits <= MOST_CODES:
        return [*range(1 << source.bits)]
    ends = [0, 1, 2, 3, source.max_code, source.lowest_code, source.mask]
    beside = [each + step for each in (source.max_code, source.lowest_code) for step in (-1, 1)]
    between = [source.mask // 3, source.mask // 3 * 2, source.one_code, source.mask // 5]
    nans = [each[place] for each in source.nan_codes for place in (0, -1)]
    special = (
        [source.infinity_code, source.sign_bit | 1] if not source.is_integral else [1 << 24 | 1]
    )
    every = [*ends, *beside, *between, *nans, *special]
    return [*dict.fromkeys(code & source.mask for code in every)]


def _dynamic(case: Case) -> Iterator[SmallRecord]:
    """Yield a record of each fixed row whose scale the document does not leave open.

    Where several scales are allowed, all results that follow from any of them are allowed.
    """
    rules = formula(case)
    for values in FIXED:
        x = np.array(values, np.float32).view(np.uint32)
        xs = integers(x)
        scales = dynamic_scale(rules, xs)
        if scales.is_open:
            continue
        yield _dynamic_record(case, rules, x, _all_codes(scales))


def _dynamic_record(case: Case, rules: Formula, x: Bits, scales: set[int]) -> SmallRecord:
    codes = integers(x)
    zeros: set[int] = set()
    found: list[set[int]] = [set() for _ in codes]
    is_open = np.full(x.size, not all(0 < scale <= rules.scale.max_code for scale in scales))
    for scale in scales if not is_open.any() else ():
        for zero in _all_codes(dynamic_zero_point(rules, codes, scale)):
            zeros.add(zero)
            every_scale = np.full(x.size, scale, rules.scale.storage)
            every_zero = np.full(x.size, zero, rules.target.storage)
            _agreed(case, rules, Elements(x, every_scale, every_zero))
            for at, code in enumerate(codes):
                due = allowed(rules, code, scale, zero)
                is_open[at] |= due.is_open
                found[at] |= _all_codes(due)
    for at in np.flatnonzero(is_open).tolist():
        found[at].clear()
    given = _given(case, {X: x})
    answers = quantize(case, {X: x})
    forms = {SCALE: rules.scale, ZERO: rules.target, Y: rules.target}
    returned = []
    for name, every in ((SCALE, [scales]), (ZERO, [zeros]), (Y, found)):
        answered = integers(answers[name])
        is_allowed = [not each or code in each for code, each in zip(answered, every, strict=True)]
        agreed(case, name, is_allowed, [True] * len(every))
        words = [
            allowed_codes(forms[name], _ranges(forms[name], each)) if each else () for each in every
        ]
        shape = x.shape if name == Y else ()
        returned.append(AllowedTensor(_name(case, name), forms[name], shape, words))
    return SmallRecord({}, given, returned)


def _all_codes(found: AllowedResult) -> set[int]:
    return {as_code(code) for code in (*found.codes, *found.weaker)}
