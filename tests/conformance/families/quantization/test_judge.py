"""The judge of quantization: right answers conform, and planted mechanisms are found and named."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from conformance.families.quantization.dynamic import dynamic_inputs
from conformance.families.quantization.inputs import telling_requests
from conformance.families.quantization.kernels import quantize as answer_rightly
from conformance.families.quantization.kernels import spread
from conformance.families.quantization.wrongs import IN_OTHER_TENSORS, SAYS, says
from oracles.protocol import Unsupported
from reports.grading.allowed_answers import Expectations
from reports.judgement import Judgement
from reports.known_failures import failures
from reports.problems import WrongShape, WrongTensor
from specs.cases import Case
from specs.selection import case_named
from tests.conformance import feeding
from tests.conformance.families.quantization.planted_quantizers import (
    ALONG_AXIS,
    BACK,
    BACK_IN_BLOCKS,
    DYNAMIC,
    FLOAT8,
    FLOAT8_IN_FLOAT16,
    HALF,
    HALF_FLOAT8,
    IN_BLOCKS,
    IN_FLOAT16,
    PLANTED,
    SIGNED_BACK,
    TENSOR,
    UNSATURATED,
    UNSIGNED,
    WIDE_BACK,
    Quantize,
    Tensors,
    answering,
    beyond,
    by,
    dequantizing,
    half_away,
    halves_in_float32,
    in_float32,
    infinite,
    not_a_number,
    numbers,
    replacing,
    rounding_operands,
    signed,
    unsigned,
)
from tests.conformance.feeding import judged, planted

WITH_USUAL_SCALES = planted(shows_usual_scales=True)
AS_A_GATE = planted(isolates_sweeps=True)
"""Draws more tensors, so that a rare one is among those of a single case."""


def judge(name: str, quantize: Quantize) -> Judgement:
    return judged(name, answering(quantize))


@pytest.mark.parametrize(
    "name", [TENSOR, HALF, ALONG_AXIS, IN_BLOCKS, FLOAT8, UNSATURATED, IN_FLOAT16, BACK, DYNAMIC]
)
def test_right_answers_conform(name: str) -> None:
    found = judge(name, answer_rightly)
    assert (found.verdict, found.problems) == ("conforms", ())


@pytest.mark.parametrize("name", [TENSOR, UNSIGNED, HALF, ALONG_AXIS, IN_BLOCKS])
def test_plain_numpy_conforms(name: str) -> None:
    assert judge(name, by()).verdict == "conforms"


@pytest.mark.parametrize("name", [BACK, SIGNED_BACK, BACK_IN_BLOCKS, WIDE_BACK])
def test_plain_numpy_dequantizes(name: str) -> None:
    assert judge(name, dequantizing()).verdict == "conforms"


def test_rounding_operands_first_conforms() -> None:
    """Only elements with open answers have scales that become infinite in float16."""
    found = judge(FLOAT8_IN_FLOAT16, rounding_operands)
    assert (found.verdict, found.problems) == ("conforms", ())


@pytest.mark.parametrize(
    ("mechanism", "name", "quantize"),
    PLANTED,
    ids=[f"{at}-{name}" for at, (name, *_) in enumerate(PLANTED)],
)
def test_planted_mechanisms_are_named(mechanism: str, name: str, quantize: Quantize) -> None:
    found = judge(name, quantize)
    assert found.verdict in ("violates", "deviates"), found
    problem = found.problems[0]
    assert isinstance(problem, WrongTensor)
    assert mechanism in problem.followed, problem
    assert says(mechanism)


def wrong_from(length: int) -> Quantize:
    """A kernel whose second thread, which gets the elements from ``length`` on, is wrong."""

    def quantize(case: Case, tensors: Tensors) -> Mapping[str, Any]:
        codes = np.array(answer_rightly(case, tensors)["y"])
        codes.reshape(-1)[length:] ^= 1
        return {"y": codes}

    return quantize


def lost_alone(case: Case, tensors: Tensors) -> Mapping[str, Any]:
    """As ``wrong_from``, but a tensor of one element is answered by an empty one."""
    codes = wrong_from(8_192)(case, tensors)["y"]
    return {"y": codes[:0] if codes.size == 1 else codes}


def in_memory_order(case: Case, tensors: Tensors) -> Mapping[str, Any]:
    """Read the elements one after another in memory, ignoring the strides."""
    x = tensors["x"]
    contiguous = np.lib.stride_tricks.as_strided(x, x.shape, np.empty(x.shape, x.dtype).strides)
    return answer_rightly(case, {**tensors, "x": contiguous})


def with_scales_in_memory_order(case: Case, tensors: Tensors) -> Mapping[str, Any]:
    scale = tensors["scale"]
    strides = np.empty(scale.shape, scale.dtype).strides
    contiguous = np.lib.stride_tricks.as_strided(scale, scale.shape, strides)
    return answer_rightly(case, {**tensors, "scale": contiguous})


@pytest.mark.parametrize(
    ("name", "quantize", "where"),
    [
        (TENSOR, wrong_from(16_384), "shape ("),
        (BACK, wrong_from(8_192), "shape ("),
        (BACK, lost_alone, "shape ("),
        (TENSOR, in_memory_order, "steps ("),
        (ALONG_AXIS, in_memory_order, "dimensions in memory ("),
        (IN_BLOCKS, in_memory_order, "dimensions in memory ("),
        (BACK_IN_BLOCKS, with_scales_in_memory_order, "shape ("),
    ],
)
def test_a_fault_of_long_tensors_or_of_their_layout_is_found_and_named(
    name: str, quantize: Quantize, where: str
) -> None:
    found = judged(name, answering(quantize), AS_A_GATE)
    assert found.verdict == "violates"
    assert isinstance(found.problems[0], WrongTensor)
    assert found.problems[0].followed == (IN_OTHER_TENSORS,)
    assert "; only in tensors of " in found.message
    assert found.problems[0].where
    assert where in found.message


@pytest.mark.parametrize("seed", range(3))
def test_elements_of_drawn_tensors_that_the_mechanism_explains_are_no_fault_of_tensors(
    seed: int,
) -> None:
    reciprocal = by(lambda x, scale: x * (np.float32(1) / scale))
    wide = IN_BLOCKS.replace("int8", "int16")
    for name in (wide, IN_BLOCKS, ALONG_AXIS):
        subject = planted(seed=seed, isolates_sweeps=True)
        for each in judged(name, answering(reciprocal), subject).problems:
            assert isinstance(each, WrongTensor)
            assert IN_OTHER_TENSORS not in each.followed


def test_a_wrong_element_that_only_drawn_tensors_hold_is_no_fault_of_theirs() -> None:
    name = IN_BLOCKS.replace("int8", "int16")
    case = case_named(name)

    def elements(x: np.ndarray, scale: np.ndarray) -> np.ndarray:
        return (x.astype(np.uint64) << np.uint64(32) | scale).reshape(-1)

    listed = np.concatenate(
        [elements(each.tensors["x"], each.scales) for each in telling_requests(case)]
    )

    def odd(case: Case, tensors: Tensors) -> Mapping[str, Any]:
        x, y = tensors["x"], answer_rightly(case, tensors)["y"]
        own = elements(x, spread(case, x.shape, tensors["scale"]))
        unlisted = ~np.isin(own, listed).reshape(x.shape)
        near = np.abs(numbers("float32", x)) < 1
        return {"y": np.where(unlisted & near, y ^ 1, y)}

    found = judged(name, answering(odd), AS_A_GATE)
    for each in found.problems:
        assert isinstance(each, WrongTensor)
        assert IN_OTHER_TENSORS not in each.followed
        assert each.where.startswith("met in tensors of shape (")
    assert failures(case, found)
    assert failures(case, found, with_drawn=False) == ()


def test_a_fault_of_tensors_beside_another_is_told() -> None:
    def both(case: Case, tensors: Tensors) -> Mapping[str, Any]:
        found = np.array(by(round_to=half_away)(case, tensors)["y"])
        found.reshape(-1)[16_384:] = 0
        return {"y": found}

    found = judged(TENSOR, answering(both), AS_A_GATE)
    named = {each.followed for each in found.problems if isinstance(each, WrongTensor)}
    assert (IN_OTHER_TENSORS,) in named
    assert ("rounds-half-away",) in named


def zeros_unless(is_served: Callable[[Tensors], bool]) -> Quantize:
    """A kernel that has some layouts of scales, and returns zeros for all others."""

    def quantize(case: Case, tensors: Tensors) -> Mapping[str, Any]:
        made = answer_rightly(case, tensors)
        return made if is_served(tensors) else {**made, "y": np.zeros_like(made["y"])}

    return quantize


@pytest.mark.parametrize(
    ("name", "is_served"),
    [
        (ALONG_AXIS, lambda tensors: tensors["x"].ndim == 3 and tensors["scale"].size in (11, 14)),
        (IN_BLOCKS, lambda tensors: tensors["x"].ndim == 2),
        (IN_BLOCKS, lambda tensors: tensors["x"].shape[1] % 16 > 0),
        (ALONG_AXIS, lambda tensors: tensors["x"].shape[1] != tensors["x"].shape[-1]),
        (DYNAMIC, lambda tensors: tensors["x"].size <= 256),
    ],
)
def test_a_backend_that_serves_only_some_shapes_is_found(
    name: str, is_served: Callable[[Tensors], bool]
) -> None:
    found = judged(name, answering(zeros_unless(is_served)), AS_A_GATE)
    assert found.verdict == "violates"


def test_two_mechanisms_together() -> None:
    reciprocal = by(lambda x, scale: x * (np.float32(1) / scale), half_away)
    [problem, *_] = judge(TENSOR, reciprocal).problems
    assert isinstance(problem, WrongTensor)
    together = {"multiplies-by-the-reciprocal", "rounds-half-away"}
    assert set(problem.followed[0].split("+")) == together
    assert says(problem.followed[0]).count(", and ") == 1


def test_mechanisms_part_by_region() -> None:
    several = replacing(
        (beyond(61440, 65536), signed(0x7F)),
        (infinite, signed(0x7B)),
        (not_a_number, unsigned(0x7B)),
        quantize=halves_in_float32,
    )
    [problem, *_] = judge(HALF_FLOAT8, several).problems
    assert isinstance(problem, WrongTensor)
    [first, *more] = problem.followed[0].split("+")
    assert first in ("divides-in-float64", "divides-in-float32")
    assert more == ["makes-carries-nan", "saturates-infinities", "makes-nans-the-largest"]
    assert says(problem.followed[0]).count(", and ") == 3


def test_a_wrong_special_value_of_no_mechanism_is_unnamed() -> None:
    [problem] = judge(FLOAT8, replacing((infinite, unsigned(3)))).problems
    assert isinstance(problem, WrongTensor)
    assert problem.followed == ()


def test_every_mechanism_has_words() -> None:
    assert all(name in SAYS for name, _, _ in PLANTED)


def test_the_smallest_wrong_element_is_shown() -> None:
    found = judge(UNSIGNED, by(round_to=half_away))
    problem, *others = [each for each in found.problems if isinstance(each, WrongTensor)]
    assert found.wrong == problem.wrong + sum(each.wrong for each in others)
    assert [each.level for each in others] == ["recommended"]  # near ties, where others divide so
    assert (problem.rule, problem.level, problem.tensor) == ("round-quotient", "required", "y")
    assert "scale 0x" in problem.given
    assert problem.wrong < problem.inputs
    got, (allowed, *_) = int(problem.got.split()[0], 16), problem.allowed
    assert abs(got - int(allowed.split()[0], 16)) == 1


def test_a_lost_axis_is_a_wrong_shape() -> None:
    found = judge(ALONG_AXIS, lambda case, tensors: {"y": answer_rightly(case, tensors)["y"][0]})
    assert found.verdict == "violates"
    assert isinstance(found.problems[0], WrongShape)
    assert found.problems[0].rule == "shape-kept"


def test_what_is_not_offered_is_left_out() -> None:
    def without_zero(case: Case, tensors: Tensors) -> Mapping[str, Any]:
        if "zero" in tensors:
            return answer_rightly(case, tensors)
        raise Unsupported("it needs a zero point")

    found = judge(TENSOR, without_zero)
    assert found.verdict == "conforms"
    assert found.message == "1 of 10 not asked: it needs a zero point"

    def nothing(case: Case, tensors: Tensors) -> Mapping[str, Any]:
        raise Unsupported("it has no such kernel")

    assert judge(TENSOR, nothing).verdict == "unsupported"


def test_an_error_is_one() -> None:
    def broken(case: Case, tensors: Tensors) -> Mapping[str, Any]:
        raise ValueError("no")

    assert judge(TENSOR, broken).verdict == "error"
    assert judge(DYNAMIC, broken).verdict == "error"


def test_an_error_has_a_script_for_one_number() -> None:
    shown: list[np.ndarray] = []

    def broken(case: Case, tensors: Tensors) -> Mapping[str, Any]:
        raise ValueError("no")

    def script(case: Case, tensors: Tensors) -> str:
        shown.append(tensors["x"])
        return "print()"

    found = judged(TENSOR, feeding.answering(quantize=broken, reproduce_quantize=script))
    assert (found.verdict, found.reproduction) == ("error", "print()")
    assert [each.size for each in shown] == [1]


def test_an_error_hides_no_wrong_answer_of_another_request() -> None:
    def odd(case: Case, tensors: Tensors) -> Mapping[str, Any]:
        if "zero" not in tensors:
            raise ValueError("no zero point")
        return {"y": answer_rightly(case, tensors)["y"] ^ 1}

    found = judge(TENSOR, odd)
    assert found.verdict == "violates"
    assert isinstance(found.problems[0], WrongTensor)
    assert "no zero point" in found.message


def test_an_error_hides_no_wrong_answer_of_another_tensor() -> None:
    def odd(case: Case, tensors: Tensors) -> Mapping[str, Any]:
        if tensors["x"].size == 1:
            raise ValueError("one element only")
        found = answer_rightly(case, tensors)
        return {**found, "y": np.zeros_like(found["y"])}

    found = judge(DYNAMIC, odd)
    assert found.verdict == "violates"
    assert isinstance(found.problems[0], WrongTensor)
    assert "one element only" in found.message


@pytest.mark.parametrize("edition", ["21", "25"])
def test_recommendations_are_weaker(edition: str) -> None:
    """A division in float32 gives one of the values beside the quotient in float16."""
    name = HALF.replace(":25", f":{edition}")
    found = judge(name, by(in_float32))
    assert found.verdict == "deviates"
    assert {each.level for each in found.problems} == {"recommended"}
    assert judge(name, by(round_to=np.floor)).verdict == "violates"


def test_open_scales_break_nothing() -> None:
    name = "onnx-quantize-linear:25/float32/int8/scale:float8e8m0/form:tensor"
    found = judge(name, lambda case, tensors: {"y": np.zeros(tensors["x"].shape, np.uint8)})
    assert found.open_inputs > 0


@pytest.mark.parametrize(
    ("tensor", "change"),
    [
        ("scale", lambda found: found | {"scale": found["scale"] + np.uint32(2)}),
        ("zero", lambda found: found | {"zero": (found["zero"] + 1).astype(np.uint8)}),
        ("y", lambda found: found | {"y": np.zeros_like(found["y"])}),
    ],
)
def test_each_result_of_a_dynamic_quantization_is_judged(
    tensor: str, change: Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]
) -> None:
    found = judge(DYNAMIC, lambda case, tensors: change(answer_rightly(case, tensors)))
    assert found.verdict in ("violates", "deviates")
    assert tensor in [each.tensor for each in found.problems if isinstance(each, WrongTensor)]


def test_a_dynamic_mechanism_is_named() -> None:
    def half_up(case: Case, tensors: Tensors) -> Mapping[str, Any]:
        found = answer_rightly(case, tensors)
        x, scale = tensors["x"].view(np.float32), found["scale"].view(np.float32)
        with np.errstate(all="ignore"):
            rounded = np.nan_to_num(half_away(x / scale)) + found["zero"]
        return found | {"y": np.clip(rounded, 0, 255).astype(np.uint8)}

    problems = judge(DYNAMIC, half_up).problems
    assert [each.level for each in problems if isinstance(each, WrongTensor)][:1] == ["required"]
    for problem in problems:
        assert isinstance(problem, WrongTensor)
        assert "rounds-half-away" in problem.followed


def over(part: Callable[[np.ndarray], np.ndarray], extends: bool = True) -> Quantize:
    """Quantize dynamically by the range of a part of the tensor's values."""

    def quantize(case: Case, tensors: Tensors) -> Mapping[str, Any]:
        x = tensors["x"]
        found = dict(answer_rightly(case, tensors))
        seen = part(x.view(np.float32).reshape(-1))
        if not (seen.size and np.isfinite(x.view(np.float32)).all()):
            return found
        ends = np.float32([seen.min(), seen.max()])
        if extends:
            like = answer_rightly(case, {"x": ends.view(np.uint32)})
            return found | {"scale": like["scale"], "zero": like["zero"]}
        width = answer_rightly(case, {"x": (ends[1:] - ends[:1]).view(np.uint32)})
        return found | {"scale": width["scale"]}

    return quantize


