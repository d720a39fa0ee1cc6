"""Call documents: the call of each case, and rulings and forms compared with the pages."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specs.case_calls import call_of, case_of_member, form_of, linear_call, mixed_call
from specs.cases import FORM, MEMBER, Argument, Call, Case, Member
from specs.editions import tensor_rule
from specs.loader import document_named
from specs.outcomes import Anything
from specs.ruling import ruling
from specs.selection import case_named, select

TO, ASTYPE = "paddle-tensor-to:1.0", "paddle-layer-astype:1.0"
SHARDED, TYPE = "torch-sharded-tensor-to:2023", "torch-module-type:2023"
OWN = "torch-tensor-to:2.13"
CAST, BITCAST = "cinn-cast-calls:1.0", "cinn-bitcast-calls:1.0"
NAMES = (
    "bfloat16", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8",
    "uint16", "complex64", "complex128", "bool",
)  # fmt: skip
"""The 13 names of dtypes that paddle's page lists, in its order."""


def tensor_to(
    *args: Argument, source: str = "float32", on: str = "cpu", **kwargs: Argument
) -> Call:
    member = Member("", "tensor", source)
    return Call("tensor", (member,), "to", args, tuple(kwargs.items()), on)


def name(dtype: str) -> Argument:
    return Argument("dtype-name", dtype)


CPU, GPU = Argument("device-name", "cpu"), Argument("device-name", "gpu")
TRUE, NONE = Argument("word", "true"), Argument("word", "none")

