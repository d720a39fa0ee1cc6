"""The harnesses of ``examples/vectors`` find every planted fault, and every damage of a file."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import floor, log2
from pathlib import Path

import pytest

from tests.conformance.extras.vectors.exact_vectors import (
    E4M3FN,
    E5M2,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    Form,
    vector_file,
)
from tests.conformance.extras.vectors.exporting import EXACT, SATURATING, exported

EXAMPLES = Path(__file__).parents[4] / "examples" / "vectors"
CODECS = Path(__file__).parent / "codecs"
# Compilers look for caches and toolchains in the home folder.
ENVIRONMENT = {"HOME": str(Path.home())} | os.environ
SECONDS_TO_END = 1200
"""A process that runs longer than this hangs."""

BFLOAT16 = Form("bfloat16", 8, 7, 0x7F7F, 0x7F80, (0x7F81, 0x7FFF))
TO_E4M3FN = (FLOAT16, E4M3FN)
TO_E5M2 = (FLOAT16, E5M2)
WIDENED = (BFLOAT16, FLOAT32)
WIDE = (FLOAT64, E4M3FN)
Cast = tuple[Form, Form]

WIDENED_FILE = """\
vectors 1 bfloat16 16 float32 32 all 6
# The codes rise evenly, and any NaN may come out for NaN.
0000 7f7f 00000000 00000000 ffffffff 10000
7f80 7f80 7f800000
7f81 7fff 7f800001 7fffffff 7fffffff
8000 ff7f 80000000 80000000 ffffffff 10000
ff80 ff80 ff800000
ff81 ffff 7f800001 7fffffff 7fffffff
"""


@cache
def text_of(cast: Cast) -> str:
    return WIDENED_FILE if cast == WIDENED else vector_file(*cast)


@dataclass(frozen=True)
class Outcome:
    """The exit status of a harness, and what it printed on both streams."""

    status: int
    printed: str


@dataclass(frozen=True)
class Harness:
    """How a harness is built into a folder and started there, and how it fails.

    ``build`` returns the command. The file with vectors stands at ``file`` in the folder.
    """

    name: str
    tools: tuple[str, ...]
    build: Callable[[Path], list[str]]
    file: str
    wrong: int
    damaged: int

    def run(self, folder: Path, cast: Cast, text: str | None, mutant: int = 0) -> Outcome:
        """Ask the codec, or one of its mutants, the vectors of a text; None is a missing file."""
        file = folder / self.file
        file.parent.mkdir(exist_ok=True)
        file.unlink(missing_ok=True)
        if text is not None:
            file.write_text(text, encoding="utf-8")
        variables = {"CAST": f"{cast[0].name}-{cast[1].name}", "MUTANT": str(mutant)}
        done = subprocess.run(
            self.build(folder),
            cwd=folder,
            env=ENVIRONMENT | variables,
            text=True,
            timeout=SECONDS_TO_END,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        return Outcome(done.returncode, done.stdout)


def compile_once(folder: Path, program: str, *command: str) -> list[str]:
    """Compile a program unless it is there, and return the command that starts it."""
    if not (folder / program).exists():
        environment = ENVIRONMENT | {"GOFLAGS": "-mod=mod"}
        subprocess.run(command, cwd=folder, env=environment, check=True, timeout=SECONDS_TO_END)
    return [f"./{program}"]


def c_program(language: str, *options: str) -> Callable[[Path], list[str]]:
    compiler = {"c": "gcc", "c++": "g++"}[language]

    def build(folder: Path) -> list[str]:
        warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
        command = [compiler, "-O2", *warnings, *options, f"-I{CODECS}"]
        source = ["-x", language, str(EXAMPLES / "check.c")]
        return [*compile_once(folder, "check", *command, "-o", "check", *source), "vectors.txt"]

    return build


def google_test(folder: Path) -> list[str]:
    source = str(EXAMPLES / "vectors_test.cpp")
    options = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{CODECS}"]
    libraries = ["-lgtest", "-lgtest_main", "-lpthread"]
    return compile_once(folder, "check", "g++", *options, "-o", "check", source, *libraries)


def rust_test(folder: Path) -> list[str]:
    edition = ("rustc", "--edition=2021", "-O", "-Dwarnings")
    codec = (str(CODECS / "codec.rs"), "--crate-type=lib", "--crate-name=codec")
    compile_once(folder, "libcodec.rlib", *edition, *codec)
    test = ("--test", "--extern=codec=libcodec.rlib", "-o", "check")
    return compile_once(folder, "check", *edition, *test, str(EXAMPLES / "vectors.rs"))


def go_test(folder: Path) -> list[str]:
    shutil.copy(CODECS / "codec.go", folder)
    shutil.copy(EXAMPLES / "vectors_test.go", folder)
    (folder / "go.mod").write_text("module codec\n", encoding="utf-8")
    return compile_once(folder, "check", "go", "test", "-c", "-o", "check")


def node_program(folder: Path) -> list[str]:
    if not (folder / "codec.mjs").exists():
        shutil.copy(CODECS / "codec.mjs", folder)
    shutil.copy(EXAMPLES / "vectors.mjs", folder)
    return ["node", "vectors.mjs", "vectors.txt"]


C = Harness("c", ("gcc",), c_program("c", "-std=c99"), "vectors.txt", 1, 2)
NODE = Harness("javascript", ("node",), node_program, "vectors.txt", 1, 2)
HARNESSES = (
    C,
    Harness("c++", ("g++",), c_program("c++"), "vectors.txt", 1, 2),
    Harness("gtest", ("g++",), google_test, "vectors.txt", 1, 1),
    Harness("rust", ("rustc",), rust_test, "tests/vectors.txt", 101, 101),
    Harness("go", ("go",), go_test, "testdata/vectors.txt", 1, 1),
    NODE,
)


def missing_tool(harness: Harness) -> str | None:
    """Return the tool that this machine lacks to build a harness, or None."""
    for tool in harness.tools:
        if shutil.which(tool) is None:
            return tool
    if harness.name == "gtest":
        probe = ["g++", "-x", "c++", "-E", "-include", "gtest/gtest.h", os.devnull]
        if subprocess.run(probe, capture_output=True).returncode != 0:
            return "libgtest-dev"
    return None


Run = Callable[..., Outcome]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs a harness, built once for all tests; skips the test where a tool is missing."""

    @cache
    def folder(harness: Harness) -> Path:
        lacking = missing_tool(harness)
        if lacking is not None:
            pytest.skip(f"{lacking} is not installed")
        return tmp_path_factory.mktemp(harness.name)

    def run(harness: Harness, cast: Cast, text: str | None, mutant: int = 0) -> Outcome:
        return harness.run(folder(harness), cast, text, mutant)

    return run


