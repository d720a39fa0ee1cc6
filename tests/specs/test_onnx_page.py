"""onnx-cast has the versions, types and parameters of the page, and the cases that follow."""

from __future__ import annotations

import json
import re
from itertools import product
from math import isfinite
from pathlib import Path

import numpy as np
import pytest

from oracles.reference import expect_by_exact
from specs.branches import Branch
from specs.cases import Case
from specs.editions import edition, editions
from specs.formats import formats
from specs.loader import document_named
from specs.model.vocabulary import Atom
from specs.outcomes import Exactly, Nan
from specs.questions import read_question
from specs.ruling import ruling

LISTS: dict[str, dict[str, list[str]]] = json.loads(
    (Path(__file__).parent / "data" / "onnx_type_lists.json").read_text(encoding="utf-8")
)
OUR_NAMES = {"double": "float64", "float": "float32"}
FLOAT8 = ("float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz")
VERSIONS = ("1", "6", "9", "13", "19", "21", "23", "24", "25")


def listed(version: str, constraint: str) -> set[str]:
    return {OUR_NAMES.get(name, name) for name in LISTS[version][constraint]}


def cases(version: str) -> list[Case]:
    return list(edition(document_named("onnx-cast"), version).cases())


def modes_on_the_page(version: str, target: str) -> set[tuple[tuple[str, str], ...]]:
    saturate = [("saturate", "1"), ("saturate", "0")]
    if int(version) >= 19 and target in FLOAT8:
        return {(mode,) for mode in saturate}
    if int(version) >= 24 and target == "float8e8m0":
        round_mode = [("round_mode", word) for word in ("up", "down", "nearest")]
        return set(product(saturate, round_mode))
    return {()}


def test_the_versions_are_the_nine_on_the_page() -> None:
    assert tuple(each.version for each in editions(document_named("onnx-cast"))) == VERSIONS
    assert set(LISTS) == set(VERSIONS)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_types_of_a_version_are_those_on_the_page(version: str) -> None:
    found = edition(document_named("onnx-cast"), version)
    for types, constraint in ((found.sources, "T1"), (found.targets, "T2")):
        assert len(set(types)) == len(types) == len(LISTS[version][constraint])
        assert set(types) == listed(version, constraint)


@pytest.mark.parametrize("version", VERSIONS)
def test_parameters_have_the_versions_and_defaults_of_the_page(version: str) -> None:
    found = edition(document_named("onnx-cast"), version)
    expected = {"saturate": "1"} if int(version) >= 19 else {}
    if int(version) >= 24:
        expected["round_mode"] = "up"
    assert {name: parameter.default for name, parameter in found.parameters()} == expected


@pytest.mark.parametrize("version", VERSIONS)
def test_each_pair_has_the_modes_that_affect_it(version: str) -> None:
    found: dict[tuple[str, str], set[tuple[tuple[str, str], ...]]] = {}
    for case in cases(version):
        if case.example is None:
            found.setdefault((case.source, case.target), set()).add(case.modes)
    sources, targets = listed(version, "T1"), listed(version, "T2")
    for source in formats():
        for target in formats():
            is_listed = source in sources and target in targets
            expected = modes_on_the_page(version, target) if is_listed else {()}
            assert found.pop((source, target)) == expected
    assert not found


def test_the_number_of_cases_of_version_25_follows_from_its_lists() -> None:
    types, dtypes = len(LISTS["25"]["T1"]), len(formats())
    to_float8, to_e8m0, to_others = types * 4 * 2, types * 6, types * (types - 5)
    unlisted = dtypes**2 - types**2
    examples = 2
    assert len(cases("25")) == to_float8 + to_e8m0 + to_others + unlisted + examples == 1179


@pytest.mark.parametrize("version", VERSIONS)
def test_exactly_the_unlisted_pairs_are_rejected(version: str) -> None:
    sources, targets = listed(version, "T1"), listed(version, "T2")
    for case in cases(version):
        is_listed = case.source in sources and case.target in targets
        assert ruling(case).is_rejection == (not is_listed), case.id


def test_ids_are_unique_and_use_plain_characters_only() -> None:
    ids = [case.id for version in VERSIONS for case in cases(version)]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[A-Za-z0-9.:/_-]+", each) for each in ids)


