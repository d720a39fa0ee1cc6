"""WebAssembly's own test of conversions against the reference.

``CASTIGATE_WAST`` names a ``conversions.wast``, test/core/conversions.wast of WebAssembly/spec. Its
618 assertions at 285a903 all agree: 518 values, 8 NaNs, 67 traps and 25 modules that are invalid.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from conformance.families.reference import Reference
from oracles.reference import expect_by_exact
from specs.cases import Case
from specs.formats import format_named
from specs.outcomes import Nan, Rejected
from specs.ruling import ruling

FILE = os.environ.get("CASTIGATE_WAST", "")
VERSIONS = ("2.0", "3.0")
ASSERTION = re.compile(
    r"""\(assert_(?P<kind>return|trap)\s*
        \(invoke\s*"(?P<name>[\w.]+)"\s*\((?P<source>\w+)\.const\s+(?P<given>[^\s)]+)\)\)\s*
        (?:\((?P<target>\w+)\.const\s+(?P<result>[^\s)]+)\)|"[^"]*")\)""",
    re.VERBOSE,
)
INVALID = re.compile(
    r"""\(assert_invalid\s*\(module\s*\(func\s*\(result\s(?P<target>\w+)\)\s*
        \((?P<name>[\w.]+)\s*\((?P<source>\w+)\.const\s[^\s)]+\)\)\)\)\s*"type\ mismatch"\)""",
    re.VERBOSE,
)
BEGINNING = re.compile(r"^\(assert_", re.MULTILINE)
FLOATS = {"f32": "float32", "f64": "float64"}
NAN_PATTERNS = ("nan:canonical", "nan:arithmetic")
SAMPLE = """
(assert_return (invoke "i64.extend_i32_u" (i32.const -10000)) (i64.const 0x00000000ffffd8f0))
(assert_trap (invoke "i32.trunc_f32_s" (f32.const -nan:0x200000)) "invalid conversion")
(assert_return (invoke "i32.trunc_sat_f64_u" (f64.const 1e16)) (i32.const 0xffff_ffff))
(assert_return (invoke "f32.demote_f64" (f64.const -0x1.fffffefffffffp+127))
               (f32.const -0x1.fffffep+127))
(assert_return (invoke "f64.promote_f32" (f32.const nan)) (f64.const nan:canonical))
(assert_return (invoke "i32.reinterpret_f32" (f32.const 3.1415926)) (i32.const 1078530010))
"""


@dataclass(frozen=True)
class Assertion:
    """An instruction, the text of its operand, and that of its result, or None if it traps."""

    name: str
    given: str
    result: str | None

    def differences(self, version: str) -> list[str]:
        """Describe how the reference differs from the assertion; empty if it agrees."""
        case = self._case(version)
        given = pattern(case.source, self.given)
        if case.document == "wasm-reinterpret":
            bits = np.array([given], format_named(case.source).storage)
            found: object = int(Reference().bitcast(case, bits)[0])
        else:
            allowed = expect_by_exact.allow(ruling(case), given)
            match allowed.branch.outcome:
                case Rejected():
                    found = None
                case Nan(sign="any"):
                    found = NAN_PATTERNS
                case _:
                    [found] = allowed.codes
        wanted: object = None
        if self.result in NAN_PATTERNS:
            # The document allows every NaN here, and says in a note that the page allows fewer.
            wanted = NAN_PATTERNS
        elif self.result is not None:
            wanted = pattern(case.target, self.result)
        return [] if found == wanted else [f"{case.id}, {self}: {found}, not {wanted}"]

    def _case(self, version: str) -> Case:
        target_type, operator, source_type, sign = parts_of(self.name)
        unsigned = "u" if sign == "u" else ""
        source, target = (
            FLOATS.get(name) or f"{unsigned}int{name[1:]}" for name in (source_type, target_type)
        )
        document, modes = "wasm-convert", ()
        match operator:
            case "trunc" | "trunc_sat":
                modes = (("operator", operator),)
            case "promote" | "demote" if version == "3.0":
                modes = (("profile", "full"),)
            case "reinterpret":
                document, modes = "wasm-reinterpret", (("shape", "1"),)
        return Case(document, version, source, target, modes)


