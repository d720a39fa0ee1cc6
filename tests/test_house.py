"""The repository keeps its design: layers, late imports, pinned versions, README commands."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from configparser import RawConfigParser
from dataclasses import fields
from functools import cache
from pathlib import Path
from pkgutil import resolve_name

import pytest

from conformance.families import FAMILIES
from specs.selection import case_named
from tests.conformance.processes import castigate_process
from tests.html.planted import HALF, planted_run

ROOT = Path(__file__).parents[1]
FLOORS = ("specs", "oracles", "reports", "conformance")
EXTRAS = ROOT / "conformance" / "extras"
HEAVY = ("torch", "onnxruntime", "onnx", "ml_dtypes", "array_api_strict")


@cache
def imports(path: Path) -> frozenset[str]:
    """The modules that a file imports, at any place in it."""
    return frozenset(_imports(path))


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            folder = ROOT / node.module.replace(".", "/")
            inside = {each.name for each in node.names if (folder / f"{each.name}.py").exists()}
            yield from (f"{node.module}.{name}" for name in inside)
            if len(inside) < len(node.names):
                yield node.module


def files_of(floor: str) -> list[Path]:
    return sorted((ROOT / floor).rglob("*.py"))


@pytest.mark.parametrize("floor", FLOORS)
def test_a_floor_imports_only_itself_and_floors_below(floor: str) -> None:
    above = FLOORS[FLOORS.index(floor) + 1 :]
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in files_of(floor)
        for module in imports(path)
        if module.partition(".")[0] in above
    ]
    assert wrong == []


@pytest.mark.parametrize("floor", [*FLOORS, "castigate.py"])
def test_the_product_never_imports_the_lab(floor: str) -> None:
    files = files_of(floor) or [ROOT / floor]
    parts = {module.partition(".")[0] for path in files for module in imports(path)}
    assert not parts & {"lab", "tests", "docs"}


def test_no_circles_between_modules() -> None:
    graph: dict[str, set[str]] = {}
    for floor in FLOORS:
        for path in files_of(floor):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            graph[name] = {*imports(path)}
    known = set(graph)

    def reaches(start: str, goal: str, seen: set[str]) -> bool:
        for module in (graph[start] & known) - seen:
            seen.add(module)
            if module == goal or reaches(module, goal, seen):
                return True
        return False

    assert [name for name in graph if reaches(name, name, set())] == []


def test_no_circles_between_folders_of_the_suite() -> None:
    """Judges, families, runs and the uses of judgements can each be read without the others."""
    graph: dict[str, set[str]] = {}
    for path in files_of("conformance"):
        module = path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
        named = (each for each in imports(path) if each.startswith("conformance."))
        graph.setdefault(_folder(module), set()).update(map(_folder, named))

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            more = graph.get(waiting.pop(), set()) - seen - {start, "__init__"}
            seen |= more
            waiting += more
        return seen

    back = [
        f"{folder} and {other}"
        for folder in graph
        for other in reached(folder)
        if folder in graph.get(other, ())
    ]
    assert back == []


def _folder(module: str) -> str:
    """The folder of a module of the suite; of an extra its own, and of the list of them that."""
    parts = module.split(".")[1:]
    return ".".join(parts[:2]) if parts[0] == "extras" else parts[0]


def test_only_the_list_of_extras_names_an_extra() -> None:
    """Each extra imports the core, and neither the core nor another extra imports or names it."""
    wrong = [
        f"{path.relative_to(ROOT)} names {named}"
        for floor in FLOORS
        for path in files_of(floor)
        if path != EXTRAS / "__init__.py"
        for named in re.findall(r"conformance[./]extras[./](\w+)", path.read_text())
        if not path.is_relative_to(EXTRAS / named)
    ]
    assert wrong == []


def test_a_report_imports_no_extra_that_has_nothing_to_show(tmp_path: Path) -> None:
    run = planted_run(tmp_path / "run", backends=["ort"], of=[case_named(HALF)])
    code = (
        "import sys, castigate\ntry:\n    castigate.main()\nfinally:\n"
        "    print(*(name for name in sys.modules if name.startswith('conformance.extras.')))"
    )
    asked = [sys.executable, "-c", code, "report", run, f"--out={tmp_path / 'site'}"]
    done = subprocess.run(asked, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1:] == [""]


def test_every_function_of_a_family_exists() -> None:
    for family in FAMILIES:
        for name in (getattr(family, each.name) for each in fields(family)):
            if isinstance(name, str) and name:
                resolve_name(name)
    operations = [each for family in FAMILIES for each in family.operations]
    assert len(operations) == len({*operations})


# What documents, adapters and programs write, the format of runs, and what others call so.
NAMES = {
    "quantiz": {
        *("specs/model/document.py", "specs/model/step_entry.py"),
        *("oracles/protocol.py", "oracles/wire/schema.py", "reports/problems.py"),
        "conformance/extras/containers/parties/gguf_party.py",  # functions of the gguf package
        "conformance/extras/checkpoints/onnx_file.py",  # nodes of ONNX
        "conformance/api/tensors.py",  # the method of an adapter
        # Messages that send people to documents about it.
        *("conformance/api/answers.py", "conformance/commands/judge.py"),
        "conformance/extras/checkpoints/check.py",
    },
    "bitcast": {
        *("specs/model/document.py", "oracles/protocol.py", "oracles/wire/schema.py"),
        *(
            "conformance/extras/containers/parties/jax_party.py",
            "conformance/extras/containers/parties/small_parties.py",
        ),
        "conformance/api/questions.py",  # a function of castigate.py
        # ONNX's runner has tests of two operators.
        *(f"conformance/extras/onnx_tests/{name}.py" for name in ("command", "tests")),
    },
}


@pytest.mark.parametrize("word", NAMES)
def test_no_other_module_outside_a_family_names_its_operations(word: str) -> None:
    found = {
        path.relative_to(ROOT).as_posix()
        for floor in FLOORS
        for path in files_of(floor)
        if re.search(word, path.read_text(), re.IGNORECASE)
    }
    rooms = ("conformance/families/", "oracles/adapters/")
    assert {path for path in found if not path.startswith(rooms)} == NAMES[word]


WATCHES_IMPORTS = """\
import os, sys

