"""``castigate run`` and ``castigate merge`` as real processes: findings, storage and errors."""

from __future__ import annotations

import shutil
from bisect import bisect_right
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from reports.run_store.record import CHECKSUM, Shard, parse_record, serialize_record
from specs import VERSION
from specs.loader import documents
from tests.conformance.processes import (
    BOOL,
    CAUSES,
    FULL,
    HALF,
    INT4,
    ONNX,
    ROOT,
    RUNNABLE,
    TABLES,
    backend,
    castigate,
    contents,
    record,
    rows,
    run,
    tables,
    verdicts,
)

needs_numba = pytest.mark.skipif(
    find_spec("numba") is None, reason="without the extra `fast` a sweep of 2**32 takes long"
)


def found(folder: Path, name: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A backend's only case, and its runs of inputs."""
    [case] = [row for row in rows(folder, "cases") if row["backend"].endswith(f":{name}")]
    runs = [row for row in rows(folder, "divergences") if row["backend"] == case["backend"]]
    return case, runs


def counted(case: dict[str, Any], runs: list[dict[str, Any]]) -> tuple[int, int]:
    """The number of wrong answers and of their runs, after checking that all counts agree."""
    levels = {rule["level"] for rule in case["broken"]}
    assert levels == {row["level"] for row in runs}
    wrong = "violates" if "required" in levels else "deviates"
    assert (case["verdict"], case["open"]) == (wrong if runs else "conforms", 0)
    assert sum(row["count"] for row in runs) == case["wrong"]
    assert sum(rule["wrong"] for rule in case["broken"]) == case["wrong"]
    assert sum(rule["runs"] for rule in case["broken"]) == case["runs"] == len(runs)
    assert all(row["count"] == row["last"] - row["first"] + 1 for row in runs)
    return case["wrong"], len(runs)


def all_lie_inside(quick: list[dict[str, Any]], full: list[dict[str, Any]]) -> bool:
    """Whether every run found at quick is a part of a run of the same case found at full."""
    full = sorted(full, key=lambda row: row["first"])
    firsts = [whole["first"] for whole in full]
    wholes = [full[bisect_right(firsts, part["first"]) - 1] for part in quick]
    return all(
        all(whole[name] == part[name] for name in ("case", "rule", "level"))
        and whole["first"] <= part["first"] <= part["last"] <= whole["last"]
        for part, whole in zip(quick, wholes, strict=True)
    )


@pytest.mark.nightly
def test_full_counts_all_wrong_answers_and_quick_finds_a_part_of_them(
    tmp_path: Path,
) -> None:
    quick, full = tmp_path / "quick", tmp_path / "full"
    given = [backend(name) for name in ("Right", "OnePattern", "WrongRange", "ManyRuns")]
    assert run(quick, *given, *BOOL) == 1
    assert run(full, *given, *BOOL, FULL, "--jobs=2") == 1
    assert [row["inputs"] for row in rows(full, "cases")] == [1 << 32] * 4
    # Around inputs that fail, more are asked.
    asked = [row["inputs"] for row in rows(quick, "cases")]
    assert min(asked) == asked[0] < asked[2]
    expected = {"Right": (0, 0), "OnePattern": (1, 1), "WrongRange": (0x1100, 1)}
    for name in expected:
        case, runs = found(full, name)
        assert counted(case, runs) == expected[name]
        part = found(quick, name)
        counted(*part)
        assert all_lie_inside(part[1], runs)
    first, last = 0x7FFFFF00, 0x80000FFF
    [one] = found(full, "WrongRange")[1]
    assert (one["first"], one["last"], one["answer"], one["slope"]) == (first, last, 0, 0)
    assert len(found(quick, "WrongRange")[1]) > 0
    # Only a part of the runs of inputs is listed, but all are counted.
    case, runs = found(full, "ManyRuns")
    assert (case["wrong"], case["runs"], len(runs)) == (1 << 17, 1 << 17, 1 << 16)
    assert [row["first"] for row in runs] == list(range(0x3FF, 1 << 26, 1 << 10))
    kept = record(full)
    assert (kept["complete"], kept["exit_code"], kept["tier"]) == (True, 1, "full")
    assert kept["suite"] == VERSION
    assert kept["documents"] == {name: made.digest for name, made in documents().items()}
    assert kept["backends"][0] == {"name": f"{RUNNABLE}:Right", "version": "1"}
    assert {path.name for path in full.iterdir()} == {*TABLES, *CAUSES, "run.json"}


def test_several_sources_and_targets_are_selected(tmp_path: Path) -> None:
    several = ("--source=bool", "--source=int4", "--target=int2", "--target=uint4")
    assert run(tmp_path / "run", "--backend=reference", "--document=onnx-cast:25", *several) == 0
    pairs = {(row["source"], row["target"]) for row in rows(tmp_path / "run", "cases")}
    assert pairs == {(one, other) for one in ("bool", "int4") for other in ("int2", "uint4")}


@pytest.mark.nightly
@needs_numba
def test_full_counts_wrong_roundings(tmp_path: Path) -> None:
    quick, full = tmp_path / "quick", tmp_path / "full"
    given = [backend(name) for name in ("WrongRange", "TiesAway")]
    assert run(quick, *given, *HALF) == 1
    assert run(full, *given, *HALF, FULL, "--jobs=2") == 1
    ties = 2 * 30 * 512
    """The numbers of signs, of exponents, and of mantissas that end in 0."""
    case, runs = found(full, "TiesAway")
    assert counted(case, runs) == (ties, ties)
    assert [row["first"] for row in runs[:2]] == [0x38801000, 0x38805000]
    [rule] = case["broken"]
    assert (rule["smallest"], rule["answer"], rule["allowed"]) == (
        ("0x40001000", "0x4001", ["0x4000"])
    )
    case, runs = found(full, "WrongRange")
    assert counted(case, runs)[0] == 0x1100
    # 2.0 itself needs no rounding.
    assert [(row["level"], row["first"], row["last"]) for row in runs] == [
        ("required", 0x40000000, 0x40000000),
        ("recommended", 0x3FFFFF00, 0x3FFFFFFF),
        ("recommended", 0x40000001, 0x40000FFF),
    ]
    for name in ("WrongRange", "TiesAway"):
        assert 0 < len(found(quick, name)[1]) < 1 << 16
        assert all_lie_inside(found(quick, name)[1], found(full, name)[1])


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two backends with one job."""
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    assert run(folder, *TWO, "--jobs=1") == 1
    return folder


TWO = (backend("ManyRuns"), backend("WrongRange"), ONNX, "--source=uint32", FULL, "--seed=7")
BYTES = (backend("WrongByte"), ONNX, "--source=int4", "--source=uint8", "--target=bool")
BYTES += ("--target=int2", "--target=uint4", "--target=bfloat16")


@pytest.mark.ci_runs_one_of(2)
@pytest.mark.parametrize(("given", "jobs"), [(BYTES, 2), (TWO, 3)], ids=["quick", "full"])
def test_tables_are_the_same_for_any_number_of_jobs(
    given: tuple[str, ...], jobs: int, tmp_path: Path
) -> None:
    for number in (1, jobs):
        assert run(tmp_path / str(number), *given, f"--jobs={number}") == 1
    assert tables(tmp_path / str(jobs)) == tables(tmp_path / "1")


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Three shards of the run."""
    folder = tmp_path_factory.mktemp("shards")
    for number in (1, 2, 3):
        assert run(folder / str(number), *TWO, f"--shard={number}/3") in (0, 1)
    return [str(folder / str(number)) for number in (1, 2, 3)]


@pytest.mark.nightly
def test_merged_shards_equal_one_run(whole_run: Path, shards: list[str], tmp_path: Path) -> None:
    before = [contents(Path(shard)) for shard in shards]
    assert not list(Path(shards[0]).glob("*.parquet"))
    code, out, _ = castigate("merge", *reversed(shards), f"--out={tmp_path / 'run'}")
    assert code == 1
    assert "inputs" in out
    assert tables(tmp_path / "run") == tables(whole_run)
    assert [contents(Path(shard)) for shard in shards] == before
    kept, whole = record(tmp_path / "run"), record(whole_run)
    varying = ("environments", "command_line", "started", "finished", CHECKSUM)
    assert all(kept[name] == whole[name] for name in whole if name not in varying)


@pytest.mark.nightly
def test_resume_repeats_tasks_whose_parts_are_missing_or_damaged(
    whole_run: Path, shards: list[str], tmp_path: Path
) -> None:
    folder = tmp_path / "3"
    copy_with(Path(shards[2]), folder, complete=False)
    whole = contents(folder)
    parts = sorted((folder / "parts").iterdir())
    for part in parts[::4]:
        part.unlink()
    parts[1].write_bytes(parts[1].read_bytes()[:-1])
    parts[2].write_bytes(b"")
    code, _, err = castigate("run", f"--out={folder}", "--resume")
    assert (code, err.count("its task is done again\n")) == (1, 2)
    again = contents(folder)
    assert again.pop("run.json") is not None
    whole.pop("run.json")
    assert again == whole


@pytest.mark.nightly
def test_a_run_of_64_bit_sources_is_the_same_in_shards(tmp_path: Path) -> None:
    # The backend sets the size of samples in a worker that has loaded it, so one does all visits.
    given = (backend("FewSamples"), ONNX, "--source=uint64", "--target=bool", FULL, "--jobs=1")
    assert run(tmp_path / "run", *given) == 1
    for number in (1, 2):
        run(tmp_path / str(number), *given, f"--shard={number}/2")
    merged = tmp_path / "merged"
    code, _, _ = castigate("merge", *(str(tmp_path / n) for n in "12"), f"--out={merged}")
    assert code == 1
    assert tables(merged) == tables(tmp_path / "run")
    [case] = rows(merged, "cases")
    assert case["inputs"] > 1 << 20
    assert 1 << 17 < case["wrong"] < 1 << 19
    # The failures that two visits found are in one order.
    firsts = [row["first"] for row in rows(merged, "divergences")]
    assert len(firsts) == 1 << 16
    assert firsts == sorted(set(firsts))


def test_the_exit_code_is_0_if_all_conforms_and_3_if_nothing_was_judged(
    folders: Path, tmp_path: Path
) -> None:
    assert run(tmp_path / "run", backend("Declines"), *SMALL) == 3
    expected = {folders / "complete": ("conforms", 0), tmp_path / "run": ("unsupported", 3)}
    for folder, (verdict, code) in expected.items():
        assert {*verdicts(folder).values()} == {verdict}
        assert record(folder)["exit_code"] == code


def test_a_wrong_answer_to_a_negative_text_is_one_finding(tmp_path: Path) -> None:
    pair, folder = (ONNX, "--source=string", "--target=int8"), tmp_path / "run"
    code, out, err = castigate("run", backend("WrongText"), *pair, f"--out={folder}")
    assert (code, "1 finding" in out) == (1, True), err
    assert verdicts(folder) == {"onnx-cast:25/string/int8": "deviates"}
    assert castigate("findings", str(folder))[0] == 1
    assert castigate("report", str(folder), f"--out={tmp_path / 'pages'}")[0] == 0
    assert len(list((tmp_path / "pages").glob("finding-*.html"))) == 1


def test_a_complete_run_is_not_repeated(folders: Path) -> None:
    for given in ([], SAME):
        code, out, err = castigate("run", *given, f"--out={folders / 'complete'}", "--resume")
        assert (code, out, err.count("\n")) == (0, "", 1)
        assert "is complete; there is nothing to continue" in err


def test_the_stored_command_line_names_no_folder_of_this_machine(tmp_path: Path) -> None:
    whole = f"--backend={ROOT / RUNNABLE}:WrongRange"
    assert run(tmp_path / "run", whole, *BOOL) == 1
    kept = " ".join(record(tmp_path / "run")["command_line"])
    assert "runnable.py:WrongRange" in kept
    assert str(tmp_path) not in kept
    assert str(ROOT) not in kept


RIGHT = backend("Right")
SMALL = (*INT4, "--target=bool", "--target=int2", "--target=uint4")
SAME = [RIGHT, *SMALL]
BAD_USAGE = [
    (["run"], "no backend is named; add --backend NAME; installed are reference"),
    (["run", "--backend=rot"], "unknown backend `rot`; did you mean `ort`?"),
    (["run", "--backend=/no/such.py:A"], "/no/such.py does not exist"),
    (["run", backend("Nobody")], "there is no `Nobody` in it"),
    (["run", RIGHT, "--source=flaot32"], "unknown dtype `flaot32`; did you mean `float32`?"),
    (["run", RIGHT, "--target=float23"], "float23"),
    (["run", RIGHT, "--document=onyx-cast"], "`onyx-cast`; did you mean `onnx-cast`, "),
    (["run", RIGHT, "--document=onnx-cast:26"], "onnx-cast has no version `26`"),
    (
        ["run", RIGHT, "--document=pypto-cast", "--target=complex64"],
        "no case has this source and target",
    ),
    *(
        (["run", RIGHT, *INT4, f"--shard={shard}"], f"--shard `{shard}` is not a shard; write I/N")
        for shard in ("0/2", "3/2", "x", "1", "1/", "-1/2", "1/2/3", "01/2", "1/0", "¹/2", "1 /2")
    ),
    (["run", RIGHT, *INT4, "--tier=half"], "'half' is not one of 'quick', 'full'"),
    (["run", RIGHT, *INT4, "--seed=-1"], "greater than or equal to 0"),
    (["run", RIGHT, *INT4, "--jobs=0"], "greater than or equal to 1"),
    (["run", RIGHT, *INT4, "--resume"], "it holds no run.json"),
    (["run", "--resume"], "it holds no run.json"),
    (["merge", "/no/such"], "/no/such is no run"),
]


def error_of(*arguments: str) -> str:
    """Run a command that must fail by one line on stderr; return the line."""
    code, out, err = castigate(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert err.startswith("castigate: ")
    return err


@pytest.mark.parametrize(("arguments", "message"), BAD_USAGE)
def test_bad_usage_is_one_line_and_creates_no_folder(
    arguments: list[str], message: str, tmp_path: Path
) -> None:
    assert message in error_of(*arguments, f"--out={tmp_path / 'run'}")
    assert contents(tmp_path) == {}


@pytest.mark.parametrize("arguments", [["run", "--resume"], ["run", RIGHT, "--resume"]])
def test_resume_needs_out(arguments: list[str]) -> None:
    assert "--resume needs --out" in error_of(*arguments)


def test_merge_needs_shards_and_out() -> None:
    assert "Missing option '--out'" in error_of("merge", "a")
    assert "Missing argument 'RUN'" in error_of("merge", "--out=a")


def copy_with(folder: Path, copy: Path, **changes: Any) -> None:
    """Copy a run, and change its record."""
    shutil.copytree(folder, copy)
    kept = parse_record((folder / "run.json").read_bytes(), "run.json")
    (copy / "run.json").write_bytes(serialize_record(kept.model_copy(update=changes)))


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folders and files that may exist where a run is to be written."""
    folder = tmp_path_factory.mktemp("folders")
    assert run(folder / "complete", *SAME) == 0
    copy_with(folder / "complete", folder / "unfinished", complete=False)
    kept = (folder / "complete" / "run.json").read_text()
    for name, text in (("short", kept[:200]), ("empty", ""), ("alien", "[]")):
        (folder / name).mkdir()
        (folder / name / "run.json").write_text(text)
    (folder / "photos").mkdir()
    (folder / "photos" / "cat.jpeg").write_bytes(b"miaow")
    (folder / "file").write_text("a file")
    for number in (1, 2):
        run(folder / f"{number}of2", *SAME, f"--shard={number}/2")
    copy_with(folder / "2of2", folder / "2of3", shard=Shard(index=2, count=3))
    copy_with(folder / "1of2", folder / "1of2other", seed=1)
    shutil.copytree(folder / "2of2", folder / "2of2damaged")
    copy_with(folder / "2of2", folder / "2of2unfinished", complete=False)
    shutil.copytree(folder / "2of2", folder / "2of2lacking")
    min((folder / "2of2lacking" / "parts").iterdir()).unlink()
    part = min((folder / "2of2damaged" / "parts").iterdir())
    part.write_bytes(part.read_bytes()[:-1])
    before = contents(folder)
    yield folder
    assert contents(folder) == before


OCCUPIED_FOLDERS = [
    ("complete", SAME, "complete holds a complete run; give another --out"),
    ("unfinished", SAME, "holds an unfinished run; go on with it by --resume"),
    ("photos", SAME, "holds files and is no run (`cat.jpeg`)"),
    ("file", SAME, "file"),
    ("short", SAME, "run.json is cut short or damaged: it is not JSON"),
    ("empty", SAME, "run.json is cut short or damaged: it is not JSON"),
    ("alien", SAME, "has format null"),
    ("short", ["--resume"], "run.json is cut short or damaged: it is not JSON"),
    ("file", ["--resume"], "file"),
    ("photos", ["--resume"], "is no run: it holds no run.json"),
    ("unfinished", [*SAME, "--resume", FULL], "begun with --tier quick, now --tier full"),
    ("unfinished", [*SAME, "--resume", "--seed=1"], "begun with --seed 0, now --seed 1"),
    ("unfinished", [*SAME, "--resume", "--shard=1/2"], "begun with no --shard, now --shard 1/2"),
    ("unfinished", [*SAME, "--resume", "--max-examples=1"], "--max-examples 1000, now"),
    ("unfinished", [RIGHT, ONNX, "--resume"], "begun with --source int4, now no --source"),
    ("unfinished", [backend("Other"), *SMALL, "--resume"], f"{RUNNABLE}:Other 2"),
    ("unfinished", [*SAME, "--backend=reference", "--resume"], "now"),
    ("unfinished", ["--resume", FULL], "takes all options from the run"),
    ("unfinished", ["--resume", "--seed=1"], "takes all options from the run"),
    ("unfinished", ["--resume", "--source=int8"], "takes all options from the run"),
    ("unfinished", ["--resume", "--shard=1/2"], "takes all options from the run"),
]


@pytest.mark.ci_runs_one_of(8)
@pytest.mark.parametrize(("name", "arguments", "message"), OCCUPIED_FOLDERS)
def test_a_run_overwrites_nothing(
    name: str, arguments: list[str], message: str, folders: Path, tmp_path: Path
) -> None:
    (shutil.copytree if (folders / name).is_dir() else shutil.copy)(folders / name, tmp_path / name)
    before = contents(tmp_path)
    assert message in error_of("run", *arguments, f"--out={tmp_path / name}")
    assert contents(tmp_path) == before


UNMERGEABLE = [
    (["1of2"], "shard 2/2 of the run is missing"),
    (["1of2", "1of2"], "are both shard 1/2"),
    (["1of2", "2of2", "2of2"], "are both shard 2/2"),
    (["1of2", "2of3"], "is no shard of the run"),
    (["2of2", "1of2other"], "--seed 0 there, --seed 1 here"),
    (["complete"], "is a whole run; only shards can be merged"),
    (["1of2", "complete"], "is a whole run; only shards can be merged"),
    (["1of2", "unfinished"], "unfinished holds an unfinished run"),
    (["1of2", "2of2unfinished"], "2of2unfinished holds an unfinished run"),
    (["1of2", "short"], "is cut short or damaged"),
    (["1of2", "file"], "file"),
    (["1of2", "2of2damaged"], "2of2damaged/parts/"),
    (["1of2", "2of2lacking"], ".part is missing; copy the whole shard again, or run it again"),
    (["1of2", "2of2lacking"], "2of2lacking/parts/"),
]


@pytest.mark.ci_runs_one_of(3)
@pytest.mark.parametrize(("names", "message"), UNMERGEABLE)
def test_an_impossible_merge_is_one_line_and_creates_no_folder(
    names: list[str], message: str, folders: Path, tmp_path: Path
) -> None:
    given = [str(folders / name) for name in names]
    assert message in error_of("merge", *given, f"--out={tmp_path / 'run'}")
    assert contents(tmp_path) == {}


@pytest.mark.parametrize("name", ["complete", "unfinished", "photos", "file", "1of2"])
def test_a_merge_overwrites_nothing(name: str, folders: Path) -> None:
    given = [str(folders / each) for each in ("1of2", "2of2")]
    before = contents(folders)
    error_of("merge", *given, f"--out={folders / name}")
    assert contents(folders) == before


def test_the_screen_says_what_documents_leave_open(tmp_path: Path) -> None:
    pair = ("--document=onnx-cast:25", "--source=float16", "--target=int8")
    code, out, err = castigate("run", "--backend=reference", *pair, f"--out={tmp_path / 'run'}")
    assert (code, "Traceback" in err) == (0, False)
    assert "left open by onnx-cast:25: " in out
    assert "such as float16 NaN to int8 (answer: " in out
