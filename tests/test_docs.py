"""README and docs show what the code does: every command is run, or is listed here with a reason.

Conventions of the pages:

- A ```console block holds commands, each after ``$ ``, and below each its output: stdout and stderr
  as a terminal shows them, 100 columns wide. A command without output below it is run too; only its
  exit code is checked.
- A line ``…`` stands for any number of lines that the page leaves out; ``…`` inside a line stands
  for any text.
- A ```sh block holds lines to copy and paste. They are not run and are listed in ``NOT_RUN``.
- A block below a line that ends in ``NAME`:`` (a file name in backticks and a colon) is written to
  that file before the page's commands run.
- The commands of a page run in their order in one folder, which sees the checkout's ``examples``
  and ``specs``; ``pytest`` starts from the checkout.

``REWRITE_DOCS=1 pytest tests/test_docs.py`` writes the real outputs into the pages. It keeps the
lines that a page has trimmed; read the difference before you commit it.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import importlib.util
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pytest

from conformance.commands.main import main
from specs import house_rules
from specs.loader import documents
from tests.doc_pages import PAGES, ROOT, name_of

AT_NIGHT: dict[str, tuple[str, ...]] = {
    "ONNX's runner makes all its own tests before ours": (
        "python -W ignore chosen.py TEXTS string float64 int64 uint8",
    ),
    "a gate by house rules, which tests/conformance/test_house_rules.py has": (
        "castigate gate --backend ort --policy saturating.yaml --rules ours.yaml --out GATE",
        "castigate verify GATE/certificate.json",
    ),
    "a gate of the vendor in C, which tests/wire/test_vendor_c.py judges": (
        "castigate gate --backend exec:./vendor --policy vendor.yaml --out GATE",
        "castigate verify GATE/certificate.json --replay 3 --backend exec:./vendor",
    ),
    "all inputs of float32": ("castigate codec c:e4m3.h:to_e4m3 --format e4m3fn",),
    "a run of all quantizations of onnxruntime": (
        "castigate run --backend ort --document onnx-quantize-linear"
        " --document onnx-dequantize-linear --out RUN",
    ),
}
"""Commands that take ten to twenty seconds, or read what such a one makes: they run at night."""
REWRITE = bool(os.environ.get("REWRITE_DOCS"))
CUT = "…"
SLOW = re.compile(r"^loading .* takes over \d+ s; waiting for up to \d+ s\n", re.MULTILINE)
"""Lines that a command prints in addition if the machine is busy."""
LANGUAGES = {"console", "json", "mermaid", "python", "sh", "text", "yaml"}
PYTEST_HERE = (
    *("-p", "castigate", "-p", "no:cacheprovider"),
    *("--capture=sys", "-W", "ignore::pytest.PytestAssertRewriteWarning"),
)
"""The suite's plugin from this checkout, even where another one is installed."""

