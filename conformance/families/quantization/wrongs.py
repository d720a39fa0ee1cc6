"""Rows of mistakes that backends may make when they quantize, and the search among the rows.

A row differs from the formula in one thing. Two or three are joined where nothing simpler explains
the answers. Rows explain answers if they give every one of them, right or wrong. The treatment of
infinities and NaNs is independent of this. So it is found from the answers to these alone, and
added to any other row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from conformance.families.quantization.inputs import VECTORS
from conformance.families.quantization.kernels import NAN_CODES, expect, values_of
from conformance.families.quantization.ranges import RANGES
from conformance.families.quantization.ruling import Formula
from conformance.families.quantization.simulation import (
    UNSETTLED,
    Deviation,
    QuotientRounding,
    code_of_cast,
    simulate,
)
from oracles.protocol import Bits
from reports.grading.allowed_answers import is_nan
from reports.problems import Problem, WrongTensor
from specs.cases import Case
from specs.formats import Format
from specs.model.step_entry import FormulaStep

FEW = 128
"""The size of each half of the sample on which a way is tried first."""


class Asked(NamedTuple):
    """A formula, the names of layouts that ways may assume, and whether the case names a precision.

    If it names one, a backend that divides in the scale's precision ignores it.
    """

    rules: Formula
    layouts: frozenset[str]
    names_precision: bool

    @property
    def is_decoding(self) -> bool:
        """Whether codes become numbers."""
        return self.rules.operation == "dequantize"

    @property
    def has_integers(self) -> bool:
        """Whether codes are integers, and not small floats."""
        return (self.rules.source if self.is_decoding else self.rules.target).is_integral


@dataclass(frozen=True)
class Wrong:
    """A mechanism: its name, the sentence of a finding, its way, and the formulas it applies to."""

    name: str
    says: str
    way: Deviation
    applies: Callable[[Asked], bool] = lambda _: True


def _in_layout(name: str, says: str) -> Wrong:
    return Wrong(name, says, Deviation(layout=name), lambda asked: name in asked.layouts)


def _in_precision(precision: str) -> Iterator[Wrong]:
    """Yield the rows of a backend that computes in this precision, where another one is due.

    If the case names a precision, and this one is the scale's, the row says that it is ignored.
    """

    def ignores(asked: Asked) -> bool:
        return asked.names_precision and asked.rules.scale.name == precision

    def is_other(asked: Asked) -> bool:
        return not ignores(asked) and asked.rules.precision.name != precision

    way, says = Deviation(precision=precision), f"in {precision}, not in the precision that is due"
    yield Wrong("ignores-precision", "ignores `precision` when it quantizes", way, ignores)
    yield Wrong(
        f"divides-in-{precision}",
        f"divides {says}",
        way,
        lambda asked: _encodes(asked) and is_other(asked),
    )
    yield Wrong(
        f"multiplies-in-{precision}",
        f"multiplies {says}",
        way,
        lambda asked: _decodes(asked) and is_other(asked),
    )


def _decodes(asked: Asked) -> bool:
    return asked.is_decoding


def _decodes_to_floats(asked: Asked) -> bool:
    return asked.is_decoding and not asked.rules.target.is_integral


def _encodes(asked: Asked) -> bool:
    return not asked.is_decoding


def _encodes_floats(asked: Asked) -> bool:
    return not asked.is_decoding and not asked.has_integers


def _encodes_integers(asked: Asked) -> bool:
    return not asked.is_decoding and asked.has_integers


def _encodes_signed(asked: Asked) -> bool:
    return _encodes_integers(asked) and asked.rules.target.is_signed


def _divides_integers(asked: Asked) -> bool:
    """Whether integers become small floats: then quotients may be infinite, but no ``x`` is."""
    return _encodes_floats(asked) and asked.rules.source.is_integral


OF_INFINITIES = (
    Wrong(
        "saturates-infinities",
        "turns infinities into the largest values when it quantizes",
        Deviation(infinities="saturated"),
        _divides_integers,
    ),
    Wrong(
        "makes-infinities-nan",
        "turns infinities into NaN when it quantizes",
        Deviation(infinities="nan"),
        _divides_integers,
    ),
    Wrong(
        "keeps-infinities",
        "keeps infinities when it quantizes",
        Deviation(infinities="infinite"),
        _divides_integers,
    ),
)
OF_INFINITIES_AS_NANS = (
    OF_INFINITIES[0],
    Wrong(
        "loses-the-sign-of-infinities",
        "gives one NaN for infinities of both signs when it quantizes",
        Deviation(infinities="positive-nan"),
    ),
)
"""The rows about infinities where a document turns these into NaNs of their signs."""
OF_NANS = (
    Wrong("makes-nans-zero", "turns NaN into zero when it quantizes", Deviation(nans="zero")),
    Wrong(
        "makes-nans-the-largest",
        "turns NaN into the largest value when it quantizes",
        Deviation(nans="max"),
    ),
    Wrong(
        "makes-nans-the-largest-of-their-sign",
        "turns NaN into the largest value of its sign when it quantizes",
        Deviation(nans="max-of-sign"),
    ),
    Wrong(
        "makes-nans-the-lowest",
        "turns NaN into the lowest value when it quantizes",
        Deviation(nans="lowest"),
    ),
    Wrong(
        "loses-the-sign-of-nans",
        "gives one NaN for NaNs of both signs when it quantizes",
        Deviation(nans="positive"),
    ),
    Wrong(
        "makes-nans-negative",
        "gives a negative NaN for NaNs of both signs when it quantizes",
        Deviation(nans="negative"),
    ),
)
ZEROS = Wrong(
    "gives-zeros-of-the-other-sign",
    "gives zeros of the wrong sign when it quantizes",
    Deviation(),
)
"""The row for wrong signs of zeros alone, because comparisons with ways ignore these signs."""
ROUNDED_OTHERWISE: tuple[tuple[QuotientRounding, str, str], ...] = (
    ("away", "rounds-half-away", "rounds ties away from zero"),
    ("up", "rounds-half-up", "rounds ties up"),
    ("toward-zero", "truncates-quotients", "truncates the quotient"),
    ("down", "rounds-quotients-down", "rounds the quotient down"),
    (
        "floor-of-sum",
        "adds-half-then-floors",
        "adds 0.5 to the quotient, rounds the sum to its precision and takes the floor",
    ),
    (
        "truncated-sum",
        "adds-half-then-truncates",
        "adds 0.5 of the quotient's sign, rounds the sum to its precision and truncates it",
    ),
)
WRONGS = (
    _in_layout("takes-one-scale", "takes the first scale for all elements"),
    _in_layout("takes-another-axis", "takes the scales along another axis"),
    _in_layout("takes-blocks-of-another-size", "takes blocks of another size"),
    _in_layout(
        "repeats-scales-in-turn",
        "repeats the row of scales instead of each scale in its block",
    ),
    *(
        _in_layout(
            f"repeats-scales-after-vectors-of-{size}",
            f"takes one scale for all channels behind the last whole vector of {size}",
        )
        for size in VECTORS
    ),
    _in_layout(
        "takes-the-scale-before-in-short-blocks",
        "takes the scale of the block before for a short last block",
    ),
    _in_layout("runs-blocks-across-rows", "lets a block run on in the next row"),
    _in_layout(
        "exchanges-pairs-of-zero-points",
        "exchanges the zero points of each two channels",
    ),
    *(row for each in ("float32", "float64", "float16", "bfloat16") for row in _in_precision(each)),
    Wrong(
        "treats-subnormal-scales-as-zero",
        "treats subnormal scales as zero",
        Deviation(is_flushed=True),
    ),
    Wrong("leaves-out-zero-points", "leaves out the zero point", Deviation(zero="left-out")),
    Wrong(
        "reads-zero-points-as-another-type",
        "reads a zero point as one of the other signedness",
        Deviation(zero="other-sign"),
        lambda asked: asked.has_integers,
    ),
    Wrong(
        "wraps-differences",
        "wraps the difference of code and zero point when it dequantizes",
        Deviation(ends="wrapped"),
        _decodes,
    ),
    Wrong(
        "scales-zero-points-alone",
        "multiplies code and zero point by the scale before it subtracts",
        Deviation(zero="scaled"),
        _decodes,
    ),
    Wrong(
        "truncates-products",
        "truncates the product when it dequantizes",
        Deviation(rounding="toward-zero"),
        _decodes,
    ),
    Wrong(
        "makes-subnormal-products-zero",
        "makes zero of subnormal products when it dequantizes",
        Deviation(flushes_products=True),
        _decodes,
    ),
    *(
        Wrong(name, says, Deviation(steps=name), _decodes_to_floats)
        for name, says in {
            "rounds-each-step": "rounds code, zero point, scale and difference to the dtype of the"
            " result before it multiplies",
            "rounds-each-step-up-from-odd": "rounds each step to the dtype of the result, and up"
            " only where the truncated pattern is odd",
            "rounds-operands": "rounds code, zero point and scale to the dtype of the result before"
            " it subtracts and multiplies",
            "rounds-operands-up-from-odd": "rounds operands and product to the dtype of the result,"
            " and up only where the truncated pattern is odd",
            "rounds-codes-up-from-odd": "rounds codes to the dtype of the result first, and up only"
            " where the truncated pattern is odd",
        }.items()
    ),
    Wrong(
        "multiplies-by-the-reciprocal",
        "multiplies by 1/scale instead of dividing by the scale",
        Deviation(is_reciprocal=True),
        _encodes,
    ),
    Wrong(
        "ignores-saturate",
        "ignores `saturate` when it quantizes",
        Deviation(ends="other-saturate"),
        _encodes_floats,
    ),
    Wrong(
        "makes-carries-nan",
        "turns quotients into NaN that only rounding puts out of range",
        Deviation(ends="carried-to-nan"),
        _encodes_floats,
    ),
    Wrong(
        "makes-overflows-nan",
        "turns quotients that are out of range into NaN, not into infinities",
        Deviation(ends="nan"),
        _encodes_floats,
    ),
    Wrong(
        "saturates-truncated-nans",
        "saturates quotients whose bits before rounding are those of a NaN",
        Deviation(ends="truncated-nan-saturated"),
        _encodes_floats,
    ),
    Wrong(
        "truncates-subnormals",
        "rounds quotients to the bits of normal codes, then truncates subnormal ones",
        Deviation(truncates_subnormals=True),
        _encodes_floats,
    ),
    Wrong(
        "rounds-quotients-to-float16",
        "rounds quotients to float16 before it rounds them to codes",
        Deviation(narrows_quotients=True),
        _encodes_floats,
    ),
    Wrong(
        "carries-twice-in-float16",
        "divides in float16, and doubles subnormals that round up to a power of two",
        Deviation(precision="float16", carries_twice=True),
        _encodes_floats,
    ),
    *OF_INFINITIES,
    Wrong(
        "treats-subnormals-as-zero",
        "treats subnormals as zero when it quantizes, and gives 0 for 0/0",
        Deviation(is_flushed=True, nans="zero"),
        _encodes_integers,
    ),
    Wrong(
        "treats-subnormals-as-zero-with-largest-nans",
        "treats subnormals as zero when it quantizes, and gives the largest code for 0/0",
        Deviation(is_flushed=True, nans="max"),
        _encodes_integers,
    ),
    *(
        Wrong(name, f"{says} when it quantizes", Deviation(rounding=rounding), _encodes_integers)
        for rounding, name, says in ROUNDED_OTHERWISE
    ),
    Wrong(
        "adds-zero-points-before-rounding",
        "adds the zero point before it rounds, not afterwards",
        Deviation(zero="before-rounding"),
        _encodes_integers,
    ),
    Wrong(
        "limits-before-zero-points",
        "limits codes to their range before it adds the zero point",
        Deviation(zero="after-limits"),
        _encodes_integers,
    ),
    Wrong(
        "wraps-codes",
        "wraps codes that are out of range when it quantizes",
        Deviation(ends="wrapped"),
        _encodes_integers,
    ),
    Wrong(
        "overflows-in-int32",
        "converts quotients to int32, and those beyond its range to the smallest",
        Deviation(ends="by-int32"),
        _encodes_integers,
    ),
    Wrong(
        "divides-between-scaled-limits",
        "divides x by the width of the scaled range in float32, as fake quantization does",
        Deviation(between="divided"),
        _encodes_integers,
    ),
    Wrong(
        "multiplies-between-scaled-limits",
        "multiplies x by the reciprocal width of the scaled range in float32, as fake quantization"
        " does",
        Deviation(between="multiplied"),
        _encodes_integers,
    ),
    Wrong(
        "overflows-in-scaled-limits",
        "overflows where a limit times the scale exceeds the scale's dtype",
        Deviation(overflows_limits=True),
        _encodes_integers,
    ),
    Wrong(
        "leaves-out-lowest-codes",
        "never gives the lowest code when it quantizes",
        Deviation(ends="without-lowest"),
        _encodes_signed,
    ),
)
"""The mechanisms that are tried; of two that explain equally many failures a finding names the
first."""
SAYS: Mapping[str, str] = {
    each.name: each.says for each in (*WRONGS, *OF_INFINITIES_AS_NANS, *OF_NANS, ZEROS)
} | {each.name: each.says for each in RANGES}
IN_OTHER_TENSORS = "changes-with-layout"
"""The finding of what is wrong only in long tensors, or in those of an unusual layout."""
OTHERWISE = "quantizes-otherwise"
"""The finding of what no mechanism explains, here and in blocks."""
JOINT = "+"
"""Joins the names of wrongs that explain answers together."""


def followed(case: Case, problem: Problem) -> Sequence[str]:
    """Return names of rows explaining a wrong tensor, or ``OTHERWISE``; none for other problems."""
    return (problem.followed or (OTHERWISE,)) if isinstance(problem, WrongTensor) else ()


def says(name: str) -> str:
    """Return the sentence of a finding from its name, in which several rows may be joined.

    Raise KeyError for a name that no row has.
    """
    if name == OTHERWISE:
        return "quantizes to other values"
    return ", and ".join(SAYS[each] for each in name.split(JOINT))


Layouts = Mapping[str, tuple[Bits, Bits | None]]
"""Scales and zero points of each element by the names of layouts, the right one under ""."""


def followed_ways(
    rules: Formula,
    x: Bits,
    layouts: Layouts,
    answers: Bits,
    is_wrong: NDArray[np.bool_],
    *,
    names_precision: bool,
) -> tuple[str, ...]:
    """Return the names of the simplest ways that give these answers; empty if none is found.

    Zeros may differ in sign. ``JOINT`` joins the names of ways that only together give them. Each
    array has one item for each element, those of ``layouts`` too. A way must determine at least
    half of the wrong answers. If ``names_precision``, the case names a precision, which a way that
    divides in the scale's precision ignores.
    """
    asked = Asked(rules, frozenset(layouts), names_precision)
    singles = {each.name: each.way for each in WRONGS if each.applies(asked)}
    plain = [*_allowed_ways(rules)]
    specials = _special_ways(rules, plain, x, layouts[""], answers, is_wrong)
    settled = plain
    for special in specials.values():
        settled = [*_onto(special, settled)]

    few = _few(x, layouts, answers, is_wrong)

    def gives(way: Deviation, bases: Sequence[Deviation]) -> bool:
        return any(
            _gives(rules, both, *few, needs_most=False)
            and _gives(rules, both, x, layouts, answers, is_wrong)
            for both in _onto(way, bases)
        )

    are_zeros = _is_same(rules.target, np.zeros(answers.shape, np.int64), answers)
    if gives(Deviation(), settled) and (specials or are_zeros[is_wrong].all()):
        # Codes are compared without the signs of zeros, so that these alone are wrong.
        return (JOINT.join(specials or [ZEROS.name]),)
    more = [([*specials], settled)] if specials else []
    for added, bases in (([], plain), *more):
        found = [name for name, way in singles.items() if gives(way, bases)]
        if found:
            return tuple(JOINT.join((name, *added)) for name in found)
    # Small floats have few ways, so that three of them may be tried.
    is_small = rules.operation != "dequantize" and not rules.target.is_integral
    for count in (2, 3) if is_small else (2,):
        for names in combinations(singles, count):
            joined: Deviation | None = Deviation()
            for name in names:
                joined = joined and joined.joined(singles[name])
            if joined is not None and gives(joined, settled):
                return (JOINT.join((*names, *specials)),)
    return ()


def _few(
    x: Bits, layouts: Layouts, answers: Bits, is_wrong: NDArray[np.bool_]
) -> tuple[Bits, Layouts, Bits, NDArray[np.bool_]]:
    """Return a sample of the elements, on which ways are tried before they are tried on all.

    It has up to ``FEW`` wrong elements, and up to ``FEW`` from among all.
    """
    wrong = np.flatnonzero(is_wrong)
    chosen = np.append(wrong[:: len(wrong) // FEW + 1], np.arange(0, x.size, x.size // FEW + 1))

    def some(each: Bits) -> Bits:
        return each.reshape(-1)[chosen]

    few = {
        name: (some(scale), None if zero is None else some(zero))
        for name, (scale, zero) in layouts.items()
    }
    return some(x), few, some(answers), some(is_wrong)


def _onto(way: Deviation, bases: Iterable[Deviation]) -> Iterator[Deviation]:
    for base in bases:
        if (both := base.joined(way)) is not None:
            yield both


def _gives(
    rules: Formula,
    way: Deviation,
    x: Bits,
    layouts: Layouts,
    answers: Bits,
    is_wrong: NDArray[np.bool_],
    needs_most: bool = True,
) -> bool:
    """Whether a way gives every answer that it determines, and determines enough wrong ones.

    Enough is half of them if it ``needs_most``, else none.
    """
    with np.errstate(all="ignore"):
        found = simulate(rules, way, x, *layouts[way.layout or ""])
    settled = found != UNSETTLED
    is_same = _is_same(rules.target, found, answers)
    if way.layout:
        # By the wrong scales, the document may leave an element open: then any answer fits the way.
        settled &= is_same | ~expect(rules, x, *layouts[way.layout]).is_open
    if not (is_same | ~settled).all():
        return False
    explained = np.count_nonzero(is_same & settled & is_wrong)
    return not needs_most or bool(2 * explained >= np.count_nonzero(is_wrong))


def _allowed_ways(rules: Formula) -> Iterator[Deviation]:
    """Yield the ways that the formula allows: as it is, and with rounded operands if it says so."""
    yield Deviation()
    step: FormulaStep = "product" if rules.operation == "dequantize" else "quotient"
    if any("of-rounded-operands" in each.words for each in rules.outcomes[step].values()):
        yield Deviation(rounds_operands=True)


def _special_ways(
    rules: Formula,
    bases: Sequence[Deviation],
    x: Bits,
    own: tuple[Bits, Bits | None],
    answers: Bits,
    is_wrong: NDArray[np.bool_],
) -> dict[str, Deviation]:
    """Return the way that explains the wrong answers to infinities, and that of NaNs, by name.

    Either may be missing. ``bases`` are the ways to which each is added, and ``own`` the right
    scales and zero points. There are none for dequantization and for integer targets.
    """
    if rules.operation == "dequantize" or rules.target.is_integral:
        return {}
    with np.errstate(invalid="ignore"):
        values = values_of(rules.source, x)
    become_nans = bool(rules.casts) and code_of_cast(rules, "infinite", True) == NAN_CODES["-"]
    infinities = OF_INFINITIES_AS_NANS if become_nans else OF_INFINITIES
    regions = (np.isinf(values), infinities), (np.isnan(values), OF_NANS)
    found: dict[str, Deviation] = {}
    for here, rows in regions:
        if not is_wrong[here].any():
            continue
        scale, zero = (None if each is None else each[here] for each in own)
        assert scale is not None
        given = x[here], {"": (scale, zero)}, answers[here], is_wrong[here]
        for name, way in {"": Deviation(), **{each.name: each.way for each in rows}}.items():
            if any(_gives(rules, both, *given) for both in _onto(way, bases)):
                found |= {name: way} if name else {}
                break
    return found


def _is_same(target: Format, found: NDArray[np.int64], answers: Bits) -> NDArray[np.bool_]:
    """Return the mask of where patterns, or the NaNs that they stand for, equal the answers.

    Zeros may differ in sign.
    """
    given = answers.astype(np.int64)
    same = found == given
    if target.sign_bit and not target.is_integral:
        same |= ((found | given) & ~target.sign_bit == 0) & (target.entry.zero == "signed")
    for sign, code in NAN_CODES.items():
        if (here := found == code).any():
            same |= here & is_nan(target, answers, sign)
    return np.asarray(same)
