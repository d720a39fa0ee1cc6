"""The call that each form stands for, and what the pages list."""

from __future__ import annotations

import pytest

from conformance.running.selection import case_named, select
from specs.calls import FORM, MEMBER, Argument, Call, Member
from specs.case_calls import call_of, form_of, linear_call
from specs.cases import Case
from specs.loader import document_named
from specs.outcomes import Anything
from specs.ruling import ruling

TO, ASTYPE = "paddle-tensor-to:1.0", "paddle-layer-astype:1.0"
SHARDED, TYPE = "torch-tensor-to:2023", "torch-module-type:2023"
CAST, BITCAST = "cinn-cast-calls:1.0", "cinn-bitcast-calls:1.0"
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
    # A form may be called on something else than its document's receiver.
    f"{SHARDED}/float32/float64/form:listed-dtype-in-full": on_tensor(
        Argument("dtype", "float64"),
        TRUE,
        Argument("word", "false"),
        Argument("memory-format", "preserve"),
    ),
    f"{TO}/float32/float64/form:other-on-gpu": on_tensor(Argument("gpu-tensor", "float64")),
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
    # The member that is looked at has the source's dtype, the others are float32.
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
def test_a_case_stands_for_a_call(case: str) -> None:
    assert call_of(case_named(case)) == CALLS[case]


def test_with_a_layer_goes_a_linear_of_one_dtype_that_is_run() -> None:
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
         "no-such-device", "a-number", "a-list", "bytes", "too-many", "name-too-many",
         "dtype-too-many", "other-too-many", "unknown-keyword"],
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
         ("device-with-index", "float32"), ("name-keyword-device", "float64"),
         ("zero", "float32"), ("a-truth-value", "float32")],
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
        for member in ("weight", "bias", "inner.weight", "scale", "inner.scale"):
            assert {source for source, one in looked_at if one == member} >= {
                "float32",
                "int64",
                "bool",
            }
        for source in ("int64", "bool", "float32"):
            rules = ruling(case_named(f"{ASTYPE}/{source}/float32/form:name/member:scale"))
            assert rules.is_open_dtype
            assert rules.branches[0].rule == "buffer"

    @pytest.mark.parametrize("source", ["int64", "bool", "uint8"])
    def test_of_integer_and_bool_parameters_the_dtype_is_recommended(self, source: str) -> None:
        rules = ruling(case_named(f"{ASTYPE}/{source}/float32/form:name/member:weight"))
        assert rules.is_open
        assert not rules.is_open_dtype
        [branch] = rules.branches
        assert (branch.rule, branch.outcome) == ("whole-member", Anything(True, "recommended"))

    def test_a_layer_must_still_run_and_nothing_is_promised_to_come_back(self) -> None:
        entry = document_named("paddle-layer-astype").entry
        promise = entry.promises()["layer-runs"]
        assert (promise.clause[:3], promise.level) == ("1.1", "recommended")
        for page in ("paddle-layer-astype", "paddle-tensor-to"):
            forms = document_named(page).entry.forms.values()
            assert {(form.returns, form.memory) for form in forms} == {(None, None)}

    def test_a_tensor_stays_as_it_was(self) -> None:
        for page, level in (("paddle-tensor-to", "recommended"), ("torch-tensor-to", "required")):
            assert document_named(page).entry.promises()["receiver-unchanged"].level == level

    @pytest.mark.parametrize("form", ["device", "device-dtype", "to-gpu-object", "other-on-gpu"])
    def test_what_the_page_does_not_write_itself_is_recommended(self, form: str) -> None:
        assert document_named("paddle-tensor-to").entry.forms[form].level == "recommended"

    def test_a_keyword_that_the_quoted_code_drops_is_a_conflict(self) -> None:
        form = document_named("paddle-tensor-to").entry.forms["device-name-keyword-dtype"]
        assert form.conflict
        assert form.level == "required"

    @pytest.mark.parametrize("page", [TO, ASTYPE, SHARDED, TYPE])
    def test_the_payload_of_a_nan_is_recommended_to_stay(self, page: str) -> None:
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
            key: form.returns.is_ for key, form in forms.items() if form.returns is not None
        }
        assert promised == RETURNS

    def test_a_module_returns_itself(self) -> None:
        forms = document_named("torch-module-type").entry.forms
        returns = [forms[key].returns for key in ("dtype", "keyword")]
        assert [each.is_ for each in returns if each is not None] == ["receiver"] * 2

    @pytest.mark.parametrize("form", ["dtype-then-device", "device-none-dtype"])
    def test_what_has_no_type_is_an_attribute_error(self, form: str) -> None:
        rules = ruling(case_named(f"{SHARDED}/float32/float64/form:{form}"))
        assert (rules.is_rejection, rules.error_class) == (True, "AttributeError")
        assert {branch.level for branch in rules.branches} == {"required"}

    def test_a_keyword_that_is_not_asked_for_is_dropped(self) -> None:
        rules = ruling(case_named(f"{SHARDED}/float32/float64/form:unknown-keyword"))
        assert not rules.is_open
        assert not rules.is_rejection


