"""Writes a test for pytest that checks a codec as the command did, without Castigate.

The allowed answers change a few hundred times over 2^32 inputs, or some 65,000 times for a target
of 16 bits, and in regular steps, so that they fit into a few lines.
"""

from __future__ import annotations

import os
import textwrap
import zlib
from base64 import b85encode
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from conformance.extras.codec.answers import CodecAnswers
from conformance.extras.codec.judging import step_starts
from conformance.extras.codec.python_worker import asks_one_by_one
from conformance.extras.codec.target import (
    INTEGER_SOURCES,
    CodecTarget,
    Signature,
    is_floating,
)
from oracles.reference import expect_by_exact
from oracles.reference.staircase import staircase
from specs.branches import Ruling
from specs.cases import Case
from specs.errors import CastigateError
from specs.formats import EXHAUSTIVE_BITS, Format
from specs.outcomes import Anything, Nan
from specs.ruling import ruling

WIDTH = 100
"""Characters of a line of the table."""
STRIDE = 4099
"""A Python codec is asked every ``STRIDE``-th of 2^32 inputs, and those where answers change."""
UNPACK = 'zlib.decompress(base64.b85decode(TABLE.replace("\\n", "")))'


def check_name(path: Path) -> None:
    """Raise CastigateError unless a file is named ``test_….py``, as pytest wants it."""
    if not path.name.startswith("test_") or path.suffix != ".py":
        raise CastigateError(f"--keep {path}: pytest looks for files named test_….py")


def check_kept(target: CodecTarget, rules: Ruling) -> None:
    """Raise CastigateError for a codec of which no test can be kept."""
    source, answer = rules.source, rules.target
    reason = ""
    if target.kind == "program":
        reason = "a test asks a function of C or Python, and no program"
    elif "text" in (source.kind, answer.kind):
        reason = "a test asks numbers and codes, and no texts"
    elif max(source.bits, answer.bits) > MOST_KEPT_BITS or min(source.bits, answer.bits) > 16:
        reason = (
            f"a test has no room for all steps from {source.name} to {answer.name}; keep one with"
            " --from float32 or narrower"
        )
    if reason:
        raise CastigateError(f"--keep: {reason}")


MOST_KEPT_BITS = 32
"""The bits of the widest inputs and answers of a kept test."""


def write_kept_test(path: Path, target: CodecTarget, case: Case, answers: CodecAnswers) -> None:
    """Write to ``path`` a pytest file that checks the codec again.

    Raise CastigateError if it cannot be written.
    """
    text = kept_test(path, target, case, answers)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CastigateError(f"--keep {path} cannot be written: {error.strerror}") from None


def kept_test(path: Path, target: CodecTarget, case: Case, answers: CodecAnswers) -> str:
    """Return the text of a pytest file that checks the codec again.

    ``path`` is where that file will be, as it finds the codec by a relative path.
    """
    rules = ruling(case)
    text = packed(allowed_pieces(rules))
    table = "\n".join(text[at : at + WIDTH] for at in range(0, len(text), WIDTH))
    if isinstance(answers.called, Signature):
        imports, body = _c_test(path, target, rules, answers.called)
    else:
        assert isinstance(answers.called, str)
        imports, body = _python_test(path, target, rules, answers.called)
    modes = "".join(f", {name} {value}" for name, value in case.modes)
    return (
        f'"""{target.function}: {case.source} to {case.target}{modes}. By castigate codec."""\n\n'
        f"import base64, subprocess, sys, zlib  # noqa: E401\nfrom pathlib import Path\n{imports}\n"
        "# Differences of rows: the first input, and two ranges of the codes allowed from it on.\n"
        f'TABLE = """{table}"""\n{body}'
    )