@pytest.mark.parametrize(
    ("name", "quantize"),
    [
        ("range-without-the-last", over(lambda x: x[:-1])),
        ("range-without-the-rest-of-16", over(lambda x: x[: x.size // 16 * 16])),
        ("range-without-the-rest-of-64", over(lambda x: x[: x.size // 64 * 64])),
        ("range-without-zero", over(lambda x: x, extends=False)),
    ],
)
def test_a_range_that_leaves_something_out_is_found_with_every_seed_and_named(
    name: str, quantize: Quantize
) -> None:
    for seed in range(5):
        problems = judged(DYNAMIC, answering(quantize), planted(seed=seed)).problems
        wrong = [each for each in problems if isinstance(each, WrongTensor)]
        assert "scale" in {each.tensor for each in wrong}
        for each in wrong:
            assert each.tensor == "y" or each.followed[:1] == (name,)
    assert says(name)


def test_dynamic_inputs_reach_both_ends() -> None:
    case = case_named(DYNAMIC)
    zeros = {int(answer_rightly(case, {"x": x})["zero"]) for x in dynamic_inputs()}
    assert {0, 255} < zeros


def test_the_reference_is_judged_by_the_definition() -> None:
    independent = replace(planted(), expectations=Expectations(independent=True))
    for name in (TENSOR, FLOAT8, BACK, DYNAMIC):
        assert judged(name, answering(answer_rightly), independent).verdict == "conforms"


def test_the_example_has_an_ordinary_scale() -> None:
    """Bits of a very small scale and its x may be simpler, but nobody meets them."""
    case = "onnx-quantize-linear:25/float32/int8/scale:float32/form:axis"
    [problem, *_] = judged(case, answering(by(round_to=np.floor)), WITH_USUAL_SCALES).problems
    assert isinstance(problem, WrongTensor)
    scale = float(problem.given.split("scale ")[1].split("(")[1].split(")")[0].split()[-1])
    assert 2.0**-16 <= scale <= 2.0**16, problem.given
