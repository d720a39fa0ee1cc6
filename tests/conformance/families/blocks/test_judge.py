"""Blocks in a run: rules against each other, planted faults, open answers, and one real script."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from conformance.families.blocks.kernels import answer_blocks, codes, in_blocks
from conformance.families.blocks.ruling import block_ruling
from conformance.families.blocks.sentences import says
from oracles.protocol import Unsupported
from reports.judgement import Judgement
from reports.problems import WrongTensor
from tests.conformance.families.blocks.planted_blocks import Quantize, as_bfloat16, library
from tests.conformance.feeding import answering, judged, planted

MX = "mx-blocks:1/float32/{element}/rule:{rule}/block:32"
NV = "nvfp4-blocks:1/float32/float4e2m1/rule:{rule}/global:{whole}/block:16"
POWER_RULES = (
    "floor", "ceil", "round-up", "round-down", "even", "nearest", "nearest-log", "round-up-7.25",
)  # fmt: skip
NV_RULES = ("round-up", "nearest-even", "nearest-away")


def judge(case: str, quantize: Quantize) -> Judgement:
    return judged(case, answering(quantize=quantize))


def wrong_in(found: Judgement) -> list[WrongTensor]:
    return [each for each in found.problems if isinstance(each, WrongTensor)]


def mechanisms(found: Judgement) -> list[str]:
    """The mechanisms that explain all that is wrong in the one wrong tensor."""
    assert found.verdict in ("violates", "deviates")
    wrong = wrong_in(found)
    assert len({each.tensor for each in wrong}) == 1
    assert all(says(name) for each in wrong for name in each.followed)
    return sorted(set.intersection(*({*each.followed} for each in wrong)))


@pytest.mark.parametrize("asked", POWER_RULES)
@pytest.mark.parametrize("used", POWER_RULES)
def test_a_scale_rule_in_the_place_of_another_is_named(used: str, asked: str) -> None:
    found = judge(MX.format(element="float4e2m1", rule=asked), library(used))
    if used == asked:
        assert found.verdict == "conforms"
        return
    assert f"uses-the-scale-rule-{used}-where-{asked}" in mechanisms(found)
    assert {each.tensor for each in wrong_in(found)} == {"scale"}


@pytest.mark.parametrize("whole", ["none", "given"])
@pytest.mark.parametrize("asked", NV_RULES)
@pytest.mark.parametrize("used", [*NV_RULES, "round-down"])
def test_a_rule_for_scales_with_a_mantissa_is_named(used: str, asked: str, whole: str) -> None:
    found = judge(NV.format(rule=asked, whole=whole), library(used))
    if used == asked:
        assert found.verdict == "conforms"
    else:
        assert mechanisms(found) == [f"uses-the-scale-rule-{used}-where-{asked}"]


@pytest.mark.parametrize(
    "element", ["float8e4m3fn", "float8e5m2", "float6e2m3", "float6e3m2", "float4e2m1", "int8"]
)
@pytest.mark.parametrize("rule", ["floor", "round-up", "even"])
def test_a_library_without_a_fault_conforms(element: str, rule: str) -> None:
    assert judge(MX.format(element=element, rule=rule), library()).verdict == "conforms"


def swap(codes: Any) -> Any:
    return codes.reshape(len(codes), -1, 2)[..., ::-1].reshape(codes.shape)


def halves(codes: Any) -> Any:
    return codes.reshape(len(codes), 2, -1).swapaxes(1, 2).reshape(codes.shape)


def largest_of_all(words: Any) -> Any:
    magnitudes = words & np.uint32(0x7FFFFFFF)
    return np.full(words.shape, magnitudes[magnitudes < 0x7F800000].max())


def at_least(code: int) -> Any:
    return lambda scales: np.maximum(scales, code)


FLOOR4 = MX.format(element="float4e2m1", rule="floor")
FLOOR8 = MX.format(element="float8e4m3fn", rule="floor")
EVEN8 = MX.format(element="float8e4m3fn", rule="even")
UP4 = MX.format(element="float4e2m1", rule="round-up")
NV_EVEN = NV.format(rule="nearest-even", whole="none")
FAULTS: list[tuple[str, Quantize, str]] = [
    # ao PR 4725: float32 to bfloat16 before the scale, which crosses a power of two
    (FLOOR4, library(largest=as_bfloat16), "rounds-largest-magnitudes-to-bfloat16"),
    # aiter PR 3992: ties of e2m1 away from even
    (UP4, library(mode="away"), "rounds-elements-half-away"),
    # aiter PR 3212: floor of amax / 4 in the place of the quotient by 6, rounded up
    (UP4, library("floor"), "uses-the-scale-rule-floor-where-round-up"),
    # triton PR 11668: the scale of NVFP4 rounded to nearest even, not up
    (
        NV.format(rule="round-up", whole="none"),
        library("nearest-even"),
        "uses-the-scale-rule-nearest-even-where-round-up",
    ),
    # TransformerEngine PR 2881: scales that are off by one
    (FLOOR8, library(scale=lambda scales: np.minimum(scales + 1, 254)), "doubles-scales-from-128"),
    # tt-metal#51971: codes that are truncated
    (FLOOR8, library(mode="down"), "truncates-elements"),
    # elements whose codes are subnormal become zero
    (
        FLOOR8,
        library(codes=lambda codes: np.where(codes & 0x7F < 8, codes & 0x80, codes)),
        "makes-small-elements-zero",
    ),
    # compressed-tensors: 1.75 is where scales of e4m3 double, as if it were e2m1
    (
        EVEN8,
        library(largest=lambda words: words + np.uint32(1 << 21) & np.uint32(0xFF800000)),
        "doubles-scales-from-224",
    ),
    # torchao: scales of NVFP4 below the smallest normal E4M3 are raised to it
    (NV_EVEN, library(scale=at_least(8)), "never-gives-a-scale-below-2^-6"),
    # packing: nibbles swapped, halves taken for pairs
    (FLOOR4, library(codes=swap), "swaps-the-codes-of-a-byte"),
    (FLOOR4, library(codes=halves), "interleaves-the-halves-of-a-block"),
    # tt-metal PR 42106: scales of other blocks
    (
        FLOOR4,
        library(scale=lambda scales: np.roll(scales, 1)),
        "gives-the-scale-of-the-block-before",
    ),
    (
        FLOOR4,
        library(used=lambda scales: np.roll(scales, 1)),
        "divides-elements-by-the-scale-of-the-block-before",
    ),
    # one scale for all blocks
    (FLOOR4, library(largest=largest_of_all), "makes-one-scale-for-a-tensor"),
    # signs
    (
        FLOOR4,
        library(codes=lambda codes: np.where(codes == 8, 0, codes)),
        "drops-the-sign-of-zero-elements",
    ),
    (
        FLOOR4,
        library(largest=lambda words: np.where(words >> 31, 0, words)),
        "ignores-negative-numbers-in-scales",
    ),
    # the last element of a block is ignored
    (
        FLOOR4,
        library(largest=lambda words: np.where(np.arange(32) == 31, 0, words)),
        "leaves-the-last-element-out-of-scales",
    ),
    # what is beyond the largest code becomes NaN, or wraps
    (FLOOR8, library(beyond=0x7F), "makes-large-elements-nan"),
    (FLOOR4, library(beyond=0), "makes-large-elements-zero"),
]


@pytest.mark.parametrize(("case", "quantize", "name"), FAULTS, ids=[each[2] for each in FAULTS])
def test_a_planted_fault_is_found_and_named(case: str, quantize: Quantize, name: str) -> None:
    assert name in mechanisms(judge(case, quantize))


TOP = 0x7F600000
"""1.75 times 2^127, from which some libraries overflow."""


def changing_scales(change: Any, rule: str | None = None) -> Quantize:
    """A library whose scales a function changes, given each block's largest magnitude."""

    def quantize(case: Any, tensors: Any) -> Any:
        size = int(case.mode["block"])
        made = dict(library(rule)(case, tensors))
        largest = in_blocks(size, tensors["x"] & 0x7FFFFFFF).max(axis=-1)
        made["scale"] = change(largest, made["scale"].astype(np.int64)).astype(np.uint8)
        made["y"] = answer_codes(case, tensors, made["scale"])
        return made

    return quantize