def allowed_pieces(rules: Ruling) -> NDArray[np.uint32]:
    """Return the allowed codes of all inputs, in rows of five numbers.

    A row has the first input to which it applies, then the first and last code of one range, and of
    another. The ranges are equal where one suffices. Neighbors that allow the same share a row.
    Recommended answers do not narrow what is allowed.
    """
    rows: list[tuple[int, int, int, int, int]] = []
    for first in step_starts(staircase(rules)).tolist():
        allowed = expect_by_exact.allow(rules, first)
        match allowed.branch.outcome:
            case Anything():
                ranges = (0, rules.target.mask) * 2
            case Nan():
                one, *_, other = [*rules.target.nans("any")] * 2
                ranges = (one[0], one[-1], other[0], other[-1])
            case _:
                low, high = min(allowed.codes), max(allowed.codes)
                ranges = (low, low, high, high)
        if not rows or rows[-1][1:] != ranges:
            rows.append((first, *ranges))
    return np.array(rows, np.uint32)


def packed(pieces: NDArray[np.uint32]) -> str:
    """Return the table of allowed codes as text: the differences of rows, deflated, in base 85."""
    differences = np.diff(pieces, axis=0, prepend=np.zeros((1, 5), np.uint32)).astype("<u4")
    return b85encode(zlib.compress(differences.tobytes(), 9)).decode()


def _c_test(
    path: Path, target: CodecTarget, rules: Ruling, signature: Signature
) -> tuple[str, str]:
    """Return an empty text of imports, and a test's text that asks all inputs by a C program."""
    suffix, compiler = ("cc", "c++") if target.is_cplusplus else ("c", "cc")
    where = _beside(path, Path(target.where))
    codec, library = '#include "CODEC"', ""
    if target.kind == "library":
        returned, _, arguments = signature.text.partition("(")
        codec = f"{returned} {target.function}({arguments};"
        library = ' str(CODEC), f"-Wl,-rpath,{CODEC.parent}",'
    body = f'''CODEC = (Path(__file__).parent / "{where}").resolve()
C = r"""{codec}
int main(void) {{
  uint32_t r[5], d[5], more = fread(r, 4, 5, stdin);
  for (; more; r[0] += d[0], r[1] += d[1], r[2] += d[2], r[3] += d[3], r[4] += d[4]) {{
    more = fread(d, 4, 5, stdin);
    for (uint64_t i = r[0], end = more ? i + d[0] : 0x{rules.source.mask + 1:x}; i < end; i++) {{
{textwrap.indent(_c_call(target.function, rules, signature), " " * 6)}
      if ((y < r[1] || y > r[2]) && (y < r[3] || y > r[4]))
        return printf("0x%llx gives 0x%x, allowed are 0x%x to 0x%x and 0x%x to 0x%x",
          (unsigned long long)i, (unsigned)y, r[1], r[2], r[3], r[4]), 1; }} }} }}"""

def test_{_plain(target.function)}(tmp_path):
    (tmp_path / "all.{suffix}").write_text(C.replace("CODEC", str(CODEC)))
    headers = "-include math.h -include stdint.h -include stdio.h -include string.h".split()
    options = ["-O2", "-ffp-contract=off", *headers, "-o", "all", "all.{suffix}",{library} "-lm"]
    subprocess.run(["{compiler}", *options], cwd=tmp_path, check=True)
    table = {UNPACK}
    asked = subprocess.run([tmp_path / "all"], input=table, capture_output=True)
    assert asked.returncode == 0, asked.stdout.decode()
'''
    return "", body


def _c_call(function: str, rules: Ruling, signature: Signature) -> str:
    """Return C statements that call the codec with input `i` and set `y` to its answer.

    Both are patterns, as unsigned integers.
    """
    source, target = rules.source, rules.target
    given, answer = signature.given, signature.answer
    pattern = f"{source.storage}_t u = ({source.storage}_t)i;"
    if given == "float" and source.name == "bfloat16":
        argument = "uint32_t u = (uint32_t)i << 16; float x; memcpy(&x, &u, sizeof x);"
    elif given == "double":
        argument = f"{pattern} float f; memcpy(&f, &u, sizeof f); double x = f;"
    elif is_floating(given):
        argument = f"{pattern} {given} x; memcpy(&x, &u, sizeof x);"
    else:
        argument = f"{given} x = ({given})i;"
    if signature.count:
        call = f"{answer} z; {function}(&x, &z, 1);"
    else:
        call = f"{answer} z = {function}(x);"
    if answer == "double":
        result = "float s = (float)z; uint32_t y; memcpy(&y, &s, sizeof y);"
    elif is_floating(answer):
        result = f"{target.storage}_t y; memcpy(&y, &z, sizeof y);"
    else:
        result = "uint32_t y = z;"
    return f"{argument} {call} {result}"


