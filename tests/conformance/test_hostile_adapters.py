"""A hostile adapter gets a verdict or a one-line error, and changes no other case's verdict."""

from __future__ import annotations

import os
import py_compile
import subprocess
import sys
from ast import literal_eval
from dataclasses import replace
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pytest

from conformance.driver import BackendJudge, drive
from conformance.judging.asking import Settings
from conformance.pair import judge_pair
from oracles.backend.backend_supervisor import LaunchConfig
from oracles.backend.loading import close, load_isolated
from oracles.protocol import row_limits_of
from oracles.registry import load_backend
from oracles.smoke_check import smoke
from reports.judgement import Judgement
from specs.errors import CastigateError
from specs.loader import documents
from specs.selection import case_named

HOSTILE = Path(__file__).with_name("data") / "hostile.py"
CASE = "onnx-cast:25/float8e5m2/float16"
HALF = "onnx-cast:25/float16/float32"
TO_INT = "onnx-cast:25/float16/int8"
TO_INT4 = "onnx-cast:25/uint8/int4"
TO_BOOL = "onnx-cast:25/uint8/bool"
TO_TEXT = "onnx-cast:25/int8/string"
REFUSED = "onnx-cast:25/float16/complex64"


def judge_of(name: str) -> BackendJudge:
    backend = load_backend(f"{HOSTILE}:{name}")
    return BackendJudge(backend, smoke(backend), Settings())


def judged(name: str, case: str, claimed: bool = True) -> Judgement:
    judge = judge_of(name)
    subject = judge.subject if claimed else replace(judge.subject, claimed=())
    [found] = drive(judge_pair(subject, [case_named(case)]), judge.client)
    return found


VERDICTS = [
    ("Honest", CASE, "conforms", ""),
    ("TooShort", CASE, "error", "the answer has shape (255,), the input (256,)"),
    ("OtherStorage", CASE, "error", "storage is uint64, float16 is held in uint16"),
    ("SwapsBytes", CASE, "error", "storage is >u2, float16 is held in uint16"),
    ("Flat", CASE, "violates", "the answer has shape (1,), the input ()"),
    ("Silent", CASE, "error", "the answer is NoneType, not a numpy array"),
    ("Listing", CASE, "error", "the answer is list, not a numpy array"),
    ("Scalars", CASE, "conforms", ""),
    ("TooWide", TO_INT4, "error", "the answer holds 0x1f, wider than int4"),
    ("BoolsOfAllOnes", TO_BOOL, "error", "the answer holds 0xff, wider than bool"),
    ("NumbersAsTexts", TO_TEXT, "error", "something else than texts"),
    ("Raises", CASE, "error", "on 0x00: ValueError: boom"),
    ("RaisesLines", CASE, "error", "on 0x00: ValueError: the first line"),
    ("RaisesEmpty", CASE, "error", "on 0x00: RuntimeError (hostile.py:"),
    ("Exits", CASE, "error", "SystemExit"),
    ("Skips", CASE, "error", "it wanted to end the run"),
    ("TurnsMatrices", CASE, "violates", "shape (2, 3): an element answers otherwise"),
    ("HidesItsShape", "onnx-cast:25/float16/bfloat16", "violates", "shape ()"),
    ("HidesBehindItsScript", CASE, "violates", ""),
    ("OneBuffer", "onnx-cast:25/float16/float8e5m2/saturate:1", "violates", ""),
    ("Masked", CASE, "error", "MaskedArray, not a numpy array"),
    ("SaysSurrogates", CASE, "error", "caf\\udce9"),
    ("Declines", CASE, "unsupported", "no such kernel"),
    ("RaisesOnOne", HALF, "error", "on 0x1234: ValueError: cannot do this one"),
    ("RaisesOnce", CASE, "error", "ValueError: warming up"),
    ("RaisesOnNan", TO_INT, "conforms", "open inputs: ValueError: NaN has no integer"),
    ("RaisesOnNan", HALF, "error", "on 0x7c01: ValueError: NaN has no integer"),
    ("RaisesOnNanAndLies", TO_INT, "violates", "open inputs: ValueError"),
    ("OddOnNan", TO_INT, "conforms", ""),
    ("OddOnNan", "onnx-cast:25/float16/float8e5m2/saturate:1", "violates", ""),
    ("Mutates", HALF, "conforms", ""),
    ("MutatesThenAnswers", HALF, "violates", ""),
    ("GivesItsInputBack", "onnx-cast:25/float16/float16", "conforms", ""),
    ("GivesItsInputBack", CASE, "error", "storage is uint8"),
    ("Chatters", CASE, "conforms", ""),
    ("WrongInLine", CASE, "violates", ""),
    ("ClaimsNothing", CASE, "differs", ""),
    ("Raises", REFUSED, "conforms", "ValueError: boom"),
    ("Declines", REFUSED, "unsupported", "no such kernel"),
    ("Silent", REFUSED, "error", "NoneType"),
    ("Dataclass", CASE, "conforms", ""),
]