def answer_codes(case: Any, tensors: Any, scale: Any) -> Any:
    """The right codes for these scales."""
    return codes(block_ruling(case), tensors["x"], scale).codes


def is_finite(largest: Any) -> Any:
    return largest < 0x7F800000


def overflown(largest: Any, scale: Any) -> Any:
    """Double scales from a significand of 1.75 on; scale by 1 where rounding up there overflows."""
    significand = largest & 0x7FFFFF
    doubled = scale + ((significand >= 0x600000) & (significand < 0x780000))
    return np.where((largest >= TOP) & is_finite(largest), 127, doubled)


def wrapped(largest: Any, scale: Any) -> Any:
    """Compute scales from quotients by 6 in float32, and wrap those below the smallest around."""
    finite = np.where(is_finite(largest), largest, 0).astype(np.uint32)
    quotients = finite.view(np.float32) / np.float32(6)
    is_small = (quotients > 0) & (quotients < 2.0**-127)
    power = np.ceil(np.log2(np.where(is_small, quotients, 1).astype(np.float64))).astype(np.int64)
    codes = np.where(is_small, (power + 127) & 0xFF, scale)
    return np.where((largest > 0) & (quotients == 0), 127, codes)


EXTREME_FAULTS = [
    # compressed-tensors: rounding the largest magnitude overflows, beside another threshold
    (
        EVEN8,
        changing_scales(overflown),
        {"gives-the-largest-blocks-the-scale-1", "doubles-scales-from-224"},
    ),
    # mlx: scales below the smallest wrap around; if the quotient is zero in float32, the scale is 1
    (
        UP4,
        changing_scales(wrapped),
        {"gives-the-smallest-blocks-the-scale-1", "wraps-scales-below-2^-127"},
    ),
    # auto-round: the logarithm of a quotient that is zero in float32
    (
        UP4,
        changing_scales(lambda largest, scale: np.where((largest > 0) & (largest < 4), 255, scale)),
        {"gives-the-smallest-blocks-the-scale-NaN"},
    ),
    # quark: the smallest scale but one in the place of the smallest
    (
        UP4,
        changing_scales(lambda largest, scale: np.where((largest > 3) & (scale == 0), 1, scale)),
        {"gives-2^-126-in-the-place-of-2^-127"},
    ),
]


