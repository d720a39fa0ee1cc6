"""Linting a bitcast document reports each kind of mistake in one line, with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from specs.lint import prove
from specs.loader import load_document
from tests.specs.lint_checks import Mistake, assert_reported

SMALL = """\
document: small
title: Small
operation: bitcast
seed: small.txt
scope: own-dtypes

bitcast:
  ratio-by: bytes
  shapes: [scalar, 3, 2xr, 0xr]
  more:
    pairs: {float32: [float16]}
    shapes: [2x3r]

versions:
  1:
    from: [float32, float16]
    to:   [float32, float16]

rules:
  same:
    clause: "1"
    level: required
    when: {width: same}
    then: same-shape
  narrower:
    clause: "2"
    level: required
    when: {width: narrower}
    then: append-ratio
  wider:
    clause: "3"
    level: required
    when: {width: wider, last: ratio}
    then: drop-last
  refused:
    clause: "4"
    level: required
    when: {width: wider, last: [none, zero, multiple, other]}
    then: {is: error, class: InvalidArgument}
"""

MISTAKES: dict[str, Mistake] = {
    "gap": ("[none, zero, multiple, other]", "[none, zero]", "rules:",
        "gap: no rule applies to small:1/float16/float32/shape:3"),
    "overlap": ("last: ratio}", "last: [ratio, other]}", "refused:",
        "rule refused: overlap: wider and refused both take small:1/float16/float32/shape:3"),
    "takes nothing": (
        "when: {width: same}",
        "when: {width: same, rank: [0, 1, 2]}\n    then: same-shape\n"
        "  never:\n    clause: x\n    level: required\n    when: {width: same, rank: 3}",
        "never:",
        "rule never: takes no input of any case",
    ),
    "width": ("{width: same}", "{width: equal}", "when: {width: equal", "unknown word `equal`"),
    "last": ("last: ratio}", "last: first}", "when: {width: wider, last: first",
        "unknown word `first`"),
    "rank": ("{width: same}", "{width: same, rank: 7}", "when: {width: same, rank",
        "unknown word `7`"),
    "elements": ("{width: same}", "{width: same, elements: few}", "when: {width: same, el",
        "`few`"),
    "condition": ("{width: same}", "{widht: same}", "when: {widht", "did you mean `width`?"),
    "shape": ("[2x3r]", "[2y3]", "shapes: [2y3]", "`2y3` is not a shape"),
    "no ratio": ("ratio-by: bytes", "ratio-by: words", "ratio-by:", "'bits' or 'bytes'"),
    "no section": (SMALL[SMALL.index("bitcast:\n  ratio") : SMALL.index("versions:")], "",
        "operation:", "`operation: bitcast` and a section `bitcast` require each other"),
    "cast's outcome": ("then: append-ratio", "then: nearest-even", "then: nearest",
        "`nearest-even` is not an outcome of a bitcast"),
    "by class": ("then: append-ratio", "then: {zero: append-ratio}", "narrower:", "is one word"),
    "other bits": ("then: drop-last", "then: same-shape", "wider:",
        "rule wider: the outcome `same-shape` is impossible for small:1/float16/float32/shape:2x2"),
    "no dimension": ("then: append-ratio", "then: scale-last", "narrower:",
        "`scale-last` is impossible for small:1/float32/float16/shape:scalar"),
    "idle class": ("then: append-ratio", "then: {is: append-ratio, class: E}", "then: {is: app",
        "`class` is allowed beside `error` only"),
    "idle bits": ("{is: error, class: InvalidArgument}", "{is: error, bits: unspecified}",
        "then: {is: error", "`bits` is allowed beside same-shape"),
    "idle dtype": ("then: same-shape", "then: {is: unspecified, dtype: target}", "then: {is: uns",
        "`dtype` is allowed beside the `unspecified` of a call only"),
    "idle pair": ("{float32: [float16]}", "{float32: [int8]}", "pairs: {float32",
        "no version lists the pair float32 to int8"),
    "tensors": ("rules:\n",
        "tensors:\n  x:\n    clause: x\n    level: required\n    then: same-shape\nrules:\n",
        "operation:", "a bitcast document has no rules under `tensors`"),
}  # fmt: skip


def test_the_document_without_mistakes_is_valid(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(SMALL, encoding="utf-8")
    proof = prove(load_document(path))
    assert (proof.versions, proof.cases, proof.rules) == (1, 4 * 4 + 1, 4)


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_each_mistake_is_reported_with_its_line(tmp_path: Path, mistake: Mistake) -> None:
    assert_reported(tmp_path, SMALL, mistake)
