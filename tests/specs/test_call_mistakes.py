"""Linting a call document reports each kind of mistake in one line, with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from specs.lint import prove
from specs.loader import load_document
from tests.specs.lint_checks import Mistake, assert_reported

SMALL = """\
document: small
title: Small
operation: call
seed: small.txt
scope: own-dtypes

receiver:
  is: layer
  method: astype
  members:
    weight: {kind: parameter}
    scale:  {kind: buffer, when: {from: float}}

versions:
  1:
    from: [float32, int8]
    to:   [float32]

forms:
  name:  {clause: "1", args: [dtype-name target]}
  other: {clause: "2", when: {from: float}, args: [tensor float32], kwargs: {blocking: word true}}

rules:
  named:
    clause: "3"
    level: required
    when: {form: name, member: [weight, scale]}
    then: {is: unspecified, dtype: target}
  others:
    clause: "4"
    level: required
    when: {form: other}
    then: {is: error, class: ValueError}

tensors:
  all:
    clause: "5"
    level: required
    when: {}
    then: same-shape
"""

MISTAKES: dict[str, Mistake] = {
    "receiver kind": ("is: layer", "is: module", "is: module",
        "'tensor', 'sharded-tensor', 'layer' or 'net-builder'"),
    "no method": ("  method: astype\n", "", "receiver:", "`method` is missing"),
    "method": ("method: astype", "method: as type", "method: as type",
        "cannot be part of a case id"),
    "runs": ("method: astype", 'method: astype\n  runs: {clause: "1", level: always}', "runs:",
        "'recommended'"),
    "runs without a clause": ("method: astype", "method: astype\n  runs: {level: required}",
        "runs:", "`clause` is missing"),
    "a changed layer": ("method: astype",
        'method: astype\n  unchanged: {clause: "1", level: required}', "unchanged:",
        "not allowed for a layer, which may be converted in place"),
    "receiver word": ("method: astype", "method: astype\n  run: required", "run: required",
        "unknown key `run`"),
    "tensor with members": ("is: layer", "is: tensor", "receiver:", "a layer needs `members`"),
    "member kind": ("kind: buffer", "kind: bufer", "scale:", "'parameter' or 'buffer'"),
    "member condition": ("{kind: buffer, when: {from: float}}",
        "{kind: buffer, when: {form: name}}\n    other: {kind: buffer, when: {fro: float}}",
        "other:", "unknown condition `fro`; did you mean `from`?"),
    "member of no pair": ("{from: float}}\n\nversions", "{from: bool}}\n\nversions", "scale:",
        "member `scale` makes no case"),
    "member in a rule": ("[weight, scale]", "[weight, scales]", "when: {form: name",
        "did you mean `scale`?"),
    "form in a rule": ("{form: other}", "{form: othe}", "when: {form: othe}",
        "did you mean `other`?"),
    "form of no pair": ('"2", when: {from: float}', '"2", when: {from: bool}', "other:",
        "form `other` makes no case"),
    "form without clause": ('clause: "1", args', "args", "name:", "`clause` is missing"),
    "form's id": ('  name:  {clause: "1"', '  na/me:  {clause: "1"', "na/me:",
        "cannot be part of a case id"),
    "argument kind": ("[dtype-name target]", "[type-name target]", "name:",
        "unknown kind of argument `type-name`"),
    "argument word": ("word true", "word yes", "other:", "unknown argument word `yes`"),
    "argument dtype": ("[tensor float32]", "[tensor float33]", "other:",
        "`float33` is neither a dtype nor"),
    "returns": ("args: [tensor float32]", "args: [tensor float32], returns: copy", "other:",
        "'receiver' or 'another'"),
    "level of what returns": ("args: [tensor float32]",
        "args: [tensor float32], returns: {is: receiver, level: always}", "other:",
        "'recommended'"),
    "memory": ("args: [tensor float32]", "args: [tensor float32], memory: new", "other:",
        "'shared' or 'own'"),
    "called on": ("args: [tensor float32]", "args: [tensor float32], on: module", "other:",
        "'linear'"),
    "shape of a form": ("args: [tensor float32]", "args: [tensor float32], shape: 2*3", "other:",
        "is not a shape"),
    "device": ("args: [tensor float32]", "args: [tensor float32], device-after: tpu", "other:",
        "'cpu' or 'gpu'"),
    "no receiver": (SMALL[SMALL.index("receiver:") : SMALL.index("versions:")], "", "operation:",
        "a section `receiver` require each other"),
    "no call": ("operation: call", "operation: cast", "operation:",
        "a section `receiver` require each other"),
    "no forms": (SMALL[SMALL.index("forms:") : SMALL.index("rules:")], "", "",
        "`receiver` and `forms` require each other"),
    "gap": ("[weight, scale]", "weight", "rules:",
        "gap: no rule applies to small:1/float32/float32/form:name/member:scale"),
    "overlap": ("{form: other}", "{form: [other, name]}", "others:",
        "rule others: overlap: small:1/float32/float32/form:name/member:weight: named"),
    "idle tensor rule": ("tensors:\n",
        'tensors:\n  idle: {clause: "6", level: required, when: {rank: []}, then: same-shape}\n',
        "idle:", "tensor rule idle takes no tensor"),
    "shape": ("{is: error, class: ValueError}", "same-shape", "then: same-shape",
        "not an outcome of a call"),
    "refused in part": ("then: {is: unspecified, dtype: target}",
        "then: {nan: error, otherwise: {is: unspecified, dtype: target}}", "named:",
        "`error` for some inputs only"),
    "idle class": ("{is: unspecified, dtype: target}", "{is: unspecified, class: E}",
        "then: {is: uns", "`class` is allowed beside `error` only"),
    "idle dtype": ("{is: error, class: ValueError}", "{is: error, dtype: target}", "then: {is: err",
        "`dtype` is allowed beside the `unspecified` of a call only"),
}  # fmt: skip


RUNNING_TENSOR = """\
receiver:
  is: tensor
  method: to
  runs: {clause: "1", level: required}
"""


def test_a_tensor_cannot_promise_to_run(tmp_path: Path) -> None:
    head, tail = SMALL[: SMALL.index("receiver:")], SMALL[SMALL.index("\nversions:") :]
    small = head + RUNNING_TENSOR + tail.replace(", member: [weight, scale]", "")
    unchanged = "runs: {clause"
    assert_reported(tmp_path, small, (unchanged, unchanged, "runs:", "for a layer only"))


def test_the_document_without_mistakes_is_valid(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(SMALL, encoding="utf-8")
    proof = prove(load_document(path))
    # float32: two forms of two members; int8: one form of one member
    assert (proof.versions, proof.cases, proof.rules) == (1, 2 * 2 + 1, 2)


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_each_mistake_is_reported_with_its_line(tmp_path: Path, mistake: Mistake) -> None:
    assert_reported(tmp_path, SMALL, mistake)
