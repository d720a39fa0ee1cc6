"""Mechanisms: how a backend may have come to a wrong answer.

Most say what the backend does instead of what the document wants: it rounds twice, ignores a
parameter, or follows another version. The others are the closed forms of ``specs/behaviors.yaml``.
``candidates`` chooses those that a case can have, and ``mechanism_answers`` computes which answers
each of them gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from reports.findings.codec_mechanisms import CodecFault, OtherBias
from specs.behaviors import Answer, behaviors
from specs.formats import Format, format_named
from specs.model.vocabulary import Rounding


@dataclass(frozen=True)
class RoundsTwice:
    """Converts to another dtype first, and that result to the target."""

    through: str
    tells_where = True

    @property
    def name(self) -> str:
        return f"{'' if self.is_whole else 'rounds-twice-'}through-{self.through}"

    @property
    def says(self) -> str:
        if self.is_whole:
            return f"converts to {self.through} first"
        return f"rounds twice, through {self.through}"

    @property
    def is_whole(self) -> bool:
        """Whether it goes through an integer: then more than a rounding is lost."""
        return format_named(self.through).is_integral


@dataclass(frozen=True)
class OtherRounding:
    """Rounds in another way than the document requires."""

    rounding: Rounding
    tells_where = True

    @property
    def name(self) -> str:
        return f"rounds-{self.rounding}"

    @property
    def says(self) -> str:
        return ROUNDING_WORDS[self.rounding]


ROUNDING_WORDS: Mapping[Rounding, str] = {
    "nearest-even": "rounds to nearest, ties to even",
    "nearest-away": "rounds to nearest, ties away from zero",
    "toward-zero": "rounds toward zero",
    "floor": "rounds down",
    "ceil": "rounds up",
    "odd": "rounds to odd",
}


ROUND = "round"
"""The parameter of `small-floats` whose values are roundings."""


@dataclass(frozen=True)
class IgnoresLowBits:
    """Reads its inputs as if their lowest bits were zero."""

    count: int
    tells_where = True

    @property
    def name(self) -> str:
        return f"ignores-{self.count}-low-bits"

    @property
    def says(self) -> str:
        bits = "bit" if self.count == 1 else f"{self.count} bits"
        return f"ignores the lowest {bits} of its inputs"


@dataclass(frozen=True)
class FewStickyBits:
    """Tells a number above a tie from the tie by its lowest bits, and overlooks those between."""

    kept: int
    tells_where = True

    @property
    def name(self) -> str:
        return f"sticky-{self.kept}-bits"

    @property
    def says(self) -> str:
        bits = "bit" if self.kept == 1 else f"{self.kept} bits"
        return f"tells numbers above a tie from the tie by the lowest {bits} of its inputs only"


@dataclass(frozen=True)
class NanSign:
    """Gives a NaN, but of another sign than the document requires."""

    tells_where = True
    name = "nan-sign"
    says = "gives a NaN of the wrong sign"


@dataclass(frozen=True)
class Unchanged:
    """Gives the input back, where source and target are the same."""

    tells_where = False
    name = "unchanged"
    says = "gives the input back as it is"


@dataclass(frozen=True)
class OtherMode:
    """Answers as if a parameter had another value."""

    parameter: str
    value: str
    tells_where = True

    @property
    def name(self) -> str:
        return f"as-{self.parameter}-{self.value}"

    @property
    def says(self) -> str:
        for rounding, words in ROUNDING_WORDS.items():
            if (self.parameter, self.value) == (ROUND, rounding):
                return words
        return f"answers as with {self.parameter} = {self.value} where it has another value"


@dataclass(frozen=True)
class OtherVersion:
    """Answers as another version of the document requires."""

    document: str
    version: str
    tells_where = True

    @property
    def name(self) -> str:
        return f"as-{self.document}-{self.version}"

    @property
    def says(self) -> str:
        return f"answers as {self.document}:{self.version} requires, in other versions too"


NEGATIVE: Mapping[str, str] = {
    "zero": "-0",
    "one": "-1",
    "maximum": "the lowest value",
    "infinity": "-infinity",
}
"""Constants that take the sign of a negative input, in words."""


@dataclass(frozen=True)
class ClosedForm:
    """Answers what a behavior answers; a constant may have the sign of the input."""

    behavior: str
    has_sign_of_input: bool = False
    tells_where = False

    @property
    def name(self) -> str:
        return self.behavior

    def behavior_of(self, source: Format, target: Format) -> str:
        """The behavior by which it answers a pair."""
        return self.behavior

    @property
    def is_constant(self) -> bool:
        """Whether the answer is the same for every input."""
        return any(isinstance(step, Answer) for step in behaviors()[self.behavior].steps)

    @property
    def says(self) -> str:
        return behaviors()[self.behavior].says

    @property
    def says_of_negative(self) -> str:
        """The sentence if all inputs are negative."""
        of_negative = NEGATIVE.get(self.behavior) if self.has_sign_of_input else None
        return f"gives {of_negative}" if of_negative else self.says


@dataclass(frozen=True)
class Exponent:
    """Writes numbers as text with an exponent."""

    tells_where = True
    name = "writes-an-exponent"
    says = "writes numbers with an exponent"


@dataclass(frozen=True)
class Printf:
    """Writes numbers as text as C's ``printf`` does.

    ``g`` counts significant digits, ``f`` digits after the point.
    """

    digits: int
    conversion: Literal["g", "f"] = "g"
    tells_where = True

    @property
    def name(self) -> str:
        return f"printf-{self.digits}{self.conversion}"

    @property
    def says(self) -> str:
        return f"writes numbers as printf does with %.{self.digits}{self.conversion}"


@dataclass(frozen=True)
class LosesInnerZeros:
    """Writes numbers as text without the zeros between other digits."""

    tells_where = True
    name = "loses-inner-zeros"
    says = "loses the zeros between the other digits of a number"


ANOTHER_DTYPE = "as-another-dtype"
"""The name of a finding of dtypes that are taken for others of the same width."""


@dataclass(frozen=True)
class TakenFor:
    """Answers as if source and target were other dtypes of the same widths."""

    pair: tuple[str, str]
    """The source and the target of the case."""
    other: tuple[str, str]
    tells_where = True

    @property
    def name(self) -> str:
        return _TWINS.get(self._twins, (ANOTHER_DTYPE, ""))[0]

    @property
    def says(self) -> str:
        words = _TWINS.get(self._twins, ("", ""))[1]
        return words or f"takes {' and '.join(self.mistaken)}"

    @property
    def mistaken(self) -> tuple[str, ...]:
        """The dtypes that are taken for others."""
        pairs = zip(self.pair, self.other, strict=True)
        return tuple(f"{one} for {other}" for one, other in pairs if one != other)

    @property
    def _twins(self) -> tuple[str, str]:
        """For source and target, which integers are taken for their twins of other signedness."""
        source, target = map(_twin_words, self.pair, self.other)
        return source, target


MOST_MISTAKEN = 3
"""Dtypes that a sentence names before it counts the others."""


def taken_words(mechanisms: Iterable[TakenFor]) -> str:
    """One sentence for all dtypes that are taken for others."""
    several = list(mechanisms)
    if several[0].name != ANOTHER_DTYPE:
        return several[0].says
    mistaken = sorted({each for one in several for each in one.mistaken})
    shown, others = mistaken[:MOST_MISTAKEN], len(mistaken) - MOST_MISTAKEN
    more = f" and {others} more" if others > 0 else ""
    return f"takes dtypes for others of the same width: {', '.join(shown)}{more}"


_TWINS: Mapping[tuple[str, str], tuple[str, str]] = {
    ("unsigned as signed", ""): ("reads-unsigned-as-signed", "reads unsigned integers as signed"),
    ("signed as unsigned", ""): ("reads-signed-as-unsigned", "reads signed integers as unsigned"),
    ("", "unsigned as signed"): (
        "converts-to-signed",
        "converts to signed integers where unsigned ones are wanted",
    ),
    ("", "signed as unsigned"): (
        "converts-to-unsigned",
        "converts to unsigned integers where signed ones are wanted",
    ),
}
"""Names and sentences for integers taken for those of other signedness, by source and target."""


def _twin_words(one: str, other: str) -> str:
    if one == other:
        return ""
    if other == f"u{one}":
        return "signed as unsigned"
    return "unsigned as signed" if one == f"u{other}" else "another dtype"


@dataclass(frozen=True)
class ExponentBits:
    """Rounds to a power of two by the bits of a float32, subnormal numbers included.

    It rounds as ``rounding`` says or, if that is empty, as the case's mode says.
    """

    rounding: Literal["", "half-even", "half-up"] = ""
    tells_where = True

    @property
    def name(self) -> str:
        return "-".join(filter(None, ("exponent-bits", self.rounding)))

    @property
    def says(self) -> str:
        match self.rounding:
            case "half-even":
                return "rounds to nearest by the exponent bits, ties to even, whatever the mode"
            case "half-up":
                return "rounds to nearest by the exponent bits, ties up, whatever the mode"
            case _:
                return "rounds by the exponent bits, also those of zero, subnormals and infinity"


@dataclass(frozen=True)
class MovesBits:
    """Converts small floats by moving their bits, through float32."""

    tells_where = True
    name = "moves-bits"
    says = (
        "converts small floats by moving their bits, through float32, zeros, subnormal numbers,"
        " infinities, NaNs and what is out of range as if they were normal"
    )
    says_in_part = (
        "converts small floats by moving their bits, through float32, as if they were normal"
    )


@dataclass(frozen=True)
class ConvertsAsC:
    """Converts to integers as compilers do on x86-64 where C leaves it undefined."""

    tells_where = False
    is_constant = False
    name = "as-c-on-x86"
    says = (
        "converts to integers as C on x86-64: truncates to int32 or int64 (its minimum when out of"
        " range or NaN) and keeps the low bits"
    )

    def behavior_of(self, source: Format, target: Format) -> str:
        """The behavior by which it answers a pair."""
        if source.kind != "float":
            return "wrap"
        return "via-int32" if target.bits < 32 or target.name == "int32" else "via-int64"


@dataclass(frozen=True)
class ReversedBytes:
    """Gives the right answers, but with their bytes in reverse order, or reads the inputs so."""

    of: Literal["answers", "inputs"]
    tells_where = True

    @property
    def name(self) -> str:
        return f"reversed-bytes-of-{self.of}"

    @property
    def says(self) -> str:
        if self.of == "answers":
            return "gives its answers with their bytes in reverse order"
        return "reads its inputs with their bytes in reverse order"


Flaw = Literal[
    "flushes-subnormals",
    "clamps-in-the-source-dtype",
    "clamps-before-rounding",
    "wraps-the-shift",
    "halves-large-integers",
    "rounds-subnormals-twice",
    "wrong-sign",
]
FLAWS: Mapping[Flaw, str] = {
    "flushes-subnormals": "flushes subnormal inputs and results to zero",
    "clamps-in-the-source-dtype": (
        "clamps to the target's range in the source dtype, where the ends of that range are rounded"
    ),
    "clamps-before-rounding": (
        "clamps to the largest value before it rounds: NaN too, but not what then rounds up to the"
        " next pattern"
    ),
    "wraps-the-shift": (
        "makes subnormal numbers by a shift modulo 64, so that values 2^64 below them do not become"
        " zero"
    ),
    "halves-large-integers": (
        "halves unsigned integers beyond the signed range before it converts them, and loses their"
        " lowest bit"
    ),
    "rounds-subnormals-twice": (
        "rounds subnormal results twice: first to as many digits as normal ones have"
    ),
    "wrong-sign": "gives the right magnitude with the wrong sign",
}
"""The sentences of the flaws in a conversion's arithmetic."""


