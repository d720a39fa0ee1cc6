"""Builders of cases and bits, and assertions that several files share."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from typing import Any

import numpy as np

from conformance.driver import BackendJudge
from conformance.judging.asking import Settings
from oracles.protocol import Bits, Unsupported
from oracles.registry import Backend
from reports.judgement import Verdict
from specs.cases import Case
from specs.formats import format_named
from specs.selection import select
from tests.conformance.feeding import compare_variants

BUFFER_LENGTH = 101
"""Odd, so that packed answers end within a byte and vectors short of their end.

For some types onnxruntime folds no constant of 128 bytes or more: "Element type mismatch".
"""


@contextmanager
def kept_environment() -> Iterator[None]:
    """Restore the environment variables afterwards: some adapters set them."""
    before = dict(os.environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def quietly(create: Callable[[], Any]) -> Any:
    """Create an oracle whose framework may warn when it is imported."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return create()


def onnx_case(source: str, target: str, version: int = 25, **modes: str) -> Case:
    return Case("onnx-cast", str(version), source, target, tuple(modes.items()))


def numpy_case(source: str, target: str, casting: str) -> Case:
    return Case("numpy-astype", "2.4", source, target, (("casting", casting),))


def wasm_case(source: str, target: str, **modes: str) -> Case:
    return Case("wasm-convert", "3.0", source, target, tuple(modes.items()))


def view_case(source: str, target: str) -> Case:
    return Case("any", "1", source, target)


def bits_of(dtype: str, patterns: list[Any]) -> Bits:
    """Return patterns, given as numbers or texts, in the dtype's storage."""
    storage = format_named(dtype).storage
    if storage == "V16":
        raw = b"".join(pattern.to_bytes(16, "little") for pattern in patterns)
        return np.frombuffer(raw, storage).copy()
    return np.array(patterns, storage)


def patterns_of(bits: Bits) -> list[Any]:
    """Invert ``bits_of``."""
    if bits.dtype == np.dtype("V16"):
        return [int.from_bytes(pattern.tobytes(), "little") for pattern in bits]
    return list(bits.tolist())


def some_patterns(dtype: str, count: int = 4096) -> Bits:
    """Return all patterns of up to 16 bits, a seeded sample of wider ones, or a few texts."""
    entry = format_named(dtype)
    if entry.kind == "text":
        return np.array(["", "1.5", "-0", "a longer text than fits inline", "né\n"], object)
    if entry.bits <= 16:
        return np.arange(1 << entry.bits).astype(entry.storage)
    raw = np.random.default_rng(0).bytes(count * entry.bits // 8)
    return np.frombuffer(raw, entry.storage).copy()


def layouts(bits: Bits) -> dict[str, Bits]:
    """Return views of 12 patterns in layouts that a careless adapter would misread."""
    read_only = bits.copy()
    read_only.flags.writeable = False
    return {
        "strided": bits[::3],
        "reversed": bits[::-1],
        "transposed": bits.reshape(3, 4).T,
        "offset": bits[1:],
        "broadcast": np.broadcast_to(bits[:3], (2, 3)),
        "read-only": read_only,
    }


def assert_same(got: Bits, expected: Bits) -> None:
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    assert got.tolist() == expected.tolist()


def assert_moves_any_layout(move: Callable[[Bits], Bits], bits: Bits) -> None:
    """Assert that ``move`` returns bits of any shape and memory layout unchanged."""
    views = [bits, bits[:0], bits[1:2].reshape(()), np.resize(bits, (1, 3, 1, 5, 1))]
    for view in (*views, *layouts(np.resize(bits, 12)).values()):
        assert_same(move(view), view)


def assert_follows_its_buffer(oracle: Any, case: Case) -> None:
    """Assert that a bound call answers as ``cast`` does after its buffer was overwritten."""
    entry = format_named(case.source)
    bits = np.zeros(BUFFER_LENGTH, entry.storage)
    call = oracle.bind(case, bits)
    for seed in range(3 if getattr(oracle, "compiles_shapes", False) else 4):
        raw = np.frombuffer(np.random.default_rng(seed).bytes(bits.nbytes), bits.dtype)
        bits[:] = raw & entry.mask if entry.bits < 8 else raw
        before = bits.copy()
        answer = call()
        assert_same(answer, oracle.cast(case, before.copy()))
        assert_same(bits, before)


def assert_prints_the_answers(oracle: Any, case: Case, patterns: list[Any]) -> None:
    """Assert that a script prints the oracle's answers, has short lines, and needs no Castigate."""
    bits = bits_of(case.source, patterns)
    script = oracle.reproduce(case, bits)
    expected = list(zip(patterns, patterns_of(oracle.cast(case, bits)), strict=True))
    printed = [
        tuple(parse_printed(side) for side in line.split(" -> "))
        for line in run_script(script)
        if " -> " in line  # some frameworks print a line when they are imported
    ]
    assert printed == expected
    assert "castigate" not in script
    assert max(map(len, script.splitlines())) <= 100


def parse_printed(side: str) -> Any:
    """Parse a printed pattern: a hex number, or a text's repr."""
    return int(side, 16) if side.startswith("0x") else side[1:-1]


def run_script(script: str) -> list[str]:
    """Run a script, and return the lines that it prints."""
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def run_script_here(script: str) -> list[str]:
    """Run a script in this process, which has imported its framework, and return what it prints."""
    with redirect_stdout(StringIO()) as printed:
        exec(script, {})
    return printed.getvalue().splitlines()


def compared(first: Any, second: Any, source: str, target: str) -> tuple[Verdict, str]:
    """Return what ``-k variants`` says of two roads of a framework on one pair."""
    one, other = (
        BackendJudge(Backend(f"{oracle.name}:{number}", oracle), {}, Settings())
        for number, oracle in enumerate((first, second))
    )
    cases = [case for case in select([]) if (case.source, case.target) == (source, target)]
    judgement = compare_variants(one, other, cases)
    return judgement.verdict, judgement.message


def bind_and_call(oracle: Any, case: Case, bits: Bits) -> Bits:
    answer: Bits = oracle.bind(case, bits)()
    return answer


def refusal(ask: Callable[[], Any]) -> str | None:
    """Return the reason for which a request is refused, or None if it is not."""
    try:
        ask()
    except Unsupported as error:
        return str(error)
    return None
