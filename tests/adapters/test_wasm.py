"""The backends wasmtime and node: what their modules convert, where they trap, what they refuse."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from oracles.adapters.node import Node
from oracles.adapters.wasm_modules import (
    LOW_PARTS,
    TYPES,
    Conversion,
    TrapError,
    copy_operation,
)
from oracles.protocol import Bits, NotInstalled, Unsupported
from oracles.registry import installed, installed_frameworks, load_backend
from specs.cases import Case
from specs.errors import CastigateError
from tests.adapters.common import (
    assert_follows_its_buffer,
    assert_moves_any_layout,
    assert_same,
    bits_of,
    onnx_case,
    run_script,
    some_patterns,
    view_case,
    wasm_case,
)
from tests.adapters.contract import make
from tests.conformance.processes import SECONDS_TO_END
from tests.specs.test_wasm_page import DEMOTED, OTHERS, TRAP, TRUNCATIONS, code

BACKENDS = [
    *(("wasmtime", variant) for variant in (None, "deterministic", "unoptimized")),
    *(("node", variant) for variant in (None, "liftoff", "turbofan")),
]
CANONICAL = 0x7FC0_0000
SIGNALING = 0x7FF0_0000_0000_0001
TO_INT32 = wasm_case("float32", "int32", operator="trunc")


@pytest.fixture(scope="module", params=BACKENDS, ids=lambda each: ":".join(filter(None, each)))
def oracle(request: pytest.FixtureRequest) -> Any:
    return make(*request.param)


def cast(oracle: Any, case: Case, *patterns: int) -> list[int]:
    answers: list[int] = oracle.cast(case, bits_of(case.source, [*patterns])).tolist()
    return answers


@pytest.mark.ci_runs_one_of(4)
@pytest.mark.parametrize(("source", "target", "value", "trunc", "trunc_sat"), TRUNCATIONS)
def test_truncations(
    oracle: Any, source: str, target: str, value: float, trunc: int | str, trunc_sat: int
) -> None:
    given = code(source, value)
    saturating = wasm_case(source, target, operator="trunc_sat")
    trapping = wasm_case(source, target, operator="trunc")
    assert cast(oracle, saturating, given) == [code(target, trunc_sat)]
    if trunc == TRAP:
        with pytest.raises(TrapError):
            cast(oracle, trapping, given)
    else:
        assert cast(oracle, trapping, given) == [code(target, float(trunc))]


@pytest.mark.parametrize(("source", "target", "value", "result"), OTHERS)
def test_other_conversions(
    oracle: Any, source: str, target: str, value: float, result: float
) -> None:
    given = code(source, value)
    assert cast(oracle, wasm_case(source, target), given, given) == [code(target, result)] * 2


@pytest.mark.parametrize(("value", "result"), DEMOTED)
def test_demotion(oracle: Any, value: float, result: int) -> None:
    assert cast(oracle, wasm_case("float64", "float32"), code("float64", value)) == [result]


def test_the_bits_above_a_low_part_are_not_its_sign() -> None:
    for source, bits in LOW_PARTS.items():
        for target in TYPES.keys() - {"float32", "float64"}:
            constant, _, name = Conversion(source, target, "x").instructions
            above = int(constant.split()[1], 16)
            assert above
            assert above % (1 << bits) == 0
            assert name == "x"


def test_a_trap_is_one_line_and_ends_nothing(oracle: Any) -> None:
    nan, fine = CANONICAL, 0x3FC0_0000
    for _ in range(2):
        with pytest.raises(TrapError) as caught:
            cast(oracle, TO_INT32, fine, nan)
        assert str(caught.value)
        assert "\n" not in str(caught.value)
        assert cast(oracle, TO_INT32, fine) == [1]


def test_a_bound_call_traps_only_on_what_its_buffer_holds(oracle: Any) -> None:
    bits = bits_of("float32", [0x3FC0_0000, CANONICAL])
    call = oracle.bind(TO_INT32, bits)
    with pytest.raises(TrapError):
        call()
    bits[1] = 0xC000_0000
    assert call().tolist() == [1, 0xFFFF_FFFE]


@pytest.mark.parametrize(
    "pair", ["float32-float64", "int64-uint32", "uint32-float32", "int8-int64"]
)
def test_every_refill_is_answered_as_cast_answers_it(oracle: Any, pair: str) -> None:
    assert_follows_its_buffer(oracle, wasm_case(*pair.split("-")))


def test_answers_outlive_the_call_and_its_memory(oracle: Any) -> None:
    case = wasm_case("int32", "int64")
    answers = [oracle.bind(case, bits_of("int32", [n] * 4096))() for n in range(50)]
    assert all((answer == n).all() for n, answer in enumerate(answers))


@pytest.mark.parametrize("dtype", [*TYPES, *LOW_PARTS])
def test_bits_come_out_unchanged_from_any_layout(oracle: Any, dtype: str) -> None:
    def move(bits: Bits) -> Bits:
        return np.asarray(oracle.identity(dtype, bits))

    assert_moves_any_layout(move, some_patterns(dtype, 99))


def test_no_elements_are_no_problem(oracle: Any) -> None:
    case = wasm_case("float32", "int64", operator="trunc")
    answer = oracle.cast(case, np.zeros((2, 0, 3), np.uint32))
    assert_same(answer, np.zeros((2, 0, 3), np.uint64))


def test_rows_beyond_a_page_of_memory(oracle: Any) -> None:
    bits = np.arange(300_001, dtype=np.uint32)
    assert_same(oracle.cast(wasm_case("uint32", "int64"), bits), bits.astype(np.uint64))


def test_two_threads_at_once(oracle: Any) -> None:
    case = wasm_case("uint32", "uint64")

    def many(n: int) -> bool:
        bits = np.full(1000, n, np.uint32)
        return all((oracle.cast(case, bits) == n).all() for _ in range(50))

    with ThreadPoolExecutor(2) as threads:
        assert all(threads.map(many, range(4)))


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (wasm_case("float32", "float32"), "no instruction from float32 to float32"),
        (wasm_case("int32", "uint32"), "no instruction from int32 to uint32"),
        (wasm_case("int8", "float32"), "no values of int8|no instruction from int8"),
        (onnx_case("float32", "float16"), "no values of float16"),
        (onnx_case("float32", "int8"), "no values of int8"),
        (wasm_case("float32", "int32", mode="CAST_FLOOR"), "takes no rounding mode: CAST_FLOOR"),
        (wasm_case("float32", "int32", unheard_of="1"), "takes no unheard_of: 1"),
        (wasm_case("float32", "int32", operator="round"), "no instruction from float32 to int32"),
    ],
)
def test_what_no_instruction_converts_is_refused_in_the_same_words(
    oracle: Any, case: Case, reason: str
) -> None:
    bits = bits_of(case.source, [0])
    for ask in (oracle.cast, oracle.bind, oracle.reproduce, lambda case, _: oracle.road(case)):
        with pytest.raises(Unsupported, match=reason):
            ask(case, bits)


def test_a_plain_cast_is_the_one_that_never_traps(oracle: Any) -> None:
    plain = onnx_case("float32", "int32", saturate="1")
    assert cast(oracle, plain, CANONICAL, 0x7F80_0000) == [0, 0x7FFF_FFFF]
    assert oracle.road(plain) == oracle.road(wasm_case("float32", "int32", operator="trunc_sat"))
    assert oracle.road(plain) != oracle.road(TO_INT32)


def test_reinterpret_exists_between_an_integer_and_a_float_of_one_width(oracle: Any) -> None:
    pattern = bits_of("float64", [SIGNALING])
    for source, target in (("float64", "uint64"), ("uint64", "float64")):
        assert_same(oracle.bitcast(view_case(source, target), pattern), pattern)
        assert "reinterpret" in oracle.bitcast_road(view_case(source, target))
    with pytest.raises(Unsupported, match=r"no instruction f64.reinterpret_i32"):
        oracle.bitcast(view_case("int32", "float64"), bits_of("int32", [1]))


@pytest.mark.parametrize(("source", "target"), [("float32", "float64"), ("float64", "float32")])
def test_payloads_of_nans_are_those_of_the_page(oracle: Any, source: str, target: str) -> None:
    """The page sets the top payload bit, and only that if the input has no other one set."""
    widths = {"float32": (8, 23), "float64": (11, 52)}
    exponent, mantissa = widths[source]
    infinity, top = ((1 << exponent) - 1) << mantissa, 1 << mantissa - 1
    payloads = sorted({1, top, top + 1, 2 * top - 1} | {1 << place for place in range(mantissa)})
    given = [sign | infinity | each for sign in (0, 1 << exponent + mantissa) for each in payloads]
    exponent, mantissa = widths[target]
    for pattern, answer in zip(given, cast(oracle, wasm_case(source, target), *given), strict=True):
        payload = answer & (1 << mantissa) - 1
        assert answer >> mantissa & (1 << exponent) - 1 == (1 << exponent) - 1
        assert payload >> mantissa - 1 == 1
        if pattern % (2 * top) == top:
            assert payload == 1 << mantissa - 1


def test_only_the_deterministic_variant_has_that_profile() -> None:
    case = wasm_case("float64", "float32", profile="deterministic")
    signs = [SIGNALING, SIGNALING | 1 << 63, 0xFFF8 << 48]
    assert cast(make("wasmtime", "deterministic"), case, *signs) == [CANONICAL] * 3
    for name in ("wasmtime", "node"):
        with pytest.raises(Unsupported, match="not those of the deterministic profile"):
            make(name).cast(case, bits_of("float64", signs))


@pytest.mark.parametrize(("source", "target"), [("float32", "float64"), ("int32", "uint64")])
def test_node_makes_consecutive_patterns_itself(source: str, target: str) -> None:
    node, case = make("node"), wasm_case(source, target)
    first = 0x7FFF_FF80
    call = node.sweep(case, first, first + 1000)
    for begin in (first, first + 300, first + 600):
        bits = np.arange(begin, begin + 300, dtype=np.uint32)
        assert_same(call(begin, 300), node.cast(case, bits))
    bits = np.arange(first + 900, first + 1000, dtype=np.uint32)
    assert_same(call(first + 900, 100), node.cast(case, bits))
    with pytest.raises(TrapError):
        node.sweep(TO_INT32, 0, 1 << 32)(0x4EFF_FFF0, 100)
    with pytest.raises(Unsupported, match="make no patterns of float64"):
        node.sweep(wasm_case("float64", "float32"), 0, 10)


def test_the_last_pattern_is_followed_by_none() -> None:
    call = make("node").sweep(wasm_case("uint32", "uint64"), (1 << 32) - 4, 1 << 32)
    assert call((1 << 32) - 4, 4).tolist() == [*range((1 << 32) - 4, 1 << 32)]


def test_a_script_shows_a_trap_beside_an_answer(oracle: Any) -> None:
    script = oracle.reproduce(TO_INT32, bits_of("float32", [0x3FC0_0000, CANONICAL]))
    first, second = run_script(script)
    assert first == "0x3fc00000 -> 0x1"
    assert second.startswith("0x7fc00000 -> ")
    assert second.split()[-1] in ("integer", "range")
    assert len(script.splitlines()) <= 18


def test_a_script_of_a_bitcast_prints_the_bits(oracle: Any) -> None:
    script = oracle.reproduce_bitcast(
        view_case("float32", "int32"), bits_of("float32", [0xFFFF_0001])
    )
    assert run_script(script) == ["0xffff0001 -> 0xffff0001"]


def test_without_node_one_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NotInstalled, match=r"^node is missing: install Node\.js"):
        Node()
    with pytest.raises(CastigateError, match=r"^backend `node` is not installed: node is missing"):
        load_backend("node")
    assert "node" not in installed()


def test_a_night_asks_node_and_the_reference_only_by_name() -> None:
    make("node")
    assert {"node", "reference", "numpy"} <= {*installed()}
    assert {"node", "reference", "numpy"} & {*installed_frameworks()} == {"numpy"}


def test_a_node_that_ends_is_an_error_that_says_so() -> None:
    node = make("node")
    node._process._process.kill()
    node._process._process.wait()
    with pytest.raises((RuntimeError, BrokenPipeError)):
        node.cast(wasm_case("int32", "int64"), bits_of("int32", [1]))


def test_node_ends_with_its_oracle() -> None:
    node = make("node")
    process = node._process._process
    del node
    assert process.wait(timeout=SECONDS_TO_END) != 0


def test_the_modules_are_valid_in_both_formats() -> None:
    wasmtime = pytest.importorskip("wasmtime")
    engine = wasmtime.Engine()
    for dtype in (*TYPES, *LOW_PARTS):
        wasmtime.Module.validate(engine, copy_operation(dtype).binary)
    operation = Conversion("float32", "uint64", "i64.trunc_f32_u")
    assert wasmtime.wat2wasm(operation.text) == bytearray(operation.function)
