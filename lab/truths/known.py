"""Known disagreements: which truth differs from the reference, why, and on exactly which inputs."""

from __future__ import annotations

import numpy as np

from lab.truths.comparison import Compared, Known
from lab.truths.questions import Mask, Overflow, Patterns
from lab.truths.rulings import every_cast
from lab.truths.values import Values, values_of
from oracles.reference import expect_by_kernels
from reports.grading.allowed_answers import ALLOWED, grade_answers
from specs.formats import Format, format_named
from specs.model.vocabulary import Rounding
from specs.outcomes import Nan

TOP, BOTTOM = 2.0**127, 2.0**-127
"""The largest and the smallest value of float8e8m0."""


def reference_codes(
    source: Format, target: Format, rounding: Rounding, overflow: Overflow, patterns: Patterns
) -> Patterns:
    """Cast by the reference under every-cast; a NaN becomes the target's first NaN."""
    ruling = every_cast(source, target, rounding, overflow)
    expected = expect_by_kernels.expect(ruling, patterns)
    codes = expected.codes.copy()
    for index, branch in enumerate(ruling.branches):
        if isinstance(branch.outcome, Nan):
            codes[expected.branch_indices == index] = target.nan_codes[0].start
    return codes


def _is_power_of_two(compared: Compared) -> bool:
    return compared.question.target.name == "float8e8m0"


def _numbers(compared: Compared) -> Values:
    return values_of(compared.question.source, compared.inputs).astype(np.float64)


def _by_way_of_float32(compared: Compared) -> Mask | None:
    """Predict where ml_dtypes rounds twice, because it casts wide sources to float32 first.

    None stands for casts that it does not make by way of float32.
    """
    question = compared.question
    source, target, single = question.source, question.target, format_named("float32")
    if source.bits < 32 or source == single or target.kind != "float":
        return None
    between = reference_codes(source, single, "nearest-even", "ieee", compared.inputs)
    way = question.rounding, question.overflow
    codes = reference_codes(single, target, *way, between)
    if _is_power_of_two(compared):
        values = values_of(single, between)
        codes[_is_first_interval(values)] = 1
        codes[values <= 0] = target.nan_codes[0].start
    allowed = grade_answers(compared.ruling, compared.inputs, compared.expected, codes) == ALLOWED
    numbers = np.isfinite(_numbers(compared)) & ~_is_out_of_table(compared)
    return np.asarray(numbers & ~allowed)


def _is_first_interval(values: Values) -> Mask:
    """Return a mask of values above the smallest float8e8m0 and nearer to it than to the next."""
    return np.asarray((values > BOTTOM) & (values < 1.5 * BOTTOM))


def _first_interval(compared: Compared) -> Mask | None:
    """Predict where ml_dtypes rounds up a value just above the smallest one of float8e8m0.

    None stands for casts to other targets, and from sources of 64 bits.
    """
    source = compared.question.source
    if not _is_power_of_two(compared) or source.name in ("float64", "int64", "uint64"):
        return None
    return _is_first_interval(_numbers(compared))


def _smallest_normal(compared: Compared) -> Mask | None:
    """Predict where apytypes answers 0 to a subnormal value that rounds up to a normal one."""
    target = compared.question.target
    codes = compared.expected.codes & ~np.array(target.sign_bit, target.storage)
    normal = 1 << target.entry.mantissa
    below = np.abs(_numbers(compared)) < 2.0**target.lowest_exponent
    return np.asarray((codes == normal) & below)


