"""The backends gcc and clang: what their casts answer, their roads, and what they refuse."""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.driver import BackendJudge
from conformance.judging.asking import Settings
from oracles.adapters import c_compilers
from oracles.adapters.c_compilers import VARIANTS, Clang, Gcc, soft_function
from oracles.adapters.compiled_loops import Loop
from oracles.protocol import NotInstalled, Unsupported
from oracles.registry import Backend, installed_frameworks, load_backend
from specs.errors import CastigateError
from specs.selection import case_named
from tests.adapters.common import (
    assert_follows_its_buffer,
    assert_moves_any_layout,
    assert_prints_the_answers,
    bits_of,
    compared,
    onnx_case,
    some_patterns,
)

COMPILERS = {each.name: each for each in (Gcc, Clang)}
BACKENDS = [(name, variant) for name in COMPILERS for variant in (None, *VARIANTS)]
ON_X86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="needs an x86-64 processor")
F32_TO_F64 = onnx_case("float32", "float64")

BY_HAND: Mapping[tuple[str, str], Mapping[int, int]] = {
    # The largest below the tie, the tie, ties at 1, and both sides of half the least subnormal.
    ("float32", "float16"): {
        0x477FEFFF: 0x7BFF,
        0x477FF000: 0x7C00,
        0x3F801000: 0x3C00,
        0x3F803000: 0x3C02,
        0x33000000: 0x0000,
        0xB3000001: 0x8001,
    },
    # Just above a tie: by way of float32 it would be one.
    ("float64", "float16"): {0x3FF0020000000001: 0x3C01},
    ("float16", "float64"): {0x0001: 0x3E70 << 48, 0xFC00: 0xFFF0 << 48},
    ("float64", "float32"): {0x47EFFFFFF0000000: 0x7F800000, 0x47EFFFFFEFFFFFFF: 0x7F7FFFFF},
    ("float32", "int8"): {0x3FE00000: 1, 0xBFE00000: 0xFF, 0x42FFFAE1: 0x7F},
    ("float64", "uint64"): {0x43EFFFFFFFFFFFFF: 0xFFFFFFFFFFFFF800},
    ("int64", "float64"): {(1 << 53) + 1: 0x4340 << 48, (1 << 53) + 3: 0x4340000000000002},
    # Just above a tie: by way of float64 it would be one.
    ("uint64", "float32"): {0x8000008000000001: 0x5F000001, (1 << 64) - 1: 0x5F800000},
    ("int16", "uint64"): {0xFFFF: (1 << 64) - 1},
    ("float32", "bool"): {0x7FC00000: 1, 0x80000000: 0, 0x3E800000: 1},
    ("bool", "float16"): {0: 0, 1: 0x3C00},
}


def made(name: str, variant: str | None = None) -> Any:
    """Create an oracle; skip the test without the compiler, or what its variant needs."""
    try:
        return COMPILERS[name](variant)
    except (NotInstalled, Unsupported) as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module", params=BACKENDS, ids=lambda each: ":".join(filter(None, each)))
def oracle(request: pytest.FixtureRequest) -> Any:
    return made(*request.param)


def offers(oracle: Any, source: str, target: str) -> bool:
    """Return whether an oracle casts a pair: by library functions not every one does."""
    try:
        return bool(oracle.road(onnx_case(source, target)))
    except Unsupported:
        assert oracle._is_soft, (source, target)
        return False


def pretend(folder: Path, name: str, macros: str, refused: str) -> None:
    """Write a compiler that defines these macros, and ends with an error if an option is given."""
    program = folder / name
    program.write_text(
        "#!/bin/sh\n"
        + "".join(f"echo '#define {macro}'\n" for macro in macros.split(", "))
        + f'case "$*" in *{refused}*) exit 1;; esac\n'
    )
    program.chmod(0o755)


@pytest.mark.parametrize("pair", BY_HAND, ids="-".join)
def test_answers_known_by_hand(oracle: Any, pair: tuple[str, str]) -> None:
    if "float16" in pair and "-mno-sse" in oracle._flags:
        with pytest.raises(Unsupported, match=r"has no type of float16$"):
            oracle.road(onnx_case(*pair))
        return
    if not offers(oracle, *pair):
        return
    # 37 of each: vector instructions cast most of them, and a scalar loop the rest.
    for given, answer in BY_HAND[pair].items():
        answers = oracle.cast(onnx_case(*pair), bits_of(pair[0], [given] * 37))
        assert answers.tolist() == [answer] * 37, hex(given)


