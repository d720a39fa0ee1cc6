"""The answers that a chain allows: definition, kernels, and a walk with fractions agree."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from conformance.families.chains.composition import chain_inputs, compose_arrays
from conformance.families.chains.sweeps import count_forbidden
from oracles.reference.chain_ends import LEVELS, Ends, ends, nan_ends, open_ends
from specs.chains import Chain, chain_named, chains_of
from specs.formats import Format, format_named, value_of
from specs.outcomes import Same

EDITIONS = [("onnx-cast", "25"), ("onnx-cast", "19"), ("pypto-cast", "0.2"), ("cinn-cast", "1.0")]


def by_kernels(chain: Chain, inputs: NDArray[Any]) -> Iterator[Ends]:
    """Compose the kernels of a chain, and yield what is allowed for each input."""
    found = compose_arrays(chain.rulings, inputs)

    def everywhere(condition: Any) -> NDArray[Any]:
        return np.broadcast_to(condition, inputs.shape)

    is_open, is_weak = everywhere(found.is_open), everywhere(found.is_recommended)
    ways = [(everywhere(where), everywhere(code)) for where, code in found.ways]
    nans = {sign: everywhere(where) for sign, where in found.nans.items()}
    for at in range(inputs.size):
        if is_open[at]:
            yield Ends(is_open=True, level="unspecified")
            continue
        yield Ends(
            frozenset(int(code[at]) for where, code in ways if where[at]),
            frozenset(sign for sign, where in nans.items() if where[at]),
            level=LEVELS[1 if is_weak[at] else 2],
        )


def compare(chain: Chain, inputs: NDArray[Any]) -> None:
    for code, composed in zip(inputs.tolist(), by_kernels(chain, inputs), strict=True):
        assert ends(chain.rulings, code) == composed, (chain.id, hex(code))


@pytest.mark.parametrize(("document", "version"), EDITIONS)
def test_kernels_compose_as_the_definition_does(document: str, version: str) -> None:
    chance = random.Random(f"{document}:{version}")
    for chain in chance.sample(list(chains_of(document, version)), 40):
        inputs = chain_inputs(chain.dtypes, 300)
        compare(chain, inputs[np.sort(chance.sample(range(inputs.size), min(40, inputs.size)))])


@pytest.mark.nightly
@pytest.mark.parametrize(("document", "version"), EDITIONS)
def test_kernels_compose_every_chain_as_the_definition_does(document: str, version: str) -> None:
    chance = np.random.default_rng(1)
    for chain in chains_of(document, version):
        inputs = chain_inputs(chain.dtypes, 300)
        compare(chain, chance.choice(inputs, min(40, inputs.size), replace=False))


def test_chains_of_three_casts_compose_alike() -> None:
    chance = random.Random(3)
    first = chance.sample(list(chains_of("onnx-cast", "25", has_all_modes=False)), 40)
    steps = {each.steps[0].source: each for each in chains_of("onnx-cast", "25")}
    for chain in first:
        longer = Chain((*chain.steps, steps[chain.target].steps[0]))
        inputs = chain_inputs(longer.dtypes, 100)
        compare(longer, inputs[:: max(1, inputs.size // 40)])


@pytest.mark.parametrize("sign", ["any", "+", "-"])
def test_what_becomes_of_a_nan_is_what_becomes_of_each(sign: str) -> None:
    """Definition and kernels share the step after a NaN, so each NaN of a sign is followed here."""
    chance = random.Random(sign)
    rests = [
        chain.rulings[1:]
        for chain in chance.sample(list(chains_of("onnx-cast", "25")), 400)
        if chain.rulings[1].source.nan_codes
        and chain.rulings[1].source.bits <= 16
        and not any(isinstance(each.outcome, Same) for each in chain.rulings[1].branches)
    ]
    assert len(rests) > 40
    for rest in rests:
        middle = rest[0].source
        codes = [code for nans in middle.nans(sign) for code in nans]
        each = [
            ends(rest, code) for code in (*codes[:3], *codes[-3:], *codes[:: len(codes) // 9 + 1])
        ]
        found = nan_ends(middle, sign, rest)
        assert found.codes == frozenset().union(*(one.codes for one in each))
        assert found.nans == frozenset().union(*(one.nans for one in each))
        assert found.is_open == any(one.is_open for one in each)
        assert found.is_rejected == any(one.is_rejected for one in each)


@cache
def _values(form: Format) -> tuple[list[Fraction], list[int]]:
    """The finite values of a narrow format in rising order, and a pattern of each."""
    codes = range(1 << form.bits)
    finite = [
        code
        for code in codes
        if not any(code in nans for nans in form.nan_codes)
        and not (form.entry.infinity and code & ~form.sign_bit == form.infinity_code)
        and (code != form.sign_bit or form.is_integral)
    ]
    pairs = sorted((value_of(form, code), code) for code in finite)
    return [value for value, _ in pairs], [code for _, code in pairs]


def _cast(value: Fraction, target: Format) -> int | None:
    """The pattern of the nearest value, found by search; None if the value is out of range."""
    if target.kind == "boolean":
        return int(value != 0)
    values, codes = _values(target)
    if target.is_integral:
        value = Fraction(int(value))
    if not values[0] <= value <= values[-1]:
        return None
    at = bisect_left(values, value)
    if values[at] == value:
        return codes[at]
    low, high = value - values[at - 1], values[at] - value
    if low != high:
        return codes[at - 1] if low < high else codes[at]
    return min(codes[at - 1], codes[at], key=lambda code: code & 1)


def test_the_steps_can_be_walked_with_fractions() -> None:
    chance = random.Random(7)
    narrow = [
        chain
        for chain in chains_of("onnx-cast", "25", has_all_modes=False)
        if all(format_named(each).bits <= 16 for each in chain.dtypes[1:])
        # float8e8m0 has no zero, and texts disagree on casts to the others.
        and not {"float8e8m0", "int4", "uint4", "int2", "uint2"} & {*chain.dtypes}
    ]
    walked = 0
    for chain in chance.sample(narrow, 120):
        source = format_named(chain.source)
        inputs = chain_inputs(chain.dtypes, 100)
        for code in chance.sample(inputs.tolist(), min(20, inputs.size)):
            if any(code in nans for nans in source.nan_codes) or (
                source.entry.infinity and code & ~source.sign_bit == source.infinity_code
            ):
                continue
            at: int | None = code
            assert at is not None
            for step in chain.steps:
                value = value_of(format_named(step.source), at)
                at = _cast(value, format_named(step.target))
                if at is None or value == 0 or (value < 0 and at == 0):
                    break  # Zeros have signs, which fractions lack.
            else:
                assert ends(chain.rulings, code).codes == {at}, (chain.id, hex(code))
                walked += 1
    assert walked > 600


def bits_of(value: float) -> int:
    return int(np.float32(value).view(np.uint32))


def test_what_is_open_on_the_way_is_open_at_the_end() -> None:
    chain = chain_named("onnx-cast:25/float32/int32/bool")
    assert ends(chain.rulings, bits_of(3e9)).is_open
    assert ends(chain.rulings, bits_of(-0.2)).codes == {0}
    assert ends(chain.rulings, bits_of(1.5)).codes == {1}


def test_open_results_that_all_end_alike_are_not_open() -> None:
    """No pattern of float8e8m0 is zero, so each becomes true, even NaN."""
    to_bool = chain_named("onnx-cast:25/float32/float8e8m0/bool").rulings[1:]
    assert open_ends(to_bool) == Ends(frozenset([1]), level="required")
    assert open_ends(chain_named("onnx-cast:25/float32/float16/bool").rulings[1:]).is_open


def test_any_nan_on_the_way_is_any_nan_at_the_end() -> None:
    chain = chain_named("onnx-cast:25/float32/float16/float64")
    assert ends(chain.rulings, 0x7FC00000).nans
    assert not ends(chain.rulings, 0x7FC00000).codes


def test_a_chain_requires_no_more_than_its_weakest_step() -> None:
    chain = chain_named("onnx-cast:25/float32/int32/bool")
    assert ends(chain.rulings, bits_of(-0.2)).level == "recommended"
    chain = chain_named("onnx-cast:25/int64/bool/float32")
    assert ends(chain.rulings, 3).level == "required"


@pytest.mark.parametrize(
    "name",
    [
        "onnx-cast:25/float16/float8e4m3fn/saturate:0/float16",
        "onnx-cast:25/int16/uint4/float8e5m2/saturate:0",
        "onnx-cast:25/bfloat16/int4/bool",
        "pypto-cast:0.2/int16/float16/int8",
    ],
)
def test_the_compiled_check_counts_what_the_definition_forbids(name: str) -> None:
    chain, chance = chain_named(name), random.Random(name)
    target = format_named(chain.target)
    count_of = count_forbidden(chain.rulings)
    first = chance.randrange(1 << 15)
    size = 600
    allowed = [ends(chain.rulings, first + at) for at in range(size)]
    answers = np.array([chance.randrange(target.mask + 1) for _ in range(size)], target.storage)
    right = [next(iter(own.codes), 0) for own in allowed]
    answers[::2] = np.array(right, target.storage)[::2]
    expected = 0
    for own, answer in zip(allowed, answers.tolist(), strict=True):
        nans = [codes for sign in own.nans for codes in target.nans(sign)]
        is_nan = any(answer in codes for codes in nans)
        expected += not (own.is_open or answer in own.codes or is_nan)
    assert 0 < expected < size
    assert count_of(first, answers) == expected