def _is_out_of_table(compared: Compared) -> Mask:
    """Return a mask of values that round into float8e8m0, but are out of range by ONNX's table."""
    question, values = compared.question, _numbers(compared)
    nothing = np.zeros(values.shape, bool)
    is_table = compared.case.startswith("onnx-cast") and _is_power_of_two(compared)
    if not is_table or question.overflow != "ieee" or question.source.kind != "float":
        return nothing
    with np.errstate(all="ignore"):
        rounded = values.astype(np.float32) if compared.truth == "ml_dtypes" else values
    above = {
        "toward-zero": np.isfinite(values),
        "nearest-away": rounded < 1.5 * TOP,
    }
    below = {"ceil": values > BOTTOM / 2, "nearest-away": rounded >= 0.75 * BOTTOM}
    if compared.truth == "ml_dtypes":
        # Every value that is not zero in float32 becomes the smallest value.
        below["nearest-away"] = rounded > 0
    inside = (values < BOTTOM) & below.get(question.rounding, nothing)
    inside |= (values > TOP) & above.get(question.rounding, nothing)
    return np.asarray(inside)


def _out_of_table(compared: Compared) -> Mask | None:
    return _is_out_of_table(compared) if _is_power_of_two(compared) else None


def _zero_to_power_of_two(compared: Compared) -> Mask | None:
    """Predict where ml_dtypes casts 0 to NaN, and a document to the least value.

    These are CUDA's, and for integers ONNX's table under saturate = 1. None stands for all other
    casts.
    """
    is_integral = compared.question.source.is_integral
    is_told = compared.case.startswith("cuda-") or (is_integral and "saturate:1" in compared.case)
    if not _is_power_of_two(compared) or not is_told:
        return None
    return np.asarray(_numbers(compared) == 0)


def _nan_to_float4(compared: Compared) -> Mask | None:
    """Predict where ml_dtypes casts NaN to zero, and ONNX's page on float4 to the largest value.

    None stands for casts that are not of floats to float4e2m1.
    """
    target = compared.question.target
    if target.name != "float4e2m1" or compared.question.source.kind != "float":
        return None
    return np.asarray(np.isnan(_numbers(compared)))


def _infinity_to_nan(compared: Compared) -> Mask | None:
    """Predict where ONNX's versions 19 to 23 saturate numbers, but cast infinities to NaN.

    They do so in FNUZ formats; None stands for all other casts.
    """
    question, branches = compared.question, compared.ruling.branches
    if question.overflow != "saturate" or question.target.entry.nan != "negative-zero":
        return None
    if not any(one.input_class == "inf" and isinstance(one.outcome, Nan) for one in branches):
        return None
    return np.asarray(np.isinf(_numbers(compared)))


NUMBERS = ("MPFR", "gfloat", "apytypes")
KNOWN = (
    Known(
        "range of float8e8m0",
        (*NUMBERS, "ml_dtypes"),
        "neither",
        "Truths round, then ask whether the result is in range; ONNX's table 3 asks about the value"
        " itself, with saturate = 0: NaN where it is above 2^127 or below 2^-127.",
        _out_of_table,
    ),
    Known(
        "infinity in FNUZ formats",
        NUMBERS,
        "neither",
        "Where values saturate, truths make an infinity the largest value; ONNX's versions 19 to 23"
        " make it NaN.",
        _infinity_to_nan,
    ),
    Known(
        "NaN to float4e2m1",
        ("ml_dtypes",),
        "the reference",
        "ml_dtypes makes NaN a zero with the other sign; ONNX's page on float4 says 6.",
        _nan_to_float4,
    ),
    Known(
        "zero to float8e8m0",
        ("ml_dtypes",),
        "neither",
        "ml_dtypes makes zero NaN; ONNX's table 3 with saturate = 1, and CUDA's headers, say the"
        " smallest value.",
        _zero_to_power_of_two,
    ),
    Known(
        "by way of float32",
        ("ml_dtypes",),
        "the reference",
        "ml_dtypes casts float64 and wide integers to float32 first, and so rounds twice.",
        _by_way_of_float32,
    ),
    Known(
        "above the smallest float8e8m0",
        ("ml_dtypes",),
        "the reference",
        "ml_dtypes rounds all values between 2^-127 and 1.5 * 2^-127 up to 2^-126.",
        _first_interval,
    ),
    Known(
        "smallest normal value",
        ("apytypes",),
        "the reference",
        "apytypes makes 0 of values below the smallest normal one that round up to it.",
        _smallest_normal,
    ),
)
