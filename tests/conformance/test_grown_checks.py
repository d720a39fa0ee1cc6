"""A gate notices that a known fault grows, by what its check and its error show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.families.cast.invariances import Invariances
from conformance.families.reference import Reference
from reports.findings.cells import Cell
from reports.findings.read_findings import read_checks
from reports.gate.fault_comparison import broken_rules, fails_alike
from reports.judgement import Judgement
from reports.run_store.open_run import open_run
from reports.run_store.store import create
from specs.cases import Case
from specs.selection import select
from tests.conformance.feeding import answering, feed, planted
from tests.reports.common import record

RIGHT = Reference()
Cast = Callable[[Case, Any], Any]
NARROW, WIDE = ("float16", "int8"), ("float32", "float16")


def check_of(folder: Path, pair: tuple[str, str], cast: Cast, seed: int) -> Cell:
    """Judge the invariances of a pair, and return the check as a run stores it."""
    cases = [each for each in select(["onnx-cast:25"]) if (each.source, each.target) == pair]
    subject = planted(max_examples=20, seed=seed)
    found = feed(Invariances(subject, cases).judge(), answering(cast=cast))
    [case] = [each for each in cases if each.id == found.case]
    check = replace(found, check=f"invariances/{'/'.join(pair)}")
    store = create(str(folder), record())
    right = Judgement(case.id, "ort", "conforms", inputs=1)
    store.finish([("ort", case, right), ("ort", case, check)], lambda: 1)
    [cell] = read_checks(open_run(str(folder)))
    return cell


def known(folder: Path, pair: tuple[str, str], before: Cast, now: Cast) -> list[bool]:
    """For each broken rule, whether the run of ``now`` shows no more than the one of ``before``."""
    old, new = (
        check_of(folder / name, pair, cast, seed)
        for name, cast, seed in (("old", before, 1), ("new", now, 2))
    )
    rules = broken_rules(new)
    assert rules
    return [fails_alike(old, new, each) for each in rules]


def in_tails(change: Callable[[Any, Any], Any]) -> Cast:
    """Change the elements after the last whole vector of a row."""

    def cast(case: Case, bits: Any) -> Any:
        answers = RIGHT.cast(case, bits)
        if bits.ndim == 1 and 9 <= bits.size <= 70 and bits.size % 8:
            first = bits.size // 8 * 8
            answers[first:] = change(bits[first:], answers[first:])
        return answers

    return cast


def in_cubes(change: Callable[[Any, Any], Any]) -> Cast:
    """Change the answers to tensors of three dimensions."""

    def cast(case: Case, bits: Any) -> Any:
        answers = RIGHT.cast(case, bits)
        return change(bits, answers) if bits.ndim == 3 else answers

    return cast


def flipped(_: Any, answers: Any) -> Any:
    return answers ^ 1


def without_ones(bits: Any, answers: Any) -> Any:
    """Change the answer to the smallest subnormal."""
    return np.where(bits == 1, answers ^ 1, answers)


FAULTS = {"tails": in_tails(flipped), "cubes": in_cubes(flipped), "one": in_tails(without_ones)}


@pytest.mark.parametrize("pair", [NARROW, WIDE])
@pytest.mark.parametrize("name", ["tails", "cubes"])
def test_a_fault_is_known_whichever_tensors_are_drawn(
    name: str, pair: tuple[str, str], tmp_path: Path
) -> None:
    assert all(known(tmp_path, pair, FAULTS[name], FAULTS[name]))


GROWN: dict[str, tuple[Cast, Cast]] = {
    "more inputs": (FAULTS["one"], FAULTS["tails"]),
    "other answers": (FAULTS["tails"], in_tails(lambda _, answers: answers ^ 2)),
}


@pytest.mark.parametrize("pair", [NARROW, WIDE])
@pytest.mark.parametrize("kind", GROWN)
def test_a_fault_that_has_grown_is_not_known(
    kind: str, pair: tuple[str, str], tmp_path: Path
) -> None:
    assert not all(known(tmp_path, pair, *GROWN[kind]))