each_harness = pytest.mark.parametrize("harness", HARNESSES, ids=lambda each: each.name)


def ids(cast: Cast) -> str:
    return f"{cast[0].name}-{cast[1].name}"


def test_a_harness_has_at_most_forty_lines() -> None:
    files = [path for path in EXAMPLES.iterdir() if path.suffix != ".md"]
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert len(files) == 6
    for path in files:
        assert f"| `{path.name}`" in readme
        lines = path.read_text(encoding="ascii").splitlines()
        assert len(lines) <= 40, path.name
        assert max(map(len, lines)) <= 100, path.name


@each_harness
@pytest.mark.parametrize("cast", [TO_E4M3FN, TO_E5M2, WIDENED, WIDE], ids=ids)
def test_a_right_codec_passes(run: Run, harness: Harness, cast: Cast) -> None:
    outcome = run(harness, cast, text_of(cast))
    assert outcome.status == 0, outcome.printed


@each_harness
@pytest.mark.parametrize(
    ("cast", "name"), [(TO_E4M3FN, SATURATING), (WIDENED, EXACT)], ids=["small", "widened"]
)
def test_a_harness_reads_what_is_exported(
    run: Run, tmp_path: Path, harness: Harness, cast: Cast, name: str
) -> None:
    file = exported(tmp_path, name.format(cast[0].name, cast[1].name))
    outcome = run(harness, cast, file.read_text(encoding="utf-8"))
    assert outcome.status == 0, outcome.printed


