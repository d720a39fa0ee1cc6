"""Documents of blocks: their statements compared with the pages, and mistakes that are found."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.families.blocks.ruling import block_ruling
from specs.errors import DocumentError
from specs.lint import prove
from specs.loader import DOCUMENTS, load_document
from specs.selection import case_named, select

LEVELS = {
    "floor": "required",
    "ceil": "required",
    "round-up": "required",
    "round-down": "recommended",
    "even": "recommended",
    "nearest": "recommended",
    "nearest-log": "recommended",
    "round-up-7.25": "recommended",
}


@pytest.mark.parametrize("rule", LEVELS)
def test_the_texts_state_three_scale_rules(rule: str) -> None:
    ruling = block_ruling(case_named(f"mx-blocks:1/float32/float4e2m1/rule:{rule}/block:32"))
    assert (ruling.word("scale"), ruling.answers["scale"].level) == (rule, LEVELS[rule])
    assert (ruling.scale.name, ruling.size) == ("float8e8m0", 32)
    assert ruling.answers["zero-block"].is_open
    assert ruling.answers["nan-block"].is_open


@pytest.mark.parametrize(
    ("element", "level"),
    [
        ("float8e4m3fn", "required"),
        ("float8e5m2", "required"),
        ("float4e2m1", "recommended"),
        ("int8", "recommended"),
    ],
)
def test_cudnn_requires_elements_of_mxfp8_to_round_to_even(element: str, level: str) -> None:
    ruling = block_ruling(case_named(f"mx-blocks:1/float32/{element}/rule:round-up/block:32"))
    assert (ruling.word("element"), ruling.answers["element"].level) == ("nearest-even", level)


def test_cudnn_rounds_scales_of_nvfp4_up() -> None:
    case = "nvfp4-blocks:1/float32/float4e2m1/rule:round-up/global:none/block:16"
    ruling = block_ruling(case_named(case))
    assert (ruling.word("scale"), ruling.answers["scale"].level) == ("round-up", "required")
    assert (ruling.scale.name, ruling.size, ruling.has_global) == ("float8e4m3fn", 16, False)


def test_the_rule_by_7_25_is_for_e2m1_alone() -> None:
    cases = [case for case in select(["mx-blocks"]) if case.mode["rule"] == "round-up-7.25"]
    assert {case.target for case in cases} == {"float4e2m1"}


def changed(tmp_path: Path, old: str, new: str) -> Path:
    """Copy the document of MX with one change, and its page's digest; return the copy's path."""
    text = (DOCUMENTS / "mx_blocks.yaml").read_text()
    assert old in text
    file = tmp_path / "mx_blocks.yaml"
    file.write_text(text.replace(old, new, 1))
    page = "torchao-mx-config.py.sha256"
    (tmp_path / page).write_bytes((DOCUMENTS / page).read_bytes())
    return file


MISTAKES = [
    (
        "{scale: floor, scale-below-smallest: unspecified}",
        "{scale: floor}",
        "gap: no rule answers `scale-below-smallest`",
    ),
    (
        "{scale: floor, scale-below-smallest: unspecified}",
        "{scale: floor, scale-below-smallest: unspecified, zero-block: unspecified}",
        "overlap: floor and other-blocks both answer `zero-block`",
    ),
    ("{scale: floor,", "{scale: largest,", "`largest` answers no `scale`"),
    ("scale: float8e8m0", "scale: int8", "`int8` is no float8e8m0 or float8e4m3fn"),
    (
        "round-up-7.25: {to: float4e2m1}",
        "round-up-7: {to: float4e2m1}",
        "unknown value `round-up-7`",
    ),
    ("operation: block-quantize", "operation: cast", "`operation: cast` and a section `blocks`"),
]


@pytest.mark.parametrize(("old", "new", "message"), MISTAKES, ids=[each[2] for each in MISTAKES])
def test_a_mistake_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    file = changed(tmp_path, old, new)
    with pytest.raises(DocumentError) as caught:
        prove(load_document(file))
    assert message in str(caught.value)
