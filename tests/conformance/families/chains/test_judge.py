"""Chains: an optimizer that changes them is found, on the road where it does, and named."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from conformance.families.chains.composition import chain_inputs
from conformance.families.chains.judge import judge_chains
from conformance.families.chains.wrongs import KEEPS_SIGNS, WITHIN, says
from conformance.families.reference import Reference
from oracles.protocol import Bits, Unsupported
from reports.findings.causes import failures_of, find_causes
from reports.findings.judged_cells import cell_of
from reports.judgement import Judgement
from reports.problems import Refused, WrongEnd
from specs.cases import Case
from specs.chains import Chain, Company, chain_named
from specs.formats import format_named
from specs.selection import cases_of_pair
from tests.conformance.feeding import answering, feed, planted

ROADS = ("level:all", "level:all,middle:output", "level:all,input:constant", "level:none")
Rewrite = Callable[[Chain, str], Sequence[Case]]
"""Takes a chain and a road; returns the casts that an optimizer leaves there."""


def along(chain: Chain, *middle: str) -> list[Case]:
    """Casts through other dtypes, in default modes."""
    path = [chain.source, *middle, chain.target]
    first = chain.steps[0]
    return [cases_of_pair(first.document, first.version, *pair)[0] for pair in pairwise(path)]


@dataclass
class Optimizer:
    """Casts as the reference does; chains are rewritten first.

    Inputs outside of ``within`` are cast rightly.
    """

    rewrite: Rewrite
    within: Callable[[Bits], Any] = lambda bits: np.ones(bits.shape, bool)

    def __post_init__(self) -> None:
        self.reference = Reference()

    def cast(self, case: Case, bits: Bits) -> Bits:
        return self.reference.cast(case, bits)

    def follow(self, steps: Sequence[Case], bits: Bits) -> Bits:
        for step in steps:
            bits = self.cast(step, bits)
        return bits

    def chains(self, case: Case, company: Company, bits: Mapping[str, Bits]) -> list[Bits]:
        found = []
        for chain, own in zip(company.chains, bits.values(), strict=True):
            right = self.follow(chain.steps, own)
            wrong = self.follow(self.rewrite(chain, company.road), own)
            found.append(np.where(self.within(own), wrong, right))
        return found


def judge(backend: Any, *names: str) -> list[Judgement]:
    asked = [f"chains/{name}" for name in names]
    subject = planted(chain_roads=ROADS)
    answer = answering(cast=backend.cast, chains=backend.chains)
    return feed(judge_chains(subject, asked, [chain_named(names[0]).direct]), answer)


def cause_of(judgement: Judgement) -> tuple[str, str]:
    case = chain_named(judgement.check.partition("/")[2]).direct
    cell = cell_of(case, judgement, ())
    [(cause, sentence)] = find_causes([*failures_of(cell)])
    return cause.name, sentence


def untouched(chain: Chain, road: str) -> Sequence[Case]:
    return chain.steps


def dropped(chain: Chain, road: str) -> Sequence[Case]:
    return [chain.direct]


def on(roads: str, rewrite: Rewrite) -> Rewrite:
    """Rewrite only on roads whose name contains ``roads``."""
    return lambda chain, road: rewrite(chain, road) if roads in road else chain.steps


def through(*dtypes: str) -> Rewrite:
    return lambda chain, road: along(chain, *dtypes)


def default_modes(chain: Chain, road: str) -> Sequence[Case]:
    return along(chain, *chain.dtypes[1:-1])


def saturating(chain: Chain, road: str) -> Sequence[Case]:
    """The chain's casts, all with `saturate` 1, and their other modes kept."""
    return [
        replace(
            each, modes=tuple((key, "1" if key == "saturate" else own) for key, own in each.modes)
        )
        for each in chain.steps
    ]


def is_large(bits: Bits) -> Any:
    return np.abs(bits.view(np.float32)) > 65504


