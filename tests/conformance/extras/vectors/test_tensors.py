"""Files of tensors, judged by arithmetic that shares nothing with the definitions behind them."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from fractions import Fraction
from math import floor, inf, isfinite, isnan
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from conformance.extras.vectors.command import selected_cases
from conformance.extras.vectors.tensors import (
    TensorFile,
    tensor_files,
    tensor_records,
)
from conformance.families import SMALL_TENSORS
from conformance.families.bitcast import small as small_bitcasts
from conformance.families.blocks import small as small_blocks
from conformance.families.quantization import small as small_quantizations
from conformance.families.small_tensors import AllowedCodes, allowed_codes
from specs.errors import CastigateError
from specs.formats import format_named
from specs.operations import operation_of
from specs.selection import case_named, select
from tests.conformance.extras.vectors.tensor_reading import (
    Record,
    allows,
    codes_of,
    read_tensors,
)

WEBNN = "webnn-quantize-linear:draft/float32/int8/scale:float32"
ROOT = Path(__file__).parents[4]
EXAMPLE = ROOT / "examples" / "vectors" / "tensors.c"
INTEGERS = ("int8", "uint8", "int4", "uint4", "int2", "uint2", "int16")
BLOCK_TYPES: dict[str, Any] = {
    "float8e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8e5m2": ml_dtypes.float8_e5m2,
    "float6e2m3": ml_dtypes.float6_e2m3fn,
    "float6e3m2": ml_dtypes.float6_e3m2fn,
    "float4e2m1": ml_dtypes.float4_e2m1fn,
}


def files(ids: Callable[[str], bool], *names: str) -> list[TensorFile]:
    return [*tensor_files(case for case in select(names) if ids(case.id))]


def records(ids: Callable[[str], bool], *names: str) -> list[Record]:
    return [each for file in files(ids, *names) for each in read_tensors(file.content)[1]]


def matching(pattern: str) -> Callable[[str], bool]:
    return lambda case_id: re.search(pattern, case_id) is not None


def bits_of(dtype: str) -> int:
    """The width that a dtype's name has."""
    found = re.match(r"(?:u?int|b?float|complex)(\d+)", dtype)
    assert found is not None, dtype
    return int(found[1])


def value_of(dtype: str, code: int) -> float:
    """The value of an integer's or float32's code."""
    if dtype == "float32":
        return float(np.uint32(code).view(np.float32))
    bits = bits_of(dtype)
    is_negative = not dtype.startswith("u") and code >> (bits - 1)
    return code - (1 << bits) if is_negative else code


def ends_of(dtype: str) -> tuple[int, int]:
    bits = bits_of(dtype)
    return (0, (1 << bits) - 1) if dtype[0] == "u" else (-(1 << bits - 1), (1 << bits - 1) - 1)


def spread(record: Record, name: str) -> list[float]:
    """The scale or zero point of each element of ``x``, in row-major order; 0 without any."""
    shape = record.given["x"].shape
    if name not in record.given:
        return [0] * int(np.prod(shape))
    tensor = record.given[name]
    values = np.array([value_of(tensor.dtype, code) for code in tensor.codes], np.float64)
    match record.attributes["form"]:
        case "axis":
            values = np.broadcast_to(values.reshape(1, -1, *[1] * (len(shape) - 2)), shape)
        case "block":
            block = int(record.attributes["block"])
            values = values.reshape(tensor.shape).repeat(block, axis=1)[:, : shape[1]]
        case _:
            values = np.broadcast_to(values, shape)
    return [float(each) for each in values.reshape(-1)]


def single(value: Fraction) -> float:
    """The nearest float32, ties to even."""
    if value == 0:
        return 0.0
    magnitude = abs(value)
    power = -126
    while Fraction(2) ** (power + 1) <= magnitude:
        power += 1
    unit = Fraction(2) ** (power - 23)
    return float(round(magnitude / unit) * unit * (1 if value > 0 else -1))


def beside(value: float) -> Iterator[float]:
    """The two float32 next to one, and itself."""
    one = np.float32(value)
    with np.errstate(over="ignore"):
        yield from [float(np.nextafter(one, np.float32(end))) for end in (-inf, inf)]
    yield value


