"""``castigate.py``: exact casts, bitcasts, and judgements on functions and arrays."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import castigate as cg

Array = NDArray[Any]
E4M3FN = ml_dtypes.float8_e4m3fn


def values_of_e4m3fn() -> dict[int, Fraction]:
    """Every finite value of e4m3fn by its code, by the format's definition."""
    found = {}
    for code in range(256):
        sign, exponent, mantissa = -1 if code & 128 else 1, code >> 3 & 15, code & 7
        if code & 127 != 127:
            scale = Fraction(2) ** (max(exponent, 1) - 7)
            found[code] = sign * scale * Fraction(mantissa + 8 * (exponent > 0), 8)
    return found


def nearest_e4m3fn(value: Fraction) -> set[int]:
    """The codes of the nearest values, of two equally near ones that with an even code."""
    table = values_of_e4m3fn()
    best = min(abs(each - value) for each in table.values())
    near = {code for code, each in table.items() if abs(each - value) == best}
    values = {table[code] for code in near}
    return {code for code in near if len(values) == 1 or code % 2 == 0}


def test_a_cast_to_a_small_float_is_nearest_and_clamped() -> None:
    chance = np.random.default_rng(3)
    given = np.concatenate([chance.normal(0, 100, 300), [0.1, 465, 1e9, -448, 2**-10, 3 * 2**-10]])
    floats = given.astype(np.float32)
    codes = cg.cast(floats, "fp32", "e4m3fn", bits=True)
    for value, code in zip(floats.tolist(), codes.tolist(), strict=True):
        assert code in nearest_e4m3fn(Fraction(value)), value
    array = cg.cast(floats, "fp32", "e4m3fn")
    assert array.dtype == np.dtype(E4M3FN)
    np.testing.assert_array_equal(array.view(np.uint8), codes)


@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_a_cast_keeps_the_shape(shape: tuple[int, ...]) -> None:
    given = np.full(shape, 2.5, np.float64)
    for target in ("bf16", "int8", "e5m2", "bool"):
        assert cg.cast(given, "float64", target).shape == shape


def test_a_mode_and_a_document_decide_what_is_beyond_the_range() -> None:
    assert cg.cast([465.0], "fp32", "e4m3fn", bits=True) == 0x7E
    assert cg.cast([465.0], "fp32", "e4m3fn", mode={"overflow": "nan"}, bits=True) == 0x7F
    saturate = {"saturate": 0}
    assert cg.cast([465.0], "fp32", "e4m3fn", document="onnx-cast", mode=saturate, bits=True) == 127
    assert cg.cast([300], "fp32", "int8", document="plain-cast:wraps") == 44
    assert cg.cast([300], "fp32", "int8", document="plain-cast:saturates") == 127
    assert cg.cast(["1.5", "-inf"], "string", "fp32", document="onnx-cast").tolist() == [
        1.5,
        -np.inf,
    ]


def test_values_are_taken_as_lists_arrays_patterns_and_tensors() -> None:
    torch = pytest.importorskip("torch")
    for given in (
        [1.5, -2.0],
        np.array([1.5, -2.0]),
        np.array([1.5, -2.0], ml_dtypes.bfloat16),
        np.array([0x3FC0, 0xC000], np.uint16),
        torch.tensor([1.5, -2.0], dtype=torch.bfloat16, requires_grad=True),
        torch.tensor([1.5, -2.0]),
    ):
        assert cg.cast(given, "bf16", "float32").tolist() == [1.5, -2.0]
    assert cg.cast([[1, 2]], np.int64, torch.float16).dtype == np.float16


SWAPPED = [
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (16, 32, 64)),
    *("float16", "float32", "float64", "complex64", "complex128", "bfloat16"),
]


@pytest.mark.parametrize("name", SWAPPED)
def test_the_other_byte_order_holds_the_same_numbers(name: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name) if name == "bfloat16" else name)
    raw = np.random.default_rng(5).bytes(64 * dtype.itemsize)
    native = np.frombuffer(raw, dtype)
    swapped = native.astype(dtype.newbyteorder("S"))
    assert swapped.tobytes() != raw
    assert cg.bitcast(swapped, name, name, bits=True).tobytes() == raw
    rules = "numpy-astype" if dtype.kind == "c" else None
    for given, answers in ((swapped, native), (native, swapped)):
        assert cg.judge(given, answers, document=rules).wrong == 0
    assert cg.check(lambda x: x.astype(x.dtype.newbyteorder("S")), name, name, document=rules)