@pytest.mark.parametrize(("name", "case", "verdict", "message"), VERDICTS)
def test_each_gets_its_verdict(name: str, case: str, verdict: str, message: str) -> None:
    found = judged(name, case)
    assert (found.verdict, message in found.message) == (verdict, True), found
    assert "\n" not in found.message
    assert len(found.message) < 400
    if verdict == "error":
        unclaimed = judged(name, case, claimed=False)
        assert (unclaimed.verdict, unclaimed.message) == ("differs", found.message)


def test_the_reference_is_never_judged_by_its_own_kernels() -> None:
    for name in ("reference", "conformance.families.reference:Reference"):
        backend = load_backend(name)
        assert BackendJudge(backend, {}, Settings()).subject.expectations.independent


def test_a_buffer_used_again_shows_the_answer_that_was_given() -> None:
    (found,) = judged("OneBuffer", "onnx-cast:25/float16/float8e5m2/saturate:1").divergences
    assert (found.smallest, found.answer, found.count) == (0x0000, 0x55, 1)


def test_open_inputs_that_raise_do_not_hide_the_others() -> None:
    found = judged("RaisesOnNanAndLies", TO_INT)
    assert (found.wrong, found.inputs) == (1, 1 << 16)
    assert [divergence.smallest for divergence in found.divergences] == [0x3C00]
    assert found.open_inputs == judged("RaisesOnNan", TO_INT).open_inputs > 2000


def test_inputs_changed_in_place_reach_nobody_else() -> None:
    cases = [CASE, HALF, "onnx-cast:24/float16/float32", "onnx-cast:25/float16/bfloat16", HALF]
    hostile, honest = judge_of("Mutates"), judge_of("Honest")
    for case in map(case_named, cases):
        assert (hostile.judge(case).verdict, honest.judge(case).verdict) == ("conforms",) * 2
    found = judged("MutatesThenAnswers", HALF)
    # All inputs but +0 get the answer to +0, NaNs too.
    assert found.wrong == (1 << 16) - 1
    assert judged("Honest", HALF).verdict == "conforms"


@pytest.mark.parametrize("name", ["ChangesOnTheWay", "ChangesInPlace"])
def test_an_adapter_that_changes_bits_is_blamed_itself(name: str) -> None:
    judge = judge_of(name)
    found = judge.judge(case_named(HALF))
    assert found.verdict == "error"
    assert found.message == (
        "the adapter, not the framework: float16: the way in and out turns 0x0000 into 0x0001"
    )
    assert judge.judge(case_named("onnx-cast:25/int8/int16")).verdict == "conforms"


def test_an_identity_that_raises_is_an_adapter_fault() -> None:
    assert "not the framework: float8e5m2: KeyError" in judged("LosesItsWay", CASE).message


LOAD_ERRORS = [
    ("NoCast", "is no oracle: it lacks cast; add cast(self, case, bits)"),
    ("NoVersion", "is no oracle"),
    ("Unmakeable", "OSError: no device at all"),
    ("NeedsMore", "TypeError"),
    ("NotHere", "not on this machine"),
    ("Missing", "there is no `Missing` in it"),
    ("RIGHT", "TypeError"),
    ("ExitsAtOnce", "SystemExit"),
    ("ClaimsText", "claims must be a tuple"),
    ("ClaimsNonsense", "claims `onnx_cast`, which is no document; did you mean `onnx-cast`?"),
    ("ClaimsNoVersion", "claims `cinn-cast:tvn`, but cinn-cast has no version `tvn`; did you mean "
                        "`cinn-cast:tvm`? its versions are tvm, torch-xla, 1.0"),
    ("LimitZero", "row_limits is `(0,)`; it must be a tuple of at most 16 whole numbers from 1"),
    ("LimitBelowZero", "row_limits is `(1, -1)`; it must be a tuple"),
    ("LimitTooLarge", "row_limits is `(1099511627776,)`; it must be a tuple"),
    ("LimitIsNoInteger", "row_limits is `(1024.5,)`; it must be a tuple"),
    ("LimitIsTrue", "row_limits is `(True,)`; it must be a tuple"),
    ("LimitIsText", "row_limits is `'65536'`; it must be a tuple"),
    ("LimitIsNumber", "row_limits is `65536`; it must be a tuple"),
    ("ManyLimits", "row_limits is `range(1, 16777216)`; it must be a tuple"),
    ("LimitsRaise", "OSError: no device at all"),
]  # fmt: skip