@pytest.mark.parametrize("target", INTEGERS)
def test_codes_are_those_of_fractions(target: str) -> None:
    """An exact quotient has one code; a rounded one may have those of the float32 beside it."""
    low, high = ends_of(target)
    mask = (1 << bits_of(target)) - 1
    found = records(
        matching(f"/float32/{target}/scale:float32/form:\\w+(/block:16)?$"),
        "onnx-quantize-linear:25",
    )
    assert {each.attributes["form"] for each in found} == {"tensor", "axis", "block"}
    ties = ends = 0
    for record in found:
        scales, zeros = spread(record, "y_scale"), spread(record, "y_zero_point")
        words = record.results["y"].words
        for code, scale, zero, word in zip(
            record.given["x"].codes, scales, zeros, words, strict=True
        ):
            x = value_of("float32", code)
            if not isfinite(x):
                code_due = {inf: high, -inf: low}.get(x)
                assert word == "?" if code_due is None else allows(word, code_due & mask)
                continue
            quotient = Fraction(x) / Fraction(scale)
            nearest = single(quotient)
            if abs(nearest) > 3.4028234663852886e38:
                assert word == "?"
                continue
            near = [nearest] if Fraction(nearest) == quotient else [*beside(nearest)]
            codes = {min(max(round(each) + int(zero), low), high) & mask for each in near}
            due = min(max(round(nearest) + int(zero), low), high) & mask
            assert allows(word, due), (record.case, x, scale, zero, word)
            assert codes_of(word) <= codes
            ties += len(near) == 1 and quotient % 1 == Fraction(1, 2)
            ends += not low <= round(nearest) + zero <= high
    assert ties > 15
    assert ends > 30


@pytest.mark.parametrize(
    ("target", "dtype"),
    [("float8e4m3fn", ml_dtypes.float8_e4m3fn), ("float8e5m2", ml_dtypes.float8_e5m2)],
)
def test_small_floats_are_those_of_ml_dtypes(target: str, dtype: Any) -> None:
    """Quotients in float32, limited to the ends: one of the codes that are allowed."""
    case = f"/float32/{target}/scale:float32/form:\\w+(/block:16)?/saturate:1$"
    largest = float(ml_dtypes.finfo(dtype).max)
    single_codes = 0
    for record in records(matching(case), "onnx-quantize-linear:25"):
        scales = np.array(spread(record, "y_scale"), np.float32)
        x = np.array(record.given["x"].codes, np.uint32).view(np.float32)
        with np.errstate(all="ignore"):
            quotients = x / scales
            codes = np.clip(quotients, -largest, largest).astype(dtype).view(np.uint8)
        words = record.results["y"].words
        for number, quotient, code, word in zip(
            x.tolist(), quotients.tolist(), codes.tolist(), words, strict=True
        ):
            assert word == "?" or isnan(number) or allows(word, code)
            assert (word == "?") <= (isfinite(number) and not isfinite(quotient))
            single_codes += word == f"{code:02x}"
    assert single_codes > 60


def test_a_wrong_rounding_and_a_wrong_end_are_noticed_in_every_integer() -> None:
    found = records(
        matching("/float32/u?int\\d+/scale:float32/form:tensor$"), "onnx-quantize-linear:25"
    )
    ways: dict[str, Callable[[Fraction], int]] = {
        "half away": lambda q: floor(abs(q) + Fraction(1, 2)) * (1 if q > 0 else -1),
        "truncated": lambda q: int(q),
        "half up": lambda q: floor(q + Fraction(1, 2)),
    }
    noticed: set[tuple[str, str]] = set()
    for record in found:
        dtype = record.results["y"].dtype
        low, high = ends_of(dtype)
        mask = (1 << bits_of(dtype)) - 1
        scale, zero = spread(record, "y_scale")[0], int(spread(record, "y_zero_point")[0])
        for code, word in zip(record.given["x"].codes, record.results["y"].words, strict=True):
            x = value_of("float32", code)
            if not isfinite(x):
                continue
            quotient = Fraction(x) / Fraction(scale)
            for name, way in ways.items():
                if not allows(word, min(max(way(quotient) + zero, low), high) & mask):
                    noticed.add((dtype, name))
            if not allows(word, (round(quotient) + zero) & mask):
                noticed.add((dtype, "wraps"))
            if not allows(word, min(max(round(quotient) + zero, low + 1), high) & mask):
                noticed.add((dtype, "without the lowest code"))
            if not allows(word, min(max(round(quotient), low), high) + zero & mask):
                noticed.add((dtype, "zero point after the ends"))
    names = {*ways, "wraps", "without the lowest code", "zero point after the ends"}
    dtypes = {*INTEGERS, "uint16"}
    assert noticed == {(dtype, name) for dtype in dtypes for name in names}