NOT_RUN: dict[str, tuple[str, ...]] = {
    "installs packages; .ci/run and tox do it": (
        "python3 -m venv .venv && .venv/bin/pip install -q -c constraints.txt tox"
        " && .venv/bin/tox -q -e nightly",
        "python3 -m venv .venv && .venv/bin/pip install -q -c constraints.txt tox"
        " && .venv/bin/tox -q -p 2 -e tests,types,lint,frameworks",
        "python3 -m venv .venv && . .venv/bin/activate",
        "pip install -c constraints.txt -e '.[nightly,dev]'",
        ". .venv/bin/activate && pip install -q -c constraints.txt -e '.[ort,torch,dev]'",
        "pip install castigate",
        "pip install 'castigate[torchao]'",
        "pip install 'castigate[optimizers]'",
        "pip install 'castigate[scale]'",
        "castigate run --backend torchao --document mx-blocks --document nvfp4-blocks",
    ),
    "makes environments of past releases": (
        "pip install 'castigate[ort]' onnxruntime==1.32.0",
        "castigate upgrade --backend ort --from 1.31.1 --out DIR",
        "castigate history --backend ort --versions 1.20.1,1.22.1,1.24.4,1.27.0,1.31.1"
        " --document onnx-cast --out DIR",
        "castigate bisect onnx-cast:19/float8e5m2/bool 0x80 --backend ort --versions 1.20..1.31",
    ),
    "takes minutes": (
        "castigate nightly --out DIR",
        "python -m lab.page_model 1000000",
        "castigate run --backend ort --document onnx-quantize-linear:25 --out RUN",
        "castigate export onnx --out ALL",
        "castigate gate --backend ort --policy mine.yaml --out DIR",
        "castigate gate --backend ort --policy mine.yaml --sign key.pem --out SIGNED",
        "castigate gate --backend exec:./vendor --policy strict --out GATE",
        "castigate run --backend torch --tier full --document onnx-cast:25 --source float32"
        " --out RUN",
        "castigate run --backend ort --tier full --document onnx-cast:25 --source float32"
        " --target float16 --out RUN",
        "castigate run --backend ort --tier full --shard 1/4 --out PART1",
        "pytest conformance --backend=ort --tier=full",
        "pytest conformance --backend=torch -k invariances",
        "pytest conformance --backend=torch --backend=torch:compile --backend=torch:threads"
        " -k variants",
        "pytest conformance --backend='exec:./vendor --device 0' --document onnx-cast:25",
        "pytest conformance --backend=examples/vendor_python/adapter.py:NumpyCast"
        " --document=onnx-cast:25",
    ),
    "needs a run or a folder of the reader's": (
        "castigate diff RUN OTHER-RUN",
        "castigate diff RUN --backend ort --backend torch",
        "castigate diff RUN OTHER-RUN --backend jax --backend jax:folded",
        "castigate gate --backend ort --policy regression-only --baseline OLDER-RUN --out LATER",
        "castigate merge PART1 PART2 PART3 PART4 --out RUN",
        "castigate report OLDEST … LAST --out DIR",
        "castigate report RUN… --out DIR --summary FILE --csv FILE --junit FILE",
        "castigate run --resume --out RUN",
        "castigate verify DIR/certificate.json --replay 20",
    ),
    "needs a bucket in an object store": (
        "export AWS_ACCESS_KEY_ID=… AWS_SECRET_ACCESS_KEY=… AWS_DEFAULT_REGION=…",
        "castigate run --backend ort --document onnx-cast:25 --out s3://bucket/run",
        "castigate report s3://bucket/run --out s3://bucket/report --csv s3://bucket/cases.csv",
    ),
    "needs the machines of a cluster": (
        "pip install 'castigate[scale,torch,fast]'",
        "dask scheduler --port 8786",
        "dask worker tcp://HOST:8786 --nthreads 1",
        "castigate run --backend torch --tier full --executor dask://HOST:8786 --out RUN",
    ),
    "needs a program, an adapter or a page of the reader's": (
        "castigate inputs CASE | vendor-program | castigate judge",
        "castigate inputs --json mx-blocks:1/float32/float4e2m1/rule:floor/block:32"
        " | vendor-program | castigate judge --complete",
        "castigate inputs --json onnx-quantize-linear:25/float32/int8/scale:float32/form:axis"
        " | vendor-program | castigate judge --complete",
        "castigate specs page page.md > page.md.sha256",
        "pytest conformance --backend=my_adapter.py:Eager --backend=my_adapter.py:Compiled"
        " -k variants",
    ),
    "needs a framework or a device that the tests do not have": (
        "castigate run --backend torch --backend torch:cuda --document onnx-cast:25"
        " --source float32 --out RUN",
        "castigate diff RUN --backend torch --backend torch:cuda",
        "castigate run --backend torch_xla --python torch_xla=envs/xla/bin/python --backend jax"
        " --out RUN",
        "pytest conformance --backend=tensorflow:xla --backend=tensorflow:xla-folded -k variants",
    ),
    "changes the checkout, or is run by CI anyway": (
        "pytest conformance --backend=ort --update-ledger",
        "pytest -q tests/specs/test_formats.py",
        "ruff check . && ruff format . && mypy",
        "REWRITE_DOCS=1 pytest -q tests/test_docs.py",
        "git diff README.md docs",
    ),
    "is openssl's, not ours": (
        "openssl genpkey -algorithm ed25519 -out key.pem",
        "openssl pkey -in key.pem -pubout -out public.pem",
    ),
}
"""Reasons, and the commands that are not run for each."""

