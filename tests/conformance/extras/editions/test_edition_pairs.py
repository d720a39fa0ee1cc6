"""Two words name pairs of editions, whose cases are matched by dtypes, mode and example."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.extras.editions.edition_pairs import edition_pairs, match_cases
from specs.errors import CastigateError

OWN = """\
document: own
title: One cast
operation: cast
seed: none
scope: own-dtypes
{parameters}
versions:
{versions}
rules:
  only: {{clause: "all", level: required, when: {{}}, then: toward-zero}}
tensors:
  every: {{clause: "all", level: required, when: {{}}, then: same-shape}}
"""
VERSION = "  {}: {{from: [int8], to: [int4], rules: [only]}}\n"
MODES = 'parameters:\n  fast: {{values: ["no", "yes"], default: "no", affects: {affects}}}\n'


def write(folder: Path, name: str, versions: str = "1", parameters: str = "") -> str:
    path = folder / f"{name}.yaml"
    entries = "".join(VERSION.format(each) for each in versions.split())
    path.write_text(OWN.format(versions=entries, parameters=parameters))
    return str(path)


def named(old: str, new: str) -> list[tuple[str, str]]:
    return [(one.version, other.version) for one, other in edition_pairs(old, new)]


def test_versions_are_those_that_the_words_name(tmp_path: Path) -> None:
    one, several = write(tmp_path, "one"), write(tmp_path, "several", "1 2 3")
    assert named("onnx-cast:24", "onnx-cast:25") == [("24", "25")]
    assert named(one, one) == [("1", "1")]
    assert named(several, several) == [("1", "1"), ("2", "2"), ("3", "3")]
    assert named(f"{several}:1", f"{several}:3") == [("1", "3")]
    assert named(f"{several}:3", one) == [("3", "1")]
    assert named(f"{several}:2", several) == [("2", "2")]
    assert named(one, "wasm-convert:3.0") == [("1", "3.0")]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("onnx-cast", "onnx-cast", "`onnx-cast` names no version; write castigate specs diff onnx"),
        ("onnx-cast:24", "wasm-convert", "`wasm-convert` has the versions 2.0, 3.0; name one, as"),
        ("onnx-cast:24", "onnx-cast:26", "onnx-cast has no version `26`; it has 1, 6, 9"),
        ("onnx-cast:25", "onnx-bitcast:26", "`onnx-cast:25` is about `cast` and `onnx-bitcast:26`"),
        ("onnx-cas:24", "onnx-cast:25", "unknown document `onnx-cas`; did you mean"),
        ("none.yaml", "onnx-cast:25", "document none.yaml: there is no such file; give its path"),
    ],
)
def test_words_that_name_no_editions_are_errors(old: str, new: str, says: str) -> None:
    with pytest.raises(CastigateError) as error:
        edition_pairs(old, new)
    assert str(error.value).startswith(says)


def test_an_unknown_version_of_a_file_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path, "one")
    with pytest.raises(CastigateError, match=r"one\.yaml: unknown version `2`; write one of 1"):
        edition_pairs(path, f"{path}:2")


def test_a_broken_file_is_an_error_that_names_its_line(tmp_path: Path) -> None:
    path = Path(write(tmp_path, "one"))
    path.write_text(path.read_text().replace("toward-zero", "tworad-zero"))
    with pytest.raises(CastigateError, match=r"one\.yaml:11: rule only: "):
        edition_pairs(str(path), "onnx-cast:25")


def modes(old: str, new: str) -> tuple[list[tuple[str, str]], list[str], list[str]]:
    [pair] = edition_pairs(old, new)
    found = match_cases(pair)
    both = [(one.id.split("/", 3)[3:], other.id.split("/", 3)[3:]) for one, other in found.both]
    joined = [("".join(one), "".join(other)) for one, other in both]
    return joined, [each.id for each in found.gone], [each.id for each in found.new]


def test_the_default_of_a_parameter_that_one_edition_lacks_matches(tmp_path: Path) -> None:
    plain = write(tmp_path, "plain")
    fast = write(tmp_path, "fast", parameters=MODES.format(affects="{}"))
    assert modes(plain, fast) == ([("", "fast:no")], [], ["own:1/int8/int4/fast:yes"])
    assert modes(fast, plain) == ([("fast:no", "")], ["own:1/int8/int4/fast:yes"], [])


def test_a_parameter_that_does_not_affect_a_pair_matches_in_every_value(tmp_path: Path) -> None:
    fast = write(tmp_path, "fast", parameters=MODES.format(affects="{}"))
    other = write(tmp_path, "other", parameters=MODES.format(affects="{from: float}"))
    assert modes(fast, other) == ([("fast:no", ""), ("fast:yes", "")], [], [])
    assert modes(other, fast) == ([("", "fast:no"), ("", "fast:yes")], [], [])


def test_examples_match_by_their_names() -> None:
    [pair] = edition_pairs("cinn-cast:tvm", "cinn-cast:1.0")
    found = match_cases(pair)
    assert len(found.both) == 169
    assert {each.example for each in found.new} == {
        "one-two-three",
        "ones-to-float32",
        "ones-to-bool",
    }
