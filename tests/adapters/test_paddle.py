"""paddle on its roads: eager, and as static programs of two kinds."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from oracles.adapters import paddle as adapter
from oracles.adapters.paddle_tensors import DTYPES, Tensors
from oracles.protocol import Unsupported, WithBind, WithCall, WithRoad
from oracles.registry import Backend
from oracles.smoke_check import smoke
from specs.cases import Case
from specs.formats import format_named, formats
from tests.adapters.bound_calls import BoundCalls
from tests.adapters.checks import compared
from tests.adapters.common import (
    assert_same,
    bits_of,
    layouts,
    onnx_case,
    patterns_of,
    run_script,
    skip_without,
    some_patterns,
)

ROADS = [None, *adapter.VARIANTS]
NO_PROGRAM_TAKES = ("float8e5m2", "uint16", "uint32", "uint64")
NO_PROGRAM_GIVES = ("uint16", "uint32", "uint64")
NO_FETCH = (*NO_PROGRAM_GIVES, "float8e4m3fn", "float8e5m2")
COUNT = 101
"""Odd, so that vectors end short of the tensor's end."""


def made(variant: str | None = None) -> Any:
    skip_without("paddle")
    return adapter.Paddle(variant)


@pytest.fixture(scope="module", params=ROADS, ids=lambda road: road or "eager")
def oracle(request: pytest.FixtureRequest) -> Any:
    return made(request.param)


@pytest.fixture(scope="module")
def eager() -> Any:
    return made()


@pytest.fixture(scope="module")
def static() -> Any:
    return made("static")


@pytest.fixture(scope="module")
def executor() -> Any:
    return made("executor")


def is_offered(oracle: Any, case: Case) -> bool:
    if oracle._variant is None:
        return True
    lacks = NO_FETCH if oracle._variant == "executor" else NO_PROGRAM_GIVES
    return case.source not in NO_PROGRAM_TAKES and case.target not in lacks


class TestIdentity:
    def test_nothing_changes_on_the_way_in_and_out(self, oracle: Any) -> None:
        assert smoke(Backend("paddle", oracle)) == {}

    @pytest.mark.parametrize("dtype", formats())
    def test_every_layout_of_every_dtype(self, eager: Any, dtype: str) -> None:
        bits = some_patterns(dtype)
        if dtype not in DTYPES:
            with pytest.raises(Unsupported, match=f"^paddle has no dtype {dtype}$"):
                eager.identity(dtype, bits)
            return
        views = [bits, bits[:0], bits[1:2].reshape(()), np.resize(bits, (1, 3, 1, 5, 1))]
        for view in (*views, *layouts(np.resize(bits, 12)).values()):
            assert_same(eager.identity(dtype, view), view)

    def test_the_answer_is_a_copy(self, eager: Any) -> None:
        bits = bits_of("int64", [1, 2])
        answer = eager.identity("int64", bits)
        bits[:] = 0
        assert answer.tolist() == [1, 2]

    def test_a_tensor_of_another_dtype_is_not_read(self, eager: Any) -> None:
        tensors: Tensors = eager._tensors
        x = tensors.tensor("uint16", bits_of("uint16", [1]))
        assert tensors.name(x) == "uint16"
        with pytest.raises(TypeError, match=r"^asked for bfloat16, got"):
            tensors.bits("bfloat16", x)