@pytest.mark.parametrize("source", INTEGERS)
def test_dequantized_numbers_are_those_of_fractions(source: str) -> None:
    found = records(matching(f"/{source}/float32/scale:float32/"), "onnx-dequantize-linear:25")
    exact = 0
    for record in found:
        scales, zeros = spread(record, "x_scale"), spread(record, "x_zero_point")
        words = record.results["y"].words
        codes = record.given["x"].codes
        for code, scale, zero, word in zip(codes, scales, zeros, words, strict=True):
            product = (Fraction(value_of(source, code)) - Fraction(zero)) * Fraction(scale)
            number = single(product)
            if abs(number) > 3.4028234663852886e38:
                assert word == "?"
                continue
            due = int(np.float32(number).view(np.uint32))
            assert allows(word, due), (record.case, code, scale, zero, word)
            neighbors = {int(np.float32(each).view(np.uint32)) for each in beside(number)}
            if product and word != "?":
                ends = {int(each, 16) for each in word.split("..")}
                assert ends <= (neighbors if Fraction(number) != product else {due})
                exact += Fraction(number) == product
    assert exact > 10


def cut(codes: list[int], width: int, new_width: int) -> list[int]:
    """The bits of codes, the lowest of the first one first, cut into codes of another width."""
    bits = "".join(f"{code:0{width}b}"[::-1] for code in codes)
    return [int(bits[at : at + new_width][::-1], 2) for at in range(0, len(bits), new_width)]


@pytest.mark.parametrize("document", ["onnx-bitcast", "stablehlo-bitcast-convert:1.20"])
def test_bitcasts_are_cut_from_a_string_of_bits(document: str) -> None:
    found = records(lambda case: "/bool" not in case, document)
    widths = set()
    for record in found:
        given, result = record.given["input"], record.results["output"]
        pair = bits_of(given.dtype), bits_of(result.dtype)
        widths.add(pair)
        assert result.codes == cut(given.codes, *pair), record.case
        assert int(np.prod(given.shape)) * pair[0] == int(np.prod(result.shape)) * pair[1]
        assert len(given.codes) < 3 or len({*given.codes}) > 1
    assert {(4, 8), (8, 4)} <= widths if "stablehlo" in document else (4, 4) in widths
    if "stablehlo" in document:
        assert {(2, 8), (8, 2), (2, 4), (6, 6), (2, 64)} <= widths
        reversed_wrong = [
            record
            for record in found
            if record.results["output"].codes
            != cut(record.given["input"].codes[::-1], *map(bits_of, _dtypes(record)))[::-1]
        ]
        assert len(reversed_wrong) > 100


def _dtypes(record: Record) -> tuple[str, str]:
    return record.given["input"].dtype, record.results["output"].dtype


@pytest.mark.parametrize("element", BLOCK_TYPES)
def test_blocks_are_those_of_ml_dtypes(element: str) -> None:
    """The rule `floor`, by float64 and the element's own conversion."""
    dtype = BLOCK_TYPES[element]
    found = records(matching(f"/float32/{element}/rule:floor/"), "mx-blocks")
    largest = float(ml_dtypes.finfo(dtype).max)
    seen: set[str] = set()
    for record in found:
        x = np.array(record.given["x"].codes, np.uint32).view(np.float32).reshape(-1, 32)
        scales, words = record.results["scale"].words, record.results["y"].words
        for at, (row, scale) in enumerate(zip(x, scales, strict=True)):
            codes = words[32 * at : 32 * at + 32]
            most = float(np.abs(row).max())
            if isnan(most) or most in (0, inf):
                seen.add(str(most))
                assert scale == "?"
                assert {*codes} == {"?"}
                continue
            power = int(np.floor(np.log2(most))) - int(np.floor(np.log2(largest)))
            if power < -127:
                assert scale == "?"
                continue
            seen.add("scale")
            assert allows(scale, power + 127)
            quotients = np.clip(row.astype(np.float64) / 2.0**power, -largest, largest)
            due = quotients.astype(np.float32).astype(dtype).view(np.uint8)
            for code, word in zip(due.tolist(), codes, strict=True):
                assert word == f"{code:0{len(word)}x}", (record.case, at)
    assert seen == {"nan", "0.0", "inf", "scale"}