def _python_test(path: Path, target: CodecTarget, rules: Ruling, form: str) -> tuple[str, str]:
    source, answer = rules.source, rules.target
    imports = "\nimport numpy as np\n"
    if form == "torch":
        imports += "import torch\n"
    module = target.where
    if module.endswith(".py"):
        folder = _beside(path, Path(target.where).parent)
        module = Path(target.where).stem
        imports += f'\nsys.path.insert(0, str(Path(__file__).parent / "{folder}"))\n'
    imports += f"from {module} import {target.function.partition('.')[0]}  # noqa: E402\n"
    call = _python_call(target.function, source, answer, form)
    if source.bits <= EXHAUSTIVE_BITS:
        stride, chosen = "", f"np.arange(0x{source.mask + 1:x}, dtype=np.uint32)"
    else:
        stride = f"STRIDE = {STRIDE}  # 1 asks all inputs\n"
        some = f"np.arange(0, 0x{source.mask + 1:x}, STRIDE)"
        chosen = f"np.concatenate([first, first[1:] - 1, {some}]).astype(np.uint32)"
    words = 'WRONG = "{:#x} gives {:#x}, allowed are {:#x} to {:#x} and {:#x} to {:#x}"'
    body = f"""{words}
{stride}
def test_{_plain(target.function)}():
    rows = np.frombuffer({UNPACK}, np.uint32)
    first, a, b, c, d = rows.reshape(-1, 5).cumsum(0, np.uint32).astype(np.int64).T
    bits = {chosen}
    y = {call}
    at = np.searchsorted(first, bits, "right") - 1
    wrong = ((y < a[at]) | (y > b[at])) & ((y < c[at]) | (y > d[at]))
    told = zip(*(each[wrong].tolist() for each in (bits, y, a[at], b[at], c[at], d[at])))
    assert not wrong.any(), [WRONG.format(*each) for each in told][:9]
"""
    return imports, body


def _python_call(function: str, source: Format, target: Format, form: str) -> str:
    """Return an expression that calls the codec with `bits`, and gives the answers' patterns."""
    patterns = f"bits.astype(np.{source.storage})"
    match source.name:
        case name if source.is_integral or name in ("float32", "float16"):
            numbers = f"{patterns}.view(np.{source.name})"
        case "bfloat16":
            numbers = "(bits << 16).view(np.float32)"
        case _:
            numbers = patterns
    match form:
        case "numpy":
            found = f"{function}({numbers})"
        case "numpy-bits":
            found = f"{function}({patterns})"
        case "torch":
            words = "torch.from_numpy(" + patterns + ")"
            view = f".view(torch.{source.name})" if source.name in NUMBERS else ""
            found = f"{function}({words}{view})"
            found += ".view(torch.uint8).numpy()" if target.bits <= 8 else ".numpy()"
        case _:
            given = numbers if form == "number" else patterns
            found = f"[{function}(each) for each in {given}.tolist()]"
    assert asks_one_by_one(form) == found.startswith("[")
    if target.name in ("float32", "float16"):
        return f"np.asarray({found}, np.{target.name}).view(np.{target.storage})"
    return (
        f"np.asarray({found}).view(np.{target.storage})" if form in ARRAYS else f"np.array({found})"
    )


NUMBERS = ("float32", "float16", "bfloat16", *INTEGER_SOURCES)
ARRAYS = ("numpy", "numpy-bits")


def _beside(path: Path, other: Path) -> str:
    return Path(os.path.relpath(other.resolve(), path.resolve().parent)).as_posix()


def _plain(function: str) -> str:
    return function.replace("::", "_").replace(".", "_")
