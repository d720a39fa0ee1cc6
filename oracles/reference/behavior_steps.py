"""Evaluates the steps of a behavior; the same code runs on numpy arrays, words and solver terms.

Like the reference's kernels, on which it builds, it uses only and, or, xor, shift, add, subtract,
compare and select (see ``oracles.reference.kernels``).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from oracles.reference.kernels import (
    MASK,
    OFFSET,
    TOP,
    Converted,
    Select,
    Unpacked,
    convert,
    rounded,
    unpack,
)
from specs.behaviors import (
    ROUNDING_STEPS,
    Behavior,
    BehaviorStep,
    Constant,
    ConstantAnswer,
    Into,
    LastStep,
    NanAnswer,
    Sentinel,
    Via,
    behavior_named,
)
from specs.formats import Format, format_named
from specs.model.vocabulary import CODE_WORDS, Rounding

CONSTANTS: dict[Constant, str] = {
    "zero": "zero",
    "minus-zero": "-zero",
    "one": "one",
    "smallest": "smallest",
    "minimum": "lowest",
    "maximum": "max",
    "infinity": "inf",
    "minus-infinity": "-inf",
}
"""By constant: its key in ``CODE_WORDS``. The constant `nan`, which means any NaN, has none."""


@dataclass
class State:
    """The patterns between two steps of a behavior, and for which inputs they are defined.

    ``defined`` is False where a NaN or an infinity went into a step that is only about numbers.
    ``rounding`` is what later steps round by; ``converted`` caches casts by target and rounding.
    """

    format: Format
    pattern: Any
    defined: Any
    select: Select
    rounding: Rounding = "nearest-even"
    converted: dict[tuple[str, Rounding], Converted] = field(default_factory=dict)

    @cached_property
    def parts(self) -> Unpacked:
        return unpack(self.format, self.pattern, self.select)

    @property
    def some(self) -> Any:
        """Whether each pattern is finite and nonzero."""
        return (self.parts.nan | self.parts.infinity | self.parts.zero) ^ True

    @property
    def minus(self) -> Any:
        return self.parts.sign == 1

    def to(self, target: Format) -> Converted:
        """Return the patterns' values rounded to a target, computed once and then cached."""
        key = target.name, self.rounding
        if key not in self.converted:
            self.converted[key] = convert(target, self.rounding, self.parts, self.select)
        return self.converted[key]

    def code(self, target: Format) -> Any:
        """Return the target's patterns of finite values.

        Out of range, those of floats count on past the largest, and those of integers wrap.
        """
        return rounded(target, self.parts, self.rounding, self.select, self.to(target))

    def rounding_by(self, rounding: Rounding) -> State:
        """Return a state with the same patterns, after which steps round in another mode."""
        other = replace(self, rounding=rounding)
        other.parts = self.parts
        return other

    def then(self, format: Format, pattern: Any, defined: Any) -> State:
        """Return the state after a step that gives these patterns of this format."""
        return State(format, pattern, defined, self.select, self.rounding)


def pattern_of_behavior(
    name: str, source: Format, target: Format, pattern: Any, select: Select
) -> Any:
    """Return the target's patterns that the behavior of this name answers for source patterns.

    They mean nothing where the behavior is not defined.
    """
    return Evaluation(source, target, pattern, select).answer(behavior_named(name))[0]


class Evaluation:
    """Evaluates behaviors for some patterns; steps that several begin with are evaluated once."""

    def __init__(self, source: Format, target: Format, pattern: Any, select: Select) -> None:
        self.target = target
        always = (pattern < 0) ^ True
        self._states: dict[tuple[BehaviorStep, ...], State] = {
            (): State(source, pattern, always, select)
        }

    def answer(self, behavior: Behavior) -> tuple[Any, Any]:
        """Return a behavior's answers (the target's patterns), and where they are defined."""
        state = self._after(behavior.steps)
        return state.pattern, state.defined

    def _after(self, steps: tuple[BehaviorStep, ...]) -> State:
        if steps not in self._states:
            self._states[steps] = self._step(self._after(steps[:-1]), steps[-1])
        return self._states[steps]

    def _step(self, state: State, step: BehaviorStep) -> State:
        match step:
            case "truncate" | "floor" | "ceil" | "round-half-even" | "round-half-away":
                return state.rounding_by(ROUNDING_STEPS[step])
            case "drop-sign":
                return _magnitude(state)
            case "flush-subnormals":
                sign = state.pattern & (
                    state.format.sign_bit if state.format.entry.zero == "signed" else 0
                )
                flushed = state.select(state.parts.subnormal, sign, state.pattern)
                return state.then(state.format, flushed, state.defined)
            case Via(via=name, subnormals=subnormals):
                nearest = state.rounding_by("nearest-even")
                rounded = _rounded(nearest, format_named(name), "to-infinity")
                return rounded if subnormals == "kept" else _without_tiny(nearest, rounded)
            case Into():
                return _into(state, step)
            case ConstantAnswer(answer=word):
                same = (state.pattern & 0) | constant(self.target, word)
                return state.then(self.target, same, (state.pattern < 0) ^ True)
            case NanAnswer(nan=word):
                nan = self._states[()].parts.nan
                pattern = state.select(nan, constant(self.target, word), state.pattern)
                return state.then(state.format, pattern, state.defined | nan)
            case "nonzero":
                return state.then(self.target, state.select(state.parts.zero, 0, 1), state.defined)
            case "any-bit":
                is_clear = state.pattern == 0
                return state.then(self.target, state.select(is_clear, 0, 1), state.defined)
            case _:
                return _rounded(state, self.target, step)


