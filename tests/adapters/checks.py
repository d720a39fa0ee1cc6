"""What any adapter of a plain cast must pass, whatever framework it drives."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from conformance.judging.backend_judge import BackendJudge, Settings
from conformance.judging.road_agreement import RoadAgreement
from conformance.running.selection import select
from oracles.protocol import Bits, Unsupported, WithRoad
from oracles.registry import Backend
from reports.diff.verdicts import Verdict
from specs.cases import Case
from specs.formats import format_named
from tests.adapters.common import (
    assert_same,
    bits_of,
    layouts,
    onnx_case,
    patterns_of,
    run_script,
    skip_without,
)
from tests.adapters.test_binding import COUNT, refill
from tests.adapters.test_casts import KNOWN, SHAPES
from tests.adapters.test_scripts import read


@contextmanager
def built(package: str, make: Callable[[], Any]) -> Iterator[Any]:
    """An oracle whose framework may warn when imported; the environment is put back afterwards."""
    skip_without(package)
    before = dict(os.environ)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        oracle = make()
    yield oracle
    os.environ.clear()
    os.environ.update(before)


def known(dtypes: Collection[str]) -> list[Any]:
    """The rows of known values between some dtypes."""
    rows = [row[:3] for row in KNOWN if row[0] in dtypes and row[1] in dtypes]
    return [pytest.param(*row, id=f"{row[0]}-{row[1]}") for row in rows]


def assert_known(oracle: Any, source: str, target: str, pairs: dict[Any, Any]) -> None:
    answer = oracle.cast(onnx_case(source, target), bits_of(source, list(pairs)))
    assert answer.dtype == np.dtype(format_named(target).storage)
    assert patterns_of(answer) == list(pairs.values())


def assert_moves_any_layout(move: Callable[[Bits], Bits], bits: Bits) -> None:
    """Bits come out as they went in, from any shape and layout."""
    views = [bits, bits[:0], bits[1:2].reshape(()), np.resize(bits, (1, 3, 1, 5, 1))]
    for view in (*views, *layouts(np.resize(bits, 12)).values()):
        assert_same(move(view), view)


def assert_casts_any_layout(oracle: Any, source: str, target: str, same: dict[int, int]) -> None:
    """A table of known values holds in any shape and layout."""
    case, flat = onnx_case(source, target), np.resize(bits_of(source, list(same)), 12)
    views = {str(shape): np.resize(flat, shape) for shape in SHAPES} | layouts(flat)
    for name, view in views.items():
        answer = oracle.cast(case, view)
        assert isinstance(answer, np.ndarray), name
        wanted = [same[pattern] for pattern in patterns_of(view.ravel())]
        assert_same(answer, bits_of(target, wanted).reshape(view.shape))


def assert_shares_no_memory(oracle: Any, dtype: str) -> None:
    """Not even where a framework takes numpy's memory for its own, which is aligned memory."""
    memory = np.zeros(4096, np.uint8)
    start = -memory.ctypes.data % 64
    bits = memory[start : start + 2048].view(format_named(dtype).storage)
    for answer in (oracle.cast(onnx_case(dtype, dtype), bits), oracle.identity(dtype, bits)):
        bits[:] = 1
        assert not answer.any()
        answer[:] = 2
        assert (bits == 1).all()
        bits[:] = 0


def assert_follows_its_buffer(oracle: Any, case: Case) -> None:
    """A bound call answers as ``cast`` does, whatever the buffer then holds."""
    bits = np.zeros(COUNT, format_named(case.source).storage)
    call = oracle.bind(case, bits)
    for seed in range(3):
        refill(bits, case.source, seed)
        asked = bits.copy()
        answer = call()
        assert_same(answer, oracle.cast(case, asked.copy()))
        assert_same(bits, asked)


def assert_repeats(oracle: Any, case: Case, patterns: list[Any]) -> None:
    """The script of a case prints what the oracle answers."""
    bits = bits_of(case.source, patterns)
    script = oracle.reproduce(case, bits)
    expected = list(zip(patterns, patterns_of(oracle.cast(case, bits)), strict=True))
    printed = [tuple(read(side) for side in line.split(" -> ")) for line in run_script(script)]
    assert printed == expected
    assert "castigate" not in script
    assert max(map(len, script.splitlines())) <= 100


def compared(first: Any, second: Any, source: str, target: str) -> tuple[Verdict, str]:
    """What ``-k variants`` says of two roads of a framework on one pair."""
    backend_judges = [
        BackendJudge(Backend(f"{one.name}:{place}", one), {}, Settings())
        for place, one in enumerate((first, second))
    ]
    cases = [case for case in select([]) if (case.source, case.target) == (source, target)]
    _, judgement = RoadAgreement(*backend_judges, cases).judge()
    return judgement.verdict, judgement.message


class PlainRoads:
    """The road of a cast that knows of nothing but its pair; a test class inherits it."""

    def test_the_pair_is_the_road(self, oracle: Any) -> None:
        assert isinstance(oracle, WithRoad)
        plain = (("mode", "CAST_NONE"), ("satmode", "off"))
        for case in (
            onnx_case("float32", "float16"),
            onnx_case("float32", "float16", 13),
            Case("pypto-cast", "0.2", "float32", "float16", plain),
        ):
            assert oracle.road(case) == "float32->float16"

    @pytest.mark.parametrize("ask", ["cast", "bitcast", "bind"])
    def test_no_mode_that_a_plain_cast_lacks(self, oracle: Any, ask: str) -> None:
        case = onnx_case("float32", "float16", mode="CAST_FLOOR")
        with pytest.raises(Unsupported, match=r"takes no rounding mode: CAST_FLOOR$"):
            getattr(oracle, ask)(case, bits_of("float32", [0]))
        with pytest.raises(Unsupported, match=r"CAST_FLOOR$"):
            oracle.road(case)
