"""The call that each form stands for, what the pages list, mistakes with their place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conformance.selection import case_named, select
from specs.calling import call_of
from specs.calls import FORM, MEMBER, Argument, Call, Member
from specs.cases import Case
from specs.errors import DocumentError
from specs.lint import prove
from specs.load import document_named, load_document
from specs.ruling import ruling

TO, ASTYPE = "paddle-tensor-to:1.0", "paddle-layer-astype:1.0"
SHARDED, TYPE = "torch-tensor-to:2023", "torch-module-type:2023"
NAMES = (
    "bfloat16", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8",
    "uint16", "complex64", "complex128", "bool",
)  # fmt: skip
"""The 13 strings that paddle's page lists, in its order."""


def on_tensor(*args: Argument, held: str = "float32", on: str = "cpu", **kwargs: Argument) -> Call:
    member = Member("", "tensor", held)
    return Call("tensor", (member,), "to", args, tuple(kwargs.items()), on)


def name(dtype: str) -> Argument:
    return Argument("dtype-name", dtype)


CPU, GPU = Argument("device-name", "cpu"), Argument("device-name", "gpu")
TRUE, NONE = Argument("word", "true"), Argument("word", "none")

CALLS: dict[str, Call] = {
    f"{TO}/float32/float64/form:name": on_tensor(name("float64")),
    f"{TO}/int8/uint16/form:dtype": on_tensor(Argument("dtype", "uint16"), held="int8"),
    f"{TO}/float32/float64/form:other": on_tensor(Argument("tensor", "float64")),
    f"{TO}/float32/float32/form:device-name": on_tensor(CPU),
    f"{TO}/float32/float32/form:device": on_tensor(Argument("device", "cpu")),
    f"{TO}/float32/float64/form:name-blocking-none": on_tensor(name("float64"), NONE),
    f"{TO}/float32/float64/form:device-name-name-blocking": on_tensor(CPU, name("float64"), TRUE),
    f"{TO}/float32/int32/form:keywords-in-turn": on_tensor(
        dtype=name("int32"), device=CPU, blocking=TRUE
    ),
    f"{TO}/float32/float32/form:nothing": on_tensor(),
    f"{TO}/float32/float32/form:empty-name": on_tensor(name("")),
    f"{TO}/float32/float32/form:bytes": on_tensor(Argument("word", "bytes")),
    # A dtype that is not the case's own stays as it is written.
    f"{TO}/float32/int32/form:two-dtypes": on_tensor(name("int32"), dtype=name("float64")),
    f"{TO}/float32/float32/form:to-gpu-blocking": on_tensor(GPU, blocking=TRUE),
    f"{TO}/bool/int32/form:from-gpu-and-name": on_tensor(
        CPU, name("int32"), held="bool", on="gpu"
    ),
    f"{SHARDED}/float32/float32/form:drops-keyword-dtype": Call(
        "sharded-tensor",
        (Member("", "tensor", "float32"),),
        "to",
        (Argument("device", "cpu"),),
        (("dtype", Argument("dtype", "float64")),),
    ),
    # The member that is looked at has the source's dtype, the others are float32.
    f"{ASTYPE}/int64/float64/form:name/member:inner.scale": Call(
        "layer",
        (
            Member("weight", "parameter", "float32"),
            Member("inner.weight", "parameter", "float32"),
            Member("scale", "buffer", "float32"),
            Member("inner.scale", "buffer", "int64"),
        ),
        "astype",
        (name("float64"),),
    ),
    f"{TYPE}/float16/int8/form:dtype/member:weight": Call(
        "layer",
        (
            Member("weight", "parameter", "float16"),
            Member("inner.weight", "parameter", "float32"),
            Member("scale", "buffer", "float32"),
            Member("inner.scale", "buffer", "float32"),
        ),
        "type",
        (Argument("dtype", "int8"),),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CALLS)
def test_a_case_stands_for_a_call(case: str) -> None:
    assert call_of(case_named(case)) == CALLS[case]


def cases(version: str) -> list[Case]:
    return select([version])


def forms_of(found: list[Case]) -> set[str]:
    return {case.mode[FORM] for case in found}


class TestThePaddlePage:
    @pytest.mark.parametrize("form", ["name", "dtype", "other"])
    def test_every_listed_name_meets_every_other(self, form: str) -> None:
        pairs = {(case.source, case.target) for case in cases(TO) if case.mode[FORM] == form}
        assert pairs == {(source, target) for source in NAMES for target in NAMES}

    def test_a_layer_takes_every_listed_name_as_text_and_as_object(self) -> None:
        for form in ("name", "dtype"):
            found = [case for case in cases(ASTYPE) if case.mode[FORM] == form]
            assert {case.target for case in found if case.source == "float32"} == set(NAMES)
        assert {case.source for case in cases(ASTYPE)} == set(NAMES)

    def test_the_forms_of_section_5_with_and_without_blocking(self) -> None:
        given = set()
        for case in cases(TO):
            call = call_of(case)
            if not ruling(case).is_rejection and "open" not in ruling(case).branches[0].rule:
                kinds = tuple("word" if one == NONE else one.kind for one in call.args)
                given.add((kinds, tuple(key for key, _ in call.kwargs)))
        for kinds in (
            ("dtype-name",),
            ("dtype-name", "word"),
            ("dtype",),
            ("device-name",),
            ("device-name", "word"),
            ("device-name", "word", "word"),
            ("device-name", "dtype-name"),
            ("device-name", "dtype-name", "word"),
            ("tensor",),
            ("tensor", "word"),
        ):
            assert (kinds, ()) in given, kinds
        for first in ("dtype-name", "device-name", "tensor"):
            assert ((first,), ("blocking",)) in given, first
        for keywords in (
            ("dtype",), ("device",), ("other",), ("device", "dtype"), ("device", "blocking"),
            ("other", "blocking"), ("dtype", "device", "blocking"),
        ):  # fmt: skip
            assert ((), keywords) in given, keywords

    def test_the_tests_of_section_6_are_cases(self) -> None:
        entry = document_named("paddle-tensor-to").entry
        moves = {
            (form.device_before, form.device_after)
            for key, form in entry.forms.items()
            if key in forms_of(cases(TO))
        }
        assert moves == {("cpu", "cpu"), ("cpu", "gpu"), ("gpu", "cpu"), ("gpu", "gpu")}
        both = case_named(f"{TO}/float32/float16/form:to-gpu-and-name")
        assert call_of(both).args == (GPU, name("float16"))

    @pytest.mark.parametrize(
        "form",
        ["no-such-name", "other-frameworks-name", "wide-name", "upper-case-name", "qualified-name",
         "keyword-no-such-name", "empty-name", "no-such-device-alone", "keyword-no-such-device",
         "no-such-device", "a-number", "zero", "a-truth-value", "a-list", "bytes", "too-many",
         "unknown-keyword"],
    )  # fmt: skip
    def test_what_is_no_form_is_to_be_refused(self, form: str) -> None:
        rules = ruling(case_named(f"{TO}/float32/float32/form:{form}"))
        assert rules.is_rejection
        assert {branch.level for branch in rules.branches} == {"recommended"}
        assert rules.error_class is None  # the page names none

    @pytest.mark.parametrize(
        ("form", "target"),
        [("two-dtypes", "float64"), ("two-devices", "float32"), ("two-blockings", "float64"),
         ("other-and-dtype", "float64"), ("other-and-device", "float64"), ("nothing", "float32"),
         ("dtype-then-device", "float64"), ("non-blocking", "float64"), ("only-none", "float32"),
         ("device-with-index", "float32")],
    )  # fmt: skip
    def test_arguments_that_conflict_are_open_with_a_note(self, form: str, target: str) -> None:
        rules = ruling(case_named(f"{TO}/float32/{target}/form:{form}"))
        assert rules.is_open_dtype
        [branch] = {branch.rule for branch in rules.branches}
        assert document_named("paddle-tensor-to").entry.rules[branch].conflict

    def test_of_complex_numbers_the_dtype_alone_is_told(self) -> None:
        for pair in ("complex64/float32", "float32/complex64"):
            rules = ruling(case_named(f"{TO}/{pair}/form:name"))
            assert rules.is_open
            assert not rules.is_open_dtype
        assert ruling(case_named(f"{TO}/bfloat16/uint16/form:name")).is_open_dtype

    def test_members_of_every_kind_are_looked_at(self) -> None:
        looked_at = {(case.source, case.mode[MEMBER]) for case in cases(ASTYPE)}
        for member in ("weight", "inner.weight", "scale", "inner.scale"):
            assert {source for source, one in looked_at if one == member} >= {
                "float32",
                "int64",
                "bool",
            }
        for source, rule in (("int64", "whole-member"), ("bool", "whole-member")):
            rules = ruling(case_named(f"{ASTYPE}/{source}/float32/form:name/member:scale"))
            assert rules.is_open_dtype
            assert rules.branches[0].rule == rule
        rules = ruling(case_named(f"{ASTYPE}/float32/float64/form:name/member:scale"))
        assert rules.branches[0].rule == "buffer"

    def test_a_layer_must_still_run_and_nothing_is_promised_to_come_back(self) -> None:
        entry = document_named("paddle-layer-astype").entry
        assert entry.receiver is not None
        assert entry.receiver.runs == "recommended"
        for page in ("paddle-layer-astype", "paddle-tensor-to"):
            forms = document_named(page).entry.forms.values()
            assert {form.returns for form in forms} == {"unspecified"}


RETURNS = {
    "dtype": "another", "same-dtype": "receiver", "other": "another", "device-name": "receiver",
    "device": "receiver", "drops-keyword-dtype": "receiver", "keeps-first-dtype": "another",
    "keeps-other-dtype": "another", "copies": "another", "does-not-copy": "receiver",
    "non-blocking": "another", "device-dtype": "another", "device-name-dtype": "another",
    "three": "receiver", "keyword-dtype": "another", "keyword-device": "receiver",
    "keyword-both": "another", "nothing": "receiver",
}  # fmt: skip


class TestTheQuotedCode:
    def test_what_is_none_of_the_branches_is_a_runtime_error(self) -> None:
        for form in ("a-number", "a-list", "only-none", "bytes"):
            rules = ruling(case_named(f"{SHARDED}/float32/float32/form:{form}"))
            assert (rules.is_rejection, rules.error_class) == (True, "RuntimeError")
        # The class of these is made by whoever reads a device's name.
        for form in ("dtype-name", "no-such-device"):
            rules = ruling(case_named(f"{SHARDED}/float32/float32/form:{form}"))
            assert (rules.is_rejection, rules.error_class) == (True, None)

    def test_what_changes_nothing_returns_itself(self) -> None:
        forms = document_named("torch-tensor-to").entry.forms
        promised = {
            key: form.returns for key, form in forms.items() if form.returns != "unspecified"
        }
        assert promised == RETURNS

    def test_a_module_returns_itself(self) -> None:
        forms = document_named("torch-module-type").entry.forms
        assert {forms[key].returns for key in ("dtype", "keyword")} == {"receiver"}


SMALL = """\
document: small
title: Small
operation: call
seed: small.txt
scope: own-dtypes

receiver:
  is: layer
  method: astype
  members:
    weight: {kind: parameter}
    scale:  {kind: buffer, when: {from: float}}

versions:
  1:
    from: [float32, int8]
    to:   [float32]

forms:
  name:  {clause: "1", args: [dtype-name target]}
  other: {clause: "2", when: {from: float}, args: [tensor float32], kwargs: {blocking: word true}}

rules:
  named:
    clause: "3"
    level: required
    when: {form: name, member: [weight, scale]}
    then: {is: unspecified, dtype: target}
  others:
    clause: "4"
    level: required
    when: {form: other}
    then: {is: error, class: ValueError}

tensors:
  all:
    clause: "5"
    level: required
    when: {}
    then: same-shape
"""

# What stands in the text, what it becomes, how the line begins to which the error points,
# its words.
MISTAKES: dict[str, tuple[str, str, str, str]] = {
    "receiver kind": (
        "is: layer",
        "is: module",
        "is: module",
        "'tensor', 'sharded-tensor' or 'layer'",
    ),
    "no method": ("  method: astype\n", "", "receiver:", "`method` is missing"),
    "method": ("method: astype", "method: as type", "method: as type", "cannot stand in a case id"),
    "runs": ("method: astype", "method: astype\n  runs: always", "runs: always", "'recommended'"),
    "receiver word": (
        "method: astype",
        "method: astype\n  run: required",
        "run: required",
        "unknown word `run`",
    ),
    "tensor with members": (
        "is: layer",
        "is: tensor",
        "receiver:",
        "a layer, and nothing else, has",
    ),
    "member kind": ("kind: buffer", "kind: bufer", "scale:", "'parameter' or 'buffer'"),
    "member condition": (
        "{kind: buffer, when: {from: float}}",
        "{kind: buffer, when: {form: name}}\n    other: {kind: buffer, when: {fro: float}}",
        "other:",
        "unknown condition `fro`; did you mean `from`?",
    ),
    "member of no pair": (
        "{from: float}}\n\nversions",
        "{from: bool}}\n\nversions",
        "scale:",
        "the member `scale` is asked of no pair",
    ),
    "member in a rule": (
        "[weight, scale]",
        "[weight, scales]",
        "when: {form: name",
        "did you mean `scale`?",
    ),
    "form in a rule": (
        "{form: other}",
        "{form: othe}",
        "when: {form: othe}",
        "did you mean `other`?",
    ),
    "form of no pair": (
        '"2", when: {from: float}',
        '"2", when: {from: bool}',
        "other:",
        "the form `other` is asked of no pair",
    ),
    "form without clause": ('clause: "1", args', "args", "name:", "`clause` is missing"),
    "form's id": (
        '  name:  {clause: "1"',
        '  na/me:  {clause: "1"',
        "na/me:",
        "cannot stand in a case id",
    ),
    "argument kind": (
        "[dtype-name target]",
        "[type-name target]",
        "name:",
        "unknown kind of argument `type-name`",
    ),
    "argument word": ("word true", "word yes", "other:", "unknown argument word `yes`"),
    "argument dtype": (
        "[tensor float32]",
        "[tensor float33]",
        "other:",
        "`float33` is neither a dtype nor",
    ),
    "returns": (
        "args: [tensor float32]",
        "args: [tensor float32], returns: copy",
        "other:",
        "'receiver', 'another'",
    ),
    "device": (
        "args: [tensor float32]",
        "args: [tensor float32], device-after: tpu",
        "other:",
        "'cpu' or 'gpu'",
    ),
    "no receiver": (
        SMALL[SMALL.index("receiver:") : SMALL.index("versions:")],
        "",
        "operation:",
        "has a `receiver`",
    ),
    "no call": ("operation: call", "operation: cast", "operation:", "has a `receiver`"),
    "no forms": (
        SMALL[SMALL.index("forms:") : SMALL.index("rules:")],
        "",
        "",
        "is called in `forms`",
    ),
    "gap": (
        "[weight, scale]",
        "weight",
        "rules:",
        "gap: no rule applies to small:1/float32/float32/form:name/member:scale",
    ),
    "overlap": (
        "{form: other}",
        "{form: [other, name]}",
        "others:",
        "rule others: overlap: small:1/float32/float32/form:name/member:weight: named",
    ),
    "shape": (
        "{is: error, class: ValueError}",
        "same-shape",
        "then: same-shape",
        "no outcome of a call",
    ),
    "idle class": (
        "{is: unspecified, dtype: target}",
        "{is: unspecified, class: E}",
        "then: {is: uns",
        "`class` goes with `error` only",
    ),
    "idle dtype": (
        "{is: error, class: ValueError}",
        "{is: error, dtype: target}",
        "then: {is: err",
        "`dtype` goes with the `unspecified` of a call only",
    ),
}


def test_the_small_document_itself_holds(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(SMALL, encoding="utf-8")
    proof = prove(load_document(path))
    # float32: two forms of two members; int8: one form of one member
    assert (proof.versions, proof.cases, proof.rules) == (1, 2 * 2 + 1, 2)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line_with_its_place(tmp_path: Path, mistake: str) -> None:
    old, new, at, says = MISTAKES[mistake]
    assert SMALL.count(old) == 1
    text, path = SMALL.replace(old, new), tmp_path / "small.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DocumentError) as caught:
        prove(load_document(path))
    message = str(caught.value).removeprefix(f"{path}:")
    assert "\n" not in message
    lines = [
        place for place, line in enumerate(text.splitlines(), 1) if line.strip().startswith(at)
    ]
    assert re.match(r"\d+", message), message
    assert int(message.partition(":")[0]) in lines, message
    assert says in message
