"""Mechanisms: how a backend may have come to a wrong answer.

Most say what the backend does instead of what the document wants: it rounds twice, ignores a
parameter, or follows another version. The others are the closed forms of ``specs/behaviors.yaml``.
``mechanism_answers`` computes which answers each of them gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from reports.behaviors.closed_forms import applies_to, has_behaviors
from specs.behaviors import Answer, Via, behaviors
from specs.cases import Case
from specs.editions import edition
from specs.formats import Format, format_named
from specs.loader import document_named

BETWEEN = ("float32", "float16", "bfloat16", "float64")
"""The dtypes through which a backend may convert."""
BYTE = 8
WRAPPED_FROM = -64
"""Only numbers of larger exponents have others 2^64 below them among normal float32 numbers."""
DIGITS = range(6, 18)
"""How many significant digits a backend may write."""


@dataclass(frozen=True)
class RoundsTwice:
    """Converts to another dtype first, and that result to the target."""

    through: str
    tells_where = True

    @property
    def name(self) -> str:
        return f"rounds-twice-through-{self.through}"

    @property
    def says(self) -> str:
        return f"rounds twice, through {self.through}"


@dataclass(frozen=True)
class NanSign:
    """Gives a NaN, but of another sign than the document wants."""

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


@dataclass(frozen=True)
class ClosedForm:
    """Answers what a behavior answers."""

    behavior: str
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


@dataclass(frozen=True)
class Exponent:
    """Writes numbers as text with an exponent."""

    tells_where = True
    name = "writes-an-exponent"
    says = "writes numbers with an exponent"


@dataclass(frozen=True)
class Printf:
    """Writes numbers as text with so many significant digits, like C's ``printf``."""

    digits: int
    tells_where = True

    @property
    def name(self) -> str:
        return f"printf-{self.digits}g"

    @property
    def says(self) -> str:
        return f"writes numbers as printf does with %.{self.digits}g"


@dataclass(frozen=True)
class ExponentBits:
    """Rounds to a power of two by the bits of a float32, subnormal numbers included.

    It rounds as the case's mode says, or whatever that is by ``rounding``.
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
    "flushes-subnormals", "clamps-in-the-source-dtype", "clamps-before-rounding", "wraps-the-shift"
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


FOLLOWS_OTHER_RULES = (OtherMode, OtherVersion)
"""Mechanisms that are a cause only if in some case they also tell where the answers are wrong."""
Mechanism = (
    NanSign
    | RoundsTwice
    | Unchanged
    | OtherMode
    | OtherVersion
    | ClosedForm
    | Exponent
    | Printf
    | ExponentBits
    | MovesBits
    | ConvertsAsC
    | ReversedBytes
    | Flawed
)


def candidates(case: Case) -> Iterator[Mechanism]:
    """The mechanisms that can explain answers to a case; of two that explain alike, the first."""
    source, target = format_named(case.source), format_named(case.target)
    document = document_named(case.document)
    if target.kind == "text":
        if source.kind != "text":
            yield from map(Printf, DIGITS)
        yield Exponent()
        return
    if target.has_signed_nan:
        yield NanSign()
    if target.is_integral and has_behaviors(source, target):
        yield ConvertsAsC()
    forms = list(_closed_forms(source, target))
    yield from (form for form in forms if form.is_constant)
    yield from (RoundsTwice(each) for each in BETWEEN if each not in (case.source, case.target))
    if target.name == "float8e8m0":
        yield from (ExponentBits(), ExponentBits("half-even"), ExponentBits("half-up"))
    if source == target:
        yield Unchanged()
    for name, parameter in edition(document, case.version).parameters():
        for value in parameter.values:
            if case.mode.get(name, value) != value:
                yield OtherMode(name, value)
    for version in document.entry.versions:
        if version != case.version:
            yield OtherVersion(case.document, version)
    yield from (form for form in forms if not form.is_constant)
    if is_small(source) or (is_small(target) and target.entry.mantissa):
        yield MovesBits()
    if target.bits > BYTE:
        yield ReversedBytes("answers")
    if source.bits > BYTE:
        yield ReversedBytes("inputs")
    yield from map(Flawed, _flaws(source, target))


def _flaws(source: Format, target: Format) -> Iterator[Flaw]:
    """The flaws that a conversion of a pair can have."""
    if source.kind == "float" and source.entry.zero == "signed":
        yield "flushes-subnormals"
    if source.kind == "float" and target.kind == "integer":
        yield "clamps-in-the-source-dtype"
    if target.kind == "float" and target.bits <= 8 and target.max_code + 1 < target.sign_bit:
        yield "clamps-before-rounding"
    is_wide = target.lowest_exponent <= WRAPPED_FROM
    if source.kind == target.kind == "float" and target.nan_codes and not is_wide:
        yield "wraps-the-shift"


def _closed_forms(source: Format, target: Format) -> Iterator[ClosedForm]:
    if has_behaviors(source, target):
        for name, behavior in behaviors().items():
            # ``RoundsTwice`` says more than a form that rounds to another float first.
            is_double = any(isinstance(step, Via) for step in behavior.steps)
            if applies_to(behavior, source, target) and not is_double:
                yield ClosedForm(name)


def other_case(mechanism: Mechanism, case: Case) -> Case | None:
    """The case whose rules a mechanism follows instead, if it is one of that kind."""
    # A worked example belongs to one case; the other case has no example of that name.
    case = replace(case, example=None)
    match mechanism:
        case RoundsTwice(through):
            return replace(case, source=through)
        case OtherMode(parameter, value):
            modes = tuple((name, value if name == parameter else old) for name, old in case.modes)
            return replace(case, modes=modes)
        case OtherVersion(_, version):
            return replace(case, version=version)
    return None


def is_small(dtype: Format) -> bool:
    """Whether a dtype is a float that some backends convert by moving its bits."""
    return dtype.kind == "float" and (dtype.bits <= 8 or dtype.name == "bfloat16")