def test_patterns_of_the_other_byte_order_are_read_as_patterns() -> None:
    codes = np.array([0x3FC0, 0xC000], ">u2")
    assert cg.cast(codes, "bf16", "float32").tolist() == [1.5, -2.0]
    swapped = np.array([2.5, -3.5, 300], ">f4")[::-1]
    assert cg.cast(swapped, "fp32", "fp16").tolist() == [300, -3.5, 2.5]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: cg.cast([300], "fp32", "int8"), "plain-cast:open leaves it open"),
        (lambda: cg.cast([300], "int8", "fp32"), "values[0] is 300, no value of int8"),
        (lambda: cg.cast([1, 1.5, 2.5], "int8", "fp32"), "is 1.5, no value of int8; so is 1 more"),
        (lambda: cg.cast([1e6], "fp16", "fp32"), "values[0] is 1000000, no value of float16"),
        (lambda: cg.cast([7], "fp4", "fp32"), "values[0] is 7, no value of float4e2m1"),
        (lambda: cg.cast([0.0], "e8m0", "fp32"), "values[0] is 0, no value of float8e8m0"),
        (lambda: cg.cast(["a"], "fp32", "int8"), "numpy makes no numbers of this"),
        (lambda: cg.cast([[1], [1, 2]], "fp32", "int8"), "values: no array of numbers"),
        (lambda: cg.cast([1], "flaot32", "int8"), "unknown dtype `flaot32`; did you mean"),
        (lambda: cg.cast([1], "fp32", "int4"), "name a document: onnx-cast, "),
        (lambda: cg.cast([1], "fp32", "e4m3fn", mode={"round": "up"}), "no mode round:up"),
        (lambda: cg.cast([1], "fp32", "e4m3fn", document="onxn-cast"), "unknown"),
        (lambda: cg.bitcast([1], "fp32", "int8"), "name one, such as document='torch-view'"),
        (lambda: cg.bitcast([1], "fp32", "int8", document="onnx-cast"), "castigate.cast takes it"),
        (lambda: cg.check(abs, "fp64", "fp32", every=True), "sources of up to 32 bits"),
        (lambda: cg.check(lambda x: x[:2], "fp16", "fp16"), "returned the shape (2,)"),
        (lambda: cg.check(lambda x: 1 / 0, "fp16", "fp16"), "raised ZeroDivisionError"),
        (lambda: cg.check(lambda x: x, "fp32", "int8"), "no value of int8"),
        (lambda: cg.check(lambda x: x.astype("u1"), "fp16", "int8"), "by .view(np.int8)"),
        (lambda: cg.check(lambda x: sys.exit(3), "fp16", "fp16"), "raised SystemExit"),
        (lambda: cg.check(None, "fp16", "fp16"), "`None` is no function"),  # type: ignore[arg-type]
        (lambda: cg.check(abs, "fp16", "e4m3fn", mode="overflow"), "mode `overflow` is no dict"),  # type: ignore[arg-type]
        (lambda: cg.cast([1], None, "fp32"), "`None` is no dtype"),  # type: ignore[arg-type]
        (lambda: cg.cast([1], "fp32", "fp16", document="banana"), "`banana`; castigate specs"),
        (
            lambda: cg.cast([1], "fp32", "fp16", document="numpy"),
            "did you mean `numpy-astype` or `numpy-c",
        ),
        (lambda: cg.cast([1], "banana", "fp16"), "unknown dtype `banana`; the dtypes are"),
        (lambda: cg.cast([1], 3, "fp32"), "`3` is no dtype"),  # type: ignore[arg-type]
        (lambda: cg.judge("x.npy", [1]), "inputs: `x.npy` is a path; read it first"),
        (lambda: cg.judge(None, [1]), "inputs: a NoneType has no dtype"),  # type: ignore[arg-type]
        (lambda: cg.judge(np.array([1.5], object), np.ones(1)), "an array of objects has no dtype"),
        (lambda: cg.explain([300, -1.5], "fp32", "int8"), "is 2 values; explain one at a time"),
        (lambda: cg.portable("numpy", pair="fp16/int8"), "name two backends"),
        (lambda: cg.judge([1], [1]), "a list has no dtype; name it with source=…"),
        (lambda: cg.judge(np.ones(2), np.ones(3)), "give one answer to each"),
        (lambda: cg.explain(300, "int8", "fp32"), "value[0] is 300, no value of int8"),
        (lambda: cg.run("nonsense", documents=["onnx-cast:25"]), "unknown backend `nonsense`"),
        (lambda: cg.portable("numpy", "rot", pair="fp32/int8"), "unknown backend `rot`"),
    ],
)
def test_wrong_arguments_are_one_line(call: Callable[[], object], says: str) -> None:
    with pytest.raises(cg.CastigateError) as raised:
        call()
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_bitcast_keeps_bits() -> None:
    assert cg.bitcast([1.0, -2.0], "fp32", "uint32").tolist() == [0x3F800000, 0xC0000000]
    wide = cg.bitcast([[1.0, -2.0]], "fp32", "uint8", document="torch-view")
    assert wide.tolist() == np.array([[1.0, -2.0]], np.float32).view(np.uint8).tolist()


