"""The sentences for mechanisms by which a system may have quantized other than documented.

The judges of quantization and of blocks try these mechanisms, and keep the names of those that give
every answer of a case. This module has the sentence that a finding says of each.
"""

from __future__ import annotations

from collections.abc import Mapping

from reports.findings import block_mechanisms

SAYS: Mapping[str, str] = {
    "multiplies-by-the-reciprocal": "multiplies by 1/scale instead of dividing by the scale",
    "rounds-half-away": "rounds ties away from zero when it quantizes",
    "rounds-half-up": "rounds ties up when it quantizes",
    "truncates-quotients": "truncates the quotient when it quantizes",
    "rounds-quotients-down": "rounds the quotient down when it quantizes",
    "adds-zero-points-before-rounding": "adds the zero point before it rounds, not afterwards",
    "limits-before-zero-points": "limits codes to their range before it adds the zero point",
    "wraps-codes": "wraps codes that are out of range when it quantizes",
    "overflows-in-int32": "converts quotients to int32, and those beyond its range to the smallest",
    "leaves-out-lowest-codes": "never gives the lowest code when it quantizes",
    "leaves-out-zero-points": "leaves out the zero point",
    "reads-zero-points-as-another-type": "reads a zero point as one of the other signedness",
    "ignores-saturate": "ignores `saturate` when it quantizes",
    "makes-overflows-nan": "turns quotients that are out of range into NaN, not into infinities",
    "makes-carries-nan": "turns quotients into NaN that only rounding puts out of range",
    "saturates-truncated-nans": "saturates quotients whose bits before rounding are those of a NaN",
    "gives-zeros-of-the-other-sign": "gives zeros of the wrong sign when it quantizes",
    "saturates-infinities": "turns infinities into the largest values when it quantizes",
    "keeps-infinities": "keeps infinities when it quantizes",
    "makes-infinities-nan": "turns infinities into NaN when it quantizes",
    "loses-the-sign-of-infinities": "gives one NaN for infinities of both signs when it quantizes",
    "loses-the-sign-of-nans": "gives one NaN for NaNs of both signs when it quantizes",
    "makes-nans-negative": "gives a negative NaN for NaNs of both signs when it quantizes",
    "makes-nans-zero": "turns NaN into zero when it quantizes",
    "makes-nans-the-largest": "turns NaN into the largest value when it quantizes",
    "makes-nans-the-largest-of-their-sign": "turns NaN into the largest value of its sign when it"
    " quantizes",
    "makes-nans-the-lowest": "turns NaN into the lowest value when it quantizes",
    "truncates-subnormals": "rounds quotients to the bits of normal codes, then truncates"
    " subnormal ones",
    "rounds-quotients-to-float16": "rounds quotients to float16 before it rounds them to codes",
    "carries-twice-in-float16": "divides in float16, and doubles subnormals that round up to a"
    " power of two",
    "divides-between-scaled-limits": "divides x by the width of the scaled range in float32, as"
    " fake quantization does",
    "multiplies-between-scaled-limits": "multiplies x by the reciprocal width of the scaled range"
    " in float32, as fake quantization does",
    "overflows-in-scaled-limits": "overflows where a limit times the scale exceeds the scale's"
    " dtype",
    "makes-subnormal-products-zero": "makes zero of subnormal products when it dequantizes",
    "rounds-each-step": "rounds code, zero point, scale and difference to the dtype of the result"
    " before it multiplies",
    "rounds-each-step-up-from-odd": "rounds each step to the dtype of the result, and up only"
    " where the truncated pattern is odd",
    "rounds-operands": "rounds code, zero point and scale to the dtype of the result before it"
    " subtracts and multiplies",
    "rounds-operands-up-from-odd": "rounds operands and product to the dtype of the result, and"
    " up only where the truncated pattern is odd",
    "rounds-codes-up-from-odd": "rounds codes to the dtype of the result first, and up only where"
    " the truncated pattern is odd",
    "ignores-precision": "ignores `precision` when it quantizes",
    "treats-subnormal-scales-as-zero": "treats subnormal scales as zero",
    "treats-subnormals-as-zero": "treats subnormals as zero when it quantizes, and gives 0 for 0/0",
    "treats-subnormals-as-zero-with-largest-nans": (
        "treats subnormals as zero when it quantizes, and gives the largest code for 0/0"
    ),
    "wraps-differences": "wraps the difference of code and zero point when it dequantizes",
    "scales-zero-points-alone": "multiplies code and zero point by the scale before it subtracts",
    "truncates-products": "truncates the product when it dequantizes",
    "takes-another-axis": "takes the scales along another axis",
    "takes-one-scale": "takes the first scale for all elements",
    "takes-blocks-of-another-size": "takes blocks of another size",
    "repeats-scales-in-turn": "repeats the row of scales instead of each scale in its block",
    **{
        f"{verb}-in-{precision}": f"{verb} in {precision}, not in the precision that is due"
        for verb in ("divides", "multiplies")
        for precision in ("float64", "float32", "float16", "bfloat16")
    },
}
IN_OTHER_TENSORS = "changes-with-layout"
"""Stands for what is wrong in long tensors, or in those that lie otherwise, and in no short row."""
JOINT = "+"
"""Joins the names of two mechanisms that explain answers together."""


def says(name: str) -> str:
    """The sentence of a finding."""
    return block_mechanisms.says(name) or ", and ".join(SAYS[each] for each in name.split(JOINT))