def test_every_refill_is_answered_as_cast_answers_it(oracle: Any) -> None:
    for source, target in (("float32", "float64"), ("float64", "int32"), ("uint8", "float32")):
        if offers(oracle, source, target):
            assert_follows_its_buffer(oracle, onnx_case(source, target))


def test_bits_come_out_unchanged_from_any_layout(oracle: Any) -> None:
    assert_moves_any_layout(lambda bits: oracle.identity("float64", bits), some_patterns("float64"))


def test_a_script_runs_alone_and_prints_the_answers(oracle: Any) -> None:
    assert_prints_the_answers(oracle, F32_TO_F64, [0x3FC00000, 0x477FF000, 0x7F800001])
    if offers(oracle, "int64", "float32"):
        assert_prints_the_answers(oracle, onnx_case("int64", "float32"), [1, (1 << 64) - 1])


def test_a_script_names_the_compiler_and_its_flags(oracle: Any) -> None:
    script = oracle.reproduce(F32_TO_F64, bits_of("float32", [0]))
    assert script.startswith(f"# {oracle.name} {oracle.version}: {F32_TO_F64}\n")
    flags = "".join(f', "{flag}"' for flag in oracle._flags)
    assert f'command = ["{oracle.name}", "-O3"{flags}]\n' in script


def test_two_threads_at_once(oracle: Any) -> None:
    bits = some_patterns("float32")
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: oracle.cast(F32_TO_F64, bits), range(2))
    assert first.tolist() == second.tolist()


def assembly(variant: str | None, source: str, target: str) -> str:
    """Return the instructions that gcc makes of what an oracle gives it for a pair."""
    oracle = made("gcc", variant)
    given: list[str] = []

    def record(command: list[str], *, input: bytes, check: bool) -> None:
        words = [word for word in command if word != "-shared"][:-2]
        done = subprocess.run([*words, "-S", "-o", "-"], input=input, capture_output=True)
        given.append(done.stdout.decode())
        subprocess.run(command, input=input, check=check)

    oracle.names["subprocess"] = type("Recorder", (), {"run": staticmethod(record)})
    oracle.cast(onnx_case(source, target), bits_of(source, [0]))
    [text] = given
    return text


@ON_X86
@pytest.mark.parametrize(
    ("variant", "pair", "taken", "avoided"),
    [
        (None, "float32-float16", "__truncsfhf2", "vcvtps2ph"),
        ("f16c", "float32-float16", "vcvtps2ph", "__truncsfhf2"),
        (None, "float64-float32", "cvtpd2ps", "__truncdfsf2"),
        ("soft", "float64-float32", "__truncdfsf2", "cvtpd2ps"),
        ("soft", "float64-uint64", "__fixunsdfdi", "cvttsd2si"),
        (None, "float64-int32", "cvttpd2dq", "fist"),
        ("x87", "float64-int32", "fist", "cvttpd2dq"),
        (None, "float64-int64", "cvttsd2si", "vcvttpd2qq"),
        ("avx512", "float64-int64", "vcvttpd2qq", "fist"),
    ],
)
def test_each_road_is_made_of_its_own_instructions(
    variant: str | None, pair: str, taken: str, avoided: str
) -> None:
    text = assembly(variant, *pair.split("-"))
    assert taken in text
    assert avoided not in text


@pytest.mark.parametrize(
    ("source", "target", "function"),
    [
        ("float64", "float16", "__truncdfhf2"),
        ("bfloat16", "float32", "__extendbfsf2"),
        ("float32", "int64", "__fixsfdi"),
        ("float64", "uint32", "__fixunsdfsi"),
        ("int32", "float64", "__floatsidf"),
        ("uint64", "float32", "__floatundisf"),
        ("float32", "float32", None),
        ("float16", "bfloat16", None),
        ("float32", "int8", None),
        ("bool", "float32", None),
    ],
)
def test_names_of_library_functions(source: str, target: str, function: str | None) -> None:
    assert soft_function(source, target) == function


@ON_X86
def test_libgcc_has_what_no_instruction_does() -> None:
    oracle = made("gcc", "soft")
    assert offers(oracle, "float32", "float16")
    assert offers(oracle, "float64", "uint64")
    with pytest.raises(Unsupported, match=r"^the library of gcc [\d.]+ has no __fixsfsi$"):
        oracle.road(onnx_case("float32", "int32"))
    with pytest.raises(Unsupported, match=r" has no function for int8 to float32$"):
        oracle.cast(onnx_case("int8", "float32"), bits_of("int8", [0]))


@ON_X86
def test_gcc_has_x87_on_every_such_processor() -> None:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    assert Gcc("x87").version == Gcc().version