LISTED = {
    1: ("dtype", "non_blocking", "copy", "memory_format"),
    2: ("device", "dtype", "non_blocking", "copy", "memory_format"),
    3: ("other", "non_blocking", "copy"),
}
"""The parameters of the three forms of ``Tensor.to`` that section 3 lists."""


class TestTheListedForms:
    @pytest.mark.parametrize("number", LISTED)
    def test_every_parameter_is_passed_by_position_and_by_name(self, number: int) -> None:
        forms = [
            form
            for form in document_named("torch-tensor-to").entry.forms.values()
            if form.clause == f"3, listed form {number}"
        ]
        assert {form.on for form in forms} == {"tensor"}
        # All of them, and one more.
        assert {len(LISTED[number]), len(LISTED[number]) + 1} <= {len(form.args) for form in forms}
        assert set().union(*(form.kwargs for form in forms)) >= set(LISTED[number])

    def test_a_copy_is_told_from_none(self) -> None:
        memory = {
            name: form.memory.is_
            for name, form in document_named("torch-tensor-to").entry.forms.items()
            if form.memory is not None and form.on == "tensor"
        }
        copies = {name for name in memory if name.endswith("copy") and "not" not in name}
        assert {name for name, word in memory.items() if word == "own"} == copies
        assert "listed-nothing" in memory

    def test_a_text_is_a_dtype_to_paddle_alone(self) -> None:
        rules = ruling(case_named(f"{SHARDED}/float32/float32/form:listed-dtype-name"))
        assert rules.is_rejection
        assert {branch.level for branch in rules.branches} == {"required"}


class TestTheBuildersOfCinn:
    @pytest.mark.parametrize(
        ("case", "shape"),
        [(f"{CAST}/int32/float32/form:sample", "8x24x124"),
         (f"{BITCAST}/float32/float32/form:sample", "10")],
    )  # fmt: skip
    def test_the_samples_are_asked_in_their_shapes(self, case: str, shape: str) -> None:
        assert form_of(case_named(case)).shape == shape

    def test_names_on_which_the_page_disagrees_are_open_with_a_note(self) -> None:
        for form in ("keywords", "other-keywords", "keyword-dtype"):
            rules = ruling(case_named(f"{BITCAST}/float32/int32/form:{form}"))
            assert rules.is_open_dtype
        assert document_named("cinn-bitcast-calls").entry.rules["by-keyword"].conflict

    def test_what_is_left_out_is_refused(self) -> None:
        for case in (
            f"{CAST}/int32/float32/form:no-tensor",
            f"{BITCAST}/float32/float32/form:nothing",
        ):
            assert ruling(case_named(case)).is_rejection