# Computed by hand from the formats' fields.
KNOWN: list[tuple[str, str, dict[int, int]]] = [
    ("float64", "float32", {0x3FF8 << 48: 0x3FC00000, 0xC000 << 48: 0xC0000000}),
    ("float32", "float64", {0x3FC00000: 0x3FF8 << 48}),
    ("float32", "float16", {0x3FC00000: 0x3E00, 0xC0000000: 0xC000, 0: 0}),
    ("float16", "float32", {0x3E00: 0x3FC00000, 0x0001: 0x33800000}),
    ("float32", "bfloat16", {0x3FC00000: 0x3FC0, 0xC0000000: 0xC000}),
    ("bfloat16", "float32", {0x3FC0: 0x3FC00000}),
    ("float32", "float8e4m3fn", {0x3FC00000: 0x3C, 0xC0000000: 0xC0}),
    ("float8e4m3fn", "float32", {0x3C: 0x3FC00000, 0x7E: 0x43E00000}),
    ("float32", "float8e5m2", {0x3FC00000: 0x3E, 0xC0000000: 0xC0}),
    ("float8e5m2", "float32", {0x3E: 0x3FC00000}),
    ("float32", "int32", {0x3FC00000: 1, 0xC0400000: 0xFFFFFFFD}),
    ("int16", "int8", {200: 0xC8, 0xFFFF: 0xFF, 5: 5}),
    ("int64", "int32", {0xFFFFFFFFFFFFFFFE: 0xFFFFFFFE, 9: 9}),
    ("uint8", "float32", {200: 0x43480000}),
    ("uint16", "float32", {3: 0x40400000, 0xFFFF: 0x477FFF00}),
    ("float32", "uint16", {0x40400000: 3, 0x477FFF00: 0xFFFF}),
    ("uint32", "uint64", {0xFFFFFFFF: 0xFFFFFFFF, 7: 7}),
    ("uint64", "uint32", {0x1_0000_0007: 7}),
    ("bool", "float32", {1: 0x3F800000, 0: 0}),
    ("float32", "bool", {0x40000000: 1, 0: 0}),
    ("complex64", "float32", {0xC0000000_3FC00000: 0x3FC00000}),
    ("complex64", "complex128", {0xC0000000_3FC00000: (0xC000 << 112) | (0x3FF8 << 48)}),
    ("complex128", "complex64", {(0xC000 << 112) | (0x3FF8 << 48): 0xC0000000_3FC00000}),
    ("int32", "int32", {7: 7, 0xFFFFFFFF: 0xFFFFFFFF}),
]
PAIRS = [onnx_case(source, target) for source, target, _ in KNOWN]