ALL = ROADS
FLOAT, INTEGER, BOOL = (f"drops-{kind}-on-the-way" for kind in ("float", "integer", "boolean"))
PLANTED = [
    # optimizer, chain, roads on which it shows, name
    (Optimizer(dropped), "float32/float16/float32", ALL, FLOAT),
    (Optimizer(dropped), "float32/int32/bool", ALL, INTEGER),
    (Optimizer(dropped), "int64/bool/int32", ALL, BOOL),
    (Optimizer(dropped), "float64/float32/int8", ALL, FLOAT),
    (Optimizer(dropped), "float64/bfloat16/float64", ALL, FLOAT),
    (Optimizer(dropped), "float32/float8e4m3fn/float32", ALL, FLOAT),
    (Optimizer(dropped), "int32/float16/int32", ALL, FLOAT),
    (Optimizer(dropped), "uint64/int32/float32", ALL, INTEGER),
    (Optimizer(on("level:all", dropped)), "float32/bfloat16/int8", ALL[:3], FLOAT),
    (Optimizer(on("middle", dropped)), "float32/int32/bool", ALL[1:2], INTEGER),
    (Optimizer(on("constant", dropped)), "float32/bfloat16/float16", ALL[2:3], FLOAT),
    (Optimizer(dropped, is_large), "float32/float16/float32", ALL, FLOAT),
    (Optimizer(through("float32")), "float64/float16/float64", ALL, "keeps-float32-on-the-way"),
    (Optimizer(through("float16")), "float32/float8e5m2/float32", ALL, "keeps-float16-on-the-way"),
    (Optimizer(through("float64")), "int64/float32/int64", ALL, "keeps-float64-on-the-way"),
    (
        Optimizer(default_modes),
        "float32/float8e8m0/saturate:0/round_mode:down/float32",
        ALL,
        "loses-modes-in-chains",
    ),
    (
        Optimizer(saturating),
        "float32/float8e8m0/saturate:0/round_mode:nearest/float16",
        ALL,
        "loses-mode-saturate-in-chains",
    ),
    (Optimizer(through("float16", "int8")), "float32/int8/float16", ALL, "reorders-casts"),
]


class Fused(Optimizer):
    """Makes the step to ``target`` by ``change`` within a chain."""

    def __init__(self, target: str, change: Callable[[Bits], Bits]) -> None:
        super().__init__(untouched)
        self.target, self.change = target, change

    def chains(self, case: Case, company: Company, bits: Mapping[str, Bits]) -> list[Bits]:
        found = []
        for chain, own in zip(company.chains, bits.values(), strict=True):
            for step in chain.steps:
                fused = step.target == self.target
                own = self.change(own) if fused else self.cast(step, own)
            found.append(own)
        return found


def clamped_to_int8(bits: Bits) -> Bits:
    return np.clip(bits.view(np.int32), -128, 127).astype(np.int8).view(np.uint8)


def rounded_to_uint8(bits: Bits) -> Bits:
    with np.errstate(invalid="ignore"):
        values = np.rint(bits.view(np.float32).astype(np.float64))
        return np.where(np.isfinite(values), values, 0).astype(np.int64).astype(np.uint8)


def flushed_to_float16(bits: Bits) -> Bits:
    with np.errstate(over="ignore"):
        codes = bits.view(np.float32).astype(np.float16).view(np.uint16)
    return np.where(codes & 0x7C00, codes, codes & 0x8000)


@pytest.mark.parametrize(
    ("backend", "name", "cause"),
    [
        (Fused("int8", clamped_to_int8), "int32/int8/int16", "saturate"),
        (Fused("int8", clamped_to_int8), "int32/int8/float32", "saturate"),
        (Fused("float16", flushed_to_float16), "float32/float16/float64", "nearest-flush"),
        (Fused("uint8", rounded_to_uint8), "float32/uint8/float32", "half-even-wrap"),
    ],
)
def test_a_step_that_is_made_otherwise_within_a_chain_is_named(
    backend: Fused, name: str, cause: str
) -> None:
    [found] = judge(backend, f"onnx-cast:25/{name}")
    assert found.verdict in ("violates", "deviates")
    [problem] = found.problems
    assert isinstance(problem, WrongEnd)
    assert f"{WITHIN}{cause}" in problem.followed
    assert says(f"{WITHIN}{cause}").endswith(", within a chain only")


class Truncating(Optimizer):
    """Truncates floats within a chain where the chain goes through an integer and back."""

    def chains(self, case: Case, company: Company, bits: Mapping[str, Bits]) -> list[Bits]:
        found = []
        for chain, own in zip(company.chains, bits.values(), strict=True):
            values = own.view(np.float32)
            is_minus_zero = np.signbit(values) & (values > -1)
            found.append(self.follow(chain.steps, own) | np.uint32(is_minus_zero) << np.uint32(31))
        return found


