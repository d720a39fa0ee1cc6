"""Blocks: the definition in fractions, the kernels and the model of integers give the same."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from conformance.families.blocks import exact, kernels
from conformance.families.blocks.grading import GLOBAL, SCALE, GradedBlocks, X
from conformance.families.blocks.inputs import block_inputs
from conformance.families.blocks.ruling import BlockRuling, block_ruling
from lab import block_model as model
from specs.cases import Case
from specs.formats import Format
from specs.selection import case_named, select

ENCODED = select(["mx-blocks", "nvfp4-blocks"])
ENCODED_WITH_MANTISSA = next(case for case in ENCODED if case.document == "nvfp4-blocks")
DECODED = select(["mx-blocks-decode", "nvfp4-blocks-decode"])
RANDOM_BLOCKS = 500
FEW = 5
"""The number of blocks of each tensor that are computed in fractions."""
ONE, TENTH, SMALL = 0x3F800000, 0x3DCCCCCD, 0x3A83126F
WHOLES = (ONE, TENTH, SMALL, 0x38123456)


def random_blocks(number: Format, size: int, count: int, chance: Any) -> NDArray[Any]:
    """Random blocks of finite numbers, not all zero; most span few neighboring powers of two."""
    drawn = chance.integers(0, number.max_code + 1, (count, size))
    top = chance.integers(1, number.max_code + 1, (count, 1))
    # Every other block is near one, so that scales with a mantissa are in range.
    octaves = 9 << number.entry.mantissa
    one = number.one_code + chance.integers(-octaves, octaves, (count, 1))
    top = np.where(np.arange(count)[:, None] % 2 == 0, np.clip(one, 1, number.max_code), top)
    near = np.maximum(top - drawn % (5 << number.entry.mantissa), 0)
    words = np.where(np.arange(count)[:, None] % 4 == 3, drawn, near)
    words[:, :1] = np.maximum(words[:, :1], 1)
    signs = np.where(chance.integers(0, 2, words.shape) == 1, number.sign_bit, 0)
    return (words | signs).astype(number.storage)


def whole_of(word: int) -> float:
    return float(np.array(word, np.uint32).view(np.float32))


def differences(case: Case, blocks: NDArray[Any], whole: int | None) -> int:
    """The number of results for finite blocks in which kernels and model differ."""
    ruling = block_ruling(case)
    value = 1.0 if whole is None else whole_of(whole)
    word = ruling.word("scale")
    scales = model.scales(case.source, case.target, word, blocks, whole)
    own = kernels.scales(ruling, blocks, value)
    wrong = ~own.is_open[:, 0] & (own.codes[:, 0] != scales)
    codes = model.codes(case.source, case.target, blocks, scales, whole)
    found = kernels.codes(ruling, blocks, scales[:, None].astype(np.uint8), value)
    both = np.ones(codes.shape, np.bool_)
    for allowed in kernels.allowed_codes(ruling, found):
        both &= allowed != codes
    return int(np.count_nonzero(wrong)) + int(np.count_nonzero(both & ~found.is_open))


def wholes(ruling: BlockRuling) -> tuple[int | None, ...]:
    """The words of global scales to try; None for scales that are powers of two."""
    if not ruling.scale.entry.mantissa:
        return (None,)
    return WHOLES if ruling.has_global else (ONE,)


@pytest.mark.ci_runs_one_of(3)
@pytest.mark.parametrize("case", ENCODED, ids=str)
def test_kernels_give_what_the_model_gives_to_random_blocks(case: Case) -> None:
    ruling = block_ruling(case)
    blocks = random_blocks(ruling.number, ruling.size, RANDOM_BLOCKS, np.random.default_rng(0))
    for whole in wholes(ruling):
        assert differences(case, blocks, whole) == 0


@pytest.mark.ci_runs_one_of(3)
@pytest.mark.parametrize("case", ENCODED, ids=str)
def test_kernels_give_what_the_model_gives_at_all_thresholds(case: Case) -> None:
    ruling = block_ruling(case)
    for given in block_inputs(ruling, seed=1):
        blocks = kernels.in_blocks(ruling.size, given.tensors[X]).reshape(-1, ruling.size)
        numbers = kernels.decoded(ruling.number, blocks)
        blocks = blocks[np.isfinite(numbers).all(axis=1) & (numbers != 0).any(axis=1)]
        whole = given.tensors.get(GLOBAL)
        word = wholes(ruling)[0] if whole is None else int(whole)
        assert differences(case, blocks, word) == 0


@pytest.mark.ci_runs_one_of(3)
@pytest.mark.parametrize("case", ENCODED, ids=str)
def test_kernels_give_what_the_definition_gives(case: Case) -> None:
    ruling = block_ruling(case)
    chance = np.random.default_rng(2)
    for given in block_inputs(ruling, seed=2):
        x = given.tensors[X]
        blocks = kernels.in_blocks(ruling.size, x).reshape(-1, ruling.size)
        whole = whole_of(int(given.tensors[GLOBAL])) if GLOBAL in given.tensors else 1.0
        scales = kernels.scales(ruling, blocks, whole)
        # Open scales are random, since codes are defined for any scale.
        chosen = np.where(scales.is_open, chance.integers(0, 256, scales.codes.shape), scales.codes)
        chosen = chosen.astype(np.uint8)
        codes = kernels.codes(ruling, blocks, chosen, whole)
        every = kernels.allowed_codes(ruling, codes)
        for row in chance.choice(len(blocks), min(FEW, len(blocks)), replace=False).tolist():
            block = blocks[row].tolist()
            scale = exact.scale_of(ruling, block, Fraction(whole))
            assert kernels.QUESTIONS[scales.asked[row, 0]] == scale.question
            assert (scale.code is None) == scales.is_open[row, 0]
            assert scale.code in (None, scales.codes[row, 0])
            defined = exact.codes_of(ruling, block, int(chosen[row, 0]), Fraction(whole))
            for place, code in enumerate(defined):
                assert kernels.QUESTIONS[codes.asked[row, place]] == code.question
                assert (not code.allowed) == codes.is_open[row, place]
                if code.allowed:
                    assert {int(each[row, place]) for each in every} == {*code.allowed}


@pytest.mark.ci_runs_one_of(3)
@pytest.mark.parametrize("case", DECODED, ids=str)
def test_products_are_those_of_the_definition(case: Case) -> None:
    ruling = block_ruling(case)
    chance = np.random.default_rng(3)
    for given in block_inputs(ruling, seed=3):
        x, scale = given.tensors[X], given.tensors[SCALE]
        whole = whole_of(int(given.tensors[GLOBAL])) if GLOBAL in given.tensors else 1.0
        found = kernels.products(ruling, x, scale, whole)
        for row in chance.choice(len(x), min(2 * FEW, len(x)), replace=False).tolist():
            for place in range(x.shape[-1]):
                own = int(scale[row, place // ruling.size])
                product = exact.product_of(ruling, int(x[row, place]), own, Fraction(whole))
                assert kernels.QUESTIONS[found.asked[row, place]] == product.question
                assert (not product.allowed) == found.is_open[row, place]
                assert not product.allowed or int(found.codes[row, place]) in product.allowed


@pytest.mark.parametrize(
    ("code", "scale", "due"),
    [(0x2, 0xB8, 0xBF800000), (0xA, 0xB8, 0x3F800000), (0x0, 0x80, 0x80000000), (0x8, 0x80, 0)],
)
def test_a_negative_scale_negates(code: int, scale: int, due: int) -> None:
    ruling = block_ruling(
        case_named("nvfp4-blocks-decode:1/float4e2m1/float32/global:none/block:16")
    )
    assert exact.product_of(ruling, code, scale).allowed == (due,)
    x, scales = np.full((1, 16), code, np.uint8), np.full((1, 1), scale, np.uint8)
    assert kernels.products(ruling, x, scales).codes[0].tolist() == [due] * 16


ROUNDED = [
    # rule, element, the largest magnitude, and the exponent of its scale
    ("floor", "float4e2m1", 7.99, 0),
    ("floor", "float4e2m1", 8.0, 1),
    ("floor", "float8e4m3fn", 511.0, 0),
    ("ceil", "float4e2m1", 4.0, 0),
    ("ceil", "float4e2m1", 4.01, 1),
    ("round-up", "float4e2m1", 6.0, 0),
    ("round-up", "float4e2m1", 6.01, 1),
    ("round-up", "float8e4m3fn", 448.0, 0),
    ("round-up", "float8e4m3fn", 448.1, 1),
    ("round-up", "float8e5m2", 57344.0, 0),
    ("round-up", "int8", 1.984375, 0),
    ("round-up", "int8", 1.99, 1),
    ("round-down", "float4e2m1", 5.99, -1),
    ("round-down", "float4e2m1", 6.0, 0),
    ("even", "float4e2m1", 6.99, 0),
    ("even", "float4e2m1", 7.0, 1),
    ("even", "float8e4m3fn", 495.9, 0),
    ("even", "float8e4m3fn", 496.0, 1),
    ("even", "float6e3m2", 29.9, 0),
    ("even", "float6e3m2", 30.0, 1),
    ("nearest", "float4e2m1", 8.99, 0),
    ("nearest", "float4e2m1", 9.0, 1),
    ("nearest", "float4e2m1", 4.5, 0),
    ("nearest-log", "float4e2m1", 8.48, 0),
    ("nearest-log", "float4e2m1", 8.49, 1),
    ("round-up-7.25", "float4e2m1", 7.25, 0),
    ("round-up-7.25", "float4e2m1", 7.26, 1),
]


@pytest.mark.parametrize(("rule", "element", "largest", "power"), ROUNDED)
def test_scales_double_where_each_rule_says(
    rule: str, element: str, largest: float, power: int
) -> None:
    [case] = [
        each
        for each in ENCODED
        if each.id.startswith(f"mx-blocks:1/float32/{element}/rule:{rule}/")
    ]
    word = int(np.array(largest, np.float32).view(np.uint32))
    assert exact.scale_of(block_ruling(case), [word]).code == 127 + power
    assert model.scales("float32", element, rule, np.array([[word]])) == [127 + power]


def test_a_model_with_one_wrong_rule_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    case = next(each for each in ENCODED if each.mode["rule"] == "even")
    ruling = block_ruling(case)
    blocks = random_blocks(ruling.number, ruling.size, RANDOM_BLOCKS, np.random.default_rng(0))
    assert differences(case, blocks, None) == 0
    own = model.power_of
    monkeypatch.setattr(model, "power_of", lambda rule, *given: own("ceil", *given))
    assert differences(case, blocks, None) > 0


@pytest.mark.parametrize("word", ["nearest-even", "round-up", "round-down"])
def test_scales_with_a_mantissa_are_rounded_by_each_word(word: Any) -> None:
    ruling = block_ruling(ENCODED_WITH_MANTISSA)
    largest = np.geomspace(2.0**-5, 2.0**10, 301)
    found, _ = kernels._with_mantissa(ruling, largest, word, 1.0)
    for number, code in zip(largest.tolist(), found.tolist(), strict=True):
        quotient = Fraction(number) / exact.value_of(ruling.element, ruling.element.max_code)
        assert code == max(exact._rounded_to_scale(word, quotient, ruling.scale), 1)


def test_only_codes_of_magnitude_zero_are_zeros() -> None:
    case = case_named("mx-blocks-decode:1/float8e4m3fn/float32/block:32")
    codes = np.resize(np.array([0x00, 0x80, 0x01, 0x81, 0x02], np.uint8), (1, 32))
    tensors = {X: codes, SCALE: np.full((1, 1), 127, np.uint8)}
    graded = GradedBlocks(block_ruling(case), tensors, {})
    assert graded.zero[0, :5].tolist() == [True, True, False, False, False]