class TestCast:
    @pytest.mark.parametrize(
        ("source", "target", "pairs"), KNOWN, ids=[f"{row[0]}-{row[1]}" for row in KNOWN]
    )
    def test_known_values(
        self, oracle: Any, source: str, target: str, pairs: dict[int, int]
    ) -> None:
        case, bits = onnx_case(source, target), bits_of(source, list(pairs))
        if not is_offered(oracle, case):
            with pytest.raises(Unsupported, match=r"^(no static program: |the Executor fetches)"):
                oracle.cast(case, bits)
            return
        answer = oracle.cast(case, bits)
        assert answer.dtype == np.dtype(format_named(target).storage)
        assert patterns_of(answer) == list(pairs.values())

    def test_uint16_is_not_bfloat16(self, eager: Any, static: Any) -> None:
        case, bits = onnx_case("uint16", "bfloat16"), bits_of("uint16", [1])
        assert eager.cast(case, bits).tolist() == [0x3F80]
        with pytest.raises(Unsupported, match=r"takes uint16 for paddle\.bfloat16$"):
            static.cast(case, bits)

    def test_an_answer_shares_no_memory_with_the_question(self, oracle: Any) -> None:
        for target in ("float32", "float64"):
            bits = bits_of("float32", [0x3FC00000, 0x40000000])
            answer = oracle.cast(onnx_case("float32", target), bits)
            kept = answer.copy()
            bits[:] = 0
            answer += 1
            assert (answer - 1).tolist() == kept.tolist()

    def test_signalling_nans_keep_their_bits(self, oracle: Any) -> None:
        bits = bits_of("float32", [0x7F800001, 0xFFBFFFFF])
        assert_same(oracle.cast(onnx_case("float32", "float32"), bits), bits)

    @pytest.mark.parametrize("source", ["float32", "complex128"])
    def test_any_rank_any_layout(self, oracle: Any, source: str) -> None:
        case, flat = onnx_case(source, "float16"), bits_of(source, list(range(12)))
        flat.view(np.uint8)[-1] = 0x3F
        expected = dict(zip(patterns_of(flat), patterns_of(oracle.cast(case, flat)), strict=True))
        shapes = [(), (1,), (2, 3), (2, 1, 5), (1, 2, 3, 2), (2, 1, 2, 1, 3), (0,), (2, 0, 3)]
        views = {str(shape): np.resize(flat, shape) for shape in shapes} | layouts(flat)
        for name, view in views.items():
            answer = oracle.cast(case, view)
            assert (answer.shape, answer.dtype) == (view.shape, np.dtype("uint16")), name
            wanted = [expected[pattern] for pattern in patterns_of(view.ravel())]
            assert patterns_of(answer.ravel()) == wanted, name

    def test_the_static_road_runs_a_program(self, static: Any) -> None:
        static._programs.cast.cache_clear()
        to_static = static._paddle.jit.to_static
        with patch.object(static._paddle.jit, "to_static", wraps=to_static) as traced:
            for _ in range(2):
                static.cast(onnx_case("float32", "int8"), bits_of("float32", [0]))
        assert traced.call_count == 1
        assert traced.call_args.kwargs["full_graph"] is True

    def test_the_executor_runs_a_program_on_a_tensor_of_the_dtype(
        self, executor: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ran, real = [], executor._programs._executor.run

        def kept(program: Any, feed: Any, **more: Any) -> Any:
            operations = [one.name() for one in program.global_block().ops]
            ran.append((operations, str(feed["x"]._dtype())))
            return real(program, feed=feed, **more)

        monkeypatch.setattr(executor._programs._executor, "run", kept)
        # 0.625 and 1.5: were the bytes fed as int8, they would come back as they are.
        case, bits = onnx_case("float8e4m3fn", "int8"), bits_of("float8e4m3fn", [0x32, 0x3C])
        assert executor.cast(case, bits).tolist() == [0, 1]
        assert ran == [(["pd_op.data", "pd_op.cast"], "paddle.float8_e4m3fn")]
        assert executor._paddle.in_dynamic_mode()

    def test_a_wrong_program_is_caught(
        self, eager: Any, executor: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert compared(eager, executor, "int8", "int16") == ("conforms", "")
        paddle = executor._paddle

        def doubled(x: Any, dtype: Any) -> Any:
            return paddle.cast(x, dtype) + paddle.cast(x, dtype)

        built = partial(executor._programs._build, doubled)
        monkeypatch.setattr(executor._programs, "cast", built)
        verdict, message = compared(eager, executor, "int8", "int16")
        assert verdict != "conforms"
        assert "255 of 256 inputs answer otherwise than on paddle:0" in message

    def test_any_other_error_of_the_executor_passes(
        self, executor: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: Any, **__: Any) -> None:
            raise RuntimeError("out of luck")

        monkeypatch.setattr(executor._programs._executor, "run", fail)
        with pytest.raises(RuntimeError, match="out of luck"):
            executor.cast(onnx_case("float32", "int8"), bits_of("float32", [0]))
        assert executor._paddle.in_dynamic_mode()

    def test_a_single_element_like_paddles_mark_of_nothing_is_lost(self, static: Any) -> None:
        # Found in 3.3.1: to float16 the mark itself is an infinity.
        case, infinity = onnx_case("float32", "float16"), 0x7F800000
        assert static.cast(case, bits_of("float32", [infinity] * 2)).tolist() == [0x7C00] * 2
        with suppress(TypeError):
            assert static.cast(case, bits_of("float32", [infinity])).tolist() == [0x7C00]
        call = static.bind(case, bits_of("float32", [infinity, infinity]))
        assert call().tolist() == [0x7C00] * 2


class TestRefusals:
    def test_a_mode(self, oracle: Any) -> None:
        case = onnx_case("float32", "float16", mode="CAST_FLOOR")
        for ask in (oracle.road, lambda case: oracle.cast(case, bits_of("float32", [0]))):
            with pytest.raises(Unsupported, match=r"takes no rounding mode: CAST_FLOOR$"):
                ask(case)

    @pytest.mark.parametrize("pair", [("float32", "int4"), ("string", "float32")])
    def test_a_dtype(self, oracle: Any, pair: tuple[str, str]) -> None:
        bits = bits_of(pair[0], ["1"] if pair[0] == "string" else [0])
        lacking = next(dtype for dtype in pair if dtype not in DTYPES)
        for ask in (oracle.road, lambda case: oracle.cast(case, bits)):
            with pytest.raises(Unsupported, match=f"^paddle has no dtype {lacking}$"):
                ask(onnx_case(*pair))

    def test_a_variant(self) -> None:
        made()
        with pytest.raises(Unsupported, match=r"no variant `jit`; .* are static, executor$"):
            adapter.Paddle("jit")

    def test_bind_refuses_in_the_words_of_cast(self, static: Any) -> None:
        case, bits = onnx_case("float32", "uint64"), bits_of("float32", [0])
        reasons = []
        for ask in (static.cast, static.bind):
            with pytest.raises(Unsupported) as refusal:
                ask(case, bits)
            reasons.append(str(refusal.value))
        assert reasons[0] == reasons[1]
        assert "\n" not in reasons[0]
        assert "uint64" in reasons[0]


class TestRoads:
    def test_one_road_one_pair(self, oracle: Any) -> None:
        assert isinstance(oracle, WithRoad)
        assert oracle.road(onnx_case("float32", "float16")) == "float32->float16"
        assert oracle.road(onnx_case("float32", "float16", 9)) == "float32->float16"


class TestBinding(BoundCalls):
    @pytest.mark.parametrize("case", PAIRS, ids=[f"{one.source}-{one.target}" for one in PAIRS])
    def test_every_refill_is_answered_as_cast_answers_it(self, oracle: Any, case: Case) -> None:
        if not is_offered(oracle, case):
            pytest.skip("no static program")
        bits = np.zeros(COUNT, format_named(case.source).storage)
        assert isinstance(oracle, WithBind)
        call = oracle.bind(case, bits)
        for seed in range(3):
            raw = np.frombuffer(np.random.default_rng(seed).bytes(bits.nbytes), bits.dtype)
            bits[:] = raw & 1 if case.source == "bool" else raw
            asked = bits.copy()
            answer = call()
            assert_same(answer, oracle.cast(case, asked.copy()))
            assert_same(bits, asked)

    def test_no_answer_lies_in_the_questions_memory(self, oracle: Any) -> None:
        for target in ("int32", "int64"):
            bits = bits_of("int32", [1, 2])
            answer = oracle.bind(onnx_case("int32", target), bits)()
            bits[:] = 0
            assert answer.tolist() == [1, 2]


FLOATS = [0x3FC00000, 0xC0000000, 0x7F800001, 0xFFFFFFFF, 0x7F7FFFFF, 0x00000001]
SCRIPTS: list[tuple[str | None, Case, list[int]]] = [
    (None, onnx_case("float32", "bfloat16"), FLOATS),
    (None, onnx_case("uint32", "float8e5m2"), [1, 3, 0xFFFFFFFF]),
    (None, onnx_case("bool", "complex128"), [0, 1]),
    (None, onnx_case("complex128", "uint16"), [0x3FF8 << 48, 1 << 127]),
    ("static", onnx_case("float32", "float8e4m3fn"), FLOATS * 4),
    ("static", onnx_case("float8e4m3fn", "complex64"), [0x3C, 0xFF]),
    ("executor", onnx_case("float8e4m3fn", "bfloat16"), [0x3C, 0xFF]),
]


class TestScripts:
    @pytest.mark.parametrize(
        ("variant", "case", "patterns"),
        SCRIPTS,
        ids=[f"{row[0] or 'eager'}-{row[1].source}-{row[1].target}" for row in SCRIPTS],
    )
    def test_a_reproduction_prints_the_same_answers(
        self, variant: str | None, case: Case, patterns: list[int]
    ) -> None:
        oracle, bits = made(variant), bits_of(case.source, patterns)
        script = oracle.reproduce(case, bits)
        expected = list(zip(patterns, patterns_of(oracle.cast(case, bits)), strict=True))
        printed = [
            tuple(int(side, 16) for side in line.split(" -> ")) for line in run_script(script)
        ]
        assert printed == expected
        assert "castigate" not in script
        assert max(map(len, script.splitlines())) <= 100


QUIET = """\
import sys
import numpy as np
from oracles.adapters.paddle import Paddle
from specs.cases import Case

oracle = Paddle("static")
bits = np.zeros(3, np.uint16)
for pair in (("float16", "int8"), ("uint16", "float32")):
    try:
        oracle.cast(Case("onnx-cast", "25", *pair), bits)
    except Exception as error:
        print(type(error).__name__)
"""

ENDED = """\
import os
import signal
from oracles.adapters.paddle import Paddle

Paddle()
os.kill(os.getpid(), signal.SIGTERM)
"""


MANY = """\
import numpy as np
from oracles.adapters.paddle import Paddle
from specs.cases import Case

oracle = Paddle("static")
for _ in range(10_000):
    oracle.cast(Case("onnx-cast", "25", "float32", "int8"), np.zeros(3, np.uint32))
"""


class TestProcess:
    def test_a_program_and_the_next_question_do_not_wait_for_each_other(self, eager: Any) -> None:
        command = [sys.executable, "-c", MANY]
        subprocess.run(command, check=True, timeout=120)

    def test_nothing_is_printed_and_nothing_warned_of(self, eager: Any) -> None:
        command = [sys.executable, "-W", "error", "-c", QUIET]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "Unsupported\n", "")

    def test_a_signal_ends_the_process_without_paddles_traces(self, eager: Any) -> None:
        command = [sys.executable, "-c", ENDED]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (-15, "")

    def test_one_thread_on_the_cpu(self, oracle: Any) -> None:
        paddle = oracle._paddle
        assert paddle.device.get_device() == "cpu"
        assert paddle.get_flags("FLAGS_new_executor_serial_run") == {
            "FLAGS_new_executor_serial_run": True
        }
        assert isinstance(oracle, WithCall)
