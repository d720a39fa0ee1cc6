"""Libraries of block formats: what each offers, and that adapters move codes and scales rightly.

What a library computes is judged by documents. Here blocks are exact: every element is a code's
value times a scale, which all rules find. So codes and scales must come out as they are, in their
order. Libraries that are not installed are skipped; a stand-in shows that these tests can fail.
"""

from __future__ import annotations

import importlib
from fractions import Fraction
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from oracles.adapters.block_libraries import (
    FAMILIES,
    NUMBERS,
    BlockCase,
    BlockLibrary,
    block_case,
)
from oracles.protocol import Bits, NotInstalled, Unsupported
from oracles.reference.exact import Number, decode
from oracles.registry import BUILTINS
from specs.cases import Case
from specs.formats import format_named
from tests.adapters.block_offers import (
    E2M1,
    MX_ELEMENTS,
    MX_OFFERS,
    MX_RULES,
    NVFP4_OFFERS,
    NVFP4_RULES,
    Offer,
)
from tests.adapters.common import onnx_case, run_script

BY_LARGEST = ("round-down", "nearest", "nearest-log", *NVFP4_RULES[1:])
"""Rules by which the scale is 1 if a block's maximum is the element's largest value."""


def library_class(name: str) -> type[BlockLibrary]:
    builtin = BUILTINS[name]
    found: type[BlockLibrary] = getattr(importlib.import_module(builtin.module), builtin.attribute)
    return found


@pytest.fixture(scope="module", params=MX_OFFERS)
def library(request: pytest.FixtureRequest) -> BlockLibrary:
    if find_spec(BUILTINS[request.param].package or "") is None:
        pytest.skip(f"{request.param} is not installed")
    return library_class(request.param)()


def case_of(number: str, element: str, rule: str, size: int, has_global: bool = False) -> Case:
    document = "mx-blocks" if size == 32 else "nvfp4-blocks"
    modes = [("global", "given")] if has_global else []
    if rule:
        return Case(document, "1", number, element, (("rule", rule), *modes, ("block", str(size))))
    return Case(f"{document}-decode", "1", element, number, (*modes, ("block", str(size))))


def asked_of(library: BlockLibrary, rules: tuple[str, ...], size: int) -> set[Offer]:
    found = set()
    for number in NUMBERS:
        for element in MX_ELEMENTS:
            for rule in ("", *rules):
                try:
                    library.lines(block_case(case_of(number, element, rule, size)))
                except Unsupported:
                    continue
                found.add((number, element, rule))
    return found


@pytest.mark.parametrize("name", MX_OFFERS)
def test_what_a_library_offers(name: str) -> None:
    """The adapter lists what it offers even if the library is not installed."""
    kind = library_class(name)
    library = kind.__new__(kind)
    assert asked_of(library, MX_RULES, 32) == MX_OFFERS[name]
    assert asked_of(library, NVFP4_RULES, 16) == NVFP4_OFFERS[name]


