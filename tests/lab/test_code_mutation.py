"""The mutants of a seed are always the same, and the page lists their outcomes."""

from __future__ import annotations

import subprocess
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pytest
from typer.testing import CliRunner

from lab.code_mutation import __main__ as command
from lab.code_mutation.mutants import Mutant, changed_line, changes_by_place, draw_mutants
from lab.code_mutation.page import page
from lab.code_mutation.related_tests import RELATED, related_files
from lab.code_mutation.results import Results, read_results, write_results
from lab.code_mutation.selection import PACKAGES, draw, package_of, share_out, sources_of
from lab.code_mutation.trial import Trials, copies
from lab.code_mutation.verdicts import read_verdicts
from specs.errors import CastigateError

ROOT = Path(__file__).parents[2]
KILLED = Mutant("specs/formats.py", 4, "Format.mask", "a < b", "a <= b", "LtE", 0)
SURVIVOR = Mutant("specs/formats.py", 9, "formats", "a + 1", "a + 2", "NumberReplacer", 1)
SAME = Mutant("reports/gate/policy.py", 5, "", "x == 0", "x <= 0", "LtE", 2)
HANGS = Mutant("reports/gate/policy.py", 7, "", "break", "continue", "Break", 0)


def some_results() -> Results:
    results = Results(seed=7, date="2026-11-26", versions="castigate 0.1.0", tried=[])
    for mutant, outcome in (
        (KILLED, "killed"),
        (SURVIVOR, "survived"),
        (SAME, "survived"),
        (HANGS, "timed out"),
    ):
        results.add(mutant, outcome)
    return results


SOURCE = '''"""Texts stay: 1 + 1."""

from dataclasses import dataclass
from functools import cache

Number = int | float


@dataclass(frozen=True)
class Point:
    """A point."""

    x: int | None = 3


@cache
def add(left: "int | None", right: int) -> int | None:
    """Add."""
    return [a + b for a, b in zip([left], [right], strict=True)][0]
'''


def test_annotations_texts_and_checks_are_not_changed() -> None:
    pytest.importorskip("cosmic_ray", reason="needs the extra `dev`")
    mutants = sorted(draw_mutants("point.py", SOURCE, Random(0)), key=lambda each: each.line)
    lines = [each.before for each in mutants]
    added = "return [a + b for a, b in zip([left], [right], strict=True)][0]"
    assert lines == ["@dataclass(frozen=True)", "x: int | None = 3", added, added]
    assert [each.inside for each in mutants] == ["Point", "Point", "add", "add"]
    assert mutants[0].after == ""
    assert mutants[1].after in ("x: int | None = 4", "x: int | None = 2")


def test_a_place_is_changed_once_in_one_of_several_ways() -> None:
    pytest.importorskip("cosmic_ray", reason="needs the extra `dev`")
    source = "def f(a, b):\n    return a + b\n"
    [changes] = changes_by_place(source).values()
    assert len(changes) == 11
    drawn = {next(draw_mutants("f.py", source, Random(seed))).after for seed in range(30)}
    assert len(drawn) > 5
    assert all(len(list(draw_mutants("f.py", source, Random(seed)))) == 1 for seed in range(5))


def test_a_seed_draws_the_same_mutants_and_a_larger_number_adds_to_them() -> None:
    pytest.importorskip("cosmic_ray", reason="needs the extra `dev`")
    sources = dict.fromkeys(("a.py", "b.py"), SOURCE * 3)

    def drawn(seed: int, number: int) -> list[Mutant]:
        return list(islice(draw(sources, Random(seed)), number))

    assert drawn(1, 8)[:5] == drawn(1, 5)
    assert drawn(1, 5) != drawn(2, 5)
    assert len(set(drawn(1, 8))) == 8


def test_packages_share_a_number_by_their_lines() -> None:
    assert share_out(10, {"a": 100, "b": 100, "c": 50}) == {"a": 4, "b": 4, "c": 2}
    assert share_out(5, {"a": 100, "b": 100, "c": 100}) == {"a": 2, "b": 2, "c": 1}


def test_every_module_has_tests_that_exist() -> None:
    files = [file for package in PACKAGES for file in sources_of(ROOT, package)]
    assert len(files) > 100
    tests = {test for file in files for test in related_files(file)}
    assert [test for test in sorted(tests) if not (ROOT / test).is_file()] == []
    assert {related_files(file) for file in files} == {
        related_files(each.split()[0]) for each, _ in RELATED
    }
    with pytest.raises(KeyError, match=r"`conformance/driver\.py` has no tests"):
        related_files("conformance/driver.py")
    assert package_of("specs/model/cache.py") == "specs"


def test_a_mutant_runs_in_a_copy_and_the_module_is_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("cosmic_ray", reason="needs the extra `dev`")
    source = "def largest(numbers):\n    return max(numbers) + 0\n"
    (tmp_path / "small.py").write_text(source)
    (tmp_path / "tests").mkdir()
    text = "import small\n\n\ndef test_it() -> None:\n    assert small.largest([1, 2]) == 2\n"
    (tmp_path / "tests" / "test_small.py").write_text(text)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = nightly\n")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    monkeypatch.setattr(
        "lab.code_mutation.trial.related_files", lambda file: ("tests/test_small.py",)
    )
    killed = Mutant("small.py", 2, "largest", "", "", "NumberReplacer", 0)
    same = Mutant("small.py", 2, "largest", "", "", "ReplaceBinaryOperator_Add_Sub", 0)
    with copies(tmp_path, 1) as [copy]:
        assert copy.run_tests(("tests/test_small.py",), 100) == 0
        assert copy.try_mutant(killed, 100) == "killed"
        assert copy.try_mutant(same, 100) == "survived"
        assert copy.try_mutant(same, 0.01) == "timed out"
        assert (copy.root / "small.py").read_text() == source
    assert (tmp_path / "small.py").read_text() == source