def truncated(x: Array) -> Array:
    """A usual fault: the low half of a float32 is cut off."""
    return (x.view(np.uint32) >> 16).astype(np.uint16)


def test_a_function_is_judged_on_telling_inputs() -> None:
    def right(x: Array) -> Array:
        with np.errstate(all="ignore"):
            return x.astype(np.float16)

    result = cg.check(right, "float32", "float16")
    assert result
    assert (result.verdict, result.wrong, result.findings) == ("conforms", 0, ())
    assert str(result).startswith("right conforms: 0 of ")
    assert (result.smallest, repr(result)) == (
        None,
        f"<Result: right conforms: 0 of {result.inputs:,} inputs wrong>",
    )
    result = cg.check(truncated, "float32", "bfloat16")
    assert not result
    assert result.verdict == "violates"
    assert "rounds-toward-zero" in {each.name for each in result.findings}
    first = str(result).splitlines()[1]
    # The fewest bits above one half of the smallest bfloat16: by hand.
    told = "0x00008001 (about 4.5919e-41) gives 0x0000 (0), not 0x0001 (about 9.18e-41)"
    assert first == f"  {told}"
    assert result.smallest is not None
    assert (result.smallest.input, result.smallest.answer) == ("0x00008001", "0x0000")
    assert repr(result).endswith(f"; {told}>")
    assert len(repr(result)) <= 200
    assert "<pre>" in result._repr_html_()
    table = result.to_arrow().to_pylist()
    assert {each["rule"] for each in table} == {"float-to-float"}
    assert sum(int(each["last"], 16) - int(each["first"], 16) + 1 for each in table) <= result.wrong


