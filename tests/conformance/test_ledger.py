"""The suite against a ledger: known divergences are excused, and nothing else is.

Each test starts pytest, so most run at night: what ledgers are is tested without a process by
`tests/reports/test_ledger.py`, and CI has an example of each way to pass and to fail.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DATA = Path(__file__).with_name("data")
SMALL = ROOT / "tests" / "specs" / "data" / "small.yaml"
PASSED, FAILED, USAGE = 0, 1, 4
NAME = "ledgered:Planted"
UPDATE = "--update-ledger"
CASES = 8 + 4
"""The cases, and the checks of the four pairs."""


@dataclass(frozen=True)
class Bench:
    """A folder with one document, and the ledgers that runs write there."""

    folder: Path

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger" / "ledgered.Planted.yaml"

    @property
    def text(self) -> str:
        return self.ledger.read_text(encoding="utf-8")

    def suite(
        self,
        faults: str,
        *arguments: str,
        backend: str = NAME,
        version: str = "1.0",
        target: str = "conformance",
    ) -> tuple[int, str]:
        """Run the suite against a backend with these faults; return exit code and all output."""
        path = os.pathsep.join([str(DATA), str(ROOT), os.environ.get("PYTHONPATH", "")])
        environment = {
            "PYTHONPATH": path,
            "LEDGERED": str(self.folder),
            "LEDGERED_FAULTS": faults,
            "LEDGERED_VERSION": version,
        }
        command = [sys.executable, "-m", "pytest", "-p", "ledgered", "-p", "no:cacheprovider"]
        done = subprocess.run(
            [*command, target, f"--backend={backend}", *arguments],
            cwd=ROOT,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            check=False,
        )
        output = done.stdout + done.stderr
        assert "INTERNALERROR" not in output, output
        assert "Traceback" not in output, output
        return done.returncode, output


def bench_in(folder: Path) -> Bench:
    documents = folder / "documents"
    documents.mkdir()
    (folder / "ledger").mkdir()
    # Make one rule recommended.
    head, rule, tail = SMALL.read_text(encoding="utf-8").partition("to-float8:\n")
    tail = tail.replace("level: required", "level: recommended", 1)
    (documents / "small.yaml").write_text(head + rule + tail, encoding="utf-8")
    return Bench(folder)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return bench_in(tmp_path)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """A bench whose ledger lists four inputs of two cases, and a recommendation in two."""
    made = bench_in(tmp_path_factory.mktemp("first"))
    code, output = made.suite("four saturated", UPDATE)
    assert code == PASSED, output
    assert f"{made.ledger}: 2 findings, 4 cases of {NAME} 1.0" in output
    return made


@pytest.fixture
def listed(first: Bench, bench: Bench) -> Bench:
    """A bench of this test with a copy of the ledger of ``first``."""
    bench.ledger.write_bytes(first.ledger.read_bytes())
    return bench


def told(output: str) -> str:
    """The words of the ledger's section about the backend's findings."""
    lines = output.partition("= ledger =")[2].splitlines()
    return next(line.partition(": ")[2] for line in lines if line.startswith(f"{NAME} "))


def test_listed_breaches_are_excused_and_counted(listed: Bench) -> None:
    code, output = listed.suite("four saturated", "-rx")
    assert code == PASSED, output
    assert f"castigate: ledger of {NAME}: 4 cases listed for 1.0" in output
    assert "8 passed, 4 xfailed" in output
    assert "known: unexplained" in output
    assert told(output) == "nothing changed, 4 cases as before"
    assert "document" not in output.partition("= verdicts =")[2]


@pytest.mark.nightly
def test_the_table_of_verdicts_counts_listed_breaches(listed: Bench) -> None:
    _, output = listed.suite("four saturated", "-v")
    assert " 4 failing cases, all as the ledger lists them" in output
    rows = [line.split()[1:] for line in output.splitlines() if line.startswith(NAME)]
    assert ["small:2", "3", "1", "2"] in rows


def test_an_entry_has_a_sentence_cases_and_an_example(listed: Bench) -> None:
    lines = [line.strip(" -") for line in listed.text.splitlines()]
    for line in (
        f"backend: {NAME}",
        "tier: quick",
        "seed: 0",
        "max-examples: 1000",
        "finding: zero",
        "says: gives zero, for x = 1",
        "versions: '1.0'",
        "example: 0x4400 (4) gives 0x09 (9), not 0x04 (4)",
    ):
        assert line in lines
    cases = {line.partition(": ")[2]: line for line in lines}
    assert cases["small:{1,2}/float16/int8"].startswith("violates 4 ")
    assert cases["small:2/float16/float8e4m3fn/saturate:{0,1}"].startswith("deviates 1 ")
    assert str(listed.folder) not in listed.text


@pytest.mark.nightly
def test_an_update_is_reproducible_also_with_xdist_workers(listed: Bench) -> None:
    before = listed.ledger.read_bytes()
    assert listed.suite("four saturated", UPDATE)[0] == PASSED
    assert listed.ledger.read_bytes() == before
    listed.ledger.unlink()
    code, output = listed.suite("four saturated", UPDATE, "-n", "2")
    assert code == PASSED, output
    assert listed.ledger.read_bytes() == before
    assert (
        told(listed.suite("four saturated", "-n", "2")[1]) == "nothing changed, 4 cases as before"
    )


def test_an_unlisted_divergence_a_stale_entry_and_a_region_that_changed_by_one_input_fail(
    listed: Bench,
) -> None:
    code, output = listed.suite("five single", "-v")
    assert (code, told(output)) == (FAILED, "4 worse, 2 better, 0 cases as before")
    assert "6 failed" in output
    assert "  worse: now " in output
    assert "  better: no longer gives zero, for x = 1; now: right" in output
    assert "as the ledger lists them" not in output
    update = f"pytest --pyargs conformance --backend={NAME} --update-ledger"
    for line in (
        f"unlisted: violates (1 input); if it is to stay, {update} lists it",
        "stale: zero is listed, but the verdict is conforms now; if the backend is mended, "
        f"{update} removes the entry",
        "changed: violates: 4 inputs listed, 5 now; if the change is intended, "
        f"{update} records it",
    ):
        assert f"  ledger    {line}" in output
    assert "input     0x40000000" in output


def test_a_changed_case_is_on_the_screen_and_has_no_traceback(listed: Bench) -> None:
    code, output = listed.suite("five single")
    assert (code, told(output)) == (FAILED, "4 worse, 2 better, 0 cases as before")
    assert not any(word in output for word in ("= FAILURES =", "FAILED", "input     0x"))
    assert "6 more failures; -v shows all, and -k CASE one" in output
    assert len(output.splitlines()) < 40


@pytest.mark.nightly
def test_an_update_removes_a_stale_entry(listed: Bench) -> None:
    assert listed.suite("saturated", UPDATE)[0] == PASSED
    assert "unexplained" not in listed.text
    assert listed.suite("saturated")[0] == PASSED


@pytest.mark.nightly
def test_a_region_with_another_answer_fails(listed: Bench) -> None:
    code, output = listed.suite("otherwise saturated", "-v")
    assert (code, told(output)) == (FAILED, "2 otherwise, 2 cases as before")
    assert "changed: violates by other inputs or answers than listed;" in output
    assert f"{NAME} --update-ledger records it" in output


@pytest.mark.nightly
def test_no_ledger_excuses_nothing(listed: Bench) -> None:
    code, output = listed.suite("four saturated", "--no-ledger")
    assert code == FAILED
    assert "4 failed" in output
    assert "ledger" not in output.replace("ledgered", "").replace("--no-ledger", "")


@pytest.mark.nightly
def test_nothing_is_excused_under_runxfail(listed: Bench) -> None:
    code, output = listed.suite("four saturated", "--runxfail")
    assert code == FAILED
    assert "4 failed" in output


@pytest.mark.nightly
def test_a_backend_without_a_ledger_fails_without_mention_of_it(bench: Bench) -> None:
    code, output = bench.suite("four")
    assert code == FAILED
    assert "unlisted" not in output


@pytest.mark.nightly
def test_the_level_applies_to_listed_breaches_too(listed: Bench) -> None:
    # At the level required, recommendations that are fixed or newly broken do not count.
    assert listed.suite("four", "--level=required")[0] == PASSED
    assert listed.suite("four", "--level=recommended")[0] == FAILED
    assert listed.suite("saturated", "--level=required")[0] == FAILED


PARTIAL = [
    (["-k", "float16"], "leave out -k"),
    (["--deselect=conformance/pytest_plugin/items.py"], "leave out --deselect"),
    (["--collect-only"], "leave out --collect-only"),
    (["-m", "slow"], "leave out -m"),
    (["--seed=1"], "--tier=quick --seed=0 --max-examples=1000"),
    (["--max-examples=5"], "--tier=quick --seed=0 --max-examples=1000"),
    (["--tier=full"], "--tier=quick --seed=0 --max-examples=1000"),
    (["--no-ledger"], "--no-ledger and --update-ledger exclude each other"),
]


@pytest.mark.ci_runs_one_of(8)
@pytest.mark.parametrize(("arguments", "message"), PARTIAL)
def test_a_partial_run_updates_nothing(listed: Bench, arguments: list[str], message: str) -> None:
    before = listed.ledger.read_bytes()
    code, output = listed.suite("single", UPDATE, *arguments)
    assert (code, message in output) == (USAGE, True), output
    assert len([line for line in output.splitlines() if "--update-ledger" in line]) == 1
    assert listed.ledger.read_bytes() == before


def test_an_update_of_one_version_keeps_the_entries_of_the_other_and_of_checks(
    listed: Bench,
) -> None:
    before = listed.text.splitlines()
    code, output = listed.suite("five saturated", UPDATE, "--document=small:1")
    assert code == PASSED, output
    assert f"{listed.ledger}: " in output
    gone, new = (
        {*one} - {*other} for one, other in permutations((before, listed.text.splitlines()))
    )
    assert [line for line in gone if "small:{1,2}/float16/int8" in line and "violates 4" in line]
    assert [line for line in new if "small:1/float16/int8" in line and "violates 5" in line]
    assert [line for line in new if "small:2/float16/int8" in line and "violates 4" in line]
    # What was wrong before is found again, and then the file is the same again.
    assert listed.suite("four saturated", UPDATE, "--document=small:1")[0] == PASSED
    assert listed.text.splitlines() == before


PARTLY_IMPOSSIBLE: dict[str, tuple[Callable[[Bench], object], str, str]] = {
    "another version": (
        lambda bench: None,
        "1.1",
        "made with 1.0, not with 1.1; leave out --docum",
    ),
    "no ledger": (lambda bench: bench.ledger.unlink(), "1.0", "has no ledger in which"),
}


@pytest.mark.nightly
@pytest.mark.parametrize("reason", PARTLY_IMPOSSIBLE)
def test_an_update_of_one_document_needs_a_ledger_of_this_version(
    listed: Bench, reason: str
) -> None:
    prepare, version, message = PARTLY_IMPOSSIBLE[reason]
    prepare(listed)
    code, output = listed.suite("single", UPDATE, "--document=small", version=version)
    assert (code, message in output) == (USAGE, True), output
    assert (
        len([line for line in output.splitlines() if "--update-ledger" in line or "1.1" in line])
        == 1
    )


@pytest.mark.nightly
def test_an_update_of_a_version_that_is_not_claimed_is_refused(listed: Bench) -> None:
    ledger = listed.ledger.with_name("ledgered.Newest.yaml")
    ledger.write_text(before := listed.text.replace(NAME, "ledgered:Newest"))
    code, output = listed.suite("five", UPDATE, "--document=small:1", backend="ledgered:Newest")
    assert (code, "ledgered:Newest claims none of the documents" in output) == (USAGE, True), output
    assert ledger.read_text() == before


@pytest.mark.nightly
def test_a_single_item_updates_nothing(listed: Bench) -> None:
    node = f"conformance/pytest_plugin/items.py::{NAME}::small:1/float16/int8"
    code, output = listed.suite("", UPDATE, target=node)
    assert (code, f"leave out {node}" in output) == (USAGE, True), output


@pytest.mark.nightly
@pytest.mark.parametrize("faults", ["kills", "kills single"])
def test_a_run_that_lost_a_worker_updates_nothing(listed: Bench, faults: str) -> None:
    before = listed.ledger.read_bytes()
    code, output = listed.suite(faults, UPDATE, "-n", "2", "--max-worker-restart=0")
    assert code == USAGE, output
    assert f"of {CASES} cases of {NAME} were not judged; the ledger is unchanged" in output
    assert listed.ledger.read_bytes() == before


def test_entries_of_the_nearest_version_are_used_for_another(listed: Bench) -> None:
    code, output = listed.suite("four saturated", version="1.1")
    assert code == PASSED, output
    assert f"ledger of {NAME}: made with 1.0, used for 1.1; 4 cases listed" in output
    assert f"{NAME} 1.1, since 1.0: nothing changed, 4 cases as before" in output


@pytest.mark.nightly
def test_what_another_version_mends_is_told_and_recorded(listed: Bench) -> None:
    code, output = listed.suite("four", version="1.1")
    assert code == FAILED, output
    assert f"{NAME} 1.1, since 1.0: 2 better, 2 cases as before" in output
    assert f"to record it: pytest --pyargs conformance --backend={NAME} --update-ledger" in output
    assert listed.suite("four", UPDATE, version="1.1")[0] == PASSED
    assert listed.suite("four", version="1.1")[0] == PASSED
    assert listed.suite("four saturated")[0] == PASSED


@pytest.mark.nightly
def test_entries_of_other_versions_are_not_used_if_the_exact_one_is_wanted(listed: Bench) -> None:
    code, output = listed.suite("", "--ledger=exact", version="1.1")
    assert code == PASSED
    assert f"ledger of {NAME}: 0 cases listed for 1.1" in output
    assert f"ledger of {NAME}: 4 cases not used, listed for other versions" in output
    assert listed.suite("four saturated", "--ledger=exact", version="1.1")[0] == FAILED


@pytest.mark.nightly
def test_an_update_for_another_version_keeps_the_entries_of_the_first(listed: Bench) -> None:
    assert listed.suite("four", UPDATE, version="1.2")[0] == PASSED
    assert "versions: 1.0 to 1.2\n" in listed.text
    assert "versions: '1.0'\n" in listed.text
    assert listed.suite("four", version="1.2")[0] == PASSED
    assert listed.suite("four", version="1.3")[0] == PASSED
    assert listed.suite("four saturated", version="1.0")[0] == PASSED
    assert listed.suite("four saturated", version="1.1")[0] == PASSED


@pytest.mark.nightly
def test_a_ledger_is_not_used_with_other_inputs(listed: Bench) -> None:
    code, output = listed.suite("four saturated", "--max-examples=5")
    assert code == FAILED
    assert "not used; it was written with --tier=quick --seed=0 --max-examples=1000" in output


@pytest.mark.nightly
def test_with_another_seed_a_ledger_lists_verdicts(listed: Bench) -> None:
    code, output = listed.suite("four saturated", "--seed=1")
    assert code == PASSED, output
    assert "it was written with seed 0, so only verdicts are compared" in output
    assert listed.suite("four raises", "--seed=1")[0] == FAILED


def test_a_new_cause_that_drawn_tensors_show_fails_the_run_once(listed: Bench) -> None:
    code, output = listed.suite("four saturated matrices", "--seed=1")
    assert (code, told(output)) == (FAILED, "1 worse, 4 cases as before")
    assert "changes its answers with position, length or layout" in output
    assert "7 passed, 5 xfailed" in output


@pytest.mark.nightly
def test_a_listed_cause_that_drawn_tensors_show_elsewhere_is_counted(listed: Bench) -> None:
    """The ledger lists the cause of another pair of dtypes."""
    assert listed.suite("four saturated matrices", UPDATE)[0] == PASSED
    listed.ledger.write_text(
        listed.text.replace("invariances/float16/int8", "invariances/float16/float8e4m3fn")
    )
    for more in ([], ["-n", "2"]):
        code, output = listed.suite("four saturated matrices", "--seed=1", *more)
        assert code == PASSED, output
        assert "  1 case more by other tensors" in output


@pytest.mark.nightly
def test_errors_and_crashes_are_listed_and_open_answers_are_not(bench: Bench) -> None:
    code, output = bench.suite("raises ends opened", UPDATE)
    assert code == PASSED, output
    assert ": small:{1,2}/float32/int8\n" in bench.text
    assert "    error 0 " in bench.text
    assert "    crashed 0 " in bench.text
    assert "finding: raises-ValueError" in bench.text
    assert "float16" not in bench.text
    assert str(bench.folder) not in bench.text
    # Addresses in messages, and answers to open inputs, may vary.
    code, output = bench.suite("raises ends")
    assert code == PASSED, output
    before = bench.ledger.read_bytes()
    assert bench.suite("raises ends", UPDATE)[0] == PASSED
    assert bench.ledger.read_bytes() == before


@pytest.mark.nightly
def test_a_backend_without_divergences_needs_no_ledger(listed: Bench) -> None:
    code, output = listed.suite("", UPDATE)
    assert code == PASSED
    assert f"{NAME} 1.0 has no divergences and needs no ledger" in output
    assert not listed.ledger.exists()


@pytest.mark.nightly
def test_a_link_is_kept_and_shown(listed: Bench) -> None:
    link = "https://example.org/issues/1"
    listed.ledger.write_text(
        listed.text.replace("  cases:\n    viol", f"  upstream: {link}\n  cases:\n    viol")
    )
    code, output = listed.suite("four saturated", "-rx")
    assert (code, f"known: unexplained, {link}" in output) == (PASSED, True)
    assert listed.suite("five saturated", UPDATE)[0] == PASSED
    assert "violates 5 " in listed.text
    assert f"upstream: {link}" in listed.text


def test_an_unreadable_ledger_is_one_line(listed: Bench) -> None:
    listed.ledger.write_text(listed.text.replace("kind: wrong value", "kind: wrong", 1))
    code, output = listed.suite("")
    line = 1 + listed.text.splitlines().index("  kind: wrong")
    assert (code, f"{listed.ledger}:{line}: " in output) == (USAGE, True), output


@pytest.mark.nightly
def test_a_backend_named_by_path_can_have_no_ledger(bench: Bench) -> None:
    code, output = bench.suite("", UPDATE, backend=f"{DATA / 'ledgered.py'}:Planted")
    assert (code, "can have no ledger: only a plain name has one" in output) == (USAGE, True)


RULES = """\
rules: ours
title: Ours
text: "a page of ours"
documents: [small]
choices:
  nan-is-zero:
    clause: "line 1"
    when: {from: float, to: int8}
    then: {nan: zero}