def test_the_sign_of_a_zero_that_an_integer_has_not_is_named() -> None:
    [found] = judge(Truncating(untouched), "onnx-cast:25/float32/int8/float32")
    [problem] = found.problems
    assert isinstance(problem, WrongEnd)
    assert problem.followed == (KEEPS_SIGNS,)
    assert says(KEEPS_SIGNS).startswith("keeps the sign of what an integer")


@pytest.mark.parametrize(("backend", "name", "roads", "cause"), PLANTED)
def test_a_planted_optimizer_is_found_and_named(
    backend: Optimizer, name: str, roads: Sequence[str], cause: str
) -> None:
    [found] = judge(backend, f"onnx-cast:25/{name}")
    assert found.verdict in ("violates", "deviates")
    [problem] = found.problems
    assert isinstance(problem, WrongEnd)
    assert problem.roads == tuple(roads)
    assert cause_of(found) == (cause, says(cause))


@pytest.mark.parametrize(
    "name",
    ["float32/float16/float32", "float32/int32/bool", "float64/float8e5m2/int4", "int64/bool/int8"],
)
def test_casts_that_are_left_as_they_are_conform(name: str) -> None:
    [found] = judge(Optimizer(untouched), f"onnx-cast:25/{name}")
    assert (found.verdict, found.problems) == ("conforms", ())
    assert found.check == f"chains/onnx-cast:25/{name}"


def test_an_open_answer_that_changes_is_no_failure_but_is_told() -> None:
    [found] = judge(Optimizer(dropped), "onnx-cast:25/float32/int32/int64")
    assert found.verdict == "open"
    assert "where the document is open, " in found.message
    assert found.message.endswith("; so it is on 3 more roads")


def test_a_step_that_is_wrong_alone_is_no_matter_of_the_chain() -> None:
    class Wrong(Optimizer):
        def cast(self, case: Case, bits: Bits) -> Bits:
            answer = self.reference.cast(case, bits)
            return answer ^ 1 if case.target == "float16" else answer

    [found] = judge(Wrong(untouched), "onnx-cast:25/float32/float16/float32")
    assert found.verdict == "conforms"


def test_a_step_that_is_declined_alone_is_not_asked_in_company() -> None:
    class Without(Optimizer):
        def cast(self, case: Case, bits: Bits) -> Bits:
            if case.target == "float16":
                raise Unsupported("no float16 here")
            return self.reference.cast(case, bits)

    one, other = judge(
        Without(dropped),
        "onnx-cast:25/float32/float16/float32",
        "onnx-cast:25/float32/bfloat16/float32",
    )
    assert (one.verdict, one.message) == (
        "unsupported",
        "onnx-cast:25/float32/float16 alone: no float16 here",
    )
    assert other.verdict in ("violates", "deviates")


def test_one_chain_that_raises_does_not_hide_the_others() -> None:
    class Raising(Optimizer):
        def chains(self, case: Case, company: Company, bits: Mapping[str, Bits]) -> list[Bits]:
            if any("bfloat16" in chain.dtypes for chain in company.chains):
                raise ValueError("a graph that it cannot load")
            return super().chains(case, company, bits)

    middle = ("float16", "bfloat16", "float8e5m2", "int8", "bool")
    names = [f"onnx-cast:25/float32/{each}/float32" for each in middle]
    found = judge(Raising(untouched), *names)
    assert [each.verdict for each in found] == ["conforms", "error", *["conforms"] * 3]
    [refused] = found[1].problems
    assert isinstance(refused, Refused)
    assert cause_of(found[1])[0] == "raises-in-chains"


def test_the_verdict_of_an_unclaimed_document_is_no_violation() -> None:
    subject = replace(planted(chain_roads=ROADS), claimed=())
    backend = Optimizer(dropped)
    name = "chains/onnx-cast:25/float32/float16/float32"
    answer = answering(cast=backend.cast, chains=backend.chains)
    [found] = feed(judge_chains(subject, [name], [chain_named(name[7:]).direct]), answer)
    assert found.verdict == "differs"


def test_inputs_stay_within_their_format() -> None:
    """A chain's inputs are patterns of its source, in rising order."""

    for dtypes in (
        ("float32", "float16", "int8"),
        ("int64", "float32", "bool"),
        ("int4", "int8", "bool"),
    ):
        bits = chain_inputs(dtypes)
        assert (bits[1:] > bits[:-1]).all()
        assert int(bits.max()) <= format_named(dtypes[0]).mask
