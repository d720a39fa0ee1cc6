"""Finds the sentence of a finding about blocks among the mechanisms of all modules."""

from __future__ import annotations

from conformance.families.blocks import code_wrongs, extreme_scales, product_wrongs, scale_wrongs
from conformance.families.quantization import wrongs as quantization_wrongs
from conformance.families.quantization.wrongs import OTHERWISE

BESIDE_OTHERS = "changes-blocks-beside-others"


def says(name: str) -> str:
    """The sentence of a finding; empty if no mechanism of blocks has this name."""
    if name == OTHERWISE:
        return quantization_wrongs.says(name)
    if name == BESIDE_OTHERS:
        return "gives a block another answer beside other blocks than alone"
    return (
        scale_wrongs.says(name)
        or extreme_scales.says(name)
        or code_wrongs.says(name)
        or product_wrongs.says(name)
    )
