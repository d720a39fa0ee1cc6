"""Rules in words: where each applies, and what each class of its inputs becomes."""

from __future__ import annotations

from pathlib import Path

from specs.loader import documents, load_document
from specs.model.document import CLASS_WORDS, OUTCOME_WORDS
from specs.rule_words import CLASSES, OUTCOMES, rule_lines

SMALL = Path(__file__).parent / "data" / "small.yaml"


def test_a_mapping_is_told_by_outcome() -> None:
    rule = load_document(SMALL).entry.rules["to-integer"]
    assert [*rule_lines(rule)] == [
        "where from source-types, to int8",
        "NaN → left open",
        "infinity, above the range → the largest value",
        "-infinity, below the range → the lowest value",
        "all other inputs → rounded toward zero",
    ]


def test_a_row_of_a_table_is_told_by_column() -> None:
    rule = load_document(SMALL).entry.rules["to-float8"]
    assert "infinity by saturate → the largest value for 1; NaN for 0" in [*rule_lines(rule)]


def test_a_word_alone_is_about_every_input() -> None:
    rule = documents()["onnx-cast"].entry.rules["not-listed"]
    assert [*rule_lines(rule)] == ["where the pair is unlisted", "every input → an error"]


def test_levels_and_recommendations_are_told() -> None:
    rule = documents()["onnx-cast"].entry.rules["kept-value"]
    lines = [*rule_lines(rule)]
    assert "NaN → NaN (recommended)" in lines
    assert "-0 → -0 or 0, -0 is recommended" in lines


def test_every_class_has_words_and_no_comma_that_could_end_it() -> None:
    assert {*CLASS_WORDS} == {*CLASSES}
    assert [words for words in CLASSES.values() if "," in words] == []
    assert {*OUTCOMES} <= {*OUTCOME_WORDS}


def test_rules_of_every_operation_have_lines() -> None:
    for document in documents().values():
        for name, rule in document.entry.rules.items():
            lines = [*rule_lines(rule)]
            assert any(" → " in line for line in lines), (document.name, name)
            assert not [line for line in lines if "{" in line or "None" in line]