def test_tests_that_no_mutant_survived_run_without_any_change() -> None:
    results = some_results()
    assert command.unproved_lists(results) == []
    results.add(SAME, "killed")
    assert command.unproved_lists(results) == [related_files(SAME.file)]


def test_tests_that_fail_without_any_change_void_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Planted(Trials):
        def __init__(self) -> None: ...

        def try_mutants(self, mutants: Any, report: Any) -> None:
            for mutant in mutants:
                report(mutant, "killed", 1.0)

        def failing_lists(self, lists: Any) -> Any:
            return lists

    monkeypatch.setattr(command, "find_spec", lambda name: name)
    monkeypatch.setattr(command, "select_mutants", lambda root, seed, number: [KILLED])
    monkeypatch.setattr(command, "trials", lambda root, jobs: nullcontext(Planted()))
    path = tmp_path / "results.json"
    with pytest.raises(CastigateError, match=r"tests fail without any change.*test_formats"):
        command.run_mutants(seed=3, number=1, jobs=1, path=path)
    assert [each.mutant for each in read_results(path).tried] == [KILLED]
    with pytest.raises(CastigateError, match="has seed 3; delete it"):
        command.run_mutants(seed=4, number=1, jobs=1, path=path)


def test_a_change_is_one_line_before_and_after() -> None:
    before = "a = 1\nif a:\n    b  =  2\n"
    assert changed_line(before, before.replace("2", " 3")) == (3, "b = 2", "b = 3")
    assert changed_line("\n@cache\ndef f(): ...\n", "def f(): ...\n") == (2, "@cache", "")


def test_the_page_counts_what_was_killed_and_lists_survivors_with_verdicts() -> None:
    because = "equivalent because x is never negative"
    text = page(some_results(), {(SAME.file, SAME.inside, SAME.before, SAME.after): because})
    assert "| specs | 2 | 1 | 0 | 1 | 50.0 % |" in text
    assert "| reports/gate | 2 | 0 | 1 | 1 | 50.0 % |" in text
    assert "| all | 4 | 1 | 1 | 2 | 50.0 % |" in text
    assert "| reports/gate | 1 | 1 | 0 | 0 | 100.0 % |" in text
    assert "| all | 2 | 1 | 0 | 1 | 66.6 % |" in text
    assert "2026-11-26, seed 7, castigate 0.1.0." in text
    assert (
        f"`reports/gate/policy.py`, line 5: {because}\n\n```diff\n- x == 0\n+ x <= 0\n```" in text
    )
    assert "`a < b`" not in text


def test_a_survivor_without_a_verdict_is_not_read() -> None:
    assert "`specs/formats.py`, line 9 (`formats`): not read\n\n```diff\n- a + 1\n" in page(
        some_results(), {}
    )


def test_a_survivor_that_is_said_to_be_tested_is_tested_only_once_it_is_killed() -> None:
    results = some_results()
    said = {
        (
            SURVIVOR.file,
            SURVIVOR.inside,
            SURVIVOR.before,
            SURVIVOR.after,
        ): "tested by tests/specs/test_load.py"
    }
    assert "line 9 (`formats`): not read: said to be tested by tests/specs/test_load.py" in page(
        results, said
    )
    results.add(SURVIVOR, "killed")
    text = page(results, said)
    assert "line 9 (`formats`): tested by tests/specs/test_load.py\n" in text
    assert "| specs | 2 | 1 | 0 | 1 | 50.0 % |" in text
    assert "| specs | 2 | 0 | 0 | 0 | 100.0 % |" in text


def test_results_are_continued_by_what_was_not_killed(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    write_results(some_results(), path)
    results = read_results(path)
    assert results == some_results()
    new = Mutant("specs/cases.py", 1, "", "1", "2", "NumberReplacer", 0)
    assert results.untried([KILLED, SURVIVOR, HANGS, new]) == [SURVIVOR, new]
    results.keep([SURVIVOR, new])
    assert [each.mutant for each in results.tried] == [SURVIVOR]


def test_the_command_writes_the_page_of_stored_results(tmp_path: Path) -> None:
    stored, out = tmp_path / "results.json", tmp_path / "mutation.md"
    write_results(some_results(), stored)
    arguments = ["page", "--results", str(stored), "--out", str(out)]
    result = CliRunner().invoke(command.app, arguments)
    assert result.exit_code == 0, result.output
    assert out.read_text(encoding="utf-8") == page(some_results(), read_verdicts())
    assert "| all | 4 | 1 | 1 | 2 | 50.0 % |" in result.output


def test_the_stored_page_is_that_of_the_stored_results_and_every_survivor_is_read() -> None:
    text = page(read_results(command.RESULTS), read_verdicts())
    assert command.PAGE.read_text(encoding="utf-8") == text
    assert ": not read" not in text


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("verdict: looks fine", "String should match pattern"),
        ("verdict: equivalent because so\n  why: so", "unknown key `why`"),
    ],
)
def test_a_verdict_that_says_nothing_is_refused(written: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "verdicts.yaml"
    path.write_text(f'- file: a.py\n  inside: f\n  before: "1"\n  after: "2"\n  {written}\n')
    with pytest.raises(CastigateError, match=message):
        read_verdicts(path)


def test_stored_results_that_are_damaged_are_one_line(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    with pytest.raises(CastigateError, match="cannot be read"):
        read_results(path)
    path.write_text('{"seed": 1, "date": "", "versions": "", "tried": [{}]}')
    with pytest.raises(CastigateError, match=r"damaged at `tried\.0\.mutant`"):
        read_results(path)
