"""The documents of quantization have the types of their pages, and their formulas are total."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.families.quantization.ruling import formula
from specs.editions import editions
from specs.errors import DocumentError
from specs.lint import prove
from specs.loader import DOCUMENTS, document_named, load_document
from specs.ruling import ruling
from specs.selection import case_named

COUNTS = {
    "onnx-quantize-linear": [4, 8, 80, 136, 314, 378, 454],
    "onnx-dequantize-linear": [3, 6, 42, 99, 180, 216, 252],
    "onnx-dynamic-quantize-linear": [1],
    "webnn-quantize-linear": [24],
    "webnn-dequantize-linear": [24],
}


@pytest.mark.parametrize("name", COUNTS)
def test_documents_are_proved(name: str) -> None:
    document = document_named(name)
    assert [sum(1 for _ in each.cases()) for each in editions(document)] == COUNTS[name]
    assert prove(document).cases == sum(COUNTS[name])


def test_levels_of_the_precision_by_version() -> None:
    suffix = "float32/int8/scale:float32/form:tensor"
    formulas = [
        formula(case_named(f"onnx-quantize-linear:{version}/{suffix}")).outcome(
            "quotient", "inexact"
        )
        for version in (21, 23)
    ]
    best = ("nearest-even", "of-rounded-operands")
    assert [each.words for each in formulas] == [(*best, "exact", "neighbor"), (*best, "neighbor")]
    assert all(each.is_weak(word) != (word in best) for each in formulas for word in each.words)


@pytest.mark.parametrize(
    ("modes", "precision"),
    [
        ("scale:float16/form:tensor", "float16"),
        ("scale:float32/form:tensor", "float32"),
        ("scale:float32/form:tensor/precision:float16", "float16"),
        ("scale:float8e8m0/form:tensor/precision:float32", "float32"),
    ],
)
def test_the_precision_is_that_of_the_scale_unless_named(modes: str, precision: str) -> None:
    found = formula(case_named(f"onnx-quantize-linear:25/float32/int8/{modes}"))
    assert found.precision.name == precision


def test_cast_like_follows_cast() -> None:
    like = ruling(case_named("onnx-cast-like:24/float32/float8e4m3fn/saturate:0"))
    cast = ruling(case_named("onnx-cast:24/float32/float8e4m3fn/saturate:0"))
    assert like.meaning == cast.meaning
    assert {branch.rule for branch in like.branches} == {"as-cast"}
    assert all("onnx-cast:24" in branch.clause for branch in like.branches)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{whole: value, fraction: nearest-even}", "{whole: value}", "gap: "),
        ("step: rounding\n    when: {to: integer}", "step: rounding\n    when: {}", "overlap: "),
        ("{whole: value, fraction: nearest-even}", "{tiny: value}", "must be"),
        ("{whole: value, fraction: nearest-even}", "{whole: saturated}", "no word of `rounding`"),
        ("step: rounding\n    when: {to: integer}", "step: product\n    when: {}", "no situation"),
        ("operation: quantize", "operation: cast", "require each other"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = (DOCUMENTS / "onnx_quantize_linear.yaml").read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / "onnx_quantize_linear.yaml"
    path.write_text(text.replace(old, new), encoding="utf-8")
    page = "onnx-quantize-linear.md.sha256"
    (tmp_path / page).write_text((DOCUMENTS / page).read_text(encoding="ascii"), encoding="ascii")
    with pytest.raises(DocumentError, match=message):
        prove(load_document(path))
