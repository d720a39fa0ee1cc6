"""What changed between two runs: each changed case in one entry, counted as the tables count."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from oracles.protocol import Unsupported
from reports.changes.change import KINDS, BackendChanges, Change, ChangeKind, Example, grouped
from reports.changes.change import CaseChange as One
from reports.changes.of_runs import changes_of_runs
from reports.changes.words import (
    LEAST_ROWS,
    ROWS,
    details,
    heading,
    markdown,
    screen,
    sentence,
    workflow_commands,
)
from reports.findings.read_findings import causes_of
from reports.findings.report import read_report
from reports.judgement import FAILING, VERDICTS, Judgement, Verdict
from reports.outputs.sarif import changes_sarif
from reports.outputs.summary_md import summary_md
from reports.outputs.totals import COLUMNS
from reports.run_store.open_run import open_run
from reports.run_store.store import CAUSES
from specs.cases import Case
from tests.html.planted import HALF, one_cell, planted_run, violated
from tests.reports.judged_run import (
    RIGHT,
    Answer,
    cases_of,
    judged_run,
    raising,
    through,
    where,
    with_mode,
)

TWO = cases_of("onnx-cast:25/float16/float8e4m3fn/", "onnx-cast:24/float16/float8e4m3fn/")
IDS = tuple(case.id for case in TWO)
MANY = cases_of("onnx-cast:25/int16/", "onnx-cast:25/float16/bool/")
GOOD, BAD = 0x40, 0x41


def one_fault(names: tuple[str, ...], answer: int) -> Answer:
    """Right answers, except for the input 1 in some cases."""

    def wrong(case: Case, bits: np.ndarray) -> np.ndarray:
        return (bits == 0x3C00) & (case.id in names)

    return where(wrong, lambda case: answer)


def changes(
    folder: Path, before: Answer, now: Answer, cases: list[Case], seeds: tuple[int, int] = (0, 0)
) -> BackendChanges:
    for name, answer, seed in (("before", before, seeds[0]), ("now", now, seeds[1])):
        judged_run(folder / name, {"faulty": answer}, cases, seed)
    [found] = changes_of_runs(open_run(f"{folder}/before"), open_run(f"{folder}/now"), ["faulty"])
    return found


@pytest.mark.parametrize(
    ("before", "now", "kind", "cases", "example"),
    [
        ((1, GOOD), (1, GOOD), None, 0, ""),
        ((0, GOOD), (1, GOOD), "worse", 1, "0x3c00 (1): 0x38 (1) → 0x40 (2)"),
        ((1, GOOD), (0, GOOD), "better", 1, "0x3c00 (1): 0x40 (2) → 0x38 (1)"),
        ((1, GOOD), (2, GOOD), "worse", 1, "0x3c00 (1): 0x38 (1) → 0x40 (2)"),
        ((0, GOOD), (2, GOOD), "worse", 2, "0x3c00 (1): 0x38 (1) → 0x40 (2)"),
        ((1, GOOD), (1, BAD), "otherwise", 1, "0x3c00 (1): 0x40 (2) → 0x41 (2.25)"),
    ],
)
def test_a_changed_case_is_worse_better_or_otherwise(
    tmp_path: Path,
    before: tuple[int, int],
    now: tuple[int, int],
    kind: ChangeKind | None,
    cases: int,
    example: str,
) -> None:
    answers = (one_fault(IDS[:count], answer) for count, answer in (before, now))
    found = changes(tmp_path, *answers, TWO)
    assert found.counts == ({kind: cases} if kind else {})
    assert found.same == len(TWO) - cases
    assert [str(each.example) for each in found.changes] == ([example] if kind else [])
    assert found.is_worse == (kind == "worse")


@pytest.mark.parametrize(
    ("before", "now", "kind"),
    [
        ((0x3C00,), (0x3C00, 0x4000), "worse"),
        ((0x3C00, 0x4000), (0x3C00,), "better"),
        ((0x3C00, 0x4000), (0x4400,), "worse"),
    ],
)
def test_in_a_case_that_fails_as_before_inputs_decide(
    tmp_path: Path, before: tuple[int, ...], now: tuple[int, ...], kind: ChangeKind
) -> None:
    answers = (
        where(lambda case, bits, wrong=wrong: np.isin(bits, wrong), lambda case: BAD)
        for wrong in (before, now)
    )
    assert changes(tmp_path, *answers, TWO[:1]).counts == {kind: 1}


def test_what_is_new_is_joined_with_what_it_replaces(tmp_path: Path) -> None:
    cases = cases_of("onnx-cast:25/float64/float8e4m3fn/saturate:1")
    found = changes(tmp_path, through("float32"), with_mode("saturate", "0"), cases)
    [entry] = found.changes
    assert entry.kind == "worse"
    assert set(entry.findings) == {"rounds-twice-through-float32", "as-saturate-0"}
    assert entry.says.startswith("now ")
    assert entry.says.endswith("; before: rounds twice, through float32")


def test_other_answers_that_are_allowed_are_otherwise(tmp_path: Path) -> None:
    cases = cases_of("onnx-cast:25/float16/int8")

    def nan_is(answer: int) -> Answer:
        return where(lambda case, bits: (bits & 0x7FFF) > 0x7C00, lambda case: answer)

    found = changes(tmp_path, nan_is(0), nan_is(5), cases)
    [entry] = found.changes
    assert (entry.kind, found.counts) == ("otherwise", {"otherwise": 1})
    assert entry.example is not None
    assert (entry.example.before, entry.example.now) == ("0x00 (0)", "0x05 (5)")
    assert entry.inputs == 2 * 0x3FF


@pytest.mark.parametrize(
    ("before", "now", "kind"),
    [
        (RIGHT.cast, raising(Unsupported("no")), "unsupported"),
        (one_fault(IDS, GOOD), raising(Unsupported("no")), "unsupported"),
        (raising(Unsupported("no")), RIGHT.cast, "supported"),
        (raising(Unsupported("no")), one_fault(IDS, GOOD), "worse"),
        (RIGHT.cast, raising(ValueError("no")), "worse"),
        (raising(ValueError("no")), one_fault(IDS, GOOD), "better"),
        (raising(ValueError("no")), raising(ValueError("No.")), None),
        (raising(ValueError("no")), raising(TypeError("no")), "otherwise"),
        (raising(ValueError("no")), raising(Unsupported("no")), "otherwise"),
        (raising(Unsupported("no")), raising(ValueError("no")), "worse"),
    ],
)
def test_cases_without_answers_are_told_apart(
    tmp_path: Path, before: Answer, now: Answer, kind: ChangeKind | None
) -> None:
    found = changes(tmp_path, before, now, TWO)
    assert found.counts == ({kind: len(TWO)} if kind else {})


@pytest.mark.parametrize(
    ("before", "now", "kind"),
    [
        (raising(TypeError("no")), raising(Unsupported("no")), "otherwise"),
        (raising(Unsupported("no")), raising(TypeError("no")), "otherwise"),
    ],
)
def test_a_refusal_that_a_document_wants_is_no_answer_that_is_lost(
    tmp_path: Path, before: Answer, now: Answer, kind: ChangeKind
) -> None:
    cases = cases_of("numpy-astype:2.4/float64/int8/casting:no")
    assert changes(tmp_path, before, now, cases).counts == {kind: 1}


@pytest.mark.parametrize("verdict", VERDICTS)
def test_each_pair_of_verdicts_has_one_kind(tmp_path: Path, verdict: Verdict) -> None:
    """Of two verdicts, the change from one to the other is the reverse of the change back."""
    severe = ("deviates", "violates", "error", "crashed")
    [case] = cases_of("onnx-cast:25/float32/float16/")
    for other in VERDICTS:
        runs = []
        for name, each in ((f"{other}-1", verdict), (f"{other}-2", other)):
            judgement = Judgement(case.id, "ort", each)
            out = planted_run(
                tmp_path / name, one_cell("ort", case.id, judgement), ["ort"], of=[case]
            )
            runs.append(open_run(out))
        [there] = changes_of_runs(*runs, ["ort"])
        [back] = changes_of_runs(*reversed(runs), ["ort"])
        [kind] = there.counts or [None]
        if verdict == other or "not-run" in (verdict, other):
            assert (kind, there.same) == (None, int("not-run" not in (verdict, other)))
        elif other == "unsupported":
            assert (kind, back.is_worse) == ("unsupported", verdict in severe)
        elif verdict != "unsupported":
            rank = [severe.index(each) + 1 if each in severe else 0 for each in (verdict, other)]
            expected = {True: "worse", False: "better" if rank[0] > rank[1] else "otherwise"}
            assert kind == expected[rank[1] > rank[0]]
            assert [*back.counts] == [
                {"worse": "better", "better": "worse"}.get(str(kind), "otherwise")
            ]


def test_the_counts_are_those_of_the_tables(tmp_path: Path) -> None:
    """An independent count: rows of two tables that differ in verdict, digests or answers."""

    def before(case: Case, bits: Any) -> Any:
        return through("bfloat16" if case.target != "float16" else "float32")(case, bits)

    def now(case: Case, bits: Any) -> Any:
        if case.target.startswith("float8e5m2"):
            raise Unsupported("no")
        return (through("bfloat16") if case.target == "int64" else RIGHT.cast)(case, bits)

    def spoilt(case: Case, bits: Any) -> Any:
        return one_fault((case.id,), 0)(case, bits) if case.target == "bool" else now(case, bits)

    found = changes(tmp_path, before, spoilt, MANY)
    rows = [
        {
            row["case"]: (
                row["verdict"],
                tuple((each["rule"], each["digest"]) for each in row["broken"]),
                row["answers"],
            )
            for row in pq.read_table(tmp_path / name / "cases.parquet").to_pylist()
        }
        for name in ("before", "now")
    ]
    differing = {case for case in rows[0] if rows[0][case] != rows[1][case]}
    names = [name for each in found.changes for name in each.names]
    assert sorted(names) == sorted(differing)
    assert found.same == len(rows[0]) - len(differing) > 0
    gone = {case for case in rows[0] if rows[1][case][0] == "unsupported" != rows[0][case][0]}
    assert found.counts["unsupported"] == len(gone) > 0
    failed = [{case for case in each if each[case][0] in FAILING} for each in rows]
    assert {*found.counts} == {"worse", "better", "unsupported"}
    for kind, cases in (("worse", failed[1] - failed[0]), ("better", failed[0] - failed[1] - gone)):
        assert {name for each in found.changes if each.kind == kind for name in each.names} == cases
        assert cases


def test_inputs_that_only_a_sweep_asks_count_too(tmp_path: Path) -> None:
    """At the tier full verdicts and kept answers may be the same where other inputs are wrong."""
    runs = []
    for rows in (1, 2):
        plant = one_cell("ort", HALF, violated("ort", HALF, rows))
        runs.append(open_run(planted_run(tmp_path / str(rows), plant, ["ort"])))
    [found] = changes_of_runs(*runs, ["ort"])
    assert [(each.kind, each.names) for each in found.changes] == [("worse", (HALF,))]


def test_an_edition_that_is_claimed_now_is_no_worse(tmp_path: Path) -> None:
    wrong = violated("ort", HALF)
    runs = [
        open_run(planted_run(tmp_path / each.verdict, one_cell("ort", HALF, each), ["ort"]))
        for each in (replace(wrong, verdict="differs"), wrong)
    ]
    [found] = changes_of_runs(*runs, ["ort"])
    assert found.counts == {}
    told = "  1 case as before: only the claimed version of the document is another"
    assert found.notes == (told,)


def test_with_another_seed_only_rules_are_compared(tmp_path: Path) -> None:
    faults = one_fault(IDS[:1], GOOD), one_fault(IDS[:1], BAD)
    assert changes(tmp_path / "a", *faults, TWO, (0, 1)).counts == {}
    found = changes(tmp_path / "b", RIGHT.cast, faults[0], TWO, (0, 1))
    assert found.counts == {"worse": 1}


def test_a_report_has_the_changes_of_its_last_runs(tmp_path: Path) -> None:
    for name, fails in (("before", ()), ("now", IDS[:1])):
        store = judged_run(tmp_path / name, {"faulty": one_fault(fails, GOOD)}, TWO)
        store.folder.write(CAUSES, causes_of(store))
    report = read_report([str(tmp_path / "before"), str(tmp_path / "now")])
    [step] = report.steps
    assert (
        step
        == changes_of_runs(
            open_run(str(tmp_path / "before")), open_run(str(tmp_path / "now")), ["faulty"]
        )[0]
    )
    [finding] = report.findings["faulty"]
    assert report.kinds_of_change(finding) == ["worse"]
    assert f"- **worse**: {step.changes[0].says}" in summary_md(report).replace("\\", "")


def planted_changes(*counts: int) -> BackendChanges:
    """Changes of each kind, as many as ``counts``, each of one case."""
    found = [
        One(
            f"onnx-cast:25/float32/float16/case:{kind}{number}",
            kind,
            (f"was {number} " * 30,),
            (f"is {number}",),
            (f"{kind}-{number}",),
            frozenset({f"{kind}-{number}"}),
            Example(HALF, "0x1 (1)", "0x2 (2)", f"0x3 ({number})"),
        )
        for kind, count in zip(KINDS, counts, strict=False)
        for number in range(count)
    ]
    return BackendChanges("ort", "2", "since 1", grouped(found), 7)


@pytest.mark.parametrize("counts", [(0,), (1, 1, 1, 1, 1), (4, 12, 3), (40, 40, 40, 1), (0, 0, 90)])
def test_a_screen_holds_every_kind_and_counts_the_rest(counts: tuple[int, ...]) -> None:
    every = planted_changes(*counts)
    lines = screen([every])
    assert len(lines) <= ROWS
    assert max(map(len, lines)) <= COLUMNS
    told = Counter(line.split(":")[0].strip() for line in lines if line.startswith("  "))
    left = lines[-1] if lines[-1].startswith("  and ") else ""
    for kind in every.counts:
        shown = told[sentence(every.of(kind)[0]).split(":")[0]]
        assert shown
        more = len(every.of(kind)) - shown
        assert (f"{more} more {kind}" in left.replace("no longer supported", "unsupported")) == (
            more > 0
        )
    assert len(screen([every], None)) >= len(lines)


def test_backends_share_a_screen() -> None:
    lines = screen([planted_changes(9, 9)] * 4)
    assert sum(line.startswith("ort 2, since 1: ") for line in lines) == 4
    assert len(lines) <= max(ROWS, 4 * LEAST_ROWS)


def test_all_outputs_say_the_same() -> None:
    every = [planted_changes(1, 1, 1, 1, 1)]
    page = "\n".join(markdown(every)).replace("\\", "")
    commands = [*workflow_commands(every)]
    [run] = json.loads(changes_sarif(every))["runs"]
    whole = " ".join(" ".join(screen(every, None)).split())
    for change, command, result in zip(every[0].changes, commands, run["results"], strict=True):
        level = "error" if change.kind == "worse" else "notice"
        assert command.startswith(f"::{level} title=ort 2%2C since 1::")
        assert result["level"] == ("error" if change.kind == "worse" else "note")
        for text in (command, result["message"]["text"], whole):
            assert " ".join(sentence(change).split()) in " ".join(text.split())
            assert details(change) in text
        assert change.says in page
        assert str(change.example) in page
    assert heading(every[0]) in page
    assert len({each["id"] for each in run["tool"]["driver"]["rules"]}) == 5


def test_a_command_of_github_is_one_line() -> None:
    one = One(IDS[0], "worse", ("a",), ("100 % of\r\nlines: a, b",))
    [command] = workflow_commands([BackendChanges("a:b", "1,2", "since 1", (Change((one,)),), 0)])
    assert command.startswith("::error title=a%3Ab 1%2C2%2C since 1::worse: now 100 %25 of%0D%0A")
    assert "\n" not in command
