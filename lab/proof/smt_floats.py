"""Compare kernels with SMT-LIB's own conversions, for formats and roundings that it has."""

from __future__ import annotations

from lab.proof.bit_vectors import Truth, Vector
from lab.proof.smt_conversions import converted, float_of, shape_of
from lab.proof.smt_statement import Answer
from specs.branches import Ruling
from specs.formats import Format
from specs.model.vocabulary import Rounding
from specs.outcomes import Either, Exactly, Outcome, Round, Value, Wrap

MODES: dict[Rounding, str] = {
    "nearest-even": "RNE",
    "nearest-away": "RNA",
    "toward-zero": "RTZ",
    "floor": "RTN",
    "ceil": "RTP",
}
WIDE = 72
"""More bits than any integer format has, sign included."""
NEAREST = ("nearest-even", "nearest-away")


def is_known(ruling: Ruling) -> bool:
    """Whether SMT-LIB has a conversion to compare a ruling with."""
    formats = (ruling.source, ruling.target)
    return (
        all(fmt.kind == "integer" or _is_ieee(fmt) for fmt in formats)
        and any(_is_ieee(fmt) for fmt in formats)
        and bool(_compared(ruling))
    )


def _is_ieee(fmt: Format) -> bool:
    return fmt.kind == "float" and fmt.entry.nan == "ieee" and fmt.entry.infinity


def agrees(ruling: Ruling, pattern: Vector, answer: Answer) -> Truth:
    """State that a kernel's answer is SMT-LIB's, wherever its branch converts as SMT-LIB does."""
    result = pattern.solving.truth(True)
    for branch_index, outcomes in _compared(ruling):
        converts = pattern.solving.truth(True)
        for outcome, code in zip(outcomes, (answer.code, answer.other), strict=False):
            rounding = outcome.rounding if isinstance(outcome, Round) else ruling.rounding
            converts = converts & _converts(ruling, rounding, pattern, code)
        result = result & (answer.branch_index == branch_index).implies(converts)
    return result


def _compared(ruling: Ruling) -> list[tuple[int, tuple[Outcome, ...]]]:
    """The indices of branches that convert as SMT-LIB does, with the outcomes they name."""
    found: list[tuple[int, tuple[Outcome, ...]]] = []
    for branch_index, branch in enumerate(ruling.branches):
        match branch.outcome:
            case Either(options=options) if all(isinstance(one, Round | Wrap) for one in options):
                found.append((branch_index, options))
            case Round() | Value() | Wrap():
                found.append((branch_index, (branch.outcome,)))
            case Exactly() if _becomes_infinite(ruling, branch_index, branch.outcome):
                found.append((branch_index, (Value(),)))
    return [item for item in found if all(_mode(ruling, outcome) for outcome in item[1])]


def _mode(ruling: Ruling, outcome: Outcome) -> str | None:
    return MODES.get(outcome.rounding if isinstance(outcome, Round) else ruling.rounding)


def _becomes_infinite(ruling: Ruling, branch_index: int, outcome: Exactly) -> bool:
    """Whether a branch maps infinities, or overflow in rounding to nearest, to infinity."""
    target = ruling.target
    if not _is_ieee(target) or outcome.code & ~target.sign_bit != target.infinity_code:
        return False
    sign = "-" if outcome.code & target.sign_bit else "+"
    return all(
        (atom.sign == "-") == (sign == "-")
        and (atom.kind == "infinity" or (atom.zone == "overflow" and ruling.rounding in NEAREST))
        for atom, taker in ruling.branch_of.items()
        if taker == branch_index
    )


def _converts(ruling: Ruling, rounding: Rounding, pattern: Vector, code: Vector) -> Truth:
    """State that ``code`` is SMT-LIB's conversion of ``pattern``."""
    solving, source, target = pattern.solving, ruling.source, ruling.target
    mode = solving.manager.mk_rm_value(getattr(solving.api.RoundingMode, MODES[rounding]))
    fits = code <= target.mask
    if _is_ieee(target):
        shape = shape_of(target)
        if _is_ieee(source):
            number = converted(solving, mode, float_of(source, pattern), shape_of(source), shape)
        else:
            # Widened: bitwuzla errs on narrow integers (-1 of 4 bits to a 5-bit exponent).
            operand = (pattern.wide_signed(WIDE) if source.is_signed else pattern.wide(WIDE)).term
            number = solving.make("FP_TO_FP_FROM_SBV", mode, operand, indices=shape)
        answer = float_of(target, code.low(target.bits))
        return fits & Truth(solving, solving.make("EQUAL", answer, number))
    # SMT-LIB leaves a conversion out of range open: where integers wrap, convert to as many signed
    # bits as any value needs, as negative values wrap in an unsigned target too.
    width = target.bits
    wraps = any(isinstance(branch.outcome, Wrap) for branch in ruling.branches)
    if wraps:
        width = max(width, (1 << (source.entry.exponent - 1)) + 2)
    kind = "FP_TO_SBV" if target.is_signed or wraps else "FP_TO_UBV"
    number = solving.make(kind, mode, float_of(source, pattern), indices=(width,))
    return code == Vector(solving, number, width).low(target.bits)