def log2_floor(value: Fraction) -> int:
    power = value.numerator.bit_length() - value.denominator.bit_length()
    return power if Fraction(2) ** power <= value else power - 1


def log2_ceil(value: Fraction) -> int:
    return -log2_floor(1 / value)


SCALE_RULES: dict[str, Callable[[Fraction, Fraction], int]] = {
    "floor": lambda a, most: log2_floor(a) - log2_floor(most),
    "ceil": lambda a, most: log2_ceil(a) - log2_floor(most),
    "round-up": lambda a, most: log2_ceil(a / most),
    "round-down": lambda a, most: log2_floor(a / most),
}


@pytest.mark.parametrize("element", BLOCK_TYPES)
def test_each_rule_for_scales_differs_from_every_other(element: str) -> None:
    most = Fraction(float(ml_dtypes.finfo(BLOCK_TYPES[element]).max))
    differs: set[tuple[str, str]] = set()
    found = records(matching(f"/float32/{element}/rule:({'|'.join(SCALE_RULES)})/"), "mx-blocks")
    for record in found:
        rule = record.attributes["rule"]
        x = np.array(record.given["x"].codes, np.uint32).view(np.float32).reshape(-1, 32)
        for row, word in zip(x, record.results["scale"].words, strict=True):
            largest = float(np.abs(row).max())
            if word == "?" or not isfinite(largest):
                continue
            for other, power in SCALE_RULES.items():
                code = max(power(Fraction(largest), most) + 127, 0)
                assert other != rule or allows(word, code)
                if not allows(word, code):
                    differs.add((rule, other))
    wanted = {(rule, other) for rule in SCALE_RULES for other in SCALE_RULES if rule != other}
    assert differs == wanted


@pytest.mark.parametrize("given", ["none", "given"])
def test_scales_with_a_mantissa_are_those_of_fractions(given: str) -> None:
    """The rule `nearest-even` for NVFP4: the scale is found among all values of float8e4m3fn."""
    found = records(matching(f"float32/.*rule:nearest-even/global:{given}"), "nvfp4-blocks")
    values = np.arange(0x7F, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float64)
    ties = 0
    for record in found:
        x = np.array(record.given["x"].codes, np.uint32).view(np.float32).reshape(-1, 16)
        whole = Fraction(1)
        if given == "given":
            whole = Fraction(value_of("float32", record.given["global"].codes[0]))
        words = record.results["y"].words
        for at, (row, word) in enumerate(zip(x, record.results["scale"].words, strict=True)):
            if word == "?":
                continue
            quotient = Fraction(float(np.abs(row).max())) / 6 / whole
            away = sorted(
                (abs(Fraction(each) - quotient), code) for code, each in enumerate(values)
            )
            nearest = [code for distance, code in away if distance == away[0][0]]
            ties += len(nearest) > 1
            [code] = nearest if len(nearest) == 1 else [each for each in nearest if each % 2 == 0]
            assert word == f"{code:02x}"
            factor = Fraction(values[code]) * whole
            for number, each in zip(row.tolist(), words[16 * at : 16 * at + 16], strict=True):
                sign = 8 if np.signbit(number) else 0
                assert each == f"{nearest_e2m1(abs(Fraction(number) / factor)) | sign:x}"
    assert ties > 0


def nearest_e2m1(magnitude: Fraction) -> int:
    values = [Fraction(each) for each in (0, 0.5, 1, 1.5, 2, 3, 4, 6)]
    return min(range(8), key=lambda code: (abs(values[code] - magnitude), code % 2))


