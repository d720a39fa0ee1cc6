"""pypto-cast has the pairs, modes and defaults of the page, and satmode from 0.2 on."""

from __future__ import annotations

from collections import defaultdict

import pytest

from specs.cases import Case
from specs.editions import Edition, edition
from specs.formats import dtype_spelled
from specs.loader import document_named
from specs.model.document import ParameterEntry
from specs.outcomes import Exactly, Wrap
from specs.ruling import ruling

DTYPES = ("float32", "float16", "bfloat16", "int8", "uint8", "int16", "int32", "int64")
MODES = ("NONE", "RINT", "ROUND", "FLOOR", "CEIL", "TRUNC", "ODD")
ROUNDING_PAIRS = {
    ("float16", "int32"), ("float16", "int16"), ("float16", "int8"), ("float16", "uint8"),
    ("bfloat16", "int32"),
    ("int32", "float32"),
    ("float32", "bfloat16"), ("float32", "float16"),
    ("float32", "int16"), ("float32", "int32"), ("float32", "int64"),
    ("int16", "float16"),
    ("int64", "float32"),
}  # fmt: skip
PAIRS_WITHOUT_ROUNDING = {
    ("float16", "float32"), ("bfloat16", "float32"), ("int32", "int64"), ("int16", "float32"),
    ("uint8", "float16"), ("int8", "float16"),
    ("int32", "int16"), ("int64", "int32"),
}  # fmt: skip
WRAPPING_PAIRS = {
    ("float16", "uint8"), ("float16", "int8"), ("float16", "int16"),
    ("float32", "int16"), ("int64", "int32"), ("int32", "int16"),
}  # fmt: skip
LISTED = ROUNDING_PAIRS | PAIRS_WITHOUT_ROUNDING
ALL_PAIRS = {(source, target) for source in DTYPES for target in DTYPES}
Modes = tuple[tuple[str, str], ...]


def edition_of(version: str) -> Edition:
    return edition(document_named("pypto-cast"), version)


def modes_of_pairs(version: str) -> dict[tuple[str, str], list[Modes]]:
    found: dict[tuple[str, str], list[Modes]] = defaultdict(list)
    for case in edition_of(version).cases():
        if case.example is None:
            found[case.source, case.target].append(case.modes)
    return found


def modes_on_the_page(version: str, pair: tuple[str, str]) -> list[Modes]:
    rounding: list[Modes] = [()]
    if pair in ROUNDING_PAIRS:
        rounding = [(("mode", f"CAST_{mode}"),) for mode in MODES]
    if version == "seed" or pair not in WRAPPING_PAIRS:
        return rounding
    return [(*modes, ("satmode", word)) for modes in rounding for word in ("off", "on")]


def test_the_dtypes_are_known_by_the_names_of_the_framework() -> None:
    names = ("FP32", "FP16", "BF16", "INT8", "UINT8", "INT16", "INT32", "INT64")
    assert tuple(dtype_spelled(f"DT_{name}") for name in names) == DTYPES


@pytest.mark.parametrize("version", ["seed", "0.2"])
def test_the_listed_pairs_are_the_21_on_the_page(version: str) -> None:
    assert len(LISTED) == 21
    assert edition_of(version).listed == LISTED


@pytest.mark.parametrize("version", ["seed", "0.2"])
def test_each_pair_has_the_modes_that_affect_it(version: str) -> None:
    found = modes_of_pairs(version)
    assert set(found) == ALL_PAIRS
    for pair, modes in found.items():
        assert modes == (modes_on_the_page(version, pair) if pair in LISTED else [()]), pair


@pytest.mark.parametrize("version", ["seed", "0.2"])
def test_exactly_the_unlisted_pairs_are_open(version: str) -> None:
    for case in edition_of(version).cases():
        assert ruling(case).is_open == ((case.source, case.target) not in LISTED), case.id


def test_the_defaults_are_cast_none_and_from_0_2_on_satmode_off() -> None:
    seed = dict(edition_of("seed").parameters())
    later: dict[str, ParameterEntry] = dict(edition_of("0.2").parameters())
    assert set(seed) == {"mode"}
    assert {name: entry.default for name, entry in later.items()} == {
        "mode": "CAST_NONE",
        "satmode": "off",
    }


def test_ids_of_both_versions() -> None:
    ids = {case.id for version in ("seed", "0.2") for case in edition_of(version).cases()}
    assert "pypto-cast:seed/float16/int8/mode:CAST_NONE" in ids
    assert "pypto-cast:0.2/float16/int8/mode:CAST_NONE/satmode:off" in ids
    assert "pypto-cast:0.2/int64/int32/satmode:on" in ids
    assert "pypto-cast:seed/int64/int32" in ids


@pytest.mark.parametrize(
    ("version", "satmode", "outcome"),
    [("seed", None, Exactly), ("0.2", "on", Exactly), ("0.2", "off", Wrap)],
)
@pytest.mark.parametrize("pair", sorted(WRAPPING_PAIRS), ids="-".join)
def test_out_of_range_clamps_unless_satmode_is_off(
    pair: tuple[str, str], version: str, satmode: str | None, outcome: type
) -> None:
    modes = [("mode", "CAST_NONE")] if pair in ROUNDING_PAIRS else []
    modes += [("satmode", satmode)] if satmode else []
    rules = ruling(Case("pypto-cast", version, *pair, tuple(modes)))
    outcomes = {
        type(rules.branches[index].outcome)
        for atom, index in rules.branch_of.items()
        if atom.zone == "overflow"
    }
    assert outcomes == {outcome}
