"""Finds what a ruling allows for one input, by the definition of a cast and of behaviors.

``exact`` has the arithmetic.
"""

from __future__ import annotations

from oracles.reference.exact import (
    Datum,
    Infinity,
    NotANumber,
    Number,
    atom_of,
    decode,
    encode,
    exceeds,
    is_multiple,
    limits,
    round_magnitude,
    unit_of,
)
from oracles.reference.expectations import Allowed
from specs.behaviors import (
    ROUNDING_STEPS,
    Behavior,
    ConstantAnswer,
    Into,
    NanAnswer,
    Via,
    behavior_named,
)
from specs.branches import Ruling
from specs.formats import Format, format_named
from specs.model.vocabulary import CODE_WORDS, Atom, Rounding
from specs.outcomes import Behaves, Either, Exactly, Outcome, Round, Same, Value, Wrap

Classified = dict[int, tuple[Datum, Atom]]
"""The values and atoms of patterns, which all rulings of one pair and rounding share."""


def allow(ruling: Ruling, code: int, classified: Classified | None = None) -> Allowed:
    """Return what a ruling of a numeric source, or of worked examples, allows for one pattern.

    The branch that takes the pattern's atom decides. In a ruling of worked examples, the example
    with this input does; raise KeyError if there is none. ``classified`` caches the values and
    atoms of patterns from call to call.
    """
    for branch_index, (example_input, _) in enumerate(ruling.worked):
        if example_input == code:
            return resolve(ruling, branch_index, Number(0, 0, 0), code)
    found = classified.get(code) if classified is not None else None
    if found is None:
        datum = decode(ruling.source, code)
        found = datum, atom_of(ruling.source, ruling.target, ruling.rounding, datum)
        if classified is not None:
            classified[code] = found
    datum, atom = found
    return resolve(ruling, ruling.branch_of[atom], datum, code)


def resolve(ruling: Ruling, branch_index: int, datum: Datum, code: int) -> Allowed:
    """Return what a branch allows for one value; ``codes`` is empty if it names no pattern.

    ``code`` is the input's pattern, which some outcomes keep.
    """
    branch = ruling.branches[branch_index]
    match branch.outcome:
        case Either(options=options):
            patterns = tuple(_pattern(ruling, option, datum, code) for option in options)
            return Allowed(branch_index, branch, tuple(dict.fromkeys(patterns)))
        case Exactly() | Round() | Value() | Wrap() | Same() | Behaves():
            return Allowed(branch_index, branch, (_pattern(ruling, branch.outcome, datum, code),))
    return Allowed(branch_index, branch)


def _pattern(ruling: Ruling, outcome: Outcome, datum: Datum, code: int) -> int:
    """Return the pattern that an outcome names for a value; ``code`` is the input's pattern."""
    if isinstance(outcome, Exactly):
        return outcome.code
    if isinstance(outcome, Same):
        return code
    if isinstance(outcome, Behaves):
        behavior = behavior_named(outcome.behavior)
        found = answer_of_behavior(behavior, ruling.source, ruling.target, code)
        assert found is not None, f"{behavior.name} says nothing of {datum}"
        return found
    assert isinstance(datum, Number), f"{outcome} does not apply to {datum}"
    target = ruling.target
    rounding = outcome.rounding if isinstance(outcome, Round) else ruling.rounding
    unit = unit_of(target, datum)
    multiple = round_magnitude(datum, unit, rounding)
    return encode(target, datum.sign, multiple, unit)


def answer_of_behavior(behavior: Behavior, source: Format, target: Format, code: int) -> int | None:
    """Return the pattern that a behavior gives for a source pattern; None where it is not defined.

    Raises AssertionError for ``to-nan``: no rule names a behavior with this step.
    """
    given = decode(source, code)
    datum: Datum = given
    rounding: Rounding = "nearest-even"
    found: int | None = None
    for step in behavior.steps:
        match step:
            case "truncate" | "floor" | "ceil" | "round-half-even" | "round-half-away":
                rounding = ROUNDING_STEPS[step]
            case "drop-sign":
                datum = datum if isinstance(datum, NotANumber) else datum._replace(sign=0)
            case "flush-subnormals":
                datum = _flushed(source, datum)
            case Via(via=name, subnormals=subnormals):
                datum = _rounded_to(format_named(name), datum, "nearest-even", subnormals)
            case Into():
                datum = _into(step, rounding, datum)
            case NanAnswer(nan=word):
                found = _constant(target, word) if isinstance(given, NotANumber) else found
            case ConstantAnswer(answer=word):
                found = _constant(target, word)
            case "any-bit":
                found = int(code != 0)
            case "nonzero":
                found = int(not isinstance(datum, Number) or datum.significand != 0)
            case "low-bits" | "saturate":
                found = _last(target, rounding, datum, saturates=step == "saturate")
            case "to-infinity":
                found = _float_code(target, _rounded_to(target, datum, rounding))
            case "to-nan":
                raise AssertionError(f"no rule says that {target.name} has NaN beyond its range")
    return found


