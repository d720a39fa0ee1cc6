"""The tests that an export makes of a case: inputs with one right answer, and these answers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from conformance.families.bitcast.bits import by_integer
from conformance.families.bitcast.ruling import bitcast_ruling, is_bitcast
from conformance.families.bitcast.tensors import contents
from conformance.families.cast.quick_inputs import few_inputs
from oracles.protocol import Bits
from oracles.reference.exact import Number, number_atom
from oracles.reference.exact_text import NUMBER, read_literal
from oracles.reference.expectations import Expected
from oracles.reference.reference_oracle import with_nans
from reports.grading.allowed_answers import Expectations
from specs.branches import Ruling
from specs.cases import Case
from specs.formats import Format, format_named
from specs.model.vocabulary import Zone
from specs.outcomes import Anything, Exactly, ParsesTo, PlainText, Rejected
from specs.ruling import ruling

MAX_INPUTS = 16_384
"""About the most inputs of a cast of numbers; float64 has 12,000 special values."""
REJECTED = "to be refused"
OPEN = "open"
SEVERAL = "several answers are right"


@dataclass(frozen=True)
class DataSet:
    """A tensor of inputs, and the only right answer to each."""

    inputs: Bits
    answers: Bits


@dataclass(frozen=True)
class ExportedTest:
    """A test of a case.

    A case whose source is text has one test for each ``group`` of texts; all others have one test,
    and no group.
    """

    data_sets: tuple[DataSet, ...]
    levels: Counter[str]
    """By level, the number of inputs that rules of that level take."""
    group: TextGroup | None = None

    @property
    def size(self) -> int:
        """The number of inputs."""
        return sum(each.inputs.size for each in self.data_sets)


@dataclass(frozen=True)
class ExportedCase:
    """The tests of a case, and the number of inputs that are left out, by reason.

    ``why_no_test`` is the reason if there are no tests, otherwise empty.
    """

    tests: tuple[ExportedTest, ...] = ()
    left_out: Counter[str] = field(default_factory=Counter)
    why_no_test: str = ""


def exported_case(case: Case) -> ExportedCase:
    """Return the tests of a case, or why it has none.

    A test has only inputs with a single right answer.
    """
    return _bitcast_tests(case) if is_bitcast(case) else _cast_tests(case)


def _cast_tests(case: Case) -> ExportedCase:
    rules = ruling(case)
    if rules.is_rejection or rules.is_open:
        return ExportedCase(why_no_test=REJECTED if rules.is_rejection else OPEN)
    inputs = few_inputs(case, rules, MAX_INPUTS)
    expected = Expectations(independent=True).of(rules, inputs)
    kept, left_out = _kept(rules, expected)
    if not kept.any():
        return ExportedCase((), left_out, ", ".join(left_out))
    # Of casts to text, only one that returns its input unchanged has a single right answer.
    answers = inputs if rules.target.kind == "text" else with_nans(rules, expected)
    levels = np.array([branch.level for branch in rules.branches])[expected.branch_indices]
    tests = tuple(
        ExportedTest(
            (DataSet(inputs[chosen], answers[chosen]),), Counter(levels[chosen].tolist()), group
        )
        for group, chosen in _groups(rules, inputs, kept)
    )
    return ExportedCase(tests, left_out)


def _groups(
    rules: Ruling, inputs: Bits, kept: NDArray[np.bool_]
) -> Iterator[tuple[TextGroup | None, NDArray[np.bool_]]]:
    """Yield each group of texts that has kept inputs, with a mask of these inputs.

    For a source other than text, yield None with the mask ``kept``.
    """
    if rules.source.kind != "text":
        yield None, kept
        return
    groups = np.array([text_group(rules.target, text) for text in inputs.tolist()])
    for group in TEXT_GROUPS:
        chosen = kept & (groups == group)
        if chosen.any():
            yield group, chosen


def _kept(rules: Ruling, expected: Expected) -> tuple[NDArray[np.bool_], Counter[str]]:
    """Return a mask of the inputs that have one right answer, and count the others by reason.

    Any NaN counts as one answer. Where an answer is recommended, it is the right one.
    """
    kept, left_out = np.ones(expected.branch_indices.size, bool), Counter[str]()
    for index, branch in enumerate(rules.branches):
        here = expected.branch_indices == index
        match branch.strictest:
            case Exactly():
                continue
            case Anything():
                out, why = here, OPEN
            case PlainText() | ParsesTo() | Rejected():
                out, why = here, SEVERAL
            case _:
                out, why = here & (expected.codes != expected.others), SEVERAL
        if out.any():
            left_out[why] += int(out.sum())
            kept &= ~out
    return kept, left_out


def _bitcast_tests(case: Case) -> ExportedCase:
    rules = bitcast_ruling(case)
    if rules.is_rejection or rules.result is None or not rules.keeps_bits:
        return ExportedCase(why_no_test=REJECTED if rules.is_rejection else OPEN)
    sets = tuple(DataSet(bits, by_integer(rules, bits)) for bits in contents(rules, seed=0))
    size = sum(each.inputs.size for each in sets)
    levels = Counter({rules.level: size} if size else {})
    return ExportedCase((ExportedTest(sets, levels),))


TextGroup = Literal[
    "ordinary", "digits", "spelling", "nonfinite", "subnormal", "underflow", "overflow"
]
TEXT_GROUPS: tuple[TextGroup, ...] = get_args(TextGroup)
NONFINITE = ("INF", "+INF", "-INF", "NaN")
"""The spellings that ONNX's page gives; it allows others, which are the group ``spelling``."""
GROUP_OF_ZONE: dict[Zone, TextGroup] = {
    "subnormal": "subnormal",
    "tiny": "underflow",
    "beyond": "overflow",
    "overflow": "overflow",
}
FLOAT64_DIGITS = 17
"""With more digits, a parser that goes by way of float64 may round twice."""