@pytest.mark.parametrize(("case", "quantize", "names"), EXTREME_FAULTS)
def test_faults_of_extreme_scales_are_named_apart(
    case: str, quantize: Quantize, names: set[str]
) -> None:
    wrong = [each for each in wrong_in(judge(case, quantize)) if each.tensor == "scale"]
    assert {(each.followed or ("",))[0] for each in wrong} == names
    assert len(wrong) == len(names)
    assert all(says(name) for each in wrong for name in each.followed)


def test_zeros_in_blocks_of_scales_that_are_far_off_are_no_fault_of_large_elements() -> None:
    def quantize(case: Any, tensors: Any) -> Any:
        def change(largest: Any, scale: Any) -> Any:
            return np.where((largest >= TOP) & is_finite(largest), 127, scale)

        made = dict(changing_scales(change)(case, tensors))
        is_off = np.repeat(made["scale"] == 127, 32, axis=-1)[..., : tensors["x"].shape[-1]]
        right = np.repeat(library()(case, tensors)["scale"], 32, axis=-1)[..., : is_off.shape[-1]]
        made["y"] = np.where(is_off & (right != 127), made["y"] & 8, made["y"])
        return made

    wrong = wrong_in(judge(MX.format(element="float4e2m1", rule="even"), quantize))
    assert {each.tensor for each in wrong} == {"scale", "y"}
    assert {name for each in wrong if each.tensor == "y" for name in each.followed} == {
        "makes-blocks-zero-whose-scale-is-far-too-small"
    }


def test_a_way_to_divide_and_a_rounding_are_named_together() -> None:
    def divided(scales: Any) -> Any:
        return np.where(scales == 0, 127, scales)

    found = wrong_in(judge(FLOOR4, library(used=divided, mode="half-down")))
    names = {name for each in found for name in each.followed}
    assert "rounds-elements-half-toward-zero-and-divides-by-one-for-the-smallest-scale" in names