@pytest.mark.parametrize("element", BLOCK_TYPES)
def test_decoded_blocks_are_those_of_ml_dtypes(element: str) -> None:
    [*found] = records(matching(f"/{element}/float32/"), "mx-blocks-decode")
    for record in found:
        dtype = BLOCK_TYPES[element]
        x = np.array(record.given["x"].codes, np.uint8).view(dtype).astype(np.float64)
        scales = np.array(record.given["scale"].codes, np.uint8).view(ml_dtypes.float8_e8m0fnu)
        products = x.reshape(-1, 32) * scales.astype(np.float64)[:, None]
        for product, word in zip(
            products.reshape(-1).tolist(), record.results["y"].words, strict=True
        ):
            if isnan(product):
                assert allows(word, 0x7FC00000)
                assert allows(word, 0xFF800001)
                assert word != "?"
                assert not allows(word, 0x7F800000)
            elif word == "?":
                assert abs(product) > 3.4028234663852886e38
            else:
                assert int(word, 16) == int(np.float32(product).view(np.uint32))


def test_a_dynamic_scale_follows_from_the_range() -> None:
    found = records(lambda _: True, "onnx-dynamic-quantize-linear")
    assert len(found) > 8
    for record in found:
        x = np.array(record.given["x"].codes, np.uint32).view(np.float32)
        low, high = min(float(x.min()), 0.0), max(float(x.max()), 0.0)
        scale = np.float32(np.float32(high - low) / np.float32(255))
        [word] = record.results["y_scale"].words
        assert allows(word, int(scale.view(np.uint32)))
        [zero] = record.results["y_zero_point"].words
        if scale > 1e-40:
            due = int(np.clip(np.rint(-np.float32(low) / scale), 0, 255))
            assert allows(zero, due)
            codes = np.clip(np.rint(x / scale) + due, 0, 255).astype(int)
            for code, each in zip(codes.tolist(), record.results["y"].words, strict=True):
                assert allows(each, code)


def test_a_file_counts_what_it_tells_and_what_it_leaves_out() -> None:
    for file in files(
        lambda _: True, "wasm-reinterpret:3.0", "nvfp4-blocks", "webnn-quantize-linear"
    ):
        document, found = read_tensors(file.content)
        assert file.path == f"tensors/{document.replace(':', '-')}.txt"
        assert len(found) == file.records
        assert tuple(dict.fromkeys(each.case for each in found)) == file.cases
        cases = [each.id for each in select([document])]
        assert [each for each in cases if each in file.cases] == [*file.cases]
        assert len(cases) == len(file.cases) + sum(map(len, file.left_out.values()))


def test_what_has_no_record_has_a_reason() -> None:
    refused = "onnx-bitcast:26/float64/int32/shape:scalar"
    assert tensor_records(case_named(refused)) == ((), "must be refused")
    [file] = files(lambda _: True, "cinn-bitcast-convert")
    assert len(file.left_out["two shapes are allowed"]) > 200
    [file] = files(lambda _: True, "onnx-bitcast")
    assert refused in file.left_out["must be refused"]
    assert len(file.left_out["must be refused"]) > 2000
    [empty] = files(lambda case: case == refused, "onnx-bitcast")
    assert (empty.records, empty.cases) == (0, ())
    assert read_tensors(empty.content) == ("onnx-bitcast:26", [])


def test_the_same_cases_give_the_same_bytes() -> None:
    cases = [*select(["webnn-dequantize-linear"]), *select(["nvfp4-blocks-decode"])]
    once = [*tensor_files(cases)]
    assert [each.path for each in once] == [
        "tensors/nvfp4-blocks-decode-1.txt",
        "tensors/webnn-dequantize-linear-draft.txt",
    ]
    assert once == [*tensor_files(cases)]


def test_the_newest_version_of_each_document_is_told() -> None:
    found = {
        (case.document, case.version)
        for case in selected_cases((), ())
        if operation_of(case) in SMALL_TENSORS
    }
    assert ("onnx-quantize-linear", "25") in found
    assert ("mx-blocks", "1") in found
    assert len(found) == len({document for document, _ in found}) >= 16


CUT: list[tuple[str, str, str]] = [
    (r"\Z", "\n", "the end"),
    (r"tensors (\S+) \d+", r"tensors \1 3", "another number"),
    (r"(=y \S+ \S+ : )\S+ ", r"\1", "words missing"),
    (r"(x \S+ \S+ : \S)", r"\g<1>0", "different lengths"),
    (r"\n\ncase", "\n\ncas", "cas"),
]


@pytest.mark.parametrize(("pattern", "by", "said"), CUT)
def test_the_reader_sees_damage(pattern: str, by: str, said: str) -> None:
    [file] = files(matching("/float32/"), "nvfp4-blocks")
    text = file.content.decode()
    damaged = re.sub(pattern, by, text, count=1)
    assert damaged != text
    read_tensors(file.content)
    with pytest.raises(AssertionError, match=said):
        read_tensors(damaged.encode())


