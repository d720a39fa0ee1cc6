"""Quantization: codes by a scale and a zero point, and the values of codes."""

from conformance.families.family import Family, NamedTensors
from conformance.families.quantization.explanation import explain
from conformance.families.quantization.judge import judge_quantization
from conformance.families.quantization.kernels import quantize
from conformance.families.quantization.recorded import listed, optional, results, sample, shapes
from conformance.families.quantization.ways import says

__all__ = ["FAMILY", "says"]

FAMILY = Family(
    "quantization",
    judge_quantization,
    explain,
    NamedTensors(quantize, results, sample, listed, shapes, optional),
)
