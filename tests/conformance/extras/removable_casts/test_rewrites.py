"""The rewrites of the field: their conditions as data, against the rules written out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.extras.removable_casts.rewrites import (
    REWRITES_FILE,
    Rewrite,
    left_by,
    load_rewrites,
    rewrites,
)
from specs.chains import Chain, chain_named, chains_of
from specs.errors import CastigateError


def rule(name: str) -> Rewrite:
    return rewrites().rewrites[name]


def removes(name: str, path: str) -> bool:
    return rewrites().applies(rule(name), chain_named(f"{rule(name).edition}/{path}"))


def left(name: str, path: str) -> list[str]:
    return [case.id for case in left_by(rule(name), chain_named(f"{rule(name).edition}/{path}"))]


def unsafe(source: str, target: str) -> bool:
    """Whether onnxruntime's UnsafeCast calls a cast unsafe, transcribed branch by branch."""
    groups = {
        "bool": ["bool"],
        "integer": ["int8", "int16", "int32", "int64"],
        "unsigned": ["uint8", "uint16", "uint32", "uint64"],
        "float": ["float16", "bfloat16", "float32", "float64"],
    }
    group = {dtype: name for name, dtypes in groups.items() for dtype in dtypes}
    width = {"bool": 1, "bfloat16": 16}
    width |= {f"{k}{n}": n for k in ("int", "uint", "float") for n in (8, 16, 32, 64)}
    if source not in group or target not in group:
        return True
    if group[source] in ("integer", "float") and group[target] == "unsigned":
        return True
    if group[source] == "float" and group[target] != "float":
        return True
    if group[source] == "unsigned" and group[target] == "integer":
        return width[target] <= width[source]
    if group[source] in ("integer", "unsigned") and group[target] == "float":
        return width[target] <= width[source]
    if {source, target} == {"float16", "bfloat16"}:
        return True
    return width[source] > width[target]


def test_onnxruntimes_condition_is_what_its_code_says() -> None:
    name, seen = "onnxruntime-duplicate-casts", set()
    for chain in chains_of("onnx-cast", "25", has_all_modes=False):
        if chain.dtypes not in seen:
            seen.add(chain.dtypes)
            first, middle, last = chain.dtypes
            loses = unsafe(first, middle)
            keeps = loses and (unsafe(last, middle) or last == "bool")
            assert rewrites().applies(rule(name), chain) == (not keeps), chain.dtypes
    assert len(seen) > 10_000


@pytest.mark.parametrize(
    ("name", "path", "casts"),
    [
        ("onnxscript-cast-cast", "float64/float32/float16", ["onnx-cast:25/float64/float16"]),
        ("onnxslim-dead-nodes", "int8/int8/float32", ["onnx-cast:25/int8/float32"]),
        ("onnxslim-dead-nodes", "int8/int8/int8", []),
        ("torch-cached-converts", "float32/float16/float32", []),
        ("xla-float-conversions", "float16/float32/float16", []),
        (
            "openvino-cpu-precision",
            "float64/float16/int8",
            ["plain-cast:open/float64/float32", "plain-cast:open/float32/int8"],
        ),
    ],
)
def test_what_a_rule_leaves(name: str, path: str, casts: list[str]) -> None:
    assert removes(name, path)
    assert left(name, path) == casts


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("onnxscript-cast-cast", "float32/float16/float32"),
        ("torch-pointless-convert", "float32/float16/float32"),
        ("torch-pointless-convert-emulated", "float64/float32/float16"),
        ("xla-convert-pairs", "float32/float16/float32"),
        ("llvm-integer-float-integer", "int64/float32/int64"),
    ],
)
def test_what_a_rule_leaves_alone(name: str, path: str) -> None:
    assert not removes(name, path)


def test_every_rule_of_an_edition_rewrites_some_chain() -> None:
    chains: dict[str, list[Chain]] = {}
    for name, each in rewrites().rewrites.items():
        if each.edition:
            document, _, version = each.edition.partition(":")
            known = chains.setdefault(each.edition, list(chains_of(document, version)))
            assert any(rewrites().applies(each, chain) for chain in known), name


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("{B: float32, C: half}", "{B: float33, C: half}", "`float33` is neither a dtype nor"),
        ("{B: float32, C: half}", "{B-C: fits}", "`fits` is no relation; they are holds"),
        ("{B: float32, C: half}", "{D: half}", "`D` is no condition; write A, B, C or as A-B"),
        ("[{B: float32, C: half}]", "[]", "either `when` or `why`"),
        ("leaves: through", "leaves: direct", "`wider` goes with `leaves: through`"),
        ("edition: plain-cast:open", "edition: plain-cast:shut", "no version `shut`"),
    ],
)
def test_a_wrong_rule_is_refused_in_a_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = tmp_path / "rewrites.yaml"
    path.write_text(REWRITES_FILE.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    with pytest.raises(CastigateError, match=said.replace("[", r"\[")) as raised:
        load_rewrites(path)
    assert "\n" not in str(raised.value)
