"""Mutants: they can be loaded, are wrong as their names say, and are found as in a run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from conformance.families.reference import Reference
from lab.mutants import trial
from lab.mutants.mutant import (
    MutantOracle,
    all_conditions,
    bitcast_faults,
    faults,
    mutant_named,
    tensor_faults,
)
from lab.mutants.page import page
from lab.mutants.space import chosen, combinations, has_witness
from lab.mutants.survivors import REASONS
from lab.mutants.trial import (
    MutantResult,
    Survivor,
    judge_mutant,
    why_it_survives,
)
from oracles.registry import load_backend
from specs.errors import CastigateError
from specs.loader import documents
from specs.selection import case_named
from tests.lab.commands import ROOT, lab

HALF = "onnx-cast:25/float32/float16"


def test_there_are_at_least_160_faults_under_at_least_80_conditions() -> None:
    assert len({*faults(), *tensor_faults(), *bitcast_faults()}) >= 160
    assert len(all_conditions()) >= 80


def test_no_name_is_given_twice() -> None:
    assert not {*faults()} & {*tensor_faults()}


def test_a_mutant_is_a_backend_by_its_name() -> None:
    name = f"lab.mutants.backend:rounds-floor+of-negative-values@{HALF}"
    backend = load_backend(name)
    # 1 + 2^-12 and its negative lie between two values of float16.
    bits = np.array([0x3F800800, 0xBF800800], np.uint32)
    assert backend.oracle.cast(case_named(HALF), bits).tolist() == [0x3C00, 0xBC01]
    other = case_named("onnx-cast:25/float32/bfloat16")
    assert np.array_equal(backend.oracle.cast(other, bits), Reference().cast(other, bits))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (f"rounds-flor@{HALF}", "unknown fault `rounds-flor` of a mutant; did you mean"),
        (f"rounds-floor+sometimes@{HALF}", "unknown condition `sometimes` of a mutant"),
        ("rounds-floor@onnx-cast:25/float32/flaot16", "unknown case"),
        ("flattens@onnx-bitcast:26/int8/uint8/shape:9", "unknown case"),
    ],
)
def test_an_unknown_part_of_a_name_is_refused_in_one_line(name: str, words: str) -> None:
    with pytest.raises(CastigateError) as refused:
        mutant_named(name)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_mutant_that_is_wrong_nowhere_has_no_witness() -> None:
    # No cast to bool rounds, and the largest int8 fits into int16.
    assert not has_witness(mutant_named("one-becomes-one@onnx-cast:25/float32/bool"))
    assert not has_witness(mutant_named("the-largest-answer-becomes-zero@onnx-cast:25/int8/int16"))
    assert has_witness(mutant_named("zero-becomes-one@onnx-cast:25/int8/int16"))
    # Some of its numbers must be refused, which are no witnesses.
    assert has_witness(mutant_named("flips-the-sign@wasm-convert:3.0/float64/int32/operator:trunc"))


def test_only_the_case_itself_is_wrong_if_the_name_says_so() -> None:
    case = "onnx-cast:25/float32/float8e5m2/saturate:0"
    alone, whole = (MutantOracle(mutant_named(f"always-one@{case}{end}")) for end in ("!", ""))
    saturating = case_named("onnx-cast:25/float32/float8e5m2/saturate:1")
    two = np.array([0x40000000], np.uint32)
    assert alone.cast(case_named(case), two).tolist() == [0x3C]
    assert alone.cast(saturating, two).tolist() == [0x40]
    assert whole.cast(saturating, two).tolist() == [0x3C]


MOST_SEEDS = 7
"""How many seeds are tried before a mutant counts as missed; most are found with the first."""
FOUND = {
    "ties-toward-zero@onnx-cast:25/float8e5m2/float4e2m1": "values",
    f"drops-the-lowest-bit@{HALF}": "values",
    "overflows-one-pattern-early+of-negative-values@onnx-cast:25/float64/float32": "values",
    "negative-zero-becomes-zero@pypto-cast:seed/float16/float32": "values",
    "writes-no-sign@onnx-cast:25/int8/string": "values",
    "reads-no-fraction@onnx-cast:25/string/float32": "values",
    "flattens-empty-tensors@onnx-cast:25/float32/float16": "bits and shapes",
    "exchanges-pairs-of-elements@onnx-bitcast:26/int16/float16/shape:3": "bits and shapes",
    **{
        f"{fault}@{case}": "bits and shapes"
        for fault, case in {
            "gives-zeros-from-rank-5": "xla-bitcast-convert:2023/int8/float32/shape:2x4",
            "gives-zeros-for-columns-first": "onnx-bitcast:26/float16/int16/shape:3",
            "gives-zeros-for-strides": "onnx-bitcast:26/float16/int16/shape:3",
            "gives-zeros-off-16-bytes": "tensorflow-bitcast:2023/float32/int32/shape:3",
            "answers-minus-zero-as-zero": "onnx-bitcast:26/float32/uint32/shape:3",
            "remembers-the-shape-by-the-size": "torch-view:2/int16/int64/shape:2x4",
            "overwrites-the-last-answer": "onnx-bitcast:26/float16/int16/shape:3",
            "accepts-empty-tensors": "tensorflow-bitcast:2023/int8/int64/shape:3",
            "accepts-rank-5": "xla-bitcast-convert:2023/int8/int64/shape:3",
        }.items()
    },
    f"always-zero+of-17-to-31-elements@{HALF}": "invariances",
    f"always-zero+after-another-dtype@{HALF}": "invariances",
    f"overwrites-the-last-answer@{HALF}": "shapes",
    f"overwrites-the-last-answer-but-one@{HALF}": "shapes",
    **dict.fromkeys(
        (
            f"always-zero+{condition}@{HALF}"
            for condition in (
                "wide-steps",
                "rows-backwards",
                "after-another-layout",
                "after-a-wider-source",
                "columns-first-of-32768-elements",
            )
        ),
        "invariances",
    ),
    # Each pair is asked some of the casts that may precede its own; this pair is asked that one.
    "always-zero+after-a-refusal@onnx-cast:24/float32/float16": "invariances",
}


@pytest.mark.ci_runs_one_of(7)
@pytest.mark.parametrize("name", FOUND)
def test_a_mutant_is_found_by_the_check_for_its_kind(name: str) -> None:
    assert has_witness(mutant_named(name))
    # A fault of one pair that needs certain tensors is met by chance, best in gates.
    as_a_gate = FOUND[name] in ("invariances", "bits and shapes")
    found = (judge_mutant(name, seed, as_a_gate=as_a_gate).killed_by for seed in range(MOST_SEEDS))
    assert next(filter(None, found), "") == FOUND[name]


def test_a_mutant_that_only_a_minute_brings_out_survives() -> None:
    assert not judge_mutant("always-zero+after-a-minute@onnx-cast:25/int8/int16").is_killed


def test_a_name_is_right_only_if_every_finding_is_the_planted_cause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = "reverses-the-bytes-of-answers@onnx-cast:25/float32/int32"
    assert judge_mutant(name).is_named
    right = "reversed-bytes-of-answers"
    monkeypatch.setattr(trial, "_findings", lambda failing: (right, "zero"))
    assert not judge_mutant(name).is_named


def test_the_same_seed_chooses_the_same_mutants() -> None:
    def names(seed: int) -> list[str]:
        some = list(combinations(seed))[::1000]
        return [each.name for each in map(chosen, some) if each is not None]

    assert names(1) == names(1) != names(2)


def test_the_command_tells_what_became_of_a_mutant() -> None:
    survivor = "always-zero+behind-a-million@onnx-cast:25/int8/int16"
    found = "always-zero@onnx-cast:25/int8/int16"
    assert lab("mutants", found, survivor) == (
        1,
        f"{found}: killed by values; zero\n{survivor}: survives; no finding\n",
        "",
    )
    code, out, _ = lab("mutants", found, "--json")
    assert (code, json.loads(out)["killed_by"]) == (0, "values")


def test_the_command_refuses_a_page_of_some_names(tmp_path: Path) -> None:
    page = str(tmp_path / "mutants.md")
    assert lab("mutants", "always-zero@onnx-cast:25/int8/int16", "--page", page) == (
        2,
        "",
        "--page needs the mutants of a seed; leave out the names\n",
    )
    assert not list(tmp_path.iterdir())


def test_the_page_has_survivors_first_each_with_its_reason(tmp_path: Path) -> None:
    killed = MutantResult(
        f"always-zero@{HALF}", "always-zero", "arithmetic", "everywhere", "nothing",
        "values", 100, 0.5, ("zero",), True,
    )  # fmt: skip
    name = f"always-zero+after-a-minute@{HALF}"
    left = replace(killed, name=name, condition="after-a-minute", killed_by="", findings=())
    survivor = Survivor(left, why_it_survives(left), seeds=5, found=1, is_found_at_full=False)
    text = page([killed, left], [survivor], "2026-11-26", 0, every=3)
    assert "2 mutants: 1 killed (50.0 %), 1 survive" in text
    assert "| a pair takes less than a minute, and no clock is varied | 1 | 20.0 % | 0 |" in text
    assert text.index(f"| `{name}` | 1 of 5 | not found |") < text.index("## By kind of fault")
    assert "| arithmetic | 2 | 1 | 1 | values 1 | 100 | 0.50 |" in text
    assert "one of 3 combinations" in text


def test_the_command_of_the_page_runs_a_mutant_as_a_backend(tmp_path: Path) -> None:
    """As a person runs it: by the installed command, which does not look into its folder."""
    text = (ROOT / "docs" / "atlas" / "mutants.md").read_text("utf-8")
    command = text.partition("```console\n$ ")[2].partition("```")[0]
    command = command.replace("--out RUN", f"--out {tmp_path / 'run'}")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        command, shell=True, cwd=ROOT, env={**os.environ, "PATH": path}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "lab.mutants.backend:ties-to-odd@onnx-cast:25/float32/float16" in done.stdout
    assert page([], [], "2026-11-26", 0, every=1).count("--out RUN \\\n") == 1


def test_the_reasons_of_survivors_name_conditions_and_faults_that_exist() -> None:
    known = {*faults(), *tensor_faults(), *bitcast_faults(), *all_conditions()}
    for form in REASONS:
        words, _, document = form.replace("*+", "").removesuffix("!").partition("@")
        assert words in known or words == "*", form
        assert document in ("", "*") or document.removesuffix("*") in documents(), form


@pytest.mark.parametrize("fault", bitcast_faults())
def test_a_fault_of_bitcasts_can_be_planted_where_patterns_are_wider_than_words(fault: str) -> None:
    case = "cinn-bitcast-convert:1.0/int16/complex128/shape:2x8"
    assert isinstance(has_witness(mutant_named(f"{fault}@{case}")), bool)