@dataclass(frozen=True)
class Flawed:
    """Converts by arithmetic that has a flaw."""

    name: Flaw
    tells_where = True

    @property
    def says(self) -> str:
        return FLAWS[self.name]


@dataclass(frozen=True)
class Undecided:
    """Gives a wrong answer to a single input, which several mechanisms explain alike."""

    sentences: tuple[str, ...]
    tells_where = True
    name = "one-input"

    @property
    def says(self) -> str:
        *most, last = self.sentences
        words = f"{', '.join(most)}, or {last}"
        return f"gives one input a wrong value, which is not enough to tell the cause: {words}"


Mechanism = (
    NanSign
    | RoundsTwice
    | OtherRounding
    | IgnoresLowBits
    | FewStickyBits
    | Unchanged
    | OtherMode
    | OtherVersion
    | ClosedForm
    | Exponent
    | Printf
    | LosesInnerZeros
    | TakenFor
    | ExponentBits
    | MovesBits
    | ConvertsAsC
    | ReversedBytes
    | Flawed
    | CodecFault
    | OtherBias
)


def is_small(dtype: Format) -> bool:
    """Whether a dtype is a float that some backends convert by moving its bits."""
    return dtype.kind == "float" and (dtype.bits <= 8 or dtype.name == "bfloat16")


def is_constant(mechanism: Mechanism) -> bool:
    """Whether a mechanism gives the same answer to every input."""
    return isinstance(mechanism, ClosedForm) and mechanism.is_constant
