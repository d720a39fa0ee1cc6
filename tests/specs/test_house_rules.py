"""House rules as a document: what they decide, what they keep, and which files are refused."""

from __future__ import annotations

from pathlib import Path
from zlib import crc32

import numpy as np
import pytest

from conformance.extras.house_rules.proof import prove_house_rules
from conformance.families.cast.quick_inputs import every_pattern, few_patterns
from oracles.reference import expect_by_exact, expect_by_kernels, expect_by_staircase
from specs.errors import CastigateError
from specs.formats import format_named
from specs.house_rules import HouseRules, load_rules, shipped_rules
from specs.loader import document_named, documents, with_house_rules
from specs.outcomes import Anything, Behaves, Exactly
from specs.ruling import rule_case, ruling
from specs.selection import case_named, select
from specs.selection import with_house_rules as named_with_house_rules
from tests.reference.thinned import thinned

NEWEST = [
    f"{document}+{name}:{[*documents()[document].entry.versions][-1]}"
    for name, rules in shipped_rules().items()
    for document in rules.entry.documents
]
WIDE_INPUTS = 400
"""The approximate number of inputs that are compared if a source has more than 8 bits."""
EVERY = 8
"""One of this many cases of a document with house rules is compared."""
HEAD = """\
rules: ours
title: ours
text: our wiki
documents: [onnx-cast]
choices:
  to-integer:
    clause: page 1
    when: {from: float, to: int8}
"""


def written(folder: Path, text: str) -> HouseRules:
    path = folder / "ours.yaml"
    path.write_text(text)
    return load_rules(path)


@pytest.mark.ci_runs_one_of(4)
@pytest.mark.parametrize("name", shipped_rules())
def test_shipped_rules_are_total_and_contradict_no_document(name: str) -> None:
    for proof in prove_house_rules(shipped_rules()[name]):
        cases = select([proof.document])
        assert proof.cases == len(cases)
        assert proof.decided == sum(bool(ruling(case.asked).open_branches) for case in cases) > 0


@pytest.mark.ci_runs_one_of(5)
@pytest.mark.parametrize("document", NEWEST)
def test_definition_kernels_and_staircase_agree_under_house_rules(document: str) -> None:
    distinct = [*{ruling(case).meaning: case for case in select([document])}.values()]
    for case in distinct[crc32(document.encode()) % EVERY :: EVERY]:
        rules = ruling(case)
        source = format_named(case.source)
        if source.bits <= 8:
            inputs = every_pattern(source)
        else:
            inputs = few_patterns(case.source, case.target, WIDE_INPUTS)
            inputs = thinned(inputs, WIDE_INPUTS)
        wanted = expect_by_exact.expect(rules, inputs)
        for way in (expect_by_kernels, expect_by_staircase):
            found = way.expect(rules, inputs)
            np.testing.assert_array_equal(found.branch_indices, wanted.branch_indices, case.id)
            np.testing.assert_array_equal(found.codes, wanted.codes, case.id)


@pytest.mark.parametrize("document", NEWEST)
def test_nothing_stays_open_and_nothing_else_changes(document: str) -> None:
    ours = document.partition("+")[2].partition(":")[0]
    for case in select([document]):
        page, changed = ruling(case.asked), ruling(case)
        for atom, index in page.branch_of.items():
            before, after = page.branches[index], changed.branches[changed.branch_of[atom]]
            if isinstance(before.outcome, Anything):
                assert not isinstance(after.outcome, Anything)
                assert after.level == "required"
                assert after.rule.startswith(f"{ours}.")
            else:
                assert after == before


def test_a_backend_is_asked_the_case_of_the_document() -> None:
    case = case_named("onnx-cast+java:25/float32/int8")
    assert case.asked == case_named("onnx-cast:25/float32/int8")
    assert case.asked.asked == case.asked


def test_the_digest_tells_of_both_files() -> None:
    page = document_named("onnx-cast")
    digests = {document_named(f"onnx-cast+{name}").digest for name in shipped_rules()}
    assert len({page.digest, *digests}) == 1 + len(shipped_rules())


