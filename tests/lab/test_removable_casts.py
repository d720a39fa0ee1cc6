"""The answers on removable casts against brute force: the definition, value by value."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from conformance.extras.removable_casts.removable_casts import (
    Removable,
    RemovableCast,
    RemovableCasts,
    editions,
    table_of,
    write_table,
)
from conformance.extras.removable_casts.removable_page import page, summary_lines
from conformance.families.chains.composition import chain_inputs
from lab.removable.casts import contradicts, decide, replaced
from oracles.reference.chain_ends import ends
from specs.chains import Chain, chain_named, chains_of
from specs.formats import format_named
from specs.ruling import ruling
from tests.lab.commands import lab

pytest.importorskip("bitwuzla")
FEW, MANY = 3, 200
WHOLE_BITS = 8
SAMPLE = 1500
OF_A_TABLE = 20
EDITIONS = ("onnx-cast:25", "plain-cast:open", "plain-cast:wraps", "plain-cast:saturates")


def inputs_of(chain: Chain, chance: random.Random, sample: int) -> Iterator[int]:
    bits = format_named(chain.source).bits
    if bits <= WHOLE_BITS:
        yield from range(1 << bits)
        return
    yield from chain_inputs(chain.dtypes, sample).tolist()
    yield from (chance.getrandbits(bits) for _ in range(sample))


def check(found: RemovableCast, chance: random.Random, sample: int) -> None:
    """Assert that the definition confirms the answer: on its counterexample, or on each input."""
    chain, target = chain_named(found.chain), format_named(chain_named(found.chain).target)
    direct = [ruling(chain.direct)]
    if found.counterexample is not None:
        code = int(found.counterexample.input, 16)
        own = ends(chain.rulings, code)
        assert contradicts(target, own, ends(direct, code)), found
        assert (own.level == "required") == (found.level == "required"), found
        return
    opened = weaker = False
    for code in inputs_of(chain, chance, sample):
        own, other = ends(chain.rulings, code), ends(direct, code)
        opened |= own.is_open
        weaker |= (own.level, other.level) == ("required", "recommended")
        assert not contradicts(target, own, other), (found.chain, hex(code))
    if weaker or format_named(chain.source).bits <= WHOLE_BITS:
        assert found.strictness == ("weaker" if weaker else "kept"), found.chain
    if opened and chain.direct not in chain.steps:
        assert found.removable == "defined", found.chain


def checked(edition: str, number: int, sample: int) -> dict[str, int]:
    """Check at most ``number`` chains of each answer; return how many were checked."""
    chance = random.Random(edition)
    document, _, version = edition.partition(":")
    chains = list(chains_of(document, version))
    chance.shuffle(chains)
    seen: dict[str, int] = dict.fromkeys(get_args(Removable), 0)
    for chain in chains:
        found = decide(chain)
        if seen[found.removable] < number:
            check(found, chance, sample)
            seen[found.removable] += 1
        if min(seen["always"], seen["never"]) >= number:
            break
    return seen


@pytest.mark.ci_runs_one_of(2)
@pytest.mark.parametrize("edition", EDITIONS)
def test_some_answers_by_brute_force(edition: str) -> None:
    seen = checked(edition, FEW, 40)
    assert (seen["always"], seen["never"]) == (FEW, FEW)


@pytest.mark.nightly
@pytest.mark.parametrize("edition", EDITIONS)
def test_many_answers_by_brute_force(edition: str) -> None:
    seen = checked(edition, MANY, SAMPLE)
    assert (seen["always"], seen["never"]) == (MANY, MANY)


@pytest.mark.parametrize(
    ("chain", "removable"),
    [
        ("plain-cast:open/float32/float64/float32", "always"),
        ("plain-cast:open/float32/float16/float32", "never"),
        ("plain-cast:open/int32/float32/int32", "never"),
        ("plain-cast:open/int16/float32/int16", "always"),
        ("onnx-cast:25/float8e5m2/float32/float8e5m2/saturate:1", "never"),
    ],
)
def test_nothing_at_all_may_stand_in_the_place_of_a_chain(chain: str, removable: str) -> None:
    found = replaced(chain_named(chain), ())
    assert (found.removable, found.instead) == (removable, "")


@pytest.mark.parametrize(
    "chain",
    [
        "onnx-cast:25/float8e5m2/float8e4m3fn/saturate:1/float4e2m1",
        "onnx-cast:25/float8e4m3fnuz/float8e4m3fn/saturate:1/int64",
        "onnx-cast:25/int32/float32/float8e5m2/saturate:0",
    ],
)
def test_a_cast_that_may_be_left_out_names_an_input_of_which_less_is_required(chain: str) -> None:
    found = decide(chain_named(chain))
    assert found.removable in ("always", "defined")
    assert (found.strictness, found.counterexample) == ("weaker", None)
    assert found.weakening is not None
    code = int(found.weakening.input, 16)
    of_chain = ends(chain_named(chain).rulings, code)
    of_direct = ends([ruling(chain_named(chain).direct)], code)
    assert (of_chain.level, of_direct.level) == ("required", "recommended")
    assert of_chain.codes == of_direct.codes


def test_a_cast_between_floats_that_keep_each_value_weakens_nothing() -> None:
    found = decide(chain_named("onnx-cast:25/float8e4m3fn/float64/float32"))
    assert (found.removable, found.strictness, found.weakening) == ("always", "kept", None)


def test_a_nan_that_is_kept_is_one_of_the_nans_that_a_chain_may_give() -> None:
    target = format_named("float32")
    kept = ends(chain_named("plain-cast:open/float32/float64/float32").rulings, 0x7FC00001)
    one = ends(chain_named("plain-cast:open/float32/float64/float32").rulings, 0x3F800000)
    assert kept.nans
    assert not contradicts(target, kept, kept)
    assert contradicts(target, one, kept)


def test_the_page_and_the_summary_count_where_less_is_required() -> None:
    names = (
        "float8e5m2/float8e4m3fn/saturate:1/float4e2m1",
        "float4e2m1/float8e4m3fn/saturate:1/float8e5m2/saturate:1",
    )
    found = tuple(decide(chain_named(f"onnx-cast:25/{name}")) for name in names)
    assert [line.split()[0] for line in summary_lines(found)] == ["1", "1"]
    written = page(RemovableCasts(edition="onnx-cast:25", date="2026-11-28", chains=found))
    assert "| `=` | 1 | may always be left out |" in written
    assert (
        "| `~` | 1 | may always be left out, and less is then required of some inputs |" in written
    )
    assert "| `c` | 0 | " in written
    assert f"`onnx-cast:25/{names[0]}` of 0x01 " in written
    assert re.search(r"^float8e5m2 +~$", written, re.M)


def test_a_table_gives_back_each_answer(tmp_path: Path) -> None:
    names = ("float32/int32/int8", "float32/bfloat16/int8", "int8/int16/float32")
    names += ("float8e5m2/float8e4m3fn/saturate:1/float4e2m1",)
    found = tuple(decide(chain_named(f"onnx-cast:25/{name}")) for name in names)
    assert {each.removable for each in found} >= {"always", "never"}
    every = RemovableCasts(edition="onnx-cast:25", date="2026-11-28", chains=found)
    assert write_table(every, tmp_path).name == "onnx-cast@25.parquet"
    assert editions(tmp_path) == ["onnx-cast:25"]
    assert table_of("onnx-cast:25", tmp_path) == every


@pytest.mark.parametrize("edition", editions())
def test_a_table_says_what_is_decided_today(edition: str) -> None:
    chance = random.Random(edition)
    for known in chance.sample(table_of(edition).chains, OF_A_TABLE):
        assert decide(chain_named(known.chain)) == known


@pytest.mark.nightly
def test_the_command_writes_the_table_of_an_edition(tmp_path: Path) -> None:
    """Decides all chains of an edition, which the lab does once for each version of a page."""
    code, out, err = lab("removable", "stablehlo-reduce-precision", f"--out={tmp_path}", "--jobs=2")
    assert code == 0, err
    path = tmp_path / "stablehlo-reduce-precision@1.20.parquet"
    assert out == f"{path}\n"
    every = table_of("stablehlo-reduce-precision:1.20", tmp_path)
    document, _, version = every.edition.partition(":")
    assert [each.chain for each in every.chains] == [
        each.id for each in chains_of(document, version)
    ]
    code, out, err = lab("removable", "torch-tensor-to", f"--out={tmp_path}")
    assert (code, out) == (2, "")
    assert err.startswith("torch-tensor-to is not about casts")