def parts_of(name: str) -> tuple[str, str, str, str | None]:
    """The types, the operator and the sign in an instruction's name."""
    found = re.fullmatch(r"([if]\d\d)\.(\w+?)_([if]\d\d)(?:_([su]))?", name)
    assert found, name
    target, operator, source, sign = found.groups()
    return target, operator, source, sign


def pattern(dtype: str, text: str) -> int:
    """The pattern of a literal of the text format."""
    text = text.replace("_", "")
    entry = format_named(dtype)
    if entry.is_integral:
        return int(text, 0) % (1 << entry.bits)
    sign = entry.sign_bit if text.startswith("-") else 0
    magnitude = text.lstrip("+-")
    if magnitude.startswith("nan"):
        payload = magnitude.removeprefix("nan").removeprefix(":")
        top = 1 << entry.entry.mantissa - 1
        return sign | entry.infinity_code | (int(payload, 16) if payload else top)
    if magnitude == "inf":
        return sign | entry.infinity_code
    return sign | nearest(dtype, magnitude)


def nearest(dtype: str, magnitude: str) -> int:
    """The pattern nearest to a number of at least zero, found among all by bisection."""
    value, entry = rational(magnitude), format_named(dtype)
    below, above = 0, entry.max_code
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (middle, above) if value_of(dtype, middle) <= value else (below, middle)
    distances = [abs(value_of(dtype, code) - value) for code in (below, above)]
    if distances[0] == distances[1]:
        return below + below % 2
    return below if distances[0] < distances[1] else above


def value_of(dtype: str, code: int) -> Fraction:
    bits = np.array([code], format_named(dtype).storage)
    return Fraction(float(bits.view(dtype)[0]))


def rational(text: str) -> Fraction:
    """A literal's value: hexadecimal with a power of two, or decimal."""
    if not text.startswith("0x"):
        return Fraction(text)
    digits, _, exponent = text.removeprefix("0x").partition("p")
    whole, _, fraction = digits.partition(".")
    scale = int(exponent or "0") - 4 * len(fraction)
    return int(whole + fraction, 16) * Fraction(2) ** scale


def assertions(text: str) -> list[Assertion]:
    """All assertions of values and traps.

    Every assertion of the file must be parsed. The remaining ones are of modules that are invalid
    because an instruction takes or returns another type than its name says.
    """
    invalid = list(INVALID.finditer(text))
    for match in invalid:
        target, _, source, _ = parts_of(match["name"])
        assert (match["source"], match["target"]) != (source, target)
    found = [
        Assertion(match["name"], match["given"], match["result"])
        for match in ASSERTION.finditer(text)
    ]
    assert len(found) + len(invalid) == len(BEGINNING.findall(text))
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_some_assertions_are_read_and_agree(version: str) -> None:
    found = assertions(SAMPLE)
    assert [each.result is None for each in found] == [False, True, False, False, False, False]
    assert [each.differences(version) for each in found] == [[]] * 6


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("ffffd8f0", "ffffd8f1"),
        ("assert_trap", "assert_return"),
        ("trunc_sat_f64_u", "trunc_f64_u"),
        ("fffffep+127))", "fffffcp+127))"),
        ("nan:canonical", "inf"),
        ("1078530010", "1078530011"),
    ],
)
def test_another_result_is_a_difference(right: str, wrong: str) -> None:
    text = SAMPLE.replace(right, wrong).replace(
        '"invalid conversion"', "(i32.const 0)", wrong == "assert_return"
    )
    differences = [line for each in assertions(text) for line in each.differences("3.0")]
    assert len(differences) == 1


@pytest.mark.skipif(not FILE, reason="CASTIGATE_WAST names no conversions.wast")
@pytest.mark.parametrize("version", VERSIONS)
def test_every_assertion_of_the_file_agrees(version: str) -> None:
    found = assertions(Path(FILE).read_text(encoding="utf-8"))
    assert [line for each in found for line in each.differences(version)] == []
    kinds = Counter(
        "trap" if each.result is None else each.result if each.result in NAN_PATTERNS else "value"
        for each in found
    )
    print(len(found), "assertions:", dict(kinds))