def test_a_wrong_flag_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    right = made("gcc")
    monkeypatch.setitem(c_compilers.ROADS, "f16c", ("", ("-Dfloat=int",)))
    wrong = Gcc("f16c")
    assert compared(right, wrong, "int16", "int8") == ("conforms", "")
    verdict, message = compared(right, wrong, "float32", "float64")
    assert verdict == "violates", message


@pytest.mark.parametrize("name", COMPILERS)
def test_versions(name: str) -> None:
    option = "-dumpfullversion" if name == "gcc" else "--version"
    told = made(name)
    done = subprocess.run([name, option], capture_output=True, text=True, check=True)
    assert told.version in done.stdout.split()


@pytest.mark.parametrize("name", COMPILERS)
def test_a_missing_compiler_is_one_line(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CastigateError) as caught:
        load_backend(f"{name}:f16c")
    assert str(caught.value) == (
        f"backend `{name}:f16c` is not installed: {name} is missing: install it (apt-get install"
        f" {name}) and have `{name}` on the PATH"
    )


def test_another_compiler_of_that_name_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    pretend(tmp_path, "gcc", "__GNUC__ 4, __clang__ 1", "nothing")
    pretend(tmp_path, "clang", "__GNUC__ 4", "nothing")
    for name, adapter in COMPILERS.items():
        with pytest.raises(NotInstalled, match=f"^`{name}` on the PATH is another compiler"):
            adapter()


def test_what_a_processor_or_a_compiler_lacks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    pretend(
        tmp_path, "gcc", "__GNUC__ 99, __GNUC_MINOR__ 1, __GNUC_PATCHLEVEL__ 0", "-mfp*|*/trial"
    )
    assert Gcc().version == "99.1.0"
    for variant, feature in (("f16c", "F16C"), ("avx512", "AVX512DQ")):
        with pytest.raises(Unsupported, match=f"^gcc:{variant} needs a processor with {feature}$"):
            Gcc(variant)
    with pytest.raises(Unsupported, match=r"^gcc 99\.1\.0 takes no -mno-sse -mfpmath=387 here$"):
        Gcc("x87")
    for dtype in ("float16", "bfloat16", "float8e5m2", "string"):
        with pytest.raises(Unsupported, match=rf"^gcc 99\.1\.0 has no type of {dtype}$"):
            Gcc().road(onnx_case("float32", dtype))


def test_a_night_asks_them_by_name() -> None:
    assert not COMPILERS.keys() & {*installed_frameworks()}


def test_the_macro_of_annex_f_is_a_claim_and_so_is_the_manual_of_gcc(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    version = "__GNUC__ 9, __GNUC_MINOR__ 1, __GNUC_PATCHLEVEL__ 0"
    pretend(tmp_path, "gcc", version, "nothing")
    assert [*map(str, load_backend("gcc").claimed)] == [
        "c-conversions:C11",
        "c-conversions:C11-gcc",
    ]
    version = "__clang__ 1, __clang_major__ 9, __clang_minor__ 1, __clang_patchlevel__ 0"
    for macros, claims in (
        (version, ["c-conversions:C11"]),
        (f"{version}, __STDC_IEC_559__ 1", ["c-conversions:C11", "c-conversions:C11-F"]),
    ):
        pretend(tmp_path, "clang", macros, "nothing")
        assert [*map(str, load_backend("clang").claimed)] == claims
        assert load_backend("clang:soft").claimed == ()


@pytest.mark.parametrize("backend", ["gcc", "clang", "gcc:x87", "clang:avx512"])
def test_they_convert_as_they_claim(backend: str) -> None:
    judge = BackendJudge(Backend(backend, made(*backend.split(":"))), {}, Settings())
    version = "C11-gcc" if backend.startswith("gcc") else "C11-F"
    for pair in ("float64/float32", "int64/float32", "uint64/int8", "float32/bool"):
        found = judge.judge(case_named(f"c-conversions:{version}/{pair}"))
        assert found.verdict in ("conforms", "open"), found.message


def test_a_wrong_conversion_breaks_a_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    oracle = made("gcc")
    by_float = Loop("int64_t", "double", "(double)(float)x[i]")
    monkeypatch.setattr(oracle, "loop", lambda case: by_float)
    judge = BackendJudge(Backend("gcc", oracle), {}, Settings())
    found = judge.judge(case_named("c-conversions:C11/int64/float64"))
    assert found.verdict == "violates"
    assert {problem.rule for problem in found.problems} == {"integer-to-float"}


def test_bound_answers_lie_in_one_place() -> None:
    call = made("gcc").bind(F32_TO_F64, np.zeros(9, np.uint32))
    assert call() is call()
