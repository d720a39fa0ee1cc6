"""The call that each form stands for, and what the pages list."""

from __future__ import annotations

import pytest

from conformance.selection import case_named, select
from specs.calling import call_of
from specs.calls import FORM, MEMBER, Argument, Call, Member
from specs.cases import Case
from specs.load import document_named
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