CALLS: dict[str, Call] = {
    f"{TO}/float32/float64/form:name": tensor_to(name("float64")),
    f"{TO}/int8/uint16/form:dtype": tensor_to(Argument("dtype", "uint16"), source="int8"),
    f"{TO}/float32/float64/form:other": tensor_to(Argument("tensor", "float64")),
    f"{TO}/float32/float32/form:device-name": tensor_to(CPU),
    f"{TO}/float32/float32/form:device": tensor_to(Argument("device", "cpu")),
    f"{TO}/float32/float64/form:name-blocking-none": tensor_to(name("float64"), NONE),
    f"{TO}/float32/float64/form:device-name-name-blocking": tensor_to(CPU, name("float64"), TRUE),
    f"{TO}/float32/int32/form:keywords-in-turn": tensor_to(
        dtype=name("int32"), device=CPU, blocking=TRUE
    ),
    f"{TO}/float32/float32/form:nothing": tensor_to(),
    f"{TO}/float32/float32/form:empty-name": tensor_to(name("")),
    f"{TO}/float32/float32/form:bytes": tensor_to(Argument("word", "bytes")),
    # A dtype other than the case's own is passed as the form writes it.
    f"{TO}/float32/int32/form:two-dtypes": tensor_to(name("int32"), dtype=name("float64")),
    f"{TO}/float32/float32/form:to-gpu-blocking": tensor_to(GPU, blocking=TRUE),
    f"{TO}/bool/int32/form:from-gpu-and-name": tensor_to(
        CPU, name("int32"), source="bool", on="gpu"
    ),
    f"{SHARDED}/float32/float32/form:drops-keyword-dtype": Call(
        "sharded-tensor",
        (Member("", "tensor", "float32"),),
        "to",
        (Argument("device", "cpu"),),
        (("dtype", Argument("dtype", "float64")),),
    ),
    # A form may have a receiver other than its document's.
    f"{SHARDED}/float32/float64/form:listed-dtype-in-full": tensor_to(
        Argument("dtype", "float64"),
        TRUE,
        Argument("word", "false"),
        Argument("memory-format", "preserve"),
    ),
    f"{TO}/float32/float64/form:other-on-gpu": tensor_to(Argument("gpu-tensor", "float64")),
    f"{CAST}/int32/float32/form:all-keywords": Call(
        "net-builder",
        (Member("", "tensor", "int32"),),
        "cast",
        (),
        (
            ("A", Argument("input", "")),
            ("dtype", Argument("dtype", "float32")),
            ("name", Argument("text", "out")),
        ),
    ),
    f"{CAST}/int32/float32/form:base-builder": Call(
        "base-builder",
        (Member("", "tensor", "int32"),),
        "cast",
        (Argument("input", ""), Argument("dtype", "float32")),
    ),
    f"{BITCAST}/float32/float32/form:shape-first": Call(
        "net-builder",
        (Member("", "tensor", "float32"),),
        "bitcast_convert",
        (Argument("word", "ten"), name("float32")),
    ),
    # The member that the case is about has the source's dtype, the others are float32.
    f"{ASTYPE}/int64/float64/form:name/member:inner.scale": Call(
        "layer",
        (
            Member("weight", "parameter", "float32"),
            Member("bias", "parameter", "float32"),
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
def test_call_of_builds_the_call_of_a_case(case: str) -> None:
    assert call_of(case_named(case)) == CALLS[case]


def test_linear_call_is_the_same_call_on_a_linear_that_runs_afterwards() -> None:
    case = case_named(f"{ASTYPE}/int64/float32/form:keyword-name/member:weight")
    assert linear_call(case, "int64", "astype") == Call(
        "linear",
        (Member("weight", "parameter", "int64"), Member("bias", "parameter", "int64")),
        "astype",
        (),
        (("dst_type", name("float32")),),
        inputs=("int64", "float32"),
    )
    untouched = linear_call(case, "float32", None)
    assert (untouched.method, untouched.args, untouched.kwargs) == (None, (), ())
    assert untouched.inputs == ("float32",)


@pytest.mark.parametrize(
    ("source", "target", "dtypes"),
    [
        ("float32", "float16", ["float32", "float16", "float32", "float16"]),
        ("float16", "float32", ["float16", "float32", "float64", "float32"]),
        ("bfloat16", "float64", ["bfloat16", "float64", "float32", "float64"]),
        # No framework has parameters of integers that need gradients.
        ("float16", "int8", ["float16", "float32", "float64", "float32"]),
    ],
)
def test_mixed_call_is_the_same_call_on_members_of_several_dtypes(
    source: str, target: str, dtypes: list[str]
) -> None:
    case = case_named(f"torch-module-type:2023/{source}/{target}/form:dtype/member:weight")
    mixed = mixed_call(case)
    assert [each.dtype for each in mixed.members] == dtypes
    assert replace(mixed, members=()) == replace(call_of(case), members=())


def test_the_case_of_another_member_is_about_that_member_and_its_dtype() -> None:
    case = case_named(f"{ASTYPE}/float16/float32/form:name/member:weight")
    own = case_named(f"{ASTYPE}/float32/float32/form:name/member:bias")
    assert case_of_member(case, "bias", "float32") == own


def cases(version: str) -> list[Case]:
    return select([version])


def forms_of(found: list[Case]) -> set[str]:
    return {case.mode[FORM] for case in found}


class TestPaddlePages:
    @pytest.mark.parametrize("form", ["name", "dtype", "other"])
    def test_a_form_has_cases_for_every_pair_of_listed_names(self, form: str) -> None:
        pairs = {(case.source, case.target) for case in cases(TO) if case.mode[FORM] == form}
        assert pairs == {(source, target) for source in NAMES for target in NAMES}

    def test_a_layer_has_cases_for_every_listed_name_as_text_and_as_object(self) -> None:
        for form in ("name", "dtype"):
            found = [case for case in cases(ASTYPE) if case.mode[FORM] == form]
            assert {case.target for case in found if case.source == "float32"} == set(NAMES)
        assert {case.source for case in cases(ASTYPE)} == set(NAMES)

    def test_the_forms_of_section_5_are_called_with_and_without_blocking(self) -> None:
        signatures = set()
        for case in cases(TO):
            call = call_of(case)
            if not ruling(case).is_rejection and "open" not in ruling(case).branches[0].rule:
                kinds = tuple("word" if one == NONE else one.kind for one in call.args)
                signatures.add((kinds, tuple(key for key, _ in call.kwargs)))
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
            assert (kinds, ()) in signatures, kinds
        for first in ("dtype-name", "device-name", "tensor"):
            assert ((first,), ("blocking",)) in signatures, first
        for keywords in (
            ("dtype",), ("device",), ("other",), ("device", "dtype"), ("device", "blocking"),
            ("other", "blocking"), ("dtype", "device", "blocking"),
        ):  # fmt: skip
            assert ((), keywords) in signatures, keywords

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
         "no-such-device", "a-number", "a-list", "bytes", "too-many", "name-too-many",
         "dtype-too-many", "other-too-many", "unknown-keyword"],
    )  # fmt: skip
    def test_a_call_that_matches_no_form_is_rejected(self, form: str) -> None:
        rules = ruling(case_named(f"{TO}/float32/float32/form:{form}"))
        assert rules.is_rejection
        assert {branch.level for branch in rules.branches} == {"recommended"}
        assert rules.error_class is None  # the page names none

    @pytest.mark.parametrize(
        ("form", "target"),
        [("two-dtypes", "float64"), ("two-devices", "float32"), ("two-blockings", "float64"),
         ("other-and-dtype", "float64"), ("other-and-device", "float64"), ("nothing", "float32"),
         ("dtype-then-device", "float64"), ("non-blocking", "float64"), ("only-none", "float32"),
         ("device-with-index", "float32"), ("name-keyword-device", "float64"),
         ("zero", "float32"), ("a-truth-value", "float32")],
    )  # fmt: skip
    def test_conflicting_arguments_are_open_and_have_a_conflict_note(
        self, form: str, target: str
    ) -> None:
        rules = ruling(case_named(f"{TO}/float32/{target}/form:{form}"))
        assert rules.is_open_dtype
        [branch] = {branch.rule for branch in rules.branches}
        assert document_named("paddle-tensor-to").entry.rules[branch].conflict

    def test_complex_values_are_open_but_the_dtype_is_not(self) -> None:
        for pair in ("complex64/float32", "float32/complex64"):
            rules = ruling(case_named(f"{TO}/{pair}/form:name"))
            assert rules.is_open
            assert not rules.is_open_dtype
        assert ruling(case_named(f"{TO}/bfloat16/uint16/form:name")).is_open_dtype

    def test_members_of_every_kind_have_cases(self) -> None:
        sources_and_members = {(case.source, case.mode[MEMBER]) for case in cases(ASTYPE)}
        for member in ("weight", "bias", "inner.weight", "scale", "inner.scale"):
            assert {source for source, one in sources_and_members if one == member} >= {
                "float32",
                "int64",
                "bool",
            }
        for source in ("int64", "bool", "float32"):
            rules = ruling(case_named(f"{ASTYPE}/{source}/float32/form:name/member:scale"))
            assert rules.is_open_dtype
            assert rules.branches[0].rule == "buffer"

    @pytest.mark.parametrize("source", ["int64", "bool", "uint8"])
    def test_the_dtype_of_integer_and_bool_parameters_is_recommended(self, source: str) -> None:
        rules = ruling(case_named(f"{ASTYPE}/{source}/float32/form:name/member:weight"))
        assert rules.is_open
        assert not rules.is_open_dtype
        [branch] = rules.branches
        assert (branch.rule, branch.outcome) == ("whole-member", Anything(True, "recommended"))

    def test_a_layer_must_still_run_and_no_return_value_is_promised(self) -> None:
        entry = document_named("paddle-layer-astype").entry
        promise = entry.promises()["layer-runs"]
        assert (promise.clause[:3], promise.level) == ("1.1", "recommended")
        for page in ("paddle-layer-astype", "paddle-tensor-to"):
            forms = document_named(page).entry.forms.values()
            assert {(form.returns, form.memory) for form in forms} == {(None, None)}

    def test_the_receiver_tensor_must_not_change(self) -> None:
        for page, level in (
            ("paddle-tensor-to", "recommended"),
            ("torch-sharded-tensor-to", "required"),
        ):
            assert document_named(page).entry.promises()["receiver-unchanged"].level == level

    @pytest.mark.parametrize("form", ["device", "device-dtype", "to-gpu-object", "other-on-gpu"])
    def test_forms_that_the_page_only_implies_are_recommended(self, form: str) -> None:
        assert document_named("paddle-tensor-to").entry.forms[form].level == "recommended"

    def test_conflicts_of_rules_promises_and_forms_are_listed(self) -> None:
        def conflicts(page: str) -> list[tuple[str, str]]:
            listed = document_named(page).entry.conflicts()
            return [(owner, clause) for owner, clause, _ in listed]

        assert conflicts("paddle-layer-astype") == [
            ("named-uint16", "5, the 13 names"),
            ("buffer", "5, how it is to be built: every parameter in turn"),
            ("layer-runs", "1.1, the inputs that a layer takes"),
        ]
        assert conflicts("torch-sharded-tensor-to") == [
            ("listed-form", "3, the three listed forms"),
            ("form:listed-device-keyword-dtype", "3, listed form 2"),
        ]

    def test_a_keyword_that_the_quoted_code_ignores_is_a_conflict(self) -> None:
        form = document_named("paddle-tensor-to").entry.forms["device-name-keyword-dtype"]
        assert form.conflict
        assert form.level == "required"

    @pytest.mark.parametrize(
        ("size", "rule"), [(2**31 - 1, "any-tensor"), (2**31, "too-many-elements")]
    )
    def test_a_shape_is_promised_as_far_as_an_int32_counts_elements(
        self, size: int, rule: str
    ) -> None:
        assert tensor_rule("paddle-tensor-to", "1.0", (size,)).rule == rule

    @pytest.mark.parametrize("page", [TO, ASTYPE, SHARDED, TYPE])
    def test_keeping_the_payload_of_a_nan_is_recommended(self, page: str) -> None:
        document = page.partition(":")[0]
        rules = next(
            ruling(case)
            for case in select([document])
            if (case.source, case.target) == ("float32", "float32")
            and ruling(case).branches[0].rule == "same-dtype"
        )
        levels = {branch.input_class: branch.level for branch in rules.branches}
        assert levels == {"nan": "recommended", "otherwise": "required"}


RETURNS = {
    "dtype": "another", "same-dtype": "receiver", "other": "another", "device-name": "receiver",
    "device": "receiver", "drops-keyword-dtype": "receiver", "keeps-first-dtype": "another",
    "keeps-other-dtype": "another", "copies": "another", "does-not-copy": "receiver",
    "non-blocking": "another", "device-dtype": "another", "device-name-dtype": "another",
    "three": "receiver", "keyword-dtype": "another", "keyword-device": "receiver",
    "keyword-both": "another", "nothing": "receiver", "memory-format": "another",
    "process-group-none": "another", "unknown-keyword": "another", "to-cuda": "another",
    "to-cuda-name": "another", "to-cuda-index": "another", "to-cuda-and-dtype": "another",
}  # fmt: skip


class TestQuotedCode:
    def test_arguments_that_match_no_branch_are_a_runtime_error(self) -> None:
        for form in ("a-number", "a-list", "only-none", "bytes"):
            rules = ruling(case_named(f"{SHARDED}/float32/float32/form:{form}"))
            assert (rules.is_rejection, rules.error_class) == (True, "RuntimeError")
        # These raise the error of parsing a device's name, whose class is not named.
        for form in ("dtype-name", "no-such-device"):
            rules = ruling(case_named(f"{SHARDED}/float32/float32/form:{form}"))
            assert (rules.is_rejection, rules.error_class) == (True, None)

    def test_a_call_that_changes_nothing_returns_its_receiver(self) -> None:
        forms = document_named("torch-sharded-tensor-to").entry.forms
        promised = {
            key: form.returns.is_ for key, form in forms.items() if form.returns is not None
        }
        assert promised == RETURNS

    def test_a_call_on_a_module_returns_the_module(self) -> None:
        forms = document_named("torch-module-type").entry.forms
        returns = [forms[key].returns for key in ("dtype", "keyword")]
        assert [each.is_ for each in returns if each is not None] == ["receiver"] * 2

    @pytest.mark.parametrize("form", ["dtype-then-device", "device-none-dtype"])
    def test_an_argument_without_the_attribute_type_is_an_attribute_error(self, form: str) -> None:
        rules = ruling(case_named(f"{SHARDED}/float32/float64/form:{form}"))
        assert (rules.is_rejection, rules.error_class) == (True, "AttributeError")
        assert {branch.level for branch in rules.branches} == {"required"}

    def test_an_unknown_keyword_is_ignored(self) -> None:
        rules = ruling(case_named(f"{SHARDED}/float32/float64/form:unknown-keyword"))
        assert not rules.is_open
        assert not rules.is_rejection


LISTED = {
    1: ("dtype", "non_blocking", "copy", "memory_format"),
    2: ("device", "dtype", "non_blocking", "copy", "memory_format"),
    3: ("other", "non_blocking", "copy"),
}
"""The parameters of the three forms of ``Tensor.to`` that section 3 lists."""


class TestListedForms:
    @pytest.mark.parametrize("number", LISTED)
    def test_every_parameter_is_passed_by_position_and_by_name(self, number: int) -> None:
        forms = [
            form
            for form in document_named("torch-sharded-tensor-to").entry.forms.values()
            if form.clause == f"3, listed form {number}"
        ]
        assert {form.on for form in forms} == {"tensor"}
        # There are forms with all of them, and with one more.
        assert {len(LISTED[number]), len(LISTED[number]) + 1} <= {len(form.args) for form in forms}
        assert set().union(*(form.kwargs for form in forms)) >= set(LISTED[number])

    def test_only_forms_with_copy_return_their_own_memory(self) -> None:
        memory = {
            name: form.memory.is_
            for name, form in document_named("torch-sharded-tensor-to").entry.forms.items()
            if form.memory is not None and form.on == "tensor"
        }
        copies = {name for name in memory if name.endswith("copy") and "not" not in name}
        assert {name for name, word in memory.items() if word == "own"} == copies
        assert "listed-nothing" in memory

    def test_a_dtype_name_is_rejected_by_torch(self) -> None:
        rules = ruling(case_named(f"{SHARDED}/float32/float32/form:listed-dtype-name"))
        assert rules.is_rejection
        assert {branch.level for branch in rules.branches} == {"required"}


class TestTorchsOwnText:
    @pytest.mark.parametrize("parameters", LISTED.values(), ids=str)
    def test_every_parameter_of_a_signature_is_passed(self, parameters: tuple[str, ...]) -> None:
        forms = document_named("torch-tensor-to").entry.forms.values()
        assert len(parameters) in {len(form.args) for form in forms}
        assert set().union(*(form.kwargs for form in forms)) >= set(parameters)

    def test_the_tensor_itself_or_a_copy_is_required(self) -> None:
        forms = document_named("torch-tensor-to").entry.forms
        promised = {name: form.returns.is_ for name, form in forms.items() if form.returns}
        assert {name for name, word in promised.items() if word == "receiver"} == {
            "same-dtype", "dtype-keyword-not-copy", "nothing", "device", "device-name",
            "device-none", "device-dtype-none", "keyword-dtype-none", "same-other",
        }  # fmt: skip
        memory = {form.memory.is_ for form in forms.values() if form.memory}
        assert memory == {"own"}
        refused = {name for name in forms if name not in promised}
        for form in refused:
            rules = ruling(case_named(f"{OWN}/float32/float32/form:{form}"))
            assert rules.is_rejection
            assert {branch.level for branch in rules.branches} == {"recommended"}

    def test_the_tensor_itself_keeps_its_nans(self) -> None:
        levels = {
            form: {
                branch.level
                for branch in ruling(case_named(f"{OWN}/float32/float32/form:{form}")).branches
            }
            for form in ("same-dtype", "dtype-copy")
        }
        assert levels == {"same-dtype": {"required"}, "dtype-copy": {"required", "recommended"}}


class TestCinnBuilders:
    @pytest.mark.parametrize(
        ("case", "shape"),
        [(f"{CAST}/int32/float32/form:sample", "8x24x124"),
         (f"{BITCAST}/float32/float32/form:sample", "10")],
    )  # fmt: skip
    def test_the_sample_calls_have_their_own_shapes(self, case: str, shape: str) -> None:
        assert form_of(case_named(case)).shape == shape

    def test_parameter_names_that_the_page_contradicts_are_open_and_have_a_conflict_note(
        self,
    ) -> None:
        for form in ("keywords", "other-keywords", "keyword-dtype"):
            rules = ruling(case_named(f"{BITCAST}/float32/int32/form:{form}"))
            assert rules.is_open_dtype
        assert document_named("cinn-bitcast-calls").entry.rules["by-keyword"].conflict

    def test_a_missing_argument_is_rejected(self) -> None:
        for case in (
            f"{CAST}/int32/float32/form:no-tensor",
            f"{BITCAST}/float32/float32/form:nothing",
        ):
            assert ruling(case_named(case)).is_rejection
