"""Finds the sentence of a finding about blocks among the mechanisms of all modules."""

from __future__ import annotations

from reports.findings import (
    block_code_mechanisms,
    block_extreme_scales,
    block_product_mechanisms,
    block_scale_mechanisms,
)

BESIDE_OTHERS = "changes-blocks-beside-others"


def says(name: str) -> str:
    """The sentence of a finding; empty if no mechanism of blocks has this name."""
    if name == BESIDE_OTHERS:
        return "gives a block another answer beside other blocks than alone"
    return (
        block_scale_mechanisms.says(name)
        or block_extreme_scales.says(name)
        or block_code_mechanisms.says(name)
        or block_product_mechanisms.says(name)
    )
