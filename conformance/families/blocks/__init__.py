"""Blocks: elements that share a scale, which the operation finds itself."""

from conformance.families.blocks.explanation import explain
from conformance.families.blocks.judge import judge_blocks
from conformance.families.blocks.kernels import answer_blocks
from conformance.families.blocks.recorded import listed, results, sample, shapes
from conformance.families.blocks.sentences import says
from conformance.families.family import Family, NamedTensors

__all__ = ["FAMILY", "says"]

FAMILY = Family(
    "blocks",
    judge_blocks,
    explain,
    NamedTensors(answer_blocks, results, sample, listed, shapes, lambda case: ()),
)