@pytest.mark.ci_runs_one_of(4)
@pytest.mark.parametrize(("name", "message"), LOAD_ERRORS)
def test_a_backend_that_cannot_be_loaded_is_one_line_of_error(name: str, message: str) -> None:
    for load in (load_backend, partial(load_isolated, config=LaunchConfig())):
        with pytest.raises(CastigateError) as caught:
            load(f"{HOSTILE}:{name}")
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)


def test_limits_of_every_kind_of_integer_are_loaded() -> None:
    assert row_limits_of(load_backend(f"{HOSTILE}:GoodLimits").oracle) == (1, 65536, 1 << 24)
    backend = load_isolated(f"{HOSTILE}:GoodLimits", LaunchConfig())
    assert row_limits_of(backend.oracle) == (1, 65536, 1 << 24)
    close(backend)


@pytest.mark.parametrize("text", ["def (", "import no_such_module", "raise OSError('no\\nway')"])
def test_a_file_or_module_that_cannot_be_loaded_is_one_line_of_error(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "castigate_unloadable.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    for name in (f"{tmp_path}/castigate_unloadable.py:A", "castigate_unloadable:A"):
        with pytest.raises(CastigateError, match=r"castigate_unloadable.*Error: ") as caught:
            load_backend(name)
        assert "\n" not in str(caught.value)


ADAPTER = """\
class Adapter:
    name, version = "adapter", "{version}"
    def cast(self, case, bits): return bits
"""


@pytest.mark.parametrize("name", ["{}/pyc_beside.py:Adapter", "pyc_beside:Adapter"])
def test_what_lies_compiled_beside_an_adapter_is_not_executed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "pyc_beside.py"
    file.write_text(ADAPTER.format(version="2"))
    compiled = py_compile.compile(str(file), doraise=True)
    assert compiled is not None
    other = Path(compiled).read_bytes()
    file.write_text(ADAPTER.format(version="1"))
    os.utime(file, (stamp := int.from_bytes(other[8:12], "little"), stamp))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "pyc_beside", raising=False)
    assert load_backend(name.format(tmp_path)).version == "1"


def test_a_missing_file_is_named() -> None:
    with pytest.raises(CastigateError, match=r"backend file /no/such\.py does not exist"):
        load_backend("/no/such.py:A")


def test_a_class_in_a_package_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "castigate_vendor"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "adapter.py").write_text(HOSTILE.read_text())
    monkeypatch.syspath_prepend(tmp_path)
    backend = load_backend("castigate_vendor.adapter:Honest")
    assert backend.claims("onnx-cast", "25")
    assert set(map(str, backend.claimed)) == set(documents())
    assert BackendJudge(backend, {}, Settings()).judge(case_named(CASE)).verdict == "conforms"


@pytest.mark.nightly
def test_in_a_real_run_every_one_gets_its_own_verdict(tmp_path: Path) -> None:
    expected = {name: verdict for name, case, verdict, _ in VERDICTS if case == CASE}
    options = [f"--backend={HOSTILE}:{name}" for name in expected]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--pyargs", "conformance"]
    command += ["-k", CASE, "--document=onnx-cast:25", "--junitxml=out.xml", *options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "INTERNALERROR" not in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    records = [
        literal_eval(str(entry.get("value")))
        for entry in ElementTree.parse(tmp_path / "out.xml").iter("property")
    ]
    found = {record["backend"].partition(".py:")[2]: record["verdict"] for record in records}
    # The document is named on the command line, so it also binds an adapter without claims.
    assert found == expected | {"ClaimsNothing": "violates"}