def _constant(target: Format, word: str) -> int:
    names = {"minimum": "lowest", "maximum": "max"}
    return CODE_WORDS[names.get(word, word)](target)


def _flushed(source: Format, datum: Datum) -> Datum:
    """Return a zero for a value below the smallest normal one of a float, else the value."""
    if source.is_integral or not isinstance(datum, Number):
        return datum
    smallest_normal = limits(source)[3]
    is_small = exceeds(smallest_normal.significand, smallest_normal.exponent, datum)
    return Number(datum.sign, 0, 0) if is_small else datum


def _rounded_to(way: Format, datum: Datum, rounding: Rounding, subnormals: str = "kept") -> Datum:
    """Return the value rounded to a float format; infinity beyond its range.

    If ``subnormals`` is ``flushed``, the value is rounded to the precision of normal values, and is
    zero if it is then below the smallest of them.
    """
    if not isinstance(datum, Number) or not datum.significand:
        return datum
    if subnormals == "flushed":
        leading = datum.exponent + datum.significand.bit_length() - 1
        last = leading - way.entry.mantissa
        rounded = Number(datum.sign, round_magnitude(datum, last, rounding), last)
        smallest_normal = limits(way)[3]
        if exceeds(smallest_normal.significand, smallest_normal.exponent, rounded):
            return Number(datum.sign, 0, 0)
    unit = unit_of(way, datum)
    multiple = round_magnitude(datum, unit, rounding)
    if exceeds(multiple, unit, limits(way)[0]):
        return Infinity(datum.sign)
    return decode(way, encode(way, datum.sign, multiple, unit))


def _float_code(target: Format, datum: Datum) -> int | None:
    """Return the pattern of a value that the target has; None for a NaN, which may have several."""
    match datum:
        case NotANumber():
            return None
        case Infinity(sign=sign):
            return target.infinity_code | (target.sign_bit if sign else 0)
    return encode(target, datum.sign, datum.significand, datum.exponent)


def _whole(datum: Number, rounding: Rounding) -> int:
    magnitude = round_magnitude(datum, 0, rounding)
    return -magnitude if datum.sign else magnitude


def _ends(fmt: Format) -> tuple[int, int]:
    largest, lowest, *_ = limits(fmt)
    return -lowest.significand, largest.significand


def _into(step: Into, rounding: Rounding, datum: Datum) -> Number:
    """Return the value rounded to an integer, with the step's sentinels if it is out of range."""
    low, high = format_named(step.into), format_named(step.up_to or step.into)
    lowest, largest = _ends(low)[0], _ends(high)[1]
    ends = {"minimum": lowest, "maximum": largest, "zero": 0}
    match datum:
        case NotANumber():
            value = ends[step.nan]
        case Infinity(sign=sign):
            word = step.below if sign else step.above
            value = (ends | {"nearest": lowest if sign else largest, "low-bits": 0})[word]
        case Number():
            value = rounded = _whole(datum, rounding)
            above, below = rounded > largest, rounded < lowest
            if step.fits == "unrounded" and not is_multiple(datum, 0):
                cut = _whole(datum, "toward-zero")
                above, below = above or cut >= largest, below or cut <= lowest
            bits = rounded & high.mask
            low_bits = bits - high.mask - 1 if bits & high.sign_bit else bits
            if above:
                value = (ends | {"nearest": largest, "low-bits": low_bits})[step.above]
            elif below:
                value = (ends | {"nearest": lowest, "low-bits": low_bits})[step.below]
            elif step.up_to:
                value = low_bits
    return Number(int(value < 0), abs(value), 0)


def _last(target: Format, rounding: Rounding, datum: Datum, *, saturates: bool) -> int | None:
    lowest, largest = _ends(target)
    match datum:
        case NotANumber():
            return None
        case Infinity(sign=sign):
            return (lowest if sign else largest) & target.mask if saturates else None
    value = _whole(datum, rounding)
    return (min(max(value, lowest), largest) if saturates else value) & target.mask
