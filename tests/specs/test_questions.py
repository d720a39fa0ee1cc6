"""Questions as people write them: dtypes in every spelling, with and without a document."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from conformance.families.cast.explanation import explain
from conformance.families.chains.questions import read_chains
from conformance.families.family import Sentence, WrittenQuestion
from conformance.families.quantization.sentence import read_sentence
from specs.cases import Case
from specs.errors import CastigateError
from specs.formats import LONGEST_SPELLING, dtype_spelled, dtypes_spelled, formats
from specs.questions import (
    case_of_any_shape,
    read_question,
)
from specs.selection import case_named, decided_by

SPELLINGS = {
    "float32": "fp32 f32 float torch.float32 np.float32 DT_FLOAT TensorProto.FLOAT at::kFloat <f4",
    "float64": "double f64 fp64 torch.double DT_DOUBLE np.float_ numpy.float <f8 =f8 pa.float64()",
    "float16": "half fp16 f16 HALF DT_FP16 at::half",
    "bfloat16": "bf16 BFLOAT16 torch.bfloat16 DT_BF16 bfloat kBF16",
    "float8e4m3fn": "e4m3fn float8_e4m3fn FLOAT8E4M3FN f8E4M3FN torch.float8_e4m3fn tl.float8e4nv",
    "float8e5m2fnuz": "e5m2fnuz float8_e5m2fnuz f8E5M2FNUZ",
    "float8e8m0": "e8m0 float8_e8m0fnu ue8m0 FLOAT8E8M0",
    "float4e2m1": "float4_e2m1fn torch.float4_e2m1fn_x2 e2m1 FLOAT4E2M1",
    "int32": "s32 i32 int32_t INT32 si32 np.intc torch.int >i4",
    "int64": "long torch.long s64 np.int_ np.intp <i8",
    "int8": "i8 np.byte |i1",
    "uint8": "u8 uchar DT_UINT8 ui8",
    "bool": "pred BOOL boolean torch.bool np.bool_ |b1 tl.int1",
    "string": "str STRING",
}


@pytest.mark.parametrize(("name", "spelled"), SPELLINGS.items())
def test_a_dtype_is_known_in_every_spelling(name: str, spelled: str) -> None:
    assert [dtype_spelled(each) for each in spelled.split()] == [name] * len(spelled.split())


def test_every_dtype_means_itself_and_every_spelling_some_dtype() -> None:
    assert [dtype_spelled(name) for name in formats()] == list(formats())


def test_a_word_of_any_length_is_no_dtype_at_once() -> None:
    assert dtypes_spelled("half".rjust(LONGEST_SPELLING, "_")) == ["float16"]
    assert dtypes_spelled("half".rjust(LONGEST_SPELLING + 1, "_")) == []
    assert dtypes_spelled("torch." * 1_000_000) == []
    assert dtypes_spelled("nothing") == []


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("e4m3", "`e4m3` may be float8e4m3fn or float8e4m3; write one of these"),
        ("fp8", "`fp8` may be float8e4m3fn, float8e4m3fnuz, float8e5m2, "),
        ("f4", "`f4` may be float32 or float4e2m1; write one of these"),
        ("int", "`int` may be int64 or int32; write one of these"),
        ("flaot32", "unknown dtype `flaot32`; did you mean `float32`?"),
        ("tf32", "`tf32` is no dtype of a tensor: matrix units round float32 operands to its 10 "),
        ("torch.TensorFloat-32", "`torch.TensorFloat-32` is no dtype of a tensor: matrix units "),
        ("☃", "unknown dtype `☃`; the dtypes are float64, "),
    ],
)
def test_what_is_no_dtype_or_several_is_refused_with_a_hint(word: str, message: str) -> None:
    with pytest.raises(CastigateError) as error:
        dtype_spelled(word)
    assert str(error.value).startswith(message)


def test_a_pair_is_asked_of_a_version_that_tells_values_and_not_of_a_survey() -> None:
    asked = {case.document: case.id for case in read_question(["int32", "bool", "1"]).cases}
    assert asked["cinn-cast"] == "cinn-cast:1.0/int32/bool"
    assert read_question(["cinn-cast", "int32", "bool", "1"]).cases[0].id == asked["cinn-cast"]


QUESTIONS = {
    "onnx-cast:25/float32/int32": "onnx-cast:25/float32/int32",
    "onnx-cast/fp32/s32": "onnx-cast:25/float32/int32",
    "onnx-cast float int32": "onnx-cast:25/float32/int32",
    "onnx-cast:19 half FLOAT8E4M3FN": "onnx-cast:19/float16/float8e4m3fn/saturate:1",
    "onnx-cast:25/float32/e4m3fn/saturate:0": "onnx-cast:25/float32/float8e4m3fn/saturate:0",
    "onnx-cast/float32/e8m0/round_mode:down": "onnx-cast:25/float32/float8e8m0/saturate:1/"
    "round_mode:down",
    "pypto-cast/fp32/fp16": "pypto-cast:0.2/float32/float16/mode:CAST_NONE",
    "onnx-bitcast/int8/u8": "onnx-bitcast:26/int8/uint8/shape:scalar",
    "onnx-cast fp32 to half": "onnx-cast:25/float32/float16",
    "wasm float32 i32": "wasm-convert:3.0/float32/int32/operator:trunc",
    "wasm:2.0 float32 to i32": "wasm-convert:2.0/float32/int32/operator:trunc",
    "wasm/float32/i32/operator:trunc_sat": "wasm-convert:3.0/float32/int32/operator:trunc_sat",
    "webnn float32 int8": "webnn-cast:draft/float32/int8",
    "numpy f32 s8": "numpy-astype:2.4/float32/int8/casting:unsafe",
    "Array_API f32 s8": "array-api-astype:2025.12/float32/int8",
    "reinterpret f32 i32": "wasm-reinterpret:3.0/float32/int32/shape:scalar",
    "tensorflow f32 i32": "tensorflow-bitcast:2023/float32/int32/shape:scalar",
}


@pytest.mark.parametrize(("asked", "case"), QUESTIONS.items())
def test_a_question_names_its_case(asked: str, case: str) -> None:
    found = read_question([*asked.split(), "nan", "-inf"])
    assert [each.id for each in found.cases] == [case]
    assert found.inputs == ["nan", "-inf"]


def test_a_word_of_names_is_asked_of_all_documents_that_have_it() -> None:
    found = read_question(["torch", "float32", "int8", "300"])
    own = {"torch-module-type", "torch-sharded-tensor-to", "torch-tensor-to"}
    assert {case.document for case in found.cases} == own
    assert (found.inputs, found.is_open) == (["300"], True)


def test_the_preposition_between_dtypes_may_be_left_out() -> None:
    for asked in ("fp32 to e4m3fn 465 to", "fp32 e4m3fn 465 to", "fp32/e4m3fn 465 to"):
        assert read_question(asked.split()) == read_question(["float32", "e4m3fn", "465", "to"])


CHAINS = {
    "onnx-cast/float32/int32/bool": "onnx-cast:25/float32/int32/bool",
    "onnx-cast:19 fp32 bf16 int8": "onnx-cast:19/float32/bfloat16/int8",
    "onnx-cast fp32 to bf16 to int8": "onnx-cast:25/float32/bfloat16/int8",
    "onnx fp32 bf16 to half int8": "onnx-cast:25/float32/bfloat16/float16/int8",
    "stablehlo/fp32/bf16/int8": "stablehlo-convert:1.20/float32/bfloat16/int8",
    "plain-cast:wraps fp32 bf16 int8": "plain-cast:wraps/float32/bfloat16/int8",
}


@pytest.mark.parametrize(("asked", "chain"), CHAINS.items())
def test_three_dtypes_are_a_chain(asked: str, chain: str) -> None:
    found = read_chains([*asked.split(), "-106.75", "0x1p3"])
    assert found is not None
    assert [each.id for each in found.chains] == [chain]
    assert (found.inputs, found.is_open) == (["-106.75", "0x1p3"], False)


@pytest.mark.parametrize(
    "asked", ["fp32 bf16 int8", "fp32 to bf16 to int8", "fp32 bf16 to int8", "fp32/bf16/int8"]
)
def test_a_chain_alone_is_asked_of_every_document_that_has_its_casts(asked: str) -> None:
    found = read_chains([*asked.split(), "106.75"])
    assert found is not None
    assert found.is_open
    assert found.inputs == ["106.75"]
    documents_of = {chain.steps[0].document for chain in found.chains}
    assert {"onnx-cast", "stablehlo-convert"} <= documents_of
    assert not {"numpy-astype", "onnx-cast-like", "torch-view"} & documents_of
    assert {chain.dtypes for chain in found.chains} == {("float32", "bfloat16", "int8")}


@pytest.mark.parametrize("asked", ["float32 int32 1", "string double half", "onnx-cast/int8/bool"])
def test_two_dtypes_and_a_text_are_no_chain(asked: str) -> None:
    assert read_chains(asked.split()) is None


def test_two_dtypes_alone_are_asked_of_all_documents() -> None:
    found = read_question(["float32", "str", "nan"])
    # CastLike follows Cast, so it adds no case.
    assert [each.id for each in found.cases] == ["onnx-cast:25/float32/string"]


AS_PEOPLE_ASK = """\
float32 int32 nan
f16 int64 inf
bf16 int32 nan
float32 int32 inf
float64 int32 inf
f32 int8 inf
f32 int64 inf
float uint8 -1.5
float32 uint8 300.0
f32 uint32 -1
f32 int8 300
torch.float32 torch.uint8 -1.23
f32 uint8 -128.
Float64 uint64 -3.7
f32 i8 nan
f32 s32 3e9
float32 uint16 -1.0
double long nan
tf.float32 tf.int32 nan
half int8 65504
f32 u32 4294967296
f64 int64 9.3e18
np.float32 np.uint8 -1
f16 uint8 -inf
torch-tensor-to/float32/int64 inf
pypto-cast float32 int32 3e9
paddle-tensor-to float32 int32 nan
onnx-cast float32 uint32 -1
f32 int32 2147483648
float32 e4m3fn 465
f32 float8_e4m3fn 500
f32 e5m2 58000
float32 e4m3fnuz inf
f32 float8_e5m2 inf
bf16 float8_e5m2 61440
half e4m3fn nan
onnx-cast/float32/float8e4m3fn/saturate:0 465
float32 torch.float8_e4m3fn -inf
FLOAT FLOAT8E5M2FNUZ 1e9
f16 e5m2 1.125
f32 e4m3fn 1.0625001
f64 e4m3fn 126.24
f64 bf16 1.0039062500000002
f64 f16 1.0004882812509095
double half 65519.99
int32 bf16 16842753
float bf16 128.5
bf16 uint8 1
float int4 2.5
f32 uint4 0.5
f32 e4m3fn 1.8131605
f32 e8m0 1.25
uint8 float32 200
f64 uint32 3e9
int32 u8 -1
uint16 uint32 65535
f32 bool 0.0
float bool 0.5
f32 bool 2.0
bool f32 true
bf16 bool -0.0
"""
"""Questions of public threads about conversions, in their spellings."""


@pytest.mark.parametrize("asked", AS_PEOPLE_ASK.splitlines())
def test_a_question_of_a_thread_names_cases_and_an_input_that_they_take(asked: str) -> None:
    found = read_question(asked.split())
    assert len(asked.split()) <= 12
    assert found.cases
    [given] = found.inputs
    for case in found.cases:
        assert explain(case, WrittenQuestion([given])).told["allowed"]


def test_documents_decide_most_questions_of_threads_and_house_rules_most_others() -> None:
    of_pages = of_rules = 0
    for asked in AS_PEOPLE_ASK.splitlines():
        cases, [given], _ = read_question(asked.split())
        if _is_decided(cases, given):
            of_pages += 1
        elif _is_decided(decided_by(cases, ["wasm-saturating"]), given):
            of_rules += 1
    questions = len(AS_PEOPLE_ASK.splitlines())
    assert (questions, of_pages, of_rules) == (61, 49, 10)


def _is_decided(cases: Iterable[Case], given: str) -> bool:
    return any(
        explain(case, WrittenQuestion([given])).told["allowed"] != "anything" for case in cases
    )


def test_checked_casts_of_tables_are_asked_by_name_only() -> None:
    asked = [case.document for case in read_question(["float32", "int8", "300"]).cases]
    assert {"numpy-astype", "onnx-cast"} <= {*asked}
    assert not {"arrow-cast", "polars-cast", "duckdb-cast"} & {*asked}
    [case], *_ = read_question(["polars", "float32", "int8", "300"])
    assert case.id == "polars-cast:2/float32/int8/strict:True/wrap_numerical:False"
    for word, document in {"tensorflow": "tensorflow-bitcast", "jax": "jax-carriers"}.items():
        [case] = read_question([word, "float32", "float32"]).cases
        assert case.document == document


def test_a_question_without_modes_is_about_the_default_ones() -> None:
    default = "numpy-astype:2.4/float32/int8/casting:unsafe"
    [case], *_ = read_question(["numpy-astype", "float32", "int8", "300"])
    assert case.id == default
    assert default in [case.id for case in read_question(["float32", "int8", "300"]).cases]


def test_a_pair_alone_is_asked_of_every_document_that_speaks_of_its_values() -> None:
    found = read_question(["float32", "int32", "nan"])
    documents = {case.document for case in found.cases}
    assert {"onnx-cast", "pypto-cast", "torch-tensor-to"} <= documents
    assert not {"onnx-bitcast", "xla-bitcast-convert", "cinn-bitcast-calls"} & documents
    assert found == read_question(["float32/int32", "nan"])


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("float32", "`float32` is one dtype; name two: float32 int32"),
        ("onnx-cast", "`onnx-cast` names documents; add two dtypes: onnx-cast float32 int32"),
        ("float32 int9", "unknown dtype `int9`; did you mean `int64`?"),
        ("onnx-cast:99/float32/int8", "onnx-cast has no version `99`; it has 1, 6, "),
        ("onnx-cast:25/float32/int9", "unknown case `onnx-cast:25/float32/int9`; did you mean "),
        (
            "onnx-cast:25/float32/e4m3fn/saturate:2",
            "unknown case `onnx-cast:25/float32/e4m3fn/saturate:2`; modes of this pair are "
            "saturate:0, saturate:1",
        ),
        (
            "pypto-cast c64 int8",
            "pypto-cast lists no pair complex64 to int8; castigate specs pypto-cast ",
        ),
        ("mx-blocks", "`mx-blocks` names documents; add two dtypes: mx-blocks float32 float4e2m1"),
        ("wasm", "`wasm` names documents; add two dtypes: wasm float32 int32"),
        (
            "wasm int8 int4 1",
            "no document called `wasm` lists int8 to int4: it may be wasm-convert ",
        ),
        ("wasmx float32 i32 nan", "`wasmx` is no document and no dtype; did you mean `wasm`? "),
        (
            "bitcast float32 int32 1",
            "`bitcast` may be cinn-bitcast-calls, cinn-bitcast-convert, onnx-bitcast, ",
        ),
        ("onnx-cast: float32 float16 1", "unknown document `onnx-cast:`; did you mean `onnx-cast`"),
        ("onnx-cast:/float32/float16 1", "unknown document `onnx-cast:`; did you mean `onnx-cast`"),
        ("tf32 float32 1", "`tf32` is no dtype of a tensor: "),
        ("onnx-cast/float32/tf32 1", "`tf32` is no dtype of a tensor: "),
        ("fp32 to bf16 to int9 1", "unknown dtype `int9`; did you mean "),
        ("int8/uint8/saturate:1", "no document lists a cast from int8 to uint8 with saturate:1; "),
    ],
)
def test_a_question_without_a_case_is_refused_with_a_hint(asked: str, message: str) -> None:
    with pytest.raises(CastigateError) as error:
        read_question(asked.split())
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (
            "numpy fp32 bf16 int8 1",
            "none of numpy-astype has all casts of the chain float32/bfloat16/int8; ",
        ),
        (
            "fp32 str int8 1",
            "no document has all casts of the chain float32/string/int8; castigate ",
        ),
        (
            "fp32 half fp32 half fp32 1",
            "the chain `float32/float16/float32/float16/float32` has 5 ",
        ),
        ("fp32 int int8 1", "`int` may be int64 or int32; write one of these"),
        ("onnx-cast fp32 str int8 1", "onnx-cast has no cast from float32 to string for a chain; "),
    ],
)
def test_a_chain_that_no_document_has_is_refused_with_a_hint(asked: str, message: str) -> None:
    with pytest.raises(CastigateError) as error:
        read_chains(asked.split())
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("asked", "case", "given"),
    [
        (
            "quantize 0.25 by 0.1 as float16",
            "onnx-quantize-linear:25/float16/uint8/scale:float16/form:tensor",
            ("0.25", "0.1", None),
        ),
        (
            "quantize -inf to s8 zero -3 as fp32 by 0x3dcccccd",
            "onnx-quantize-linear:25/float32/int8/scale:float32/form:tensor",
            ("-inf", "0x3dcccccd", "-3"),
        ),
        (
            "dequantize 5 by 0.1 as int8",
            "onnx-dequantize-linear:25/int8/float32/scale:float32/form:tensor",
            ("5", "0.1", None),
        ),
    ],
)
def test_a_sentence_asks_about_one_number(
    asked: str, case: str, given: tuple[str, str, str | None]
) -> None:
    assert read_sentence(asked.split()) == Sentence(case_named(case), *given)


def test_other_questions_are_no_sentences() -> None:
    assert read_sentence(["onnx-quantize-linear", "float16", "int8"]) is None


@pytest.mark.parametrize(
    "asked",
    [
        "quantize",
        "quantize 0.25",
        "quantize 0.25 by 0.1",
        "quantize 0.25 as float16",
        "quantize 0.25 by 0.1 as float16 to",
        "quantize 0.25 by 0.1 by 0.2 as float16",
        "quantize 0.25 by 0.1 as float16 into int8",
    ],
)
def test_half_a_sentence_is_refused_with_its_form(asked: str) -> None:
    with pytest.raises(CastigateError, match=r"write quantize INPUT by SCALE as DTYPE \[to DTYPE"):
        read_sentence(asked.split())


def test_a_bitcast_may_have_any_shape() -> None:
    for shape in ("scalar", "4", "2x1x3", "0x7"):
        case = case_of_any_shape(f"onnx-bitcast:26/int8/uint8/shape:{shape}")
        assert case.mode["shape"] == shape
    for wrong in ("", "x", "-1", "4x", "99999999x99999999", "٣"):
        with pytest.raises(CastigateError, match="unknown case"):
            case_of_any_shape(f"onnx-bitcast:26/int8/uint8/shape:{wrong}")