def text_group(target: Format, text: str) -> TextGroup:
    """Return the group of tests to which a text belongs as an input of a cast to ``target``.

    Numbers that are subnormal, underflow or overflow in the target are grouped so, and all other
    texts by spelling. For a target that is not numeric, the values are those of float64.
    """
    number = read_literal(text).number
    if number is None:
        return "nonfinite" if text in NONFINITE else "spelling"
    group = GROUP_OF_ZONE.get(
        _zone(target if target.is_numeric else format_named("float64"), number)
    )
    return group or _group_of_spelling(text)


def _zone(target: Format, number: Number) -> Zone:
    sign: Literal["-", "+"] = "-" if number.sign else "+"
    return number_atom("text-decimal", sign, target, "nearest-even", number).zone


def _group_of_spelling(text: str) -> TextGroup:
    match = NUMBER.fullmatch(text)
    assert match is not None
    sign, whole, fraction, power = match.groups()
    digits = (whole + (fraction or "")).strip("0")
    has_leading_zeros = len(whole) > 1 and whole.startswith("0")
    if sign == "+" or has_leading_zeros or (power and not digits):
        return "spelling"
    return "digits" if len(digits) > FLOAT64_DIGITS else "ordinary"


INDEX = "index.json"


@dataclass
class ExportIndex:
    """The content of ``index.json``: the tests that are written, and what is left out.

    ``tests`` has a record of each test: its folder, case, dtypes, group, and counts, as ``add``
    makes it. ``cases_left_out`` has the reason by case; ``inputs_left_out`` has by case the number
    of inputs by reason.
    """

    tests: list[dict[str, Any]] = field(default_factory=list)
    cases_left_out: dict[str, str] = field(default_factory=dict)
    inputs_left_out: dict[str, dict[str, int]] = field(default_factory=dict)

    def add(self, case: Case, test: ExportedTest, folder: str) -> None:
        """Add a test of a case, with the folder that it was written to."""
        self.tests.append(
            {
                "folder": folder,
                "case": case.id,
                "document": case.document,
                "version": case.version,
                "operation": "bitcast" if is_bitcast(case) else "cast",
                "source": case.source,
                "target": case.target,
                "parameters": case.mode,
                "group": test.group,
                "inputs": test.size,
                "levels": dict(test.levels),
            }
        )

    def reasons(self) -> list[tuple[str, int]]:
        """Return each reason why cases have no test, with their number, the most frequent first."""
        return Counter(self.cases_left_out.values()).most_common()

    def to_json(self) -> bytes:
        """Return the index as JSON, with the folders of tests by dtype."""
        dtypes: dict[str, list[str]] = {}
        for test in self.tests:
            for dtype in dict.fromkeys((test["source"], test["target"])):
                dtypes.setdefault(dtype, []).append(test["folder"])
        left_out = {"cases": self.cases_left_out, "inputs": self.inputs_left_out}
        content = {"tests": self.tests, "dtypes": dtypes, "left-out": left_out}
        return (json.dumps(content, indent=1) + "\n").encode()