def test_two_faults_of_elements_are_named_apart() -> None:
    def two(codes: Any) -> Any:
        return np.where(codes == 8, 0, codes)

    found = wrong_in(judge(FLOOR4, library(codes=two, beyond=6)))
    assert [(each.rule, each.followed[0]) for each in found] == [
        ("elements-beyond", "saturates-below-the-largest-code"),
        ("zeros-of-floats", "drops-the-sign-of-zero-elements"),
    ]


def test_a_block_that_changes_others_is_noticed() -> None:
    def quantize(case: Any, tensors: Any) -> Any:
        made = dict(answer_blocks(case, tensors))
        if (tensors["x"] & 0x7FFFFFFF > 0x7F800000).any():
            made["y"] = made["y"] * 0
        return made

    found = judge(FLOOR4, quantize)
    assert mechanisms(found) == ["changes-blocks-beside-others"]
    assert "beside other blocks" in wrong_in(found)[0].given


def test_the_smallest_block_is_shown() -> None:
    [wrong] = wrong_in(judge(FLOOR4, library("ceil")))
    assert wrong.given == "a block of 0x40000001 (2.0000002384185791015625) and zeros"
    assert wrong.tensor == "scale"
    assert wrong.level == "required"


def test_wrong_codes_are_shown_with_their_scale() -> None:
    wrong, zeros = wrong_in(judge(UP4, library(mode="away")))
    assert zeros.rule == "zeros-of-floats"
    assert wrong.given.endswith("in a block of scale 0x7f (1)")
    assert (wrong.got, wrong.allowed) == ("0x5 (3)", ("0x4 (2)",))
    assert wrong.level == "recommended"


def test_a_wrong_scale_does_not_make_codes_wrong() -> None:
    found = judge(FLOOR4, library("ceil"))
    assert {each.tensor for each in wrong_in(found)} == {"scale"}


def test_what_no_text_settles_is_noted() -> None:
    def quantize(case: Any, tensors: Any) -> Any:
        made = dict(answer_blocks(case, tensors))
        is_zero = (tensors["x"] << 1 == 0).reshape(*made["scale"].shape, -1).all(axis=-1)
        made["scale"] = np.where(is_zero, np.uint8(127), made["scale"])
        return made

    def only_blocks(case: Any, tensors: Any) -> Any:
        if tensors["x"].shape[-1] != 32:
            raise Unsupported("takes single blocks")
        return quantize(case, tensors)

    found = judge(FLOOR4, only_blocks)
    assert found.verdict == "conforms"
    assert "blocks of zeros get the scale 0x7f (1)" in found.message
    assert "not asked in rows of four blocks: takes single blocks" in found.message


def test_an_error_hides_no_wrong_block_of_another_tensor() -> None:
    case = MX.format(element="float4e2m1", rule="floor")
    right = library()

    def odd(case: Any, tensors: Any) -> Any:
        if len(tensors["x"]) == 1:
            raise ValueError("several rows only")
        found = right(case, tensors)
        return {**found, "y": found["y"] ^ 1}

    found = judge(case, odd)
    assert found.verdict == "deviates"
    assert wrong_in(found)
    assert "several rows only" in found.message


def test_another_shape_is_an_error() -> None:
    def quantize(case: Any, tensors: Any) -> Any:
        made = answer_blocks(case, tensors)
        return {**made, "scale": made["scale"].reshape(-1)}

    found = judge(FLOOR4, quantize)
    assert found.verdict == "error"
    assert "`scale` has shape" in found.message


DECODE8 = "mx-blocks-decode:1/float8e4m3fn/float32/block:32"
DECODE4 = "mx-blocks-decode:1/float4e2m1/float32/block:32"
DECODE5 = "mx-blocks-decode:1/float8e5m2/bfloat16/block:32"


def changed(change: Any, *names: str) -> Quantize:
    """A decoder that changes the given codes or scales before it decodes them."""

    def quantize(case: Any, tensors: Any) -> Any:
        return answer_blocks(case, {**tensors, **{name: change(tensors[name]) for name in names}})

    return quantize


