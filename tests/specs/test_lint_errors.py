"""Linting a cast document reports each kind of mistake in one line, with its place.

The mistakes are made in data/small.yaml.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from specs.cases import Case
from specs.lint import prove
from specs.loader import DOCUMENTS, load_document
from specs.outcomes import Outcome
from specs.ruling import rule_case
from tests.specs.lint_checks import Mistake, assert_reported, lines_starting, lint_error

SMALL = (Path(__file__).parent / "data" / "small.yaml").read_text(encoding="utf-8")

IN_TO_INTEGER: dict[str, Mistake] = {
    "gap": ("      otherwise: toward-zero\n", "", "to-integer:", "gap: small:1/float32/int8: "),
    "overlap": ("-inf:      lowest", "negative: lowest", "to-integer:",
        "overlap: small:1/float32/"),
    "class": ("nan:       unspecified", "nann: max", "nann:", "unknown input class `nann`"),
    "outcome": ("inf:       max\n", "inf: top\n", "inf: top", "unknown outcome `top`"),
    "level": ('"section 1"\n    level: required', '"1"\n    level: sure', "level:",
        "'recommended'"),
    "condition": ("source-types, to: int8}", "any, two: int8}", "when:", "did you mean `to`?"),
    "group": ("source-types, to: int8}", "source-type}", "when:", "did you mean `source-types`?"),
    "dtype": ("source-types, to: int8}", "any, to: int88}", "when:", "unknown dtype or group `int"),
    "pair": ("source-types, to: int8}", "any, pair: liste}", "when:", "did you mean `listed`?"),
    "value": ("source-types, to: int8}", "any, saturate: 2}", "when:", "unknown word `2`"),
    "key": ('"section 1"\n', '"section 1"\n    nota: x\n', "nota:", "unknown key `nota`"),
    "clause": ('    clause: "section 1"\n', "", "to-integer:", "`clause` is missing"),
    "two roundings": ("overflow:  max\n", "overflow: ceil\n", "to-integer:", "ceil, toward-zero"),
    "no infinity": ("inf:       max\n", "inf: inf\n", "inf: inf", "int8 has no infinity"),
    "nothing": ("inf:       max\n", "inf: {level: required}\n", "inf: {",
        "`is` or a list `either`"),
    "two": ("inf:       max\n", "inf: {is: max, either: [max, lowest]}\n", "inf: {",
        "`is` or a list"),
    "no pattern": ("nan:       unsp", "nan: {either: [max, same]} # ", "nan: {either",
        "`same` is not allowed in `either`"),
    "value of inf": ("inf:       max\n", "inf: value\n", "inf: value", "impossible for infinity"),
    "text": ("inf:       max\n", "inf: plain-text\n", "inf: plain-text", "impossible for infinity"),
    "value that rounds": ("otherwise: toward-zero", "otherwise: value", "otherwise: value",
        "impossible"),
    "either of nan": ("nan:       unsp", "nan: {either: [floor, max]} # ", "nan: {either",
        "for nan"),
    "three": ("nan:       unsp", "nan: {either: [max, one, zero]} # ", "nan:", "at most 2"),
    "recommendation that does not narrow": ("inf:       max\n",
        "inf: {is: max, and-recommended: max}\n", "inf: {is: max, and",
        "does not narrow what `is`"),
    "no -zero": ("nan:       unsp", "-zero: -zero\n      nan: unsp", "-zero: -zero",
        "negative zero"),
    "misspelled": ("    level: required\n    when: {from: source-types, to: int8}",
        "    levl: required\n    when: {from: source-types, to: int8}", "levl:",
        "unknown key `levl`"),
    "two words": ("otherwise: toward-zero", "otherwise: toward-zerro", "otherwise:",
        "unknown outcome `toward-zerro`; did you mean `toward-zero`?"),
    "level's words": ('"section 1"\n    level: required', '"1"\n    level: must', "level:",
        "`level` is `must`, and must be 'required'"),
    "unquoted": ("nan:       unsp", "nan: 0x00 # ", "nan: 0x00",
        "`nan` has a number; write a pattern in quotes"),
    "no NaN": ("inf:       max\n", "inf: nan\n", "inf: nan", "int8 has no NaN"),
}  # fmt: skip
IN_TO_FLOAT8: dict[str, Mistake] = {
    "long row": ("[max, nan]", "[max, nan, nan]", "inf:       [max",
        "needs 2 cells, one per column"),
    "short row": ("[max, nan]", "[max]", "inf:       [max]", "needs 2 cells, one per column"),
    "column": ("x:           [1, 0]", "x: [1, 2]", "x:", "unknown column `2`"),
    "columns": ("columns: saturate", "columns: mode", "columns:", "`mode` is neither"),
    "cell": ("[max, nan]", "[max, {is: least}]", "inf:       [max", "unknown outcome `least`"),
    "wide hex": ("'0x7f'", "'0x17f'", "overflow:  [max, '0x17f'",
        "`overflow`: `0x17f` is wider than float8e4m3fn"),
    "bare hex": ("'0x7f'", "0x7f", "overflow:  [max, 0x7f",
        "`overflow` has a number; write a pattern in quotes"),
    "row": ("        -inf:      [lowest, nan]", "        -info: max", "-info:",
        "unknown row `-info`"),
    "two parameters": ("columns: saturate", "columns: [saturate, to]", "x:",
        "column ['1'] needs 2 words"),
    "column of two": ("x:           [1, 0]", "x: [[1, float8e4m3fn], 0]", "x:",
        "needs 1 words, one for each name in `columns` (saturate); it has 2"),
    "changed from nothing": ("        otherwise: nearest-even\n",
        "        otherwise: nearest-even\n    changed: {from: to-integer, cells: {}}\n", "changed:",
        "`to-integer` is not a rule with a table"),
    "recommendation of another kind": ("nan:       nan\n", "nan: {is: nan, and-recommended: max}\n",
        "nan: {is: nan, and", "does not narrow what `is`"),
}  # fmt: skip
OUTSIDE_RULES: dict[str, Mistake] = {
    "dtype in from": ("from:  [float32, float16]", "from: [float31]", "from:", "unknown dtype `fl"),
    "dtype in to": ("to:    [int8]", "to: [int9]", "to: [int9]", "unknown dtype `int9`"),
    "key": ("title: Small\n", "titel: Small\n", "titel:",
        "unknown key `titel`; did you mean `title`?"),
    "dtype nearly": ("to:    [int8]", "to: [imt8]", "to: [imt8]", "did you mean `int8`?"),
    "pairs": ("from:  [float32, float16]", "pairs: {float32: [int8]}\n    from: [float32]",
        "pairs:",
        "`pairs` is the name of a group: write `pairs: NAME`"),
    "float": ("default: 1", "default: 0.2", "saturate:", "`0.2` is a YAML float"),
    "float .inf": ("default: 1", "default: .inf", "saturate:", "`.inf` is a YAML float"),
    "float 1e5": ("default: 1", "default: 1e5", "saturate:", "`1e5` is a YAML float"),
    "float key": ("  2:\n", "  0.2:\n", "0.2:", "`0.2` is a YAML float"),
    "float key 1e5": ("  2:\n", "  1e5:\n", "1e5:", "`1e5` is a YAML float"),
    "binary": ("default: 1", "default: 0b1", "saturate:", "`0b1` is ambiguous: YAML loaders"),
    "unknown base": ("extends: 1", "extends: 7", "extends: 7",
        "`7` is not a version above this one"),
    "own base": ("extends: 1", "extends: 2", "extends: 2", "`2` is not a version above this one"),
    "no base": ("    extends: 1\n", "", "2:", "needs `from` and `to`"),
    "rule": ("[to-float8]", "[to-float]", "2:", "did you mean `to-float8`?"),
    "no rule": ("    add: [to-float8]\n", "", "rules:\n", "gap: no rule applies to small:2/float"),
    "no rule for what is not listed": ("to:    [int8]", "to: [int8, int16]", "rules:\n",
        "add a rule whose `when` holds there"),
    "truth value": ("values: [1, 0]", "values: [1, 0, true]", "saturate:", "valid string"),
    "since": ("since: 2", "since: 3", "saturate:", "unknown version `3`"),
    "default": ("default: 1", "default: 2", "saturate:", "default `2` is not one of"),
    "kind as group": ("  source-types: [", "  float: [float32]\n  source-types: [", "float:",
        "a built-in word"),
    "pair group": ("versions:\n  1:\n", "pair-groups: {not-some: {}}\n\nversions:\n  1:\n",
        "pair-groups:", "`not-some` would mean all pairs outside of a group; leave out `not-`"),
    "add and remove": ("[to-float8]", "[to-float8]\n    remove: [to-float8]", "2:",
        "not inherited"),
    "YAML 1.1 word": ("default: 1", "default: !!bool yes", "saturate:", "ambiguous: YAML"),
    "without end": ("title: Small", "title: &x [*x]", "title:", "nested more than 50 levels deep"),
    "not YAML": ("operation: cast", "operation: [cast", "seed:", "not YAML: "),
    "tensor gap": ("rank: 5-or-more", "rank: 5-or-more, elements: some", "tensors:", "gap: "),
    "tensor overlap": ("rank: 5-or-more", "rank: [4, 5-or-more]", "of-more-axes:", "overlap: "),
    "tensor word": ("rank: 5-or-more", "rank: 6", "when: {rank: 6", "unknown word `6`"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", IN_TO_INTEGER.values(), ids=IN_TO_INTEGER)
def test_a_mistake_in_a_rule_is_reported_with_line_and_rule(
    tmp_path: Path, mistake: Mistake
) -> None:
    assert_reported(tmp_path, SMALL, mistake, "rule to-integer: ")


@pytest.mark.parametrize("mistake", IN_TO_FLOAT8.values(), ids=IN_TO_FLOAT8)
def test_a_mistake_in_a_table_is_reported_with_line_and_rule(
    tmp_path: Path, mistake: Mistake
) -> None:
    assert_reported(tmp_path, SMALL, mistake, "rule to-float8: ")


@pytest.mark.parametrize("mistake", OUTSIDE_RULES.values(), ids=OUTSIDE_RULES)
def test_a_mistake_outside_rules_is_reported_with_its_line(
    tmp_path: Path, mistake: Mistake
) -> None:
    assert_reported(tmp_path, SMALL, mistake)


def test_a_pair_that_is_not_listed_needs_a_rule_that_says_so(tmp_path: Path) -> None:
    some = "    pairs: some\n    from:  [float32, float16]\n    to:    [int8]\n"
    groups = "pair-groups: {some: {float32: [int8]}}\n\nversions:\n  1:\n"
    text = SMALL.replace(
        "versions:\n  1:\n    from:  [float32, float16]\n    to:    [int8]\n", groups + some
    )
    assert " no rule applies to small:1/float16/int8; the version does not list this pair; " in (
        message := lint_error(tmp_path, text)
    )
    assert message.endswith("add a rule with `when: {pair: unlisted}`")


def test_an_outcome_without_a_class_is_not_called_otherwise(tmp_path: Path) -> None:
    begin, end = SMALL.index("    then:\n"), SMALL.index("  to-float8:")
    text = f"{SMALL[:begin]}    then: value\n\n{SMALL[end:]}"
    [line] = lines_starting(text, "then: value")
    message = lint_error(tmp_path, text)
    assert message.startswith(f"{line}: rule to-integer: ")
    assert "the outcome of `then` is impossible for" in message


TWO_TABLES = (
    SMALL.replace(
        "tensors:\n",
        """  later-to-float8:
    clause: "section 2"
    level: required
    when: {from: source-types, to: float8e4m3fn}
    table:
      columns: [saturate, to]
      x:           [[1, float8e4m3fn], [0, float8e4m3fn]]
      names:       {Inf: inf}
      rows:
        nan:       nan
        Inf:       [max, max]
        -Inf:      [lowest, nan]
        overflow:  [max, '0x7f']
        -overflow: [lowest, '0xff']
        else:      nearest-even
    changed: {from: to-float8, cells: {CHANGED}}