@pytest.mark.parametrize("name", [name for name in MX_OFFERS if BUILTINS[name].extra])
def test_a_missing_package_names_the_extra(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = library_class(name)
    missing = f"import missing_package_of_{name}\n"
    monkeypatch.setattr(kind, "imports", missing)
    with pytest.raises(NotInstalled, match=rf"'castigate\[{BUILTINS[name].extra}\]'$"):
        kind()


def test_a_variant_is_refused(library: BlockLibrary) -> None:
    with pytest.raises(Unsupported, match="no variant `fast`; it has none"):
        type(library)("fast")


def test_a_cast_is_refused(library: BlockLibrary) -> None:
    with pytest.raises(Unsupported, match=r"makes blocks, and casts no tensor|mlx has no dtype"):
        library.cast(onnx_case("float32", "float4e2m1"), np.zeros(1, np.uint32))


@pytest.mark.parametrize(
    "case",
    [
        onnx_case("float32", "float8e4m3fn"),
        Case("mx-blocks", "1", "float32", E2M1, (("block", "32"),)),
        Case("mx-blocks", "1", "float32", E2M1, (("rule", "floor"), ("block", "64"))),
        Case("mx-blocks-decode", "1", E2M1, "int8", (("block", "32"),)),
    ],
    ids=str,
)
def test_what_is_no_case_of_blocks_is_refused(case: Case) -> None:
    with pytest.raises(Unsupported, match="makes blocks of 32 or 16 elements only"):
        block_case(case)


def value_of(dtype: str, code: int) -> Fraction | None:
    """The value of a code; None for NaN, infinity, and zero, whose sign libraries lose."""
    fmt = format_named(dtype)
    datum = decode(fmt, code)
    if not isinstance(datum, Number) or not datum.significand:
        return None
    value = Fraction(datum.significand) * Fraction(2) ** datum.exponent
    unit = Fraction(1, 64) if dtype == "int8" else Fraction(1)
    return (-value if datum.sign else value) * unit


def pattern_of(number: str, value: Fraction) -> int:
    """The pattern of a value, which the dtype must represent exactly."""
    width = {"float32": np.float32, "bfloat16": np.float32, "float16": np.float16}[number]
    array = np.array([float(value)], width)
    assert Fraction(float(array[0])) == value
    pattern = int(array.view({4: np.uint32, 2: np.uint16}[array.itemsize])[0])
    return pattern >> 16 if number == "bfloat16" else pattern


def exact_blocks(asked: BlockCase, total: Fraction) -> tuple[Bits, Bits, Bits]:
    """Return the numbers, codes and scales of exact blocks, with every code at many positions."""
    fmt = format_named(asked.element)
    values = {code: value_of(asked.element, code) for code in range(1 << fmt.bits)}
    finite = {code: value for code, value in values.items() if value is not None}
    top = max(finite, key=lambda code: finite[code])
    if asked.size == 32 and asked.rule and asked.rule not in BY_LARGEST:
        # The largest power of two.
        power = Fraction(2) ** (int(finite[top]).bit_length() - 1)
        top = next(code for code, value in finite.items() if value == power)
    codes = [code for code, value in finite.items() if abs(value) <= finite[top]]
    one = 127 if asked.size == 32 else 0x38
    step = 1 if asked.size == 32 else 8  # to the next power of two
    rows = [np.roll(np.resize(np.roll(codes, row), asked.size), row) for row in range(8)]
    scales = [one + step * (row % 4 - 3) for row in range(len(rows))]
    for row, block in enumerate(rows):
        block[row * 5 % asked.size] = top
    factors = [Fraction(2) ** (row % 4 - 3) * total for row in range(len(rows))]
    numbers = [
        [pattern_of(asked.number, finite[code] * factors[row]) for code in block]
        for row, block in enumerate(map(np.ndarray.tolist, rows))
    ]
    storage = format_named(asked.number).storage
    # Two blocks in each row of a tensor.
    return (
        np.array(numbers, storage).reshape(4, -1),
        np.array(rows, np.uint8).reshape(4, -1),
        np.array(scales, np.uint8).reshape(4, -1),
    )


OF_ANOTHER_DTYPE = [
    ("mlx", f"nvfp4-blocks-decode:1/float4e2m1/{number}/global:given/block:16")
    for number in ("bfloat16", "float16")
]
"""Cases that mlx 0.32.4 answers in float32, whatever dtype it is asked for."""


def wrong_cases(library: BlockLibrary) -> list[str]:
    """The cases in which a library changes exact blocks; an entry `no case` if it offers none."""
    wrong, count = [], 0
    for size, rules in ((32, MX_RULES), (16, NVFP4_RULES)):
        for number, element, rule in sorted(asked_of(library, rules, size)):
            for has_global in (False, True)[: 2 if size == 16 else 1]:
                case = case_of(number, element, rule, size, has_global)
                if (library.name, case.id) in OF_ANOTHER_DTYPE:
                    continue
                try:
                    count += 1
                    wrong += [] if keeps_exact_blocks(library, case) else [case.id]
                except Unsupported:
                    assert has_global
    return wrong if count else ["no case"]


def keeps_exact_blocks(library: BlockLibrary, case: Case) -> bool:
    asked = block_case(case)
    total = Fraction(1, 8) if asked.has_global else Fraction(1)
    numbers, codes, scales = exact_blocks(asked, total)
    tensors = {"global": np.array(np.float32(total)).view(np.uint32)} if asked.has_global else {}
    if asked.is_decoding:
        found = library.quantize(case, {"x": codes, "scale": scales, **tensors})
        return np.array_equal(found["y"], numbers) and found["y"].dtype == numbers.dtype
    found = library.quantize(case, {"x": numbers, **tensors})
    return (
        np.array_equal(found["y"], codes)
        and np.array_equal(found["scale"], scales)
        and {array.dtype for array in found.values()} == {np.dtype(np.uint8)}
    )


def test_codes_and_scales_come_out_as_they_are(library: BlockLibrary) -> None:
    assert wrong_cases(library) == []


@pytest.mark.parametrize(("name", "case_id"), OF_ANOTHER_DTYPE)
def test_an_answer_of_another_dtype_is_an_error(name: str, case_id: str) -> None:
    if find_spec(BUILTINS[name].package or "") is None:
        pytest.skip(f"{name} is not installed")
    _, element, number, *_ = case_id.split("/")
    case = case_of(number, element, "", 16, has_global=True)
    with pytest.raises(AssertionError, match=r"^the result is mlx\.core\.float32$"):
        keeps_exact_blocks(library_class(name)(), case)


def test_a_script_prints_what_the_library_answers(library: BlockLibrary) -> None:
    shown = 0
    for size, rules in ((32, MX_RULES), (16, NVFP4_RULES)):
        offered = sorted(asked_of(library, rules, size))
        for is_decoding in (False, True):
            cases = [each for each in offered if (each[2] == "") is is_decoding][:1]
            for number, element, rule in cases:
                case = case_of(number, element, rule, size)
                assert_script(library, case, size)
                shown += 1
    assert shown


def assert_script(library: BlockLibrary, case: Case, size: int) -> None:
    numbers, codes, scales = (each[:1] for each in exact_blocks(block_case(case), Fraction(1)))
    few = np.arange(size) % 10 == 0
    if block_case(case).is_decoding:
        tensors = {"x": np.where(few, codes[:, :size], codes.dtype.type(1)), "scale": scales[:, :1]}
    else:
        tensors = {"x": np.where(few, numbers[:, :size], numbers.dtype.type(0))}
    script = library.reproduce_quantize(case, tensors)
    assert "castigate" not in script
    assert len(script.splitlines()) <= 16
    assert max(map(len, script.splitlines())) <= 110
    found = library.quantize(case, tensors)
    expected = [f"{case.target}: " + " ".join(map(hex, found["y"].flat))]
    if "scale" in found:
        expected.insert(0, "scales: " + " ".join(map(hex, found["scale"].flat)))
    assert run_script(script)[-len(expected) :] == expected


@pytest.mark.parametrize("family", FAMILIES.values())
def test_blocks_that_are_not_whole_are_filled_up_or_refused(
    library: BlockLibrary, family: str
) -> None:
    size = next(size for size, name in FAMILIES.items() if name == family)
    rules = MX_RULES if size == 32 else NVFP4_RULES
    for number, element, rule in sorted(asked_of(library, rules, size)):
        asked = block_case(case := case_of(number, element, rule, size))
        numbers, codes, scales = exact_blocks(asked, Fraction(1))
        length = 2 * size - 3
        tensors = {"x": numbers[:, :length]}
        if asked.is_decoding:
            tensors = {"x": codes[:, :length], "scale": scales}
        if not library.takes_ragged(asked):
            with pytest.raises(Unsupported, match="takes rows of whole blocks only"):
                library.quantize(case, tensors)
            continue
        found = library.quantize(case, tensors)
        assert found["y"].shape == (4, length)
        assert asked.is_decoding or found["scale"].shape == (4, 2)


class StandIn(BlockLibrary):
    """Makes blocks with numpy and ml_dtypes, by code in which a test may change a text."""

    name = distribution = extra = "ml_dtypes"
    imports = "import ml_dtypes\n"
    change: tuple[str, str] = ("", "")

    def lines(self, asked: BlockCase) -> list[str]:
        if (asked.number, asked.element, asked.size) != ("float32", E2M1, 32):
            raise self.declined(asked)
        if asked.rule not in ("", "floor"):
            raise self.declined(asked)
        if asked.is_decoding:
            lines = [
                "values = bits.view(ml_dtypes.float4_e2m1fn).astype(np.float32)",
                "powers = np.repeat(scale_bits.astype(np.int32) - 127, 32, axis=1)",
                "y = np.ldexp(values, powers).view(np.uint32)",
            ]
        else:
            lines = [
                "x = bits.view(np.float32).reshape(len(bits), -1, 32)",
                "power = np.frexp(np.abs(x).max(axis=-1))[1] - 3",
                "scale = (power + 127).astype(np.uint8)",
                "codes = np.ldexp(x, -power[..., None]).astype(ml_dtypes.float4_e2m1fn)",
                "y = codes.view(np.uint8) & 15",
            ]
        return [line.replace(*self.change) for line in lines] if self.change[0] else lines


def test_a_library_that_answers_rightly_passes() -> None:
    assert wrong_cases(StandIn()) == []
    assert_script(StandIn(), case_of("float32", E2M1, "floor", 32), 32)


@pytest.mark.parametrize(
    "change",
    [
        ("codes.view(np.uint8) & 15", "codes.view(np.uint8).reshape(-1, 2)[:, ::-1] & 15"),
        ("codes.view(np.uint8) & 15", "codes.view(np.uint8) & 7"),
        ("power + 127", "power + 126"),
        ("(power + 127)", "(power + 127)[::-1]"),
        (".astype(np.uint8)", ".astype(np.int32)"),
        ("- 127, 32, axis=1", "- 126, 32, axis=1"),
        ("bits.view", "(bits ^ 8).view"),
        ("[1] - 3", "[1] - 2"),
    ],
    ids=lambda change: change[1],
)
def test_a_library_that_answers_wrongly_fails(change: tuple[str, str]) -> None:
    kind: Any = type("Wrong", (StandIn,), {"change": change})
    assert wrong_cases(kind()) != []