MUTANTS = (
    "truncates",
    "ties-away",
    "flushes-subnormals",
    "nan-is-zero",
    "infinity-is-nan",
    "overflow-wraps",
    "loses-minus-zero",
    "rounds-twice",
    "shifts-too-far",
    "largest-is-less",
    "carries-out",
)
"""The faults of the codecs, in the order of their numbers, from 1."""
LARGEST = 448
SMALLEST_NORMAL = Fraction(1, 64)


@cache
def wrong_inputs() -> dict[str, int]:
    """How many inputs of float16 to float8e4m3fn each mutant casts wrongly, of both signs."""
    counts: Counter[str] = Counter()
    for code in range(FLOAT16.largest + 1):
        value = FLOAT16.value(code)
        quantum = Fraction(2) ** (max(floor(log2(value or 1)) if value else -6, -6) - 3)
        exact = value / quantum
        nearest = min(round(exact) * quantum, LARGEST)
        flushed = nearest if nearest >= SMALLEST_NORMAL else 0
        counts["truncates"] += min(floor(exact) * quantum, LARGEST) != nearest
        counts["ties-away"] += min(floor(exact + Fraction(1, 2)) * quantum, LARGEST) != nearest
        counts["flushes-subnormals"] += flushed != nearest
        counts["rounds-twice"] += min(round(Fraction(round(exact * 4), 4)) * quantum, LARGEST) != (
            nearest
        )
        counts["carries-out"] += 1
        counts["overflow-wraps"] += round(exact) * quantum > LARGEST
        counts["largest-is-less"] += round(exact) * quantum == LARGEST
        # Where a count of 15 and more shifts by a register's width, which is every subnormal.
        counts["shifts-too-far"] += 0 < value < FLOAT16.value(0x0800)
    both = {name: 2 * count for name, count in counts.items()}
    both["carries-out"] = counts["carries-out"]  # of negative inputs alone
    return both | {"nan-is-zero": 2 * 1023, "infinity-is-nan": 2, "loses-minus-zero": 1}


WRONG = re.compile(
    r"vectors\.txt:(\d+)(?:: Failure\nFailed\n|: )input ([0-9a-f]+): answer ([0-9a-f]+), "
    r"allowed ([0-9a-f]+) by (.*)"
)
"""Line, input, answer, an allowed answer, and the line's text."""


@each_harness
@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_is_caught(run: Run, harness: Harness, mutant: str) -> None:
    text = text_of(TO_E4M3FN)
    outcome = run(harness, TO_E4M3FN, text, 1 + MUTANTS.index(mutant))
    assert outcome.status == harness.wrong
    assert "damaged" not in outcome.printed
    assert "65536 answers" in outcome.printed
    assert re.findall(r"(\d+) wrong|Which is: (\d+)", outcome.printed)[0][
        harness.name == "gtest"
    ] == str(wrong_inputs()[mutant])
    found = WRONG.findall(outcome.printed)
    assert 1 <= len(found) <= 10
    for number, *words, by in found:
        x, answer, allowed = (int(word, 16) for word in words)
        assert by == text.splitlines()[int(number) - 1]
        lo, hi, code, *more = (int(word, 16) for word in by.split())
        assert lo <= x <= hi
        assert code == allowed
        last, mask = more or (code, 0xFF)
        assert answer > 0xFF or not code <= answer & mask <= last


@each_harness
@pytest.mark.parametrize("mutant", ["rounds-twice", "shifts-too-far", "largest-is-less"])
def test_a_mutant_is_caught_by_sampled_inputs(run: Run, harness: Harness, mutant: str) -> None:
    outcome = run(harness, WIDE, text_of(WIDE), 1 + MUTANTS.index(mutant))
    assert outcome.status == harness.wrong
    assert WRONG.search(outcome.printed)