tensors:
""",
    )
    .replace("groups:\n", "row-names: {else: otherwise, -Inf: -inf}\ngroups:\n")
    .replace(
        "    add: [to-float8]\n",
        "    add: [to-float8]\n  3: {extends: 2, replace: {to-float8: later-to-float8}}\n",
    )
)


def test_a_table_may_use_row_names_and_columns_of_several_parameters(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(TWO_TABLES.replace("    changed: {from: to-float8, cells: {CHANGED}}\n", ""))
    document = load_document(path)
    prove(document)

    def outcomes(version: str) -> dict[str, Outcome]:
        case = Case("small", version, "float32", "float8e4m3fn", (("saturate", "0"),))
        branches = rule_case(document, case).branches
        assert len(branches) == 6
        return {branch.input_class: branch.outcome for branch in branches}

    old, new = outcomes("2"), outcomes("3")
    assert list(old) == list(new)
    assert [word for word in old if old[word] != new[word]] == ["inf"]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ("inf: [0]", "has different rows or columns"),
        ("Inf: ['1/float8e4m3fn']", "has different rows or columns"),
    ],
)
def test_changed_needs_a_table_with_the_same_rows_and_columns(
    tmp_path: Path, cells: str, expected: str
) -> None:
    assert expected in lint_error(tmp_path, TWO_TABLES.replace("CHANGED", cells))


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ("", "exactly the cells that differ: inf: 0"),
        ("inf: [1]", "exactly the cells that differ: inf: 0"),
        ("inf: [0], nan: [1]", "exactly the cells that differ: inf: 0"),
        ("inf: [0]", None),
    ],
)
def test_changed_must_list_exactly_the_cells_that_differ(
    tmp_path: Path, cells: str, expected: str | None
) -> None:
    same_shape = (
        TWO_TABLES.replace("columns: [saturate, to]", "columns: saturate")
        .replace("[[1, float8e4m3fn], [0, float8e4m3fn]]", "[1, 0]")
        .replace("      names:       {Inf: inf}\n", "")
        .replace("        Inf:  ", "        inf:  ")
        .replace("        -Inf: ", "        -inf: ")
        .replace("        else: ", "        otherwise: ")
        .replace("CHANGED", cells)
    )
    if expected is None:
        path = tmp_path / "small.yaml"
        path.write_text(same_shape)
        prove(load_document(path))
    else:
        assert expected in lint_error(tmp_path, same_shape)


def test_one_rule_may_require_an_answer_but_not_two(tmp_path: Path) -> None:
    rule = '  NAME: {clause: "section 4", level: required, when: {to: int8}, then: answer}\n'
    text = SMALL.replace("    rules: [to-integer]\n", "    rules: [to-integer, due]\n")
    path = tmp_path / "small.yaml"
    path.write_text(text.replace("tensors:\n", rule.replace("NAME", "due") + "tensors:\n"))
    ruling = rule_case(load_document(path), Case("small", "1", "float32", "int8"))
    assert ruling.answer_due is not None
    assert ruling.answer_due.rule == "due"
    both = text.replace("[to-integer, due]", "[to-integer, due, again]").replace(
        "tensors:\n",
        rule.replace("NAME", "due") + rule.replace("NAME", "again") + "tensors:\n",
    )
    assert "due and again both require an answer" in lint_error(tmp_path, both)


def test_a_rule_id_defined_twice_is_an_error(tmp_path: Path) -> None:
    text = SMALL.replace("  to-float8:\n", "  to-integer:\n")
    first, second = lines_starting(text, "to-integer:")
    message = lint_error(tmp_path, text)
    assert message.startswith(f"{second}: `to-integer` is defined twice")
    assert f"first on line {first}" in message


def test_a_rule_that_takes_no_input_is_an_error(tmp_path: Path) -> None:
    never = (
        '  never:\n    clause: "x"\n    level: required\n    when: {from: int8}\n    then: value\n'
    )
    text = SMALL.replace("rules:\n  to-integer", f"rules:\n{never}  to-integer")
    message = lint_error(tmp_path, text)
    assert message.startswith(
        f"{lines_starting(text, 'never:')[0]}: rule never: takes no input of any case"
    )


def test_a_dtype_without_zero_cannot_become_zero(tmp_path: Path) -> None:
    text = SMALL.replace("float8e4m3fn", "float8e8m0")
    text = text.replace("nan:       nan", "nan:       zero")
    assert lint_error(tmp_path, text).endswith(": float8e8m0 has no zero")


def test_a_pair_in_further_shapes_must_be_listed_by_some_version(tmp_path: Path) -> None:
    text = (DOCUMENTS / "onnx_bitcast.yaml").read_text(encoding="utf-8")
    text = text.replace("[uint8, float64]", "[uint8, float6e2m3]")
    assert "no version lists the pair int8 to float6e2m3" in lint_error(tmp_path, text)


def test_an_example_has_complex_patterns_of_64_bits_at_most(tmp_path: Path) -> None:
    text = (DOCUMENTS / "array_api_astype.yaml").read_text(encoding="utf-8")
    wider = text.replace("    to: complex64\n", "    to: complex128\n")
    assert "is not a pattern of complex128" in lint_error(tmp_path, wider)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", "1: the file is empty"), ("# a comment\n", "1: the file is empty"),
     ("- a list\n", "1: a document is a mapping"), ("word\n", "1: a document is a mapping")],
)  # fmt: skip
def test_a_file_without_a_document_is_an_error(tmp_path: Path, text: str, expected: str) -> None:
    assert lint_error(tmp_path, text).startswith(expected)


def test_the_document_without_mistakes_is_valid() -> None:
    proof = prove(load_document(Path(__file__).parent / "data" / "small.yaml"))
    assert (proof.versions, proof.cases, proof.rules) == (2, 8, 2)


def test_a_document_cannot_be_changed_once_it_is_loaded() -> None:
    entry = load_document(Path(__file__).parent / "data" / "small.yaml").entry
    with pytest.raises(ValidationError, match="frozen"):
        entry.title = "Large"