def test_documents_without_house_rules_are_listed_as_before() -> None:
    assert all("+" not in case.document for case in select([]))


def test_an_answer_for_a_class_goes_before_that_for_all_others(tmp_path: Path) -> None:
    rules = written(tmp_path, f"{HEAD}    then: {{nan: max, -inf: zero, otherwise: saturate}}\n")
    document = with_house_rules(document_named("onnx-cast"), rules)
    case = case_named("onnx-cast+java:25/float32/int8")
    found = {
        each.input_class: each.outcome
        for each in rule_case(document, case).branches
        if each.rule == "ours.to-integer"
    }
    saturated = Behaves("saturate")
    assert found == {
        "nan": Exactly(0x7F),
        "-inf": Exactly(0),
        "inf": saturated,
        "overflow": saturated,
        "-overflow": saturated,
    }


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ("    then: saturate\n", "`saturate` says nothing of an input of .* that is -?nan"),
        ("    then: {nan: zero}\n", "it says nothing of an input of .*infinity.*`otherwise`"),
        ("    then: saturated\n", "neither a behavior nor an outcome; did you mean `saturate`"),
        ("    then: {nan: inf, otherwise: wrap}\n", "`inf` is no answer of int8"),
        ("    then: zero\n", "contradicts .* does not allow"),
        ("    then: via-float32-via-int32\n", "rounds to another float first"),
        (
            "    then: {nan: zero, otherwise: saturate}\n  again:\n    clause: page 2\n"
            "    when: {from: float32, to: integer}\n"
            "    then: {nan: zero, otherwise: saturate}\n",
            "to-integer and again both speak of float32 to int8; narrow one `when`",
        ),
        (
            "    then: {nan: zero, otherwise: saturate}\n  exact:\n    clause: page 2\n"
            "    when: {from: int8, to: int16}\n    then: wrap\n",
            "exact: the documents leave nothing open there; remove the choice",
        ),
    ],
)
def test_rules_that_cannot_hold_are_refused(tmp_path: Path, rest: str, message: str) -> None:
    with pytest.raises(CastigateError, match=rf"ours.yaml:\d+: .*{message}"):
        list(prove_house_rules(written(tmp_path, HEAD + rest)))


def test_house_rules_are_for_documents(tmp_path: Path) -> None:
    first, second, *_ = named_with_house_rules([], ["java"])
    assert (first, second) == ("onnx-cast+java", "cinn-cast+java")
    assert named_with_house_rules(["onnx-cast:25", "torch-tensor-to"], ["java"]) == (
        "onnx-cast:25",
        "torch-tensor-to",
        "onnx-cast+java:25",
    )
    with pytest.raises(CastigateError, match="the house rules java are for onnx-cast, cinn-cast"):
        named_with_house_rules(["torch-tensor-to"], ["java"])
    other = tmp_path / "cinns.yaml"
    # A name of their own: a page of the docs registers `ours` in the same process.
    head = HEAD.replace("[onnx-cast]", "[cinn-cast]").replace("rules: ours", "rules: cinns")
    other.write_text(head + "    then: {otherwise: zero}\n")
    with pytest.raises(CastigateError, match="the house rules cinns are for cinn-cast; name one"):
        named_with_house_rules(["onnx-cast:25"], ["java", str(other)])
    for name, message in (("torch-view", "no document of casts"), ("onnx", "unknown document")):
        other = tmp_path / f"{name}.yaml"
        then = "    then: {nan: zero, otherwise: saturate}\n"
        other.write_text(HEAD.replace("[onnx-cast]", f"[{name}]").replace("ours", name) + then)
        with pytest.raises(CastigateError, match=rf"{name}.yaml:4: .*{message}"):
            named_with_house_rules([], [str(other)])
    with pytest.raises(CastigateError, match=r"`jav` is neither .* did you mean `java`"):
        named_with_house_rules([], ["jav"])
