"""The name of a finding depends on its cause alone, whatever cases and inputs a run selects."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from conformance.families.cast import follow, judge
from conformance.families.cast.quick_inputs import inputs_of
from reports.findings.read_findings import read_findings
from specs.cases import Case
from specs.formats import EXHAUSTIVE_BITS
from specs.ruling import Ruling
from tests.reports.judged_run import cases_of, judged_run
from tests.reports.planted_everywhere import SPREAD, Spread

NAMES = {
    "carry-is-nan": "nan",
    "subnormal-inputs-flushed": "flush-nearest",
    "subnormal-results-flushed": "nearest-flush",
    "truncates": "rounds-toward-zero",
    "twice-through-float16": "rounds-twice-through-float16",
    "halves-away": "rounds-nearest-away",
    "saturate-ignored": "as-saturate-1",
    "nan-is-zero": "zero",
    "minus-zero-lost": "zero",
    "infinity-clamped": "maximum",
    "unsigned-as-signed": "reads-unsigned-as-signed",
    "signed-as-unsigned": "reads-signed-as-unsigned",
    "through-float32": "rounds-twice-through-float32",
    "minus-zero-is-true": "any-bit",
    "small-is-false": "truncated-nonzero",
    "rounds-to-integers": "rounds-nearest-even",
    "round-mode-ignored": "as-round_mode-up",
    "newer-rules": "as-version-24",
    "bytes-swapped": "reversed-bytes-of-answers",
    "low-byte-lost": "ignores-8-low-bits",
    "nans-carried": "rounds-nans",
    "zero-is-one": "one",
    "clamps-integers": "saturate",
}


def every_second(case: Case, ruling: Ruling, *options: Any) -> Any:
    """Half of the inputs of a wide source; of a narrow one all are always asked."""
    inputs = inputs_of(case, ruling, *options)
    return inputs[::2] if ruling.source.bits > EXHAUSTIVE_BITS else inputs


@pytest.fixture(autouse=True)
def _few_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "MOST_FOLLOWED", 1 << 16)


def names_of(folder: Path, planted: Spread, cases: Sequence[Case]) -> list[str]:
    found = read_findings(judged_run(folder, {"faulty": planted.answer}, cases))
    return [each.name for each in found.get("faulty", ())]


@pytest.mark.ci_runs_one_of(4)
@pytest.mark.parametrize("name", SPREAD)
def test_a_fault_has_one_name_in_every_selection(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = SPREAD[name]
    whole, document, *pairs = planted.selections()
    found = [
        names_of(tmp_path / str(number), planted, cases_of(*patterns))
        for number, patterns in enumerate((whole, document, *pairs))
    ]
    monkeypatch.setattr(judge, "inputs_of", every_second)
    found.append(names_of(tmp_path / "half", planted, cases_of(*whole)))
    assert found == [[NAMES[name]]] * len(found)


def test_every_fault_has_a_name() -> None:
    assert {*NAMES} == {*SPREAD}
