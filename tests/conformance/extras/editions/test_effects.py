"""A change of a document makes answers of backends wrong, and others right."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from conformance.extras.editions.edition_changes import EditionChanges, edition_changes
from conformance.extras.editions.edition_pairs import CasePair, edition_pairs
from conformance.extras.editions.effects import (
    Answering,
    MaskedAnswers,
    RecordedAnswers,
    recorded_backends,
)
from oracles.protocol import Bits
from reports.behaviors.known_answers import known_answers
from specs.editions import Edition
from specs.formats import format_named

OWN = """\
document: own
title: One cast
operation: cast
seed: none
scope: own-dtypes
versions:
  1: {{from: [{source}], to: [{target}], rules: [only]}}
rules:
  only: {{clause: "all", level: {level}, when: {{}}, then: {{{then}}}}}
tensors:
  every: {{clause: "all", level: required, when: {{}}, then: same-shape}}
"""


@dataclass(frozen=True)
class Planned:
    """A backend whose answers a function of the input computes; None is an error."""

    answer: object
    name: str = "planned"
    version: str = "1"
    date: str = ""
    has_modes: bool = True

    def is_held_to(self, edition: Edition) -> bool:
        return True

    def answers(self, cases: CasePair, inputs: Bits) -> tuple[MaskedAnswers, MaskedAnswers]:
        given = [self.answer(code) for code in inputs.tolist()]  # type: ignore[operator]
        storage = format_named(cases.new.target).storage
        codes = np.array([code or 0 for code in given], storage)
        is_error = np.array([code is None for code in given])
        found = MaskedAnswers(codes, is_error, np.ones(codes.size, bool))
        return found, found


def changes(
    folder: Path, old: str, new: str, backends: list[Answering], pair: str = "int8/uint4"
) -> EditionChanges:
    source, target = pair.split("/")
    for name, then in (("old", old), ("new", new)):
        level, _, outcomes = then.rpartition("|")
        text = OWN.format(source=source, target=target, level=level or "required", then=outcomes)
        (folder / f"{name}.yaml").write_text(text)
    words = (str(folder / f"{name}.yaml") for name in ("old", "new"))
    return edition_changes(edition_pairs(*words), lambda _: np.zeros(0, "O"), backends)


CLAMPS = "overflow: max, -overflow: zero, otherwise: value"
WRAPS = "overflow: wrap, -overflow: zero, otherwise: value"


def clamp(code: int) -> int:
    return 0 if code > 127 else min(code, 15)


def wrap(code: int) -> int:
    return 0 if code > 127 else code & 15


@pytest.mark.parametrize(("answer", "breaks"), [(clamp, True), (wrap, False)])
def test_answers_become_wrong_or_right(tmp_path: Path, answer: object, breaks: bool) -> None:
    found = changes(tmp_path, CLAMPS, WRAPS, [Planned(answer)])
    [group] = found.groups
    [effect] = group.effects
    # Of 16 to 127, seven have the low bits of 15.
    assert (effect.breaks, effect.inputs, effect.is_whole) == (breaks, 112 - 7, True)
    assert (effect.simplest, effect.answer) == (16, answer(16))  # type: ignore[operator]
    assert effect.verdict == "violates"


def test_an_error_is_right_where_one_is_required_or_the_input_is_open(tmp_path: Path) -> None:
    asked: list[Answering] = [Planned(lambda code: None)]
    refuses = "overflow: error, -overflow: zero, otherwise: value"
    is_open = "overflow: unspecified, -overflow: zero, otherwise: value"
    [group] = changes(tmp_path, refuses, CLAMPS, asked).groups
    [effect] = group.effects
    assert (effect.breaks, effect.inputs, effect.answer) == (True, 112, None)
    [group] = changes(tmp_path, refuses, is_open, asked).groups
    assert not group.effects
    [group] = changes(tmp_path, CLAMPS, is_open, asked).groups
    [effect] = group.effects
    assert (effect.breaks, effect.inputs) == (False, 112)


def test_a_level_alone_breaks_nothing(tmp_path: Path) -> None:
    [group] = changes(tmp_path, f"recommended|{CLAMPS}", CLAMPS, [Planned(clamp)]).groups
    assert (group.change.direction, group.effects) == ("stricter", ())
    assert group.count == 256


def test_a_recorded_nan_says_nothing_about_one_nan(tmp_path: Path) -> None:
    backends = recorded_backends()
    infinities = "inf: inf, -inf: -inf, overflow: inf, -overflow: -inf"
    old = f"nan: unspecified, {infinities}, otherwise: nearest-even"
    pair = "float32/float16"
    [group] = changes(tmp_path, old, old.replace("unspecified", "'0x7e01'"), backends, pair).groups
    assert not group.effects
    [group] = changes(tmp_path, old, old.replace("unspecified", "nan"), backends, pair).groups
    assert not group.effects
    [group] = changes(tmp_path, old, old.replace("unspecified", "zero"), backends, pair).groups
    assert {each.backend for each in group.effects} >= {"numpy", "torch"}
    assert all(each.breaks for each in group.effects)


def test_recorded_answers_are_those_of_single_inputs() -> None:
    pair = known_answers().frameworks["torch"].pairs["float16/uint8"]
    source, target = format_named("float16"), format_named("uint8")
    inputs = np.arange(0, 1 << 16, 97, dtype=np.uint16)
    codes, is_known = pair.answers(source, target, inputs)
    single = [pair.answer(source, target, code) for code in inputs.tolist()]
    assert [code if known else None for code, known in zip(codes, is_known, strict=True)] == single
    assert is_known.any()


def test_frameworks_are_held_to_what_their_adapters_claim() -> None:
    [pair] = edition_pairs("onnx-cast:24", "onnx-cast:25")
    frameworks = known_answers().frameworks
    claiming = {
        name
        for name, each in frameworks.items()
        if RecordedAnswers(name, each).is_held_to(pair.new)
    }
    assert claiming == {"onnx", "ort"}
    [pair] = edition_pairs("numpy-astype:2.3", "numpy-astype:2.4")
    assert RecordedAnswers("numpy", frameworks["numpy"]).is_held_to(pair.new)