def result(change: Any) -> Quantize:
    def quantize(case: Any, tensors: Any) -> Any:
        return {"y": change(answer_blocks(case, tensors)["y"])}

    return quantize


DECODING_FAULTS: list[tuple[str, Quantize, str]] = [
    # mlx#4135: e4m3 0x7f and 0xff read as 480
    (
        DECODE8,
        changed(lambda x: np.where(x & 0x7F == 0x7F, x - 1, x).astype(np.uint8), "x"),
        "reads-nan-codes-as-numbers",
    ),
    (
        DECODE4,
        result(lambda y: np.where(y == 0x80000000, 0, y).astype(np.uint32)),
        "drops-the-sign-of-zero-codes",
    ),
    (
        DECODE4,
        result(lambda y: np.where(y & 0x7F800000, y, y & 0x80000000).astype(np.uint32)),
        "makes-small-products-zero",
    ),
    (
        DECODE8,
        changed(lambda scale: np.minimum(scale, 254).astype(np.uint8), "scale"),
        "reads-nan-scales-as-numbers",
    ),
    (
        DECODE4,
        changed(lambda scale: np.where(scale < 254, scale + 1, scale).astype(np.uint8), "scale"),
        "reads-scales-one-code-too-large",
    ),
]


@pytest.mark.parametrize(
    ("case", "quantize", "name"), DECODING_FAULTS, ids=[each[2] for each in DECODING_FAULTS]
)
def test_a_fault_of_decoding_is_found_and_named(case: str, quantize: Quantize, name: str) -> None:
    assert name in mechanisms(judge(case, quantize))


@pytest.mark.parametrize("case", [DECODE8, DECODE4, DECODE5])
def test_the_reference_decodes_as_its_documents_say(case: str) -> None:
    assert judge(case, answer_blocks).verdict == "conforms"


def test_any_nan_is_a_nan() -> None:
    found = judge(DECODE8, result(lambda y: np.where(y == 0x7FFFFFFF, np.uint32(0xFFC00001), y)))
    assert found.verdict == "conforms"


def test_a_script_shows_the_smallest_block() -> None:
    shown: list[Any] = []

    def script(case: Any, tensors: Any) -> str:
        shown.append(tensors["x"])
        return "print()"

    found = judged(FLOOR4, answering(quantize=library("ceil"), reproduce_quantize=script))
    assert found.reproduction == "print()"
    assert np.count_nonzero(shown[0]) == 1


@pytest.mark.parametrize(
    "is_served",
    [
        lambda tensors: tensors["x"].shape[-1] <= 128,
        lambda tensors: tensors["x"].ndim == 2,
        lambda tensors: tensors["x"].shape[-1] % 32 == 0 or tensors["x"].shape[0] == 3,
    ],
    ids=["four blocks", "matrices", "whole blocks"],
)
def test_a_library_that_serves_only_some_shapes_is_found(is_served: Any) -> None:
    def quantize(case: Any, tensors: Any) -> Any:
        made = answer_blocks(case, tensors)
        return made if is_served(tensors) else {**made, "y": np.zeros_like(made["y"])}

    found = judged(FLOOR4, answering(quantize=quantize), planted(isolates_sweeps=True))
    assert found.verdict == "deviates"
    assert {each.followed for each in wrong_in(found)} == {("changes-with-layout",)}
    assert "; only in a tensor of " in found.message


def test_a_short_last_block_that_is_scaled_with_the_numbers_before_it_is_named() -> None:
    """Listed tensors have few such blocks, and drawn ones many."""

    def quantize(case: Any, tensors: Any) -> Any:
        made, x = dict(answer_blocks(case, tensors)), tensors["x"]
        if x.shape[-1] > 32 and x.shape[-1] % 32:
            last = answer_blocks(case, {"x": np.ascontiguousarray(x[..., -32:])})["scale"]
            made["scale"] = np.append(made["scale"][..., :-1], last, axis=-1)
            made["y"] = answer_codes(case, tensors, made["scale"])
        return made

    found = judged(FLOOR4, answering(quantize=quantize), planted(isolates_sweeps=True))
    names = {each.followed for each in wrong_in(found)}
    assert names == {("makes-scales-of-numbers-before-short-blocks",)}
