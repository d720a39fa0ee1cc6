"""paddle beyond the contract: its static programs, its views, and its process."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from oracles.adapters.paddle import VARIANTS
from oracles.adapters.paddle_tensors import PaddleTensors
from oracles.adapters.scripted import Statements
from oracles.protocol import Unsupported, WithBitcast, WithCall
from specs.formats import format_named
from tests.adapters.common import bits_of, compared, onnx_case, some_patterns, view_case
from tests.adapters.contract import make
from tests.adapters.rewording import Refusal
from tests.conformance.processes import SECONDS_TO_END


@pytest.fixture(scope="module", params=[None, *VARIANTS], ids=lambda road: road or "eager")
def oracle(request: pytest.FixtureRequest) -> Any:
    return make("paddle", request.param)


@pytest.fixture(scope="module")
def eager() -> Any:
    return make("paddle")


@pytest.fixture(scope="module")
def static() -> Any:
    return make("paddle", "static")


@pytest.fixture(scope="module")
def executor() -> Any:
    return make("paddle", "executor")


class TestTensors:
    def test_identity_returns_a_copy(self, eager: Any) -> None:
        bits = bits_of("int64", [1, 2])
        answer = eager.identity("int64", bits)
        bits[:] = 0
        assert answer.tolist() == [1, 2]

    def test_a_tensor_of_another_dtype_is_not_read(self, eager: Any) -> None:
        tensors: PaddleTensors = eager._tensors
        x = tensors.tensor("uint16", bits_of("uint16", [1]))
        assert tensors.name(x) == "uint16"
        with pytest.raises(TypeError, match=r"^asked for bfloat16, got"):
            tensors.bits("bfloat16", x)


class TestPrograms:
    def test_uint16_is_not_bfloat16(self, eager: Any, static: Any) -> None:
        case, bits = onnx_case("uint16", "bfloat16"), bits_of("uint16", [1])
        assert eager.cast(case, bits).tolist() == [0x3F80]
        with pytest.raises(Unsupported, match=r"takes uint16 for paddle\.bfloat16$"):
            static.cast(case, bits)

    def test_the_static_road_runs_a_program(self, static: Any) -> None:
        static.made.cache_clear()
        static.prepared.cache_clear()
        to_static = static._paddle.jit.to_static
        with patch.object(static._paddle.jit, "to_static", wraps=to_static) as traced:
            for _ in range(2):
                static.cast(onnx_case("float32", "int8"), bits_of("float32", [0]))
        assert traced.call_count == 1
        assert traced.call_args.kwargs["full_graph"] is True

    def test_the_executor_runs_a_program_on_a_tensor_of_the_dtype(
        self, executor: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ran, real = [], executor._paddle.static.Executor.run

        def recorded(self: Any, program: Any, feed: Any, **more: Any) -> Any:
            operations = [one.name() for one in program.global_block().ops]
            ran.append((operations, str(feed["x"]._dtype())))
            return real(self, program, feed=feed, **more)

        monkeypatch.setattr(executor._paddle.static.Executor, "run", recorded)
        # 0.625 and 1.5: were the bytes fed as int8, they would come back as they are.
        case, bits = onnx_case("float8e4m3fn", "int8"), bits_of("float8e4m3fn", [0x32, 0x3C])
        assert executor.cast(case, bits).tolist() == [0, 1]
        assert ran == [(["pd_op.data", "pd_op.cast"], "paddle.float8_e4m3fn")]
        assert executor._paddle.in_dynamic_mode()

    def test_a_wrong_program_is_caught(
        self, eager: Any, executor: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert compared(eager, executor, "int8", "int16") == ("conforms", "")
        steps = executor.steps

        def doubled(*asked: Any) -> Statements:
            right = steps(*asked)
            return Statements(right.each + "y = y + y\n", right.once)

        monkeypatch.setattr(executor, "steps", doubled)
        executor.made.cache_clear()
        verdict, message = compared(eager, executor, "int8", "int16")
        assert verdict != "conforms"
        assert "255 of 256 inputs answer otherwise than on paddle:0" in message

    def test_any_other_error_of_the_executor_passes(
        self, executor: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: Any, **__: Any) -> None:
            raise RuntimeError("out of luck")

        monkeypatch.setattr(executor._paddle.static.Executor, "run", fail)
        with pytest.raises(RuntimeError, match="out of luck"):
            executor.cast(onnx_case("float32", "int8"), bits_of("float32", [0]))
        assert executor._paddle.in_dynamic_mode()

    def test_a_single_infinity_is_paddles_mark_of_an_empty_output(self, static: Any) -> None:
        # Found in 3.3.1: paddle's mark is a large number, which is an infinity in float16.
        case, infinity = onnx_case("float32", "float16"), 0x7F800000
        assert static.cast(case, bits_of("float32", [infinity] * 2)).tolist() == [0x7C00] * 2
        with suppress(TypeError):
            assert static.cast(case, bits_of("float32", [infinity])).tolist() == [0x7C00]
        call = static.bind(case, bits_of("float32", [infinity, infinity]))
        assert call().tolist() == [0x7C00] * 2


BOOL_BYTES = [0, 1, 2, 128, 255]


# source, target, shape, the answer's shape: the last dimension scales.
VIEWS: list[tuple[str, str, tuple[int, ...], tuple[int, ...]]] = [
    ("float32", "int32", (2, 3), (2, 3)),
    ("float32", "int32", (), ()),
    ("float32", "float16", (10,), (20,)),
    ("float64", "int8", (2, 1), (2, 8)),
    ("float32", "uint64", (2, 4), (2, 2)),
    ("bool", "int64", (1024,), (128,)),
    ("complex128", "float64", (3,), (6,)),
    ("float16", "int16", (0,), (0,)),
    ("float16", "bfloat16", (3, 0, 2), (3, 0, 2)),
    ("uint32", "uint32", (2,), (2,)),
]


class TestViews:
    @pytest.mark.parametrize(("source", "target", "shape", "new_shape"), VIEWS)
    def test_the_bits_stay_in_paddles_shape(
        self,
        eager: Any,
        source: str,
        target: str,
        shape: tuple[int, ...],
        new_shape: tuple[int, ...],
    ) -> None:
        assert isinstance(eager, WithBitcast)
        bits = np.resize(some_patterns(source), shape)
        answer = eager.bitcast(view_case(source, target), bits)
        assert answer.shape == new_shape
        assert answer.dtype == np.dtype(format_named(target).storage)
        assert answer.tobytes() == bits.tobytes()
        assert not np.shares_memory(answer, bits)

    def test_a_byte_that_is_neither_0_nor_1_stays_in_a_bool(self, eager: Any) -> None:
        answer = eager.bitcast(view_case("uint8", "bool"), bits_of("uint8", BOOL_BYTES))
        assert answer.tolist() == BOOL_BYTES

    @pytest.mark.parametrize(
        ("source", "target", "shape", "message"),
        [
            ("float32", "float16", (), r"strides\[-1\] must be 1"),
            ("float32", "float64", (2, 3), "must be multiple of 2"),
            ("bool", "int64", (1,), "must be multiple of 8"),
            ("float16", "int8", (0,), "must be 1"),
            ("float16", "float32", (3, 0, 2), "must be 1"),
        ],
    )
    def test_a_refusal_is_paddles_own_error(
        self, eager: Any, source: str, target: str, shape: tuple[int, ...], message: str
    ) -> None:
        bits = np.zeros(shape, format_named(source).storage)
        with pytest.raises(ValueError, match=message):
            eager.bitcast(view_case(source, target), bits)

    @pytest.mark.parametrize("source", ["uint16", "uint32", "uint64"])
    def test_a_source_without_a_kernel_is_unsupported(self, eager: Any, source: str) -> None:
        bits = np.zeros(4, format_named(source).storage)
        with pytest.raises(Unsupported, match="`view_dtype` is not registered"):
            eager.bitcast(view_case(source, "uint8"), bits)

    @pytest.mark.parametrize("variant", VARIANTS)
    def test_a_view_has_no_static_program(self, variant: str) -> None:
        reason = r"^no static program: We only support 'view\(\)' in dynamic graph mode"
        with pytest.raises(Unsupported, match=reason) as caught:
            make("paddle", variant).bitcast(view_case("float32", "int32"), bits_of("float32", [0]))
        assert "\n" not in str(caught.value)


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
    def test_a_program_and_the_next_cast_do_not_deadlock(self, eager: Any) -> None:
        command = [sys.executable, "-c", MANY]
        subprocess.run(command, check=True, timeout=SECONDS_TO_END)

    def test_nothing_is_printed_or_warned_about(self, eager: Any) -> None:
        command = [sys.executable, "-W", "error", "-c", QUIET]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "Unsupported\n", "")

    def test_a_signal_ends_the_process_without_paddles_traces(self, eager: Any) -> None:
        command = [sys.executable, "-c", ENDED]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (-15, "")

    def test_paddle_uses_one_thread_on_the_cpu(self, oracle: Any) -> None:
        paddle = oracle._paddle
        assert paddle.device.get_device() == "cpu"
        assert paddle.get_flags("FLAGS_new_executor_serial_run") == {
            "FLAGS_new_executor_serial_run": True
        }
        assert isinstance(oracle, WithCall)


def views(source: str) -> Any:
    return lambda oracle: oracle.bitcast(view_case(source, "uint8"), bits_of(source, [1]))


def casts(target: str) -> Any:
    return lambda oracle: oracle.cast(onnx_case("float64", target), bits_of("float64", [0]))


REFUSALS = {
    None: (views("uint32"), views("int32"), "is not registered"),
    "executor": (casts("float8e5m2"), casts("float16"), "[pd_op.fetch] kernel output args (0)"),
}


@pytest.mark.parametrize("variant", REFUSALS)
def test_what_paddle_says_decides_nothing(variant: str | None) -> None:
    refused, answered, words = REFUSALS[variant]
    Refusal(
        make=partial(make, "paddle", variant),
        refused=refused,
        answered=answered,
        place=lambda oracle: (oracle, "made"),
        failures=lambda oracle: [RuntimeError(words), ValueError(words)],
        is_maker=True,
    ).check()