def _magnitude(state: State) -> State:
    if state.format.kind == "float" or not state.format.is_signed:
        unsigned = state.pattern & (state.format.mask ^ state.format.sign_bit)
        # In some formats the pattern of -0 is the NaN, so that a NaN must stay as it is.
        pattern = state.select(state.parts.nan, state.pattern, unsigned)
        return state.then(state.format, pattern, state.defined)
    positive = (0 - state.pattern) & state.format.mask
    unsigned_format = format_named(f"u{state.format.name}")
    pattern = state.select(state.minus, positive, state.pattern)
    return state.then(unsigned_format, pattern, state.defined)


def constant(target: Format, word: Constant) -> int:
    """Return the target's pattern of a constant; for ``nan``, that of one of its NaNs."""
    return target.nan_codes[0][-1] if word == "nan" else CODE_WORDS[CONSTANTS[word]](target)


def _into(state: State, step: Into) -> State:
    """Return the rounded values as integers, with sentinels for what does not fit."""
    low, high = format_named(step.into), format_named(step.up_to or step.into)
    ends: dict[Sentinel, Any] = {"minimum": low.lowest_code, "maximum": high.max_code, "zero": 0}
    plus = state.minus ^ True
    above, below = state.to(high).overflow, state.to(low).overflow
    if step.fits == "unrounded":
        above, below = above | state.to(high).beyond, below | state.to(low).beyond
    above = (state.some & above | state.parts.infinity) & plus
    below = (state.some & below | state.parts.infinity) & state.minus
    select = state.select
    code = ends["low-bits"] = state.code(high)
    code = select(above, (ends | {"nearest": high.max_code})[step.above], code)
    code = select(below, (ends | {"nearest": low.lowest_code})[step.below], code)
    code = select(state.parts.nan, ends[step.nan], code)
    return state.then(high, code, state.defined)


def _without_tiny(state: State, rounded: State) -> State:
    """Return ``rounded`` with zeros for values below the smallest normal one of its format.

    ``state`` has the values before rounding. They are compared after rounding with unlimited
    exponents: in the binade below, only a significand that begins with ``precision + 1`` ones
    rounds up to the smallest normal value.
    """
    format, parts, select = rounded.format, state.parts, state.select
    lowest = format.lowest_exponent + OFFSET
    rounds_up = (parts.exponent == lowest - 1) & (
        parts.significand > MASK - (1 << (TOP - format.precision))
    )
    tiny = state.some & (parts.exponent < lowest) & (rounds_up ^ True)
    zero = select(state.minus, format.sign_bit, rounded.pattern & 0)
    return rounded.then(format, select(tiny, zero, rounded.pattern), rounded.defined)


def _rounded(state: State, target: Format, beyond: LastStep) -> State:
    """Return the values rounded to a target; the step ``beyond`` handles those out of range."""
    select, parts, defined = state.select, state.parts, state.defined
    code = state.code(target)
    if target.kind == "float" and target.entry.zero == "none":
        code = select(state.some & state.to(target).tiny & (code > target.mask), 0, code)
    out = state.some & state.to(target).overflow | parts.infinity
    match beyond:
        case "low-bits":
            defined = defined & (parts.infinity ^ True)
            code = code & target.mask
        case "saturate":
            lowest, largest = (code & 0) | target.lowest_code, (code & 0) | target.max_code
            code = select(out, select(state.minus, lowest, largest), code)
        case "to-infinity" if target.entry.infinity:
            sign = select(state.minus, target.sign_bit, code & 0)
            code = select(out, sign | target.infinity_code, code)
        case "to-infinity" | "to-nan":
            code = select(out, constant(target, "nan"), code)
    if target.nan_codes:
        return state.then(target, select(parts.nan, constant(target, "nan"), code), defined)
    return state.then(target, code, defined & (parts.nan ^ True))