@pytest.mark.parametrize("target", [E4M3FN, FLOAT16], ids=lambda form: form.name)
@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_from_float64_is_caught(run: Run, target: Form, mutant: str) -> None:
    cast = (FLOAT64, target)
    outcome = run(C, cast, text_of(cast), 1 + MUTANTS.index(mutant))
    assert outcome.status == C.wrong
    assert WRONG.search(outcome.printed)


def lines_changed(change: Callable[[list[str]], object]) -> Callable[[str], str]:
    """A damage that changes the list of a file's lines."""

    def damage(text: str) -> str:
        lines = text.splitlines()
        change(lines)
        return "\n".join([*lines, ""])

    return damage


def exchanged(line: int, old: str, new: str) -> Callable[[str], str]:
    """A damage that replaces a part of a line."""

    def change(lines: list[str]) -> None:
        assert old in lines[line]
        lines[line] = lines[line].replace(old, new, 1)

    return lines_changed(change)


def swap(lines: list[str]) -> None:
    lines[50], lines[51] = lines[51], lines[50]


DAMAGES: dict[str, Callable[[str], str | None]] = {
    "missing": lambda text: None,
    "empty": lambda text: "",
    "cut-between-lines": lambda text: text[: text.index("\n", len(text) // 2) + 1],
    "cut-within-a-line": lambda text: text[: text.index("\n", len(text) // 2) + 8],
    "cut-within-the-last-number": lambda text: text[:-2],
    "only-a-header": lambda text: text[: text.index("\n") + 1],
    "carriage-returns": lambda text: text.replace("\n", "\r\n"),
    "a-line-missing": lines_changed(lambda lines: lines.pop(50)),
    "first-line-missing": lines_changed(lambda lines: lines.pop(3)),
    "last-line-missing": lines_changed(lambda lines: lines.pop()),
    "a-line-twice": lines_changed(lambda lines: lines.insert(50, lines[50])),
    "last-line-twice": lines_changed(lambda lines: lines.append(lines[-1])),
    "lines-swapped": lines_changed(swap),
    "no-header": lines_changed(lambda lines: lines.pop(0)),
    "another-version": exchanged(0, "vectors 1", "vectors 2"),
    "another-kind": exchanged(0, " all ", " most "),
    "no-source-bits": exchanged(0, " 16 ", " 0 "),
    "too-many-source-bits": exchanged(0, " 16 ", " 65 "),
    "too-many-target-bits": exchanged(0, " 8 ", " 65 "),
    "wrong-number-of-lines": exchanged(0, " 256", " 257"),
    "no-digit": exchanged(50, " ", " g"),
    "a-sign": exchanged(50, " ", " -"),
    "another-base": exchanged(50, " ", " 0x"),
    "two-numbers": lines_changed(lambda lines: lines.append(lines.pop()[:9])),
    "eight-numbers": lines_changed(lambda lines: lines.append(lines.pop() + " 0 0 0")),
    "an-empty-line": lines_changed(lambda lines: lines.insert(50, "")),
    "an-input-too-wide": exchanged(-1, "ffff", "1ffff"),
    "an-answer-too-wide": exchanged(-1, "7f 7f 7f", "7f 17f 7f"),
    "a-mask-too-wide": exchanged(-1, "7f 7f 7f", "7f 7f 17f"),
    "hi-below-lo": exchanged(4, "1401 19ff", "1401 13ff"),
    "last-below-code": exchanged(-1, "7f 7f 7f", "7f 7e 7f"),
}


@each_harness
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_reported(run: Run, harness: Harness, damage: str) -> None:
    damaged = DAMAGES[damage](text_of(TO_E4M3FN))
    outcome = run(harness, TO_E4M3FN, damaged)
    assert outcome.status == harness.damaged
    assert re.search(r"vectors\.txt:\d+: damaged: \w", outcome.printed), outcome.printed
    assert "input" not in outcome.printed.replace("inputs", "")


SOME = """\
vectors 1 float64 64 float8e4m3fn 8 some 4
3ff0000000000000 3ff0000000000000 38
# A line may allow several answers, and every answer.
3ff0000000000001 3ff0000000000001 37 38
7ff0000000000000 fff0000000000000 0 ff
ffffffffffffffff ffffffffffffffff 7f 7f 7f
"""


@each_harness
def test_a_file_of_some_inputs_has_gaps_but_an_order(run: Run, harness: Harness) -> None:
    assert run(harness, WIDE, SOME).status == 0
    header, *lines = SOME.splitlines()
    for swapped in ((0, 2), (3, 4)):
        moved = lines[:]
        first, second = swapped
        moved[first], moved[second] = moved[second], moved[first]
        outcome = run(harness, WIDE, "\n".join([header, *moved, ""]))
        assert outcome.status == harness.damaged
        assert "damaged" in outcome.printed


APART = """\
vectors 1 float16 16 float8e4m3fn 8 some 2
8000 8000 00 00 ff 0 80
bc00 bc40 38 38 ff 0 OTHER
"""


@each_harness
@pytest.mark.parametrize(("other", "answers"), [("b8", "66"), ("b9", None)])
def test_one_of_two_answers_apart_is_right(
    run: Run, harness: Harness, other: str, answers: str | None
) -> None:
    """-0.0 becomes 0x80, and -1.0 up to -1.0625 become 0xb8."""
    outcome = run(harness, TO_E4M3FN, APART.replace("OTHER", other))
    assert outcome.status == (harness.wrong if answers is None else 0)
    if answers is None:
        [found] = WRONG.findall(outcome.printed)
        assert found == ("3", "bc00", "b8", "38", "bc00 bc40 38 38 ff 0 b9")


LINES_OF = {"nan-is-zero": {5, 8}, "infinity-is-nan": {4, 7}, "loses-minus-zero": {6}}
"""The lines of the file of widened inputs whose answers a mutant gets wrong."""


@each_harness
@pytest.mark.parametrize("mutant", LINES_OF)
def test_rising_codes_and_masks_are_compared(run: Run, harness: Harness, mutant: str) -> None:
    outcome = run(harness, WIDENED, text_of(WIDENED), 1 + MUTANTS.index(mutant))
    assert outcome.status == harness.wrong
    lines = {int(number) for number, *_ in WRONG.findall(outcome.printed)}
    assert lines == LINES_OF[mutant]


MIXED = """\
vectors 1 uint32 32 uint64 64 some 2
00000000 0000ffff 0000000000000000 0000000000000000 ffffffffffffffff 100000001
ffff0000 ffffffff ffff0000ffff0000 ffff0000ffff0000 ffffffffffffffff 100000001
"""


@pytest.mark.parametrize(("codec", "status"), [("x * 0x100000001n", 0), ("x << 32n | x ^ 1n", 1)])
def test_javascript_compares_answers_of_64_bits(
    run: Run, tmp_path: Path, codec: str, status: int
) -> None:
    function = f"export const convert = (bits) => {{ const x = BigInt(bits); return {codec}; }};"
    (tmp_path / "codec.mjs").write_text(function, encoding="utf-8")
    if (lacking := missing_tool(NODE)) is not None:
        pytest.skip(f"{lacking} is not installed")
    outcome = NODE.run(tmp_path, TO_E4M3FN, MIXED)
    assert outcome.status == status
    assert outcome.printed.endswith(f"vectors.txt: 131072 answers, {131072 * status} wrong\n")


@pytest.mark.nightly
def test_all_inputs_of_float32(run: Run) -> None:
    cast = (FLOAT32, E4M3FN)
    outcome = run(C, cast, text_of(cast))
    assert outcome == Outcome(0, "vectors.txt: 4294967296 answers, 0 wrong\n")