"""


@pytest.mark.nightly
def test_house_rules_have_a_ledger_of_their_own_beside_them(bench: Bench) -> None:
    rules, ledger = bench.folder / "ours.yaml", bench.folder / "ledgered.Planted+ours.yaml"
    rules.write_text(RULES)
    by_rules = f"--rules={rules}"
    code, output = bench.suite("opened", by_rules)
    assert code == FAILED, output
    code, output = bench.suite("opened", by_rules, UPDATE)
    assert code == PASSED, output
    assert f"{ledger}: 1 findings, 2 cases of {NAME}+ours 1.0" in output
    assert f"--backend={NAME} --rules={rules} {UPDATE}" in ledger.read_text().replace("\n", " ")
    assert not bench.ledger.exists()
    code, output = bench.suite("opened", by_rules)
    assert code == PASSED, output
    assert f"castigate: ledger of {NAME}+ours: 2 cases listed for 1.0" in output
    code, output = bench.suite("", by_rules)
    assert code == FAILED, output
    assert f"pytest --pyargs conformance --backend={NAME} --rules={rules} {UPDATE}" in output
    # The ledger of the document itself has no entries for open answers.
    code, output = bench.suite("opened")
    assert code == PASSED, output
    assert "ours" not in output


def test_documents_and_house_rules_use_a_ledger_each(listed: Bench) -> None:
    rules = listed.folder / "ours.yaml"
    rules.write_text(RULES)
    # The house rules are about int8 only.
    to_int8 = listed.text.partition("- finding: zero")[0]
    ours = to_int8.replace(NAME, f"{NAME}+ours").replace("small:", "small+ours:")
    rules.with_name(f"{listed.ledger.stem}+ours.yaml").write_text(ours)
    code, output = listed.suite("four saturated", "--document=small", f"--rules={rules}")
    assert code == PASSED, output
    assert f"castigate: ledger of {NAME}: 4 cases listed for 1.0" in output
    assert f"castigate: ledger of {NAME}+ours: 2 cases listed for 1.0" in output
    assert "6 xfailed" in output
