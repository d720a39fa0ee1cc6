"""Finds the sentence of a finding about blocks among the rows of all tables."""

from __future__ import annotations

from functools import cache
from itertools import permutations
from typing import Any, get_args

from conformance.families.blocks import (
    code_wrongs,
    divisions,
    extreme_scales,
    product_wrongs,
    scale_wrongs,
)
from conformance.families.blocks.wrong import Wrong
from conformance.families.quantization import wrongs as quantization_wrongs
from conformance.families.quantization.wrongs import OTHERWISE
from specs.model.block_entry import ScaleRule

BESIDE_OTHERS = "changes-blocks-beside-others"


def says(name: str) -> str:
    """Return the sentence of a finding about blocks, also by joined names; empty for any other."""
    if threshold := scale_wrongs.says(name) or extreme_scales.says(name):
        return threshold
    known = _sentences()
    names = [name] if name in known else name.split(code_wrongs.AND)
    return ", and ".join(known[each] for each in names) if known.keys() >= {*names} else ""


@cache
def _sentences() -> dict[str, str]:
    """Return the sentences of all rows, and of two findings without a row, by name."""
    rows: tuple[Wrong[Any, Any], ...] = (
        *(scale_wrongs.other_rule(*pair) for pair in permutations(get_args(ScaleRule), 2)),
        *scale_wrongs.DETOURS,
        *extreme_scales.BELOW,
        *code_wrongs.WRONGS,
        *divisions.DIVISIONS,
        *product_wrongs.WRONGS,
    )
    return {
        OTHERWISE: quantization_wrongs.says(OTHERWISE),
        BESIDE_OTHERS: "gives a block another answer beside other blocks than alone",
        **{each.name: each.says for each in rows},
    }