FENCE = re.compile(r"^```(\w*)$")
FILE_NAME = re.compile(r"`([\w-]+\.(?:h|jsonl|py|yaml))`:$")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its lines, the number of its first line, the text above it."""

    language: str
    lines: tuple[str, ...]
    first: int
    above: str
    indent: str

    @property
    def file_name(self) -> str | None:
        """The name of the file to which the page says that the block is written, or None."""
        found = FILE_NAME.search(self.above)
        return found[1] if found and self.language != "console" else None


@dataclass(frozen=True)
class Command:
    """A command of a page, and the lines of output that the page shows below it."""

    text: str
    shown: tuple[str, ...]
    first: int
    """The index of the first line of its output on the page."""
    indent: str


def blocks(text: str) -> Iterator[Block]:
    lines = text.splitlines()
    begin, language, above, indent = None, "", "", ""
    for place, line in enumerate(lines):
        fence = FENCE.match(line.strip())
        if begin is None and fence is not None:
            begin, language, indent = place + 1, fence[1], line[: line.index("```")]
        elif begin is not None and line.strip() == "```":
            inside = tuple(each.removeprefix(indent) for each in lines[begin:place])
            yield Block(language, inside, begin, above, indent)
            begin, above = None, ""
        elif begin is None and line.strip():
            above = line.strip()
    assert begin is None, f"the block that begins at line {begin} has no end"


def commands(block: Block) -> list[Command]:
    """The commands of a console block; a line that ends in a backslash continues in the next."""
    found: list[Command] = []
    lines, place = block.lines, 0
    while place < len(lines):
        assert lines[place].startswith("$ "), f"no command above `{lines[place]}`"
        text = lines[place][2:]
        while text.endswith("\\"):
            place += 1
            text = text[:-1].rstrip() + " " + lines[place].strip()
        end = begin = place + 1
        while end < len(lines) and not lines[end].startswith("$ "):
            end += 1
        found.append(Command(text, lines[begin:end], block.first + begin, block.indent))
        place = end
    return found


def plain(text: str) -> str:
    """A command without its comment."""
    return re.sub(r"\s+# .*$", "", text).strip()


def reason_not_to_run(text: str) -> str | None:
    return next((reason for reason, some in NOT_RUN.items() if plain(text) in some), None)


def castigate(arguments: list[str], stdin: str) -> tuple[int, str]:
    """The exit code of the command inside this process, and its output with its errors."""
    out = io.StringIO()
    with (
        patch.object(sys, "argv", ["castigate", *arguments]),
        patch.object(sys, "stdin", io.StringIO(stdin)),
        redirect_stdout(out),
        redirect_stderr(out),
        pytest.raises(SystemExit) as left,
    ):
        main()
    # A process of its own would know neither documents nor house rules of the command before.
    documents().own.clear()
    house_rules._own.clear()
    return int(left.value.code or 0), SLOW.sub("", out.getvalue())


def pytest_here(arguments: list[str]) -> tuple[int, str]:
    """The exit code of pytest inside this process, started from the checkout, and its output."""
    out = io.StringIO()
    with chdir(ROOT), redirect_stdout(out), redirect_stderr(out):
        code = pytest.main([*PYTEST_HERE, *arguments])
    return int(code), SLOW.sub("", out.getvalue())


def process(arguments: list[str], folder: Path, stdin: str) -> tuple[int, str]:
    """The exit code and the output of a command that is a process of its own."""
    if arguments[0] == "python":
        arguments = [sys.executable, *arguments[1:]]
    done = subprocess.run(
        arguments,
        cwd=folder,
        input=stdin,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, SLOW.sub("", done.stdout)


class MissingProgram(Exception):
    """A page calls a program that this machine lacks."""


def run(text: str, folder: Path) -> tuple[int, str]:
    """Run a command line: programs, pipes between them, and a redirection at its end."""
    lexer = shlex.shlex(plain(text), posix=True, punctuation_chars="|>")
    lexer.whitespace_split = True
    words = list(lexer)
    target = None
    if ">" in words:
        *words, _, target = words
    code, output = 0, ""
    while words:
        end = words.index("|") if "|" in words else len(words)
        part, words = words[:end], words[end + 1 :]
        if part[0] not in ("castigate", "pytest", "python") and shutil.which(part[0]) is None:
            raise MissingProgram(f"{part[0]} is not installed")
        if part[0] == "castigate":
            code, output = castigate(part[1:], output)
        elif part[0] == "pytest":
            code, output = pytest_here(part[1:])
        else:
            code, output = process(part, folder, output)
    if target is not None:
        (folder / target).write_text(output, encoding="utf-8")
        output = ""
    return code, output


RUNS: dict[str, tuple[str, Path]] = {}
"""The output of each `castigate run`, and the folder of its run."""


def run_once(text: str, folder: Path) -> tuple[int, str]:
    """Run a command line; a `castigate run` that another page has shown is copied from there."""
    out = re.search(r"^castigate run .*--out (\w+)$", plain(text))
    if out is None:
        return run(text, folder)
    if plain(text) not in RUNS:
        code, output = run(text, folder)
        if code not in (0, 1):
            return code, output
        RUNS[plain(text)] = output, folder / out[1]
    output, made = RUNS[plain(text)]
    if made != folder / out[1]:
        shutil.copytree(made, folder / out[1])
    return 0, output


def stripped(output: str) -> list[str]:
    """The lines of an output, without blanks at their ends and empty lines around them."""
    return [line.rstrip() for line in output.strip("\n").splitlines()]


def fits(shown: list[str], real: list[str]) -> bool:
    """Whether the page shows the real output, apart from what it leaves out by ``…``."""
    pattern = "".join(
        r"(?:.*\n)*?" if line == CUT else re.escape(line).replace(CUT, ".*") + r"\n"
        for line in shown
    )
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in real)) is not None


def refreshed(shown: list[str], real: list[str]) -> list[str]:
    """Cut the real output where the page cuts it now; the page should show the result.

    The part before the first cut gets as many lines from the beginning, the part after the last
    as many from the end; a part between two cuts begins at the line most like its first one.
    """
    if CUT not in shown:
        return real
    parts: list[list[str]] = [[]]
    for line in shown:
        if line == CUT:
            parts.append([])
        else:
            parts[-1].append(line)
    head, *middle, tail = parts
    made, place = real[: len(head)], len(head)
    for part in middle:
        left = real[place:]
        like = max(left, key=lambda line: difflib.SequenceMatcher(None, part[0], line).ratio())
        place += left.index(like)
        made += [CUT, *real[place : place + len(part)]]
        place += len(part)
    made += [CUT, *(real[-len(tail) :] if tail else [])]
    lines = [line for line in shown if line != CUT]
    new = [line for line in made if line != CUT]
    if len(lines) == len(new):
        old = dict(zip(new, lines, strict=True))
        # A line with a cut inside is kept as long as it fits.
        made = [
            old[line] if line in old and CUT in old[line] and fits([old[line]], [line]) else line
            for line in made
        ]
    return made


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("examples", "specs"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    return tmp_path


def at_night(text: str) -> bool:
    return any(plain(text) in some for some in AT_NIGHT.values())


WITH_NIGHT = [
    page
    for page in PAGES
    for block in blocks(page.read_text(encoding="utf-8"))
    if block.language == "console" and any(at_night(one.text) for one in commands(block))
]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_of_a_page_prints_what_the_page_shows(page: Path, folder: Path) -> None:
    judge_page(page, folder, by_night=False)


@pytest.mark.nightly
@pytest.mark.parametrize("page", dict.fromkeys(WITH_NIGHT), ids=name_of)
def test_so_do_the_slow_commands(page: Path, folder: Path) -> None:
    judge_page(page, folder, by_night=True)


def judge_page(page: Path, folder: Path, by_night: bool) -> None:
    text = page.read_text(encoding="utf-8")
    lines, wrong = text.splitlines(), []
    changes: list[tuple[Command, list[str]]] = []
    missing = None
    try:
        for command, code, real in outputs(text, folder, by_night):
            shown = stripped("\n".join(command.shown))
            if (not shown and code in (0, 1)) or (shown and fits(shown, real)):
                continue
            changes.append((command, refreshed(shown, real)))
            difference = "\n".join(difflib.unified_diff(shown, real, "page", "output", lineterm=""))
            wrong.append(f"$ {command.text}\nexit code {code}\n{difference}")
    except MissingProgram as error:
        missing = str(error)
    if REWRITE and changes:
        for command, new in reversed(changes):
            indented = [f"{command.indent}{line}".rstrip() for line in new]
            lines[command.first : command.first + len(command.shown)] = indented
        page.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return
    assert not wrong, f"{name_of(page)} is not what comes out:\n\n" + "\n\n".join(wrong)
    if missing is not None:
        pytest.skip(missing)


def outputs(text: str, folder: Path, by_night: bool) -> Iterator[tuple[Command, int, list[str]]]:
    """The commands of a page that are run, their exit codes and the lines that they print."""
    for block in blocks(text):
        if block.file_name is not None:
            (folder / block.file_name).write_text("\n".join(block.lines) + "\n", encoding="utf-8")
        if block.language != "console":
            continue
        for command in commands(block):
            if reason_not_to_run(command.text) is not None:
                assert not command.shown, f"`{command.text}` is not run; do not show its output"
            elif by_night or not at_night(command.text):
                code, output = run_once(command.text, folder)
                yield command, code, stripped(output)


def all_blocks() -> Iterator[tuple[Path, Block]]:
    for page in PAGES:
        for block in blocks(page.read_text(encoding="utf-8")):
            yield page, block


def test_every_block_names_its_language() -> None:
    wrong = [
        f"{name_of(page)}:{block.first}"
        for page, block in all_blocks()
        if block.language not in LANGUAGES
    ]
    assert wrong == []


def test_commands_stand_in_console_blocks_and_lines_to_paste_are_listed() -> None:
    for page, block in all_blocks():
        where = f"{name_of(page)}:{block.first}"
        if block.language == "sh":
            assert [line for line in block.lines if reason_not_to_run(line) is None] == [], where
        elif block.language != "console":
            assert [line for line in block.lines if line.startswith("$ ")] == [], where


def test_every_command_that_is_not_always_run_is_on_a_page() -> None:
    shown = {
        plain(command.text)
        for _, block in all_blocks()
        if block.language == "console"
        for command in commands(block)
    }
    shown |= {line for _, block in all_blocks() if block.language == "sh" for line in block.lines}
    listed = [text for listing in (NOT_RUN, AT_NIGHT) for some in listing.values() for text in some]
    assert sorted(listed) == sorted(set(listed))
    assert set(listed) - shown == set()


@pytest.mark.filterwarnings("ignore:onnx.version is deprecated:DeprecationWarning")  # onnxruntime
def test_what_python_examples_import_exists() -> None:
    for page, block in all_blocks():
        # Pages that show a dialog are doctests, which tests/conformance/api runs.
        if block.language != "python" or block.lines[0].startswith(">>>"):
            continue
        for node in ast.walk(ast.parse("\n".join(block.lines))):
            if isinstance(node, ast.ImportFrom) and node.module:
                if importlib.util.find_spec(node.module.partition(".")[0]) is None:
                    continue  # a library of block formats, each in an environment of its own
                module = importlib.import_module(node.module)
                missing = [one.name for one in node.names if not hasattr(module, one.name)]
                assert missing == [], f"{name_of(page)}:{block.first}"
