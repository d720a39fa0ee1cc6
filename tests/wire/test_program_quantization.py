"""Programs are asked to quantize over the wire protocol only if they say that they can."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from conformance.driver import BackendJudge
from conformance.families.named_tensors import AboutTensors
from conformance.judging.asking import Settings
from oracles.backend.backend_supervisor import LaunchConfig
from oracles.backend.client import Client
from oracles.backend.loading import close, load_isolated
from oracles.backend.replies import Answered, Crashed, Declined, Malformed, Raised, Reply
from oracles.registry import Backend
from reports.judgement import Judgement
from reports.problems import WrongTensor
from specs.selection import case_named
from tests.conformance.processes import ROOT, castigate

QUANTIZER = Path(__file__).with_name("data") / "quantizer.py"
EXAMPLE = ROOT / "examples" / "vendor_python" / "program.py"
INT4 = case_named("onnx-quantize-linear:25/float32/int4/scale:float32/form:tensor")
TENSORS = {
    "x": np.array([1, -2, 0.5], np.float32).view(np.uint32),
    "scale": np.array(0.5, np.float32).view(np.uint32),
    "zero": np.array(1, np.uint8),
}
CODES = [3, 0xD, 2]
Load = Callable[..., Backend]


def command(program: Path, *words: str) -> str:
    return "exec:" + shlex.join([sys.executable, str(program), *words])


@pytest.fixture(scope="module")
def load() -> Iterator[Load]:
    """Start each command once."""
    backends: dict[str, Backend] = {}

    def load_program(program: Path, *words: str) -> Backend:
        name = command(program, *words)
        if name not in backends:
            backends[name] = load_isolated(name, LaunchConfig(seconds=20.0))
        return backends[name]

    yield load_program
    for backend in backends.values():
        close(backend)


def ask(backend: Backend) -> Reply:
    [reply] = Client(backend).send([AboutTensors(INT4, TENSORS)])
    return reply


def judge(backend: Backend, case: str) -> Judgement:
    return BackendJudge(backend, {}, Settings()).judge(case_named(case))


@pytest.mark.parametrize(
    "case",
    [
        "onnx-quantize-linear:25/float32/int8/scale:float16/form:tensor",
        "onnx-quantize-linear:25/float16/float4e2m1/scale:float16/form:block/block:16",
        "onnx-dequantize-linear:25/uint4/float16/scale:float16/form:tensor",
        "onnx-dynamic-quantize-linear:11/float32/uint8",
        "webnn-quantize-linear:draft/float32/uint8/scale:float32/form:axis",
        "mx-blocks:1/float32/float4e2m1/rule:floor/block:32",
        "nvfp4-blocks:1/float32/float4e2m1/rule:round-up/global:given/block:16",
        "mx-blocks-decode:1/float8e5m2/float32/block:32",
    ],
)
def test_every_operation_travels_with_all_its_tensors(case: str, load: Load) -> None:
    assert judge(load(QUANTIZER, "rightly"), case).verdict == "conforms"


def test_tensors_go_and_come_as_they_are(load: Load) -> None:
    reply = ask(load(QUANTIZER, "rightly"))
    assert isinstance(reply, Answered)
    assert (reply.value["y"].tolist(), reply.value["y"].dtype) == (CODES, np.uint8)


INVALID = "the process sent an invalid reply: "
NOT_AN_ANSWER = INVALID + "not an answer of the protocol "
CRASHES = {
    "unknown-name": INVALID + "a tensor `z` that was not asked for",
    "twice": INVALID + "two tensors `y`",
    "with-dtype": NOT_AN_ANSWER + "(tensors.tensors.0.dtype: the protocol has no such member)",
    "no-shape": NOT_AN_ANSWER + "(tensors.tensors.0.shape: this member is missing)",
    "short": INVALID + "an array of 3 bytes, of which 2 came",
    "long": INVALID + "a payload of 4 bytes for arrays of 3 bytes",
    "huge": INVALID + "a payload of 4194304 bytes; at most 1048576 are allowed",
    "values": INVALID + "an answer `values` that was not asked for",
    "dies": "the process ended by itself with code 7",
}


@pytest.mark.parametrize("deed", CRASHES)
def test_a_malformed_answer_is_a_crash_in_one_line(deed: str, load: Load) -> None:
    reply = ask(load(QUANTIZER, deed))
    assert isinstance(reply, Crashed)
    assert str(reply.death) == CRASHES[deed]


def test_refusals_and_wrong_results_are_those_of_a_cast(load: Load) -> None:
    refused = ask(load(QUANTIZER, "refuses"))
    assert isinstance(refused, Raised)
    assert refused.text == "ValueError: no"
    declined = ask(load(QUANTIZER, "declines"))
    assert isinstance(declined, Declined)
    assert declined.text == "not today"
    for deed, text in {
        "no-result": "the answer has no tensor `y`",
        "wide-codes": "int4",
    }.items():
        reply = ask(load(QUANTIZER, deed))
        assert isinstance(reply, Malformed), reply
        assert text in reply.text
    judged = judge(load(QUANTIZER, "other-shape"), INT4.id)
    assert judged.verdict == "violates"


@pytest.mark.parametrize(
    ("deed", "reason"),
    [("casts", "quantizer does not quantize"), ("has-no-scales", "quantizer has no float32")],
)
def test_a_program_is_asked_only_what_it_has_named(deed: str, reason: str, load: Load) -> None:
    declined = ask(load(QUANTIZER, deed))
    assert isinstance(declined, Declined)
    assert declined.text == reason


@pytest.mark.parametrize("version", ["10", "19", "21", "25"])
@pytest.mark.parametrize("target", ["int8", "uint8"])
def test_the_example_conforms(target: str, version: str, load: Load) -> None:
    case = f"onnx-quantize-linear:{version}/float32/{target}/scale:float32/form:tensor"
    judgement = judge(load(EXAMPLE), case)
    assert (judgement.verdict, judgement.problems) == ("conforms", ())
    assert judgement.inputs > 1000


def test_the_example_declines_what_it_lacks(load: Load) -> None:
    backend = load(EXAMPLE)
    assert judge(backend, INT4.id).message == "numpy has no int4"
    for case in (
        "onnx-quantize-linear:25/float32/int8/scale:float32/form:axis",
        "onnx-dequantize-linear:25/int8/float32/scale:float32/form:tensor",
    ):
        judgement = judge(backend, case)
        assert judgement.verdict == "unsupported"
        assert judgement.message == "only QuantizeLinear by one float32 scale"


FAULTS = {
    "truncates-quotients": ("np.rint(", "np.trunc("),
    "adds-zero-points-before-rounding": (
        '["scale"]).astype("float64") + tensors["zero"]',
        '["scale"] + np.float32(tensors["zero"]))',
    ),
    "multiplies-by-the-reciprocal": ('["x"] / tensors["scale"]', '["x"] * (1 / tensors["scale"])'),
    "leaves-out-lowest-codes": ("ends.min, ends.max", "ends.min + 1, ends.max"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_the_example_is_found_and_named(fault: str, load: Load, tmp_path: Path) -> None:
    text, (right, wrong) = EXAMPLE.read_text(encoding="utf-8"), FAULTS[fault]
    assert text.count(right) == 1
    program = tmp_path / "program.py"
    program.write_text(text.replace(right, wrong), encoding="utf-8")
    case = "onnx-quantize-linear:25/float32/int8/scale:float32/form:tensor"
    judgement = judge(load(program), case)
    assert judgement.verdict == "violates"
    found = [each.followed for each in judgement.problems if isinstance(each, WrongTensor)]
    assert {*found} == {(fault,)}  # some of it where a quotient is near a tie, and only deviates


def test_the_self_test_checks_every_operation() -> None:
    code, out, err = castigate("selftest", "--json", command(QUANTIZER, "rightly"))
    assert (code, err) == (0, "")
    results = [json.loads(line) for line in out.splitlines()]
    checks = {"quantize", "dequantize", "dynamic-quantize", "block-quantize", "block-dequantize"}
    asked = [each for each in results if each["check"] in checks]
    assert {each["check"] for each in asked} == checks
    assert {each["result"] for each in asked} == {"right"}
    assert {"float32 to int8", "float16 to float4e2m1"} <= {each["subject"] for each in asked}


@pytest.mark.parametrize(
    ("deed", "result"),
    [
        ("zeros", "`y` is 0x00, not 0x03, at 0 (125 of 125 are wrong)"),
        ("other-shape", "`y` has shape (1, 125), `x` (125,)"),
        ("short", f"crashed: {INVALID}an array of 125 bytes, of which 124 came"),
        ("refuses", "error: ValueError: no"),
        ("no-result", "invalid answer: the answer has no tensor `y`"),
    ],
)
def test_the_self_test_finds_what_is_broken(deed: str, result: str) -> None:
    code, out, err = castigate("selftest", "--json", command(QUANTIZER, deed))
    assert (code, err) == (1, "")
    results = {
        (each["check"], each["subject"]): (each["result"], each["is_broken"])
        for each in map(json.loads, out.splitlines())
    }
    assert results["quantize", "float32 to int8"] == (result, True)


POLICY = """\
policy: quantizes
title: QuantizeLinear by one scale
documents: ['onnx-quantize-linear:25']
levels: [required, recommended]
tier: quick
seed: 0
may-be-unsupported: ['onnx-quantize-linear:25/{int32,float16,bfloat16}/**',
  'onnx-quantize-linear:25/float32/{int4,int2,uint4,uint2}/**', '**/precision:*',
  'onnx-quantize-linear:25/float32/float*/**', '**/form:axis', '**/form:block/**',
  '**/scale:{float16,bfloat16,int32,float8e8m0}/**']
"""


@pytest.mark.nightly
def test_a_gate_certifies_the_example_and_fails_a_fault(tmp_path: Path) -> None:
    """Two gates and a replay: CI judges programs above, and has gates in `test_gate_command.py`."""
    policy, faulty = tmp_path / "policy.yaml", tmp_path / "faulty.py"
    policy.write_text(POLICY, encoding="utf-8")
    right, wrong = FAULTS["truncates-quotients"]
    faulty.write_text(EXAMPLE.read_text().replace(right, wrong), encoding="utf-8")
    for program, expected in ((EXAMPLE, 0), (faulty, 1)):
        folder = tmp_path / str(expected)
        backend = f"--backend={command(program)}"
        code, out, _ = castigate("gate", backend, f"--policy={policy}", f"--out={folder}")
        assert code == expected, out
        assert "12 of 454 cases answered" in out
    certificate = str(tmp_path / "0" / "certificate.json")
    backend = f"--backend={command(EXAMPLE)}"
    code, out, _ = castigate("verify", certificate, "--replay=2", backend)
    assert (code, out.splitlines()[-1].split()) == (
        0, ["result", "pass;", "the", "certificate", "holds"],
    ), out  # fmt: skip