def note(event, arguments, seen=set()):
    name = str(arguments[0]) if event == "import" else ""
    if name.startswith(("oracles.", "reports.", "conformance.", "lab.")) and name not in seen:
        seen.add(name)
        with open(os.path.join(os.environ["IMPORTED"], str(os.getpid())), "a") as file:
            file.write(f"{name}\\n")

sys.addaudithook(note)
"""


def test_a_run_of_casts_imports_nothing_about_other_questions(tmp_path: Path) -> None:
    """No process of it imports another family, a page of an extra, the gate, or the lab."""
    (tmp_path / "sitecustomize.py").write_text(WATCHES_IMPORTS)
    (tmp_path / "seen").mkdir()
    paths = os.pathsep.join([str(tmp_path), str(ROOT)])
    asked = ("--document=onnx-cast:25", "--source=float16", "--target=float8e4m3fn")
    code, out, err = castigate_process(
        "run", "--backend=ml_dtypes", *asked, f"--out={tmp_path / 'run'}",
        env={"PYTHONPATH": paths, "IMPORTED": str(tmp_path / "seen")},
    )  # fmt: skip
    assert code in (0, 1), (out, err)
    files = [*(tmp_path / "seen").iterdir()]
    assert len(files) >= 2
    seen = {name for file in files for name in file.read_text().split()}
    assert "conformance.families.cast.judge" in seen
    others = ("bitcast", "blocks", "chains", "quantization")
    unwanted = (
        *(f"conformance.families.{each}" for each in others),
        *("conformance.extras.", "conformance.sweep.engine", "conformance.commands.gate"),
        *("reports.gate", "reports.html", "lab."),
    )
    assert [name for name in sorted(seen) if name.startswith(unwanted)] == []


def test_judges_import_no_process_no_backend_and_no_clock() -> None:
    """Judges only yield requests, which the driver has its client answer."""
    judges = files_of("conformance/judging") + files_of("conformance/families")
    direct = {module for path in judges for module in imports(path)}
    assert not direct & {"time", "subprocess", "multiprocessing", "threading", "socket", "asyncio"}
    asking = files_of("conformance/judging") + [each for each in judges if each.stem == "judge"]
    parts = (each.relative_to(ROOT).with_suffix("").parts for each in asking)
    names = ", ".join(".".join(each).removesuffix(".__init__") for each in parts)
    code = f"import sys, {names}; print(*(n for n in sys.modules if n.startswith('oracles')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    backend = {each for each in done.stdout.split() if each.startswith("oracles.backend.")}
    assert {each.rpartition(".")[2] for each in backend} == {
        *("frames", "remote_errors", "replies", "requests"),
    }
    assert "oracles.registry" not in done.stdout.split()


def test_frameworks_are_imported_by_their_adapter_alone_and_late() -> None:
    code = (
        "import sys, conformance.commands.main, conformance.pytest_plugin.plugin,"
        "oracles.adapters.ort, oracles.adapters.torch, oracles.adapters.onnx,"
        "oracles.adapters.ml_dtypes;"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_ci_runs_the_readmes_own_test_command() -> None:
    commands = re.findall(r"^python3 -m venv .*$", (ROOT / "README.md").read_text(), re.M)
    assert len(commands) == 2
    assert commands[1] in (ROOT / ".ci" / "run").read_text().splitlines()


def test_constraints_pin_every_direct_dependency() -> None:
    pinned = {
        re.split(r"==", line)[0].lower().replace("-", "_")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line
    }
    project = (ROOT / "pyproject.toml").read_text()
    # torch_xla needs another torch, so its requirements are in a file of their own.
    assert re.findall(r"^torch_xla==", (ROOT / "requirements-torch_xla.txt").read_text(), re.M)
    wanted = set(re.findall(r'"([A-Za-z0-9_.-]+)>=', project)) - {"setuptools", "torch_xla"}
    assert {name.lower().replace("-", "_") for name in wanted} - pinned == set()
    assert "torch==2.13.0" in (ROOT / "constraints.txt").read_text().splitlines()


def test_every_environment_that_runs_tests_has_what_they_import() -> None:
    tox = RawConfigParser()
    tox.read(ROOT / "tox.ini")
    [factors] = re.findall(r"(.*): hypothesis", tox["testenv"]["deps"])
    lacking = [
        name
        for name, environment in tox.items()
        if re.search(r"tests/|posargs:tests", environment.get("commands", ""))
        and "dev" not in environment.get("extras", "")
        and not {*factors.split(",")} & {*re.findall(r"\w+", name)}
    ]
    assert lacking == []