def test_ids_spell_out_defaults_in_the_order_of_the_document() -> None:
    ids = {case.id for case in cases("25")}
    assert "onnx-cast:25/float32/float8e4m3fn/saturate:0" in ids
    assert "onnx-cast:25/float32/float8e4m3fn/saturate:1" in ids
    assert "onnx-cast:25/float32/float8e8m0/saturate:1/round_mode:up" in ids
    assert "onnx-cast:25/float32/float16" in ids
    assert "onnx-cast:25/float32/float8e4m3fn" not in ids
    assert "onnx-cast:25/float32/float8e8m0" not in ids


def infinity_branches(version: str, target: str, saturate: str) -> list[Branch]:
    rules = ruling(Case("onnx-cast", version, "float32", target, (("saturate", saturate),)))
    return [rules.branches[rules.branch_of[Atom("infinity", sign)]] for sign in ("+", "-")]


@pytest.mark.parametrize("target", FLOAT8)
def test_infinity_saturates_from_24_on_but_is_nan_in_fnuz_types_before(target: str) -> None:
    form = formats()[target]
    largest = [Exactly(form.max_code), Exactly(form.lowest_code)]
    late = [branch.outcome for branch in infinity_branches("24", target, "1")]
    assert late == largest
    for version in ("19", "21", "23"):
        early = [branch.outcome for branch in infinity_branches(version, target, "1")]
        assert early == ([Nan("any"), Nan("any")] if target.endswith("fnuz") else largest)


@pytest.mark.parametrize("target", FLOAT8)
def test_without_saturation_no_version_differs_on_infinity(target: str) -> None:
    assert infinity_branches("23", target, "0") == infinity_branches("24", target, "0")


def test_a_zero_becomes_the_pattern_zero_of_float8e8m0_which_is_its_smallest_value() -> None:
    modes = (("saturate", "1"), ("round_mode", "up"))
    rules = ruling(Case("onnx-cast", "25", "float32", "float8e8m0", modes))
    assert rules.branches[rules.branch_of[Atom("zero", "+")]].outcome == Exactly(0x00)


def test_a_literal_of_every_kind_but_a_negative_zero_may_be_a_value_of_the_target() -> None:
    rules = ruling(Case("onnx-cast", "25", "string", "float32"))
    for kind in ("text-whole", "text-decimal"):
        found = {atom for atom in rules.branch_of if atom.kind == kind and atom.representable}
        assert {(atom.sign, atom.zone) for atom in found} == {
            ("+", "none"), ("+", "subnormal"), ("+", "inside"),
            ("-", "subnormal"), ("-", "inside"),
        }  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "version"), [("onnx-cast", "25"), ("onnx-cast:19", "19"), ("onnx-cast:1", "1")]
)
def test_a_question_without_a_version_means_the_newest(asked: str, version: str) -> None:
    [case] = read_question([asked, "float32", "int32"]).cases
    assert case.id == f"onnx-cast:{version}/float32/int32"


def test_a_pair_and_a_mode_of_the_page_are_asked_without_its_name() -> None:
    [case] = read_question(["float32/float8e4m3fn/saturate:0"]).cases
    assert case.id == "onnx-cast:25/float32/float8e4m3fn/saturate:0"


ENDS = {"int4": (-8, 7), "uint4": (0, 15), "int2": (-2, 1), "uint2": (0, 3)}


@pytest.mark.parametrize("target", ENDS)
def test_narrow_integers_are_judged_where_both_roundings_stay_in_range(target: str) -> None:
    """The page names no rounding: what a fraction is cut to and the nearest integer are allowed."""
    rules = ruling(Case("onnx-cast", "25", "float16", target))
    low, high = ENDS[target]
    for code in range(0, 1 << 16, 5):
        value = float(np.array(code, np.uint16).view(np.float16))
        allowed = expect_by_exact.allow(rules, code)
        whole = {round(value), int(value)} if isfinite(value) else set()
        if whole and low <= min(whole) <= max(whole) <= high:
            assert allowed.branch.level == ("required" if value in whole else "recommended")
            assert {*allowed.codes} == {each & rules.target.mask for each in whole}, value
        else:
            assert allowed.branch.level == "unspecified", value