def test_a_function_may_return_values_or_patterns() -> None:
    def as_values(x: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.clip(x, -448, 448).astype(E4M3FN).astype(np.float32)

    def as_patterns(x: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.clip(x, -448, 448).astype(E4M3FN).view(np.uint8)

    for function in (as_values, as_patterns):
        assert cg.check(function, "bfloat16", "e4m3fn"), function


def test_every_input_of_a_16_bit_source_is_asked() -> None:
    asked: set[int] = set()

    def once_wrong(x: Array) -> Array:
        asked.update(x.view(np.uint16).tolist())
        answers = x.astype(np.float32)
        answers[x.view(np.uint16) == 0x1234] = 7
        return answers

    result = cg.check(once_wrong, "float16", "float32")
    assert asked == set(range(1 << 16))
    assert (result.wrong, result.inputs, result.is_whole) == (1, 1 << 16, True)
    assert "0x1234" in str(result)


@pytest.mark.nightly
def test_every_input_of_a_32_bit_source_is_asked() -> None:
    """One wrong input among 2^32 that is not among the telling ones."""
    rare = 0x4B3C2D1F
    seen = 0

    def once_wrong(x: Array) -> Array:
        nonlocal seen
        seen += x.size
        answers = truncated_right(x)
        answers[x.view(np.uint32) == rare] ^= 1
        return answers

    result = cg.check(once_wrong, "float32", "bfloat16", every=True)
    assert seen >= 1 << 32
    assert (result.wrong, result.is_whole) == (1, True)
    assert f"{rare:#010x}" in str(result)
    assert cg.check(once_wrong, "float32", "bfloat16").wrong == 0


def truncated_right(x: Array) -> Array:
    """Round float32 to bfloat16 by integers: half of a unit, and ties to even."""
    bits = x.view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(x), np.uint16(0x7FC0), rounded)


def test_recorded_answers_are_judged_in_any_order_and_shape() -> None:
    given = np.array([[2.5, -3.5], [1.0, 300.0]], np.float32)
    answers = np.array([[2, -4], [1, 44]], np.int8)
    result = cg.judge(given, answers, document="plain-cast:wraps")
    assert (result.wrong, result.inputs, bool(result)) == (1, 4, False)
    assert "0xc0600000 (-3.5) gives 0xfc (-4), not 0xfd (-3)" in str(result)
    result = cg.judge(given, answers)
    assert (result.wrong, result.open_inputs) == (1, 1)
    assert cg.judge([1.5], np.array([0x3FC0], np.uint16), "fp32", "bf16")


def test_a_warning_of_a_cast_is_no_error() -> None:
    def narrow(x: Array) -> Array:
        return np.clip(x, -448, 448).astype(E4M3FN)

    def to_int(x: Array) -> Array:
        return x.astype(np.int8)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cg.check(narrow, "float32", "e4m3fn")
        assert cg.check(to_int, "float64", "int8")


def of_one_number(x: float) -> float:
    return x if x > 0 else 0.0


def rejecting(x: Array) -> Array:
    raise ValueError("the truth value of an array with more than one element is ambiguous")


def test_np_vectorize_is_advised_to_a_function_of_one_number_alone() -> None:
    for function, is_advised in ((of_one_number, True), (rejecting, False)):
        with pytest.raises(cg.CastigateError, match=function.__name__) as raised:
            cg.check(function, "fp16", "fp32")
        assert ("np.vectorize" in str(raised.value)) == is_advised, function


@pytest.mark.parametrize("name", ["float8_e4m3fn", "bfloat16"])
def test_a_decoder_may_take_codes(name: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name))
    storage = f"u{dtype.itemsize}"
    table = np.arange(1 << 8 * dtype.itemsize).astype(storage).view(dtype).astype(np.float32)

    def by_table(codes: Array) -> Array:
        return table[codes]

    def by_arithmetic(codes: Array) -> Array:
        return table[codes.astype(np.int64) % table.size]

    def one_wrong(codes: Array) -> Array:
        return np.where(codes == codes.dtype.type(5), np.float32(7), table[codes])

    for decode in (by_table, by_arithmetic):
        result = cg.check(decode, name, "float32")
        assert (result.takes_codes, result.wrong) == (True, 0)
        assert f"called with codes as uint{8 * dtype.itemsize}" in str(result)
    assert cg.check(one_wrong, name, "float32").wrong == 1
    result = cg.check(lambda x: x.astype(np.float32), name, "float32")
    assert (result.takes_codes, result.wrong) == (False, 0)
    assert not cg.check(lambda x: -x.astype(np.float32), name, "float32").takes_codes


def test_a_name_alone_is_one_backend() -> None:
    assert "numpy" in cg.explain(300, "fp32", "int16", backends="numpy").answers


def test_the_module_lists_its_interface() -> None:
    assert {*dir(cg)} == {*cg.__all__, "__version__"}
    assert all(hasattr(cg, name) for name in dir(cg))


def test_errors_show_no_frames_of_the_inside() -> None:
    with pytest.raises(cg.CastigateError) as raised:
        cg.check(rejecting, "fp16", "fp32")
    names = [entry.name for entry in raised.traceback]
    assert names == ["test_errors_show_no_frames_of_the_inside", "check", "called"]
    assert isinstance(raised.value.__cause__, ValueError)
    assert [entry.name for entry in raised.traceback.filter(raised)] == names[:1]
