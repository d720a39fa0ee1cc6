"""What every bound call must do, whatever it drives."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from tests.adapters.common import assert_same, bits_of, onnx_case, patterns_of


class BoundCalls:
    """A test class inherits these tests, and has a fixture `oracle`."""

    @pytest.mark.parametrize("step", [1, 2, -1])
    def test_views_are_followed(self, oracle: Any, step: int) -> None:
        memory = bits_of("float32", [0x3FC00000, 0xC0000000, 0x40000000, 0])
        view = memory[::step]
        view.flags.writeable = False
        case = onnx_case("float32", "float16")
        if oracle.name == "torch" and step < 0:
            pytest.skip("torch has no negative strides: its bits would be a copy")
        call = oracle.bind(case, view)
        memory[:] = memory[::-1].copy()
        assert_same(call(), oracle.cast(case, view))

    def test_calls_do_not_disturb_each_other(self, oracle: Any) -> None:
        case = onnx_case("float32", "float16")
        buffers = [bits_of("float32", [code] * 3) for code in (0x3FC00000, 0xC0000000)]
        calls = [oracle.bind(case, bits) for bits in buffers]
        answers = [call() for call in calls]
        assert [patterns_of(answer) for answer in answers] == [[0x3E00] * 3, [0xC000] * 3]

    def test_a_call_keeps_its_buffer_alive(self, oracle: Any) -> None:
        bits = bits_of("float32", [0x3FC00000])
        held = weakref.ref(bits)
        call = oracle.bind(onnx_case("float32", "float16"), bits)
        del bits
        gc.collect()
        assert held() is not None
        assert patterns_of(call()) == [0x3E00]