def test_a_code_that_one_definition_has_otherwise_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expect, codes, by_number = (
        small_quantizations.expect, small_blocks.codes, small_bitcasts.by_number,
    )  # fmt: skip

    def other_code(*given: Any) -> Any:
        found = expect(*given)
        found.strong[0] = found.strong[0] ^ (np.arange(found.strong[0].size) == 3)
        return found

    def other_block(*given: Any) -> Any:
        found = codes(*given)
        return found._replace(codes=found.codes ^ np.uint8(1))

    def other_bits(*given: Any) -> list[int]:
        return by_number(*given)[::-1]

    for module, name, wrong, case in (
        (small_quantizations, "expect", other_code, f"{WEBNN}/form:tensor"),
        (small_blocks, "codes", other_block, "mx-blocks:1/float32/float4e2m1/rule:floor/block:32"),
        (small_bitcasts, "by_number", other_bits, "onnx-bitcast:26/int8/uint8/shape:3"),
    ):  # fmt: skip
        with monkeypatch.context() as planted:
            planted.setattr(module, name, wrong)
            with pytest.raises(CastigateError, match="two definitions disagree on `"):
                tensor_records(case_named(case))


@pytest.mark.parametrize(
    ("codes", "due"),
    [
        ([range(3, 4)], [(3, 3, 0xFF)]),
        ([range(4, 5), range(3, 4)], [(3, 4, 0xFF)]),
        ([range(1), range(0x80, 0x81)], [(0, 0, 0x7F)]),
        ([range(0x7D, 0x80), range(0xFD, 0x100)], [(0x7D, 0x7F, 0x7F)]),
        ([range(1), range(2, 3), range(9, 10)], [(0, 0, 0xFF), (2, 2, 0xFF), (9, 9, 0xFF)]),
        ([range(1, 2), range(0x82, 0x83)], [(1, 1, 0xFF), (0x82, 0x82, 0xFF)]),
    ],
)  # fmt: skip
def test_codes_become_few_alternatives(codes: list[range], due: list[tuple[int, int, int]]) -> None:
    assert allowed_codes(format_named("float8e5m2"), codes) == tuple(
        AllowedCodes(*each) for each in due
    )


RIGHT = "float q = nearbyintf(x / scale) + zero; return q < 0 || q != q ? 0 : q > 255 ? 255 : q;"
BODIES = {
    "right": RIGHT,
    "half-away": RIGHT.replace("nearbyintf", "roundf"),
    "no-saturation": RIGHT[: RIGHT.index("return")] + "return (uint8_t)(int64_t)q;",
    "no-zero-point": RIGHT.replace(" + zero", ""),
    "truncated-product": RIGHT.replace("nearbyintf(x / scale)", "truncf(x * (1 / scale))"),
}


@pytest.mark.parametrize("name", BODIES)
def test_the_example_in_c_judges_a_right_and_a_wrong_function(name: str, tmp_path: Path) -> None:
    body, is_right = BODIES[name], name == "right"
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("gcc is not installed")
    (tmp_path / "quantize.h").write_text(
        "#include <math.h>\n"
        f"static uint8_t quantize(float x, float scale, uint8_t zero) {{ {body} }}\n"
    )
    [file] = files(
        matching("/float32/u?int8/scale:float32/form:tensor$"), "onnx-quantize-linear:25"
    )
    (tmp_path / "file.txt").write_bytes(file.content)
    (tmp_path / "cut.txt").write_bytes(file.content[: len(file.content) // 2])
    program = str(tmp_path / "tensors")
    options = ["-O2", "-Wall", "-Werror", "-std=c99", f"-I{tmp_path}"]
    subprocess.run([compiler, *options, "-o", program, str(EXAMPLE), "-lm"], check=True)
    done = subprocess.run([program, "file.txt"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == (0 if is_right else 1), done.stdout
    assert done.stdout.endswith(" 0 wrong\n") == is_right
    assert subprocess.run([program, "cut.txt"], cwd=tmp_path, capture_output=True).returncode == 2
    assert len(EXAMPLE.read_text().splitlines()) <= 40
